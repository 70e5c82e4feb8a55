"""Fitting the network: batches by length, one seeded loop, and predictions one response at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from torch import Tensor, nn

    from veriglot.train.grounding.table import Row

    Judged = tuple[Tensor, Sequence[Tensor]]

__all__ = ["Plan", "fit", "fit_on", "predict", "statistics"]

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
    return np.concatenate([values, row.place[:, None].astype(np.float32)], axis=1) if with_rows else values


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
    found: list[list[Row]] = []
    for at in range(0, len(order), _SORTED):
        near = sorted((rows[i] for i in order[at : at + _SORTED]), key=len)
        batch: list[Row] = []
        for row in near:
            batch.append(row)
            if len(batch) * len(row) >= _BATCH_WORDS:
                found.append(batch)
                batch = []
        if batch:
            found.append(batch)
    rng.shuffle(found)
    return found


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
    torch.manual_seed(plan.seed)
    rng = np.random.default_rng(plan.seed)
    steps = len(batches(np.random.default_rng(plan.seed))) * plan.epochs
    optimizer = torch.optim.AdamW(network.parameters(), plan.rate, weight_decay=_DECAY)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda k: min(1.0, (k + 1) / _WARM_UP) * max(_LAST_RATE, 0.5 * (1 + math.cos(math.pi * min(1.0, k / steps)))),
    )
    for epoch in range(plan.epochs):
        network.train()
        losses = []
        for batch in batches(rng):
            out, (target, types, weight) = judged(batch)
            loss = _loss(out, target, types, weight, plan.type_weight)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        say(f"epoch {epoch + 1} of {plan.epochs}: loss {np.mean(losses):.4f}")
    network.eval()


def predict(network: nn.Module, rows: Sequence[Row]) -> list[NDArray[np.float32]]:
    """Logits of each row, one response at a time as the detector does it; each of shape (n, 7)."""
    found = []
    with torch.no_grad():
        for row in rows:
            values, present, pool, *_ = _batch([row], lambda _: 1.0, with_rows=False)
            found.append(network(values, present, pool)[0].numpy())
    return found
