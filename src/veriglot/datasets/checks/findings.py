"""Findings of a check as records, with counts and examples, and the tally that collects them."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Literal

import msgspec

from veriglot.plugins import packaged
from veriglot.records.settings import Record, StrictRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CheckedFile", "Example", "Finding", "LabelSet", "Tally", "checks", "checks_version"]


_Level = Literal["error", "warning", "note"]
_CleaningAction = Literal["leave out", "repair", "keep"]


class _Check(StrictRecord):
    """One thing that is looked for."""

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
    return packaged(__package__, "catalogue.toml", _Catalogue)


def checks() -> dict[str, _Check]:
    """Every check by name, in the order of the report."""
    return _catalogue().checks


def checks_version() -> str:
    """Version of the checks, such as `checks@1`."""
    return f"checks@{_catalogue().version}"


class Example(Record, omit_defaults=True):
    """One place where something was found.

    Attributes:
        file: the file.
        id: of the sample; None where there is none.
        line: line or row of the file, where that is known.
        detail: what is wrong there.
        text: the text concerned, cut to 160 code points.
    """

    file: str
    detail: str
    id: str | None = None
    line: int | None = None
    text: str | None = None


class Finding(Record):
    """What one check found.

    Attributes:
        check: its name.
        level: how bad it is.
        unit: what `count` counts.
        how: `count` or `estimate`.
        count: how many.
        of: of how many of that unit that could have it.
        files: count by file, most first.
        of_files: what `of` is in each of these files.
        layers: count and `of` by layer or annotator, where the check tells them.
        kinds: count by kind, where the check tells kinds; a place may be of several.
        examples: the first few, of different files where there are such.
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
        split: the split that it belongs to; None where none is known or its rows say it.
        languages: samples by language; the key is empty where none is stated.
        samples: samples read.
        unreadable: rows that are none.
        queries: samples without response and label: questions to be answered.
        labelled: samples with spans, or said to have none.
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
        annotator: who.
        kind: `human` or `model`.
        taxonomy: of the spans.
        language: BCP 47 tag; empty where none is stated.
        responses: labelled responses.
        clean: those without a span.
        words, marked_words: words of the responses, and those of them in any span.
        types: spans by type; the key is empty where a span has none.
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


# Where findings are counted: by check, file and kind, with a few examples of different files.


_GLUED = 0.1  # share of glued spans from which a file's seams are glue; below, they may be the estimate's own errors
_EXAMPLES = 8  # kept of each check
_A_FILE = 2  # of these from one file, while other files have some


@dataclass
class _Sums:
    """What is counted of one check: places that have it and that could, by file and layer."""

    faults: Counter[str] = field(default_factory=Counter)
    of: Counter[str] = field(default_factory=Counter)
    layers: Counter[str] = field(default_factory=Counter)
    of_layers: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[Example]] = field(default_factory=lambda: defaultdict(list))

    def share(self, file: str) -> float:
        return self.faults[file] / max(1, self.of[file])


class Tally:
    """Counts of what was looked at and of what was found; memory grows with checks and files, not with rows."""

    def __init__(self) -> None:
        self._sums = defaultdict[str, _Sums](_Sums)

    def looked(self, check: str, file: str, count: int = 1, *, layer: str | None = None) -> None:
        """So many more could have what the check looks for."""
        self._sums[check].of[file] += count
        if layer is not None:
            self._sums[check].of_layers[layer] += count

    def add(
        self, check: str, example: Example, count: int = 1, *, kind: str | None = None, layer: str | None = None
    ) -> None:
        """So many more have it, of a kind and in a layer; the first few examples of each file are kept."""
        sums = self._sums[check]
        sums.faults[example.file] += count
        if kind is not None:
            sums.kinds[kind] += count
        if layer is not None:
            sums.layers[layer] += count
        if len(sums.examples[example.file]) < _EXAMPLES:
            sums.examples[example.file].append(example)

    def add_kinds(self, check: str, kinds: Mapping[str, int]) -> None:
        """Count kinds without counting a place: of a place that is of several, or of none."""
        self._sums[check].kinds.update(kinds)

    def looked_at(self, check: str) -> int:
        """How many could have it."""
        return self._sums[check].of.total()

    def is_glued(self, file: str) -> bool:
        """Whether the seams of a file are glue, and not errors of the estimate."""
        return self._sums["glued_span"].share(file) >= _GLUED

    def findings(self) -> tuple[Finding, ...]:
        """What was found, in the order of the catalogue."""
        return tuple(_finding(name, self._sums[name]) for name in checks() if self._sums[name].faults.total())


def _finding(name: str, sums: _Sums) -> Finding:
    check = checks()[name]
    few = name == "glued_span" and all(sums.share(file) < _GLUED for file in sums.faults)
    by_file = {file: count for file, count in sums.faults.most_common() if count}
    first = [example for file in by_file for example in sums.examples[file][:_A_FILE]]
    further = [example for file in by_file for example in sums.examples[file][_A_FILE:]]
    return Finding(
        check=name,
        level="note" if few else check.level,  # as many as sound data seem to have
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
