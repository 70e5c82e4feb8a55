"""Running the trained head with ONNX Runtime, on one thread, one response at a time, in parts where it is long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.grounding.inference import session_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.detectors.semantic.reading import Reading

__all__ = ["Head", "inputs_of"]

_LONGEST = 500  # words of a response that are held against the evidence at a time: bounds the memory
_SHORTEST = 40  # where the evidence takes very many slots: thousands of passages of a word or two
_CELLS = 1_000_000  # words times slots at a time, but for that
_HALO = 60  # words of context on either side of a part, about three sentences


def inputs_of(reading: Reading, low: int = 0, high: int | None = None) -> dict[str, NDArray[np.float32]]:
    """The head's inputs for the words `low` to `high` of a response, each with a first axis of one."""
    found, end = reading.extract, len(reading.words) if high is None else high
    sentence = found.sentence[low:end] - found.sentence[low]
    counts = np.bincount(sentence)
    pool = np.zeros((1, len(counts), end - low), np.float32)
    pool[0, sentence, np.arange(end - low)] = 1.0 / counts[sentence]
    matched = np.zeros((1, end - low, len(reading.slots)), np.float32)
    inside = (reading.ours >= low) & (reading.ours < end)
    np.maximum.at(matched[0], (reading.ours[inside] - low, reading.theirs[inside]), reading.value[inside])
    question, asked = reading.question, np.ones((1, max(1, len(reading.question))), np.float32)
    if not len(question):
        question, asked = np.zeros((1, reading.words.shape[1]), np.float32), np.zeros((1, 1), np.float32)
    return {
        "features": found.values[None, low:end],
        "columns": reading.columns[None, low:end],
        "words": reading.words[None, low:end],
        "evidence": reading.evidence[None],
        "matched": matched,
        "filled": (reading.slots >= 0).astype(np.float32)[None],
        "pool": pool,
        "question": question[None].astype(np.float32),
        "asked": asked,
    }


class Head:
    """The head.

    Args:
        path: its ONNX file: the arrays of `inputs_of` in; `logits` (1, n, 7) and `place` (1, n), the slot that supports
            each word best, out.

    Raises:
        WeightsError: the file is missing or is not such a network.
    """

    def __init__(self, path: Path) -> None:
        self._session = session_of(path)

    def judged(self, reading: Reading) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Logits of every word, shape (n, 7), and the evidence word that supports it best, or -1, shape (n,)."""
        logits, places = [], []
        for begin, end, low, high in _parts(len(reading.words), len(reading.slots)):
            found = self._session.run(None, inputs_of(reading, begin, end))
            logits.append(found[0][0, low - begin : high - begin])
            places.append(found[1][0, low - begin : high - begin])
        return np.concatenate(logits), reading.slots[np.concatenate(places)]


def _parts(words: int, slots: int) -> Iterator[tuple[int, int, int, int]]:
    """Begin and end of what is looked at, and of what is kept of it."""
    step = max(_SHORTEST, min(_LONGEST, _CELLS // slots))
    for low in range(0, words, step):
        high = min(low + step, words)
        yield max(0, low - _HALO), min(words, high + _HALO), low, high
