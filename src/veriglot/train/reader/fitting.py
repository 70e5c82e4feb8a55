"""Fitting the reader: batches of sequences of like length, two losses, a rate that falls to nothing."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from veriglot.weights.batches import batches

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from veriglot.train.reader.network import ReaderNetwork
    from veriglot.train.reader.rows import Row

__all__ = ["fit"]

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
    torch.manual_seed(seed)
    rng = Random(seed)  # noqa: S311  a seeded order, not a secret
    learned = [values for values in network.parameters() if values.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=_RATE, weight_decay=_DECAY)
    network.train()
    step, total = 0, 0
    for nth in range(passes):
        rows = rows_of_pass(nth)
        order = _batches(rows, rng)
        total = total or passes * len(order)
        seen = [0.0, 0.0]
        for batch in order:
            for group in optimizer.param_groups:
                group["lr"] = _RATE * min(1.0, step / _WARMING) * max(0.02, 1.0 - step / total)
            unsupported, answer = _losses(network, [rows[place] for place in batch])
            if not (unsupported.requires_grad or answer.requires_grad):
                continue  # questions alone, whose answers are not in view: nothing to learn
            optimizer.zero_grad()
            (unsupported + _ANSWERS * answer).backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(learned, 1.0)
            optimizer.step()
            step += 1
            seen = [seen[0] + unsupported.item(), seen[1] + answer.item()]
            if not step % _SAID:
                say(
                    f"pass {nth + 1} of {passes}, step {step} of about {total}:"
                    f" unsupported {seen[0] / _SAID:.3f}, answers {seen[1] / _SAID:.3f}"
                )
                seen = [0.0, 0.0]
    network.eval()


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
    found = nothing
    if of_tokens:
        lengths = torch.tensor(weights)
        found = (torch.stack(of_tokens) / lengths).sum() / lengths.sum()
    return found, torch.stack(of_answers).mean() if of_answers else nothing
