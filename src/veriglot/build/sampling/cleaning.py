"""From inputs to clean lines: reading, exact repeats, length and language, near-duplicates. Each a stage on disk."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from veriglot.build.sampling.account import Cleaned
from veriglot.build.sampling.examining import Examiner
from veriglot.build.sampling.fates import Fate, fate_counts
from veriglot.build.sampling.lines import Columns, Line, lines_of
from veriglot.build.sampling.near import mark_near_duplicates
from veriglot.build.sampling.repeats import mark_repeats
from veriglot.build.sampling.shards import Shards
from veriglot.build.sampling.shingles import SHINGLES_VERSION
from veriglot.build.sampling.store import LineStore, LineWriter, key_of
from veriglot.errors import InputError
from veriglot.formats import BadRow
from veriglot.run.failed import FailedRow
from veriglot.run.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.build.sampling.settings import Cleaning
    from veriglot.build.sampling.stages import Stages
    from veriglot.run.watch import Watch

__all__ = ["Read", "clean", "read"]

_SHARD = 50_000


class Read(msgspec.Struct, frozen=True):
    """What reading gave: lines, rows that could not be read, and lines with a translation."""

    lines: int
    unreadable: int
    translated: int


def read(stages: Stages, paths: Sequence[str], columns: Columns, cleaning: Cleaning, *, watch: Watch) -> Read:
    """Read all inputs into a store, in the folder of the stage `read`; rows that cannot be read go to `failed.jsonl`.

    Raises:
        InputError: an input does not exist, or holds no line.
    """
    from veriglot.run.manifest import InputFile

    files = [InputFile.of(path) for path in (*paths, *columns.targets)]
    settings = {
        "inputs": [(file.path, file.sha256) for file in files],
        "columns": columns,
        "unique": cleaning.unique,
    }
    return stages.do("read", settings, partial(_read, paths, columns, cleaning.unique, watch), Read)


def _read(paths: Sequence[str], columns: Columns, unique: str, watch: Watch, folder: Path) -> Read:
    watch.begin("reading", None)
    failed_path = folder / "failed.jsonl"
    failed_path.unlink(missing_ok=True)
    failed, fates, translated, unreadable = Journal(failed_path), bytearray(), 0, 0
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
            fate = Fate.KEPT if line.source.strip() else Fate.NO_SOURCE
            has_target = bool(line.target and line.target.strip())
            translated += has_target
            fates.append(fate if has_target or fate else Fate.NO_TARGET)
    failed.close()
    if first_bad is not None and not writer.count:
        raise InputError(
            f"no line can be read; of {unreadable:,} rows the first: {first_bad.message}",
            remedy=f"{first_bad.remedy} All of them stand in {failed_path}.".strip(),
        )
    if not writer.count:
        raise InputError("there is no line in the inputs")
    known = np.frombuffer(fates, np.uint8).copy()
    if not translated:  # these are sources alone, which are to be translated once they are clean
        known[known == Fate.NO_TARGET] = Fate.KEPT
    np.save(folder / "fates.npy", known)
    return Read(writer.count, unreadable, translated)


def _key(line: Line, unique: str) -> int:
    return key_of(line.source) if unique == "source" else key_of(line.source, line.target or "")


def clean(stages: Stages, was_read: Read, cleaning: Cleaning, *, jobs: int, watch: Watch) -> Cleaned:
    """Look at every line; numbers and keys of the clean ones stand in `kept.npy` and `keys.npy` of the stage `near`.

    Returns:
        What became of all lines; lines of which nothing is known but that they were read are kept.
    """
    folder = stages.path("read")
    if cleaning.skip:
        work = partial(_keep_all, folder, was_read)
        return stages.do("near", {"skip": True}, work, Cleaned, after="read")
    stages.do("repeats", {}, partial(_repeats, folder, watch), bool, after="read")
    fates = stages.path("repeats") / "fates.npy"
    settings: dict[str, Any] = {
        "language": cleaning.language,
        "min_length": cleaning.min_length,
        "max_length": cleaning.max_length,
        "min_confidence": cleaning.min_confidence,
        "compares": SHINGLES_VERSION if cleaning.near is not None else None,
    }
    work_: Any = partial(_examine, folder, fates, was_read, cleaning, jobs, watch)
    stages.do("lines", settings, work_, bool, after="repeats")
    shards = Shards(stages.path("lines") / "shards", was_read.lines, _SHARD)
    near = partial(_near, folder, shards, was_read, cleaning, watch)
    return stages.do("near", {"near": cleaning.near}, near, Cleaned, after="lines")


def _repeats(store: Path, watch: Watch, folder: Path) -> bool:
    watch.begin("looking for repeats", None)
    fates: NDArray[np.uint8] = np.load(store / "fates.npy")
    with LineStore(store) as lines:
        mark_repeats(lines, fates)
    np.save(folder / "fates.npy", fates)
    return True


def _examine(
    store: Path, fates: Path, was_read: Read, cleaning: Cleaning, jobs: int, watch: Watch, folder: Path
) -> bool:
    shards = Shards(folder / "shards", was_read.lines, _SHARD)
    watch.begin(f"telling languages and lengths, {_SHARD:,} lines at a time", len(shards))
    shards.run(partial(Examiner, store, fates, cleaning), jobs=jobs, watch=watch)
    return True


def _near(store: Path, shards: Shards, was_read: Read, cleaning: Cleaning, watch: Watch, folder: Path) -> Cleaned:
    fates, uncompared = shards.joined("fates"), 0
    with LineStore(store) as lines:
        if cleaning.near is not None:
            watch.begin("looking for near-duplicates, band by band", None)
            uncompared = mark_near_duplicates(
                lines, shards, fates, near=cleaning.near, unique=cleaning.unique, watch=watch
            )
        _save_kept(lines, fates, folder)
    return _cleaned(was_read, fates, shards.notes(), uncompared)


def _keep_all(store: Path, was_read: Read, folder: Path) -> Cleaned:
    fates: NDArray[np.uint8] = np.load(store / "fates.npy")
    with LineStore(store) as lines:
        _save_kept(lines, fates, folder)
    return _cleaned(was_read, fates, {}, 0)


def _save_kept(lines: LineStore, fates: NDArray[np.uint8], folder: Path) -> None:
    kept = np.flatnonzero(fates == Fate.KEPT).astype(np.uint32)
    np.save(folder / "fates.npy", fates)
    np.save(folder / "kept.npy", kept)
    np.save(folder / "keys.npy", lines.pick_keys(kept))


def _cleaned(was_read: Read, fates: NDArray[np.uint8], languages: dict[str, int], uncompared: int) -> Cleaned:
    return Cleaned(
        lines=was_read.lines,
        unreadable=was_read.unreadable,
        translated=was_read.translated,
        fates=fate_counts(fates),
        other_languages=languages,
        uncompared=uncompared,
    )
