"""The network of multilingual-e5-small as an ONNX model, in memory, made from the tensors of its file.

A BERT of twelve layers. Its matrices stay in 4-bit numbers (`MatMulNBits` of ONNX Runtime): the file is mapped onto
them without a loss. Embeddings are looked up before, since a text needs few of their 250,037 rows.

Its upper layers may have learned something more, as low-rank additions to their matrices (LoRA; Hu et al. 2022, arXiv
2106.09685): so the encoder becomes a reader (`e5_reader`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from veriglot.encoders.e5_file import BLOCK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray
    from onnx import NodeProto, ValueInfoProto

    from veriglot.encoders.e5_file import E5File

__all__ = ["built"]

_OPSET = 20  # of ONNX: the first with Gelu
_THEIRS = "com.microsoft"
_INT8 = 4  # accuracy level: products in 8-bit integers, sums in float32


def built(file: E5File, layer: int, learned: Mapping[str, NDArray[np.float32]] | None = None) -> bytes:
    """The model.

    Args:
        file: gives sizes and tensors.
        layer: whose output is given as the vectors of tokens, counted from 1.
        learned: of a reader: for the matrices that have an addition, `l4.q.down` (r, in) and `l4.q.up` (out, r), by
            layer counted from 0 and by matrix; `part` (p, width), what is added to the tokens of each of p parts of a
            sequence before the first of these layers.

    Returns:
        An ONNX model, as bytes: the inputs `embedded` (b, t, width), the sums of embeddings, `mask` (b, t) int32, 1
        where there is a token, and, of a reader, `parts` (b, t, p), 1 where a token is of a part; the outputs `tokens`
        and `last` (b, t, width), of `layer` and of the last one.

    Raises:
        ValueError: the file lacks a tensor.
        KeyError: `learned` does.
    """
    graph = _Graph(file, learned or {})
    adapted = [int(name[1 : name.index(".")]) for name in graph.learned if name.endswith(".down")]
    state = graph.normalised("embedded", "emb.ln", "layer0")
    for nth in range(file.sizes.layers):
        if adapted and nth == min(adapted):
            state = graph.told_apart(state)
        state = graph.layer(state, nth)
    width = file.sizes.width
    inputs = [_vectors("embedded", width), helper.make_tensor_value_info("mask", TensorProto.INT32, ["b", "t"])]
    if adapted:
        inputs.append(_vectors("parts", len(graph.learned["part"])))
    return graph.model(inputs, [_vectors(name, width) for name in (f"layer{layer}", state)])


def _vectors(name: str, width: int) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["b", "t", width])


class _Graph:
    """Nodes and tensors as they are added."""

    def __init__(self, file: E5File, learned: Mapping[str, NDArray[np.float32]]) -> None:
        self._file, self.learned = file, learned
        self.nodes: list[NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []

    def model(self, inputs: Sequence[ValueInfoProto], outputs: Sequence[ValueInfoProto]) -> bytes:
        """What was added, as an ONNX model."""
        model = helper.make_model(
            helper.make_graph(self.nodes, "multilingual-e5-small", inputs, outputs, self.tensors),
            opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid(_THEIRS, 1)],
            ir_version=9,
        )
        data: bytes = model.SerializeToString()
        return data

    def told_apart(self, state: str) -> str:
        """What is learned of each part, added to its tokens."""
        part = self._node("MatMul", ["parts", self._tensor("part", self.learned["part"])], "part.product")
        return self._node("Add", [state, part], "part.sum")

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
        whole = self._node("Add", [found, self._tensor(f"{name}.b", self._file.numbers(f"{name}.b"))], f"{name}.sum")
        if f"{name}.down" not in self.learned:
            return whole
        low = self._product(state, f"{name}.down")
        return self._node("Add", [whole, self._product(low, f"{name}.up")], f"{name}.adapted")

    def _product(self, state: str, name: str) -> str:
        """With a learned matrix, rows of outputs."""
        return self._node("MatMul", [state, self._tensor(name, self.learned[name].T)], f"{name}.product")

    def _node(self, kind: str, inputs: list[str], output: str, domain: str = "", **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **attributes))
        return output

    def _tensor(self, name: str, values: NDArray[Any]) -> str:
        self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name
