"""The Universal Sentence Encoder, multilingual, version 3 (Yang et al., ACL 2020 demonstrations), int8, in ONNX.

One sentence a run: the network's int8 scales are taken from the whole input, so that sentences which share a run
change one another's vectors a little. It costs nothing much: 51,000 tokens a second against 64,000 in batches.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import sentencepiece

from veriglot.encoders.offsets import without_space, without_surrogates
from veriglot.encoders.pieces import Piece, PieceEncoder
from veriglot.encoders.quality import languages_of, strength_of
from veriglot.encoders.universal_graph import LAYER, Parts, cut
from veriglot.errors import WeightsError
from veriglot.provenance import signature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.encoders.encoder import Strength

__all__ = ["UniversalSentenceEncoder"]

_NAME = "use-multilingual"
_BEGIN, _END = 1, 2  # token ids that the original graph sets around every text


class UniversalSentenceEncoder(PieceEncoder):
    """512 dimensions a sentence, and 512 a token.

    A sentence of more than 600 code points is encoded in pieces of 600. The vectors of a file hang on the processor's
    int8 instructions and on ONNX Runtime's version in the last digits only.

    Args:
        path: the ONNX file; None for that of `veriglot models get use-multilingual`.
        cache_mb: MiB of vectors to keep of the pieces that were encoded last; 0 keeps none.

    Raises:
        WeightsError: the file is missing (the remedy says what to type) or is not that model.
        UsageError: `cache_mb` is negative.
    """

    name = _NAME
    longest = 600
    dimension = 512
    token_dimension = 512

    def __init__(self, path: str | Path | None = None, *, cache_mb: float = 64) -> None:
        super().__init__(cache_mb)
        self._options = {"path": path, "cache_mb": cache_mb}
        file = _shipped() if path is None else Path(path)
        data = _bytes_of(file)
        self.signature = signature(
            encoder=_NAME,
            revision="3-int8",
            weights=hashlib.sha256(data).hexdigest()[:16],
            tokens=LAYER,
            piece=self.longest,
        )
        try:
            parts = cut(data)
            self._tokenizer: Any = sentencepiece.SentencePieceProcessor(model_proto=parts.tokenizer)
            self._session = _session(parts)
        except Exception as error:  # the errors of sentencepiece and ONNX Runtime share no base
            raise WeightsError(
                f"{file} is not the Universal Sentence Encoder, multilingual 3, in ONNX: {error}.",
                remedy=f"Get it again: veriglot models remove {_NAME}; veriglot models get {_NAME}",
            ) from error
        self._ids, self._splits = parts.ids, parts.splits

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self._options)

    @property
    def languages(self) -> frozenset[str]:
        """See `Encoder`. docs/encoders.md says how they were measured."""
        return languages_of(_NAME)

    def strength(self, tag: str | None) -> Strength:
        """See `Encoder`."""
        return strength_of(_NAME, tag)

    def _encode(self, texts: Sequence[str]) -> list[Piece]:
        return [self._piece(text) for text in texts]

    def _piece(self, text: str) -> Piece:
        found = self._tokenizer.encode(without_surrogates(text), return_type="offset_mapping")
        ids, bounds = found["ids"], np.array(found["offsets"], np.int64).reshape(-1, 2)
        if not ids:
            return Piece(np.zeros(self.dimension, np.float32), bounds, np.zeros((0, self.token_dimension), np.float32))
        framed = np.array([_BEGIN, *ids, _END], np.int32)
        splits = np.array([0, len(framed)], np.int64)
        whole, context = self._session.run(None, {self._ids: framed, self._splits: splits})
        return Piece(whole[0].copy(), without_space(text, bounds), context[1:-1].copy())


def _again(kind: type[UniversalSentenceEncoder], options: dict[str, Any]) -> UniversalSentenceEncoder:
    return kind(**options)


def _shipped() -> Path:
    from veriglot import weights

    return weights.find(_NAME)


def _bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise WeightsError(
            f"The encoder's file {file} cannot be read: {error.strerror}.", remedy=f"Type: veriglot models get {_NAME}"
        ) from error


def _session(parts: Parts) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(parts.network, options, providers=["CPUExecutionProvider"])
