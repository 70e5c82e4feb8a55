"""Raw beside corrected: what the detector marked, and what each estimator makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.report.study.axes import Axis, axis_for
from veriglot.report.study.figures import estimator_words, language_label, model_label, rate_words
from veriglot.report.study.grids import grid
from veriglot.report.study.markup import Markup, joined, tag
from veriglot.report.study.means import shared_means
from veriglot.report.study.numbers import count, percent, rate_text
from veriglot.report.study.scatter import Point, scatter
from veriglot.report.study.sections import Section, folded, note
from veriglot.report.study.strips import Strip, strip_table
from veriglot.report.study.view import is_sound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.report.study.view import View

__all__ = ["correction_section"]

_SHAPES = {"label-shift": "circle", "raw": "diamond", "paper": "square", "em": "triangle", "ppi": "cross"}


def correction_section(view: View) -> Section | None:
    """Estimators side by side by model, every corrected rate against its raw one, and all of them as a table.

    None where the study has one estimator.
    """
    names = [each.value for each in view.estimators]
    if len(names) < 2:
        return None
    intro = note(
        "A detector marks some supported words and misses some unsupported ones, so the marked share is not the rate."
        f" Figures in this report are by {view.results.estimator}: {estimator_words(view.results.estimator)}."
    )
    body = [
        intro,
        *_by_model(view, names),
        *_against_raw(view),
        folded("All estimates as a table", _table(view, names)),
    ]
    return Section("correction", "Raw beside corrected", "Raw and corrected", body, ("rates",))


def _key(names: list[str], own: str) -> Markup:
    items = [
        tag(
            "li",
            tag("svg", _mark(name, "50%", own), class_="key-mark", aria_hidden="true"),
            tag("b", name), " ", estimator_words(name),
        )
        for name in names
    ]  # fmt: skip
    return tag("ul", *items, class_="key")


def _mark(name: str, at: str, own: str) -> Markup:
    kind = "dot" if name == own else "other"
    return tag("use", href=f"#shape-{_SHAPES.get(name, 'circle')}", x=at, y="50%", class_=kind)


def _by_model(view: View, names: list[str]) -> Iterator[Markup]:
    own = view.results.estimator
    means = {model: shared_means(view, names, [model]) for model in view.models}
    axis = axis_for([value for found, _ in means.values() if found for value in found.values()])
    strips = []
    for model, (found, cells) in means.items():
        if found is None:
            strips.append(Strip(model_label(model), Markup(""), (*("–" for _ in names), "0")))
            continue
        ends = {"x1": axis.at(min(found.values())), "x2": axis.at(max(found.values()))}
        line = tag("line", **ends, y1="50%", y2="50%", class_="link")
        marks = joined([line, *(_mark(name, axis.at(found[name]), own) for name in reversed(names))])
        figures = (tag("b", percent(found[name])) if name == own else percent(found[name]) for name in names)
        strips.append(Strip(model_label(model), marks, (*figures, str(cells))))
    yield _key(names, own)
    heads = ("Model", "Rate", *names, "Languages")
    caption = "Mean of each estimator over the languages in which all of them are reliable"
    yield strip_table(strips, axis, caption=caption, heads=heads, tick=axis.percent)


def _against_raw(view: View) -> Iterator[Markup]:
    own = view.results.estimator
    if own == "raw" or "raw" not in view.estimators:
        return
    points = []
    for rate in view.own_rates:
        raw = view.rate(rate.model or "", rate.language, "raw")
        if raw is None or raw.rate is None or rate.rate is None:
            continue
        name = f"{rate.model}, {view.language(rate.language)}: raw {percent(raw.rate)}, {own} {rate_text(rate)}"
        points.append(Point(raw.rate, rate.rate, name, doubtful=not is_sound(rate)))
    if not points:
        return
    both = axis_for([value for point in points if not point.doubtful for value in (point.x, point.y)])
    yield tag("h3", "Every rate against its marked share")
    doubtful = sum(point.doubtful for point in points)
    beyond = sum(both.beyond(point.x) or both.beyond(point.y) for point in points)
    said = [f"{count(len(points), 'rate')}; on the line, correction changes nothing."]
    if doubtful:
        said.append(f"Hollow: {doubtful} unreliable.")
    if beyond:
        said.append(f"{beyond} of them lie beyond an axis and are drawn at its end.")
    yield note(" ".join(said))
    yield _plot(points, both, own)


def _plot(points: list[Point], both: Axis, own: str) -> Markup:
    return scatter(
        points, both, both, x_name="marked share (raw)", y_name=f"rate by {own}", x_tick=both.percent,
        y_tick=both.percent, told=f"Scatter of {len(points)} rates by {own} against the marked share.", diagonal=True,
    )  # fmt: skip


def _table(view: View, names: list[str]) -> Markup:
    rows = [
        (
            model_label(model),
            language_label(view.language(language), language),
            *(rate_words(view.rate(model, language, name)) for name in names),
        )
        for model in view.models
        for language in view.languages
        if view.cell(model, language) is not None
    ]
    return grid("Every estimate", ("Model", "Language", *names), rows, tall=True)
