"""From PyTorch to the ONNX file that the detector runs, checked against each other at several lengths."""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from veriglot.detectors.grounding.inference import OUTPUTS, Model
from veriglot.errors import WeightsError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from veriglot.train.grounding.network import Network

__all__ = ["export", "onnx_bytes"]

_TOLERANCE = 2e-3  # of a logit
_LENGTHS = ((1, 1), (7, 2), (90, 5), (700, 40))  # words and sentences


class _ForOne(nn.Module):
    """The network for one response, without padding."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: Tensor, pool: Tensor) -> Tensor:
        out: Tensor = self.network(features, torch.ones_like(features[..., :1]), pool)
        return out


def export(network: Network, path: Path) -> None:
    """Write the network as one self-contained ONNX file.

    Raises:
        WeightsError: the file does not give what the network gives.
    """
    single = _ForOne(network).eval()
    width = len(network.means)
    words, sentences = torch.export.Dim("words", min=2), torch.export.Dim("sentences", min=2)
    path.write_bytes(
        onnx_bytes(
            single,
            (torch.randn(1, 30, width), torch.rand(1, 4, 30)),
            inputs=("features", "pool"),
            outputs=("logits",),
            axes=({1: words}, {1: sentences, 2: words}),
        )
    )
    _check(single, Model(path), width)


def onnx_bytes(
    module: nn.Module,
    given: tuple[Tensor, ...],
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    axes: tuple[dict[int, Any], ...],
) -> bytes:
    """A module as the bytes of an ONNX file, which name nothing of the machine it was made on.

    Args:
        module: ready to run.
        given: inputs to trace it with.
        inputs: their names.
        outputs: names of what comes out.
        axes: for each input, the axes of any length.

    Raises:
        WeightsError: PyTorch exported nothing.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own: of its internals, and of parts that this network does not use
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        program = torch.onnx.export(
            module,
            given,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_shapes=axes,
            dynamo=True,
            verbose=False,
        )
    if program is None:
        raise WeightsError("PyTorch did not export the network.")
    model = program.model_proto
    _strip(model)
    written: bytes = model.SerializeToString()
    return written


def _strip(model: Any) -> None:
    """Take out what the exporter notes beside every node: stack traces, with the paths of the machine it ran on."""
    model.doc_string = ""
    for holder in (model, model.graph, *model.graph.node, *model.graph.value_info, *model.graph.initializer):
        del holder.metadata_props[:]
        holder.doc_string = ""
    for value in (*model.graph.input, *model.graph.output):
        del value.metadata_props[:]
    for function in model.functions:
        del function.metadata_props[:]
        for node in function.node:
            del node.metadata_props[:]


def _check(single: nn.Module, model: Model, width: int) -> None:
    rng = np.random.default_rng(0)
    for words, sentences in _LENGTHS:
        features = rng.normal(size=(words, width)).astype(np.float32)
        sentence = np.sort(np.concatenate([np.arange(sentences), rng.integers(0, sentences, words - sentences)]))
        found = model.logits(features, sentence)
        pool = np.zeros((1, sentences, words), np.float32)
        pool[0, sentence, np.arange(words)] = 1 / np.bincount(sentence)[sentence]
        with torch.no_grad():
            expected = single(torch.from_numpy(features[None]), torch.from_numpy(pool))[0].numpy()
        if found.shape != (words, OUTPUTS) or np.abs(found - expected).max() > _TOLERANCE:
            raise WeightsError(f"The exported network differs from the trained one at {words} words.")
