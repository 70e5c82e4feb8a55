"""The results of a check in words and tables: terminal, Markdown and HTML."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from rich.text import Text

from veriglot.datasets.checks.findings import Finding, LabelSet, checks
from veriglot.plugins import read_package_data
from veriglot.records.languages import language_name
from veriglot.report.pages import Fold, Part, Section, macro, markdown_report, write_report
from veriglot.report.tables import Table
from veriglot.report.text_layout import count, language_with_tag, number, percent, printable, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console

    from veriglot.datasets.checks.checker import CheckReport

__all__ = ["check_markdown", "render_check", "write_check"]


_LEVELS = ("error", "warning", "note")


def _percent(part: float, whole: float) -> str:
    return percent(part / whole if whole else None)


class _View:
    """A report with file names shortened to their distinct parts."""

    def __init__(self, report: CheckReport) -> None:
        self.report = report
        folders = [str(PurePath(file.path).parent) for file in report.files if file.path != "-"]
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
        samples = sum(file.samples for file in self.report.files)
        return f"Check of {count(len(self.report.files), 'file')} with {count(samples, 'sample')}"

    def summary(self) -> str:
        """Number of findings, by level."""
        levels = [summary.level for summary in self.report.findings]
        parts = [count(levels.count(level), level) for level in _LEVELS if level in levels]
        summary = f"{count(len(levels), 'kind')} of finding ({', '.join(parts)})" if parts else "nothing found"
        passed, left = len(self.report.passed), len(self.report.not_looked_for)
        return f"{summary}; {count(passed, 'check')} found nothing, {left} not made"

    def findings(self) -> list[Finding]:
        """The findings, errors first."""
        return sorted(self.report.findings, key=lambda finding: _LEVELS.index(finding.level))

    def headline(self, finding: Finding) -> str:
        """A finding in one line."""
        whole = f"{finding.count:,} of {count(finding.of, finding.unit)}"
        about = "about " if finding.how == "estimate" else ""
        return f"{checks()[finding.check].title}: {about}{whole} ({_percent(finding.count, finding.of)})"

    def where(self, finding: Finding) -> str:
        """The files with the largest shares of it, in one line."""
        shares = sorted(finding.files, key=lambda path: -finding.files[path] / max(1, finding.of_files[path]))
        named = [f"{self.file(p)} {_percent(finding.files[p], finding.of_files[p])}" for p in shares]
        return shortened(named, 4)

    def kinds(self, finding: Finding) -> str:
        """Counts by kind, in one line."""
        if "language" not in checks()[finding.check].title:
            return _listed(finding.kinds)
        return _listed({", ".join(map(language_name, kind.split(", "))): n for kind, n in finding.kinds.items()})

    def layers(self, finding: Finding) -> str:
        """Counts by layer, in one line."""
        return ", ".join(
            f"{layer} {count:,} of {of:,} ({_percent(count, of)})" for layer, (count, of) in finding.layers.items()
        )

    def examples(self, finding: Finding) -> Iterator[tuple[str, ...]]:
        """The position of each example, what is wrong, and the text if there is any."""
        for example in finding.examples:
            location = example.id or (f"line {example.line}" if example.line else "")
            parts = (f"{self.file(example.file)} {location}".strip(), example.detail, example.text)
            yield tuple(part for part in parts if part)

    def cleaning(self, finding: Finding) -> str:
        """What the cleaned copy changes for it."""
        return {"leave out": "left out", "repair": "repaired, else left out", "keep": "kept"}[finding.cleaning]

    def grids(self) -> dict[str, Table]:
        """Every table that has rows, by name."""
        return {name: grid for name, grid in (*self._found(), *self._looked_at()) if grid.rows}

    def _found(self) -> Iterator[tuple[str, Table]]:
        rows: list[tuple[str, ...]] = [
            (
                checks()[finding.check].title, finding.level, f"{finding.count:,}", f"{finding.of:,}", finding.unit,
                _percent(finding.count, finding.of), finding.how, self.cleaning(finding), finding.check,
            )
            for finding in self.findings()
        ]  # fmt: skip
        heads = ("finding", "level", "number", "of", "unit", "share", "by", "in a cleaned copy", "name of the check")
        yield "findings", Table("Findings", heads, rows)
        rows = [
            (
                language_with_tag(agreement.language), "people" if agreement.kind == "human" else "models",
                f"{agreement.texts:,}",
                f"{agreement.annotations:,}", f"{agreement.pairs:,}",
                _percent(agreement.same, agreement.pairs), number(agreement.overlap, 2),
                number(agreement.alpha, 2), number(agreement.same_type, 2),
            )
            for agreement in self.report.agreement
        ]  # fmt: skip
        heads = (
            "language", "by", "texts", "annotations", "pairs", "the same", "overlap (Dice)", "Krippendorff's alpha",
            "same type",
        )  # fmt: skip
        yield "agreement", Table("Agreement of several annotations of one text, in code points", heads, rows)
        rows = [
            (
                self.file(labels.file), f"{labels.annotator} ({labels.kind})", language_with_tag(labels.language),
                f"{labels.responses:,}", f"{labels.clean:,}", _percent(labels.clean, labels.responses),
                _percent(labels.marked_words, labels.words),
                f"{sum(labels.types.values()):,}",
            )
            for labels in self.report.labels
        ]  # fmt: skip
        columns = ("file", "labels", "language", "responses", "clean", "share clean", "words marked", "spans")
        yield "labels", Table("Labels", columns, rows)

    def _looked_at(self) -> Iterator[tuple[str, Table]]:
        by_set: dict[str, list[LabelSet]] = {}
        for labels in self.report.labels:
            by_set.setdefault(f"{labels.annotator} ({labels.kind}), {labels.taxonomy}", []).append(labels)
        names = sorted({type_ for labels in self.report.labels for type_ in labels.types})
        rows: list[tuple[str, ...]] = []
        for name, parts in by_set.items():
            counts = {type_: sum(labels.types.get(type_, 0) for labels in parts) for type_ in names}
            total = sum(counts.values())
            cells = (f"{counts[type_]:,} ({_percent(counts[type_], total)})" for type_ in names)
            rows.append((name, f"{total:,}", *cells))
        yield "types", Table("Types of spans", ("labels", "spans", *(name or "no type" for name in names)), rows)
        rows = [
            (
                self.file(pair.first), self.file(pair.second), f"{pair.shared:,}", f"{100 * pair.share:.1f}%",
                "yes" if pair.foreign else "no",
            )
            for pair in self.report.shared
        ]  # fmt: skip
        heads = ("file", "and", "passages in both", "of the smaller", "different languages")
        yield "shared", Table("Files with references in common", heads, rows)
        rows = [(leak.left, leak.stays, checks()[leak.check].title, f"{leak.rows:,}") for leak in self.report.leaks]
        yield "leaks", Table("Leaks between splits", ("rows of", "that are in", "how", "rows"), rows)
        rows = [
            (
                self.file(file.path), file.format, file.split or "–",
                ", ".join(language_name(tag) if tag else "none" for tag in file.languages),
                f"{file.samples:,}", f"{file.labelled:,}", f"{file.queries:,}", f"{file.unreadable:,}",
            )
            for file in self.report.files
        ]  # fmt: skip
        columns = ("file", "format", "split", "languages", "samples", "labelled", "only a question", "unreadable")
        yield "files", Table("Files", columns, rows)
        rows = [(checks()[name].title, why) for name, why in self.report.not_looked_for.items()]
        yield "skipped", Table("Not looked for: nothing is known about these", ("check", "why"), rows)
        rows = [(self.file(path), why) for path, why in self.report.unread.items()]
        yield "unread", Table("Files left aside", ("file", "why"), rows)

    def by_file(self, finding: Finding) -> Table:
        """One finding, by file."""
        rows = [
            (self.file(path), f"{count:,}", f"{finding.of_files[path]:,}", _percent(count, finding.of_files[path]))
            for path, count in finding.files.items()
        ]
        return Table(checks()[finding.check].title, ("file", "count", f"of {finding.unit}s", "share"), rows)

    def cleaned(self) -> list[str]:
        """The outcome of the cleaned copy, in sentences; empty if none was written."""
        copy = self.report.cleaned
        if copy is None:
            return []
        lines = [
            f"{count(copy.rows, 'row')} kept in {copy.path}, {copy.repaired:,} of them repaired;"
            f" {count(copy.left_out, 'row')} left out, with reasons in {copy.rejected}."
        ]
        if copy.repairs:
            lines.append(f"Repairs: {_listed(copy.repairs)}.")
        if copy.reasons:
            lines.append(f"Reasons (a row may have several): {_listed(copy.reasons)}.")
        return lines


def _listed(counts: Mapping[str, int]) -> str:
    once = len(counts) > 1 and set(counts.values()) == {1}
    shown = [name if once else f"{name} {count:,}" for name, count in counts.items()]
    return shortened(shown, 12, "; " if any("," in name for name in counts) else ", ")


_SHORT = read_package_data(__package__, "checks.toml", dict[str, str])


def _sections(view: _View, grids: dict[str, Table]) -> Iterator[Section]:
    report = view.report
    findings = grids.get("findings")
    saved = ("findings",) if findings is not None else ()
    signature = macro("signature")(report.signature)
    yield Section(
        "findings", "Findings", "Findings", (*view.cleaned(), findings or "Nothing was found.", signature), saved
    )
    details: list[Part] = []
    for finding in view.findings():
        parts: list[Part] = [checks()[finding.check].meaning, f"In a cleaned copy: {view.cleaning(finding)}."]
        parts += [f"By: {view.layers(finding)}."] if len(finding.layers) > 1 else []
        parts += [f"Kinds: {view.kinds(finding)}."] if finding.kinds else []
        examples = list(view.examples(finding))
        parts += [examples] if examples else []
        title = f"{finding.level}: {view.headline(finding)}"
        details.append(Fold(title, [*parts, view.by_file(finding)], opened=finding.level == "error"))
    if details:
        yield Section("details", "Each finding", "Each finding", details)
    for name, grid in grids.items():
        if name != "findings":
            yield Section(name, grid.title, _SHORT[name], (grid,), (name,))
    passed = [checks()[name].title for name in report.passed]
    part = passed or ("Every check that was made found something." if report.findings else "No check was made.")
    yield Section("passed", "Looked for and not found", "Not found", (part,))


def check_markdown(report: CheckReport) -> str:
    """All findings, as a page."""
    view = _View(report)
    return markdown_report(view.title(), _sections(view, view.grids()), report.signature, lead=f"{view.summary()}.")


def write_check(report: CheckReport, path: str | Path) -> None:
    """Write the findings as one self-contained page; the same report gives the same bytes.

    Raises:
        OSError: the file cannot be written.
    """
    view = _View(report)
    grids = view.grids()
    subtitle = (view.summary(), f"Veriglot {report.version}")
    write_report(path, title=view.title(), subtitle=subtitle, sections=list(_sections(view, grids)), tables=grids)


# A check on the terminal: each finding with its files and an example; what was not checked; the copy.


_TERMINAL_STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold"}
_EXAMPLES = 2


def render_check(report: CheckReport, console: Console) -> None:
    """Print the findings, errors first."""
    view = _View(report)
    _line(console, f"{view.title()}: {view.summary()}", "bold")
    for finding in view.findings():
        console.print()
        head = Text(f"{finding.level}  ", style=_TERMINAL_STYLES[finding.level])
        head.append(printable(view.headline(finding)), style="bold")
        console.print(head)
        _line(console, f"  {checks()[finding.check].meaning}", "dim")
        _line(console, f"  where: {view.where(finding)}")
        if len(finding.layers) > 1:
            _line(console, f"  by: {view.layers(finding)}")
        if finding.kinds:
            _line(console, f"  kinds: {view.kinds(finding)}")
        for example in islice(view.examples(finding), _EXAMPLES):
            _line(console, f"  such as {': '.join(example)}")
        _line(console, f"  in a cleaned copy: {view.cleaning(finding)} ({finding.check})")
    for name, grid in view.grids().items():
        if name in {"agreement", "leaks", "skipped", "unread"}:
            console.print()
            _line(console, grid.title, "bold")
            for row in grid.rows:
                pairs = zip(grid.columns[1:], row[1:], strict=True)
                description = row[1] if len(row) == 2 else ", ".join(f"{head} {cell}" for head, cell in pairs)
                _line(console, f"  {row[0]}: {description}")
    for text in view.cleaned():
        console.print()
        _line(console, text)


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(printable(text), style=style), soft_wrap=not console.is_terminal)
