"""A study's results arranged for looking up: which cell, in which order, by which estimator."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from markupsafe import Markup

from veriglot.rates.estimators import ESTIMATORS
from veriglot.records import Estimator, Reliability
from veriglot.report.charts import Axis, interval_marks
from veriglot.report.html import bdi, hidden, joined, tag
from veriglot.report.text_layout import interval, language_name, percent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from veriglot.records import Rate
    from veriglot.study.results import Average, Cell, Model, StudyResults

__all__ = [
    "ALL",
    "View",
    "average_marks",
    "average_words",
    "by_model",
    "coverage_bar",
    "estimator_words",
    "flag",
    "is_sound",
    "language_label",
    "model_label",
    "rate_marks",
    "rate_text",
    "rate_words",
]


ALL = "*"
"""The name that stands for all languages together."""


_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")


def is_sound(rate: Rate | None) -> bool:
    """Whether a rate may be shown as a plain number: it exists, and the data support it."""
    return rate is not None and rate.status is Reliability.OK and rate.rate is not None


class View:
    """Look-ups in the results of one study.

    Attributes:
        results: the study's results.
        models: names of the models, the one that hallucinates least first, those without a mean last.
        languages: tags, in the same order.
    """

    def __init__(self, results: StudyResults) -> None:
        self.results = results
        self._cells = {(cell.model, cell.language): cell for cell in results.cells}
        self._models = {model.name: model for model in results.models}
        self.models = _ordered((model.name for model in results.models), results.by_model)
        self.languages = _ordered(results.languages, results.by_language)

    def cell(self, model: str, language: str) -> Cell | None:
        """The cell of one model in one language; None where the study has none."""
        return self._cells.get((model, language))

    def rate(self, model: str, language: str, estimator: str | None = None) -> Rate | None:
        """The rate of a cell by an estimator (None: the study's own); None where there is none."""
        cell = self.cell(model, language)
        wanted = estimator or self.results.estimator
        return next((rate for rate in cell.rates if rate.estimator == wanted), None) if cell else None

    def model(self, name: str) -> Model | None:
        """What the study file declares of a model."""
        return self._models.get(name)

    @cached_property
    def estimators(self) -> tuple[Estimator, ...]:
        """Every estimator of the study, its own first, then in the order of their definition."""
        estimators = {rate.estimator for cell in self.results.cells for rate in cell.rates}
        own = self.results.estimator
        return tuple(sorted(estimators, key=lambda each: (each != own, list(Estimator).index(each))))

    @cached_property
    def own_rates(self) -> tuple[Rate, ...]:
        """The rate of every cell by the study's estimator, model by model."""
        pairs = ((model, language) for model in self.models for language in self.languages)
        return tuple(rate for pair in pairs if (rate := self.rate(*pair)) is not None)

    @cached_property
    def unreliable(self) -> tuple[Rate, ...]:
        """The rates among `own_rates` that are no plain numbers."""
        return tuple(rate for rate in self.own_rates if not is_sound(rate))

    @cached_property
    def by_reason(self) -> dict[str, list[Rate]]:
        """The unreliable rates by the reason; reasons that differ in their numbers only are one, with their ranges."""
        groups: dict[str, list[Rate]] = {}
        for rate in self.unreliable:
            groups.setdefault(_NUMBER.sub("#", _reason(rate)), []).append(rate)
        return {_sentence(_with_ranges([_reason(rate) for rate in rates])): rates for rates in groups.values()}

    @cached_property
    def shared_languages(self) -> tuple[str, ...]:
        """The languages in which every model that has a reliable rate at all has one: those that ranks are over."""
        nonempty = [tags for tags in self._reliable_in.values() if tags]
        return tuple(tag for tag in self.languages if nonempty and all(tag in tags for tags in nonempty))

    @cached_property
    def unlike_means(self) -> str | None:
        """That the models' means are not of the same languages, in words; None where they are."""
        nonempty = [tags for tags in self._reliable_in.values() if tags]
        if len(set(nonempty)) < 2:
            return None
        few, many = min(map(len, nonempty)), max(map(len, nonempty))
        reach = f"{few}" if few == many else f"{few} to {many}"
        shared = len(self.shared_languages)
        over = f"over the {'language' if shared == 1 else f'{shared} languages'} that all of them have"
        ranks = over if shared else "not made, for all of them together have none"
        return (
            f"The means of the models are not of the same languages ({reach} of {len(self.languages)}), because rates"
            f" that the data do not support are left out. No order of models follows from them: ranks are"
            f" {ranks}, and differences over those that both models have."
        )

    @cached_property
    def _reliable_in(self) -> dict[str, frozenset[str]]:
        """Model -> languages in which its rate is reliable."""
        sound = [rate for rate in self.own_rates if is_sound(rate)]
        return {name: frozenset(rate.language for rate in sound if rate.model == name) for name in self.models}

    def places(self, rates: Iterable[Rate]) -> str:
        """Where rates are, model by model: `lark-2b in Hindi, Arabic; heron-7b in Swahili`."""
        return "; ".join(
            f"{model} in {', '.join(self.language(rate.language) for rate in group)}"
            for model, group in by_model(rates).items()
        )

    def average(self, name: str) -> Average | None:
        """The average of a model or a language, by name or tag."""
        for average in (*self.results.by_model, *self.results.by_language):
            if average.name == name:
                return average
        return None

    @property
    def units(self) -> str:
        """What is counted, in words: `words`, `characters`, `tokens of NAME`."""
        unit = self.results.unit
        named = {"word": "words", "char": "characters"}
        return named.get(unit) or f"tokens of {unit.removeprefix('hf:')}"

    def language(self, tag: str) -> str:
        """The English name of a language tag."""
        return "all languages" if tag == ALL else language_name(tag)


def _reason(rate: Rate) -> str:
    return rate.reason or "there is no estimate"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def _with_ranges(reasons: list[str]) -> str:
    """Sentences of one wording as one: `37% of the units`, `46% of the units` is `37–46% of the units`."""
    columns = zip(*(_NUMBER.findall(reason) for reason in reasons), strict=True)
    ranges = []
    for numbers in columns:
        ordered = sorted(set(numbers), key=lambda number: float(number.replace(",", "")))
        ranges.append(ordered[0] if len(ordered) == 1 else f"{ordered[0]}–{ordered[-1]}")
    left = iter(ranges)
    return _NUMBER.sub(lambda _: next(left), reasons[0])


def by_model(rates: Iterable[Rate]) -> dict[str, list[Rate]]:
    """Rates by the model's name, in their order."""
    groups: dict[str, list[Rate]] = {}
    for rate in rates:
        groups.setdefault(rate.model or "unnamed", []).append(rate)
    return groups


def _ordered(names: Iterable[str], averages: Iterable[Average]) -> tuple[str, ...]:
    """Names by their averages, ascending; those without one after them, in their own order."""
    means = {average.name: average.mean for average in averages}
    given = list(names)

    def place(name: str) -> tuple[bool, float, int]:
        mean = means.get(name)
        return mean is None, mean or 0.0, given.index(name)

    return tuple(sorted(given, key=place))


def estimator_words(estimator: Estimator | str) -> str:
    """What an estimator does, in a few words."""
    return ESTIMATORS[Estimator(estimator)].title if estimator in set(Estimator) else str(estimator)


def model_label(name: str) -> Markup:
    """The name of a model, as the study file spells it."""
    return bdi(name, class_="model")


def language_label(name: str, tag_: str) -> Markup:
    """The name of a language with its tag."""
    return joined([name, " ", tag("span", tag_, class_="tag")]) if name != tag_ else tag("span", tag_)


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


def rate_text(rate: Rate | None) -> str:
    """A rate in one line of plain text: `7.4% [6.1, 8.9]`, `unreliable (13.2%?)`, `unreliable, no estimate`."""
    if rate is None:
        return "not estimated"
    if is_sound(rate):
        return f"{percent(rate.rate)} {interval(rate.low, rate.high)}".rstrip()
    return "unreliable, no estimate" if rate.rate is None else f"unreliable ({percent(rate.rate)}?)"
