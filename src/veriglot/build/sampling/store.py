"""Lines on disk, by number: written once, then read in ranges or one by one, by any process."""

from __future__ import annotations

import os
import weakref
from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from veriglot.build.sampling.lines import Line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from numpy.typing import NDArray

__all__ = ["LineStore", "LineWriter", "key_of"]

_FILES = ("lines.bin", "places.bin", "keys.bin", "given.bin")
_BUFFERED = 1 << 14  # lines
_GAPS = 3  # lines passed over for one that is wanted, up to which a range is read and not one line after another


def key_of(*texts: str) -> int:
    """64 bits that stand for texts, whatever their white space; of 50 million lines two collide with p = 7e-5."""
    hasher = blake2b(digest_size=8)
    for text in texts:
        data = " ".join(text.split()).encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(4, "little") + data)
    return int.from_bytes(hasher.digest(), "little")


class LineWriter:
    """Writes a store: `lines.bin` (the lines), `places.bin` (where each begins), `keys.bin` (their keys), `given.bin`
    (their scores, as many numbers a line as there are columns)."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._files = [(folder / name).open("wb") for name in _FILES]
        self._encode = msgspec.msgpack.Encoder().encode
        self._place = 0
        self._places: list[int] = [0]
        self._keys: list[int] = []
        self._given: list[tuple[float, ...]] = []
        self.count = 0

    def add(self, line: Line, key: int, given: tuple[float, ...]) -> None:
        """Add the next line, the key by which it is told from others, and the scores that the data hold of it."""
        data = self._encode(line)
        self._files[0].write(data)
        self._place += len(data)
        self._places.append(self._place)
        self._keys.append(key)
        self._given.append(given)
        self.count += 1
        if len(self._keys) >= _BUFFERED:
            self._flush()

    def _flush(self) -> None:
        self._files[1].write(np.array(self._places, np.uint64).tobytes())
        self._files[2].write(np.array(self._keys, np.uint64).tobytes())
        self._files[3].write(np.array(self._given, np.float64).tobytes())
        self._places, self._keys, self._given = [], [], []

    def __enter__(self) -> LineWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._flush()
        for file in self._files:
            file.close()


class LineStore:
    """Reads a store.

    Args:
        folder: where `LineWriter` wrote it.

    Attributes:
        count: how many lines there are.
        columns: how many scores the data hold of each.
    """

    def __init__(self, folder: Path) -> None:
        files = [os.open(folder / name, os.O_RDONLY) for name in _FILES]
        self._data, self._index, self._keys, self._given = files
        self._closing = weakref.finalize(self, _close, files)
        self.count = os.fstat(self._keys).st_size // 8
        self.columns = os.fstat(self._given).st_size // 8 // self.count if self.count else 0
        self._decode = msgspec.msgpack.Decoder(Line).decode

    def lines(self, start: int, stop: int) -> list[Line]:
        """The lines `[start, stop)`, in one read."""
        places = self._numbers(self._index, start, stop + 1)
        data = memoryview(os.pread(self._data, int(places[-1] - places[0]), int(places[0])))
        bounds = (places - places[0]).tolist()
        return [self._decode(data[bounds[i] : bounds[i + 1]]) for i in range(stop - start)]

    def pick(self, numbers: NDArray[np.integer]) -> list[Line]:
        """Single lines, in ascending order of their numbers."""
        if numbers.size and int(numbers[-1]) - int(numbers[0]) < _GAPS * numbers.size:
            first = int(numbers[0])
            between = self.lines(first, int(numbers[-1]) + 1)
            return [between[number - first] for number in numbers.tolist()]
        return [self.lines(number, number + 1)[0] for number in numbers.tolist()]

    def given(self, numbers: NDArray[np.integer]) -> NDArray[np.float64]:
        """The scores that the data hold of single lines, shape (numbers, columns); not a number where there is none."""
        if not numbers.size:
            return np.zeros((0, self.columns))
        first, last, width = int(numbers[0]), int(numbers[-1]) + 1, 8 * self.columns
        between = np.frombuffer(os.pread(self._given, (last - first) * width, first * width), np.float64)
        found: NDArray[np.float64] = between.reshape(last - first, self.columns)[numbers - first]
        return found

    def keys(self, start: int, stop: int) -> NDArray[np.uint64]:
        """The keys of the lines `[start, stop)`."""
        return self._numbers(self._keys, start, stop)

    def pick_keys(self, numbers: NDArray[np.integer]) -> NDArray[np.uint64]:
        """The keys of single lines, in ascending order of their numbers."""
        found = [keys[part - start] for start, part, keys in self._parts(numbers)]
        return np.concatenate([np.zeros(0, np.uint64), *found])

    def _parts(self, numbers: NDArray[np.integer]) -> Iterator[tuple[int, NDArray[np.integer], NDArray[np.uint64]]]:
        for start in range(0, self.count, 1 << 20):
            stop = min(start + (1 << 20), self.count)
            part = numbers[np.searchsorted(numbers, start) : np.searchsorted(numbers, stop)]
            if part.size:
                yield start, part, self.keys(start, stop)

    @staticmethod
    def _numbers(file: int, start: int, stop: int) -> NDArray[np.uint64]:
        return np.frombuffer(os.pread(file, 8 * (stop - start), 8 * start), np.uint64)

    def close(self) -> None:
        """Close the files, which also happens when the store is no longer used."""
        self._closing()

    def __enter__(self) -> LineStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _close(files: list[int]) -> None:
    for file in files:
        os.close(file)
