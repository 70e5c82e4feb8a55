"""Rows on disk between the passes of a check, so that memory does not grow with the text, and inputs are read once."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import msgspec

from veriglot.records import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Row", "Spool"]


class Row(msgspec.Struct, frozen=True):
    """A sample with where it comes from.

    Attributes:
        file: number of the file.
        number: which sample of the file it is, from 1.
        split: number of the split; 0 where none is known.
        sample: the sample.
    """

    file: int
    number: int
    split: int
    sample: Sample


class Spool:
    """Rows that are written once and read as often as wanted, in order or one by one: 8 bytes of memory a row.

    Args:
        path: a file that does not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("w+b")
        self._places = array("Q", [0])
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(Row)

    def __len__(self) -> int:
        return len(self._places) - 1

    def add(self, row: Row) -> int:
        """Write a row; returns its place."""
        self._file.seek(self._places[-1])
        data = self._encoder.encode(row)
        self._file.write(data)
        self._places.append(self._places[-1] + len(data))
        return len(self) - 1

    def __iter__(self) -> Iterator[Row]:
        self._file.flush()
        with self._path.open("rb") as file:
            for start, end in zip(self._places, self._places[1:], strict=False):
                yield self._decoder.decode(file.read(end - start))

    def __getitem__(self, place: int) -> Row:
        if not 0 <= place < len(self):
            raise IndexError(f"there is no row {place} among {len(self)}")
        self._file.seek(self._places[place])
        return self._decoder.decode(self._file.read(self._places[place + 1] - self._places[place]))

    def close(self) -> None:
        """Close the file; it stays where it is."""
        self._file.close()
