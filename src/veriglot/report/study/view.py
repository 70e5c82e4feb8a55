"""A study's results arranged for looking up: which cell, in which order, by which estimator."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from veriglot.records import Estimator, Reliability
from veriglot.report.direction import language_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from veriglot.records import Rate
    from veriglot.study.results import Average, Cell, Model, StudyResults

__all__ = ["ALL", "View", "by_model", "is_sound"]

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
        found = {rate.estimator for cell in self.results.cells for rate in cell.rates}
        own = self.results.estimator
        return tuple(sorted(found, key=lambda each: (each != own, list(Estimator).index(each))))

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
        kept = [tags for tags in self._reliable_in.values() if tags]
        return tuple(tag for tag in self.languages if kept and all(tag in tags for tags in kept))

    @cached_property
    def unlike_means(self) -> str | None:
        """That the models' means are not of the same languages, in words; None where they are."""
        kept = [tags for tags in self._reliable_in.values() if tags]
        if len(set(kept)) < 2:
            return None
        few, many = min(map(len, kept)), max(map(len, kept))
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
    found: dict[str, list[Rate]] = {}
    for rate in rates:
        found.setdefault(rate.model or "unnamed", []).append(rate)
    return found


def _ordered(names: Iterable[str], averages: Iterable[Average]) -> tuple[str, ...]:
    """Names by their averages, ascending; those without one after them, in their own order."""
    means = {average.name: average.mean for average in averages}
    given = list(names)

    def place(name: str) -> tuple[bool, float, int]:
        mean = means.get(name)
        return mean is None, mean or 0.0, given.index(name)

    return tuple(sorted(given, key=place))
