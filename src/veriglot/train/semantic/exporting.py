"""From PyTorch to the ONNX file that the detector runs, checked against each other at several sizes."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
import torch
from torch import Tensor, nn

from veriglot.detectors.semantic.selection import STRIDE
from veriglot.errors import WeightsError
from veriglot.train.grounding.exporting import onnx_bytes
from veriglot.train.grounding.network import OUTPUTS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.train.semantic.network import SemanticNetwork

    Arrays = dict[str, NDArray[np.float32]]

__all__ = ["COLUMNS", "export"]

COLUMNS = 24  # further features of a word, beside the grounding detector's (`reading.read_sample`)
_INPUTS = ("features", "columns", "words", "evidence", "matched", "filled", "pool", "question", "asked")
_TOLERANCE = 2e-3  # of a logit
_SIZES = ((1, 2, 1, 1), (7, 2, 2, 9), (90, 22, 5, 1), (620, 70, 40, 30))  # words, strides, sentences, asked words


class _ForOne(nn.Module):
    """The network for one response, without padding."""

    def __init__(self, network: SemanticNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(
        self,
        features: Tensor,
        columns: Tensor,
        words: Tensor,
        evidence: Tensor,
        matched: Tensor,
        filled: Tensor,
        pool: Tensor,
        question: Tensor,
        asked: Tensor,
    ) -> tuple[Tensor, Tensor]:
        present = torch.ones_like(features[..., :1])
        found: tuple[Tensor, Tensor] = self.network(
            features, columns, words, evidence, matched, filled, pool, question, asked, present
        )
        return found


def export(network: SemanticNetwork, projection: NDArray[np.float32], path: Path) -> None:
    """Write the head as one self-contained ONNX file that takes the encoder's own vectors.

    Args:
        network: the trained network, which takes projected vectors; it is not changed.
        projection: what the vectors were multiplied by, shape (d, p): d numbers of the encoder, p of the network.
        path: the file.

    Raises:
        WeightsError: the file does not give what the network gives.
    """
    single = _ForOne(_unprojected(network, projection)).eval()
    length = len(projection)
    path.write_bytes(
        onnx_bytes(
            single,
            tuple(torch.from_numpy(array) for array in _drawn(single.network, length, 30, 4, 6, 5).values()),
            inputs=_INPUTS,
            outputs=("logits", "place"),
            axes=_axes(),
        )
    )
    _check(single, network, projection, path)


def _unprojected(network: SemanticNetwork, projection: NDArray[np.float32]) -> SemanticNetwork:
    """The same network for vectors that are not projected: both of its layers that take vectors are linear."""
    whole = copy.deepcopy(network)
    directions = torch.from_numpy(projection)
    for name in ("look", "value"):
        weight = getattr(network, name).weight.detach()
        layer = nn.Linear(len(projection), len(weight), bias=False)
        layer.weight = nn.Parameter(weight @ directions.T)
        setattr(whole, name, layer)
    return whole


def _axes() -> tuple[dict[int, object], ...]:
    """Which axes of the inputs take any length; slots come in whole strides."""
    words, sentences, asked = (torch.export.Dim(name, min=2) for name in ("words", "sentences", "asked"))
    slots = STRIDE * torch.export.Dim("strides", min=2)
    return (
        {1: words}, {1: words}, {1: words}, {1: slots}, {1: words, 2: slots}, {1: slots},
        {1: sentences, 2: words}, {1: asked}, {1: asked},
    )  # fmt: skip


def _drawn(network: SemanticNetwork, length: int, words: int, strides: int, sentences: int, asked: int) -> Arrays:
    """Inputs as a detector might give them, for vectors of a length."""
    rng = np.random.default_rng(words)
    slots = strides * STRIDE
    filled = np.ones((1, slots), np.float32)
    filled[0, -STRIDE - 3 :] = 0
    sentence = np.sort(np.concatenate([np.arange(sentences), rng.integers(0, sentences, words - sentences)]))
    pool = np.zeros((1, sentences, words), np.float32)
    pool[0, sentence, np.arange(words)] = 1 / np.bincount(sentence)[sentence]
    shapes = {
        "features": (words, len(network._means) - COLUMNS), "columns": (words, COLUMNS), "words": (words, length),
        "evidence": (slots, length), "question": (asked, length),
    }  # fmt: skip
    arrays: Arrays = {name: rng.normal(size=(1, *shape)).astype(np.float32) for name, shape in shapes.items()}
    arrays["evidence"] *= filled[..., None]
    matched = rng.random((1, words, slots)) < 1 / 40
    arrays |= {"matched": matched * filled[:, None], "filled": filled, "pool": pool}
    arrays["asked"] = np.ones((1, asked), np.float32)
    return {name: arrays[name] for name in _INPUTS}


def _check(single: _ForOne, network: SemanticNetwork, projection: NDArray[np.float32], path: Path) -> None:
    """Raise unless file, unprojected network and trained network agree."""
    trained = _ForOne(network).eval()
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for sizes in _SIZES:
        given = _drawn(network, len(projection), *sizes)
        before = {n: a @ projection if n in ("words", "evidence", "question") else a for n, a in given.items()}
        found, places = session.run(None, given)
        for module, inputs in ((single, given), (trained, before)):
            with torch.no_grad():
                logits, place = module(*(torch.from_numpy(inputs[name]) for name in _INPUTS))
            same = (places == place.numpy()).mean() if places.shape == place.shape else 0.0
            if found.shape != (1, sizes[0], OUTPUTS) or np.abs(found - logits.numpy()).max() > _TOLERANCE or same < 0.9:
                raise WeightsError(f"The exported head differs from the trained one at {sizes[0]} words.")
