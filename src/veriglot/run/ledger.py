"""One output in the making: its rows, the rows that failed, and the manifest; continued, never redone, never lost.

Beside `out.jsonl` stand `out.jsonl.progress` (what it is made from) and, where rows could not be read,
`out.jsonl.failed.jsonl`. Each input row ends as one line of either file, in order, so the lines say how far the run is.
An output in another format (Parquet, HTML) is first kept as `out.parquet.rows.jsonl` and made from it at the end.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from veriglot.errors import UsageError
from veriglot.records import encode
from veriglot.run.failed import FailedRow
from veriglot.run.journal import Journal
from veriglot.run.lock import Lock
from veriglot.run.manifest import InputFile, Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from veriglot.run.manifest import Option

__all__ = ["Ledger"]

P = TypeVar("P")

_SAVE_EVERY = 60.0  # seconds: what a kill takes from the time that the manifest tells
_RESTART = "Type the command again with --restart to make it anew, or name another output."


class _Head(msgspec.Struct):
    """What every finished row has; records other than predictions have no status and count as `done`."""

    id: str
    status: str = "done"


class Ledger:
    """One output and what belongs to it.

    Args:
        output: the file to make.
        inputs: paths of the input files, in order; `-` is standard input, which cannot be continued.
        signature: of what makes the rows: the detector's, or that of a model and its prompts.
        options: every other option that changes the rows, by the name the user knows.
        finish: makes `output` from the rows (arguments: rows file, output); None where the rows are the output.
        restart: make the output anew, whatever is there.
        retry: take up a finished or half-finished output at its first failed row, and make it anew from there.
        maker: what the signature is of, in one word for messages.
    """

    def __init__(
        self,
        output: Path,
        *,
        inputs: Sequence[str],
        signature: str,
        options: dict[str, Option],
        finish: Callable[[Path, Path], None] | None = None,
        restart: bool = False,
        retry: bool = False,
        maker: str = "detector",
    ) -> None:
        self.output = output
        self.progress = output.with_name(output.name + ".progress")
        self.rows = Journal(output if finish is None else output.with_name(output.name + ".rows.jsonl"))
        self.failures = Journal(output.with_name(output.name + ".failed.jsonl"))
        self.statuses: Counter[str] = Counter()
        self.failed = 0
        self.reused = 0
        self.finished = False
        self._inputs = tuple(inputs)
        self._signature = signature
        self._options = options
        self._finish = finish
        self._restart = restart
        self._retry = retry
        self._maker = maker
        self._manifest: Manifest | None = None
        self._lock: Lock | None = None
        self._earlier: float | None = 0.0  # seconds of earlier calls; None where they did not say
        self._began = self._saved = 0.0

    @property
    def done(self) -> int:
        """Rows that need no more work: written, or noted as failed."""
        return self.statuses.total() + self.failed

    def check(self) -> None:
        """Whether `open` may take the output, without taking it: cheap, so that a wrong call stops before any work.

        Raises:
            UsageError: the output was made from something else, or not by a run.
        """
        self._refuse_own_input()
        before = self._before()
        if before is not None:
            self._compare(before)
        elif not self._restart:
            self._refuse_unknown()

    def open(self) -> None:
        """Take hold of the output: begin it, continue it, or find it finished (`finished` is then true).

        Raises:
            UsageError: as `check`, or another process is making the output.
        """
        self._began = time.monotonic()
        self.output.parent.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(self.output)
        try:
            self.check()
            before = self._before()
            self._earlier = before.seconds if before is not None else 0.0
            if before is not None and self._again(before) and self._finish is not None:
                before = None  # its rows went into the output and cannot be taken up singly
            if before is None:
                for path in {self.output, self.rows.path, self.failures.path}:
                    path.unlink(missing_ok=True)
            else:
                self._continue(before)
            if not self.finished:
                self._manifest = self._present(before)
                self._save(finished=False)
        except BaseException:
            self._manifest = None  # what is there is not ours to describe
            self.close()
            raise

    def remaining(self, rows: Iterable[P]) -> Iterator[P]:
        """`rows` without those that are done; checks that what is done was made from the same rows.

        Raises:
            UsageError: a row of the output has another id than the row of the input at its place.
        """
        source = iter(rows)
        failed = {row.row for row in self._failed_rows()}
        heads = self._heads()
        for place in range(self.done):
            row = next(source, None)
            if place in failed:
                continue
            head = next(heads)
            if row is None or getattr(row, "id", None) != head.id:
                raise UsageError(
                    f"Row {place + 1} of the input is not the one that {self.rows.path} was made from ({head.id!r}).",
                    remedy=_RESTART,
                )
        yield from source

    def write(self, record: msgspec.Struct) -> None:
        """Add the next row: a prediction, or any record with an `id`."""
        # After a power failure the file of failed rows must not know less than the rows that followed them.
        self.failures.sync()
        self.rows.append(encode(record))
        self.statuses[getattr(record, "status", "done")] += 1
        self._note_time()

    def fail(self, row: FailedRow) -> None:
        """Add the next row, which could not be read or done."""
        self.failures.append(encode(msgspec.structs.replace(row, row=self.done)))
        self.failed += 1
        self._note_time()

    def finish(self) -> None:
        """Every row is done: make the output and say so in the manifest. An output that was finished stays as it is."""
        if self.finished:
            self.close()
            return
        self.rows.touch()
        self.rows.close()
        self.failures.close()
        if self._finish is not None:
            partial = self.output.with_name(self.output.name + ".partial")
            self._finish(self.rows.path, partial)
            partial.replace(self.output)
        self._save(finished=True)
        self.finished = True
        if self._finish is not None:
            self.rows.path.unlink()
        self.close()

    def close(self) -> None:
        """Let go of the output; what is done stays and can be continued."""
        self.rows.close()
        self.failures.close()
        if self._manifest is not None and not self.finished:
            self._save(finished=False)
        self._manifest = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _before(self) -> Manifest | None:
        return None if self._restart else Manifest.load(self.progress)

    def _again(self, before: Manifest) -> bool:
        """Whether a finished output is to be taken up once more, for the sake of its failed rows."""
        return self._retry and before.finished and before.failed > 0

    def _present(self, before: Manifest | None) -> Manifest:
        known = {file.path: file for file in before.inputs} if before is not None else {}
        inputs = tuple(InputFile.of(path, known.get(path)) for path in self._inputs)
        return Manifest(inputs, self._signature, self._options)

    def _refuse_own_input(self) -> None:
        ours = {path.resolve() for path in (self.output, self.progress, self.rows.path, self.failures.path)}
        for path in self._inputs:
            if path != "-" and Path(path).resolve() in ours:
                raise UsageError(f"{path} is an input and would be overwritten.", remedy="Name another output.")

    def _refuse_unknown(self) -> None:
        for path in (self.output, self.rows.path):
            if path.exists():
                raise UsageError(f"{path} is there already, and nothing says how it was made.", remedy=_RESTART)

    def _compare(self, before: Manifest) -> None:
        differences = before.differences(self._present(before), maker=self._maker)
        if "-" in self._inputs:
            differences.append("standard input cannot be compared with what it was")
        if differences:
            raise UsageError(f"{self.output} was begun otherwise: {'; '.join(differences)}.", remedy=_RESTART)

    def _continue(self, before: Manifest) -> None:
        intact = self.output.exists() and self.output.stat().st_size == before.output_bytes
        if before.finished and intact and not self._again(before):
            self.finished = True
            self.statuses.update(before.statuses)
            self.failed = before.failed
            self.reused = self.done
            if self._finish is not None:
                self.rows.path.unlink(missing_ok=True)
            return
        if before.finished and self.output.exists() and not intact:
            raise UsageError(f"{self.output} was changed after it was finished.", remedy=_RESTART)
        # Said before anything is cut off: a kill in between would leave what looks changed by somebody else.
        msgspec.structs.replace(before, finished=False, output_bytes=0).save(self.progress)
        self.rows.repair()
        self.failures.repair()
        if self._retry:
            self._cut_at_first_failure()
        self.statuses.update(head.status for head in self._heads())
        self._drop_failures_ahead()
        self.reused = self.done

    def _cut_at_first_failure(self) -> None:
        first = next(self._failed_rows(), None)
        if first is not None:
            if first.row is not None and self.rows.path.exists():
                self.rows.keep(first.row)
            self.failures.keep(0)

    def _drop_failures_ahead(self) -> None:
        """Keep the failed rows that belong before or between the rows; those further on will be met again."""
        written = self.statuses.total()
        for row in self._failed_rows():
            if row.row is None or row.row > written + self.failed:
                break
            self.failed += 1
        if self.failures.path.exists():
            self.failures.keep(self.failed)

    def _heads(self) -> Iterator[_Head]:
        decoder = msgspec.json.Decoder(_Head)
        for number, line in enumerate(self.rows.lines(), start=1):
            try:
                yield decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                raise UsageError(f"{self.rows.path}, line {number} is no finished row.", remedy=_RESTART) from None

    def _failed_rows(self) -> Iterator[FailedRow]:
        decoder = msgspec.json.Decoder(FailedRow)
        for number, line in enumerate(self.failures.lines(), start=1):
            try:
                yield decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                raise UsageError(f"{self.failures.path}, line {number} is damaged.", remedy=_RESTART) from None

    def _note_time(self) -> None:
        if time.monotonic() - self._saved > _SAVE_EVERY:
            self._save(finished=False)

    def _save(self, *, finished: bool) -> None:
        assert self._manifest is not None
        self._saved = time.monotonic()
        self._manifest = msgspec.structs.replace(
            self._manifest,
            rows=self.statuses.total(),
            failed=self.failed,
            statuses=dict(sorted(self.statuses.items())),
            finished=finished,
            output_bytes=self.output.stat().st_size if finished else 0,
            seconds=None if self._earlier is None else round(self._earlier + self._saved - self._began, 3),
        )
        self._manifest.save(self.progress)
