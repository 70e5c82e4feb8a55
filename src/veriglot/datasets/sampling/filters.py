"""From inputs to clean lines: repeats, length, language and near-duplicates, in stages on disk that can resume."""

from __future__ import annotations

import multiprocessing
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec
import numpy as np
from msgspec.structs import asdict, replace

from veriglot.datasets.near_duplicates import BANDS, SHINGLES_VERSION, Buckets, ShingleCache, dense_table, minhash
from veriglot.datasets.sampling.lines import Columns, Line, LineStore, LineWriter, key_of, lines_of
from veriglot.errors import InputError, UsageError, VeriglotError
from veriglot.records.languages import same_language
from veriglot.records.settings import Record, check_ranges
from veriglot.signatures import digest
from veriglot.storage.checkpoint import FailedRow, InputFile, JsonLines, differing_settings
from veriglot.storage.files import whole_folder, write_whole
from veriglot.text.identification import identify
from veriglot.text.unicode import Kind, code_points, kind_table

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.arrays import Bools, Numbers, UInt8s, UInt32s, UInt64s
    from veriglot.pipeline.progress import ProgressReporter

    Hashes = UInt64s
    Reasons = UInt8s

__all__ = ["Cleaned", "Cleaning", "DropReason", "Shards", "Stages", "clean", "read"]

T = TypeVar("T")

_AT_ONCE = 2_000_000  # hash values sorted at once: 16 MB, and five times that during the sort
_BATCH = 2_000  # lines whose n-grams are in memory at once
_ROUNDS = 1_000  # number of lines of one bucket that the others are compared with
_SHARD = 50_000


class DropReason(IntEnum):
    """Why a line is dropped, or that it is clean. The numbers are in files of the work folder."""

    CLEAN = 0
    NO_SOURCE = 1
    NO_TARGET = 2
    REPEATED = 3
    TOO_SHORT = 4
    TOO_LONG = 5
    LANGUAGE_UNTOLD = 6
    LANGUAGE_UNSURE = 7
    OTHER_LANGUAGE = 8
    NEAR_DUPLICATE = 9


class Cleaning(Record):
    """Conditions for a clean line. HAT (section 2.1) names the filters without numbers; the numbers are ours.

    Attributes:
        language: BCP 47 tag of the sources. The language of targets is not checked: translations into the wrong
            language are among the errors that the sample is for.
        unique: what must be unique: a source, as in HAT, or a pair of source and target.
        min_length: shortest source, in letters and other visible characters; a character of a Chinese, Japanese or
            Korean script counts as two.
        max_length: longest source, counted in the same way.
        min_confidence: of the language, 0 to 1; sources with a lower one are dropped.
        near: Jaccard similarity of character n-grams, 0.01 to 1, from which a text is a near-duplicate of an earlier
            one; None keeps near-duplicates.
        skip: no filters, because the data are clean already.

    Raises:
        UsageError: a number is out of its range.
    """

    language: str
    unique: Literal["source", "pair"] = "source"
    min_length: int = 15
    max_length: int = 1_000
    min_confidence: float = 0.5
    near: float | None = 0.8
    skip: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.min_length <= self.max_length:
            raise UsageError(f"Lengths from {self.min_length} to {self.max_length} are no range.")
        check_ranges(self, min_confidence=(0, 1), near=(0.01, 1))


class _ReadCounts(Record):
    """Number of lines, of unreadable rows (they are in `failed.jsonl`), and of lines with a translation."""

    lines: int
    unreadable: int
    translated: int


class Cleaned(_ReadCounts):
    """Counts of all lines.

    Attributes:
        lines: lines that could be read.
        unreadable: rows that could not; they are in `failed.jsonl`.
        translated: lines with a translation.
        drop_reasons: lines by reason, in the order of the filters; the sum is `lines`.
        other_languages: lines in another language than the sources', by its tag.
        uncompared: lines in buckets that were too large for all comparisons.
    """

    drop_reasons: dict[str, int] = msgspec.field(name="fates")
    other_languages: dict[str, int]
    uncompared: int

    @property
    def clean(self) -> int:
        """Number of clean lines."""
        return self.drop_reasons["kept"]


class _Marker(Record):
    """Settings and result of a stage."""

    key: str
    settings: dict[str, Any]
    finished: bool = False
    result: msgspec.Raw = msgspec.Raw(b"null")


class Stages:
    """The stages in a folder.

    Args:
        folder: has a folder for each stage.
        restart: repeat stages with other settings, instead of raising an error.
    """

    def __init__(self, folder: Path, *, restart: bool) -> None:
        self._folder = folder
        self._restart = restart
        self._keys: dict[str, str] = {}

    def path(self, name: str) -> Path:
        """The folder of a stage."""
        return self._folder / name

    def key(self, name: str) -> str:
        """A hash of the settings of a stage of this run and of all stages before it."""
        return self._keys[name]

    def do(
        self,
        name: str,
        settings: dict[str, Any],
        work: Callable[[Path], T],
        type_: type[T],
        *,
        after: str | None = None,
    ) -> T:
        """The result of a stage; it is loaded if an earlier run with the same settings finished the stage.

        Args:
            name: of the stage, and of its folder.
            settings: all settings that change the result, apart from the stage before.
            work: runs the stage in the given folder; files of an earlier run there have the same settings.
            type_: of the result, as JSON.
            after: the stage that it depends on.

        Raises:
            UsageError: it was begun with other settings, and `restart` is off.
        """
        marker, folder = self.check(name, settings, after=after), self.path(name)
        if marker.finished:
            return msgspec.json.decode(marker.result, type=type_)
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "stage.json", msgspec.json.encode(marker))
        result = work(folder)
        done = replace(marker, finished=True, result=msgspec.Raw(msgspec.json.encode(result)))
        write_whole(folder / "stage.json", msgspec.json.encode(done))
        return result

    def check(self, name: str, settings: dict[str, Any], *, after: str | None = None) -> _Marker:
        """The settings of a stage; results of other settings are removed, or refused before any work.

        Raises:
            UsageError: the stage was begun with other settings, and `restart` is off.
        """
        encoded = msgspec.json.encode(settings, order="deterministic")
        folder, key = self.path(name), digest([self._keys.get(after or "", ""), name, encoded])
        self._keys[name], settings = key, msgspec.json.decode(encoded)
        try:
            marker = msgspec.json.decode((folder / "stage.json").read_bytes(), type=_Marker)
        except FileNotFoundError:
            return _Marker(key, settings)
        except msgspec.DecodeError:
            raise UsageError(
                f"{folder / 'stage.json'} is damaged, or from another version.",
                "Remove the folder, or name another output.",
            ) from None
        if marker.key == key:
            return marker
        if not self._restart:
            differences = ", ".join(differing_settings(marker.settings, settings))
            raise UsageError(
                f"{folder} was made in another way: {differences or 'a stage before it was redone'}.",
                "Rerun the command with --overwrite to redo this stage and those after it, or name another output.",
            )
        shutil.rmtree(folder)
        return _Marker(key, settings)


# The work on rows `[start, stop)`: returns arrays, each stored in a file, and counts by name.
_Worker = Callable[[int, int], tuple[dict[str, "Numbers"], dict[str, int]]]


@dataclass(frozen=True)
class Shards:
    """Work that is split into ranges of rows.

    Attributes:
        folder: for the results.
        count: number of rows.
        size: rows in a range.
    """

    folder: Path
    count: int
    size: int

    def run(self, make: Callable[[], _Worker], *, jobs: int, progress: ProgressReporter) -> None:
        """Process the ranges that are not finished.

        Args:
            make: makes the worker for rows `[start, stop)`, the same in every process; picklable if there are several.
            jobs: number of processes; 1 runs in this one.
            progress: counts the finished ranges.

        Raises:
            VeriglotError: a process died. Any exception of the worker. Finished ranges are kept.
        """
        left = [number for number in range(len(self)) if not self._path(number).is_dir()]
        for _ in range(len(self) - len(left)):
            progress.advance()
        context = multiprocessing.get_context("spawn")  # safe with any threads of the caller
        try:
            with ExitStack() as stack:
                if jobs > 1 and len(left) > 1:
                    pool = ProcessPoolExecutor(min(jobs, len(left)), context, _begin, (make, self))
                    done = stack.enter_context(pool).map(_do_shard, left)
                else:
                    done = map(partial(self._do, make()), left) if left else iter(())
                for _ in done:
                    progress.advance()
        except BrokenProcessPool as error:
            raise VeriglotError(
                "A worker process died.", "Check the memory. Finished ranges are kept: rerun with fewer --processes."
            ) from error

    def __len__(self) -> int:
        return -(-self.count // self.size)

    def arrays(self, name: str) -> Iterator[tuple[int, Numbers]]:
        """First row and array `name` of every range, memory-mapped."""
        for number in range(len(self)):
            yield number * self.size, np.load(self._path(number) / f"{name}.npy", mmap_mode="r")

    def joined(self, name: str) -> Numbers:
        """Array `name` of all ranges, one after another."""
        parts = [np.array(array) for _, array in self.arrays(name)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def notes(self) -> dict[str, int]:
        """The sums of all counts, by name in alphabetical order."""
        total = Counter[str]()
        for number in range(len(self)):
            total.update(msgspec.json.decode((self._path(number) / "notes.json").read_bytes(), type=dict[str, int]))
        return dict(sorted(total.items()))

    def _do(self, worker: _Worker, number: int) -> None:
        """Process range `number`, and write its results atomically."""
        arrays, notes = worker(number * self.size, min((number + 1) * self.size, self.count))
        with whole_folder(self._path(number)) as folder:
            for name, array in arrays.items():
                np.save(folder / f"{name}.npy", array)
            (folder / "notes.json").write_bytes(msgspec.json.encode(notes))

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}"


_work: Callable[[int], None]  # of this worker process


def _begin(make: Callable[[], _Worker], shards: Shards) -> None:
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the parent handles it
    _work = partial(shards._do, make())


def _do_shard(number: int) -> None:
    _work(number)


# Length, language and MinHash of lines: all checks of a line by itself.


def length_of(text: str) -> int:
    """Visible characters; one of a Chinese, Japanese or Korean script counts as two, marks and white space as none."""
    codes = code_points(text)
    seen = kind_table()[codes] & (Kind.SPACE | Kind.MARK | Kind.EDGE) == 0
    return int(seen.sum() + (seen & dense_table()[codes]).sum())


def compared_texts(line: Line, unique: str) -> tuple[str, ...]:
    """The texts that must be unique: source, or source and target."""
    return (line.source,) if unique == "source" else (line.source, line.target or "")


class LineChecker:
    """Checks the lines of a store that have no reason in a file so far."""

    def __init__(self, store: Path, drop_reasons: Path, cleaning: Cleaning) -> None:
        self._store = LineStore(store)
        self._drop_reasons = drop_reasons
        self._cleaning = cleaning

    def __call__(self, start: int, stop: int) -> tuple[dict[str, Numbers], dict[str, int]]:
        """Arrays `fates`, `bands` and `sketches` of lines `[start, stop)`; notes count the other languages."""
        drop_reasons: Reasons = np.array(np.load(self._drop_reasons, mmap_mode="r")[start:stop])
        bands, sketches = np.zeros((BANDS, stop - start), np.uint64), np.zeros(stop - start, np.uint64)
        others = Counter[str]()
        for first in range(start, stop, _BATCH):
            last = min(first + _BATCH, stop)
            clean = np.flatnonzero(drop_reasons[first - start : last - start] == DropReason.CLEAN)
            lines = self._store.lines(first, last)
            for index in clean.tolist():
                reason, other = self._reason(lines[index].source)
                drop_reasons[first - start + index] = reason
                if other:
                    others[other] += 1
            if self._cleaning.near is not None:
                clean = clean[drop_reasons[clean + first - start] == DropReason.CLEAN]
                texts = ["\n".join(compared_texts(lines[index], self._cleaning.unique)) for index in clean.tolist()]
                bands[:, clean + first - start], sketches[clean + first - start] = minhash(texts)
        return {"fates": drop_reasons, "bands": bands, "sketches": sketches}, dict(others)

    def _reason(self, text: str) -> tuple[DropReason, str]:
        """Why a source is dropped (or `CLEAN`), and its language if it is not the expected one."""
        cleaning = self._cleaning
        length = length_of(text)
        if length < cleaning.min_length:
            return DropReason.TOO_SHORT, ""
        if length > cleaning.max_length:
            return DropReason.TOO_LONG, ""
        identified = identify(text)
        if identified is None:
            return DropReason.LANGUAGE_UNTOLD, ""
        if identified.confidence < cleaning.min_confidence:
            return DropReason.LANGUAGE_UNSURE, ""
        if not same_script(identified.tag, cleaning.language):
            return DropReason.OTHER_LANGUAGE, identified.tag
        return DropReason.CLEAN, ""


def same_script(first: str, second: str) -> bool:
    """Whether two tags have the same language, and the same script if both name one."""
    scripts = [_script(tag) for tag in (first, second)]
    return same_language(first, second) and (None in scripts or scripts[0] == scripts[1])


def _script(tag: str) -> str | None:
    return next((part for part in tag.split("-")[1:] if len(part) == 4 and part.isalpha()), None)


def in_slice(hashes: Hashes, slice_: int, slices: int) -> Bools:
    """Whether each hash is in range number `slice_` of `slices`."""
    return np.asarray(((hashes >> np.uint64(32)) * np.uint64(slices)) >> np.uint64(32) == np.uint64(slice_))


def mark_repeats(store: LineStore, drop_reasons: Reasons) -> None:
    """Give every remaining line with the key of an earlier one the reason `REPEATED`, in place."""
    keys, clean = store.keys(0, store.count), drop_reasons == DropReason.CLEAN
    slices = max(1, -(-store.count // _AT_ONCE))
    for slice_ in range(slices):  # one range of hash values at a time, to bound memory
        rows = np.flatnonzero(clean & in_slice(keys, slice_, slices))
        rows = rows[np.argsort(keys[rows], kind="stable")]  # stable, so that the first of equals is the earliest
        drop_reasons[rows[1:][keys[rows[1:]] == keys[rows[:-1]]]] = DropReason.REPEATED


# Near-duplicates among any number of lines, in bounded memory: candidates by MinHash, then comparison of texts.
#
# For each band, lines with equal bands form a bucket; the earliest line is compared with the others, and those that are
# similar enough are dropped; then the earliest of the rest, until every line was compared with those before it. A line
# is dropped once, so the work grows with lines and not with pairs. The line that causes a drop may itself be dropped in
# a later band, because of an earlier line: of a chain of near-duplicates the first stays.


def mark_near_duplicates(
    store: LineStore, shards: Shards, drop_reasons: Reasons, *, near: float, unique: str, progress: ProgressReporter
) -> int:
    """Give every remaining line that is a near-duplicate of an earlier one the reason `NEAR_DUPLICATE`, in place."""
    slices = max(1, -(-int((drop_reasons == DropReason.CLEAN).sum()) // _AT_ONCE))
    cache = ShingleCache(
        lambda rows: ["\n".join(compared_texts(line, unique)) for line in store.pick(np.array(rows, np.uint32))]
    )
    uncompared = 0
    for band in range(BANDS):
        for slice_ in range(slices):
            buckets = Buckets(*_rows_in_slice(shards, drop_reasons, band, slice_, slices))
            for _, repeats in buckets.near_pairs(cache, near, rounds=_ROUNDS):
                drop_reasons[repeats] = DropReason.NEAR_DUPLICATE
            uncompared += buckets.numbers.size
        progress.advance()
    return uncompared


def _rows_in_slice(
    shards: Shards, drop_reasons: Reasons, band: int, slice_: int, slices: int
) -> tuple[Hashes, UInt32s, Hashes]:
    hashes, rows, sketches = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint32)], [np.zeros(0, np.uint64)]
    for (start, bands), (_, own_sketches) in zip(shards.arrays("bands"), shards.arrays("sketches"), strict=True):
        own = np.array(bands[band])
        wanted = (
            (own != 0) & (drop_reasons[start : start + len(own)] == DropReason.CLEAN) & in_slice(own, slice_, slices)
        )
        chosen = np.flatnonzero(wanted)
        hashes.append(own[chosen])
        rows.append((chosen + start).astype(np.uint32))
        sketches.append(own_sketches[chosen])
    return np.concatenate(hashes), np.concatenate(rows), np.concatenate(sketches)


def read(
    stages: Stages, paths: Sequence[str], columns: Columns, cleaning: Cleaning, *, progress: ProgressReporter
) -> _ReadCounts:
    """Read all inputs into a store, in the folder of the stage `read`; unreadable rows go to `failed.jsonl`.

    Raises:
        InputError: an input does not exist, or has no lines.
    """
    files = [InputFile.of(path) for path in (*paths, *columns.targets)]
    settings = {"inputs": [(file.path, file.sha256) for file in files], "unique": cleaning.unique, **asdict(columns)}

    def read_lines(folder: Path) -> _ReadCounts:
        progress.begin("reading", None)
        failed_path = folder / "failed.jsonl"
        failed_path.unlink(missing_ok=True)
        failed, drop_reasons, translated, unreadable = JsonLines(failed_path), bytearray(), 0, 0
        first_bad: InputError | None = None
        with LineWriter(folder) as writer:
            for row in lines_of(paths, columns):
                progress.advance()
                if isinstance(row, FailedRow):
                    failed.append(msgspec.json.encode(row))
                    first_bad = first_bad or row.as_error()
                    unreadable += 1
                    continue
                line, given = row
                writer.add(line, key_of(*compared_texts(line, cleaning.unique)), given)
                reason = DropReason.CLEAN if line.source.strip() else DropReason.NO_SOURCE
                has_target = bool(line.target and line.target.strip())
                translated += has_target
                drop_reasons.append(reason if has_target or reason else DropReason.NO_TARGET)
        failed.close()
        if not writer.count and first_bad is not None:
            raise InputError(
                f"no line can be read; of {unreadable:,} rows the first: {first_bad.message}",
                f"{first_bad.remedy} All of them are in {failed_path}.".strip(),
            )
        if not writer.count:
            raise InputError("there is no line in the inputs")
        known = np.frombuffer(drop_reasons, np.uint8).copy()
        if not translated:  # only sources, to be translated after cleaning
            known[known == DropReason.NO_TARGET] = DropReason.CLEAN
        np.save(folder / "fates.npy", known)
        return _ReadCounts(writer.count, unreadable, translated)

    return stages.do("read", settings, read_lines, _ReadCounts)


def clean(
    stages: Stages, was_read: _ReadCounts, cleaning: Cleaning, *, jobs: int, progress: ProgressReporter
) -> Cleaned:
    """Check every line; numbers and keys of the clean ones are in `kept.npy` and `keys.npy` of the stage `near`.

    Returns:
        Counts of all lines; with `Cleaning.skip` no filter is applied.
    """
    store, repeats = stages.path("read"), stages.path("repeats")
    shards = Shards(stages.path("lines") / "shards", was_read.lines, _SHARD)

    def find_repeats(folder: Path) -> None:
        progress.begin("looking for repeats", None)
        drop_reasons: Reasons = np.load(store / "fates.npy")
        with LineStore(store) as lines:
            mark_repeats(lines, drop_reasons)
        np.save(folder / "fates.npy", drop_reasons)

    def check_lines(_: Path) -> None:
        progress.begin(f"telling languages and lengths, {_SHARD:,} lines at a time", len(shards))
        shards.run(partial(LineChecker, store, repeats / "fates.npy", cleaning), jobs=jobs, progress=progress)

    def find_near(folder: Path) -> Cleaned:
        drop_reasons = np.load(store / "fates.npy") if cleaning.skip else shards.joined("fates")
        uncompared = 0
        with LineStore(store) as lines:
            if cleaning.near is not None and not cleaning.skip:
                progress.begin("looking for near-duplicates, band by band", None)
                uncompared = mark_near_duplicates(
                    lines, shards, drop_reasons, near=cleaning.near, unique=cleaning.unique, progress=progress
                )
            clean_lines = np.flatnonzero(drop_reasons == DropReason.CLEAN).astype(np.uint32)
            np.save(folder / "fates.npy", drop_reasons)
            np.save(folder / "kept.npy", clean_lines)
            np.save(folder / "keys.npy", lines.keys(0, lines.count)[clean_lines])
        counts = np.bincount(drop_reasons, minlength=len(DropReason))
        return Cleaned(
            **asdict(was_read),
            drop_reasons={reason.name.lower() if reason else "kept": int(counts[reason]) for reason in DropReason},
            other_languages={} if cleaning.skip else shards.notes(),
            uncompared=uncompared,
        )

    if cleaning.skip:
        return stages.do("near", {"skip": True}, find_near, Cleaned, after="read")
    stages.do("repeats", {}, find_repeats, type(None), after="read")
    settings = {
        "language": cleaning.language,
        "min_length": cleaning.min_length,
        "max_length": cleaning.max_length,
        "min_confidence": cleaning.min_confidence,
        "compares": SHINGLES_VERSION if cleaning.near is not None else None,
    }
    stages.do("lines", settings, check_lines, type(None), after="repeats")
    return stages.do("near", {"near": cleaning.near}, find_near, Cleaned, after="lines")
