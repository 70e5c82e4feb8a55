"""A check as one page of Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.build.checking import checks
from veriglot.report.checking.view import View
from veriglot.report.study.matrix import markdown_escaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.build.checking import CheckReport, Finding
    from veriglot.report.bench.grids import Grid

__all__ = ["check_markdown"]


def check_markdown(report: CheckReport) -> str:
    """Everything that was found, as a page."""
    view = View(report)
    grids = view.grids()
    lines = [f"# {markdown_escaped(view.title())}", "", f"{markdown_escaped(view.summary())}.", ""]
    for text in view.cleaned():
        lines += [markdown_escaped(text), ""]
    if "findings" in grids:
        lines += _table(grids.pop("findings"))
    for finding in report.findings:
        lines += _finding(view, finding)
    for grid in grids.values():
        lines += [f"## {markdown_escaped(grid.title)}", "", *_table(grid)]
    passed = ", ".join(checks()[name].title for name in report.passed)
    lines += ["## Looked for and not found", "", f"{markdown_escaped(passed)}.", ""] if passed else []
    return "\n".join([*lines, f"Signature: `{report.signature.replace('`', '')}`", ""])


def _finding(view: View, finding: Finding) -> Iterator[str]:
    yield f"## {markdown_escaped(checks()[finding.check].title)}"
    yield ""
    headline = markdown_escaped(view.headline(finding))
    yield f"**{finding.level}**: {headline}. In a cleaned copy: {view.cleaning(finding)}."
    yield ""
    yield markdown_escaped(checks()[finding.check].meaning)
    yield ""
    if len(finding.layers) > 1:
        yield f"By: {markdown_escaped(view.layers(finding))}."
        yield ""
    if finding.kinds:
        yield f"Kinds: {markdown_escaped(view.kinds(finding))}."
        yield ""
    yield from _table(view.by_file(finding))
    for example in finding.examples:
        place, detail, text = (markdown_escaped(part) for part in view.example(example))
        yield f"- {place}: {detail}{f' — {text}' if text else ''}"
    yield ""


def _table(grid: Grid) -> Iterator[str]:
    yield f"| {' | '.join(map(markdown_escaped, grid.heads))} |"
    yield f"|{'---|' * len(grid.heads)}"
    for row in grid.rows:
        yield f"| {' | '.join(map(markdown_escaped, row))} |"
    yield ""
