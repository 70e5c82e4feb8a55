"""A check on the terminal: each finding with where it is and an example; what was not looked for; the copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from veriglot.build.checking import checks
from veriglot.report.checking.view import View
from veriglot.report.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

    from veriglot.build.checking import CheckReport, Finding

__all__ = ["render_check"]

_STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold"}
_EXAMPLES = 2
_PLAIN_WIDTH = 200  # columns where no terminal says how many there are


def render_check(report: CheckReport, console: Console) -> None:
    """Print what was found, errors first.

    Args:
        report: of `build.checking.check`.
        console: where to print; a pipe has 200 columns.
    """
    if not console.is_terminal:
        console.width = max(console.width, _PLAIN_WIDTH)
    view = View(report)
    _line(console, f"{view.title()}: {view.summary()}", "bold")
    for level in _STYLES:
        for finding in report.findings:
            if finding.level == level:
                _print(view, finding, console)
    for name, grid in view.grids().items():
        if name in {"agreement", "leaks", "skipped", "unread"}:
            console.print()
            _line(console, grid.title, "bold")
            for row in grid.rows:
                pairs = zip(grid.heads[1:], row[1:], strict=True)
                told = row[1] if len(row) == 2 else ", ".join(f"{head} {cell}" for head, cell in pairs)
                _line(console, f"  {row[0]}: {told}")
    for text in view.cleaned():
        console.print()
        _line(console, text)


def _print(view: View, finding: Finding, console: Console) -> None:
    console.print()
    head = Text(f"{finding.level}  ", style=_STYLES[finding.level])
    head.append(printable(view.headline(finding)), style="bold")
    console.print(head)
    _line(console, f"  {checks()[finding.check].meaning}", "dim")
    _line(console, f"  where: {view.where(finding)}")
    if len(finding.layers) > 1:
        _line(console, f"  by: {view.layers(finding)}")
    if finding.kinds:
        _line(console, f"  kinds: {view.kinds(finding)}")
    for example in finding.examples[:_EXAMPLES]:
        place, detail, text = view.example(example)
        _line(console, f"  such as {place}: {detail}{f': {text}' if text else ''}")
    _line(console, f"  in a cleaned copy: {view.cleaning(finding)} ({finding.check})")


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(printable(text), style=style), soft_wrap=not console.is_terminal)
