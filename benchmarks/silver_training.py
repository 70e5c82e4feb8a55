"""What silver data made by rule adds when the grounding detector is trained: with it and without it, side by side.

    veriglot dataset rules ../shared/data/mfava/queries -n 10000 -o silver.jsonl
    python benchmarks/silver_training.py --data ../shared/data --silver silver.jsonl

Every arm trains the first stage of the grounding detector, which sees no natural answer, on as many rows with as many
passes; in the arms `+ rules`, silver rows take the place of some of the others. `people` learns from labels by people
and the detector's own rule-made examples alone; `all` also from mFAVA's silver, which a large model made. Rows whose
evidence stands in the test data train nothing. Judged are mFAVA's gold_dev (word F1 at 0.5, the mean over languages)
and the Mu-SHROOM items (mean character IoU at 0.5, and the area under the ROC curve of their words), with 95%
intervals of the difference by bootstrap over texts. Confidences are not calibrated.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from veriglot.detectors.grounding.document import Lexicon
from veriglot.training.grounding.examples import read_labelled
from veriglot.training.grounding.network import predict, rows_of
from veriglot.training.grounding.pipeline import first_stage, is_held_out
from veriglot.training.grounding.synthetic_data import count_words, synthetic_examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from veriglot.training.grounding.examples import Example
    from veriglot.training.grounding.network import Row
SETS = ("mfava/silver", "mfava/queries", "mu_shroom_val", "wice/non_supported_tokens", "xsum", "xquad")
DRAWS = 500
BEGINNING = 500  # code points by which evidence is known again


def say(line: str) -> None:
    """Progress, to standard error."""
    print(f"{time.process_time():6.0f}s {line}", file=sys.stderr, flush=True)


def drawn(examples: Sequence[Example], number: int, seed: int) -> list[Example]:
    """As many examples, fewer where there are fewer; whether one is drawn does not depend on how many are."""
    return Random(seed).sample(list(examples), len(examples))[:number]


class Judged(NamedTuple):
    """What the figures need of one response.

    Attributes:
        language: BCP 47 tag.
        text: the response.
        counts: words marked rightly, wrongly, and missed; shape (3,).
        iou: intersection over union of code points with the hard labels; 1 where both are empty.
        logits, truth: of its words; shape (n,).
    """

    language: str
    text: str
    counts: NDArray[np.int64]
    iou: float
    logits: NDArray[np.float32]
    truth: NDArray[np.bool_]


def judged_of(row: Row, logits: NDArray[np.float32]) -> Judged:
    """A response and its logits, counted; words are marked from logit 0 on."""
    said, truth = logits[:, 0] >= 0, row.target >= 0.5
    counts = np.array([(said & truth).sum(), (said & ~truth).sum(), (~said & truth).sum()])
    real, marked = np.zeros(len(row.example.response), bool), np.zeros(len(row.example.response), bool)
    for mark in row.example.marks:
        real[mark.start : mark.end] = True
    for i, (start, end) in enumerate(row.bounds.tolist()):
        if said[i]:
            marked[start:end] = True
            if i and said[i - 1] and row.sentence[i] == row.sentence[i - 1]:
                marked[row.bounds[i - 1, 1] : start] = True
    union = int((real | marked).sum())
    overlap = float((real & marked).sum()) / union if union else 1.0
    return Judged(row.example.language or "", row.example.response, counts, overlap, logits[:, 0], truth)


def word_f1(judged: Sequence[Judged]) -> float:
    """F1 of words, pooled over responses."""
    right, wrong, missed = np.sum([one.counts for one in judged], axis=0)
    return float(2 * right / max(1, 2 * right + wrong + missed))


def mean_iou(judged: Sequence[Judged]) -> float:
    """Mean over responses."""
    return float(np.mean([one.iou for one in judged]))


def word_area(judged: Sequence[Judged]) -> float:
    """Area under the ROC curve of all words."""
    scores, truth = (np.concatenate([one[place] for one in judged]) for place in (4, 5))
    unmarked = np.sort(scores[~truth])
    below = np.searchsorted(unmarked, scores[truth], "left") + np.searchsorted(unmarked, scores[truth], "right")
    return float(below.sum() / (2 * len(unmarked) * truth.sum()))


def false_alarms(judged: Sequence[Judged]) -> float:
    """Share of words of clean responses that are marked."""
    return float(np.concatenate([one.logits >= 0 for one in judged]).mean())


def by_language(judged: Sequence[Judged], value: Callable[[Sequence[Judged]], float]) -> dict[str, float]:
    """A figure for each language."""
    tags = sorted({one.language for one in judged})
    return {tag: value([one for one in judged if one.language == tag]) for tag in tags}


def interval(
    with_it: list[list[Judged]], without: list[list[Judged]], value: Callable[[Sequence[Judged]], float]
) -> tuple[float, float, float]:
    """Mean difference over seeds and languages, with its 95% interval: texts are drawn again, the same in both arms."""
    groups: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for i, one in enumerate(without[0]):
        groups[one.language][one.text].append(i)

    def difference(chosen: Iterable[list[int]]) -> float:
        pairs = [(one, other, places) for places in chosen for one, other in zip(with_it, without, strict=True)]
        return float(np.mean([value([a[i] for i in p]) - value([b[i] for i in p]) for a, b, p in pairs]))

    rng = np.random.default_rng(0)
    found = []
    for _ in range(DRAWS):
        again = []
        for texts in groups.values():
            listed = list(texts.values())
            again.append([i for k in rng.integers(0, len(listed), len(listed)) for i in listed[k]])
        found.append(difference(again))
    whole = difference([i for some in texts.values() for i in some] for texts in groups.values())
    return whole, float(np.quantile(found, 0.025)), float(np.quantile(found, 0.975))


def new_to(example: Example, seen: set[str]) -> bool:
    """Whether none of its passages begins as one of those does."""
    return not any(passage[:BEGINNING] in seen for passage in example.passages)


def main() -> None:
    """Train the arms and print them side by side."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder that holds mfava/gold_dev, " + ", ".join(SETS))
    parser.add_argument("--silver", type=Path, required=True, help="rows of `veriglot dataset rules`")
    parser.add_argument("--rows", type=int, default=6000, help="training rows of an arm")
    parser.add_argument("--share", type=float, default=0.4, help="of them that are silver by rule in the arms with it")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)

    labelled = read_labelled(str(options.data / name) for name in SETS)
    tested = read_labelled([str(options.data / "mfava" / "gold_dev")])
    rules = read_labelled([str(options.silver)])
    answers = [e for e in labelled.examples if e.kind == "natural" and e.source == "qa"]
    seen = {p[:BEGINNING] for e in [*tested.examples, *answers] for p in e.passages}
    frequencies = count_words(labelled)
    vectors = Lexicon.load(Path(str(files("veriglot.detectors.grounding") / "weights")))
    lexicon = Lexicon(frequencies.table(), vectors.keys, vectors.vectors)
    made = [e for e in synthetic_examples(labelled, frequencies, 1) if new_to(e, seen)]
    others = [e for e in labelled.examples if e not in answers and new_to(e, seen)]
    people = [*(e for e in others if e.kind != "silver"), *made]
    everything = [*others, *made]
    silver = [e for e in rules.examples if new_to(e, seen)]
    say(f"{len(people)} rows of people and own rules, {len(everything)} with mFAVA's silver, {len(silver)} by rule")
    gold, natural = rows_of(tested.examples, lexicon), rows_of(answers, lexicon)
    say(f"judged: {len(gold)} of gold_dev, {len(natural)} natural answers")

    part = round(options.rows * options.share)
    pools = {
        "people": drawn(people, options.rows, 1),
        "people + rules": [*drawn(people, options.rows - part, 1), *drawn(silver, part, 1)],
        "all": drawn(everything, options.rows, 1),
        "all + rules": [*drawn(everything, options.rows - part, 1), *drawn(silver, part, 1)],
    }
    clean = [e for e in made if e.kind == "clean"]
    unseen = [row for row in rows_of(drawn(clean, 4000, 2), lexicon) if is_held_out(row)]
    scored: dict[str, dict[str, list[list[Judged]]]] = {}
    for name, pool in pools.items():
        rows = [row for row in rows_of(pool, lexicon) if not row.is_answer]
        scored[name] = {"gold": [], "natural": [], "clean": []}
        for seed in range(1, options.seeds + 1):
            network = first_stage(rows, seed, lambda _: None, options.epochs)
            for what, test in (("gold", gold), ("natural", natural), ("clean", unseen)):
                found = zip(test, predict(network, test), strict=True)
                scored[name][what].append([judged_of(row, logits) for row, logits in found])
            say(f"{name}: seed {seed}, {sum(not is_held_out(row) for row in rows)} rows")
    show(scored)


def show(scored: dict[str, dict[str, list[list[Judged]]]]) -> None:
    """Figures of every arm, and the differences."""
    measures: list[tuple[str, str, Callable[[Sequence[Judged]], float]]] = [
        ("gold_dev word F1", "gold", word_f1),
        ("gold_dev area", "gold", word_area),
        ("Mu-SHROOM IoU", "natural", mean_iou),
        ("Mu-SHROOM area", "natural", word_area),
    ]
    for title, what, value in measures:
        print(f"\n{title}")
        for name, parts in scored.items():
            each = [by_language(judged, value) for judged in parts[what]]
            means = " ".join(f"{np.mean(list(one.values())):.3f}" for one in each)
            tags = {tag: round(float(np.mean([one[tag] for one in each])), 3) for tag in each[0]}
            print(f"  {name:16} seeds {means}  {json.dumps(tags)}")
        for name in ("people", "all"):
            low_high = interval(scored[f"{name} + rules"][what], scored[name][what], value)
            print("  {} + rules - {}: {:+.3f} [{:+.3f}, {:+.3f}]".format(name, name, *low_high))
    print("\nwords of clean held-out quotations marked")
    for name, parts in scored.items():
        print(f"  {name:16} " + " ".join(f"{false_alarms(judged):.4f}" for judged in parts["clean"]))


if __name__ == "__main__":
    main()
