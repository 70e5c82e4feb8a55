"""Spans laid onto human translations: answers of XQuAD, from the English paragraph to that of the other language.

    python benchmarks/projection.py --data ../shared/data/xquad

The paragraphs are professional translations of each other, and every question's answer is marked in all of them. The
mark in the English paragraph is projected (`veriglot.datasets.translation.project`) onto the other one and held against
the mark there: `exact` is the share that comes back to the code point, `F1` the mean overlap in code points (0 where no
place was found), `lost` the share without any place. Beside them, what `veriglot dataset translate` would keep at its
threshold by alignment alone: `under` is the share below it, `F1 kept` the mean overlap of the others. Intervals draw
paragraphs again, 1,000 times.

The aligner's numbers were chosen on every second article of the file, from the first (`--half chosen`; `--grid` shows
each number beside others, there alone); figures are of the rest.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything that starts threads

import numpy as np

import figures
from veriglot.datasets.translation.projection import AlignmentWeights, LexicalAligner, VectorAligner, project, side_of
from veriglot.encoders.base import load_encoder
from veriglot.records.languages import get_language
from veriglot.text.segmentation import sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.datasets.translation.projection import Aligner, Side
    from veriglot.encoders.base import Encoder

THRESHOLD = 0.5  # that of `veriglot dataset translate`
DRAWS = 1000
GRID: dict[str, tuple[float, ...]] = {
    "temperature": (0.05, 0.07, 0.1, 0.15),
    "form": (0.0, 0.5, 0.7, 1.0),
    "distance": (0.0, 0.3, 0.6, 1.0),
    "spread": (0.1, 0.2, 0.4),
    "reach": (4.0, 8.0, 15.0),
    "rounds": (0, 1, 2, 3),
}


class Pair(NamedTuple):
    """Two texts that are translations of each other, and ranges that are: in English, and in the other language."""

    paragraph: int
    source: Side
    target: Side
    marks: tuple[tuple[tuple[int, int], tuple[int, int]], ...]


def read_pairs(folder: Path, tag: str, *, half: str, unit: str, limit: int | None) -> list[Pair]:
    """The paragraphs of a language beside the English ones, or their sentences where there are as many in both."""
    ours, theirs = (_paragraphs(folder / f"xquad.{one}.json") for one in ("en", tag))
    full = get_language(tag).tag
    found = []
    for number, ((article, english), (_, other)) in enumerate(zip(ours, theirs, strict=True)):
        if (article % 2 == 0) != (half == "chosen"):
            continue
        answers = {one["id"]: _range(one, other["context"]) for one in other["qas"]}
        marks = tuple((_range(one, english["context"]), answers[one["id"]]) for one in english["qas"])
        whole = Pair(number, side_of(english["context"], "en"), side_of(other["context"], full), tuple(set(marks)))
        found += [whole] if unit == "paragraph" else _by_sentence(whole)
        if limit and len({pair.paragraph for pair in found}) >= limit:
            break
    return found


def _paragraphs(path: Path) -> list[tuple[int, dict[str, Any]]]:
    articles = json.loads(path.read_text("utf-8"))["data"]
    return [(number, one) for number, article in enumerate(articles) for one in article["paragraphs"]]


def _range(question: dict[str, Any], context: str) -> tuple[int, int]:
    answer = question["answers"][0]
    start, end = answer["answer_start"], answer["answer_start"] + len(answer["text"])
    if context[start:end] != answer["text"]:
        raise ValueError(f"{question['id']}: the answer does not stand where it says")
    return start, end


def _by_sentence(pair: Pair) -> list[Pair]:
    ours = sentences(pair.source.text, pair.source.tag)
    theirs = sentences(pair.target.text, pair.target.tag)
    if len(ours) != len(theirs):
        return []
    found = []
    for (a, b), (c, d) in zip(ours, theirs, strict=True):
        marks = tuple(
            ((mark[0] - a, mark[1] - a), (gold[0] - c, gold[1] - c))
            for mark, gold in pair.marks
            if a <= mark[0] and mark[1] <= b and c <= gold[0] and gold[1] <= d
        )
        if marks:
            source = side_of(pair.source.text[a:b], pair.source.tag)
            found.append(Pair(pair.paragraph, source, side_of(pair.target.text[c:d], pair.target.tag), marks))
    return found


class Came(NamedTuple):
    """What became of marks, one row a mark: paragraph, exact, F1, without a place, below the threshold."""

    rows: NDArray[np.float64]

    def figures(self) -> dict[str, float]:
        """The means."""
        _, exact, f1, lost, under = self.rows.T
        kept = f1[under == 0]
        return {
            "exact": float(exact.mean()),
            "F1": float(f1.mean()),
            "lost": float(lost.mean()),
            "under": float(under.mean()),
            "F1 kept": float(kept.mean()) if len(kept) else 0.0,
        }

    def intervals(self, seed: int = 1) -> dict[str, str]:
        """95% intervals of `exact` and `F1` over paragraphs."""
        generator = np.random.default_rng(seed)
        names = np.unique(self.rows[:, 0])
        by_name = [self.rows[self.rows[:, 0] == name] for name in names]
        sums = np.array([[len(rows), rows[:, 1].sum(), rows[:, 2].sum()] for rows in by_name])
        drawn = sums[generator.integers(0, len(names), (DRAWS, len(names)))].sum(1)
        ends = np.percentile(drawn[:, 1:] / drawn[:, :1], [2.5, 97.5], axis=0)
        return {name: f"{ends[0, n]:.2f}-{ends[1, n]:.2f}" for n, name in enumerate(("exact", "F1"))}


def came(pairs: Sequence[Pair], aligner: Aligner) -> Came:
    """Project every mark."""
    rows = []
    for pair in pairs:
        aligned = aligner.align(pair.source, pair.target)
        for mark, gold in pair.marks:
            found = project(*aligned, mark)
            parts, quality = found or ((), 0.0)
            rows.append((pair.paragraph, parts == (gold,), overlap(parts, gold), found is None, quality < THRESHOLD))
    return Came(np.array(rows, np.float64))


def overlap(parts: Sequence[tuple[int, int]], gold: tuple[int, int]) -> float:
    """F1 in code points."""
    ours, theirs = {place for part in parts for place in range(*part)}, set(range(*gold))
    return 2 * len(ours & theirs) / (len(ours) + len(theirs))


def compared(data: dict[str, list[Pair]], aligners: dict[str, Aligner], encoder: Encoder) -> list[dict[str, Any]]:
    """A row per aligner and language, then the means over the languages that the encoder is good in, and the rest."""
    rows: list[dict[str, Any]] = []
    for name, aligner in aligners.items():
        groups: dict[str, list[Came]] = {"measured": [], "weak": []}
        for tag, pairs in data.items():
            found = came(pairs, aligner)
            groups[encoder.strength(get_language(tag).tag)].append(found)
            rows.append(_row(name, tag, len(found.rows), found.figures(), found.intervals()))
        for group, all_ in groups.items():
            if all_:
                figured = [one.figures() for one in all_]
                means = {key: float(np.mean([one[key] for one in figured])) for key in figured[0]}
                rows.append(_row(name, group, sum(len(one.rows) for one in all_), means, {"exact": "", "F1": ""}))
    return rows


def _row(name: str, what: str, spans: int, means: dict[str, float], ends: dict[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {"aligner": name, "language": what, "spans": spans}
    for key, value in means.items():
        row[key] = round(value, 3)
        if key in ends:
            row[f"{key}, 95%"] = ends[key]
    return row


def grid(data: dict[str, list[Pair]], encoder: Encoder) -> list[dict[str, Any]]:
    """Each number beside others, the rest as they are: means over all languages."""
    rows = []
    for name, values in GRID.items():
        for value in values:
            weighing = AlignmentWeights()._replace(**{name: value})  # type: ignore[arg-type]
            means = [came(pairs, VectorAligner(encoder, weighing)).figures() for pairs in data.values()]
            row = {key: round(float(np.mean([one[key] for one in means])), 3) for key in means[0]}
            rows.append(
                {"number": name, "value": value, "chosen": "*" if weighing == AlignmentWeights() else "", **row}
            )
    return rows


def main() -> None:
    """Read the arguments and print the tables."""
    parser = figures.command_line(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with xquad.LANGUAGE.json")
    parser.add_argument(
        "--languages", nargs="+", default=["ar", "de", "el", "es", "hi", "ro", "ru", "th", "tr", "vi", "zh"]
    )
    parser.add_argument("--half", choices=["chosen", "reported"], default="reported", help="odd articles are reported")
    parser.add_argument("--unit", choices=["paragraph", "sentence"], default="paragraph", help="what is aligned")
    parser.add_argument("--encoder", default="use-multilingual", help="name of the encoder (default: %(default)s)")
    parser.add_argument("--limit", type=int, help="the first paragraphs alone")
    parser.add_argument("--grid", action="store_true", help="the aligner's numbers beside others, on the chosen half")
    options = parser.parse_args()
    started = time.process_time()
    half = "chosen" if options.grid else options.half
    data = {
        tag: read_pairs(options.data, tag, half=half, unit=options.unit, limit=options.limit)
        for tag in options.languages
    }
    encoder = load_encoder(options.encoder)
    if options.grid:
        rows = grid(data, encoder)
    else:
        aligners: dict[str, Aligner] = {
            "lexical": LexicalAligner(),
            "vectors, no forms": VectorAligner(encoder, AlignmentWeights(form=0.0)),
            "vectors": VectorAligner(encoder),
        }
        rows = compared(data, aligners, encoder)
    notes = [
        f"the {half} half, by {options.unit}; threshold {THRESHOLD}",
        f"{time.process_time() - started:.0f} s of CPU",
    ]
    figures.show("Answers of XQuAD, projected from English", rows, as_json=options.json, notes=notes)


if __name__ == "__main__":
    main()
