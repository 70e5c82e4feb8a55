"""Which inputs a network is given together: those of like length, so that little of a batch is padding."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["TOKENS_A_BATCH", "batches"]

TOKENS_A_BATCH = 8192  # padding included


def batches(lengths: Sequence[int], most: int = TOKENS_A_BATCH) -> Iterator[list[int]]:
    """Places of inputs of like length, the shortest first, together at most `most` tokens with their padding.

    An input that is longer than that stands alone.

    Args:
        lengths: tokens of each input.
        most: tokens of a batch.
    """
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[place] > most:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
