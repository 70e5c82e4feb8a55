"""The network of multilingual-e5-small as an ONNX model, in memory, made from the tensors of its file.

A BERT of twelve layers. Its matrices stay in 4-bit numbers (`MatMulNBits` of ONNX Runtime): the file is mapped onto
them without a loss. Embeddings are looked up before, since a text needs few of their 250,037 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from veriglot.encoders.e5_file import BLOCK

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import NodeProto

    from veriglot.encoders.e5_file import E5File

__all__ = ["built"]

_OPSET = 20  # of ONNX: the first with Gelu
_THEIRS = "com.microsoft"
_INT8 = 4  # accuracy level: products in 8-bit integers, sums in float32


def built(file: E5File, layer: int) -> bytes:
    """The model.

    Args:
        file: gives sizes and tensors.
        layer: whose output is given as the vectors of tokens, counted from 1.

    Returns:
        An ONNX model, as bytes: the inputs `embedded` (b, t, width), the sums of embeddings, and `mask` (b, t) int32, 1
        where there is a token; the outputs `tokens` and `last` (b, t, width), of `layer` and of the last one.

    Raises:
        ValueError: the file lacks a tensor.
    """
    graph = _Graph(file)
    state = graph.normalised("embedded", "emb.ln", "layer0")
    for nth in range(file.sizes.layers):
        state = graph.layer(state, nth)
    width = file.sizes.width
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "multilingual-e5-small",
            [
                helper.make_tensor_value_info("embedded", TensorProto.FLOAT, ["b", "t", width]),
                helper.make_tensor_value_info("mask", TensorProto.INT32, ["b", "t"]),
            ],
            [
                helper.make_tensor_value_info(name, TensorProto.FLOAT, ["b", "t", width])
                for name in (f"layer{layer}", state)
            ],
            graph.tensors,
        ),
        opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid(_THEIRS, 1)],
        ir_version=9,
    )
    data: bytes = model.SerializeToString()
    return data


class _Graph:
    """Nodes and tensors as they are added."""

    def __init__(self, file: E5File) -> None:
        self._file = file
        self.nodes: list[NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []

    def layer(self, state: str, nth: int) -> str:
        """One transformer layer; normalisation stands after each half, as in BERT."""
        name, sizes = f"l{nth}", self._file.sizes
        heads = [self._dense(state, f"{name}.{part}", sizes.width) for part in "qkv"]
        met = self._node(
            "MultiHeadAttention", [*heads, "", "mask"], f"{name}.met", domain=_THEIRS, num_heads=sizes.heads
        )
        attended = self._node("Add", [state, self._dense(met, f"{name}.ao", sizes.width)], f"{name}.attended")
        between = self.normalised(attended, f"{name}.aln", f"{name}.between")
        inner = self._node("Gelu", [self._dense(between, f"{name}.fi", sizes.width)], f"{name}.inner")
        fed = self._node("Add", [between, self._dense(inner, f"{name}.fo", sizes.inner)], f"{name}.fed")
        return self.normalised(fed, f"{name}.oln", f"layer{nth + 1}")

    def normalised(self, state: str, name: str, output: str) -> str:
        """Layer normalisation."""
        scale, shift = (self._tensor(f"{name}.{part}", self._file.numbers(f"{name}.{part}")) for part in "wb")
        return self._node(
            "LayerNormalization", [state, scale, shift], output, axis=-1, epsilon=self._file.sizes.epsilon
        )

    def _dense(self, state: str, name: str, columns: int) -> str:
        numbers, scales = self._file.matrix(f"{name}.w", columns)
        found = self._node(
            "MatMulNBits",
            [state, self._tensor(f"{name}.w", numbers), self._tensor(f"{name}.scales", scales.ravel())],
            f"{name}.product",
            domain=_THEIRS, K=columns, N=len(numbers), bits=4, block_size=BLOCK, accuracy_level=_INT8,
        )  # fmt: skip
        return self._node("Add", [found, self._tensor(f"{name}.b", self._file.numbers(f"{name}.b"))], f"{name}.sum")

    def _node(self, kind: str, inputs: list[str], output: str, domain: str = "", **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **attributes))
        return output

    def _tensor(self, name: str, values: NDArray[Any]) -> str:
        self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name
