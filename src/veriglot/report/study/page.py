"""A study's results as one HTML file that needs nothing beside it and asks the network for nothing.

Every figure is text in the file: charts are SVG made here, tables are tables, and what a script adds (other estimates
in the heat map, details of a cell, saving tables, filters) hides nothing from a reader who has none.
"""

from __future__ import annotations

from html import escape
from string import Template
from typing import TYPE_CHECKING

from veriglot.report.assembly import colours, head, opened, part, scoped
from veriglot.report.page_data import script_safe
from veriglot.report.printable import printable
from veriglot.report.study.correction import correction_section
from veriglot.report.study.delimited import csv_text
from veriglot.report.study.examples import example_section
from veriglot.report.study.findings import findings
from veriglot.report.study.heatmap import cell_facts, heat_section
from veriglot.report.study.markup import Markup, joined, tag
from veriglot.report.study.means import language_means
from veriglot.report.study.methods import method_section
from veriglot.report.study.panels import panel_section
from veriglot.report.study.profiles import profile_section
from veriglot.report.study.ranking import model_section
from veriglot.report.study.relations import relation_section
from veriglot.report.study.responses import response_section
from veriglot.report.study.sections import Section, framed
from veriglot.report.study.tables import Table, study_tables
from veriglot.report.study.view import View

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.study.results import StudyResults

__all__ = ["write_study"]

_FOLDER = "study/parts"
_SCRIPTS = ("tables.js", "cells.js", "examples.js", "page.js")
_STYLES = ("page.css", "tables.css", "charts.css", "examples.css", "narrow.css", "print.css")


def write_study(results: StudyResults, path: str | Path) -> None:
    """Write the report of a study as one self-contained page.

    The same results give the same bytes. The file appears under its name once it is whole.

    Args:
        results: the study's results.
        path: where to write; `-` is standard output.

    Raises:
        OSError: the file cannot be written.
    """
    text = _page(results)
    with opened(path) as file:
        file.write(text)


def _page(results: StudyResults) -> str:
    view = View(results)
    tables = study_tables(results)
    sections = _sections(view, tables)
    script = scoped(_FOLDER, _SCRIPTS)
    style = colours() + "\n".join(part(_FOLDER, name) for name in _STYLES)
    wide = "wide" if len(view.models) > 6 else ""
    return Template(part(_FOLDER, "page.html")).substitute(
        head=head(results.title, script, style),
        title=escape(printable(results.title)),
        subtitle=_subtitle(view),
        script=script,
        paper=wide,
        navigation=_navigation(sections),
        findings=findings(view),
        sections=joined([framed(section, tables) for section in sections], "\n"),
        signature=escape(printable(results.signature)),
        data=script_safe(
            {
                "tables": {name: {"csv": csv_text(table), "file": f"{name}.csv"} for name, table in tables.items()},
                "cells": cell_facts(view),
            }
        ),
    )


def _sections(view: View, tables: dict[str, Table]) -> list[Section]:
    found = (
        heat_section(view),
        model_section(view),
        language_means(view),
        correction_section(view),
        panel_section(view),
        relation_section(view),
        profile_section(view),
        response_section(view),
        example_section(view),
        method_section(view, tables),
    )
    return [section for section in found if section is not None]


def _subtitle(view: View) -> Markup:
    results = view.results
    detectors = ", ".join(results.detectors) or "unnamed detector"
    parts = (
        f"Hallucination rates of {len(view.models)} models in {len(view.languages)} languages",
        f"share of {view.units}",
        f"estimator {results.estimator}",
        f"{100 * results.confidence:g}% intervals",
        f"detected by {detectors}",
    )
    return joined([tag("span", text) for text in parts], " ")


def _navigation(sections: list[Section]) -> Markup:
    links = [tag("a", "Findings", href="#findings")]
    links += [tag("a", section.short, href=f"#{section.name}") for section in sections]
    return joined(links, "\n")
