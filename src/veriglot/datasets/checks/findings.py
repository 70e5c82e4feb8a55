"""Findings of a check as records, with counts and examples, and the tally that collects them."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Literal

import msgspec

from veriglot.plugins import read_package_data
from veriglot.records.settings import Record, StrictRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CheckedFile", "Example", "Finding", "LabelSet", "Tally", "checks", "checks_version"]


_Level = Literal["error", "warning", "note"]
_CleaningAction = Literal["leave out", "repair", "keep"]


class _Check(StrictRecord):
    """One check of the catalogue."""

    title: str
    level: _Level
    unit: str
    how: Literal["count", "estimate"]
    cleaning: _CleaningAction
    meaning: str
    among: str = ""


class _Catalogue(StrictRecord):
    version: str
    checks: dict[str, _Check]


@cache
def _catalogue() -> _Catalogue:
    return read_package_data(__package__, "catalogue.toml", _Catalogue)


def checks() -> dict[str, _Check]:
    """Every check by name, in the order of the report."""
    return _catalogue().checks


def checks_version() -> str:
    """Version of the checks, such as `checks@1`."""
    return f"checks@{_catalogue().version}"


class Example(Record, omit_defaults=True):
    """An example of a finding.

    Attributes:
        file: the file.
        id: of the sample; None if it has none.
        line: line or row of the file, if known.
        detail: the problem.
        text: the text, cut to 160 code points.
    """

    file: str
    detail: str
    id: str | None = None
    line: int | None = None
    text: str | None = None


class Finding(Record):
    """The result of one check.

    Attributes:
        check: its name.
        level: severity.
        unit: unit of `count`.
        how: `count` or `estimate`.
        count: number of units with the problem.
        of: number of units that could have it.
        files: count by file, most first.
        of_files: `of` for each of these files.
        layers: count and `of` by layer or annotator, if the check separates them.
        kinds: count by kind, if the check has kinds; a unit may be of several.
        examples: the first few, of different files if possible.
        cleaning: what a cleaned copy does about it.
    """

    check: str
    level: _Level
    unit: str
    how: str
    count: int
    of: int
    files: dict[str, int]
    of_files: dict[str, int]
    layers: dict[str, tuple[int, int]]
    kinds: dict[str, int]
    examples: tuple[Example, ...]
    cleaning: _CleaningAction


class CheckedFile(msgspec.Struct):
    """A file that was read.

    Attributes:
        path: the file.
        format: its format.
        split: the split of the file; None if it is unknown or depends on the row.
        languages: samples by language; the key is empty for samples without one.
        samples: samples read.
        unreadable: rows that are not samples.
        queries: samples without response and label, as questions for a model.
        labelled: samples with spans, or with a label that there are none.
    """

    path: str
    format: str = ""
    split: str | None = None
    languages: dict[str, int] = {}
    samples: int = 0
    unreadable: int = 0
    queries: int = 0
    labelled: int = 0


class LabelSet(msgspec.Struct):
    """The labels of one annotator (or one layer) in one language of a file.

    Attributes:
        file: the file.
        annotator: the annotator.
        kind: `human` or `model`.
        taxonomy: of the spans.
        language: BCP 47 tag; empty if unknown.
        responses: labelled responses.
        clean: those without a span.
        words, marked_words: words of the responses, and those of them in any span.
        types: spans by type; the key is empty for spans without one.
    """

    file: str
    annotator: str
    kind: str
    taxonomy: str
    language: str
    responses: int = 0
    clean: int = 0
    words: int = 0
    marked_words: int = 0
    types: dict[str, int] = {}


# Counts of findings: by check, file and kind, with a few examples from different files.


_GLUED = 0.1  # minimum share of glued spans in a file; a lower one may be errors of the estimate
_EXAMPLES = 8  # stored for each check
_A_FILE = 2  # maximum of these from one file, if other files have some


@dataclass
class _Sums:
    """Counts of one check: units with the problem and all units, by file and layer."""

    faults: Counter[str] = field(default_factory=Counter)
    of: Counter[str] = field(default_factory=Counter)
    layers: Counter[str] = field(default_factory=Counter)
    of_layers: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[Example]] = field(default_factory=lambda: defaultdict(list))

    def share(self, file: str) -> float:
        return self.faults[file] / max(1, self.of[file])


class Tally:
    """Counts of checked units and of findings; memory grows with checks and files, not with rows."""

    def __init__(self) -> None:
        self._sums = defaultdict[str, _Sums](_Sums)

    def looked(self, check: str, file: str, count: int = 1, *, layer: str | None = None) -> None:
        """Add units that could have the problem of a check."""
        self._sums[check].of[file] += count
        if layer is not None:
            self._sums[check].of_layers[layer] += count

    def add(
        self, check: str, example: Example, count: int = 1, *, kind: str | None = None, layer: str | None = None
    ) -> None:
        """Add units that have it, of a kind and in a layer; the first few examples of each file are stored."""
        sums = self._sums[check]
        sums.faults[example.file] += count
        if kind is not None:
            sums.kinds[kind] += count
        if layer is not None:
            sums.layers[layer] += count
        if len(sums.examples[example.file]) < _EXAMPLES:
            sums.examples[example.file].append(example)

    def add_kinds(self, check: str, kinds: Mapping[str, int]) -> None:
        """Count kinds without counting a unit: for a unit of several kinds, or of none."""
        self._sums[check].kinds.update(kinds)

    def looked_at(self, check: str) -> int:
        """Number of units that could have it."""
        return self._sums[check].of.total()

    def is_glued(self, file: str) -> bool:
        """Whether the joins in a file's spans are real, and not errors of the estimate."""
        return self._sums["glued_span"].share(file) >= _GLUED

    def findings(self) -> tuple[Finding, ...]:
        """All findings, in the order of the catalogue."""
        return tuple(_finding(name, self._sums[name]) for name in checks() if self._sums[name].faults.total())


def _finding(name: str, sums: _Sums) -> Finding:
    check = checks()[name]
    few = name == "glued_span" and all(sums.share(file) < _GLUED for file in sums.faults)
    by_file = {file: count for file, count in sums.faults.most_common() if count}
    first = [example for file in by_file for example in sums.examples[file][:_A_FILE]]
    further = [example for file in by_file for example in sums.examples[file][_A_FILE:]]
    return Finding(
        check=name,
        level="note" if few else check.level,  # as frequent as in data without the problem
        unit=check.unit,
        how=check.how,
        count=sums.faults.total(),
        of=max(sums.of.total(), sums.faults.total()),
        files=by_file,
        of_files={file: max(sums.of[file], count) for file, count in by_file.items()},
        layers={layer: (sums.layers[layer], of) for layer, of in sums.of_layers.items()},
        kinds={kind: count for kind, count in sums.kinds.most_common() if count},
        examples=tuple((first + further)[:_EXAMPLES]),
        cleaning=check.cleaning,
    )
