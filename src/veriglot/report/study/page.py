"""A study's results as one HTML file that needs nothing beside it and asks the network for nothing.

Every figure is text in the file: charts are SVG made here, tables are tables, and what a script adds (other estimates
in the heat map, details of a cell, saving tables, filters) hides nothing from a reader who has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.report.html import Child, bdi, macro, note, tag
from veriglot.report.pages import Section, write_report
from veriglot.report.study.findings import findings
from veriglot.report.study.ranking import model_section, relation_section
from veriglot.report.study.rates import cell_facts, correction_section, heat_section, language_means, panel_section
from veriglot.report.study.responses import example_section, profile_section, response_section
from veriglot.report.study.tables import study_tables
from veriglot.report.study.view import View, estimator_words, model_label
from veriglot.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from markupsafe import Markup

    from veriglot.study.results import Model, StudyResults

__all__ = ["write_study"]


def method_section(view: View, tables: Mapping[str, Table]) -> Section:
    """Methods, assumptions, the models as they were asked, words, downloads and the signature."""
    results = view.results
    body = [
        *(tag("p", paragraph) for paragraph in results.methods),
        tag("h3", "Assumptions"),
        tag("ul", *(tag("li", text) for text in results.assumptions))
        if results.assumptions
        else note("None is stated."),
        tag("h3", "Models"),
        _models(view),
        tag("h3", "Words"),
        _words(view),
        _downloads(tables),
        tag("h3", "Signature"),
        note("Names the data, detectors, settings and version that every figure here was made with."),
        macro("signature")(results.signature),
    ]
    return Section("methods", "Methods and assumptions", "Methods", body, ("settings",))


def _models(view: View) -> Markup:
    heads = ("Model", "Family", "Asked with", "Parameters (billions)", "Declared languages")
    rows = [
        (
            model_label(model.name),
            model.family or "–",
            _settings(model),
            "–" if model.parameters is None else f"{model.parameters:g}",
            "–" if model.languages is None else f"{model.languages:,}",
        )
        for model in view.results.models
    ]
    return Table("", "What the study file declares", heads, rows).to_html()


def _settings(model: Model) -> Markup:
    settings = ", ".join(f"{key} {value}" for key, value in sorted(model.settings.items()) if value is not None)
    return (
        bdi(settings)
        if settings
        else tag("span", "the server's defaults, or responses that were given", class_="absent")
    )


def _words(view: View) -> Markup:
    own, level = ", the estimator of this report", f"{100 * view.results.confidence:g}%"
    terms: list[tuple[Child, Child]] = [
        ("rate", f"estimated share of {view.units} in the judged responses that the evidence does not support"),
        *((name, estimator_words(name) + own * (name == view.results.estimator)) for name in view.estimators),
        ("interval", f"{level} interval, of the sampling of responses and of the errors of the profile"),
        ("unreliable", "the data do not support a number: shown hatched, with the reason, and left out of every mean"),
        ("coverage", "judged responses over those that were asked for or given: calls that failed are not judged"),
        ("profile", "the detector's error rates in a language, measured on labels: TPR, FPR, precision, recall"),
        ("detectors", ", ".join(view.results.detectors)),
    ]  # fmt: skip
    return tag("dl", *(tag("div", tag("dt", term), tag("dd", meaning)) for term, meaning in terms), class_="words")


def _downloads(tables: Mapping[str, Table]) -> Markup:
    items = [
        tag("li", macro("csv_button")(table.name, table.title), " ", table.title, f" ({len(table.rows):,} rows)")
        for table in tables.values()
    ]
    lead = note(
        "Every table of this report, saved from the file itself. An unreliable rate stands in columns of its own there."
    )
    return tag("div", tag("h3", "Tables"), lead, tag("ul", *items, class_="downloads"), class_="saving")


def write_study(results: StudyResults, path: str | Path) -> None:
    """Write the report of a study as one self-contained page.

    The same results give the same bytes. The file appears under its name once it is whole.

    Args:
        results: the study's results.
        path: where to write; `-` is standard output.

    Raises:
        OSError: the file cannot be written.
    """
    view = View(results)
    tables = study_tables(results)
    write_report(
        path,
        title=results.title,
        subtitle=_subtitle(view),
        sections=_sections(view, tables),
        tables=tables,
        lead=findings(view),
        cells=cell_facts(view),
        wide=len(view.models) > 6,
    )


def _sections(view: View, tables: dict[str, Table]) -> list[Section]:
    sections = (
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
    return [section for section in sections if section is not None]


def _subtitle(view: View) -> tuple[str, ...]:
    results = view.results
    return (
        f"Hallucination rates of {len(view.models)} models in {len(view.languages)} languages",
        f"share of {view.units}",
        f"estimator {results.estimator}",
        f"{100 * results.confidence:g}% intervals",
        f"detected by {', '.join(results.detectors) or 'unnamed detector'}",
    )
