"""How it was done, what it rests on, and how to cite it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.report.study.figures import csv_button, estimator_words, model_label
from veriglot.report.study.grids import grid
from veriglot.report.study.markup import Child, Markup, bdi, tag
from veriglot.report.study.sections import Section, note

if TYPE_CHECKING:
    from collections.abc import Mapping

    from veriglot.report.study.tables import Table
    from veriglot.report.study.view import View
    from veriglot.study.results import Model

__all__ = ["method_section"]


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
        tag("p", tag("code", results.signature, id="signature"), class_="signature"),
        tag("button", "Copy the signature", type="button", class_="tool", id="copy", hidden=True),
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
    return grid("What the study file declares", heads, rows, numbers_from=3)


def _settings(model: Model) -> Markup:
    said = ", ".join(f"{key} {value}" for key, value in sorted(model.settings.items()) if value is not None)
    return bdi(said) if said else tag("span", "the server's defaults, or responses that were given", class_="absent")


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
        tag("li", csv_button(table.name, table.title), " ", table.title, f" ({len(table.rows):,} rows)")
        for table in tables.values()
    ]
    lead = note(
        "Every table of this report, saved from the file itself. An unreliable rate stands in columns of its own there."
    )
    return tag("div", tag("h3", "Tables"), lead, tag("ul", *items, class_="downloads"), class_="saving")
