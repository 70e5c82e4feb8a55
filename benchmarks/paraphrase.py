"""Meaning against words: the right response shares few words with the evidence, and the wrong one shares most.

    python benchmarks/paraphrase.py --detector reader grounding

asks detectors about the pairs of examples/probes, in ten languages, and prints two accuracies. *Pairs*: in how many the
wrong response has the higher score, ties counted as half; chance is 0.5. *Decisions*: in how many responses something
is marked where it should be and nothing where it should not; chance is 0.5. Beside them stands `shared words`, the
share of a response's words that the evidence does not hold: what one gets without any meaning. It marks nothing by
itself, and so has pairs only. The interval draws stories again: pair 7 tells the same story in every language.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import veriglot
from cross_lingual import best_word
from figures import command_line, show
from ranking import draws_of, mean_of, shown
from veriglot.detectors.registry import load_detector
from veriglot.text.normalization import fold
from veriglot.text.segmentation import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.records import Sample

    Array = NDArray[np.float64]

PROBES = Path(__file__).resolve().parents[1] / "examples" / "probes" / "probes.jsonl"
WORDS = "shared words"
MEAN = "mean"


@dataclass(frozen=True)
class Pair:
    """A right and a wrong response to one evidence; `story` is the same in every language."""

    language: str
    story: str
    turn: str
    right: Sample
    wrong: Sample


@dataclass(frozen=True)
class Answers:
    """What one detector said of every pair; each array has shape (pairs, 2), the right response first.

    Attributes:
        name: of the detector.
        scores: of the response; NaN where it was not scored.
        best: the confidence of the most suspect word; NaN where there is none.
        marked: 1 where anything is marked, else 0; NaN where it was not scored.
    """

    name: str
    scores: Array
    best: Array
    marked: Array


def read_pairs(path: Path) -> list[Pair]:
    """The pairs of a file as `examples/probes/make_probes.py` writes it.

    Raises:
        ValueError: a sample has no partner.
    """
    samples = list(veriglot.read(path))
    pairs = []
    for right, wrong in zip(samples[::2], samples[1::2], strict=True):
        if right.meta["pair"] != wrong.meta["pair"] or not wrong.id.endswith("-wrong"):
            raise ValueError(f"{right.id} and {wrong.id} are no pair")
        story = re.sub(r".*-", "", str(right.meta["pair"]))
        pairs.append(Pair(right.language or "", story, str(right.meta["turn"]), right, wrong))
    return pairs


def asked(name: str, pairs: Sequence[Pair]) -> Answers:
    """What a detector says of both responses of every pair."""
    detector = load_detector(name, words=True)
    both = [sample for pair in pairs for sample in (pair.right, pair.wrong)]
    found = detector.predict(both)
    nan = float("nan")
    scores = np.array([nan if p.score is None else p.score for p in found])
    marked = np.array([nan if p.spans is None else float(len(p.spans) > 0) for p in found])
    best = np.array([best_word(p) for p in found])
    return Answers(detector.name, scores.reshape(-1, 2), best.reshape(-1, 2), marked.reshape(-1, 2))


def by_words(pairs: Sequence[Pair]) -> Answers:
    """The share of each response's words that do not stand in the evidence."""
    scores = np.array([[_foreign(sample) for sample in (pair.right, pair.wrong)] for pair in pairs])
    return Answers(WORDS, scores, np.full_like(scores, np.nan), np.full_like(scores, np.nan))


def _foreign(sample: Sample) -> float:
    evidence = _words(sample.evidence[0].text, sample.language)
    said = _words(sample.response, sample.language)
    return sum(word not in evidence for word in said) / max(len(said), 1)


def _words(text: str, language: str | None) -> list[str]:
    return [fold(text[start:end]) for start, end in words(text, language)]


def paired(scores: Array) -> Array:
    """1 where the wrong response of a pair has the higher score, half for a tie, shape (pairs,); NaN if not scored."""
    right, wrong = scores[:, 0], scores[:, 1]
    won = (wrong > right) + 0.5 * (wrong == right)
    return np.where(np.isnan(right) | np.isnan(wrong), np.nan, won)


def decided(marked: Array) -> Array:
    """The share of a pair's two responses that are decided rightly, shape (pairs,); NaN if not scored."""
    right: Array = ((1 - marked[:, 0]) + marked[:, 1]) / 2
    return right


def average(values: Array, weight: Array) -> Array:
    """The mean of values that are known, draw by draw; `weight` has shape (draws, pairs)."""
    known = ~np.isnan(values)
    total = weight[:, known].sum(axis=1)
    won = weight[:, known] @ values[known]
    mean: Array = np.divide(won, total, out=np.full(len(weight), np.nan), where=total > 0)
    return mean


def grouped(values: Array, groups: Sequence[str], weight: Array, *, mean: bool) -> dict[str, Array]:
    """The average of each group, draw by draw, and the mean of these where asked for."""
    found = {}
    for name in sorted(set(groups)):
        chosen = np.array([group == name for group in groups])
        found[name] = average(values[chosen], weight[:, chosen])
    return found | ({MEAN: mean_of(list(found.values()))} if mean else {})


def table(
    answers: Sequence[Answers], values: Sequence[Array], groups: Sequence[str], weight: Array, *, mean: bool = True
) -> list[dict[str, Any]]:
    """A row a group, a column a detector; with two detectors, their difference on the same draws."""
    columns = [grouped(one, groups, weight, mean=mean) for one in values]
    judged = [i for i, one in enumerate(answers) if one.name != WORDS]
    rows = []
    for group in columns[0]:
        count = len(groups) if group == MEAN else sum(g == group for g in groups)
        row: dict[str, Any] = {"": group, "pairs": count}
        row |= {one.name: shown(column[group]) for one, column in zip(answers, columns, strict=True)}
        if len(judged) > 1:
            row["first - second"] = shown(columns[judged[0]][group] - columns[judged[1]][group])
        rows.append(row)
    return rows


def main() -> None:
    """Ask, count, print."""
    parser = command_line(__doc__, draws=True)
    parser.add_argument("--detector", nargs="+", default=["grounding"], help="names; the second is taken off the first")
    parser.add_argument("--probes", type=Path, default=PROBES, help="another file of pairs")
    options = parser.parse_args()

    pairs = read_pairs(options.probes)
    draws = draws_of([pair.story for pair in pairs], options.resamples, options.seed)
    weight = np.stack([draws[pair.story] for pair in pairs], axis=1)
    detectors = [asked(name, pairs) for name in options.detector]
    everyone = [*detectors, by_words(pairs)]
    languages, turns = [pair.language for pair in pairs], [pair.turn for pair in pairs]
    missing = sum(int(np.isnan(one.scores).sum()) for one in detectors)
    notes = [f"{2 * len(pairs)} responses to {len(pairs)} pieces of evidence; not scored: {missing}"]

    def say(title: str, rows: list[dict[str, Any]]) -> None:
        show(title, rows, as_json=options.json, notes=notes)

    scores = [paired(one.scores) for one in everyone]
    say("pairs: the wrong response has the higher score", table(everyone, scores, languages, weight))
    best = [paired(one.best) for one in detectors]
    say("pairs: its most suspect word has the higher confidence", table(detectors, best, languages, weight))
    decisions = [decided(one.marked) for one in detectors]
    say("decisions: marked where it should be, and only there", table(detectors, decisions, languages, weight))
    alarms = [one.marked[:, 0] for one in detectors]
    say("right responses in which something is marked", table(detectors, alarms, languages, weight))
    say("pairs, by what the wrong response turns", table(everyone, scores, turns, weight, mean=False))


if __name__ == "__main__":
    main()
