"""The network of the grounding detector: arrays, layers, training, prediction, and ONNX export.

Convolutions combine neighbouring words. Two layers average every sentence, combine neighbouring sentences, and add the
result to their words, because most unsupported text is whole sentences. Without attention, time is linear in length.
"""

from __future__ import annotations

import logging
import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pad_sequence

from veriglot.detectors.grounding.detector import OUTPUTS, Model, sentence_pool
from veriglot.detectors.grounding.features import extract_features
from veriglot.errors import WeightsError
from veriglot.training.grounding.examples import Example, Labels, labels_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from veriglot.arrays import Float16s, Float32s, Int32s, Int64s
    from veriglot.detectors.grounding.document import Lexicon

__all__ = ["Network", "Row", "WithLearnedVectors", "export", "fit", "predict", "rows_of", "statistics"]


# Examples as arrays.


@dataclass(frozen=True)
class Row(Labels):
    """One example as arrays."""

    values: Float16s
    vector: Int32s
    sentence: Int64s
    bounds: Int32s


def rows_of(examples: Iterable[Example], lexicon: Lexicon) -> list[Row]:
    """Arrays of the examples that have words."""
    return [row for row in (_row_of(example, lexicon) for example in examples) if row is not None]


def _row_of(example: Example, lexicon: Lexicon) -> Row | None:
    """The arrays of an example; None if response or evidence has no word."""
    extract_result = extract_features(example.response, example.passages, example.question, example.language, lexicon)
    if extract_result is None:
        return None
    labels = labels_of(example, extract_result.response.bounds, extract_result.markup)
    return Row(
        example,
        labels.target,
        labels.weight,
        labels.types,
        extract_result.values.astype(np.float16),
        extract_result.vector_place.astype(np.int32),
        extract_result.sentence,
        extract_result.response.bounds.astype(np.int32),
    )


# The network.


_GROUP = 16  # channels per group of a convolution
_KERNEL = 5


class _Neighbours(nn.Module):
    """A residual block: a dilated convolution over words, then two dense layers."""

    def __init__(self, width: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        reach = dilation * (_KERNEL // 2)
        self.mix = nn.Conv1d(width, width, _KERNEL, padding=reach, dilation=dilation, groups=width // _GROUP)
        self.widen = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Tensor, present: Tensor, _: Tensor) -> Tensor:
        mixed = self.mix((self.norm(hidden) * present).transpose(1, 2)).transpose(1, 2)
        out: Tensor = hidden + self.dropout(self.narrow(functional.gelu(self.widen(mixed))))
        return out


class _Sentences(nn.Module):
    """A residual block: sentence means, a convolution over sentences, the mean of the response, and back to words."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.enter = nn.Linear(2 * width, width)
        self.beside = nn.Conv1d(width, width, 3, padding=1)
        self.whole = nn.Linear(width, width)
        self.leave = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Tensor, present: Tensor, pool: Tensor) -> Tensor:
        normed = self.norm(hidden) * present
        real = (pool.sum(-1, keepdim=True) > 0).to(hidden.dtype)  # sentences that are not padding
        means = torch.cat([pool @ normed, pool @ (normed * normed)], dim=-1)
        sentences = functional.gelu(self.enter(means)) * real
        sentences = sentences + functional.gelu(self.beside(sentences.transpose(1, 2)).transpose(1, 2)) * real
        response = sentences.sum(1, keepdim=True) / real.sum(1, keepdim=True)
        sentences = sentences + self.whole(response)
        back = (pool > 0).to(hidden.dtype).transpose(1, 2)
        out: Tensor = hidden + self.dropout(back @ self.leave(sentences))
        return out


_CLIP = 6.0


class Network(nn.Module):
    """Word features to logits."""

    def __init__(self, means: Tensor, deviations: Tensor, width: int = 96, dropout: float = 0.15) -> None:
        super().__init__()
        self.means: Tensor
        self.deviations: Tensor
        self.register_buffer("means", means)
        self.register_buffer("deviations", deviations)
        self.enter = nn.Linear(len(means), width)
        self.blocks = nn.ModuleList(
            [
                _Neighbours(width, 1, dropout),
                _Sentences(width, dropout),
                _Neighbours(width, 2, dropout),
                _Neighbours(width, 4, dropout),
                _Sentences(width, dropout),
                _Neighbours(width, 1, dropout),
            ]
        )
        self.norm = nn.LayerNorm(width)
        self.leave = nn.Linear(width, OUTPUTS)
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor, present: Tensor, pool: Tensor) -> Tensor:
        """Logits."""
        scaled = ((features - self.means) / self.deviations).clamp(-_CLIP, _CLIP)
        hidden = self.enter(self.dropout(scaled))
        for block in self.blocks:
            hidden = block(hidden, present, pool)
        out: Tensor = self.leave(self.norm(hidden))
        return out


class WithLearnedVectors(nn.Module):
    """A network that learns a projection of the encoder's vectors; the last feature is the row of a vector, or -1."""

    def __init__(self, network: Network, vectors: Tensor, start: Tensor) -> None:
        super().__init__()
        self.network = network
        self.vectors = vectors  # not a parameter: it never changes and is too large for the state dict
        self.project = nn.Linear(start.shape[0], start.shape[1], bias=False)
        self.project.weight.data = start.T.contiguous()
        self.dropout = nn.Dropout(0.3)

    def forward(self, features: Tensor, present: Tensor, pool: Tensor) -> Tensor:
        """Logits, as `Network.forward`; the last of `features` is the row of the word's vector."""
        rows = features[..., -1].long()
        known = (rows >= 0).unsqueeze(-1)
        vectors = self.vectors[rows.clamp(min=0)].to(features.dtype) * known
        projected = self.project(self.dropout(vectors))
        out: Tensor = self.network(torch.cat([features[..., :-1], projected], dim=-1), present, pool)
        return out


# Training in batches of similar length; prediction one response at a time.


_RATE = 2e-3  # highest learning rate
_WARM_UP = 50  # steps
_LAST_RATE = 0.02  # share of the highest learning rate
_DECAY = 0.02
_BATCH_WORDS = 6000
_SORTED = 512  # rows that are sorted by length together
_MEASURED = 2000  # rows for the mean and deviation of features


def statistics(rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each feature over a sample of the rows; both of shape (f,)."""
    step = max(1, len(rows) // _MEASURED)
    values = np.concatenate([row.values[:200] for row in rows[::step]]).astype(np.float32)
    return torch.from_numpy(values.mean(axis=0)), torch.from_numpy(values.std(axis=0) + 0.05)


def _batch(rows: Sequence[Row], scale: Callable[[Row], float], *, with_rows: bool) -> list[Tensor]:
    """Padded features, mask, pool, target, types and weight of rows; `with_rows` adds the row of the vector, last."""
    columns = (
        [np.column_stack([row.values, row.vector]) if with_rows else row.values for row in rows],
        [np.ones((len(row), 1)) for row in rows],
        [row.target for row in rows],
        [row.types for row in rows],
        [row.weight * scale(row) for row in rows],
    )
    values, present, target, types, weight = (
        pad_sequence([torch.tensor(array, dtype=torch.float32) for array in arrays], batch_first=True)
        for arrays in columns
    )
    pool = torch.zeros(len(rows), max(int(row.sentence[-1]) + 1 for row in rows), target.shape[1])
    for i, row in enumerate(rows):
        pool[i, : row.sentence[-1] + 1, : len(row)] = torch.from_numpy(sentence_pool(row.sentence)[0])
    return [values, present, pool, target, types, weight]


def _batches(rows: Sequence[Row], rng: np.random.Generator) -> list[list[Row]]:
    order = rng.permutation(len(rows))
    batches = []
    for at in range(0, len(order), _SORTED):
        near = sorted((rows[i] for i in order[at : at + _SORTED]), key=len)
        batch = []
        for row in near:
            batch.append(row)
            if len(batch) * len(row) >= _BATCH_WORDS:
                batches.append(batch)
                batch = []
        if batch:
            batches.append(batch)
    rng.shuffle(batches)
    return batches


def fit(
    network: nn.Module,
    rows: Sequence[Row],
    *,
    epochs: int,
    seed: int,
    type_weight: float = 0.7,
    scale: Callable[[Row], float] = lambda _: 1.0,
    with_rows: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Train in place with AdamW and gradients clipped to norm 1; seeded.

    Args:
        network: the network to train.
        rows: training rows.
        epochs: passes over the rows.
        seed: for the order of rows and for dropout.
        type_weight: weight of the type loss.
        scale: weight of a row.
        with_rows: whether the network gets the row of each word's vector.
        say: callback for the mean loss after each epoch.
    """
    rng = np.random.default_rng(seed)
    steps = len(_batches(rows, np.random.default_rng(seed))) * epochs
    torch.manual_seed(seed)
    optimizer = torch.optim.AdamW(network.parameters(), _RATE, weight_decay=_DECAY)
    step = 0
    for epoch in range(epochs):
        network.train()
        losses = []
        for batch in _batches(rows, rng):
            falling = max(_LAST_RATE, 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps))))
            for group in optimizer.param_groups:
                group["lr"] = _RATE * (min(1.0, (step + 1) / _WARM_UP) * falling)
            values, present, pool, target, types, weight = _batch(batch, scale, with_rows=with_rows)
            out = network(values, present, pool)
            # Cross-entropy of unsupported or not over all words, and of types over unsupported words with a known type.
            marking = functional.binary_cross_entropy_with_logits(out[..., 0], target, reduction="none")
            typed = (weight * target * (types.sum(-1) > 0)).unsqueeze(-1)
            typing = functional.binary_cross_entropy_with_logits(out[..., 1:], types, reduction="none")
            loss: Tensor = (marking * weight).sum() / weight.sum().clamp(min=1)
            loss = loss + type_weight * (typing * typed).sum() / typed.sum().clamp(min=1)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            step += 1
            losses.append(loss.item())
        say(f"epoch {epoch + 1} of {epochs}: loss {np.mean(losses):.4f}")
    network.eval()


def predict(network: nn.Module, rows: Sequence[Row]) -> list[Float32s]:
    """Logits of each row, one response at a time like the detector; each of shape (n, 7)."""
    logits = []
    with torch.no_grad():
        for row in rows:
            values, present, pool, *_ = _batch([row], lambda _: 1.0, with_rows=False)
            logits.append(network(values, present, pool)[0].numpy())
    return logits


# Export from PyTorch to ONNX, with a comparison of outputs.


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
    """Write the network as one self-contained ONNX file without paths of this machine.

    Raises:
        WeightsError: the export failed, or its outputs differ.
    """
    single = _ForOne(network).eval()
    width = len(network.means)
    words, sentences = torch.export.Dim("words", min=2), torch.export.Dim("sentences", min=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's: of its internals, and of parts that this network does not use
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        program = torch.onnx.export(
            single,
            (torch.randn(1, 30, width), torch.rand(1, 4, 30)),
            input_names=["features", "pool"],
            output_names=["logits"],
            dynamic_shapes=({1: words}, {1: sentences, 2: words}),
            dynamo=True,
            verbose=False,
        )
    if program is None:
        raise WeightsError("PyTorch did not export the network.")
    model = program.model_proto
    _strip(model)
    path.write_bytes(model.SerializeToString())
    _check(single, Model(path), width)


def _strip(model: Any) -> None:
    """Remove the exporter's metadata of every node: stack traces with paths of this machine."""
    graph = model.graph
    nodes = [*graph.node, *(node for function in model.functions for node in function.node)]
    values = [*graph.value_info, *graph.initializer, *graph.input, *graph.output]
    for holder in (model, graph, *model.functions, *nodes, *values):
        del holder.metadata_props[:]
        holder.doc_string = ""


def _check(single: nn.Module, model: Model, width: int) -> None:
    rng = np.random.default_rng(0)
    for length, count in _LENGTHS:
        features = rng.normal(size=(length, width)).astype(np.float32)
        sentence = np.sort(np.concatenate([np.arange(count), rng.integers(0, count, length - count)]))
        logits = model.logits(features, sentence)
        with torch.no_grad():
            expected = single(torch.from_numpy(features[None]), torch.from_numpy(sentence_pool(sentence)))[0].numpy()
        if logits.shape != (length, OUTPUTS) or np.abs(logits - expected).max() > _TOLERANCE:
            raise WeightsError(f"The exported network differs from the trained one at {length} words.")
