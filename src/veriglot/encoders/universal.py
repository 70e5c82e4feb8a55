"""The Universal Sentence Encoder, multilingual, version 3 (Yang et al., ACL 2020 demonstrations), int8, in ONNX.

Each run encodes one sentence: the network's dynamic int8 scales come from the whole input, so sentences of one batch
would change each other's vectors slightly. The cost is small: 51,000 tokens per second instead of 64,000.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import sentencepiece
from onnx import helper

from veriglot.encoders.base import Encoder, Piece, without_space
from veriglot.errors import WeightsError
from veriglot.hub.checkpoints import onnx_session
from veriglot.hub.registry import find
from veriglot.signatures import signature
from veriglot.text.unicode import without_surrogates

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = []


# The Universal Sentence Encoder's ONNX graph without its tokenizer, in memory.
#
# The graph in the file begins with a SentencePiece tokenizer. That operator exists only in onnxruntime-extensions and
# gives no offsets. Without it, the graph runs on plain ONNX Runtime. The sentencepiece library computes token ids with
# offsets, from the same SentencePiece model, which is an attribute of the operator. The token vectors before pooling
# become an additional output.


_TOKENIZER = "SentencepieceTokenizer"
# The layer that is summed over the tokens into the sentence vector. In the layer below it (1,280 numbers), the nearest
# neighbour of a word in another language is its translation only half as often.
LAYER = "dense"
_CONTEXT = f"EncoderDNN/CNN_layers/{LAYER}/BiasAdd:0"


def _halves(data: bytes) -> tuple[bytes, bytes, str, str]:
    """The SentencePiece model, the network, and the names of its inputs: token ids, and row splits."""
    try:
        model = onnx.load_from_string(data)
    except Exception as error:  # the error classes of protobuf differ between its versions
        raise ValueError("it is no ONNX file") from error
    graph = model.graph
    tokenizers = [node for node in graph.node if node.op_type == _TOKENIZER]
    if len(tokenizers) != 1:
        raise ValueError(f"it has {len(tokenizers)} nodes of the kind {_TOKENIZER}")
    tokenizer = tokenizers[0]
    context = [name for node in graph.node for name in node.output if name.endswith(_CONTEXT)]
    if len(context) != 1 or len(graph.output) != 1 or len(tokenizer.output) != 2:
        raise ValueError("it holds another network")
    pieces = next((attribute.s for attribute in tokenizer.attribute if attribute.name == "model"), b"")
    ids, splits = tokenizer.output
    graph.node.remove(tokenizer)
    del graph.input[:]
    graph.input.append(helper.make_tensor_value_info(ids, onnx.TensorProto.INT32, [None]))
    graph.input.append(helper.make_tensor_value_info(splits, onnx.TensorProto.INT64, [None]))
    graph.output.append(helper.make_tensor_value_info(context[0], onnx.TensorProto.FLOAT, [None, None]))
    for opset in [opset for opset in model.opset_import if opset.domain]:
        model.opset_import.remove(opset)  # of the extension; the remaining ones are plain ONNX
    return pieces, model.SerializeToString(), ids, splits


_NAME = "use-multilingual"
_BEGIN, _END = 1, 2  # token ids that the original graph adds around every text


class UniversalSentenceEncoder(Encoder):
    """The Universal Sentence Encoder: 512 dimensions for a sentence, and 512 for a token.

    A sentence of more than 600 code points is encoded in pieces of 600. Only the last digits of vectors depend on the
    processor's int8 instructions and on the version of ONNX Runtime.

    Args:
        path: the ONNX file; None for that of `veriglot models get use-multilingual`.
        cache_mb: size in MiB of the cache of recently encoded pieces; 0 for no cache.

    Raises:
        WeightsError: the file is missing (the remedy gives the command) or contains another model.
        UsageError: `cache_mb` is negative.
    """

    name = _NAME
    longest = 600
    dimension = 512
    token_dimension = 512

    def __init__(self, path: str | Path | None = None, *, cache_mb: float = 64) -> None:
        super().__init__(cache_mb)
        file = find(_NAME) if path is None else Path(path)
        try:
            data = file.read_bytes()
        except OSError as error:
            raise WeightsError(
                f"The encoder's file {file} cannot be read: {error.strerror}.", f"Type: veriglot models get {_NAME}"
            ) from error
        self.signature = signature(
            encoder=_NAME,
            revision="3-int8",
            weights=hashlib.sha256(data).hexdigest()[:16],
            tokens=LAYER,
            piece=self.longest,
        )
        try:
            words, network, self._ids, self._splits = _halves(data)
            self._tokenizer: Any = sentencepiece.SentencePieceProcessor(model_proto=words)
            self._session = onnx_session(network)
        except Exception as error:  # the errors of sentencepiece and ONNX Runtime share no base
            raise WeightsError(
                f"{file} is not the Universal Sentence Encoder, multilingual 3, in ONNX: {error}.",
                f"Get it again: veriglot models remove {_NAME}; veriglot models get {_NAME}",
            ) from error

    def _encode(self, texts: Sequence[str]) -> list[Piece]:
        return [self._piece(text) for text in texts]

    def _piece(self, text: str) -> Piece:
        encoding = self._tokenizer.encode(without_surrogates(text), return_type="offset_mapping")
        ids, bounds = encoding["ids"], np.array(encoding["offsets"], np.int64).reshape(-1, 2)
        if not ids:
            return Piece(bounds, np.zeros((0, self.token_dimension), np.float32), np.zeros(self.dimension, np.float32))
        framed = np.array([_BEGIN, *ids, _END], np.int32)
        splits = np.array([0, len(framed)], np.int64)
        whole, context = self._session.run(None, {self._ids: framed, self._splits: splits})
        return Piece(without_space(text, bounds), context[1:-1].copy(), whole[0].copy())
