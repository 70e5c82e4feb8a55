"""Parts: an output as a folder of files of consecutive rows, which are made in any order and each exactly once.

A part is written aside and renamed, and is named by its rows and by what it is made from. `parts.jsonl` lists the parts
in the order of their rows, with what became of them; beside it stands its manifest. A run that dies leaves parts that
are not listed yet: they are checked against the rows and listed, not made again.
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
_OURS = re.compile(r"part-\d{12}-\d{12}-[0-9a-f]{12}\.parquet(\.partial)?")  # other engines name files part-* too
_HASH = 16  # hexadecimal digits of a part's SHA-256
# Where a part ends: what a death costs (some 10 s of a core) against how many files there are.
_MOST_ROWS = 2_000
_MOST_BYTES = 8 << 20  # of text, so that long rows do not multiply in memory
_REASONS = 20  # different reasons that a part keeps apart


class Outcome(msgspec.Struct, frozen=True):
    """What became of some samples.

    Attributes:
        statuses: predictions by status.
        verdicts: predictions by language and verdict.
        reasons: failed predictions by reason; those beyond 20 different ones are together under "other reasons".
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
        outcome: what became of its samples.
        failed: its rows that could not be read, each with its number; the file does not hold them.
        seconds: CPU time that judging and encoding took; 0 of a part that an earlier run made and did not list.
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
        rows: they, in order.
    """

    id: str
    start: int
    rows: list[Row | FailedRow]

    @property
    def end(self) -> int:
        """Number of the first row behind it."""
        return self.start + len(self.rows)

    @property
    def samples(self) -> list[Any]:
        """The rows that could be read."""
        return [row for row in self.rows if not isinstance(row, FailedRow)]

    @property
    def failed(self) -> tuple[FailedRow, ...]:
        """The rows that could not be read, each with its number."""
        return tuple(replace(row, row=n) for n, row in enumerate(self.rows, self.start) if isinstance(row, FailedRow))


class PartFolder:
    """A folder of parts, made by `run`; the same call continues after any death.

    Args:
        path: the folder.
        read: the predictions of a part, in order.
        size: bytes of the text of a sample.
        inputs: paths of the input files, in order.
        signature: of the detector.
        options: every other option that changes the rows, by the name the user knows.
        restart: make the output anew, whatever is there.
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
        """Rows of the parts that are listed."""
        return max((part.end for part in _listed(self.path)), default=0)

    def run(
        self,
        rows: Callable[[], Iterable[Row | FailedRow]],
        make: Callable[[Iterator[Block], PartFolder], Iterator[Part]],
        *,
        stop: bool = False,
    ) -> Tally:
        """Make the folder, or what is missing of it.

        Args:
            rows: opens the input: the same rows in the same order at each call.
            make: gets the blocks that are not listed, and yields their parts in order, by `listed` or `write`.
            stop: raise at the first row that cannot be read; whole parts before it stay.

        Returns:
            What became of all rows, those of earlier calls included.

        Raises:
            UsageError: the folder was begun with another input, detector or option, which is named; or another process
                is making it.
            InputError: with `stop`, the first row that cannot be read.
        """
        self._checkpoint.check()
        self._prepare()
        self._checkpoint.run(self._blocks(rows, stop=stop), lambda missing: make(missing, self))
        listed = list(_listed(self.path))  # checked before, or written just now
        for path in set(self._files()) - {self.path / part.id for part in listed}:
            path.unlink()  # of a run that was given up: who reads all files of the folder may not meet it
        tally = _tally(listed)
        tally.reused = _tally(listed[: self._checkpoint.tally.reused]).rows
        return tally

    def listed(self, block: Block) -> Part | None:
        """The part of a block where an earlier run made it and died before it was listed; None where it is to make."""
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
        """Write a part whole, or not at all."""
        write_whole(self.path / block.id, data)
        return self._part(block, outcome, len(data), seconds, hashlib.sha256(data).hexdigest())

    @staticmethod
    def _part(block: Block, outcome: Outcome, size: int, seconds: float, sha256: str) -> Part:
        return Part(block.id, block.start, block.end, size, outcome, block.failed, round(seconds, 3), sha256[:_HASH])

    def _files(self) -> list[Path]:
        return [path for path in self.path.glob("part-*") if _OURS.fullmatch(path.name)]

    def _prepare(self) -> None:
        """Remove what is to be made anew: all parts on a restart; else the damaged ones, and the list that has them."""
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
                self.listing.unlink(missing_ok=True)  # its whole parts are listed again

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
        UsageError: it is no folder of parts, is not finished, or a part is missing or changed.
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
    """The manifest that a run into one file would have, without the size of that file.

    Raises:
        UsageError: as `finished_parts`.
    """
    parts, manifest = finished_parts(folder), Manifest.load(folder / _LIST)
    assert manifest is not None
    return replace(manifest, **_tally(parts).counts())
