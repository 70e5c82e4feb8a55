"""Pace and drift: what is worth a look about somebody's work, with reasons. It never says that somebody is bad.

Watched are seconds an item and a word of the response, work that went faster than anybody reads, agreement with hidden
checks and with others, and whether the newest work differs from the work before it. What is worth a look is a flag with
its reason and its numbers; what follows from it is for people to say.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from veriglot.annotate.entries import PaceEntry

__all__ = ["Flag", "Pace", "Work", "pace_of"]

_TOO_FAST_SHARE = 0.1  # of the items, from which it is worth a look
_DRIFT = 2.0  # how many times faster, or as many marks, the newest work has to be
_FEWER = 0.15  # how much lower the agreement of the newest work has to be
_FEW = 5  # items below which nothing is said


class Work(NamedTuple):
    """One item that somebody handed in.

    Attributes:
        at: when.
        words: of the response.
        seconds: of work, as the page counted them; 0 where it did not.
        marks: spans, or units that are not clean.
        skipped: whether it was left out.
        check: F1 against the known answer, where it was a hidden check; None otherwise.
        others: the mean likeness to others' layers of the same item, from 0 to 1; None where nobody else has it.
    """

    at: datetime
    words: int
    seconds: float
    marks: int
    skipped: bool
    check: float | None = None
    others: float | None = None


class Flag(msgspec.Struct, frozen=True):
    """Something worth a look.

    Attributes:
        kind: `fast`, `checks`, `faster`, `marks`, `drift`, `skips`.
        reason: in a sentence, with its numbers.
    """

    kind: str
    reason: str


class Pace(msgspec.Struct, frozen=True):
    """How somebody's work goes.

    Attributes:
        items: handed in, skipped ones too.
        skipped: of these.
        seconds: of work on them.
        seconds_per_item: the median over items with a time; None where none has.
        seconds_per_word: the median of seconds a word of the response.
        too_fast: items read faster than `pace.fastest` words a second.
        checks: hidden checks handed in.
        check_f1: the mean F1 on them; None where there were none.
        others: the mean likeness to others, over shared items; None where there are none.
        marks_per_item: the mean.
        flags: what is worth a look.
    """

    items: int
    skipped: int
    seconds: float
    seconds_per_item: float | None
    seconds_per_word: float | None
    too_fast: int
    checks: int
    check_f1: float | None
    others: float | None
    marks_per_item: float | None
    flags: tuple[Flag, ...]


def pace_of(work: Sequence[Work], entry: PaceEntry, check_threshold: float = 0.0) -> Pace:
    """The figures of somebody's work; a pure function of it.

    Args:
        work: in any order.
        entry: what counts as too fast, and how much work is the newest.
        check_threshold: the F1 on hidden checks below which a flag is raised.
    """
    rows = sorted(work, key=lambda one: one.at)
    done = [one for one in rows if not one.skipped]
    timed = [one for one in done if one.seconds > 0]
    fast = [one for one in timed if one.words / one.seconds > entry.fastest]
    checks = [one.check for one in rows if one.check is not None]
    flags = [
        *_fast(fast, timed, entry),
        *_checks(checks, check_threshold),
        *_skips(rows),
        *_drift(done, entry.window),
    ]
    return Pace(
        items=len(rows),
        skipped=len(rows) - len(done),
        seconds=sum(one.seconds for one in rows),
        seconds_per_item=_median([one.seconds for one in timed]),
        seconds_per_word=_median([one.seconds / one.words for one in timed if one.words]),
        too_fast=len(fast),
        checks=len(checks),
        check_f1=_mean(checks),
        others=_mean([one.others for one in rows if one.others is not None]),
        marks_per_item=_mean([float(one.marks) for one in done]),
        flags=tuple(flags),
    )


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _fast(fast: Sequence[Work], timed: Sequence[Work], entry: PaceEntry) -> list[Flag]:
    if len(timed) < _FEW or len(fast) < _TOO_FAST_SHARE * len(timed):
        return []
    said = f"{len(fast)} of {len(timed)} items took less time than reading {entry.fastest:g} words a second"
    return [Flag("fast", said)]


def _checks(checks: Sequence[float], threshold: float) -> list[Flag]:
    found = _mean(checks)
    if found is None or len(checks) < 3 or found >= threshold:
        return []
    return [Flag("checks", f"F1 of {found:.2f} on {len(checks)} items with known answers, below {threshold:g}")]


def _skips(rows: Sequence[Work]) -> list[Flag]:
    skipped = sum(one.skipped for one in rows)
    if len(rows) < 2 * _FEW or skipped <= len(rows) / 3:
        return []
    return [Flag("skips", f"{skipped} of {len(rows)} items were left out")]


def _drift(done: Sequence[Work], window: int) -> list[Flag]:
    """The newest `window` items against those before, where there are as many."""
    newest, before = done[-window:], done[:-window]
    if len(newest) < max(_FEW, window) or len(before) < max(_FEW, window):
        return []
    found = []
    speed = [
        _median([one.seconds / one.words for one in rows if one.seconds > 0 and one.words]) for rows in (before, newest)
    ]
    if speed[0] and speed[1] and speed[0] > _DRIFT * speed[1]:
        said = f"the newest {len(newest)} items took {speed[1]:.2f} seconds a word, those before {speed[0]:.2f}"
        found.append(Flag("faster", said))
    marks = [sum(one.marks for one in rows) / len(rows) for rows in (before, newest)]
    if max(marks) >= 1.0 and max(marks) > _DRIFT * min(marks):
        said = f"{marks[1]:.1f} marks an item in the newest {len(newest)} items, {marks[0]:.1f} before"
        found.append(Flag("marks", said))
    for name, what in (("check", "F1 on items with known answers"), ("others", "likeness to others")):
        old, new = ([v for one in rows if (v := getattr(one, name)) is not None] for rows in (before, newest))
        if len(old) >= 3 and len(new) >= 3 and (mean := sum(new) / len(new)) < sum(old) / len(old) - _FEWER:
            said = f"{what} of {mean:.2f} in the newest {len(newest)} items, {sum(old) / len(old):.2f} before"
            found.append(Flag("drift", said))
    return found
