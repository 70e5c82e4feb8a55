"""Counts as a file, so that figures can be drawn again with another seed, or added to others, without inference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from veriglot.errors import InputError
from veriglot.metrics.counts import HISTOGRAMS, Counts, Histogram, block_widths
from veriglot.metrics.coverage import Coverage
from veriglot.metrics.histogram import BINS, EDGES
from veriglot.provenance import digest

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FORMAT", "CountsFile", "is_counts", "load", "save"]

FORMAT = "veriglot-counts-1"
_GRID = digest([np.round(EDGES, 9).tobytes()])[:12]  # rounded: libraries differ in the last bit


class _Cells(msgspec.Struct):
    response: list[int]
    bin: list[int]
    values: list[tuple[float, float, float, float]]


class _File(msgspec.Struct, kw_only=True):
    format: str
    about: dict[str, str | float | None]
    coverage: dict[str, Coverage]
    unit: str
    types: tuple[str, ...]
    grid: str
    ids: tuple[str, ...]
    languages: tuple[str, ...]
    clusters: tuple[str, ...]
    blocks: dict[str, list[list[float]]]
    histograms: dict[str, _Cells]


class CountsFile(msgspec.Struct, frozen=True):
    """Counts with what they were taken from.

    Attributes:
        counts: the counts.
        coverage: language to what became of its samples.
        about: the parts of the signature: data, detector, threshold, annotator and so on.
    """

    counts: Counts
    coverage: dict[str, Coverage]
    about: dict[str, str | float | None]


def save(stored: CountsFile, path: Path) -> None:
    """Write counts as one JSON object."""
    counts = stored.counts
    plain = _File(
        format=FORMAT,
        about=stored.about,
        coverage=stored.coverage,
        unit=counts.unit,
        types=counts.types,
        grid=_GRID,
        ids=counts.ids,
        languages=counts.languages,
        clusters=counts.clusters,
        blocks={name: block.tolist() for name, block in counts.blocks.items()},
        histograms={
            level: _Cells(h.response.tolist(), h.bin.tolist(), h.values.tolist())
            for level, h in counts.histograms.items()
        },
    )
    path.write_bytes(msgspec.json.encode(plain) + b"\n")


def is_counts(path: Path) -> bool:
    """Whether a file begins as `save` writes it."""
    head = f'{{"format":"{FORMAT}"'.encode()
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(head)) == head


def load(path: Path) -> CountsFile:
    """Read what `save` wrote.

    Raises:
        InputError: the file is not of this kind, or its parts do not fit together.
    """
    try:
        plain = msgspec.json.decode(path.read_bytes(), type=_File)
        counts = _checked(plain)
    except (OSError, msgspec.DecodeError, ValueError) as error:
        raise InputError(f"these are no counts: {error}", path=str(path)) from error
    return CountsFile(counts, plain.coverage, plain.about)


def _checked(plain: _File) -> Counts:
    if plain.format != FORMAT:
        raise ValueError(f"the format is {plain.format!r}, not {FORMAT!r}")
    if plain.grid != _GRID:
        raise ValueError("confidences were counted on another grid, by another version")
    size = len(plain.ids)
    if not len(plain.languages) == len(plain.clusters) == size:
        raise ValueError("`ids`, `languages` and `clusters` differ in length")
    blocks = {
        name: np.array(plain.blocks.get(name, [[0.0] * width] * size), dtype=np.float64).reshape(size, width)
        for name, width in block_widths(plain.types).items()
    }
    histograms = {}
    for level in HISTOGRAMS:
        cells = plain.histograms.get(level, _Cells([], [], []))
        response, place = np.array(cells.response, dtype=np.int64), np.array(cells.bin, dtype=np.int64)
        values = np.array(cells.values, dtype=np.float64).reshape(-1, 4)
        if not len(response) == len(place) == len(values):
            raise ValueError(f"the columns of the histogram {level!r} differ in length")
        if len(response) and not (
            0 <= response.min() <= response.max() < size and 0 <= place.min() <= place.max() < BINS
        ):
            raise ValueError(f"the histogram {level!r} names a response or bin that does not exist")
        histograms[level] = Histogram(response, place, values)
    return Counts(plain.unit, plain.types, plain.ids, plain.languages, plain.clusters, blocks, histograms)
