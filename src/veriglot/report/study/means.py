"""Means of each model and language with their intervals, and plain means that hold estimators against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.report.study.axes import Axis, axis_for
from veriglot.report.study.figures import average_marks, average_words, language_label, model_label
from veriglot.report.study.markup import Markup, joined, tag
from veriglot.report.study.sections import Section, note
from veriglot.report.study.strips import Strip, strip_table
from veriglot.report.study.view import is_sound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.records import Rate
    from veriglot.report.study.view import View
    from veriglot.study.results import Average

__all__ = ["language_means", "model_means", "shared_means"]


def model_means(view: View) -> Markup:
    """A row for each model: its mean over languages with the interval, and the languages as faint ticks behind it."""
    return _chart(view, view.results.by_model, "Model", "languages")


def language_means(view: View) -> Section:
    """A row for each language: its mean over models with the interval, and the models as faint ticks behind it."""
    intro = note(
        "The mean over models in each language; a faint tick is one model. Languages differ in what is asked, in the"
        " evidence and in the detector's profile, so a difference between two of them is not one of skill alone.",
    )
    chart = _chart(view, view.results.by_language, "Language", "models")
    return Section("languages", "Languages", "Languages", (intro, chart), ("languages",))


def _chart(view: View, averages: Sequence[Average], head: str, of: str) -> Markup:
    by_model = of == "languages"
    rates = [rate for rate in view.own_rates if is_sound(rate)]
    ends = [average.high for average in averages if average.high is not None]
    axis = axis_for([*ends, *(rate.rate for rate in rates if rate.rate is not None)])
    strips = []
    for average in averages:
        behind = [rate for rate in rates if average.name == (rate.model if by_model else rate.language)]
        name = average.name if by_model else view.language(average.name)
        label = model_label(name) if by_model else language_label(name, average.name)
        marks = joined([*_ticks(behind, axis), average_marks(average, axis, name)])
        strips.append(Strip(label, marks, (average_words(average, of), _of_how_many(average))))
    heads = (head, "Rate", "Mean and interval", of.capitalize())
    caption = f"Mean rate of each {head.lower()} over {of}"
    return strip_table(strips, axis, caption=caption, heads=heads, tick=axis.percent)


def _ticks(rates: Sequence[Rate], axis: Axis) -> Iterator[Markup]:
    for rate in rates:
        if rate.rate is not None:
            at = axis.at(rate.rate)
            yield tag("line", x1=at, x2=at, y1="24%", y2="76%", class_="faint")


def _of_how_many(average: Average) -> str:
    total = average.cells + average.unreliable
    return f"{average.cells}" if not average.unreliable else f"{average.cells} of {total}"


def shared_means(
    view: View, estimators: Sequence[str], models: Sequence[str] | None = None
) -> tuple[dict[str, float] | None, int]:
    """The plain mean of each estimator over the cells in which all of them are reliable.

    Args:
        view: the study.
        estimators: names of estimators.
        models: whose cells; None is all.

    Returns:
        The means by estimator, or None where there is no such cell; and the number of cells.
    """
    kept = []
    for model in models or view.models:
        for language in view.languages:
            rates = [view.rate(model, language, name) for name in estimators]
            values = [r.rate for r in rates if r is not None and is_sound(r) and r.rate is not None]
            if len(values) == len(estimators):
                kept.append(values)
    if not kept:
        return None, 0
    return {name: sum(row[place] for row in kept) / len(kept) for place, name in enumerate(estimators)}, len(kept)
