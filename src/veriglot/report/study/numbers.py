"""Shares as people read them. An unreliable rate has a form of its own, which no plain number has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.report.study.view import is_sound

if TYPE_CHECKING:
    from veriglot.records import Rate

__all__ = ["count", "interval", "percent", "points", "rate_text", "signed"]

MINUS = "\N{MINUS SIGN}"


def percent(value: float | None, digits: int = 1) -> str:
    """A share as `7.4%`; one that would round to nothing as `<0.1%`, and to everything as `>99.9%`; None as a dash."""
    if value is None:
        return "–"
    least = 10**-digits
    points = 100 * value
    if 0 < points < least / 2:
        return f"<{least:.{digits}f}%"
    if 100 - least / 2 < points < 100:
        return f">{100 - least:.{digits}f}%"
    return f"{points:.{digits}f}%".replace("-", MINUS)


def points(value: float, digits: int = 1) -> str:
    """A share in percentage points without the sign of the unit: `7.4`."""
    return f"{100 * value:.{digits}f}".replace("-", MINUS)


def signed(value: float, digits: int = 1) -> str:
    """A difference of shares in percentage points, with its sign: `+1.3`, `−0.4`, `0.0`."""
    text = f"{100 * value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", MINUS)


def interval(low: float | None, high: float | None, digits: int = 1) -> str:
    """Both ends in percentage points, `[6.1, 8.9]`; empty without an interval."""
    if low is None or high is None:
        return ""
    return f"[{points(low, digits)}, {points(high, digits)}]"


def count(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: `1 model`, `1,204 responses`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def rate_text(rate: Rate | None) -> str:
    """A rate in one line of plain text: `7.4% [6.1, 8.9]`, `unreliable (13.2%?)`, `unreliable, no estimate`."""
    if rate is None:
        return "not estimated"
    if is_sound(rate):
        return f"{percent(rate.rate)} {interval(rate.low, rate.high)}".rstrip()
    return "unreliable, no estimate" if rate.rate is None else f"unreliable ({percent(rate.rate)}?)"
