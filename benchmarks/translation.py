"""Translations against their sources: detectors beside TopNGram, the length ratio and chance, on people's labels.

    python benchmarks/translation.py --data ../shared/data --detector reader grounding

Four published sets, each cut in two by its source texts (see translation_data.py): every threshold is chosen on the
development half, every figure is of the test half, and intervals draw source texts again.

- zhou: which tokens of the translation are hallucinated, by system; a token is what white space parts, as in the data's
  paper, and as suspect as its most suspect word. Pooled F1 at the threshold that is best on the development half.
- guerreiro: area under the ROC curve and average precision for each pathology of a sentence.
- mlqe: Matthews correlation with critical errors, by pair, at the threshold that is best on the development half of
  that pair; and the area under the ROC curve. A critical error is wider than a hallucination: an omission is one too.
- mqm: area under the ROC curve for additions (what the translation says and the source does not).
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from figures import command_line, machine, show
from ranking import as_number, auc, draws_of, mean_of, shown
from thresholds import average_precision, best_cut, counted
from translation_data import (
    DEVELOPMENT,
    FOLDERS,
    GUERREIRO,
    MLQE,
    MQM,
    PATHOLOGIES,
    TEST,
    ZHOU,
    Group,
    groups,
    has_addition,
    is_critical,
    pathology,
    token_labels,
)
from translation_systems import Said, System, systems
from veriglot.formats.translations import HALLUCINATIONS
from veriglot.metrics.scores import f1, mcc

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from veriglot.records import Sample

    Array = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Row = dict[str, Any]
    Found = dict[str, list[Row]]  # title of a table to its rows

LIMITED = {MLQE, MQM}
KINDS = {
    "hallucinations": [name for name, flags in PATHOLOGIES.items() if set(flags) <= set(HALLUCINATIONS)],
    "others": [name for name, flags in PATHOLOGIES.items() if not set(flags) <= set(HALLUCINATIONS)],
}


class Tables:
    """Rows of figures, set by set, with what a reader needs to judge them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.rows: dict[str, Found] = {}
        self.notes: dict[str, list[str]] = {}

    def weight(self, sources: Sequence[str]) -> Array:
        """How often each draw holds each translation, shape (1 + resamples, n); the same for every system."""
        draws = draws_of(sources, self.options.resamples, self.options.seed)
        return np.stack([draws[source] for source in sources], axis=1)


def named(system: System, reading: str) -> Row:
    """The first column of a row."""
    return {"system": f"{system.name}, {reading}" if reading else system.name}


def correlation(counts: Array) -> Array:
    """Matthews correlation; 0 where everything or nothing is marked, as such a decision says nothing."""
    found = mcc(counts)
    return np.where(np.isnan(found), 0.0, found)


# zhou: tokens.


def tokens_of(group: Group, said: Said) -> tuple[Array, Flags, NDArray[np.int64]]:
    """Every token's confidence, label and translation; NaN where the translation was not scored.

    A token without a word (punctuation alone) has confidence 0. A system without words marks whole translations.
    """
    sentence = next(iter(said.values.values()))
    confidences, labels, owners = [], [], []
    for index, sample in enumerate(group.samples):
        words = said.words[index]
        for start, end, label in token_labels(sample):
            inside = [c for a, b, c in words if a < end and start < b] if words is not None else [sentence[index]]
            confidences.append(float("nan") if np.isnan(sentence[index]) else max(inside, default=0.0))
            labels.append(label)
            owners.append(index)
    return np.array(confidences), np.array(labels, bool), np.array(owners)


def zhou(system: System, found: list[Group], tables: Tables) -> Found:
    """F1 of the tokens by translation system, and of both together, and their area."""
    said = {(group.name, group.part): tokens_of(group, system.say(group.samples)) for group in found}
    names = sorted({group.name for group in found})
    row = named(system, "")
    for name in [*names, "both"]:
        chosen = names if name == "both" else [name]
        values, labels, _ = joined([said[n, DEVELOPMENT] for n in chosen])
        cut = best_cut(values, labels, f1)
        values, labels, owners = joined([said[n, TEST] for n in chosen])
        sources = [text for group in found if group.part == TEST and group.name in chosen for text in group.sources]
        weight = tables.weight(sources)[:, owners]
        known = ~np.isnan(values)
        row[name] = f1(counted(values[known] >= cut, labels[known], weight[:, known]))
    row["AUC of both"] = auc(values, labels, np.ones((1, len(values))))
    return {"F1 of hallucinated tokens": [row]}


def joined(parts: list[tuple[Array, Flags, NDArray[np.int64]]]) -> tuple[Array, Flags, NDArray[np.int64]]:
    """Several groups as one."""
    offsets = np.cumsum([0, *(int(owners.max()) + 1 for *_, owners in parts)])
    return (
        np.concatenate([values for values, *_ in parts]),
        np.concatenate([labels for _, labels, _ in parts]),
        np.concatenate([owners + offset for (*_, owners), offset in zip(parts, offsets, strict=False)]),
    )


# guerreiro: pathologies of sentences.


def guerreiro(system: System, found: list[Group], tables: Tables) -> Found:
    """Area and average precision for each pathology, on the test half."""
    (group,) = (group for group in found if group.part == TEST)
    said, weight = system.say(group.samples), tables.weight(group.sources)
    rows: Found = {title: [] for kind in KINDS for title in (f"AUC, {kind}", f"average precision, {kind}")}
    for reading, values in said.values.items():
        for kind, names in KINDS.items():
            areas, precisions = named(system, reading), named(system, reading)
            for name in names:
                kept = [i for i, sample in enumerate(group.samples) if pathology(sample, name) is not None]
                wrong = np.array([bool(pathology(group.samples[i], name)) for i in kept])
                areas[name] = auc(values[kept], wrong, weight[:, kept])
                precisions[name] = average_precision(values[kept], wrong, weight[:, kept])
            rows[f"AUC, {kind}"].append(areas)
            rows[f"average precision, {kind}"].append(precisions)
    return rows


# mlqe and mqm: sentences by language pair.


def by_pair(
    system: System, found: list[Group], tables: Tables, label: Callable[[Sample], bool], *, decide: bool
) -> Found:
    """Area by pair, and where `decide`, Matthews correlation at the development half's best threshold; and means."""
    said = {(group.name, group.part): system.say(group.samples) for group in found if decide or group.part == TEST}
    labels = {(g.name, g.part): np.array([label(s) for s in g.samples], bool) for g in found}
    titles = (["Matthews correlation"] if decide else []) + ["AUC"]
    rows: Found = {title: [] for title in titles}
    for reading in next(iter(said.values())).values:
        areas, decisions = named(system, reading), named(system, reading)
        for group in (group for group in found if group.part == TEST):
            values, wrong = said[group.name, TEST].values[reading], labels[group.name, TEST]
            weight = tables.weight(group.sources)
            areas[group.name] = auc(values, wrong, weight)
            if decide:
                development = group.name, DEVELOPMENT
                cut = best_cut(said[development].values[reading], labels[development], correlation)
                known = ~np.isnan(values)
                decisions[group.name] = correlation(counted(values[known] >= cut, wrong[known], weight[:, known]))
        for title, row in zip(titles, [decisions, areas] if decide else [areas], strict=True):
            row["mean"] = mean_of([value for value in row.values() if isinstance(value, np.ndarray)])
            rows[title].append(row)
    return rows


def mlqe(system: System, found: list[Group], tables: Tables) -> Found:
    """Critical errors."""
    return by_pair(system, found, tables, is_critical, decide=True)


def mqm(system: System, found: list[Group], tables: Tables) -> Found:
    """Additions."""
    return by_pair(system, found, tables, has_addition, decide=False)


SETS: dict[str, Callable[[System, list[Group], Tables], Found]] = {
    ZHOU: zhou,
    GUERREIRO: guerreiro,
    MLQE: mlqe,
    MQM: mqm,
}
TITLES = {
    ZHOU: "zhou, zh-en, hallucinated tokens",
    GUERREIRO: "guerreiro, de-en, pathologies",
    MLQE: "mlqe, critical errors",
    MQM: "mqm, additions",
}
LABELS: dict[str, Callable[[Sample], bool]] = {
    ZHOU: has_addition,
    GUERREIRO: lambda sample: bool(sample.annotations[0].units),
    MLQE: is_critical,
    MQM: has_addition,
}


def sizes(name: str, found: list[Group]) -> str:
    """How many translations each group has, and how many of them are labelled."""
    said = [f"{g.name} {g.part} {len(g.samples):,} ({sum(map(LABELS[name], g.samples)):,} positive)" for g in found]
    return "; ".join(said)


def run(options: argparse.Namespace) -> Tables:
    """Every set, every system."""
    tables, held = Tables(options), systems(options.detector, options.seed)
    for name in options.sets:
        found = groups(options.data, name, options.limit if name in LIMITED else None)
        tables.rows[name] = {}
        unscored: Counter[str] = Counter()
        for system in held:
            tuned = system.tuned([s for group in found if group.part == DEVELOPMENT for s in group.samples])
            for title, rows in SETS[name](tuned, found, tables).items():
                tables.rows[name].setdefault(title, []).extend(rows)
            system.count(tuned)
            unscored.update({f"{system.name} {status}": n for status, n in tuned.unscored.items()})
        said = ", ".join(f"{what} {n:,}" for what, n in sorted(unscored.items())) or "none"
        tables.notes[name] = [sizes(name, found), f"not scored, and so in no figure of that system: {said}"]
    speed = [f"{s.name} {1000 * s.seconds / max(s.judged, 1):.2f}" for s in held]
    tables.notes[options.sets[-1]].append(f"CPU ms a translation: {', '.join(speed)}")
    return tables


def printed(row: Row) -> Row:
    """A row for people, with as many digits as fit."""
    digits = 3 if len(row) <= 5 else 2
    return {key: shown(value, digits) if isinstance(value, np.ndarray) else value for key, value in row.items()}


def numbers(row: Row) -> Row:
    """A row for programs."""
    return {key: as_number(value) if isinstance(value, np.ndarray) else value for key, value in row.items()}


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = command_line(__doc__, draws=True)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds the mt_ sets")
    parser.add_argument("--detector", nargs="*", default=["grounding"], help="names of detectors")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(FOLDERS))
    parser.add_argument("--limit", type=int, default=1000, help="translations a pair and half, of mlqe and mqm")
    return parser.parse_args()


def main() -> None:
    """Read, judge, print."""
    options = arguments()
    tables = run(options)
    for name, each in tables.rows.items():
        if options.json:
            sets = {title: [numbers(row) for row in rows] for title, rows in each.items()}
            line = {"title": TITLES[name], "tables": sets, "notes": tables.notes[name], "machine": machine()}
            print(json.dumps(line, ensure_ascii=False))
            continue
        for title, rows in each.items():
            notes = tables.notes[name] if title == list(each)[-1] else []
            show(f"{TITLES[name]}: {title}", [printed(row) for row in rows], as_json=False, notes=notes)


if __name__ == "__main__":
    main()
