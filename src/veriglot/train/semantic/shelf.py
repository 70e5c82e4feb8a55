"""Vectors and arrays in files, so that training takes the memory of a batch and not that of all texts.

A share of the examples writes two files: one of vectors, float16, row after row, and one of records. A place is one
number: the share, and the row in its file.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from numpy.typing import NDArray

__all__ = ["Shelf", "Shelves"]

_ROW_BITS = 40  # of a place: rows of a share


class Shelf:
    """The files of one share, to write.

    Args:
        folder: an existing folder.
        share: which share, counted from 0.
    """

    def __init__(self, folder: Path, share: int) -> None:
        self._vectors = _vectors_file(folder, share).open("wb")
        self._records = _records_file(folder, share).open("wb")
        self._share, self._rows = share, 0

    def __enter__(self) -> Shelf:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._vectors.close()
        self._records.close()

    def put(self, vectors: NDArray[np.float32]) -> NDArray[np.int64]:
        """Add vectors, shape (n, p), and say where each lies, shape (n,)."""
        self._vectors.write(vectors.astype(np.float16).tobytes())
        first = (self._share << _ROW_BITS) + self._rows
        self._rows += len(vectors)
        return np.arange(first, first + len(vectors))

    def record(self, value: Any) -> tuple[int, int, int]:
        """Add a record, and say where it lies."""
        data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        start = self._records.tell()
        self._records.write(data)
        return self._share, start, len(data)


class Shelves:
    """The files of all shares, to read.

    Args:
        folder: where they lie.
        width: numbers of a vector.
    """

    def __init__(self, folder: Path, width: int) -> None:
        self.width = width
        self._folder = folder
        self._vectors: dict[int, NDArray[np.float16]] = {}
        self._records: dict[int, NDArray[np.uint8]] = {}

    def take(self, places: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors at places, shape (n, p); zeros where a place is -1."""
        found = np.zeros((len(places), self.width), np.float32)
        shares = places >> _ROW_BITS
        for share in np.unique(shares[places >= 0]).tolist():
            here = shares == share
            found[here] = self._of(share)[places[here] & ((1 << _ROW_BITS) - 1)]
        return found

    def record(self, address: tuple[int, int, int]) -> Any:
        """The record at an address."""
        share, start, size = address
        if share not in self._records:
            self._records[share] = np.memmap(_records_file(self._folder, share), np.uint8, "r")
        return pickle.loads(self._records[share][start : start + size].tobytes())  # noqa: S301  our own, of this run

    def _of(self, share: int) -> NDArray[np.float16]:
        if share not in self._vectors:
            file = np.memmap(_vectors_file(self._folder, share), np.float16, "r")
            self._vectors[share] = file.reshape(-1, self.width)
        return self._vectors[share]


def _vectors_file(folder: Path, share: int) -> Path:
    return folder / f"{share}.vectors"


def _records_file(folder: Path, share: int) -> Path:
    return folder / f"{share}.records"
