"""Response in one language, evidence in another: how well detectors tell right from wrong, over all pairs of XQuAD.

    python benchmarks/cross_lingual.py --data ../shared/data --detector reader grounding

Question and response stand in language A, the paragraph in language B, for all 12 x 11 pairs and the 12 with A = B.
Right are the answer alone (`bare`), with words of its question (`said`), and the sentence of A's paragraph that holds
it. Wrong are, of the same kind (number, name, word), another answer that the paragraph does not hold (`far`) or that it
holds as the answer to something else (`near`); the sentence with its answer exchanged for one that the paragraph does
not hold (`exchanged`); and a sentence of the same article that another paragraph supports (`elsewhere`).

Every pair draws its own questions, one response each. A figure is the area under the ROC curve within a pair, and the
mean of these; the interval draws paragraphs again. Only articles with a share below 0.3 are used: `reader` is trained
on the others (see parallel_questions.py). `grounding` 1.0 was trained on all of XQuAD, with evidence in the response's
language, so its figures of same-language pairs are of texts that it has seen.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from figures import command_line, machine, show
from parallel_questions import LANGUAGES, PIVOT, Item, drawn, read_questions
from ranking import as_number, auc, draws_of, mean_of, shown
from veriglot.detectors.registry import load_detector
from veriglot.encoders.base import measured_in, strength_among

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from veriglot.records import Detector, Prediction

    Array = NDArray[np.float64]

ENCODER = "use-multilingual"  # of the table's main column; --strong takes others
STRONG = tuple(tag for tag in LANGUAGES if strength_among(measured_in(ENCODER), tag) == "measured")

# What is told apart, the main figure first: name to which responses take part.
CONTRASTS: dict[str, Callable[[Item], bool]] = {
    "all together": lambda _: True,
    "all but near": lambda item: item.wrong != "near",
    "answers": lambda item: item.form != "sentence",
    "bare answers, far": lambda item: item.form == "bare" and item.wrong in {None, "far"},
    "bare answers, near": lambda item: item.form == "bare" and item.wrong in {None, "near"},
    "said answers, far": lambda item: item.form == "said" and item.wrong in {None, "far"},
    "said answers, near": lambda item: item.form == "said" and item.wrong in {None, "near"},
    "sentences": lambda item: item.form == "sentence",
    "sentences, exchanged": lambda item: item.form == "sentence" and item.wrong in {None, "exchanged"},
    "sentences, elsewhere": lambda item: item.form == "sentence" and item.wrong in {None, "elsewhere"},
    "numbers": lambda item: item.kind == "number",
    "names": lambda item: item.kind == "name",
    "words": lambda item: item.kind == "word",
}
MAIN = "all together"
SCORES = ("score", "best word")
Pair = tuple[str, str]


@dataclass(frozen=True)
class Judged:
    """What a detector said of the responses of each pair: scores by name, what is marked, and the time that it took."""

    name: str
    scores: dict[str, dict[Pair, Array]]
    marked: dict[Pair, list[bool]]
    statuses: Counter[str]
    seconds: float


def best_word(prediction: Prediction) -> float:
    """The confidence of the most suspect word; NaN where the detector gives none."""
    words = prediction.words
    return max((word.confidence for word in words), default=0.0) if words is not None else float("nan")


def judge(detector: Detector, pairs: dict[Pair, list[Item]]) -> Judged:
    """Ask a detector about every pair, evidence language by evidence language."""
    scores: dict[str, dict[Pair, Array]] = {name: {} for name in SCORES}
    statuses: Counter[str] = Counter()
    marked = {}
    start = time.process_time()
    for pair in sorted(pairs, key=lambda pair: pair[1]):
        predictions = detector.predict([item.sample for item in pairs[pair]])
        statuses.update(str(p.status) for p in predictions)
        given = [float("nan") if p.score is None else p.score for p in predictions]
        scores["score"][pair] = np.array(given)
        marked[pair] = [bool(p.spans) for p in predictions]
        scores["best word"][pair] = np.array([best_word(p) for p in predictions])
        if pair[0] == max(LANGUAGES):
            print(f"{detector.name}: evidence in {pair[1]} judged", file=sys.stderr, flush=True)
    return Judged(detector.name, scores, marked, statuses, time.process_time() - start)


def judge_by(name: str, pairs: dict[Pair, list[Item]], jobs: int) -> Judged:
    """`judge`, with the pairs dealt out to processes, each with a detector of its own."""
    if jobs == 1:
        return judge(load_detector(name, words=True), pairs)
    keys = sorted(pairs, key=lambda pair: pair[1])
    parts = [{key: pairs[key] for key in keys[nth::jobs]} for nth in range(jobs)]
    with ProcessPoolExecutor(jobs) as pool:
        found = list(pool.map(judge_by, [name] * jobs, parts, [1] * jobs))
    scores = {kind: {key: value for one in found for key, value in one.scores[kind].items()} for kind in SCORES}
    marked = {key: value for one in found for key, value in one.marked.items()}
    statuses = sum((one.statuses for one in found), Counter[str]())
    return Judged(found[0].name, scores, marked, statuses, sum(one.seconds for one in found))


def areas(
    pairs: dict[Pair, list[Item]], scores: dict[Pair, Array], draws: dict[str, Array], contrast: str
) -> dict[Pair, Array]:
    """The area of every pair, draw by draw."""
    found = {}
    for pair, items in pairs.items():
        chosen = [i for i, item in enumerate(items) if CONTRASTS[contrast](item)]
        wrong = np.array([items[i].wrong is not None for i in chosen], bool)
        weight = np.stack([draws[items[i].place] for i in chosen], axis=1)
        found[pair] = auc(scores[pair][chosen], wrong, weight)
    return found


def means(cells: dict[Pair, Array], strong: Sequence[str]) -> dict[str, Array]:
    """The means that a reader asks for; those that no pair belongs to are left out."""
    among = {pair for pair in cells if pair[0] in strong and pair[1] in strong}
    groups = {
        "cross, encoder's": [pair for pair in among if pair[0] != pair[1]],
        "cross, all": [pair for pair in cells if pair[0] != pair[1]],
        "same, encoder's": [pair for pair in among if pair[0] == pair[1]],
        "same, all": [pair for pair in cells if pair[0] == pair[1]],
    }
    return {name: mean_of([cells[pair] for pair in sorted(group)]) for name, group in groups.items() if group}


def summary(
    judged: Judged, pairs: dict[Pair, list[Item]], draws: dict[str, Array], strong: Sequence[str]
) -> dict[str, dict[str, dict[str, Array]]]:
    """Score, contrast and group to the mean area, draw by draw."""
    return {
        name: {contrast: means(areas(pairs, judged.scores[name], draws, contrast), strong) for contrast in CONTRASTS}
        for name in SCORES
    }


def differences(found: list[dict[str, dict[str, dict[str, Array]]]]) -> dict[str, dict[str, dict[str, Array]]]:
    """First detector minus second, draw by draw: the same paragraphs are drawn for both."""
    one, other = found[:2]
    return {
        name: {c: {group: one[name][c][group] - other[name][c][group] for group in one[name][c]} for c in one[name]}
        for name in one
    }


def summary_rows(found: dict[str, dict[str, Array]]) -> list[dict[str, Any]]:
    """One row a contrast."""
    return [{"told apart": contrast, **{g: shown(v) for g, v in groups.items()}} for contrast, groups in found.items()]


def cell_rows(cells: dict[Pair, Array], languages: Sequence[str]) -> list[dict[str, Any]]:
    """The table of pairs: a row for each language of the response, a column for each of the evidence."""
    rows = []
    for response in languages:
        row = {"response": response}
        row |= {evidence: f"{cells[response, evidence][0]:.3f}" for evidence in languages}
        away = mean_of(
            [cells[response, evidence] for evidence in languages if evidence != response] or [np.full(1, np.nan)]
        )
        rows.append(row | {"cross": f"{away[0]:.3f}"})
    return rows


def notes_of(judged: Judged, pairs: dict[Pair, list[Item]]) -> list[str]:
    """What a reader needs to judge a table."""
    count = sum(len(items) for items in pairs.values())
    unscored = {status: n for status, n in judged.statuses.items() if status != "scored"}
    said = ", ".join(f"{status} {n}" for status, n in sorted(unscored.items())) or "none"
    across = [
        (item.wrong is not None, marked)
        for pair, items in pairs.items()
        if pair[0] != pair[1]
        for item, marked in zip(items, judged.marked[pair], strict=True)
    ]
    right, wrong = ([marked for is_wrong, marked in across if is_wrong == side] for side in (False, True))
    marks = f"{sum(right)} of {len(right)} right responses have a mark, {sum(wrong)} of {len(wrong)} wrong ones"
    return [
        f"across languages {marks}",
        f"{count:,} responses over {len(pairs)} pairs; not scored, and so in no figure: {said}",
        f"{1000 * judged.seconds / max(count, 1):.1f} CPU ms a response, encoding included",
    ]


def report(judged: list[Judged], pairs: dict[Pair, list[Item]], options: argparse.Namespace) -> None:
    """Every table, or one JSON object."""
    draws = draws_of([item.place for items in pairs.values() for item in items], options.resamples, options.seed)
    found = [summary(one, pairs, draws, options.strong) for one in judged]
    if options.json:
        print(json.dumps(as_json(judged, found, pairs, draws), ensure_ascii=False))
        return
    for one, means_ in zip(judged, found, strict=True):
        for name in SCORES:
            title = f"{one.name}, {name}: mean AUC over pairs, with 95% interval over paragraphs"
            show(title, summary_rows(means_[name]), as_json=False, notes=notes_of(one, pairs))
            for contrast in options.tables:
                cells = areas(pairs, one.scores[name], {k: v[:1] for k, v in draws.items()}, contrast)
                title = f"{one.name}, {name}, {contrast}: AUC by language of response (rows) and evidence (columns)"
                show(title, cell_rows(cells, options.languages), as_json=False, notes=[])
    if len(judged) > 1:
        for name, table in differences(found).items():
            title = f"{judged[0].name} minus {judged[1].name}, {name}: difference of mean AUC, paired"
            show(title, summary_rows(table), as_json=False, notes=["the same responses and the same draws for both"])


def as_json(
    judged: list[Judged],
    found: list[dict[str, dict[str, dict[str, Array]]]],
    pairs: dict[Pair, list[Item]],
    draws: dict[str, Array],
) -> dict[str, Any]:
    """Everything as numbers."""
    first = {key: value[:1] for key, value in draws.items()}
    detectors = {}
    for one, means_ in zip(judged, found, strict=True):
        detectors[one.name] = {
            name: {
                contrast: {
                    "means": {group: as_number(values) for group, values in means_[name][contrast].items()},
                    "pairs": {
                        f"{a}>{b}": as_number(cell)["value"]
                        for (a, b), cell in areas(pairs, one.scores[name], first, contrast).items()
                    },
                }
                for contrast in CONTRASTS
            }
            for name in SCORES
        } | {"statuses": dict(one.statuses), "cpu_seconds": one.seconds}
    return {
        "title": "cross-lingual, XQuAD test articles",
        "responses": sum(len(items) for items in pairs.values()),
        "detectors": detectors,
        "machine": machine(),
    }


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = command_line(__doc__, draws=True)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds xquad")
    parser.add_argument(
        "--detector", nargs="+", default=["grounding"], help="names; the first is held against the second"
    )
    parser.add_argument("--languages", nargs="+", default=list(LANGUAGES), choices=LANGUAGES)
    parser.add_argument("--strong", nargs="+", default=list(STRONG), choices=LANGUAGES, help="the encoder's languages")
    parser.add_argument("--limit", type=int, default=60, help="responses a pair; a round of all kinds is 12")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--tables", nargs="*", default=[MAIN], choices=list(CONTRASTS), help="which to show by pair")
    return parser.parse_args()


def main() -> None:
    """Draw, judge, print."""
    options = arguments()
    questions = read_questions(options.data / "xquad", options.seed)
    articles = {question.article for question in questions}
    print(f"{len(questions)} questions of {len(articles)} test articles ({PIVOT} decides)", file=sys.stderr, flush=True)
    pairs = {
        (a, b): drawn(questions, a, b, options.limit, options.seed)
        for a in options.languages
        for b in options.languages
    }
    judged = [judge_by(name, pairs, options.jobs) for name in options.detector]
    report(judged, pairs, options)


if __name__ == "__main__":
    main()
