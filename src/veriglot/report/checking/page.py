"""A check as one HTML file that needs nothing beside it and asks the network for nothing."""

from __future__ import annotations

from html import escape
from string import Template
from typing import TYPE_CHECKING

from veriglot.build.checking import checks
from veriglot.report.assembly import colours, head, in_one_scope, opened, part
from veriglot.report.bench.cells import plain_table
from veriglot.report.checking.view import View
from veriglot.report.page_data import script_safe
from veriglot.report.study.delimited import csv_text
from veriglot.report.study.markup import Markup, bdi, joined, tag
from veriglot.report.study.sections import Section, folded, framed, note
from veriglot.report.study.tables import Table

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.build.checking import CheckReport, Finding
    from veriglot.report.bench.grids import Grid

__all__ = ["write_check"]

_SHARED, _OWN = "study/parts", "bench/parts"
_SCRIPTS = ((_SHARED, "tables.js"), (_OWN, "sort.js"), (_SHARED, "page.js"))
_STYLES = (
    (_SHARED, "page.css"), (_SHARED, "tables.css"), (_OWN, "bench.css"), (_SHARED, "narrow.css"),
    (_SHARED, "print.css"),
)  # fmt: skip
_SHORT = {
    "agreement": "Agreement", "labels": "Labels", "types": "Types", "shared": "Shared references", "leaks": "Leaks",
    "files": "Files", "skipped": "Not looked for", "unread": "Left aside",
}  # fmt: skip


def write_check(report: CheckReport, path: str | Path) -> None:
    """Write what was found as one self-contained page; the same report gives the same bytes.

    Raises:
        OSError: the file cannot be written.
    """
    view = View(report)
    grids = view.grids()
    tables = {name: Table(name, grid.title, grid.heads, grid.rows) for name, grid in grids.items()}
    sections = [_findings(view, grids.get("findings")), *_details(view)]
    sections += [
        Section(name, grid.title, _SHORT[name], (plain_table(grid),), (name,))
        for name, grid in grids.items()
        if name != "findings"
    ]
    sections.append(_passed(report))
    script = in_one_scope(_SCRIPTS)
    style = colours() + "\n".join(part(folder, name) for folder, name in _STYLES)
    saved = {name: {"csv": csv_text(table), "file": f"{name}.csv"} for name, table in tables.items()}
    navigation = [tag("a", section.short, href=f"#{section.name}") for section in sections if section.short]
    text = Template(part(_OWN, "page.html")).substitute(
        head=head(view.title(), script, style),
        title=escape(view.title()),
        subtitle=joined([tag("span", view.summary()), tag("span", f"Veriglot {report.version}")], " "),
        script=script,
        navigation=joined(navigation, "\n"),
        sections=joined([framed(section, tables) for section in sections], "\n"),
        data=script_safe({"tables": saved}),
    )
    with opened(path) as file:
        file.write(text)


def _findings(view: View, grid: Grid | None) -> Section:
    body: list[Markup] = [tag("p", text) for text in view.cleaned()]
    body.append(plain_table(grid) if grid is not None else tag("p", "Nothing was found."))
    body.append(note("Signature: ", tag("code", view.report.signature)))
    return Section("findings", "Findings", "Findings", body, ("findings",) if grid is not None else ())


def _details(view: View) -> list[Section]:
    body = [_detail(view, finding) for finding in view.report.findings]
    return [Section("details", "Each finding", "Each finding", body)] if body else []


def _detail(view: View, finding: Finding) -> Markup:
    check = checks()[finding.check]
    examples = [
        tag("li", bdi(place), ": ", bdi(detail), " ", tag("q", bdi(text), dir="auto") if text else None)
        for place, detail, text in map(view.example, finding.examples)
    ]
    summary = joined([tag("b", f"{finding.level}: "), view.headline(finding)])
    return folded(
        summary,
        tag("p", check.meaning),
        tag("p", f"In a cleaned copy: {view.cleaning(finding)}."),
        tag("p", f"By: {view.layers(finding)}.") if len(finding.layers) > 1 else None,
        tag("p", f"Kinds: {view.kinds(finding)}.") if finding.kinds else None,
        tag("ul", *examples) if examples else None,
        plain_table(view.by_file(finding)),
        opened=finding.level == "error",
    )


def _passed(report: CheckReport) -> Section:
    titles = [tag("li", checks()[name].title) for name in report.passed]
    body = tag("ul", *titles) if titles else tag("p", "Every check that was made found something.")
    return Section("passed", "Looked for and not found", "Not found", (body,))
