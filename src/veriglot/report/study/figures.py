"""How rates, intervals and coverage are drawn and written in the page; the one place where a rate becomes markup.

An unreliable rate is never a plain number here: it says `unreliable` first, and its number, if there is one, stands in
parentheses with a question mark, on a hatched ground or with a broken line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.report.study.markup import Markup, bdi, hidden, joined, tag
from veriglot.report.study.numbers import interval, percent, rate_text
from veriglot.report.study.view import is_sound

if TYPE_CHECKING:
    from veriglot.records import Estimator, Rate
    from veriglot.report.study.axes import Axis
    from veriglot.study.results import Average

__all__ = [
    "average_marks", "average_words", "coverage_bar", "csv_button", "estimator_words", "flag", "interval_marks",
    "language_label", "model_label", "rate_marks", "rate_words",
]  # fmt: skip

_ESTIMATORS = {
    "raw": "marked share, not corrected",
    "paper": "marked share × precision / recall",
    "label-shift": "corrected for false and missed marks (TPR, FPR)",
    "em": "mixture of confidence distributions",
    "ppi": "marked share, rectified by labels from this study",
}


def estimator_words(estimator: Estimator | str) -> str:
    """What an estimator does, in a few words."""
    return _ESTIMATORS.get(str(estimator), str(estimator))


def model_label(name: str) -> Markup:
    """The name of a model, as the study file spells it."""
    return bdi(name, class_="model")


def language_label(name: str, tag_: str) -> Markup:
    """The name of a language with its tag."""
    return joined([name, " ", tag("span", tag_, class_="tag")]) if name != tag_ else Markup(tag("span", tag_))


def flag(word: str = "unreliable") -> Markup:
    """The sign of a rate that the data do not support."""
    return tag("span", word, class_="flag")


def rate_words(rate: Rate | None) -> Markup:
    """A rate in one line: number and interval, or that it is unreliable."""
    if rate is None:
        return tag("span", "not estimated", class_="absent")
    if is_sound(rate):
        ends = interval(rate.low, rate.high) or "no interval"
        return joined([tag("b", percent(rate.rate)), " ", tag("span", ends, class_="interval")])
    doubt = "no estimate" if rate.rate is None else f"({percent(rate.rate)}?)"
    return joined([flag(), " ", tag("span", doubt, class_="doubt")])


def rate_marks(rate: Rate | None, axis: Axis, name: str) -> Markup:
    """A rate as a dot with its interval; hollow with a broken line where it is unreliable."""
    if rate is None or rate.rate is None:
        return Markup("")
    kind = "" if is_sound(rate) else " doubtful"
    told = tag("title", f"{name}: {rate_text(rate)}")
    marks = interval_marks(rate.low, rate.high, axis, f"span{kind}")
    dot = tag("circle", cx=axis.at(rate.rate), cy="50%", r="4.5", class_=f"dot{kind}")
    return tag("g", told, marks, dot)


def interval_marks(low: float | None, high: float | None, axis: Axis, kind: str) -> Markup | None:
    """A line from end to end of an interval."""
    if low is None or high is None:
        return None
    return tag("line", x1=axis.at(low), x2=axis.at(high), y1="50%", y2="50%", class_=kind)


def average_words(average: Average | None, of: str) -> Markup:
    """A mean with its interval, and what was left out of it; `of` is `languages` or `models`."""
    if average is None or average.mean is None:
        return joined([flag("no mean"), " ", tag("span", f"no reliable {of}", class_="doubt")])
    ends = interval(average.low, average.high) or "no interval"
    return joined([tag("b", percent(average.mean)), " ", tag("span", ends, class_="interval")])


def average_marks(average: Average | None, axis: Axis, name: str) -> Markup:
    """A mean as a dot with its interval."""
    if average is None or average.mean is None:
        return Markup("")
    told = tag("title", f"{name}: {percent(average.mean)} {interval(average.low, average.high)}")
    marks = interval_marks(average.low, average.high, axis, "span")
    return tag("g", told, marks, tag("circle", cx=axis.at(average.mean), cy="50%", r="5", class_="dot"))


def coverage_bar(coverage: float) -> Markup:
    """The judged share of the responses as a thin bar with its number."""
    bar = tag(
        "svg",
        tag("rect", width="100%", height="100%", class_="ground"),
        tag("rect", width=f"{100 * coverage:.1f}%", height="100%", class_="filled"),
        class_="bar", aria_hidden="true",
    )  # fmt: skip
    return tag(
        "span", bar, hidden("coverage "), percent(coverage, 0), class_="coverage low" if coverage < 0.9 else "coverage"
    )


def csv_button(name: str, title: str) -> Markup:
    """The button that saves a table of the page as CSV."""
    return tag(
        "button", f"{name}.csv", type="button", class_="tool csv", data_csv=name, hidden=True,
        aria_label=f"Save as CSV: {title}", title=f"Save as CSV: {title}",
    )  # fmt: skip
