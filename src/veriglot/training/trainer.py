"""The loop by which every network here is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import torch
from torch.nn.utils import clip_grad_norm_

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor, nn

__all__ = ["train_network"]

B = TypeVar("B")


def train_network(
    network: nn.Module,
    batches: Callable[[int], Sequence[B]],
    loss_of: Callable[[B], Tensor | None],
    *,
    epochs: int,
    seed: int,
    rate: Callable[[int], float],
    decay: float,
    epoch_done: Callable[[int, list[float]], None] = lambda epoch, losses: None,  # noqa: ARG005
) -> None:
    """Train in place, seeded, by AdamW with gradients clipped to norm 1.

    Args:
        network: whose parameters are fitted.
        batches: the batches of an epoch, by its number from 0.
        loss_of: the loss of a batch, a scalar; None passes the batch over.
        epochs: how many.
        seed: of what is dropped.
        rate: learning rate of a step, by its number from 0.
        decay: weight decay.
        epoch_done: told the number of each finished epoch, and its losses.
    """
    torch.manual_seed(seed)
    parameters = [values for values in network.parameters() if values.requires_grad]
    optimizer = torch.optim.AdamW(parameters, rate(0), weight_decay=decay)
    step = 0
    for epoch in range(epochs):
        network.train()
        losses = []
        for batch in batches(epoch):
            loss = loss_of(batch)
            if loss is None:
                continue
            for group in optimizer.param_groups:
                group["lr"] = rate(step)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            step += 1
            losses.append(loss.item())
        epoch_done(epoch, losses)
    network.eval()
