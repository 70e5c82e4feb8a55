"""Examples as arrays: read as the detector reads a sample, the vectors of words left where they were put."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from veriglot.detectors.grounding.document import Document
from veriglot.detectors.semantic.reading import Held, read_sample
from veriglot.detectors.semantic.vectors import EncoderVectors, pieces
from veriglot.encoders import word_vectors
from veriglot.train.grounding.table import labels_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.grounding.lexicon import Lexicon
    from veriglot.encoders import Encoder
    from veriglot.train.grounding.example import Example
    from veriglot.train.semantic.shelf import Shelf

__all__ = ["Arrays", "Row", "ShelvedVectors", "row_of"]

_PIECES = 64  # that are encoded at a time: bounds the memory


@dataclass(frozen=True)
class Row:
    """One example: what is needed of it to draw batches and to judge; the rest lies on a shelf.

    Attributes:
        example: where it comes from.
        target: 1 for unsupported words, 0 for supported ones, between for divided annotators, shape (n,).
        weight: shape (n,).
        slots: evidence slots.
        address: of its `Arrays`.
    """

    example: Example
    target: NDArray[np.float32]
    weight: NDArray[np.float32]
    slots: int
    address: tuple[int, int, int]

    def __len__(self) -> int:
        return len(self.target)


@dataclass(frozen=True)
class Arrays:
    """What the network is given of one example; a place says where the vector of a word lies, or -1.

    Attributes:
        features: float16, shape (n, f).
        columns: float16, shape (n, c).
        sentence: shape (n,).
        types: shape (n, 6).
        words, question, slots: places, shapes (n,), (q,), (l,).
        ours, theirs, value: matches by form: word, slot, how well; shape (k,).
    """

    features: NDArray[np.float16]
    columns: NDArray[np.float16]
    sentence: NDArray[np.int32]
    types: NDArray[np.float32]
    words: NDArray[np.int64]
    question: NDArray[np.int64]
    slots: NDArray[np.int64]
    ours: NDArray[np.int32]
    theirs: NDArray[np.int32]
    value: NDArray[np.float16]


class ShelvedVectors(EncoderVectors):
    """Vectors of an encoder where a word's vector is one number: the place at which the projected vector was put.

    Every text is encoded whole when it is first seen, for other responses may ask for other sentences of it.

    Args:
        encoder: the encoder.
        projection: what word vectors are multiplied by, shape (d, p).
        shelf: where they are put.
    """

    def __init__(self, encoder: Encoder, projection: NDArray[np.float32], shelf: Shelf) -> None:
        super().__init__(encoder)
        self._projection, self._shelf = projection, shelf
        self._known: dict[tuple[str | None, str], tuple[NDArray[np.int64], NDArray[np.int64]]] = {}

    def words(
        self,
        text: str,
        tag: str | None,
        bounds: NDArray[np.int64],
        chosen: Sequence[int] | None = None,  # noqa: ARG002
    ) -> NDArray[Any]:
        """The place of each word's vector, shape (n, 1)."""
        key = (tag, text)
        if key not in self._known:
            known = Document([text], tag).bounds
            self._known[key] = known, self._put(text, tag, known)
        known, places = self._known[key]
        at = np.minimum(np.searchsorted(known[:, 0], bounds[:, 0]), max(0, len(known) - 1))
        if len(bounds) and not (len(known) and (known[at] == bounds).all()):
            return self._put(text, tag, bounds)[:, None]  # the words of a text may differ among others
        return places[at][:, None] if len(bounds) else np.zeros((0, 1), np.int64)

    def _put(self, text: str, tag: str | None, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        parts = pieces(text, tag)
        found = np.zeros((len(bounds), self._projection.shape[1]), np.float32)
        for at in range(0, len(parts), _PIECES):
            some = parts[at : at + _PIECES]
            inside = np.flatnonzero((bounds[:, 1] > some[0, 0]) & (bounds[:, 0] < some[-1, 1]))
            found[inside] += word_vectors(self._encoder.encoded(text, some), bounds[inside]) @ self._projection
        return self._shelf.put(found)


def row_of(example: Example, lexicon: Lexicon, encoder: Encoder, vectors: ShelvedVectors, shelf: Shelf) -> Row | None:
    """Read an example as the detector reads a sample; None where response or evidence hold no word."""
    theirs = example.evidence_language or example.language
    strong = tuple(encoder.strength(tag) == "measured" for tag in (example.language, theirs))
    held = Held(
        response=example.response,
        passages=example.passages,
        question=example.question,
        language=example.language,
        evidence_language=theirs,
        translation=example.translation,
        strong=(strong[0], strong[1]),
    )
    reading = read_sample(held, lexicon, vectors)
    if reading is None:
        return None
    found = reading.extract
    labels = labels_of(example, found.response.bounds, found.markup)
    places = reading.evidence[:, 0].astype(np.int64)
    arrays = Arrays(
        features=found.values.astype(np.float16),
        columns=reading.columns.astype(np.float16),
        sentence=found.sentence.astype(np.int32),
        types=labels.types,
        words=reading.words[:, 0].astype(np.int64),
        question=reading.question[:, 0].astype(np.int64),
        slots=np.where(reading.slots >= 0, places, -1),
        ours=reading.ours.astype(np.int32),
        theirs=reading.theirs.astype(np.int32),
        value=reading.value.astype(np.float16),
    )
    return Row(example, labels.target, labels.weight, len(arrays.slots), shelf.record(arrays))
