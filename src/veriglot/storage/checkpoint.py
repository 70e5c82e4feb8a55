"""Outputs written row by row that resume after a kill: manifest, checkpoint, failed rows and usage.

Beside `out.jsonl` are `out.jsonl.progress`, which has the inputs and settings of the run (so whether it can be
resumed), and, if rows failed, `out.jsonl.failed.jsonl`. Each input row becomes one line of either file, in order, so
the number of lines is the progress. An output in another format (Parquet, HTML) is first written as
`out.parquet.rows.jsonl` and converted at the end. Every line is written by one append: a kill leaves at most one line
without its line break, which is removed on opening.
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
    "without_side_files",
]

D = TypeVar("D")
P = TypeVar("P")
R = TypeVar("R", bound="Row")
Option = str | int | float | bool | None

_VERSION = 1  # of the manifest
_FOREIGN = {"evidence:other_language", "evidence:other_script", "auto:no reader"}
_SIDE_FILES = (".progress", ".failed.jsonl", ".rejected.jsonl", ".rows.jsonl", ".asked", ".lock", ".partial")
_SHOWN = 1_000  # maximum characters of a setting in a message
_SAVE_EVERY = 60.0  # seconds; a kill loses at most so much of the run time in the manifest
_RESTART = "Rerun the command with --overwrite to replace it, or name another output."


class Usage(msgspec.Struct, frozen=True):
    """The cost of model calls.

    Attributes:
        calls: answered calls.
        tokens_in: tokens of the prompts; estimated if the server reported none.
        tokens_out: tokens of the replies; estimated if the server reported none.
    """

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def tokens(self) -> int:
        """Sum of both, as counted by a limit."""
        return self.tokens_in + self.tokens_out

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.calls + other.calls, self.tokens_in + other.tokens_in, self.tokens_out + other.tokens_out)


class JsonLines:
    """A file of append-only lines.

    Args:
        path: the file; created with the first line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None
        self._unsynced = False

    def repair(self) -> int:
        """Remove an unfinished last line.

        Returns:
            The number of removed bytes; 0 if the last line is complete or there is no file.
        """
        size = self.path.stat().st_size if self.path.exists() else 0
        if not size:
            return 0
        with self.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            complete = content.rfind(b"\n") + 1  # from the end: the file may be large
        if complete < size:
            os.truncate(self.path, complete)
        return size - complete

    def lines(self) -> Iterator[bytes]:
        """The complete lines, without line breaks; none if there is no file."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield line[:-1]

    def keep(self, lines: int) -> None:
        """Truncate the file after its first `lines` lines."""
        with self.path.open("rb") as file:
            size = sum(len(line) for line in islice(file, lines))
        os.truncate(self.path, size)

    def append(self, line: bytes) -> None:
        """Append one line with its line break, in one call."""
        if self._file is None:
            self._file = self.path.open("ab", buffering=0)
        data = line + b"\n"
        while (written := self._file.write(data)) is not None and written < len(data):
            data = data[written:]  # a nearly full disk, or more than 2 GB
        self._unsynced = True

    def sync(self) -> None:
        """Flush the file to disk, so that it survives a power failure."""
        if self._file is not None and self._unsynced:
            os.fsync(self._file.fileno())
            self._unsynced = False

    def close(self) -> None:
        """Sync and close; `append` opens it again."""
        if self._file is not None:
            self.sync()
            self._file.close()
            self._file = None


class InputFile(msgspec.Struct, frozen=True):
    """An input file at the start of the run.

    Attributes:
        path: as the user gave it; `-` for standard input.
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
        """Describe the file at `path`; returns `known` if size and time are the same."""
        if path == "-":
            return cls(path, 0, 0, "")
        state = Path(path).stat()
        if known is not None and (known.size, known.mtime_ns) == (state.st_size, state.st_mtime_ns):
            return known
        return cls(path, state.st_size, state.st_mtime_ns, file_sha256(path))


class Manifest(msgspec.Struct, frozen=True):
    """Inputs, settings and progress of an output.

    Attributes:
        inputs: the input files, in order.
        signature: of the maker of the rows: the detector, or a model with its prompts.
        options: all other options that change the rows.
        rows: rows written when the manifest was last saved; the output may have more.
        failed: unreadable rows at that time.
        statuses: number of predictions by status; complete once `finished`.
        verdicts: the same by language and verdict; empty from an earlier version, and for rows that are not
            predictions.
        finished: whether all rows are done.
        output_bytes: size of the finished output.
        seconds: wall time of all calls that worked on the output, with reading of inputs; None if one of them was of an
            earlier version without times.
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
        """The manifest of an output, or None if there is none.

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
        """Differences of `other` (the current call) from this manifest (of the started run), one sentence each.

        Args:
            other: the current call.
            maker: the kind of thing that the signature describes, in one word.
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
    """The parts of a signature by name: `threshold:0.5|unit:word`."""
    return {name: value for name, _, value in (part.partition(":") for part in signature.split("|")) if value}


def differing_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The settings that differ between two calls, one clause each."""

    def shown(value: Any) -> str:
        text = "not set" if value is None else repr(value)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."

    names = [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]
    return [f"{name} was {shown(before.get(name))} and is now {shown(now.get(name))}" for name in names]


class FailedRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row that could not be read or processed: its position, the error, the remedy, and its raw text.

    Attributes:
        message: the error.
        path: the file, or None if the input had no name.
        line: line (or row) in the file, counted from 1.
        field: the path of the field inside the record.
        remedy: what to do.
        raw: the original row, truncated if too long.
        row: its number among all rows of the run, counted from 0; set by the checkpoint.
        id: id of a row that was read and could not be processed; None if it could not be read.
        calls, tokens_in, tokens_out: its model usage before it failed.
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
        """The record of a reader's error, with the raw row."""
        return cls(error.detail, error.path, error.line, error.field, error.remedy, raw or None)

    def as_error(self) -> InputError:
        """The same as an error, with position and remedy."""
        return InputError(self.message, self.remedy, path=self.path, line=self.line, field=self.field)


def failed_rows(output: Path) -> tuple[int, Usage]:
    """Number of failed rows of an output, and their model usage."""
    rows = list(_decoded(JsonLines(_failed_path(output)), FailedRow, "is damaged"))
    return len(rows), sum((Usage(row.calls, row.tokens_in, row.tokens_out) for row in rows), Usage())


def _failed_path(output: Path) -> Path:
    return beside(output, ".failed.jsonl")


@dataclass
class Tally:
    """Counts of processed rows.

    Attributes:
        statuses: predictions by status, with those of earlier runs.
        verdicts: predictions by language and verdict, likewise.
        failed: unreadable rows.
        reused: rows done by an earlier run.
        reasons: the first reason of each status in this run, after the id of its row.
        foreign: predictions of this run for which `reader` is better, such as with evidence in another language.
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
        """`verdicts` as in a manifest: language to verdict to count."""
        verdicts: dict[str, dict[str, int]] = {}
        for (language, verdict), count in sorted(self.verdicts.items()):
            verdicts.setdefault(language, {})[verdict] = count
        return verdicts

    def counts(self) -> dict[str, Any]:
        """The counts as fields of a manifest."""
        return {
            "rows": self.statuses.total(),
            "failed": self.failed,
            "statuses": dict(sorted(self.statuses.items())),
            "verdicts": self.by_language,
        }

    def add_counts(self, statuses: Mapping[str, int], verdicts: Mapping[str, Mapping[str, int]], failed: int) -> None:
        """Add the counts of a manifest."""
        self.statuses.update(statuses)
        for language, counts in verdicts.items():
            self.verdicts.update({(language, verdict): count for verdict, count in counts.items()})
        self.failed += failed

    def add(self, record: object) -> None:
        """Count one finished row: a prediction, or another record."""
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
    """A row with an id: a sample, an article, a question to ask."""

    @property
    def id(self) -> str:
        """Unique among the rows of the stage."""


class Progress(msgspec.Struct, frozen=True):
    """Progress of an output: finished rows, failed rows, and whether it is complete."""

    done: int
    failed: int
    finished: bool

    @classmethod
    def of(cls, output: Path) -> Progress:
        """Progress from the files of an output, which another process may be writing; zero if there are none.

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
    """Fields of every finished row; records other than predictions have no status and count as `done`."""

    id: str
    status: str = "done"
    language: str | None = None
    spans: list[msgspec.Raw] | None = None

    @property
    def verdict(self) -> str | None:
        """As `records.Prediction.verdict`; None for other records."""
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
    """One output, its failed rows, and their manifest.

    Attributes:
        output: the file to make.
        signature: of the maker of the rows: the detector, or a model with its prompts.
        inputs: paths of the input files, in order; `-` is standard input, which cannot be resumed.
        options: all other options that change the rows, by their command-line names.
        finish: makes `output` from the rows (arguments: rows file, output); None if the rows are the output.
        restart: whether to replace an existing output.
        retry: whether to continue a finished or partial output at its first failed row; later rows are made again.
        maker: what the signature describes, in one word for messages.
        tally: counts so far.
        finished: whether all rows are done.
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
        self._earlier: float | None = 0.0  # seconds of earlier calls; None if unknown
        self._began = self._saved = 0.0

    @property
    def manifest(self) -> Manifest:
        """The manifest of the output; available from `open` until it is finished."""
        assert self._manifest is not None, "the output is not open"
        return self._manifest

    def check(self) -> None:
        """Check whether `open` would succeed, without changing anything: cheap, so that a wrong call fails before any
        work.

        Raises:
            UsageError: the output has other inputs or settings, or was not made by a run.
        """
        own_files = {path.resolve() for path in (self.output, self.progress, self.rows.path, self.failures.path)}
        for given in self.inputs:
            if given != "-" and Path(given).resolve() in own_files:
                raise UsageError(f"{given} is an input and would be overwritten.", "Name another output.")
        before = self._before()
        if before is None:
            for path in () if self.restart else self._written():
                raise UsageError(f"{path} already exists, and nothing says how it was made.", _RESTART)
            return
        if differences := self._differences(before):
            raise UsageError(f"{self.output} was started differently: {'; '.join(differences)}.", _RESTART)

    def open(self) -> None:
        """Lock the output: start it, resume it, or see that it is complete (then `finished` is true).

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
                before = None  # its rows were merged into the output and cannot be resumed one by one
            if before is None:
                for path in {self.output, self.rows.path, self.failures.path}:
                    path.unlink(missing_ok=True)
            else:
                self._continue(before, anew=retrying)
            if not self.finished:
                self._manifest = self._present(before)
                self._save()
        except BaseException:
            self._manifest = None  # the existing files are not ours
            self.close()
            raise

    def remaining(self, rows: Iterable[P]) -> Iterator[P]:
        """The unfinished rows; checks that the finished ones came from the same input rows.

        Raises:
            UsageError: the ids of an output row and of its input row differ.
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
        """Append the next row: a prediction, another record with an `id`, or the JSON line of one."""
        line = record if isinstance(record, bytes) else msgspec.json.encode(record)
        # After a power failure the file of failed rows must not be behind the rows that followed them.
        self.failures.sync()
        self.rows.append(line)
        self.tally.add(_DONE.decode(line) if record is line else record)
        self._note_time()

    def fail(self, row: FailedRow) -> None:
        """Append the next row, which could not be read or processed."""
        self.failures.append(msgspec.json.encode(replace(row, row=self.tally.rows)))
        self.tally.failed += 1
        self._note_time()

    def complete(self) -> None:
        """Finish after the last row: make the output and mark it in the manifest. A finished output is not changed."""
        if self.finished:
            self.close()
            return
        self.rows.path.touch()  # a run without rows has an output too
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
        """Release the output; finished rows stay and can be resumed."""
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
        """Make the output, or its missing rows.

        Args:
            rows: all rows, the same in the same order at each call; finished ones are skipped, and a `FailedRow` (an
                unreadable row) is recorded in its position. Consumed only as fast as `work` takes them.
            work: takes the unfinished rows, and yields one record (with the row's id) or one `FailedRow` for each, in
                order. It may read ahead, also in another thread. Called once, even if no row is left.
            seen: called for every new row.

        Returns:
            Counts of all rows, with those of earlier calls.

        Raises:
            UsageError: as `check`; another process is making the output; or the rows differ from those of the first
                call.
            Any error of `work`. Finished rows are kept, and the same call continues after them.
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
        """The manifest of an earlier call; None if it can be ignored, such as when all its rows failed."""
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
        # Saved before truncation: otherwise a kill in between would look like a change by somebody else.
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
        # Failed rows before or between the rows are kept; later ones will fail again.
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
    """The results of `work`, each checked against its row, with the unreadable rows in between."""
    waiting = deque[str | FailedRow]()  # ids that `work` took and has not answered, and the unreadable rows in between

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
        next(readable(), None)  # rows that `work` did not take
        yield from unreadable()
        if waiting:
            raise VeriglotError(f"A stage ended without a record for {waiting[0]!r}.")
    finally:
        if isinstance(results, Generator):
            results.close()  # stops its threads now, and not when the last reference is gone


def _belonging(result: msgspec.Struct | FailedRow, due: str | FailedRow | None) -> msgspec.Struct | FailedRow:
    """`result`, if it belongs to the row that is due; a failed row gets that row's id."""
    got = getattr(result, "id", None)
    if got is None and isinstance(result, FailedRow) and isinstance(due, str):
        return replace(result, id=due)
    if due is None or got != due:
        raise VeriglotError(f"A stage gave a record for {got!r} where one for {due!r} was due.")
    return result


def without_side_files(files: Sequence[Path]) -> list[Path]:
    """The files without those that a run leaves beside its output: progress, failed rows, finished calls.

    A sample of translations is in two formats: `veriglot dataset sample` also writes each part as HAT JSON.
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
    traces = {beside(path, suffix) for path in outputs for suffix in _SIDE_FILES}
    calls = {beside(path, ".calls") for path in outputs}
    traces |= calls | aside
    return [path for path in files if traces.isdisjoint((path, *path.parents))]
