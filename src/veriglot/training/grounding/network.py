"""The network of the grounding detector, in PyTorch, and how it is fitted.

Convolutions see a word's neighbours; two layers pool every sentence, look at the sentences beside it, and hand the
result back to its words, since most unsupported text comes in whole sentences. No attention: time stays linear.
"""

from __future__ import annotations

import logging
import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from veriglot.detectors.grounding.detector import OUTPUTS, Model
from veriglot.errors import WeightsError
from veriglot.training.trainer import train_network

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.training.grounding.examples import Row

__all__ = [
    "Blocks", "Network", "Plan", "WithLearnedVectors", "export", "fit", "fit_on", "onnx_bytes", "predict", "statistics",
]  # fmt: skip


_CLIP = 6.0
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
    """A residual block: sentence means, a convolution over sentences, a look at the response, and back to the words."""

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
        real = (pool.sum(-1, keepdim=True) > 0).to(hidden.dtype)  # sentences that are no padding
        means = torch.cat([pool @ normed, pool @ (normed * normed)], dim=-1)
        sentences = functional.gelu(self.enter(means)) * real
        sentences = sentences + functional.gelu(self.beside(sentences.transpose(1, 2)).transpose(1, 2)) * real
        response = sentences.sum(1, keepdim=True) / real.sum(1, keepdim=True)
        sentences = sentences + self.whole(response)
        back = (pool > 0).to(hidden.dtype).transpose(1, 2)
        out: Tensor = hidden + self.dropout(back @ self.leave(sentences))
        return out


class Blocks(nn.ModuleList):
    """Four convolutions over words and two looks at sentences, in turn."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__(
            [
                _Neighbours(width, 1, dropout),
                _Sentences(width, dropout),
                _Neighbours(width, 2, dropout),
                _Neighbours(width, 4, dropout),
                _Sentences(width, dropout),
                _Neighbours(width, 1, dropout),
            ]
        )

    def forward(self, hidden: Tensor, present: Tensor, pool: Tensor) -> Tensor:
        """Hidden states of the words, shape (b, n, width), for `present` and `pool` as in `Network.forward`."""
        for block in self:
            hidden = block(hidden, present, pool)
        return hidden


class Network(nn.Module):
    """Word features to logits.

    Args:
        means: mean of each feature over the training words, shape (f,).
        deviations: its standard deviation, never 0, shape (f,).
        width: channels; a multiple of 16.
        dropout: share of numbers dropped in training.
    """

    def __init__(self, means: Tensor, deviations: Tensor, width: int = 96, dropout: float = 0.15) -> None:
        super().__init__()
        self.means: Tensor
        self.deviations: Tensor
        self.register_buffer("means", means)
        self.register_buffer("deviations", deviations)
        self.enter = nn.Linear(len(means), width)
        self.blocks = Blocks(width, dropout)
        self.norm = nn.LayerNorm(width)
        self.leave = nn.Linear(width, OUTPUTS)
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor, present: Tensor, pool: Tensor) -> Tensor:
        """Logits.

        Args:
            features: shape (b, n, f).
            present: 1 for words, 0 for padding, shape (b, n, 1).
            pool: row s holds 1/k for the k words of sentence s and 0 elsewhere, shape (b, s, n).

        Returns:
            Shape (b, n, 7): unsupported, then the six FAVA types.
        """
        scaled = ((features - self.means) / self.deviations).clamp(-_CLIP, _CLIP)
        hidden = self.blocks(self.enter(self.dropout(scaled)), present, pool)
        out: Tensor = self.leave(self.norm(hidden))
        return out


class WithLearnedVectors(nn.Module):
    """A network that learns its own projection of the encoder's vectors; the last feature is the word's row, or -1.

    Args:
        network: takes the features without the row, then the projected vector.
        vectors: the encoder's vectors, shape (v, 512).
        start: the projection to start from, shape (512, l).
    """

    def __init__(self, network: Network, vectors: Tensor, start: Tensor) -> None:
        super().__init__()
        self.network = network
        self.vectors = vectors  # no parameter: it is never changed, and too large to copy with the state
        self.project = nn.Linear(start.shape[0], start.shape[1], bias=False)
        self.project.weight.data = start.T.contiguous()
        self.dropout = nn.Dropout(0.3)

    def forward(self, features: Tensor, present: Tensor, pool: Tensor) -> Tensor:
        """Logits, as `Network.forward`; `features` has the row of the word's vector last."""
        rows = features[..., -1].long()
        known = (rows >= 0).unsqueeze(-1)
        vectors = self.vectors[rows.clamp(min=0)].to(features.dtype) * known
        projected = self.project(self.dropout(vectors))
        out: Tensor = self.network(torch.cat([features[..., :-1], projected], dim=-1), present, pool)
        return out


# Fitting the network: batches by length, one seeded loop, and predictions one response at a time.


if TYPE_CHECKING:
    Judged = tuple[Tensor, Sequence[Tensor]]

R = TypeVar("R")
_BATCH_WORDS = 6000
_SORTED = 512  # rows among which batches of like length are made
_WARM_UP = 50  # steps
_LAST_RATE = 0.02  # of the highest learning rate
_DECAY = 0.02


@dataclass(frozen=True)
class Plan:
    """What a fit depends on besides its rows: passes, highest learning rate, seed, weight of the type loss."""

    epochs: int
    rate: float
    seed: int
    type_weight: float


def statistics(rows: Sequence[Row], *, with_rows: bool = False, most: int = 2000) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each feature over a sample of the rows; both of shape (f,)."""
    step = max(1, len(rows) // most)
    values = np.concatenate([_inputs(row, with_rows=with_rows)[:200] for row in rows[::step]]).astype(np.float32)
    return torch.from_numpy(values.mean(axis=0)), torch.from_numpy(values.std(axis=0) + 0.05)


def _inputs(row: Row, *, with_rows: bool) -> NDArray[np.float32]:
    values = row.values.astype(np.float32)
    return np.concatenate([values, row.vector[:, None].astype(np.float32)], axis=1) if with_rows else values


def _batch(rows: Sequence[Row], scale: Callable[[Row], float], *, with_rows: bool) -> list[Tensor]:
    longest = max(len(row) for row in rows)
    sentences = max(int(row.sentence[-1]) + 1 for row in rows)
    width = rows[0].values.shape[1] + with_rows
    values = np.zeros((len(rows), longest, width), np.float32)
    present = np.zeros((len(rows), longest, 1), np.float32)
    pool = np.zeros((len(rows), sentences, longest), np.float32)
    target = np.zeros((len(rows), longest), np.float32)
    types = np.zeros((len(rows), longest, rows[0].types.shape[1]), np.float32)
    weight = np.zeros((len(rows), longest), np.float32)
    for i, row in enumerate(rows):
        n = len(row)
        values[i, :n] = _inputs(row, with_rows=with_rows)
        present[i, :n] = 1
        pool[i, row.sentence, np.arange(n)] = 1 / np.bincount(row.sentence)[row.sentence]
        target[i, :n], types[i, :n], weight[i, :n] = row.target, row.types, row.weight * scale(row)
    return [torch.from_numpy(a) for a in (values, present, pool, target, types, weight)]


def _batches(rows: Sequence[Row], rng: np.random.Generator) -> list[list[Row]]:
    order = rng.permutation(len(rows))
    batches: list[list[Row]] = []
    for at in range(0, len(order), _SORTED):
        near = sorted((rows[i] for i in order[at : at + _SORTED]), key=len)
        batch: list[Row] = []
        for row in near:
            batch.append(row)
            if len(batch) * len(row) >= _BATCH_WORDS:
                batches.append(batch)
                batch = []
        if batch:
            batches.append(batch)
    rng.shuffle(batches)
    return batches


def _loss(out: Tensor, target: Tensor, types: Tensor, weight: Tensor, type_weight: float) -> Tensor:
    """Cross-entropy of marking over all words, and of types over unsupported words whose type is known."""
    marking = functional.binary_cross_entropy_with_logits(out[..., 0], target, reduction="none")
    loss: Tensor = (marking * weight).sum() / weight.sum().clamp(min=1)
    typed = (weight * target * (types.sum(-1) > 0)).unsqueeze(-1)
    typing = functional.binary_cross_entropy_with_logits(out[..., 1:], types, reduction="none")
    return loss + type_weight * (typing * typed).sum() / typed.sum().clamp(min=1)


def fit(
    network: nn.Module,
    rows: Sequence[Row],
    plan: Plan,
    *,
    scale: Callable[[Row], float] = lambda _: 1.0,
    with_rows: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Train in place, seeded, on one thread.

    Args:
        network: takes values, presence and pooling (`Network`).
        rows: the training rows, none empty.
        plan: epochs, learning rate, seed, weight of the type loss.
        scale: weight of a row beside the weights of its words.
        with_rows: whether the word's place in the vectors is the last feature (`WithLearnedVectors`).
        say: told the mean loss after each epoch.
    """

    def judged(batch: Sequence[Row]) -> Judged:
        values, present, pool, *labels = _batch(batch, scale, with_rows=with_rows)
        return network(values, present, pool), labels

    fit_on(network, plan, lambda rng: _batches(rows, rng), judged, say=say)


def fit_on(
    network: nn.Module,
    plan: Plan,
    batches: Callable[[np.random.Generator], Sequence[list[R]]],
    judged: Callable[[list[R]], Judged],
    *,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Train in place on batches of any kind of row, seeded.

    Args:
        network: whose parameters are fitted.
        plan: epochs, learning rate, seed, weight of the type loss.
        batches: draws the batches of an epoch; always as many, but for a few.
        judged: what the network says of a batch, shape (b, n, 7), and its target, types and weight.
        say: told the mean loss after each epoch.
    """
    rng = np.random.default_rng(plan.seed)
    steps = len(batches(np.random.default_rng(plan.seed))) * plan.epochs

    def loss_of(batch: list[R]) -> Tensor:
        out, (target, types, weight) = judged(batch)
        return _loss(out, target, types, weight, plan.type_weight)

    def rate(step: int) -> float:
        falling = max(_LAST_RATE, 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps))))
        return plan.rate * (min(1.0, (step + 1) / _WARM_UP) * falling)

    train_network(
        network,
        lambda _: batches(rng),
        loss_of,
        epochs=plan.epochs,
        seed=plan.seed,
        rate=rate,
        decay=_DECAY,
        epoch_done=lambda epoch, losses: say(f"epoch {epoch + 1} of {plan.epochs}: loss {np.mean(losses):.4f}"),
    )


def predict(network: nn.Module, rows: Sequence[Row]) -> list[NDArray[np.float32]]:
    """Logits of each row, one response at a time as the detector does it; each of shape (n, 7)."""
    logits = []
    with torch.no_grad():
        for row in rows:
            values, present, pool, *_ = _batch([row], lambda _: 1.0, with_rows=False)
            logits.append(network(values, present, pool)[0].numpy())
    return logits


# From PyTorch to ONNX, checked.


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
        logits = model.logits(features, sentence)
        pool = np.zeros((1, sentences, words), np.float32)
        pool[0, sentence, np.arange(words)] = 1 / np.bincount(sentence)[sentence]
        with torch.no_grad():
            expected = single(torch.from_numpy(features[None]), torch.from_numpy(pool))[0].numpy()
        if logits.shape != (words, OUTPUTS) or np.abs(logits - expected).max() > _TOLERANCE:
            raise WeightsError(f"The exported network differs from the trained one at {words} words.")
