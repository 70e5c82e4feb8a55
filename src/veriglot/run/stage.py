"""A stage: rows in, one record a row out, in order, into a file of lines; killed at any moment, it goes on from there.

The records are of any kind that has an `id`, the same as the row's they were made from. What `Ledger` keeps for
predictions is kept here for all: beside `out.jsonl` stand its manifest `out.jsonl.progress` and, where rows came to
nothing, `out.jsonl.failed.jsonl`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import msgspec

from veriglot.errors import VeriglotError
from veriglot.run.carry import Tally
from veriglot.run.failed import FailedRow
from veriglot.run.journal import Journal
from veriglot.run.ledger import Ledger
from veriglot.run.manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from veriglot.run.manifest import Option

__all__ = ["Progress", "Row", "Stage"]


class Row(Protocol):
    """Anything with an id of its own: a sample, an article, a question that is still to be asked."""

    @property
    def id(self) -> str:
        """Unique among the rows of the stage."""


R = TypeVar("R", bound=Row)


class Progress(msgspec.Struct, frozen=True):
    """How far an output is: rows done, rows that failed, and whether it is finished."""

    done: int
    failed: int
    finished: bool

    @classmethod
    def of(cls, output: Path) -> Progress:
        """Look at the files of an output, which another process may be writing; all zero where there are none.

        Raises:
            UsageError: the manifest is damaged.
        """
        manifest = Manifest.load(output.with_name(output.name + ".progress"))
        if manifest is None:
            return cls(0, 0, finished=False)
        if manifest.finished:
            return cls(manifest.rows, manifest.failed, finished=True)
        kept = output.with_name(output.name + ".rows.jsonl")
        rows, failures = (
            Journal(kept if kept.exists() else output),
            Journal(output.with_name(f"{output.name}.failed.jsonl")),
        )
        return cls(sum(1 for _ in rows.lines()), sum(1 for _ in failures.lines()), finished=False)


class Stage(Generic[R]):
    """One output that is made row by row.

    Args:
        output: the file of JSON lines to make.
        signature: one line that says what makes the records; another signature refuses to continue.
        inputs: paths of the files that the rows come from, whose hashes are compared when it continues.
        options: every other setting that changes the records, by the name the user knows.
        finish: makes `output` from the records (arguments: their file, output); None where they are the output.
        restart: make the output anew, whatever is there.
        retry: make it anew from its first failed row on. What a cache holds costs nothing.
        maker: what the signature is of, in one word for messages.
    """

    def __init__(
        self,
        output: Path,
        *,
        signature: str,
        inputs: Sequence[str] = (),
        options: dict[str, Option] | None = None,
        finish: Callable[[Path, Path], None] | None = None,
        restart: bool = False,
        retry: bool = False,
        maker: str = "maker",
    ) -> None:
        self.output = output
        self._ledger = Ledger(
            output,
            inputs=inputs,
            signature=signature,
            options=options or {},
            finish=finish,
            restart=restart,
            retry=retry,
            maker=maker,
        )

    def check(self) -> None:
        """Whether `run` may take the output: cheap, so that a wrong call stops before any work.

        Raises:
            UsageError: the output was made from something else, or not by a run.
        """
        self._ledger.check()

    def run(
        self,
        rows: Iterable[R | FailedRow],
        work: Callable[[Iterator[R]], Iterable[msgspec.Struct | FailedRow]],
        *,
        seen: Callable[[msgspec.Struct | FailedRow], None] | None = None,
    ) -> Tally:
        """Make the output, or what is missing of it.

        Args:
            rows: every row, the same ones in the same order at each call; those that are done are passed over, and a
                `FailedRow` (one that could not be read) is noted in its place. Read only as fast as `work` takes them.
            work: gets the rows that are not done, and yields one record (with the row's id) or one `FailedRow` for
                each, in order. It may read ahead, from another thread too. Called once, also where no row is left.
            seen: called for every row that this call added.

        Returns:
            What became of all rows, those of earlier calls included.

        Raises:
            UsageError: as `check`; another process is making the output; or the rows are not those it was begun with.
            Whatever `work` raises. The rows that are done are kept, and the same call continues after them.
        """
        ledger = self._ledger
        ledger.open()
        try:
            if not ledger.finished:
                for result in _matched(ledger.remaining(rows), work):
                    if isinstance(result, FailedRow):
                        ledger.fail(result)
                    else:
                        ledger.write(result)
                    if seen is not None:
                        seen(result)
            ledger.finish()
        finally:
            ledger.close()
        return Tally(ledger.statuses, ledger.failed, ledger.reused)


def _matched(
    rows: Iterator[R | FailedRow], work: Callable[[Iterator[R]], Iterable[msgspec.Struct | FailedRow]]
) -> Iterator[msgspec.Struct | FailedRow]:
    """The results of `work`, each held against the row it belongs to, with the rows that could not be read between."""
    waiting: deque[str | FailedRow] = deque()  # ids that `work` has taken and not answered, and what stands between

    def readable() -> Iterator[R]:
        for row in rows:
            if isinstance(row, FailedRow):
                waiting.append(row)
            else:
                waiting.append(row.id)
                yield row

    results = iter(work(readable()))
    try:
        for result in results:
            yield from _unreadable(waiting)
            yield _belonging(result, waiting.popleft() if waiting else None)
        for row in rows:  # what `work` has not taken
            waiting.append(row if isinstance(row, FailedRow) else row.id)
            if not isinstance(row, FailedRow):
                break
        yield from _unreadable(waiting)
        if waiting:
            raise VeriglotError(f"A stage ended without a record for {waiting[0]!r}.")
    finally:
        close = getattr(results, "close", None)
        if close is not None:
            close()  # so that threads behind it stop now, and not when the last reference is gone


def _belonging(result: msgspec.Struct | FailedRow, due: str | FailedRow | None) -> msgspec.Struct | FailedRow:
    """`result`, if it belongs to the row that is due; a failed row gets that row's id."""
    got = getattr(result, "id", None)
    if got is None and isinstance(result, FailedRow) and isinstance(due, str):
        return msgspec.structs.replace(result, id=due)
    if due is None or got != due:
        raise VeriglotError(f"A stage gave a record for {got!r} where one for {due!r} was due.")
    return result


def _unreadable(waiting: deque[str | FailedRow]) -> Iterator[FailedRow]:
    while waiting and isinstance(waiting[0], FailedRow):
        row = waiting.popleft()
        assert isinstance(row, FailedRow)
        yield row
