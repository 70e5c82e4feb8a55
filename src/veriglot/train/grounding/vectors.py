"""Distilling word vectors from a multilingual sentence encoder.

The encoder (Universal Sentence Encoder multilingual, as an ONNX file with its tokenizer inside) embeds every word of
a vocabulary as if it were a sentence. Its space is shared by its languages, so words of one meaning lie together.
What ships is small: the first principal directions, scaled to length 1, say what a word means; a projection that is
learned with the detector says how it is used (hedges, praise, tales ...).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.grounding.document import Document
from veriglot.detectors.grounding.lexicon import MEANING, VECTOR_SCALE, Lexicon, vector_key
from veriglot.errors import MissingExtraError
from veriglot.text import fold, words

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["ENCODER_LANGUAGES", "LEARNED", "Distilled", "distil", "vocabulary"]

ENCODER_LANGUAGES = ("ar", "zh", "en", "fr", "de", "it", "ja", "ko", "nl", "pl", "pt", "es", "th", "tr", "ru")
NEAR_LANGUAGES = ("ca", "yue")  # not among the encoder's, but close enough to one that its words land well
LEARNED = 16  # numbers of the learned projection
_LISTED = 14000  # commonest words taken from each language's list
_MIN_COUNT = 4  # occurrences in the training texts
_MAX_LENGTH = 30
_BATCH = 512
_MEAN_SQUARE_EDGE = 4.0  # learned numbers beyond four standard deviations are cut


class Distilled:
    """A vocabulary with its vectors, sorted by key.

    Attributes:
        keys: shape (v,).
        full: centred unit vectors of the encoder, float16, shape (v, 512).
    """

    def __init__(self, keys: NDArray[np.uint64], full: NDArray[np.float16]) -> None:
        self.keys, self.full = keys, full
        spread = full.astype(np.float32)
        values, vectors = np.linalg.eigh(spread.T @ spread / len(spread))
        self._principal = vectors[:, np.argsort(-values)].astype(np.float32)

    @property
    def directions(self) -> NDArray[np.float32]:
        """The directions of the meaning part, shape (512, MEANING)."""
        return self._principal[:, :MEANING]

    def next_directions(self) -> NDArray[np.float32]:
        """The directions that follow, to start the learned projection from; shape (512, LEARNED)."""
        return self._principal[:, MEANING : MEANING + LEARNED]

    def lexicon(self, frequencies: NDArray[np.uint8], learned: NDArray[np.float32] | None) -> Lexicon:
        """The lexicon that ships.

        Args:
            frequencies: the frequency table.
            learned: a learned projection, shape (512, l), or None to leave that part out.
        """
        full = self.full.astype(np.float32)
        meaning = full @ self.directions
        meaning /= np.linalg.norm(meaning, axis=1, keepdims=True) + 1e-9
        parts = [meaning]
        if learned is not None:
            usage = full @ learned
            parts.append(np.clip(usage / (_MEAN_SQUARE_EDGE * usage.std(axis=0)), -1, 1))
        stored = np.round(np.concatenate(parts, axis=1) * VECTOR_SCALE).astype(np.int8)
        return Lexicon(frequencies, self.keys, stored)


def vocabulary(texts: Iterable[tuple[str, str]]) -> list[str]:
    """Folded words to distil: the commonest of each of the encoder's languages, and what the texts repeat.

    Args:
        texts: pairs of language tag and text; those in languages far from the encoder's are passed over.

    Raises:
        MissingExtraError: the package with the word lists is not installed.
    """
    try:
        import wordfreq
    except ModuleNotFoundError as error:
        raise MissingExtraError("Distilling word vectors", "vectors") from error
    known = dict.fromkeys(
        fold(word)
        for language in ENCODER_LANGUAGES
        if language in wordfreq.available_languages()
        for word in wordfreq.top_n_list(language, _LISTED)
    )
    counts: Counter[str] = Counter()
    for language, text in texts:
        if language.split("-")[0] in ENCODER_LANGUAGES + NEAR_LANGUAGES:
            folded = fold(text)
            counts.update(folded[s:e] for s, e in words(text, language))
    known.update(dict.fromkeys(w for w, n in counts.items() if n >= _MIN_COUNT and len(w) < _MAX_LENGTH))
    return sorted(w for w in known if not w.isdigit())


def distil(vocabulary: list[str], encoder: Path) -> Distilled:
    """Embed a vocabulary.

    Args:
        vocabulary: folded words; those that the segmenter would part are left out, for nobody would look them up.
        encoder: the encoder's ONNX file: one input of strings, one output of 512 numbers each.

    Raises:
        MissingExtraError: the package with the encoder's tokenizer operators is not installed.
    """
    try:
        import onnxruntime
        from onnxruntime_extensions import get_library_path
    except ModuleNotFoundError as error:
        raise MissingExtraError("Distilling word vectors", "vectors") from error
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(get_library_path())
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(encoder), options, providers=["CPUExecutionProvider"])
    document = Document(vocabulary, None)
    whole = np.bincount(document.passage, minlength=len(vocabulary)) == 1
    sizes = np.array([len(word) for word in vocabulary])
    alone = whole[document.passage] & (document.lengths == sizes[document.passage])
    keys = vector_key(document.word[alone])
    kept = document.passage[alone]
    keys, first = np.unique(keys, return_index=True)
    kept = kept[first]
    by_length = np.argsort(sizes[kept], kind="stable")  # batches of like length waste no padding
    full = np.zeros((len(kept), 512), np.float16)
    name = session.get_inputs()[0].name
    for at in range(0, len(kept), _BATCH):
        rows = by_length[at : at + _BATCH]
        embedded = session.run(None, {name: np.array([vocabulary[i] for i in kept[rows]])})[0]
        full[rows] = embedded / np.linalg.norm(embedded, axis=1, keepdims=True)
    full -= full.astype(np.float32).mean(axis=0).astype(np.float16)
    return Distilled(keys, full)
