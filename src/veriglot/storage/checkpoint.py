"""Outputs made row by row that resume after a kill: manifest, checkpoint, failed rows and usage.

Beside `out.jsonl` stand `out.jsonl.progress`, which says what it is made from and so whether a run may continue it,
and, where rows failed, `out.jsonl.failed.jsonl`. Each input row ends as one line of either file, in order, so the lines
say how far the run is. An output in another format (Parquet, HTML) is first kept as `out.parquet.rows.jsonl` and made
from it at the end. Every line goes to the operating system in one append: a kill leaves at most one line without its
line break, which is cut off on opening.
"""

from __future__ import annotations

import mmap
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from veriglot.errors import InputError, UsageError, VeriglotError
from veriglot.signatures import file_sha256
from veriglot.storage.files import Lock, beside, partial_path, write_json

__all__ = [
    "Checkpoint",
    "FailedRow",
    "InputFile",
    "JsonLines",
    "Manifest",
    "Option",
    "Progress",
    "Row",
    "Tally",
    "Usage",
    "differing_settings",
    "failed_rows",
    "without_traces",
]

D = TypeVar("D")
P = TypeVar("P")
R = TypeVar("R", bound="Row")
Option = str | int | float | bool | None

_VERSION = 1  # of the manifest
_FOREIGN = {"evidence:other_language", "evidence:other_script", "auto:no reader"}
_TRACES = (".progress", ".failed.jsonl", ".rejected.jsonl", ".rows.jsonl", ".asked", ".lock", ".partial")
_SHOWN = 1_000  # characters of a setting in a message
_SAVE_EVERY = 60.0  # seconds: what a kill takes from the time that the manifest tells
_RESTART = "Type the command again with --overwrite to make it anew, or name another output."


class Usage(msgspec.Struct, frozen=True):
    """What asking models cost.

    Attributes:
        calls: calls that were answered.
        tokens_in: tokens of their prompts; estimated where a server did not say.
        tokens_out: tokens of their replies; estimated where a server did not say.
    """

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def tokens(self) -> int:
        """Both together, which is what a limit counts."""
        return self.tokens_in + self.tokens_out

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.calls + other.calls, self.tokens_in + other.tokens_in, self.tokens_out + other.tokens_out)


class JsonLines:
    """Append-only lines in one file.

    Args:
        path: the file; made on the first line if it is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None
        self._unsynced = False

    def repair(self) -> int:
        """Cut off a last line that was not finished.

        Returns:
            The number of bytes cut off; 0 where the last line was whole or there is no file.
        """
        size = self.path.stat().st_size if self.path.exists() else 0
        if not size:
            return 0
        with self.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            whole = content.rfind(b"\n") + 1  # from the end: the file may be large
        if whole < size:
            os.truncate(self.path, whole)
        return size - whole

    def lines(self) -> Iterator[bytes]:
        """The whole lines, without their line breaks; none where there is no file."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield line[:-1]

    def keep(self, lines: int) -> None:
        """Cut the file after its first `lines` lines."""
        with self.path.open("rb") as file:
            size = sum(len(line) for line in islice(file, lines))
        os.truncate(self.path, size)

    def append(self, line: bytes) -> None:
        """Write one line and its line break, in one call."""
        if self._file is None:
            self._file = self.path.open("ab", buffering=0)
        data = line + b"\n"
        while (written := self._file.write(data)) is not None and written < len(data):
            data = data[written:]  # a nearly full disk, or more than 2 GB
        self._unsynced = True

    def sync(self) -> None:
        """Have the disk itself hold what was written, so that it outlives a power failure."""
        if self._file is not None and self._unsynced:
            os.fsync(self._file.fileno())
            self._unsynced = False

    def close(self) -> None:
        """Sync and close; appending opens it again."""
        if self._file is not None:
            self.sync()
            self._file.close()
            self._file = None


class InputFile(msgspec.Struct, frozen=True):
    """What an input was when the run began.

    Attributes:
        path: as the user gave it; `-` is standard input.
        size: bytes.
        mtime_ns: time of the last change, in nanoseconds since 1970.
        sha256: of the content, in hexadecimal; empty for standard input.
    """

    path: str
    size: int
    mtime_ns: int
    sha256: str

    @classmethod
    def of(cls, path: str, known: InputFile | None = None) -> InputFile:
        """Describe the file at `path`; it is what it was `known` as where size and time are the same."""
        if path == "-":
            return cls(path, 0, 0, "")
        state = Path(path).stat()
        if known is not None and (known.size, known.mtime_ns) == (state.st_size, state.st_mtime_ns):
            return known
        return cls(path, state.st_size, state.st_mtime_ns, file_sha256(path))


class Manifest(msgspec.Struct, frozen=True):
    """What an output is made from, and how far it is.

    Attributes:
        inputs: the input files, in order.
        signature: of what makes the rows: the detector, or a model and its prompts.
        options: every other option that changes the rows.
        rows: rows written when the manifest was last written; the output itself may hold more.
        failed: rows that could not be read, likewise.
        statuses: how many predictions have which status; complete once `finished`.
        verdicts: the same by language and verdict; empty from an earlier version, and of what is no prediction.
        finished: whether every row is done.
        output_bytes: size of the finished output.
        seconds: wall time of all calls that worked on the output, reading of inputs included; None where a call of an
            earlier version, which did not say, has a part in it.
        version: of this format.
    """

    inputs: tuple[InputFile, ...]
    signature: str
    options: dict[str, Option]
    rows: int = 0
    failed: int = 0
    statuses: dict[str, int] = {}
    verdicts: dict[str, dict[str, int]] = {}
    finished: bool = False
    output_bytes: int = 0
    seconds: float | None = None
    version: int = _VERSION

    @classmethod
    def load(cls, output: Path) -> Manifest | None:
        """The manifest of an output, or None where there is none.

        Raises:
            UsageError: the file is not a manifest of this version.
        """
        path = beside(output, ".progress")
        try:
            manifest = msgspec.json.decode(path.read_bytes(), type=cls)
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError):
            manifest = None
        if manifest is None or manifest.version != _VERSION:
            raise UsageError(
                f"{path} does not say how its output was made: it is damaged or from another version.", _RESTART
            )
        return manifest

    def differences(self, other: Manifest, *, maker: str) -> list[str]:
        """What `other` (the present call) has otherwise than this one (the run that began), one sentence each.

        Args:
            other: the present call.
            maker: what the signature is of, in one word.
        """
        differences = []
        if len(self.inputs) != len(other.inputs):
            differences.append(f"it had {len(self.inputs)} input files and now has {len(other.inputs)}")
        else:
            differences += [
                f"{new.path} has changed" if old.path == new.path else f"the input was {old.path} and is now {new.path}"
                for old, new in zip(self.inputs, other.inputs, strict=True)
                if old.sha256 != new.sha256
            ]
        if self.signature != other.signature:
            before, now = _parts(self.signature), _parts(other.signature)
            if before.keys() & now.keys():
                differences.append(f"the {maker} differs ({', '.join(differing_settings(before, now))})")
            else:
                differences.append(f"the {maker} was {self.signature!r} and is now {other.signature!r}")
        return [*differing_settings(self.options, other.options), *differences]


def _parts(signature: str) -> dict[str, str]:
    """What a signature says by name: `threshold:0.5|unit:word`."""
    return {name: value for name, _, value in (part.partition(":") for part in signature.split("|")) if value}


def differing_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The settings that are not the same in two calls, a clause each."""

    def shown(value: Any) -> str:
        text = "not set" if value is None else repr(value)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."

    names = [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]
    return [f"{name} was {shown(before.get(name))} and is now {shown(now.get(name))}" for name in names]


class FailedRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """One row that could not be read or done: where it stands, what is wrong, what to do, and its raw text.

    Attributes:
        message: what is wrong.
        path: the file, or None where the input had no name.
        line: line (or row) in the file, counted from 1.
        field: the path of the field inside the record.
        remedy: what to do about it.
        raw: the row as it stood, cut where it was too long to keep.
        row: its place among all rows of the run, counted from 0; filled in by the checkpoint.
        id: id of the row that was read and could not be done; None where it could not be read.
        calls, tokens_in, tokens_out: what was spent on it before it failed, where models are asked.
    """

    message: str
    path: str | None = None
    line: int | None = None
    field: str | None = None
    remedy: str = ""
    raw: str | None = None
    row: int | None = None
    id: str | None = None
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    @classmethod
    def of(cls, error: InputError, raw: str | None = None) -> FailedRow:
        """The record of an error that a reader met, with the raw row."""
        return cls(error.detail, error.path, error.line, error.field, error.remedy, raw or None)

    def as_error(self) -> InputError:
        """The same as an error, with its place and its remedy."""
        return InputError(self.message, self.remedy, path=self.path, line=self.line, field=self.field)


def failed_rows(output: Path) -> tuple[int, Usage]:
    """How many rows of an output failed, and what was spent on them all the same."""
    rows = list(_decoded(JsonLines(_failed_path(output)), FailedRow, "is damaged"))
    return len(rows), sum((Usage(row.calls, row.tokens_in, row.tokens_out) for row in rows), Usage())


def _failed_path(output: Path) -> Path:
    return beside(output, ".failed.jsonl")


@dataclass
class Tally:
    """What became of the rows.

    Attributes:
        statuses: predictions by status, those of an earlier run included.
        verdicts: predictions by language and verdict, likewise.
        failed: rows that could not be read.
        reused: rows that an earlier run had done.
        reasons: the first reason of each status, of this run, after the id of its row.
        foreign: predictions of this run that `reader` would know more of, as evidence in another language.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    failed: int = 0
    reused: int = 0
    reasons: dict[str, str] = field(default_factory=dict)
    foreign: int = 0

    @property
    def rows(self) -> int:
        """All rows."""
        return self.statuses.total() + self.failed

    @property
    def marked(self) -> int:
        """Predictions with at least one span."""
        return sum(count for (_, verdict), count in self.verdicts.items() if verdict == "unsupported")

    @property
    def by_language(self) -> dict[str, dict[str, int]]:
        """`verdicts` as a manifest has them: language to verdict to count."""
        verdicts: dict[str, dict[str, int]] = {}
        for (language, verdict), count in sorted(self.verdicts.items()):
            verdicts.setdefault(language, {})[verdict] = count
        return verdicts

    def counts(self) -> dict[str, Any]:
        """What a manifest says of the rows, by the names of its fields."""
        return {
            "rows": self.statuses.total(),
            "failed": self.failed,
            "statuses": dict(sorted(self.statuses.items())),
            "verdicts": self.by_language,
        }

    def add_counts(self, statuses: Mapping[str, int], verdicts: Mapping[str, Mapping[str, int]], failed: int) -> None:
        """Add what a manifest says."""
        self.statuses.update(statuses)
        for language, counts in verdicts.items():
            self.verdicts.update({(language, verdict): count for verdict, count in counts.items()})
        self.failed += failed

    def add(self, record: object) -> None:
        """Count one finished row: a prediction, or any other record."""
        status = getattr(record, "status", "done")
        self.statuses[status] += 1
        if reason := getattr(record, "reason", None):
            self.reasons.setdefault(status, f"{getattr(record, 'id', '')}: {reason}")
        self.foreign += not _FOREIGN.isdisjoint(getattr(record, "notes", ()))
        verdict = getattr(record, "verdict", None)
        if verdict is not None:
            self.verdicts[getattr(record, "language", None) or "", verdict] += 1

    def take(self, other: Tally) -> None:
        """Add the counts of another output."""
        self.statuses.update(other.statuses)
        self.verdicts.update(other.verdicts)
        self.failed += other.failed
        self.reused += other.reused
        self.reasons = other.reasons | self.reasons
        self.foreign += other.foreign


class Row(Protocol):
    """Anything with an id of its own: a sample, an article, a question that is still to be asked."""

    @property
    def id(self) -> str:
        """Unique among the rows of the stage."""


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
        manifest = Manifest.load(output)
        if manifest is None:
            return cls(0, 0, finished=False)
        if manifest.finished:
            return cls(manifest.rows, manifest.failed, finished=True)
        unfinished = beside(output, ".rows.jsonl")
        rows = unfinished if unfinished.exists() else output
        done, failed = (sum(1 for _ in JsonLines(path).lines()) for path in (rows, _failed_path(output)))
        return cls(done, failed, finished=False)


class _Head(msgspec.Struct):
    """What every finished row has; records other than predictions have no status and count as `done`."""

    id: str
    status: str = "done"
    language: str | None = None
    spans: list[msgspec.Raw] | None = None

    @property
    def verdict(self) -> str | None:
        """As `records.Prediction.verdict`; None of other records."""
        if self.status == "done":
            return None
        return "not_checked" if self.spans is None else "unsupported" if self.spans else "supported"


class _Done(_Head):
    """A row of this run."""

    reason: str | None = None
    notes: tuple[str, ...] = ()


_DONE = msgspec.json.Decoder(_Done)


@dataclass(eq=False)
class Checkpoint:
    """One output, its failed rows, and the manifest that says what both are made from.

    Attributes:
        output: the file to make.
        signature: of what makes the rows: the detector's, or that of a model and its prompts.
        inputs: paths of the input files, in order; `-` is standard input, which cannot be continued.
        options: every other option that changes the rows, by the name the user knows.
        finish: makes `output` from the rows (arguments: rows file, output); None where the rows are the output.
        restart: make the output anew, whatever is there.
        retry: take up a finished or half-finished output at its first failed row, and make it anew from there.
        maker: what the signature is of, in one word for messages.
        tally: what became of the rows so far.
        finished: whether every row is done.
    """

    output: Path
    _: KW_ONLY
    signature: str
    inputs: Sequence[str] = ()
    options: dict[str, Option] = field(default_factory=dict)
    finish: Callable[[Path, Path], None] | None = None
    restart: bool = False
    retry: bool = False
    maker: str = "detector"
    tally: Tally = field(default_factory=Tally, init=False)
    finished: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        output = self.output
        self.progress = beside(output, ".progress")
        self.rows = JsonLines(output if self.finish is None else beside(output, ".rows.jsonl"))
        self.failures = JsonLines(_failed_path(output))
        self._manifest: Manifest | None = None
        self._lock: Lock | None = None
        self._earlier: float | None = 0.0  # seconds of earlier calls; None where they did not say
        self._began = self._saved = 0.0

    @property
    def manifest(self) -> Manifest:
        """What the output is made from; known from `open` until it is finished."""
        assert self._manifest is not None, "the output is not open"
        return self._manifest

    def check(self) -> None:
        """Whether `open` may take the output, without taking it: cheap, so that a wrong call stops before any work.

        Raises:
            UsageError: the output was made from something else, or not by a run.
        """
        ours = {path.resolve() for path in (self.output, self.progress, self.rows.path, self.failures.path)}
        for given in self.inputs:
            if given != "-" and Path(given).resolve() in ours:
                raise UsageError(f"{given} is an input and would be overwritten.", "Name another output.")
        before = self._before()
        if before is None:
            for path in () if self.restart else self._written():
                raise UsageError(f"{path} is there already, and nothing says how it was made.", _RESTART)
            return
        if differences := self._differences(before):
            raise UsageError(f"{self.output} was begun differently: {'; '.join(differences)}.", _RESTART)

    def open(self) -> None:
        """Take hold of the output: begin it, continue it, or find it finished (`finished` is then true).

        Raises:
            UsageError: as `check`, or another process is making the output.
        """
        self._began = time.monotonic()
        self._lock = Lock(self.output)
        try:
            self.check()
            before = self._before()
            self._earlier = before.seconds if before is not None else 0.0
            retrying = before is not None and self.retry and before.finished and before.failed > 0
            if retrying and self.finish is not None:
                before = None  # its rows went into the output and cannot be taken up singly
            if before is None:
                for path in {self.output, self.rows.path, self.failures.path}:
                    path.unlink(missing_ok=True)
            else:
                self._continue(before, anew=retrying)
            if not self.finished:
                self._manifest = self._present(before)
                self._save()
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
        for number in range(self.tally.rows):
            row = next(source, None)
            if number in failed:
                continue
            head = next(heads)
            if row is None or getattr(row, "id", None) != head.id:
                raise UsageError(
                    f"Row {number + 1} of the input is not the one that {self.rows.path} was made from ({head.id!r}).",
                    _RESTART,
                )
        yield from source

    def write(self, record: msgspec.Struct | bytes) -> None:
        """Add the next row: a prediction, or any record with an `id`, or the line of JSON that one makes."""
        line = record if isinstance(record, bytes) else msgspec.json.encode(record)
        # After a power failure the file of failed rows must not know less than the rows that followed them.
        self.failures.sync()
        self.rows.append(line)
        self.tally.add(_DONE.decode(line) if record is line else record)
        self._note_time()

    def fail(self, row: FailedRow) -> None:
        """Add the next row, which could not be read or done."""
        self.failures.append(msgspec.json.encode(replace(row, row=self.tally.rows)))
        self.tally.failed += 1
        self._note_time()

    def complete(self) -> None:
        """Every row is done: make the output and say so in the manifest. An output that was finished stays as it is."""
        if self.finished:
            self.close()
            return
        self.rows.path.touch()  # so that a run without rows has an output too
        self.rows.close()
        self.failures.close()
        if self.finish is not None:
            partial = partial_path(self.output)
            self.finish(self.rows.path, partial)
            partial.replace(self.output)
        self._save(finished=True)
        self.finished = True
        if self.finish is not None:
            self.rows.path.unlink()
        self.close()

    def close(self) -> None:
        """Let go of the output; what is done stays and can be continued."""
        self.rows.close()
        self.failures.close()
        if self._manifest is not None and not self.finished:
            self._save()
        self._manifest = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

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
        self.open()
        try:
            if not self.finished:
                for result in _matched(self.remaining(rows), work):
                    if isinstance(result, FailedRow):
                        self.fail(result)
                    else:
                        self.write(result)
                    if seen is not None:
                        seen(result)
            self.complete()
        finally:
            self.close()
        return self.tally

    def _before(self) -> Manifest | None:
        """Of an earlier call, None where nothing binds this one: all its rows failed, say, at a mistyped address."""
        before = None if self.restart else Manifest.load(self.output)
        if before is None or not (self._written() or self.failures.path.exists()):
            return None
        return None if not self._written() and self._differences(before) else before

    def _written(self) -> list[Path]:
        return [path for path in (self.output, self.rows.path) if path.exists() and path.stat().st_size]

    def _differences(self, before: Manifest) -> list[str]:
        differences = before.differences(self._present(before), maker=self.maker)
        return differences + ["standard input cannot be compared with what it was"] * ("-" in self.inputs)

    def _present(self, before: Manifest | None) -> Manifest:
        known = {file.path: file for file in before.inputs} if before is not None else {}
        inputs = tuple(InputFile.of(path, known.get(path)) for path in self.inputs)
        return Manifest(inputs, self.signature, self.options)

    def _continue(self, before: Manifest, *, anew: bool) -> None:
        intact = self.output.exists() and self.output.stat().st_size == before.output_bytes
        if before.finished and intact and not anew:
            self.finished = True
            self.tally.add_counts(before.statuses, before.verdicts, before.failed)
            self.tally.reused = self.tally.rows
            if self.finish is not None:
                self.rows.path.unlink(missing_ok=True)
            return
        if before.finished and self.output.exists() and not intact:
            raise UsageError(f"{self.output} was changed after it was finished.", _RESTART)
        # Said before anything is cut off: a kill in between would leave what looks changed by somebody else.
        write_json(self.progress, replace(before, finished=False, output_bytes=0))
        self.rows.repair()
        self.failures.repair()
        first = next(self._failed_rows(), None) if self.retry else None
        if first is not None:
            if first.row is not None and self.rows.path.exists():
                self.rows.keep(first.row)
            self.failures.keep(0)
        for head in self._heads():
            self.tally.add(head)
        # Failed rows that belong before or between the rows are kept; those further on will be met again.
        written = self.tally.statuses.total()
        for row in self._failed_rows():
            if row.row is None or row.row > written + self.tally.failed:
                break
            self.tally.failed += 1
        if self.failures.path.exists():
            self.failures.keep(self.tally.failed)
        self.tally.reused = self.tally.rows

    def _heads(self) -> Iterator[_Head]:
        return _decoded(self.rows, _Head, "is no finished row")

    def _failed_rows(self) -> Iterator[FailedRow]:
        return _decoded(self.failures, FailedRow, "is damaged")

    def _note_time(self) -> None:
        if time.monotonic() - self._saved > _SAVE_EVERY:
            self._save()

    def _save(self, *, finished: bool = False) -> None:
        assert self._manifest is not None
        self._saved = time.monotonic()
        self._manifest = replace(
            self._manifest,
            **self.tally.counts(),
            finished=finished,
            output_bytes=self.output.stat().st_size if finished else 0,
            seconds=None if self._earlier is None else round(self._earlier + self._saved - self._began, 3),
        )
        write_json(self.progress, self._manifest)


def _decoded(lines: JsonLines, type_: type[D], fault: str) -> Iterator[D]:
    decoder = msgspec.json.Decoder(type_)
    for number, line in enumerate(lines.lines(), 1):
        try:
            yield decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise UsageError(f"{lines.path}, line {number} {fault}.", _RESTART) from None


def _matched(
    rows: Iterator[R | FailedRow], work: Callable[[Iterator[R]], Iterable[msgspec.Struct | FailedRow]]
) -> Iterator[msgspec.Struct | FailedRow]:
    """The results of `work`, each held against the row it belongs to, with the rows that could not be read between."""
    waiting = deque[str | FailedRow]()  # ids that `work` has taken and not answered, and what stands between

    def readable() -> Iterator[R]:
        for row in rows:
            if isinstance(row, FailedRow):
                waiting.append(row)
            else:
                waiting.append(row.id)
                yield row

    def unreadable() -> Iterator[FailedRow]:
        while waiting and isinstance(row := waiting[0], FailedRow):
            waiting.popleft()
            yield row

    results = iter(work(readable()))
    try:
        for result in results:
            yield from unreadable()
            yield _belonging(result, waiting.popleft() if waiting else None)
        next(readable(), None)  # what `work` has not taken
        yield from unreadable()
        if waiting:
            raise VeriglotError(f"A stage ended without a record for {waiting[0]!r}.")
    finally:
        if isinstance(results, Generator):
            results.close()  # so that threads behind it stop now, and not when the last reference is gone


def _belonging(result: msgspec.Struct | FailedRow, due: str | FailedRow | None) -> msgspec.Struct | FailedRow:
    """`result`, if it belongs to the row that is due; a failed row gets that row's id."""
    got = getattr(result, "id", None)
    if got is None and isinstance(result, FailedRow) and isinstance(due, str):
        return replace(result, id=due)
    if due is None or got != due:
        raise VeriglotError(f"A stage gave a record for {got!r} where one for {due!r} was due.")
    return result


def without_traces(files: Sequence[Path]) -> list[Path]:
    """The files without those that a run left beside its output: how far it is, failed rows, finished calls.

    A sample of translations stands in two formats: `veriglot dataset sample` writes each part as HAT JSON as well.
    """
    known = {*files}
    aside = {
        part
        for path in files
        if path.name.endswith(".hat.json") and path.with_suffix("").with_suffix(".jsonl") in known
        for report in known & {path.with_name("report.json")}
        for part in (path, report, report.with_name("work"))
    }
    outputs = [path.with_suffix("") for path in files if path.suffix == ".progress"]
    traces = {beside(path, suffix) for path in outputs for suffix in _TRACES}
    calls = {beside(path, ".calls") for path in outputs}
    traces |= calls | aside
    return [path for path in files if traces.isdisjoint((path, *path.parents))]
