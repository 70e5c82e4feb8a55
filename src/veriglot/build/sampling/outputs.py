"""What a sample is written as: parts in the native format and as HAT JSON, clean sources, lines that fell out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from veriglot.build.sampling.fates import Fate
from veriglot.build.sampling.scoring import translation
from veriglot.errors import VeriglotError
from veriglot.formats.writing import open_writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from veriglot.build.sampling.choosing import Choice
    from veriglot.build.sampling.lines import Line
    from veriglot.build.sampling.store import LineStore
    from veriglot.records import Sample

__all__ = ["sample_of", "write_clean", "write_fallen", "write_parts"]

_BLOCK = 4_096


def name_of(line: Line, paths: Sequence[str]) -> str:
    """A line's id: as the data have it, or the name of its file and its number there."""
    return line.id or f"{Path(paths[line.file]).stem}-{line.number}"


def sample_of(
    lines: Sequence[Line],
    choice: Choice,
    values: dict[str, NDArray[np.float64]],
    groups: NDArray[np.int64],
    *,
    paths: Sequence[str],
    languages: tuple[str, str],
) -> list[Sample]:
    """The chosen lines as samples.

    `meta.sampling` holds the scores by scorer (None where a line was not scored), by which scorers it was chosen and in
    which step, its file and its number there, and, where there are near ones, the id of the first line of its group.
    An id that occurs twice gets the number of its file and line as well.
    """
    times = Counter(name_of(line, paths) for line in lines)
    ids = [
        name if times[name] == 1 else f"{name}-{line.file}-{line.number}"
        for line, name in ((line, name_of(line, paths)) for line in lines)
    ]
    sizes = Counter(groups.tolist())
    found = []
    for place, line in enumerate(lines):
        scores = {label: _number(own[place]) for label, own in values.items()}
        sampling: dict[str, Any] = {
            "chosen_by": choice.chosen_by[place],
            "scores": scores,
            "file": Path(paths[line.file]).name,
            "line": line.number,
        }
        if sizes[int(groups[place])] > 1:
            sampling["group"] = ids[int(groups[place])]
        sample = translation(line, ids[place], *languages)
        found.append(msgspec.structs.replace(sample, meta={"sampling": sampling}))
    return found


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def write_parts(folder: Path, samples: Sequence[Sample], parts: Sequence[str], names: Sequence[str]) -> None:
    """Write each part as `NAME.jsonl`, in the native format, and as `NAME.hat.json`.

    Raises:
        VeriglotError: HAT JSON could not hold a sample as it is.
    """
    for name in names:
        own = [sample for sample, part in zip(samples, parts, strict=True) if part == name]
        for path, format_ in ((folder / f"{name}.jsonl", "jsonl"), (folder / f"{name}.hat.json", "hat")):
            with open_writer(path, format=format_) as writer:
                for sample in own:
                    writer.write(sample)
            if writer.losses.written != len(own):
                raise VeriglotError(f"{path} could not hold {len(own) - writer.losses.written:,} samples.")


def write_clean(path: Path, store: LineStore, kept: NDArray[np.uint32], paths: Sequence[str]) -> None:
    """Write the clean sources, with their ids, as JSON lines that a translator can add to."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as stream:
        for start in range(0, len(kept), _BLOCK):
            for line in store.pick(np.array(kept[start : start + _BLOCK])):
                record = {"id": name_of(line, paths), "source": line.source}
                stream.write(msgspec.json.encode(record) + b"\n")
    partial.replace(path)


def write_fallen(path: Path, store: LineStore, fates: NDArray[np.uint8], paths: Sequence[str]) -> None:
    """Write every line that fell out, with the reason, as JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as stream:
        for row in _fallen(fates):
            for number, line in zip(row.tolist(), store.pick(row), strict=True):
                record = {"id": name_of(line, paths), "source": line.source, "target": line.target}
                reason = Fate(int(fates[number])).name.lower()
                stream.write(msgspec.json.encode({**record, "reason": reason}) + b"\n")
    partial.replace(path)


def _fallen(fates: NDArray[np.uint8]) -> Iterator[NDArray[np.int64]]:
    for start in range(0, len(fates), _BLOCK):
        yield np.flatnonzero(fates[start : start + _BLOCK] != Fate.KEPT) + start
