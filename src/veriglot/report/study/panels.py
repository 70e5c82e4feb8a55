"""One small chart for each language and one for each model, all on the same axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.report.study.axes import Axis, axis_for
from veriglot.report.study.figures import language_label, model_label, rate_marks, rate_words
from veriglot.report.study.markup import Markup, bdi, joined, tag
from veriglot.report.study.numbers import rate_text
from veriglot.report.study.sections import Section, folded, note
from veriglot.report.study.strips import Strip, strip_table
from veriglot.report.study.view import is_sound

if TYPE_CHECKING:
    from veriglot.records import Rate
    from veriglot.report.study.view import View

__all__ = ["panel_section"]


def panel_section(view: View) -> Section:
    """Every language with its models, and every model with its languages."""
    axis = _axis(view)
    raw = "raw" in view.estimators and view.results.estimator != "raw"
    diamond = " A diamond is the marked share, not corrected." if raw else ""
    intro = note(
        f"Each dot is a rate with its interval.{diamond} A hollow dot with a broken line is unreliable. The axis is the"
        " same everywhere; what lies beyond it is drawn at its end.",
    )
    by_language = [_language(view, tag_, axis) for tag_ in view.languages]
    by_model = [_model(view, name, axis) for name in view.models]
    body = (
        intro,
        folded("By language", tag("div", *by_language, class_="panels"), opened=True),
        folded("By model", tag("div", *by_model, class_="panels"), opened=True),
    )
    return Section("panels", "Each language and each model", "Each one", body, ("rates",))


def _axis(view: View) -> Axis:
    ends = [rate.high if rate.high is not None else rate.rate for rate in view.own_rates if is_sound(rate)]
    raw = (view.rate(rate.model or "", rate.language, "raw") for rate in view.own_rates)
    marked = [rate.rate for rate in raw if is_sound(rate) and rate is not None]
    return axis_for([end for end in (*ends, *marked) if end is not None], count=5)


def _language(view: View, tag_: str, axis: Axis) -> Markup:
    strips = [_strip(view, name, tag_, axis, _name(name)) for name in view.models]
    return _panel(strips, axis, language_label(view.language(tag_), tag_), "Model")


def _model(view: View, name: str, axis: Axis) -> Markup:
    strips = [_strip(view, name, tag_, axis, _name(view.language(tag_))) for tag_ in view.languages]
    return _panel(strips, axis, model_label(name), "Language")


def _name(name: str) -> Markup:
    """A name that a narrow panel may cut short on the screen; it is whole in the title and for screen readers."""
    return bdi(name, title=name)


def _strip(view: View, model: str, language: str, axis: Axis, label: Markup) -> Strip:
    rate = view.rate(model, language)
    marks = rate_marks(rate, axis, f"{model}, {view.language(language)}")
    raw = view.rate(model, language, "raw") if view.results.estimator != "raw" else None
    return Strip(label, joined([_raw(raw, axis), marks]), (rate_words(rate),))


def _raw(rate: Rate | None, axis: Axis) -> Markup | None:
    if rate is None or rate.rate is None or not is_sound(rate):
        return None
    told = tag("title", f"raw: {rate_text(rate)}")
    return tag("g", told, tag("use", href="#shape-diamond", x=axis.at(rate.rate), y="50%", class_="other"))


def _panel(strips: list[Strip], axis: Axis, caption: Markup, head: str) -> Markup:
    chart = strip_table(strips, axis, caption=caption, heads=(head, "Rate", "Figures"), tick=axis.percent)
    return tag("div", chart, class_="panel")
