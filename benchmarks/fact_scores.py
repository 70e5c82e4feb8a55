"""How the confidences of words become the score of a fact, and those of facts that of a sentence: every rule tried.

All rules see the same facts and sentences: areas under the ROC curve and under the precision-recall curve with either
class as the positive one (kang's AUC_F and AUC_NF), F1 at the threshold, and how far scores are from probabilities.
The texts are those that train no detector: the tenth of mFAVA silver and of WiCE (`share_of(group) < 0.1`).

    python benchmarks/fact_scores.py --data ../shared/data
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import veriglot
from figures import command_line, show
from veriglot.detectors.registry import load_detector
from veriglot.metrics import scores as histogram
from veriglot.metrics.reference import reference
from veriglot.metrics.spans import combine_scores, fact_marks, marked, probabilities, ranges
from veriglot.text.facts import facts
from veriglot.text.segmentation import sentences
from veriglot.training.grounding.examples import share_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from veriglot.records import Detector, Sample

    Array = NDArray[np.float64]
    Rule = Callable[[Array], float]

HELD_OUT = 0.1


class Unit(NamedTuple):
    """A fact or sentence: what its score is made from, and whether its label says that anything is unsupported."""

    scores: Array
    unsupported: bool


def faded(weight: float, most: int | None = None) -> Rule:
    """A noisy-or over the `most` highest scores in falling order, each weighing `weight` times the one before."""

    def rule(scores: Array) -> float:
        ordered = np.sort(scores)[::-1][:most]
        return float(1.0 - np.prod((1.0 - ordered) ** (weight ** np.arange(len(ordered)))))

    return rule


RULES: dict[str, Rule] = {
    "greatest": lambda scores: float(scores.max()),
    "mean": lambda scores: float(scores.mean()),
    "mean of two": lambda scores: float(np.sort(scores)[-2:].mean()),
    "noisy-or": faded(1.0),
    "noisy-or of two": faded(1.0, 2),
    "noisy-or of three": faded(1.0, 3),
    "fading by 0.3": faded(0.3),
    "fading by 0.5": combine_scores,
    "fading by 0.7": faded(0.7),
}


def held_out(folder: Path, limit: int) -> Iterator[Sample]:
    """One sample of each text of the held-out tenth, at most `limit` a file."""
    seen: set[str] = set()
    for path in sorted(file for file in folder.rglob("*") if file.suffix in {".json", ".jsonl"}):
        yield from islice((sample for sample in veriglot.read(path) if _is_new(sample, seen)), limit)


def _is_new(sample: Sample, seen: set[str]) -> bool:
    group = str(sample.meta.get("group") or sample.id)
    if group in seen or share_of(group) >= HELD_OUT:
        return False
    seen.add(group)
    return True


def units(samples: Iterable[Sample], detector: Detector) -> tuple[list[Unit], list[Unit], list[Unit]]:
    """Facts by their words, sentences by their words, and sentences by their facts' greatest words."""
    by_fact: list[Unit] = []
    by_word: list[Unit] = []
    by_facts: list[Unit] = []
    for sample in samples:
        (prediction,) = detector.predict([sample])
        labels = reference(sample)
        if labels is None or not prediction.words:
            continue
        length = len(sample.response)
        words = ranges(prediction.words)
        confidence = np.array([word.confidence for word in prediction.words])
        by_character = probabilities(length, words, confidence)
        found = facts(sample.response, prediction.language)
        for fact, wrong in zip(found, fact_marks(found, length, labels.marks.spans), strict=True):
            inside = np.concatenate([confidence[_within(words, *part)] for part in fact.parts])
            if len(inside):
                by_fact.append(Unit(inside, bool(wrong)))
        bounds = np.array(sentences(sample.response, prediction.language), dtype=np.int32).reshape(-1, 2)
        for (start, end), wrong in zip(bounds.tolist(), marked(bounds, labels.marks.spans), strict=True):
            inside = confidence[_within(words, start, end)]
            parts = [fact.parts for fact in found if start <= fact.start < end]
            if len(inside) and parts:
                greatest = [max(by_character[low:high].max() for low, high in each) for each in parts]
                by_word.append(Unit(inside, bool(wrong)))
                by_facts.append(Unit(np.array(greatest), bool(wrong)))
    return by_fact, by_word, by_facts


def _within(words: NDArray[np.int32], start: int, end: int) -> NDArray[np.bool_]:
    return (words[:, 0] >= start) & (words[:, 1] <= end)


def row(name: str, rule: Rule, found: list[Unit], threshold: float) -> dict[str, Any]:
    """The figures of one rule."""
    scores = np.clip([rule(unit.scores) for unit in found], 0.0, 1.0)
    wrong = np.array([unit.unsupported for unit in found])
    place = histogram.bin_of(scores)
    bad, good = (np.bincount(place[side], minlength=histogram.BINS).astype(float) for side in (wrong, ~wrong))
    sums = np.bincount(place, weights=scores, minlength=histogram.BINS).astype(float)
    over = scores >= threshold
    safe = np.clip(scores, 1e-4, 1 - 1e-4)
    return {
        "rule": name,
        "AUROC": float(histogram.auroc(bad, good)),
        "AP": float(histogram.average_precision(bad, good)),
        "AP, supported": float(histogram.average_precision(good[::-1], bad[::-1])),
        "F1": 2.0 * float((over & wrong).sum()) / float(over.sum() + wrong.sum()),
        "log loss": float(-np.mean(np.log(np.where(wrong, safe, 1 - safe)))),
        "Brier": float(np.mean((scores - wrong) ** 2)),
        "ECE": float(histogram.ece_equal_width(bad, good, sums)),
    }


def main() -> None:
    """Read the options, judge, print a table for facts and two for sentences of each set that has both labels."""
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds mfava/silver and wice")
    parser.add_argument("--detector", default="grounding", help="name of a detector with words (default: grounding)")
    parser.add_argument("--limit", type=int, default=40, help="most texts of a file (default: 40)")
    options = parser.parse_args()
    detector = load_detector(options.detector, words=True)
    sets = (("mFAVA silver", "mfava/silver", options.limit), ("WiCE", "wice/non_supported_tokens", 100 * options.limit))
    for title, folder, limit in sets:
        parts = units(held_out(options.data / folder, limit), detector)
        for what, found in zip(("facts", "sentences, by words", "sentences, by facts"), parts, strict=True):
            if len({unit.unsupported for unit in found}) < 2:  # every sentence of WiCE's file holds an unsupported word
                continue
            rows = [row(name, rule, found, detector.threshold) for name, rule in RULES.items()]
            share = np.mean([unit.unsupported for unit in found])
            notes = [f"{len(found):,} units, {100 * share:.1f}% unsupported by the labels; {detector.signature}"]
            show(f"{title}: {what}", rows, as_json=options.json, notes=notes)


if __name__ == "__main__":
    main()
