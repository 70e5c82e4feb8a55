"""Carry the rows of any number of inputs through one engine into their outputs."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from veriglot.run.failed import FailedRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from veriglot.records import Prediction, Sample
    from veriglot.run.engine import Engine
    from veriglot.run.ledger import Ledger

__all__ = ["Errand", "Tally", "carry"]


@dataclass
class Errand:
    """One output to make: where its rows come from and where they go.

    Attributes:
        rows: opens the input; called once, when its turn comes, so that thousands of inputs are not open together.
        ledger: the output, opened.
    """

    rows: Callable[[], Iterable[Sample | FailedRow]]
    ledger: Ledger


@dataclass
class Tally:
    """What became of the rows.

    Attributes:
        statuses: predictions by status, those of an earlier run included.
        failed: rows that could not be read.
        reused: rows that an earlier run had done.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    failed: int = 0
    reused: int = 0

    @property
    def rows(self) -> int:
        """All rows."""
        return self.statuses.total() + self.failed

    @property
    def unjudged(self) -> int:
        """Rows that failed: not read, or not judged."""
        return self.failed + self.statuses["failed"]


@dataclass(frozen=True)
class _End:
    """Marks the end of an errand's rows in the stream through the engine."""

    errand: Errand


_Other = FailedRow | _End  # what passes through the engine beside samples


def carry(
    errands: Sequence[Errand],
    engine: Engine,
    *,
    stop: bool = False,
    seen: Callable[[Sample | FailedRow, Prediction | None], None] | None = None,
) -> Tally:
    """Make every output, all processes over all inputs, in order.

    Args:
        errands: what to make; outputs that are finished are counted and left alone.
        engine: what judges the rows.
        stop: raise at the first row that cannot be read instead of noting it; what stands before it is kept.
        seen: called for every row that this call added.

    Raises:
        InputError: with `stop`, the first row that cannot be read.

    Whatever ends it, the rows that are done are kept, and the same call continues after them.
    """
    for errand in errands:
        errand.ledger.check()
    current = deque(errands)
    try:
        answers: Iterator[tuple[Sample | _Other, Prediction | None]] = engine.run(_stream(errands))
        for row, prediction in answers:
            if isinstance(row, _End):
                row.errand.ledger.finish()
                current.popleft()
                continue
            _settle(current[0].ledger, row, prediction, stop=stop)
            if seen is not None:
                seen(row, prediction)
    finally:
        for errand in errands:
            errand.ledger.close()
    return _sum(errands)


def _stream(errands: Sequence[Errand]) -> Iterator[Sample | FailedRow | _End]:
    for errand in errands:
        errand.ledger.open()
        if not errand.ledger.finished:
            yield from errand.ledger.remaining(errand.rows())
        yield _End(errand)


def _settle(ledger: Ledger, row: Sample | FailedRow, prediction: Prediction | None, *, stop: bool) -> None:
    if prediction is not None:
        ledger.write(prediction)
        return
    assert isinstance(row, FailedRow)
    if stop:
        raise row.as_error()
    ledger.fail(row)


def _sum(errands: Sequence[Errand]) -> Tally:
    tally = Tally()
    for errand in errands:
        tally.statuses.update(errand.ledger.statuses)
        tally.failed += errand.ledger.failed
        tally.reused += errand.ledger.reused
    return tally
