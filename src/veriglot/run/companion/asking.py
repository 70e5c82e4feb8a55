"""Batches through a companion that may die over one of their rows: the others get their answers all the same."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from veriglot.errors import VeriglotError
from veriglot.records import Status
from veriglot.run.companion.process import Companion, GoneError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from veriglot.run.companion.messages import Row

__all__ = ["Keeper", "Refused", "Result", "ask"]

_ROWS = 64  # of a batch: what a time-out or a crash may cost


@dataclass(frozen=True)
class Result:
    """What an engine made of a row: its number, and what else it gave."""

    value: float
    parts: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Refused:
    """Why a row has no number."""

    status: Status
    reason: str


class Keeper:
    """Keeps a companion running: starts it on first use, and another one where it died.

    One batch at a time: threads that share it wait for each other.

    Args:
        make: starts a companion.

    Raises:
        VeriglotError: what `make` raises. It is called at once, so that a model that cannot be loaded is known early.
    """

    def __init__(self, make: Callable[[], Companion]) -> None:
        self._make = make
        self._companion: Companion | None = make()
        self.hello, self.about = self._companion.hello, self._companion.about
        self._lock = threading.Lock()

    def ask(self, rows: Sequence[dict[str, Any]]) -> list[Result | Refused]:
        """One result a row, in order; a row over which the process dies twice is `failed`, and says how."""
        with self._lock:
            return [one for start in range(0, len(rows), _ROWS) for one in self._ask(rows[start : start + _ROWS])]

    def close(self) -> None:
        """Have the companion leave; the next batch starts another."""
        if self._companion is not None:
            self._companion.close()
            self._companion = None

    def _ask(self, rows: Sequence[dict[str, Any]], deaths: int = 0) -> list[Result | Refused]:
        try:
            if self._companion is None:
                self._companion = self._make()
            return [_read(row) for row in self._companion.run(rows)]
        except VeriglotError as error:  # it started before, and now it does not
            return [Refused(Status.FAILED, error.message) for _ in rows]
        except GoneError as gone:
            self._companion = None
            if len(rows) > 1:  # halve until the row stands alone that kills it
                middle = len(rows) // 2
                return [*self._ask(rows[:middle]), *self._ask(rows[middle:])]
            if deaths:
                return [Refused(Status.FAILED, f"its process died twice over this row: {gone}")]
            return self._ask(rows, deaths + 1)


def ask(keeper: Keeper, rows: Sequence[dict[str, Any]]) -> list[Result | Refused]:
    """As `Keeper.ask`, every distinct row asked once."""
    import msgspec

    keys = [msgspec.json.encode(row, order="sorted") for row in rows]
    distinct = dict(zip(keys, rows, strict=True))
    found = dict(zip(distinct, keeper.ask(list(distinct.values())), strict=True))
    return [found[key] for key in keys]


def _read(row: Row) -> Result | Refused:
    if row.error is not None or row.value is None:
        status = Status(row.status) if row.status in set(Status) - {Status.SCORED} else Status.FAILED
        return Refused(status, row.error or "the engine gave neither a number nor a reason")
    if not abs(row.value) < float("inf"):
        return Refused(Status.FAILED, f"the engine gave {row.value}")
    return Result(row.value, row.parts, row.details)
