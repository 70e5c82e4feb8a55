"""Parts: an output as a folder of files with consecutive rows, made in any order and each exactly once.

A part is written to a temporary file and renamed; its name has its rows and a hash of the inputs and settings.
`parts.jsonl` lists the parts in the order of their rows, with their counts; the manifest is beside it. A run that dies
leaves unlisted parts: the next run checks and lists them, and does not make them again.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from veriglot.errors import InputError, UsageError, VeriglotError
from veriglot.signatures import file_sha256
from veriglot.storage.checkpoint import Checkpoint, FailedRow, JsonLines, Manifest, Option, Row, Tally
from veriglot.storage.files import Lock, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

__all__ = ["Block", "Outcome", "Part", "PartFolder", "finished_parts"]

_LIST = "parts.jsonl"
_OURS = re.compile(r"part-\d{12}-\d{12}-[0-9a-f]{12}\.parquet(\.partial)?")  # other engines use part-* too
_HASH = 16  # hexadecimal digits of a part's SHA-256
# Size of a part: the loss after a death (some 10 s of a core) against the number of files.
_MOST_ROWS = 2_000
_MOST_BYTES = 8 << 20  # of text, so that long rows do not multiply in memory
_REASONS = 20  # maximum of distinct reasons of a part


class Outcome(msgspec.Struct, frozen=True):
    """Counts of judged samples.

    Attributes:
        statuses: predictions by status.
        verdicts: predictions by language and verdict.
        reasons: failed predictions by reason; beyond 20 distinct ones they are summed as "other reasons".
    """

    statuses: dict[str, int] = {}
    verdicts: dict[str, dict[str, int]] = {}
    reasons: dict[str, int] = {}

    @classmethod
    def of(cls, predictions: Iterable[Any]) -> Outcome:
        """Count predictions."""
        tally, reasons = Tally(), Counter[str]()
        for prediction in predictions:
            tally.add(prediction)
            if prediction.status == "failed":
                reason = prediction.reason or "no reason"
                reasons[reason if reason in reasons or len(reasons) < _REASONS else "other reasons"] += 1
        return cls(dict(sorted(tally.statuses.items())), tally.by_language, dict(reasons))


class Part(msgspec.Struct, frozen=True):
    """One file of a folder: the rows `[start, end)` of the input.

    Attributes:
        id: name of the file.
        start, end: its rows, counted from 0 over all inputs.
        size: bytes of the file.
        outcome: counts of its samples.
        failed: its unreadable rows, each with its number; the file does not have them.
        seconds: CPU time of judging and encoding; 0 for a part of an earlier run that did not list it.
        sha256: the first 16 hexadecimal digits of the file's SHA-256; empty from an earlier version.
    """

    id: str
    start: int
    end: int
    size: int
    outcome: Outcome
    failed: tuple[FailedRow, ...] = ()
    seconds: float = 0.0
    sha256: str = ""


@dataclass
class Block:
    """The rows that become one part.

    Attributes:
        id: name of the part.
        start: number of the first row, counted from 0 over all inputs.
        rows: its rows, in order.
    """

    id: str
    start: int
    rows: list[Row | FailedRow]

    @property
    def end(self) -> int:
        """Number of the first row after it."""
        return self.start + len(self.rows)

    @property
    def samples(self) -> list[Any]:
        """The readable rows."""
        return [row for row in self.rows if not isinstance(row, FailedRow)]

    @property
    def failed(self) -> tuple[FailedRow, ...]:
        """The unreadable rows, each with its number."""
        return tuple(replace(row, row=n) for n, row in enumerate(self.rows, self.start) if isinstance(row, FailedRow))


class PartFolder:
    """A folder of parts, made by `run`; the same call resumes it after a crash.

    Args:
        path: the folder.
        read: returns the predictions of a part, in order.
        size: bytes of the text of a sample.
        inputs: paths of the input files, in order.
        signature: of the detector.
        options: all other options that change the rows, by their command-line names.
        restart: whether to replace an existing output.
    """

    def __init__(
        self,
        path: Path,
        *,
        read: Callable[[Path], Iterable[Row]],
        size: Callable[[Any], int],
        inputs: Sequence[str],
        signature: str,
        options: dict[str, Option],
        restart: bool = False,
    ) -> None:
        self.path, self.listing = path, path / _LIST
        self._read, self._size = read, size
        self._restart = restart
        self._checkpoint = Checkpoint(
            self.listing, signature=signature, inputs=inputs, options=options, restart=restart, maker="detector"
        )

    @property
    def rows(self) -> int:
        """Number of rows in listed parts."""
        return max((part.end for part in _listed(self.path)), default=0)

    def run(
        self,
        rows: Callable[[], Iterable[Row | FailedRow]],
        make: Callable[[Iterator[Block], PartFolder], Iterator[Part]],
        *,
        stop: bool = False,
    ) -> Tally:
        """Make the folder, or its missing parts.

        Args:
            rows: opens the input: the same rows in the same order at each call.
            make: takes the unlisted blocks, and yields their parts in order, from `listed` or `write`.
            stop: raise at the first unreadable row; complete parts before it stay.

        Returns:
            Counts of all rows, with those of earlier calls.

        Raises:
            UsageError: the folder was started with another input, detector or option (named in the message); or another
                process is making it.
            InputError: with `stop`, the first unreadable row.
        """
        self._checkpoint.check()
        self._prepare()
        self._checkpoint.run(self._blocks(rows, stop=stop), lambda missing: make(missing, self))
        listed = list(_listed(self.path))  # checked before, or just written
        for path in set(self._files()) - {self.path / part.id for part in listed}:
            path.unlink()  # of an abandoned run: readers of the whole folder must not find it
        tally = _tally(listed)
        tally.reused = _tally(listed[: self._checkpoint.tally.reused]).rows
        return tally

    def listed(self, block: Block) -> Part | None:
        """The part of a block that an earlier run made but did not list before it died; None if it must be made."""
        path = self.path / block.id
        if not path.exists():
            return None
        try:
            predictions = list(self._read(path))
        except VeriglotError:  # damaged
            return None
        if [prediction.id for prediction in predictions] != [sample.id for sample in block.samples]:
            return None
        return self._part(block, Outcome.of(predictions), path.stat().st_size, 0.0, file_sha256(path))

    def write(self, block: Block, data: bytes, outcome: Outcome, seconds: float) -> Part:
        """Write a part atomically."""
        write_whole(self.path / block.id, data)
        return self._part(block, outcome, len(data), seconds, hashlib.sha256(data).hexdigest())

    @staticmethod
    def _part(block: Block, outcome: Outcome, size: int, seconds: float, sha256: str) -> Part:
        return Part(block.id, block.start, block.end, size, outcome, block.failed, round(seconds, 3), sha256[:_HASH])

    def _files(self) -> list[Path]:
        return [path for path in self.path.glob("part-*") if _OURS.fullmatch(path.name)]

    def _prepare(self) -> None:
        """Remove what will be made again: all parts on a restart; else damaged ones, and the list that has them."""
        if not (self._restart or self.listing.exists()):
            return
        with Lock(self.listing):
            if self._restart:
                faulty = self._files()
            else:
                faulty = [self.path / part.id for part in _listed(self.path) if _fault(self.path, part)]
            for path in faulty:
                path.unlink(missing_ok=True)
            if faulty:
                self.listing.unlink(missing_ok=True)  # its intact parts will be listed again

    def _blocks(self, rows: Callable[[], Iterable[Row | FailedRow]], *, stop: bool) -> Iterator[Block]:
        manifest = self._checkpoint.manifest
        made_from = [[file.sha256 for file in manifest.inputs], manifest.signature, sorted(manifest.options.items())]
        key = hashlib.sha256(msgspec.json.encode(made_from)).hexdigest()[:12]
        start, size, block = 0, 0, list[Row | FailedRow]()
        for row in rows():
            if stop and isinstance(row, FailedRow):
                raise row.as_error()
            block.append(row)
            size += len(row.raw or "") if isinstance(row, FailedRow) else self._size(row)
            if len(block) >= _MOST_ROWS or size >= _MOST_BYTES:
                yield _block(start, block, key)
                start, size, block = start + len(block), 0, []
        if block:
            yield _block(start, block, key)


def _block(start: int, rows: list[Row | FailedRow], key: str) -> Block:
    return Block(f"part-{start:012}-{start + len(rows):012}-{key}.parquet", start, rows)


def _listed(folder: Path) -> Iterator[Part]:
    decoder = msgspec.json.Decoder(Part)
    listing = JsonLines(folder / _LIST)
    for number, line in enumerate(listing.lines(), 1):
        try:
            yield decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            remedy = "Rerun its command with --overwrite."
            raise InputError("this is no part", remedy, path=str(listing.path), line=number) from None


def _fault(folder: Path, part: Part) -> str | None:
    path = folder / part.id
    if not path.exists():
        return f"{path} is missing"
    whole = path.stat().st_size == part.size and part.sha256 in {"", file_sha256(path)[:_HASH]}
    return None if whole else f"{path} was changed after it was finished"


def finished_parts(folder: Path) -> list[Part]:
    """The parts of a folder, in the order of their rows.

    Raises:
        UsageError: it is not a folder of parts, is not finished, or a part is missing or changed.
    """
    manifest = Manifest.load(folder / _LIST)
    if manifest is None:
        raise UsageError(
            f"{folder} is not a folder of predictions: it has no {_LIST}.",
            "Name a file, or a folder that veriglot detect --engine ray made.",
        )
    if not manifest.finished:
        raise UsageError(f"{folder} is not finished.", "Rerun the command that makes it to resume it.")
    parts = list(_listed(folder))
    for part in parts:
        if fault := _fault(folder, part):
            raise UsageError(f"{fault}.", "Rerun the command that made the folder: it makes what is missing.")
    return parts


def _tally(parts: Iterable[Part]) -> Tally:
    tally = Tally()
    for part in parts:
        tally.add_counts(part.outcome.statuses, part.outcome.verdicts, len(part.failed))
    return tally


def whole_manifest(folder: Path) -> Manifest:
    """The manifest of the same run into one file, without the size of that file.

    Raises:
        UsageError: as `finished_parts`.
    """
    parts, manifest = finished_parts(folder), Manifest.load(folder / _LIST)
    assert manifest is not None
    return replace(manifest, **_tally(parts).counts())
