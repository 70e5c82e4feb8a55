"""The reader in PyTorch, low-rank additions and two heads on the encoder, and how it is fitted.

What it computes is what `encoders.e5_graph` and `detectors.semantic.reader` compute; there is a test of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from veriglot.detectors.semantic.reader import FURTHER, LEAST, SHARP
from veriglot.encoders.e5 import LAYER, PARTS, Embeddings, padded
from veriglot.hub.checkpoints import batches
from veriglot.training.trainer import train_network

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from veriglot.encoders.e5 import E5File, Pair

__all__ = ["ReaderNetwork", "Row", "fit"]


_FIRST = 4  # layer with additions: those below are as they were, and need no gradient
_RANK = 16
_INNER = 128  # of the heads
_DROPOUT = 0.1
_MATRICES = ("q", "k", "v", "ao", "fi", "fo")
_MASKED = -1e4


@dataclass(frozen=True)
class Row:
    """One sequence to learn from.

    Attributes:
        pair: its tokens.
        target: 1 for unsupported tokens of the response, shape (t,), which may be none.
        answer: which tokens of the evidence are the right answer to the question, shape (e,), or None where there is no
            question or its answer is not among them.
    """

    pair: Pair
    target: NDArray[np.float32]
    answer: NDArray[np.bool_] | None


class ReaderNetwork(nn.Module):
    """The network.

    Args:
        file: of the encoder.
        number: what the encoder's own matrices are multiplied in; bfloat16 is three times as fast where the processor
            knows it.
    """

    def __init__(self, file: E5File, number: torch.dtype = torch.bfloat16) -> None:
        super().__init__()
        width = file.sizes.width
        self._embeddings = Embeddings(file)
        self._norm = _Norm(file, "emb.ln")
        self.layers = nn.ModuleList(
            _Layer(file, nth, _RANK if nth >= _FIRST else 0, number) for nth in range(file.sizes.layers)
        )
        self.part = nn.Parameter(torch.zeros(len(PARTS), width))
        self.heads = nn.ModuleDict({"answer": _head(width), "unsupported": _head(width + FURTHER)})

    def forward(self, pairs: Sequence[Pair]) -> list[tuple[Tensor, Tensor]]:
        """For each sequence a logit for every token of its response, and of its evidence; see `Judgement`."""
        ids, mask, parts = padded(pairs)
        bias = torch.from_numpy(np.where(mask, 0.0, _MASKED).astype(np.float32))[:, None, None]
        with torch.no_grad():
            state = self._norm(torch.from_numpy(self._embeddings.of(ids)))
            for layer in self.layers[:_FIRST]:
                state = layer(state, bias)
        state = state + torch.from_numpy(parts) @ self.part
        tokens = state
        for nth, layer in enumerate(self.layers[_FIRST:], start=_FIRST + 1):
            state = layer(state, bias)
            tokens = state if nth == LAYER else tokens
        return [self._judged(pair, tokens[nth], state[nth]) for nth, pair in enumerate(pairs)]

    def _judged(self, pair: Pair, tokens: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
        """As `detectors.semantic.reader.judged`, with gradients."""
        question, response, evidence = (slice(*part) for part in (pair.question, pair.response, pair.evidence))
        answer = self.heads["answer"](last[evidence])[:, 0]
        unit = functional.normalize(tokens, dim=-1, eps=1e-6)
        rows = torch.zeros(pair.response[1] - pair.response[0], FURTHER)
        alike = unit[response] @ unit[evidence].T
        columns = [alike.amax(dim=1)] if alike.numel() else []
        if columns and question.stop > question.start:
            near = (unit[response] @ unit[question].T).amax(dim=1)
            asked = functional.softmax(SHARP * alike, dim=-1) @ functional.softmax(answer, dim=-1)
            new = (1.0 - near).clamp(0.01, 1.0).square()
            whole = torch.log((new * asked).sum() / new.sum() + LEAST)
            columns += [near, torch.log(asked + LEAST), whole.expand(len(near)), torch.ones(len(near))]
        if columns:
            features = torch.stack(columns, dim=1)
            rows = torch.cat([features, rows[:, features.shape[1] :]], dim=1)
        return self.heads["unsupported"](torch.cat([last[response], rows], dim=1))[:, 0], answer

    def learned(self) -> dict[str, NDArray[np.float32]]:
        """What was learned, as `detectors.semantic.reader` and `encoders.e5_graph` take it."""
        result: dict[str, Tensor] = {"part": self.part}
        for nth, layer in enumerate(self.layers):
            result |= {f"l{nth}.{name.replace('_', '.')}": values for name, values in layer.named_parameters()}
        for name, head in self.heads.items():
            for nth, part in enumerate(module for module in head.children() if isinstance(module, nn.Linear)):
                result |= {f"{name}.{nth}.w": part.weight, f"{name}.{nth}.b": part.bias}
        return {name: values.detach().float().numpy().copy() for name, values in result.items()}


class _Norm(nn.Module):
    """Layer normalisation as it is in the file."""

    scale: Tensor
    shift: Tensor

    def __init__(self, file: E5File, name: str) -> None:
        super().__init__()
        self._epsilon = file.sizes.epsilon
        self.register_buffer("scale", torch.from_numpy(file.numbers(f"{name}.w").copy()))
        self.register_buffer("shift", torch.from_numpy(file.numbers(f"{name}.b").copy()))

    def forward(self, state: Tensor) -> Tensor:
        return functional.layer_norm(state.float(), (state.shape[-1],), self.scale, self.shift, self._epsilon)


class _Layer(nn.Module):
    """One layer; its own numbers are fixed, its additions are parameters."""

    def __init__(self, file: E5File, nth: int, rank: int, number: torch.dtype) -> None:
        super().__init__()
        sizes = file.sizes
        self._heads, self._number, self._rank = sizes.heads, number, rank
        self._after_attention, self._after_all = _Norm(file, f"l{nth}.aln"), _Norm(file, f"l{nth}.oln")
        for name in _MATRICES:
            columns = sizes.inner if name == "fo" else sizes.width
            matrix = torch.from_numpy(file.dense(f"l{nth}.{name}.w", columns))
            self.register_buffer(f"{name}_w", matrix.to(number))
            self.register_buffer(f"{name}_b", torch.from_numpy(file.numbers(f"l{nth}.{name}.b").copy()).to(number))
            if rank:
                down = torch.randn(rank, columns) / columns**0.5
                self.register_parameter(f"{name}_down", nn.Parameter(down))
                self.register_parameter(f"{name}_up", nn.Parameter(torch.zeros(len(matrix), rank)))

    def forward(self, state: Tensor, bias: Tensor) -> Tensor:
        rows, count, width = state.shape
        given = state.to(self._number)
        query, key, value = (
            self._dense(given, name).view(rows, count, self._heads, -1).transpose(1, 2) for name in "qkv"
        )
        scores = query * (width // self._heads) ** -0.5 @ key.transpose(-1, -2) + bias.to(self._number)
        met = (torch.softmax(scores, dim=-1) @ value).transpose(1, 2).reshape(rows, count, width)
        attended = functional.dropout(self._dense(met, "ao").float(), _DROPOUT, self.training and self._rank > 0)
        between = self._after_attention(state + attended)
        inner = functional.gelu(self._dense(between.to(self._number), "fi"))
        output: Tensor = self._after_all(between + self._dense(inner, "fo").float())
        return output

    def _dense(self, state: Tensor, name: str) -> Tensor:
        output = functional.linear(state, getattr(self, f"{name}_w"), getattr(self, f"{name}_b"))
        if not self._rank:
            return output
        low = functional.linear(state, getattr(self, f"{name}_down").to(self._number))
        return output + functional.linear(low, getattr(self, f"{name}_up").to(self._number))


def _head(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, _INNER), nn.ReLU(), nn.Dropout(_DROPOUT), nn.Linear(_INNER, 1))


# Fitting the reader: batches of sequences of like length, two losses, a rate that falls to nothing.


_RATE = 1e-3
_DECAY = 0.01
_WARMING = 100  # steps until the rate is whole
_TOKENS = 1800  # of a batch
_JITTER = 12  # tokens by which lengths are blurred, so that batches differ from pass to pass
_ANSWERS = 0.3  # what the loss of answers counts for
_SAID = 100  # steps between two lines of progress


def fit(
    network: ReaderNetwork,
    rows_of_pass: Callable[[int], Sequence[Row]],
    *,
    passes: int,
    seed: int,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Train in place.

    Args:
        network: the network.
        rows_of_pass: the rows of each pass, by its number: every pass may draw its own.
        passes: how many.
        seed: of the order and of what is dropped.
        say: told the losses.
    """
    rng = Random(seed)  # noqa: S311  a seeded order, not a secret
    total = step = 0
    sums = [0.0, 0.0]
    epoch = 0

    def batches_of(nth: int) -> list[list[Row]]:
        nonlocal epoch, total, sums
        rows = rows_of_pass(nth)
        order = _batches(rows, rng)
        epoch, total, sums = nth, total or passes * len(order), [0.0, 0.0]
        return [[rows[index] for index in batch] for batch in order]

    def loss_of(batch: list[Row]) -> Tensor | None:
        nonlocal step, sums
        unsupported, answer = _losses(network, batch)
        if not (unsupported.requires_grad or answer.requires_grad):
            return None  # questions alone, whose answers are not in view: nothing to learn
        step += 1
        sums = [sums[0] + unsupported.item(), sums[1] + answer.item()]
        if not step % _SAID:
            say(
                f"pass {epoch + 1} of {passes}, step {step} of about {total}:"
                f" unsupported {sums[0] / _SAID:.3f}, answers {sums[1] / _SAID:.3f}"
            )
            sums = [0.0, 0.0]
        return unsupported + _ANSWERS * answer

    def rate(at: int) -> float:
        return _RATE * min(1.0, at / _WARMING) * max(0.02, 1.0 - at / total) if total else _RATE

    train_network(network, batches_of, loss_of, epochs=passes, seed=seed, rate=rate, decay=_DECAY)


def _batches(rows: Sequence[Row], rng: Random) -> list[list[int]]:
    order = list(batches([len(row.pair.ids) + rng.randrange(_JITTER) for row in rows], _TOKENS))
    rng.shuffle(order)
    return order


def _losses(network: ReaderNetwork, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
    """Of unsupported tokens, by response with the root of its length as weight; and of where the answers stand."""
    of_tokens, weights, of_answers = [], [], []
    for row, (unsupported, answer) in zip(rows, network([row.pair for row in rows]), strict=True):
        if len(row.target):
            target = torch.from_numpy(row.target)
            of_tokens.append(functional.binary_cross_entropy_with_logits(unsupported.float(), target, reduction="sum"))
            weights.append(len(row.target) ** 0.5)
        if row.answer is not None:
            right = torch.logsumexp(answer[torch.from_numpy(row.answer)], 0)
            of_answers.append(torch.logsumexp(answer, 0) - right)
    nothing = torch.zeros(())
    loss = nothing
    if of_tokens:
        lengths = torch.tensor(weights)
        loss = (torch.stack(of_tokens) / lengths).sum() / lengths.sum()
    return loss, torch.stack(of_answers).mean() if of_answers else nothing
