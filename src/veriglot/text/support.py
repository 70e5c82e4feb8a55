"""Whether the values of one text (`values`) support those of another: its numbers, dates and periods."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from functools import cache, cached_property
from itertools import combinations, pairwise
from math import floor
from typing import TYPE_CHECKING

from veriglot.plugins import read_package_data
from veriglot.text.values import LARGE, PARTS, Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    _Date = tuple[int, int, int]

__all__ = ["COMPUTED", "support"]

COMPUTED = 2  # verdict on a value that can be computed from others
_FACTORS = read_package_data(__package__, "units.toml", dict[str, tuple[str, int | float]])
_OF_TIME = {unit for unit, (dimension, _) in _FACTORS.items() if dimension == "time"}
_MEASURES = set(_FACTORS) - _OF_TIME - {"pound"}  # pounds are also money
_EXACT = ("year", "month", "day", "ordinal", "century", "decade")  # never rounded
_NEAR = 0.02  # of a converted value
_COMMON = 2  # whole numbers up to here are too common to tell
_HALF = 0.5  # so is this one, and its words mean other things: `medio ambiente`, `Halbinsel`
_FIRST, _LAST = 1000, 2100  # amounts that may be years, whose `g.` is no gram
_LONG = 200  # years that nothing lasts
_LASTING = {"year": (0,), "age": (0, 1)}  # units of time, and what may be added: the birthday is still to come
_TIMES = ("倍", "배")  # what says that a number is a ratio
_NEAR_SHARE = 0.007  # by which a percentage may differ from a fraction: 66%, two thirds
_NEAR_FRACTION = 0.025  # by which a fraction may differ from a percentage: nearly a third, 31%
_MANY = 100  # neighbours; the ratios of more tell nothing
_DECIMAL = re.compile(
    "|".join(" ".join(read_package_data(__package__, "decimal_units.toml", dict[str, str]).values()).split())
)
_TELLING = 2  # digits that a number with its decimal point moved must have to be known again
_FEW = 12  # numbers of the evidence that are added and subtracted


def support(response_values: Sequence[Value], evidence_values: Sequence[Value]) -> list[int]:
    """For each value of a response, whether the values of its evidence support it.

    Returns:
        One of these for each: 1 where the same value stands in the evidence in some form (also a year within a date, or
        a rounded number); `COMPUTED` where it is a value of the evidence in another unit, the same time of day, the
        years between two of its years, the difference of two numbers that follow each other, or a ratio ("4倍"); 0
        where it may be computed in other ways (a sum, the rest of a percentage) or is too small to tell; -1 where it is
        absent, as is a part of a date that contradicts the date of the evidence that shares most with it.
    """
    evidence = _Evidence(evidence_values)
    verdicts = {key: evidence.support(value) for key, value in {value[2:]: value for value in response_values}.items()}
    return [verdicts[value[2:]] for value in response_values]


def _masked(date: _Date, count: int) -> Iterator[_Date]:
    """The date with all but `count` of the parts that it tells set to 0, for each choice of them."""
    for parts in combinations([part for part in range(3) if date[part]], count):
        yield tuple(amount * (part in parts) for part, amount in enumerate(date))  # type: ignore[misc]


class _Evidence:
    def __init__(self, values: Sequence[Value]) -> None:
        self.values = values
        self.amounts = {amount for value in values if value.kind != "month" for amount in value.amounts}
        self._units = defaultdict[float, set[str]](set)  # of each likeliest amount
        for value in values:
            if value.kind != "month":
                self._units[value.amounts[0]].add(_unit(value))
        self.dates = {date for value in values for date in (value.date, value.swapped) if date}
        self._hours = {value.hour for value in values} - {None}
        self.years = {year for year, _, _ in self.dates if year}
        self.lasting = {value.amounts[0] for value in values if value.unit in _LASTING and value.amounts[0] < _LONG}
        self._rounded_to = cache(self._at_places)

    def support(self, value: Value) -> int:
        """1, 0 or -1 as in `support`."""
        amount = value.amounts[0]
        if value.date is not None and (value.kind == "month" or sum(map(bool, value.date)) > 1):
            part = PARTS.index(value.kind)
            other = part and 3 - part  # what is the month in one order is the day in the other
            swapped = value.swapped is not None and self._has_part(value.swapped, other)
            return 1 if swapped or self._has_part(value.date, part) else -1
        if value.kind in ("century", "decade"):
            return 1 if self._has_period(*_years_of(value)) else -1
        of_day = value.hour in self._hours and amount not in self._units
        if of_day or (value.unit in _LASTING and self._differs(value)):
            return COMPUTED
        another = self._is_of_another(value)
        if not another and (amount in self._units or (amount > 12 and amount in self._hours)):
            return 1
        if amount < LARGE and self._computed(value):
            return COMPUTED
        if not another and (not self.amounts.isdisjoint(value.amounts) or self._rounds(value)):
            return 1
        common = amount <= _COMMON and (not amount % 1 or amount == _HALF)
        return 0 if common or (amount < LARGE and self._computes(value)) else -1

    def _computed(self, value: Value) -> bool:
        return self._converts(value) or self._shifts(value) or self._differs(value) or self._is_share(value)

    def _is_of_another(self, value: Value) -> bool:
        """Whether the evidence has the amount of other units alone: 42 metres, where Ada was 42 years old."""
        units = self._units.get(value.amounts[0], set()) if _unit(value) else set()
        return bool(units) and not units & {"", _unit(value)} and not _FIRST <= value.amounts[0] <= _LAST

    @cached_property
    def _shares(self) -> set[float]:
        """Fractions, and percentages as such."""
        shares = {_share(value) for value in self.values if value.kind in ("number", "percent")}
        return {share for share in shares if 0 < share < 1}

    def _is_share(self, value: Value) -> bool:
        """Whether it is a percentage for a fraction of the evidence, or the reverse."""
        share = _share(value) if value.kind in ("number", "percent") else 1
        kind, near = ("number", _NEAR_SHARE) if value.kind == "percent" else ("percent", _NEAR_FRACTION)
        return 0 < share < 1 and any(other.kind == kind and abs(_share(other) - share) <= near for other in self.values)

    @cached_property
    def _sharing(self) -> dict[_Date, tuple[set[int], ...]]:
        """Years, months and days of the dates that share the parts of a date that are not 0."""
        sharing: dict[_Date, tuple[set[int], ...]] = defaultdict(lambda: (set(), set(), set()))
        for date in self.dates:
            for masked in (masked for count in (1, 2, 3) for masked in _masked(date, count)):
                for amounts, amount in zip(sharing[masked], date, strict=True):
                    amounts.add(amount)
        return sharing

    def _has_part(self, date: _Date, part: int) -> bool:
        """Whether the dates that share most with a date have one of its parts, or else the evidence."""
        best, most = set[int](), 4
        while most and not best:
            most -= 1
            shared = [masked for masked in _masked(date, most) if masked in self._sharing]
            best = {amount for masked in shared for amount in self._sharing[masked][part]}
        by_itself = (part != 1 and not any(best)) or (part == 0 and most < 2)
        return date[part] in best or (by_itself and date[part] in self.amounts)

    def _has_period(self, first: int, last: int) -> bool:
        periods = (_years_of(other) for other in self.values if other.kind in ("century", "decade"))
        within = any(first - 1 <= start and end <= last + 1 for start, end in periods)
        return within or any(first <= year <= last for year in self.years)

    @cached_property
    def _to_round(self) -> set[float]:
        others = {amount for other in self.values if other.kind not in _EXACT for amount in other.amounts}
        return {amount for amount in others if (amount >= 3 or amount % 1) and amount < LARGE}

    def _rounds(self, value: Value) -> bool:
        """Whether it is a number of the evidence rounded or cut to fewer digits, at least two unless it says so."""
        for amount in value.amounts if value.kind not in _EXACT else ():
            if (amount >= 3 or amount % 1) and amount < LARGE:
                shown = len(_digits_of(amount))
                tells = value.rounded and amount == value.amounts[0]
                if shown + tells + (amount < 1) >= 2 and amount in self._rounded_to(
                    len(str(int(amount)).lstrip("0")) - shown
                ):
                    return True
        return False

    def _at_places(self, places: int) -> set[float]:
        step, ways = 10.0**places, (round, floor)
        return {round(way(exact / step) * step, 6) for exact in self._to_round for way in ways}

    @cached_property
    def _alike(self) -> Mapping[object, set[float]]:
        alike = defaultdict[object, set[float]](set)  # by kind and unit, or the time of day, which is added to nothing
        for value in self.values:
            alike[value.kind, value.unit or value.hour].add(value.amounts[0])
        return alike

    def _computes(self, value: Value) -> bool:
        """Whether the value is the sum or difference of two others that it can be computed from."""
        amount = value.amounts[0]
        if (amount % 1 or value.kind == "percent") and not self._shares:
            ratios = (first.amounts[0] / second.amounts[0] for first, second in self._neighbours if second.amounts[0])
            if any(abs(ratio - _share(value)) <= _NEAR_SHARE for ratio in ratios):
                return True
        alike = self._alike.get((value.kind, value.unit or value.hour), set())
        if value.kind == "percent":
            alike = {100.0 - amount} & alike | {100.0}
        elif value.kind == "year" or (value.unit in _LASTING and amount < _LONG):
            alike = self.lasting | self.years
        elif amount < 10 or len(alike) > _FEW or value.kind != "number":
            return False
        else:
            alike = {other for other in alike if 0.1 * amount <= other <= 10 * amount}
        sums = [amount + later for later in _LASTING.get(value.unit, (0,))]
        others = ((total, other) for total in sums for other in alike)
        return any(other + total in alike or (total != 2 * other and total - other in alike) for total, other in others)

    @cached_property
    def _neighbours(self) -> list[tuple[Value, Value]]:
        numbers = [value for value in self.values if value.kind == "number" and value.amounts[0] < LARGE]
        return [] if len(numbers) > _MANY else [pair for both in pairwise(numbers) for pair in (both, both[::-1])]

    def _differs(self, value: Value) -> bool:
        """Whether the value is the time between two years, the difference of neighbours, or a ratio."""
        amount = value.amounts[0]
        if value.unit in _LASTING and amount < _LONG:
            return any(year + amount + later in self.years for year in self.years for later in _LASTING[value.unit])
        if value.kind != "number":
            return False
        if value.counted[:1] in _TIMES:
            return any(other * amount in self.amounts for other in self.amounts if other)
        thing = None if amount >= 10 else _thing(value)  # small ones must be of the same
        return not self._differences.get(thing, set()).isdisjoint(value.amounts)

    @cached_property
    def _differences(self) -> dict[str | None, set[float]]:
        """Of neighbours in one unit, by what the first is a number of; under None all."""
        plain = [value for value in self.values if value.kind == "number" and value.amounts[0] < LARGE]
        differences = defaultdict[str | None, set[float]](set)
        for first, second in pairwise(plain):
            if first.unit == second.unit:
                for key in {None, _thing(first) if _thing(first) == _thing(second) else None}:
                    differences[key].add(abs(first.amounts[0] - second.amounts[0]))
        return differences

    def _shifts(self, value: Value) -> bool:
        """Whether it is a value of the evidence in another unit: its decimal point moved."""
        amount, digits = value.amounts[0], _digits_of(value.amounts[0])
        counts = value.kind == "number" and value.counted and len(digits) >= _TELLING
        for other in self._by_digits[digits] if counts else ():
            ratio, units = amount / other.amounts[0], {other.unit, value.unit}
            if other.counted[:2] == value.counted[:2] or units <= _FACTORS.keys() or units & _OF_TIME:
                continue  # `_converts` knows
            near = 0.05 < ratio < 20 and len(units) == 1  # 12万 are not 12,000 people
            parted = (units & _MEASURES and 0.00005 < ratio < 20000) or any(
                _DECIMAL.match(counted) for counted in (other.counted, value.counted)
            )
            if not (other.scaled or value.scaled) or (parted and not near):
                return True
        return False

    @cached_property
    def _by_digits(self) -> Mapping[str, list[Value]]:
        result = defaultdict[str, list[Value]](list)  # numbers with these digits
        for value in self.values:
            if value.kind == "number" and value.counted and value.amounts[0] < LARGE:
                result[_digits_of(value.amounts[0])].append(value)
        return result

    @cached_property
    def _measures(self) -> dict[str, list[float]]:
        """Amounts by unit, in order."""
        measures: dict[str, set[float]] = defaultdict(set)
        for value in self.values:
            if value.unit in _FACTORS and value.amounts[0] < LARGE:
                measures[value.unit].add(value.amounts[0])
        return {unit: sorted(amounts) for unit, amounts in measures.items()}

    def _converts(self, value: Value) -> bool:
        dimension, factor = _FACTORS.get(value.unit, ("", 1))
        size = value.amounts[0] * factor
        for unit, amounts in self._measures.items():
            other, scale = _FACTORS[unit]
            if unit != value.unit and other == dimension:
                at = bisect_left(amounts, size / scale)  # the nearest below and above
                if any(abs(amount * scale - size) <= _NEAR * size for amount in amounts[max(0, at - 1) : at + 1]):
                    return True
        return False


def _thing(value: Value) -> str | None:
    """What a value is a number of, as far as it tells; particles follow counters of one character."""
    return value.unit or (value.counted[:1] if value.counted > "\u3000" else value.counted[:2]) or None


def _unit(value: Value) -> str:
    """Its unit, as far as another one is another thing."""
    unit = "year" if value.unit == "age" else value.unit
    return value.kind if value.kind == "percent" else unit if unit in _FACTORS else ""


def _share(value: Value) -> float:
    return min(value.amounts[0], LARGE) / (100 if value.kind == "percent" else 1)


def _digits_of(amount: float) -> str:
    """The digits of a number without the zeros around them."""
    return f"{amount:.11e}".split("e")[0].replace(".", "").rstrip("0")


def _years_of(value: Value) -> tuple[int, int]:
    first = int(value.amounts[0])
    if value.kind == "century":
        return 100 * first - 99, 100 * first
    return first, first + (99 if first % 100 == 0 else 9)
