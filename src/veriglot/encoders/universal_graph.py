"""The Universal Sentence Encoder's ONNX graph, cut behind its tokenizer, in memory.

The graph of the file begins with a SentencePiece tokenizer, an operator that only onnxruntime-extensions has and that
does not say where its tokens stand. Cut behind it, the rest runs on plain ONNX Runtime, on token ids that the
sentencepiece library makes, with offsets, from the same SentencePiece model: that is an attribute of the operator. One
more output is named on the way, the vectors of the tokens before they are pooled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx
from onnx import helper

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

__all__ = ["LAYER", "Parts", "cut"]

_TOKENIZER = "SentencepieceTokenizer"
# What is summed over the tokens to make the sentence. The layer below it (1,280 numbers) holds much that the sentence
# does not see: between languages, a word's nearest neighbour there is its translation half as often.
LAYER = "dense"
_CONTEXT = f"EncoderDNN/CNN_layers/{LAYER}/BiasAdd:0"


@dataclass(frozen=True)
class Parts:
    """What the file holds.

    Attributes:
        tokenizer: the SentencePiece model, as bytes.
        network: an ONNX model, as bytes: the inputs `ids` (t,) int32 and `splits` (2,) int64; the outputs: sentence
            vectors (1, 512), token vectors (t, 512).
        ids: the name of the input of ids.
        splits: the name of the input of splits, where rows begin and end in the ids.
    """

    tokenizer: bytes
    network: bytes
    ids: str
    splits: str


def cut(data: bytes) -> Parts:
    """Take the file's two halves apart.

    Args:
        data: the ONNX file.

    Raises:
        ValueError: the file is no ONNX model, or not this one.
    """
    try:
        model = onnx.load_from_string(data)
    except Exception as error:  # protobuf's errors are not ours to name, and differ between its versions
        raise ValueError("it is no ONNX file") from error
    graph = model.graph
    tokenizer = _tokenizer(graph)
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
        model.opset_import.remove(opset)  # the extension's; what is left is plain ONNX
    return Parts(pieces, model.SerializeToString(), ids, splits)


def _tokenizer(graph: GraphProto) -> NodeProto:
    found: list[NodeProto] = [node for node in graph.node if node.op_type == _TOKENIZER]
    if len(found) != 1:
        raise ValueError(f"it has {len(found)} nodes of the kind {_TOKENIZER}")
    return found[0]
