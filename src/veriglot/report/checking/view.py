"""What checking found, in words and tables of text, the same for every kind of page."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import TYPE_CHECKING

from veriglot.build.checking import checks
from veriglot.records.languages import languages
from veriglot.report.bench.grids import Grid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from veriglot.build.checking import CheckReport, Example, Finding, LabelSet

__all__ = ["View", "plural"]

_LEVELS = ("error", "warning", "note")


def plural(count: int, unit: str) -> str:
    """A count with its unit: `1 row`, `2,000 rows`."""
    return f"{count:,} {unit}" + ("" if count == 1 else "s")


def percent(part: float, whole: float) -> str:
    """A share in percent; a dash where there is nothing to have a share of."""
    if not whole:
        return "–"
    return "under 0.1%" if 0 < part / whole < 0.0005 else f"{100 * part / whole:.1f}%"


class View:
    """A report with the names of its files cut to what tells them apart."""

    def __init__(self, report: CheckReport) -> None:
        self.report = report
        folders = [str(PurePath(one.path).parent) for one in report.files if one.path != "-"]
        try:
            self._common = os.path.commonpath(folders) if folders else ""
        except ValueError:  # relative and absolute paths, or other drives
            self._common = ""

    def file(self, path: str) -> str:
        """The short name of a file."""
        if not path or path == "-" or not self._common or not path.startswith(self._common):
            return {"": "all files", "-": "standard input"}.get(path, path)
        return str(PurePath(os.path.relpath(path, self._common)))

    def title(self) -> str:
        """The heading."""
        samples = sum(one.samples for one in self.report.files)
        return f"Check of {plural(len(self.report.files), 'file')} with {plural(samples, 'sample')}"

    def summary(self) -> str:
        """How much was found, by level."""
        levels = [found.level for found in self.report.findings]
        parts = [plural(levels.count(level), level) for level in _LEVELS if level in levels]
        found = f"{plural(len(levels), 'kind')} of finding ({', '.join(parts)})" if parts else "nothing found"
        passed, left = len(self.report.passed), len(self.report.not_looked_for)
        return f"{found}; {plural(passed, 'check')} found nothing, {left} not made"

    def headline(self, finding: Finding) -> str:
        """A finding in one line."""
        whole = f"{finding.count:,} of {plural(finding.of, finding.unit)}"
        about = "about " if finding.how == "estimate" else ""
        return f"{checks()[finding.check].title}: {about}{whole} ({percent(finding.count, finding.of)})"

    def where(self, finding: Finding, most: int = 4) -> str:
        """The files that have most of it by share, in one line."""
        shares = sorted(finding.files, key=lambda path: -finding.files[path] / max(1, finding.of_files[path]))
        named = [f"{self.file(p)} {percent(finding.files[p], finding.of_files[p])}" for p in shares[:most]]
        more = f" and {len(shares) - most:,} more files" if len(shares) > most else ""
        return ", ".join(named) + more

    def kinds(self, finding: Finding) -> str:
        """Counts by kind, in one line."""
        return _listed(finding.kinds)

    def layers(self, finding: Finding) -> str:
        """Counts by layer, in one line."""
        return ", ".join(
            f"{layer} {count:,} of {of:,} ({percent(count, of)})" for layer, (count, of) in finding.layers.items()
        )

    def example(self, example: Example) -> tuple[str, str, str]:
        """Where it is, what is wrong, and the text."""
        place = example.id or (f"line {example.line}" if example.line else "")
        return f"{self.file(example.file)} {place}".strip(), example.detail, example.text or ""

    def cleaning(self, finding: Finding) -> str:
        """What a cleaned copy does."""
        return {
            "leave out": "left out",
            "repair": "repaired, else left out",
            "keep": "kept",
        }[finding.cleaning]

    def grids(self) -> dict[str, Grid]:
        """Every table that has rows, by name."""
        found = (
            ("findings", self._findings()), ("agreement", self._agreement()), ("labels", self._labels()),
            ("types", self._types()), ("shared", self._shared()), ("leaks", self._leaks()), ("files", self._files()),
            ("skipped", self._skipped()), ("unread", self._unread()),
        )  # fmt: skip
        return {name: grid for name, grid in found if grid.rows}

    def _findings(self) -> Grid:
        rows = tuple(
            (
                checks()[one.check].title, one.level, f"{one.count:,}", f"{one.of:,}", one.unit,
                percent(one.count, one.of), one.how, self.cleaning(one), one.check,
            )
            for one in self.report.findings
        )  # fmt: skip
        heads = ("finding", "level", "count", "of", "unit", "share", "told by", "in a cleaned copy", "name")
        return Grid("Findings", heads, rows)

    def by_file(self, finding: Finding) -> Grid:
        """One finding, file by file."""
        rows = tuple(
            (self.file(path), f"{count:,}", f"{finding.of_files[path]:,}", percent(count, finding.of_files[path]))
            for path, count in finding.files.items()
        )
        return Grid(checks()[finding.check].title, ("file", "count", f"of {finding.unit}s", "share"), rows)

    def _agreement(self) -> Grid:
        rows = tuple(
            (
                _language(one.language), "people" if one.kind == "human" else "models", f"{one.texts:,}",
                f"{one.annotations:,}", f"{one.pairs:,}", percent(one.same, one.pairs), _number(one.overlap),
                _number(one.alpha), _number(one.same_type),
            )
            for one in self.report.agreement
        )  # fmt: skip
        heads = (
            "language", "by", "texts", "annotations", "pairs", "the same", "overlap (Dice)", "Krippendorff's alpha",
            "same type",
        )  # fmt: skip
        return Grid("Agreement of several annotations of one text, in code points", heads, rows)

    def _labels(self) -> Grid:
        rows = tuple(
            (
                self.file(one.file), f"{one.annotator} ({one.kind})", _language(one.language), f"{one.responses:,}",
                f"{one.clean:,}", percent(one.clean, one.responses), percent(one.marked_words, one.words),
                f"{sum(one.types.values()):,}",
            )
            for one in self.report.labels
        )  # fmt: skip
        heads = ("file", "labels", "language", "responses", "clean", "share clean", "words marked", "spans")
        return Grid("Labels", heads, rows)

    def _types(self) -> Grid:
        by_set: dict[str, list[LabelSet]] = {}
        for one in self.report.labels:
            by_set.setdefault(f"{one.annotator} ({one.kind}), {one.taxonomy}", []).append(one)
        names = sorted({type_ for one in self.report.labels for type_ in one.types})
        rows = []
        for name, parts in by_set.items():
            counts = {type_: sum(one.types.get(type_, 0) for one in parts) for type_ in names}
            total = sum(counts.values())
            cells = (f"{counts[type_]:,} ({percent(counts[type_], total)})" for type_ in names)
            rows.append((name, f"{total:,}", *cells))
        return Grid("Types of spans", ("labels", "spans", *(name or "no type" for name in names)), tuple(rows))

    def _shared(self) -> Grid:
        rows = tuple(
            (
                self.file(one.first), self.file(one.second), f"{one.shared:,}", f"{100 * one.share:.1f}%",
                "yes" if one.foreign else "no",
            )
            for one in self.report.shared
        )  # fmt: skip
        heads = ("file", "and", "passages in both", "of the smaller", "different languages")
        return Grid("Files with references in common", heads, rows)

    def _leaks(self) -> Grid:
        rows = tuple((one.left, one.kept, checks()[one.check].title, f"{one.rows:,}") for one in self.report.leaks)
        return Grid("Leaks between splits", ("rows of", "that stand in", "how", "rows"), rows)

    def _files(self) -> Grid:
        rows = tuple(
            (
                self.file(one.path), one.format, one.split or "–", ", ".join(tag or "none" for tag in one.languages),
                f"{one.samples:,}", f"{one.labelled:,}", f"{one.queries:,}", f"{one.unreadable:,}",
            )
            for one in self.report.files
        )  # fmt: skip
        heads = ("file", "format", "split", "languages", "samples", "labelled", "only a question", "unreadable")
        return Grid("Files", heads, rows)

    def _skipped(self) -> Grid:
        rows = tuple((checks()[name].title, why) for name, why in self.report.not_looked_for.items())
        return Grid("Not looked for: nothing is known about these", ("check", "why"), rows)

    def _unread(self) -> Grid:
        rows = tuple((self.file(path), why) for path, why in self.report.unread.items())
        return Grid("Files left aside", ("file", "why"), rows)

    def cleaned(self) -> list[str]:
        """What became of the cleaned copy, in sentences; empty where none was written."""
        copy = self.report.cleaned
        if copy is None:
            return []
        lines = [
            f"{plural(copy.kept, 'row')} kept in {copy.path}, {copy.repaired:,} of them repaired;"
            f" {plural(copy.left_out, 'row')} left out, with reasons in {copy.rejected}."
        ]
        if copy.repairs:
            lines.append(f"Repairs: {_listed(copy.repairs)}.")
        if copy.reasons:
            lines.append(f"Reasons (a row may have several): {_listed(copy.reasons)}.")
        return lines


def _listed(counts: Mapping[str, int], most: int = 12) -> str:
    once = len(counts) > 1 and set(counts.values()) == {1}
    shown: Iterable[str] = (name if once else f"{name} {count:,}" for name, count in list(counts.items())[:most])
    more = f" and {len(counts) - most} more" if len(counts) > most else ""
    return ", ".join(shown) + more


def _language(tag: str) -> str:
    known = languages().get(tag)
    return f"{known.name} ({tag})" if known is not None else tag or "not stated"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
