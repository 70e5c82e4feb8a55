"""From inputs to clean lines: repeats, length, language and near-duplicates, with reasons of what is dropped."""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from veriglot.datasets.near_duplicates import (
    BANDS,
    SHINGLES_VERSION,
    Buckets,
    ShingleCache,
    dense_table,
    minhash,
    shingles,
)
from veriglot.datasets.sampling.lines import Columns, Line, LineStore, LineWriter, key_of, lines_of
from veriglot.datasets.sampling.selection import Cleaned
from veriglot.datasets.sampling.stages import ShardResult, Shards
from veriglot.errors import InputError
from veriglot.formats.containers import BadRow
from veriglot.records.languages import same_language
from veriglot.storage.checkpoint import FailedRow, JsonLines
from veriglot.text.identification import identify
from veriglot.text.unicode import Kind, code_points, kind_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.datasets.sampling.selection import Cleaning
    from veriglot.datasets.sampling.stages import Stages
    from veriglot.pipeline.engine import Watch

__all__ = ["DropReason", "ReadCounts", "clean", "read"]


class DropReason(IntEnum):
    """Why a line fell out, or that it stays. The numbers stand in files of the work folder."""

    KEPT = 0
    NO_SOURCE = 1
    NO_TARGET = 2
    REPEATED = 3
    TOO_SHORT = 4
    TOO_LONG = 5
    LANGUAGE_UNTOLD = 6
    LANGUAGE_UNSURE = 7
    OTHER_LANGUAGE = 8
    NEAR_DUPLICATE = 9


def drop_counts(drop_reasons: NDArray[np.uint8]) -> dict[str, int]:
    """How many lines have each reason, all of them named, in the order in which they are looked for."""
    counts = np.bincount(drop_reasons, minlength=len(DropReason))
    return {reason.name.lower(): int(counts[reason]) for reason in DropReason}


# Length, language and MinHash of lines: all that is looked at in a line by itself.


_BATCH = 2_000  # lines whose n-grams are in memory at once


def length_of(text: str) -> int:
    """Visible characters; one of a Chinese, Japanese or Korean script counts as two, marks and white space as none."""
    codes = code_points(text)
    seen = kind_table()[codes] & (Kind.SPACE | Kind.MARK | Kind.EDGE) == 0
    return int(seen.sum() + (seen & dense_table()[codes]).sum())


def compared_text(line: Line, unique: str) -> str:
    """What a line is told from others by: its source, or source and target."""
    return line.source if unique == "source" else f"{line.source}\n{line.target or ''}"


class LineChecker:
    """Looks at the lines that are kept so far.

    Args:
        store: folder of the lines.
        drop_reasons: file of the reasons so far.
        cleaning: what a line has to be.
    """

    def __init__(self, store: Path, drop_reasons: Path, cleaning: Cleaning) -> None:
        self._store = LineStore(store)
        self._drop_reasons = drop_reasons
        self._cleaning = cleaning

    def __call__(self, start: int, stop: int) -> ShardResult:
        """Arrays `fates`, `bands` and `sketches` of lines `[start, stop)`; notes count the other languages."""
        drop_reasons: NDArray[np.uint8] = np.array(np.load(self._drop_reasons, mmap_mode="r")[start:stop])
        bands, sketches = np.zeros((BANDS, stop - start), np.uint64), np.zeros(stop - start, np.uint64)
        others: Counter[str] = Counter()
        for first in range(start, stop, _BATCH):
            last = min(first + _BATCH, stop)
            clean = np.flatnonzero(drop_reasons[first - start : last - start] == DropReason.KEPT)
            lines = self._store.lines(first, last)
            for index in clean.tolist():
                reason, other = self._reason(lines[index].source)
                drop_reasons[first - start + index] = reason
                if other:
                    others[other] += 1
            if self._cleaning.near is not None:
                clean = clean[drop_reasons[clean + first - start] == DropReason.KEPT]
                texts = [compared_text(lines[index], self._cleaning.unique) for index in clean.tolist()]
                bands[:, clean + first - start], sketches[clean + first - start] = minhash(shingles(texts))
        return ShardResult({"fates": drop_reasons, "bands": bands, "sketches": sketches}, dict(others))

    def _reason(self, text: str) -> tuple[DropReason, str]:
        """Why a source is dropped (or `KEPT`), and the language it is in where that is another than it should be."""
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
        return DropReason.KEPT, ""


def same_script(first: str, second: str) -> bool:
    """Whether two tags are one language, and one script where both name one."""
    scripts = [_script(tag) for tag in (first, second)]
    return same_language(first, second) and (None in scripts or scripts[0] == scripts[1])


def _script(tag: str) -> str | None:
    return next((part for part in tag.split("-")[1:] if len(part) == 4 and part.isalpha()), None)


# Exact repeats among any number of keys, in bounded memory: a range of hash values at a time.


AT_ONCE = 2_000_000
"""How many hash values are sorted at once: 16 MB of them, and five times that while they are sorted."""

_BLOCK = 1 << 20


def slices_of(count: int, at_once: int) -> int:
    """Into how many ranges so many hash values are cut, for about `at_once` in each."""
    return max(1, -(-count // at_once))


def in_slice(hashes: NDArray[np.uint64], slice_: int, slices: int) -> NDArray[np.bool_]:
    """Which hashes belong to range number `slice_` of `slices`."""
    own: NDArray[np.uint64] = ((hashes >> np.uint64(32)) * np.uint64(slices)) >> np.uint64(32)
    inside: NDArray[np.bool_] = own == np.uint64(slice_)
    return inside


def mark_repeats(store: LineStore, drop_reasons: NDArray[np.uint8], *, at_once: int = AT_ONCE) -> None:
    """Give every kept line whose key an earlier kept line has the reason `REPEATED`, in place."""
    slices = slices_of(store.count, at_once)
    for slice_ in range(slices):
        keys, rows = _joined(_keys_in_slice(store, drop_reasons, slice_, slices))
        order = np.argsort(keys, kind="stable")  # rows come in ascending order, so the first of equals is the earliest
        again = np.flatnonzero(keys[order[1:]] == keys[order[:-1]]) + 1
        drop_reasons[rows[order[again]]] = DropReason.REPEATED


def _keys_in_slice(
    store: LineStore, drop_reasons: NDArray[np.uint8], slice_: int, slices: int
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint32]]]:
    for start in range(0, store.count, _BLOCK):
        stop = min(start + _BLOCK, store.count)
        keys = store.keys(start, stop)
        chosen = np.flatnonzero(in_slice(keys, slice_, slices) & (drop_reasons[start:stop] == DropReason.KEPT))
        yield keys[chosen], (chosen + start).astype(np.uint32)


def _joined(
    parts: Iterator[tuple[NDArray[np.uint64], NDArray[np.uint32]]],
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    arrays = list(parts)
    return np.concatenate([np.zeros(0, np.uint64), *(keys for keys, _ in arrays)]), np.concatenate(
        [np.zeros(0, np.uint32), *(rows for _, rows in arrays)]
    )


# Near-duplicates among any number of lines, in bounded memory: candidates by MinHash, a verdict by their texts.
#
# Band by band, lines whose band agrees stand together; the earliest of them is held against the others, and those that
# are similar enough fall out; then the earliest of the rest, until every line was held against those before it. A line
# falls out once, so the work is bounded by the lines and not by the pairs. What a line is a near-duplicate of may
# itself fall out in a later band, as one of a line before: of a chain of near-duplicates the first stays.


_ROUNDS = 1_000  # lines of one bucket that the others are held against


def mark_near_duplicates(
    store: LineStore,
    shards: Shards,
    drop_reasons: NDArray[np.uint8],
    *,
    near: float,
    unique: str,
    watch: Watch,
    at_once: int = AT_ONCE,
) -> int:
    """Give every kept line that is a near-duplicate of an earlier one the reason `NEAR_DUPLICATE`, in place.

    Args:
        store: the lines.
        shards: with the arrays `bands` and `sketches` of every line.
        drop_reasons: a `DropReason` for every line.
        near: Jaccard similarity from which a line is a near-duplicate.
        unique: `source` or `pair`, what is compared.
        watch: told of every band.
        at_once: about how many lines are sorted at once.

    Returns:
        Lines that stood in a bucket too full for all to be compared; 0 unless thousands of different lines agree.
    """
    slices = slices_of(int((drop_reasons == DropReason.KEPT).sum()), at_once)
    cache = ShingleCache(lambda rows: [compared_text(line, unique) for line in store.pick(np.array(rows, np.uint32))])
    uncompared = 0
    for band in range(BANDS):
        for slice_ in range(slices):
            buckets = Buckets(*_rows_in_slice(shards, drop_reasons, band, slice_, slices))
            for _, repeats in buckets.near_pairs(cache, near, rounds=_ROUNDS):
                drop_reasons[repeats] = DropReason.NEAR_DUPLICATE
            uncompared += buckets.numbers.size
        watch.advance()
    return uncompared


def _rows_in_slice(
    shards: Shards, drop_reasons: NDArray[np.uint8], band: int, slice_: int, slices: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint64]]:
    hashes, rows, sketches = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint32)], [np.zeros(0, np.uint64)]
    for (start, bands), (_, own_sketches) in zip(shards.arrays("bands"), shards.arrays("sketches"), strict=True):
        own = np.array(bands[band])
        wanted = (
            (own != 0) & (drop_reasons[start : start + len(own)] == DropReason.KEPT) & in_slice(own, slice_, slices)
        )
        chosen = np.flatnonzero(wanted)
        hashes.append(own[chosen])
        rows.append((chosen + start).astype(np.uint32))
        sketches.append(own_sketches[chosen])
    return np.concatenate(hashes), np.concatenate(rows), np.concatenate(sketches)


_SHARD = 50_000


class ReadCounts(msgspec.Struct, frozen=True):
    """What reading gave: lines, rows that could not be read, and lines with a translation."""

    lines: int
    unreadable: int
    translated: int


def read(stages: Stages, paths: Sequence[str], columns: Columns, cleaning: Cleaning, *, watch: Watch) -> ReadCounts:
    """Read all inputs into a store, in the folder of the stage `read`; rows that cannot be read go to `failed.jsonl`.

    Raises:
        InputError: an input does not exist, or holds no line.
    """
    from veriglot.storage.checkpoint import InputFile

    files = [InputFile.of(path) for path in (*paths, *columns.targets)]
    settings = {
        "inputs": [(file.path, file.sha256) for file in files],
        "columns": columns,
        "unique": cleaning.unique,
    }
    return stages.do("read", settings, partial(_read, paths, columns, cleaning.unique, watch), ReadCounts)


def _read(paths: Sequence[str], columns: Columns, unique: str, watch: Watch, folder: Path) -> ReadCounts:
    watch.begin("reading", None)
    failed_path = folder / "failed.jsonl"
    failed_path.unlink(missing_ok=True)
    failed, drop_reasons, translated, unreadable = JsonLines(failed_path), bytearray(), 0, 0
    first_bad: InputError | None = None
    with LineWriter(folder) as writer:
        for row in lines_of(paths, columns):
            watch.advance()
            if isinstance(row, BadRow):
                failed.append(msgspec.json.encode(FailedRow.of(row.error, row.raw or None)))
                first_bad = first_bad or row.error
                unreadable += 1
                continue
            line, given = row
            writer.add(line, _key(line, unique), given)
            reason = DropReason.KEPT if line.source.strip() else DropReason.NO_SOURCE
            has_target = bool(line.target and line.target.strip())
            translated += has_target
            drop_reasons.append(reason if has_target or reason else DropReason.NO_TARGET)
    failed.close()
    if first_bad is not None and not writer.count:
        raise InputError(
            f"no line can be read; of {unreadable:,} rows the first: {first_bad.message}",
            remedy=f"{first_bad.remedy} All of them stand in {failed_path}.".strip(),
        )
    if not writer.count:
        raise InputError("there is no line in the inputs")
    known = np.frombuffer(drop_reasons, np.uint8).copy()
    if not translated:  # these are sources alone, which are to be translated once they are clean
        known[known == DropReason.NO_TARGET] = DropReason.KEPT
    np.save(folder / "fates.npy", known)
    return ReadCounts(writer.count, unreadable, translated)


def _key(line: Line, unique: str) -> int:
    return key_of(line.source) if unique == "source" else key_of(line.source, line.target or "")


def clean(stages: Stages, was_read: ReadCounts, cleaning: Cleaning, *, jobs: int, watch: Watch) -> Cleaned:
    """Look at every line; numbers and keys of the clean ones stand in `kept.npy` and `keys.npy` of the stage `near`.

    Returns:
        What became of all lines; lines of which nothing is known but that they were read are kept.
    """
    folder = stages.path("read")
    if cleaning.skip:
        work = partial(_keep_all, folder, was_read)
        return stages.do("near", {"skip": True}, work, Cleaned, after="read")
    stages.do("repeats", {}, partial(_repeats, folder, watch), bool, after="read")
    drop_reasons = stages.path("repeats") / "fates.npy"
    settings: dict[str, Any] = {
        "language": cleaning.language,
        "min_length": cleaning.min_length,
        "max_length": cleaning.max_length,
        "min_confidence": cleaning.min_confidence,
        "compares": SHINGLES_VERSION if cleaning.near is not None else None,
    }
    work_: Any = partial(_examine, folder, drop_reasons, was_read, cleaning, jobs, watch)
    stages.do("lines", settings, work_, bool, after="repeats")
    shards = Shards(stages.path("lines") / "shards", was_read.lines, _SHARD)
    near = partial(_near, folder, shards, was_read, cleaning, watch)
    return stages.do("near", {"near": cleaning.near}, near, Cleaned, after="lines")


def _repeats(store: Path, watch: Watch, folder: Path) -> bool:
    watch.begin("looking for repeats", None)
    drop_reasons: NDArray[np.uint8] = np.load(store / "fates.npy")
    with LineStore(store) as lines:
        mark_repeats(lines, drop_reasons)
    np.save(folder / "fates.npy", drop_reasons)
    return True


def _examine(
    store: Path, drop_reasons: Path, was_read: ReadCounts, cleaning: Cleaning, jobs: int, watch: Watch, folder: Path
) -> bool:
    shards = Shards(folder / "shards", was_read.lines, _SHARD)
    watch.begin(f"telling languages and lengths, {_SHARD:,} lines at a time", len(shards))
    shards.run(partial(LineChecker, store, drop_reasons, cleaning), jobs=jobs, watch=watch)
    return True


def _near(store: Path, shards: Shards, was_read: ReadCounts, cleaning: Cleaning, watch: Watch, folder: Path) -> Cleaned:
    drop_reasons, uncompared = shards.joined("fates"), 0
    with LineStore(store) as lines:
        if cleaning.near is not None:
            watch.begin("looking for near-duplicates, band by band", None)
            uncompared = mark_near_duplicates(
                lines, shards, drop_reasons, near=cleaning.near, unique=cleaning.unique, watch=watch
            )
        _save_kept(lines, drop_reasons, folder)
    return _cleaned(was_read, drop_reasons, shards.notes(), uncompared)


def _keep_all(store: Path, was_read: ReadCounts, folder: Path) -> Cleaned:
    drop_reasons: NDArray[np.uint8] = np.load(store / "fates.npy")
    with LineStore(store) as lines:
        _save_kept(lines, drop_reasons, folder)
    return _cleaned(was_read, drop_reasons, {}, 0)


def _save_kept(lines: LineStore, drop_reasons: NDArray[np.uint8], folder: Path) -> None:
    clean = np.flatnonzero(drop_reasons == DropReason.KEPT).astype(np.uint32)
    np.save(folder / "fates.npy", drop_reasons)
    np.save(folder / "kept.npy", clean)
    np.save(folder / "keys.npy", lines.pick_keys(clean))


def _cleaned(
    was_read: ReadCounts, drop_reasons: NDArray[np.uint8], languages: dict[str, int], uncompared: int
) -> Cleaned:
    return Cleaned(
        lines=was_read.lines,
        unreadable=was_read.unreadable,
        translated=was_read.translated,
        drop_reasons=drop_counts(drop_reasons),
        other_languages=languages,
        uncompared=uncompared,
    )
