"""Shards: the same command on several machines, each for a part of the rows, and the merge of their outputs.

Every shard reads the whole input and takes every n-th block of rows, so that row numbers are the same and each shard
detects duplicate ids. The manifest beside an output has the shard.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain, count, islice
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec.structs import replace

from veriglot.errors import UsageError
from veriglot.storage.checkpoint import FailedRow, JsonLines, Manifest, Tally
from veriglot.storage.files import Lock, beside, open_whole, partial_path, write_json
from veriglot.storage.parts import finished_parts, whole_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    ReadLines = Callable[[Path], Iterator[bytes]]

__all__ = ["SHARD", "Shard", "merge"]

T = TypeVar("T")
SHARD = "--shard"  # key of the option in the manifest
_BLOCK = 8  # rows; neighbours often share evidence, which detectors cache
_SHOWN = 10  # maximum of missing shards in a message
_SHARD = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")


@dataclass(frozen=True, order=True)
class Shard:
    """One of `count` parts of the rows; `number` counts from 1."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse `3/16`.

        Raises:
            UsageError: it does not have this form, or there is no such shard.
        """
        match = _SHARD.fullmatch(text)
        shard = cls(*map(int, match.groups())) if match else cls(0, 0)
        if not 1 <= shard.number <= shard.count:
            raise UsageError(f"{SHARD} is a number and how many there are, such as 3/16, but {text!r} was given.")
        return shard

    @classmethod
    def check_all(cls, texts: Sequence[str], names: Sequence[str]) -> None:
        """Check that shards (`3/16`, each of the file with the same index in `names`) are all of one run, each once.

        Raises:
            UsageError: one is missing, given twice, of another number of shards, or invalid.
        """
        count = cls.parse(texts[0]).count
        by_number: dict[int, str] = {}
        for text, name in zip(texts, names, strict=True):
            shard = cls.parse(text)
            if shard.count != count:
                raise UsageError(f"{names[0]} is shard {texts[0]}, and {name} is shard {text}.", "Name one run's.")
            if shard.number in by_number:
                raise UsageError(f"{by_number[shard.number]} and {name} are both shard {shard}.", "Leave one out.")
            by_number[shard.number] = name
        missing = [str(cls(number, count)) for number in range(1, count + 1) if number not in by_number]
        if missing:
            shown = ", ".join(missing[:_SHOWN]) + ("" if len(missing) <= _SHOWN else f", {len(missing) - _SHOWN} more")
            verb = "is" if len(missing) == 1 else "are"
            raise UsageError(f"Of {count} shards {shown} {verb} missing.", "Run them, or name their files too.")

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def rows(self, rows: Iterable[T]) -> Iterator[T]:
        """The rows of the shard: every `count`-th block of 8."""
        return (row for index, row in enumerate(rows) if index // _BLOCK % self.count == self.number - 1)


@dataclass(frozen=True)
class _Part:
    """A finished output and its manifest."""

    path: Path
    shard: Shard
    manifest: Manifest

    @classmethod
    def of(cls, path: Path) -> _Part:
        """Read the manifest of an output, or of a folder of parts, which is a run with a single shard.

        Raises:
            UsageError: it is not a shard, is not finished, or was changed.
        """
        if path.is_dir():
            return cls(path, Shard(1, 1), whole_manifest(path))
        manifest = Manifest.load(path)
        shard = manifest.options.get(SHARD) if manifest is not None else None
        if manifest is None or not isinstance(shard, str):
            raise UsageError(
                f"{path} is not a shard of a run: {beside(path, '.progress')} does not say so.",
                f"Make it by veriglot detect with {SHARD}, and keep the files beside it.",
            )
        if not manifest.finished:
            raise UsageError(f"{path} is not finished.", f"Rerun its command, with {SHARD} {shard}, to resume it.")
        if not path.exists() or path.stat().st_size != manifest.output_bytes:
            raise UsageError(f"{path} was changed after it was finished.", "Rerun its command with --overwrite.")
        return cls(path, Shard.parse(shard), manifest)

    @property
    def whole(self) -> Manifest:
        """The manifest of the same run without shards."""
        options = {name: value for name, value in self.manifest.options.items() if name != SHARD}
        return replace(self.manifest, options=options)

    def rows(self, lines: ReadLines) -> Iterator[bytes | FailedRow]:
        """Its rows in order."""
        finished = lines(self.path)
        failed: Iterator[FailedRow]
        if self.path.is_dir():
            failed = chain.from_iterable(part.failed for part in finished_parts(self.path))
        else:
            failed = map(msgspec.json.Decoder(FailedRow).decode, JsonLines(beside(self.path, ".failed.jsonl")).lines())
        due = next(failed, None)
        for number in count():
            if due is not None and due.row == number:
                yield due
                due = next(failed, None)
                continue
            line = next(finished, None)
            if line is None:
                break
            yield line
        if due is not None:
            raise UsageError(f"{self.path} lacks rows before its failed row {due.row}.", "Run the shard again.")


def _checked(paths: Sequence[Path]) -> list[_Part]:
    """The shards in order of their numbers, checked to be all of one run."""
    parts = [_Part.of(path) for path in paths]
    first = parts[0]
    for part in parts:
        differences = first.whole.differences(part.whole, maker="detector")
        if part.shard.count != first.shard.count:
            differences.append(f"{SHARD} was {first.shard} and is now {part.shard}")
        if differences:
            raise UsageError(
                f"{first.path} and {part.path} are not of one run: {'; '.join(differences)}.",
                "Merge shards of the same command only.",
            )
    Shard.check_all([str(part.shard) for part in parts], [str(part.path) for part in parts])
    return sorted(parts, key=lambda part: part.shard)


def _in_order(parts: Sequence[_Part], lines: ReadLines) -> Iterator[bytes | FailedRow]:
    """The rows of all shards in the order of the input.

    Raises:
        UsageError: a shard has more or fewer rows than expected.
    """
    sizes = [part.manifest.rows + part.manifest.failed for part in parts]
    for part, size in zip(parts, sizes, strict=True):
        due = sum(1 for _ in part.shard.rows(range(sum(sizes))))
        if due != size:
            raise UsageError(
                f"Rows of {part.path}: {size:,}; shard {part.shard} of all {sum(sizes):,} has {due:,}.",
                "Check that every shard read the same input.",
            )
    rows = [part.rows(lines) for part in parts]
    for _ in range(-(-max(sizes) // _BLOCK)):
        for shard in rows:
            yield from islice(shard, _BLOCK)


def merge(
    paths: Sequence[Path],
    output: Path,
    *,
    lines: ReadLines,
    finish: Callable[[Path, Path], None] | None = None,
    overwrite: bool = False,
) -> Tally:
    """Merge the outputs of all shards into the output of a run without shards, with its failed rows and manifest.

    After a kill, the same call merges again; a finished merge is not changed.

    Args:
        paths: the outputs of the shards, in any order.
        output: the merged output.
        lines: returns the rows of a shard's output as lines of JSON.
        finish: makes `output` from a file of such lines (arguments: lines, output); None if the lines are the output.
        overwrite: whether to replace an existing output.

    Returns:
        Counts of all rows.

    Raises:
        UsageError: a shard is missing, unfinished, given twice or of another run (with the difference); or `output`
            exists and was made from something else.
    """
    parts = _checked(paths)
    if output.resolve() in {part.path.resolve() for part in parts}:
        raise UsageError(f"{output} is a shard and would be overwritten.", "Name another output.")
    tally = Tally()
    for part in parts:
        tally.add_counts(part.manifest.statuses, part.manifest.verdicts, part.manifest.failed)
    with Lock(output):
        whole = replace(parts[0].whole, finished=False, output_bytes=0)
        if not overwrite and (before := Manifest.load(output)) is not None:
            if differences := before.differences(whole, maker="detector"):
                raise UsageError(f"{output} was made differently: {'; '.join(differences)}.", "Add --overwrite.")
            if before.finished and output.exists() and output.stat().st_size == before.output_bytes:
                tally.reused = tally.rows
                return tally
        elif not overwrite and output.exists():
            raise UsageError(f"{output} already exists, and nothing says how it was made.", "Add --overwrite.")
        write_json(beside(output, ".progress"), whole)
        _write(_in_order(parts, lines), output, finish)
        write_json(beside(output, ".progress"), _merged(parts, tally, output))
    return tally


def _write(rows: Iterator[bytes | FailedRow], output: Path, finish: Callable[[Path, Path], None] | None) -> None:
    done, failures = output if finish is None else beside(output, ".rows.jsonl"), beside(output, ".failed.jsonl")
    failed = 0
    with open_whole(done) as file, open_whole(failures) as failed_file:
        for number, row in enumerate(rows):
            if isinstance(row, FailedRow):
                failed += 1
                failed_file.write(msgspec.json.encode(replace(row, row=number)) + b"\n")
            else:
                file.write(row + b"\n")
    if not failed:
        failures.unlink()
    if finish is not None:
        finish(done, partial_path(output))
        partial_path(output).replace(output)
        done.unlink()


def _merged(parts: Sequence[_Part], tally: Tally, output: Path) -> Manifest:
    """The final manifest of a run without shards."""
    seconds = [part.manifest.seconds for part in parts]
    return replace(
        parts[0].whole,
        **tally.counts(),
        output_bytes=output.stat().st_size,
        seconds=None if None in seconds else round(sum(filter(None, seconds)), 3),
    )
