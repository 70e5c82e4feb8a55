"""Batches of responses with their evidence, and predictions one response at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from veriglot.train.grounding.fitting import fit_on
from veriglot.train.grounding.table import TYPES
from veriglot.train.semantic.splitting import relation_of
from veriglot.train.semantic.translations import TOKENS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from veriglot.train.grounding.fitting import Plan
    from veriglot.train.semantic.network import SemanticNetwork
    from veriglot.train.semantic.shelf import Shelves
    from veriglot.train.semantic.table import Arrays, Row

__all__ = ["fit", "predict", "statistics"]

_BATCH_PAIRS = 700_000  # of a word and a slot: they take the memory
_BATCH_WORDS = 3000
_SORTED = 1024  # rows among which batches of like size are made
_SAMPLED = 2500  # rows that statistics are taken of
_MADE_SCALE = 0.7
_SILVER_SCALE = 1.8
# Of what people labelled: answers are what users bring, checked claims are close to what models really do, summaries
# are many and alike, and of translations few had every word looked at.
_NATURAL_SCALE = {"qa": 2.0, "open": 2.0, "summarization": 0.7, TOKENS: 4.0}


def statistics(rows: Sequence[Row], shelves: Shelves) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Mean and standard deviation of each feature, and of each further column, over a sample of the rows."""
    some = [shelves.record(row.address) for row in rows[:: max(1, len(rows) // _SAMPLED)]]
    found = []
    for parts in ([arrays.features[:200] for arrays in some], [arrays.columns[:200] for arrays in some]):
        values = np.concatenate(parts).astype(np.float32)
        found.append((torch.from_numpy(values.mean(axis=0)), torch.from_numpy(values.std(axis=0) + 0.05)))
    return found[0], found[1]


def fit(
    network: SemanticNetwork,
    rows: Sequence[Row],
    shelves: Shelves,
    plan: Plan,
    *,
    shown: Callable[[Arrays], Arrays] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Train in place, seeded, on one thread.

    Args:
        network: the network.
        rows: the training rows, none empty.
        shelves: where the rest of them lies.
        plan: epochs, learning rate, seed, weight of the type loss.
        shown: how rows whose evidence is in the response's language are shown (`blinding`); None as they are.
        say: told the mean loss after each epoch.
    """

    def judged(batch: Sequence[Row]) -> tuple[Tensor, list[Tensor]]:
        given, labels = _batch(batch, shelves, shown)
        return network(*given)[0], labels

    fit_on(network, plan, lambda rng: _batches(rows, rng), judged, say=say)


def predict(network: SemanticNetwork, rows: Sequence[Row], shelves: Shelves) -> list[NDArray[np.float32]]:
    """Logits of each row, one response at a time as the detector does it; each of shape (n, 7)."""
    network.eval()
    found = []
    with torch.no_grad():
        for row in rows:
            given, _ = _batch([row], shelves, None)
            found.append(network(*given)[0][0].numpy())
    return found


def _scale(row: Row) -> float:
    """What a row counts for beside the weights of its words."""
    if row.example.kind == "natural":
        return _NATURAL_SCALE.get(row.example.source, 1.0)
    return _SILVER_SCALE if row.example.kind == "silver" else _MADE_SCALE


def _batches(rows: Sequence[Row], rng: np.random.Generator) -> list[list[Row]]:
    order = rng.permutation(len(rows))
    found: list[list[Row]] = []
    for at in range(0, len(order), _SORTED):
        near = sorted((rows[i] for i in order[at : at + _SORTED]), key=lambda row: len(row) * row.slots)
        batch: list[Row] = []
        for row in near:
            longest = max([len(row), *map(len, batch)])
            most = max([row.slots, *(other.slots for other in batch)])
            words = (len(batch) + 1) * longest
            if batch and (words * most > _BATCH_PAIRS or words > _BATCH_WORDS):
                found.append(batch)
                batch = []
            batch.append(row)
        if batch:
            found.append(batch)
    rng.shuffle(found)
    return found


def _batch(
    rows: Sequence[Row], shelves: Shelves, shown: Callable[[Arrays], Arrays] | None
) -> tuple[list[Tensor], list[Tensor]]:
    """The network's inputs, and target, types and weight, filled up with zeros."""
    arrays = [shelves.record(row.address) for row in rows]
    if shown is not None:
        arrays = [shown(some) if relation_of(row) == "same" else some for row, some in zip(rows, arrays, strict=True)]
    filled = _Filled(rows, arrays, shelves.width)
    for nth, row in enumerate(rows):
        filled.put(nth, row, shelves)
    return filled.tensors()


class _Filled:
    """The arrays of a batch."""

    def __init__(self, rows: Sequence[Row], arrays: Sequence[Arrays], width: int) -> None:
        self._arrays = arrays
        count, longest, slots = len(rows), max(map(len, rows)), max(row.slots for row in rows)
        sentences = max(int(some.sentence[-1]) + 1 for some in arrays)
        asked = max(1, *(len(some.question) for some in arrays))

        def empty(*shape: int) -> NDArray[np.float32]:
            return np.zeros((count, *shape), np.float32)

        self.features = empty(longest, arrays[0].features.shape[1])
        self.columns = empty(longest, arrays[0].columns.shape[1])
        self.words, self.evidence, self.question = empty(longest, width), empty(slots, width), empty(asked, width)
        self.matched, self.filled = empty(longest, slots), empty(slots)
        self.pool, self.asked, self.present = empty(sentences, longest), empty(asked), empty(longest, 1)
        self.target, self.types, self.weight = empty(longest), empty(longest, len(TYPES)), empty(longest)

    def put(self, nth: int, row: Row, shelves: Shelves) -> None:
        """Fill in one row."""
        some, n = self._arrays[nth], len(row)
        self.features[nth, :n], self.columns[nth, :n] = some.features, some.columns
        self.words[nth, :n] = shelves.take(some.words)
        self.evidence[nth, : row.slots] = shelves.take(some.slots)
        self.filled[nth, : row.slots] = some.slots >= 0
        np.maximum.at(self.matched[nth], (some.ours, some.theirs), some.value.astype(np.float32))
        self.pool[nth, some.sentence, np.arange(n)] = 1 / np.bincount(some.sentence)[some.sentence]
        self.question[nth, : len(some.question)] = shelves.take(some.question)
        self.asked[nth, : len(some.question)] = 1
        self.present[nth, :n] = 1
        self.target[nth, :n], self.types[nth, :n] = row.target, some.types
        self.weight[nth, :n] = row.weight * _scale(row)

    def tensors(self) -> tuple[list[Tensor], list[Tensor]]:
        """Inputs in the network's order, and labels."""
        given = (
            self.features, self.columns, self.words, self.evidence, self.matched, self.filled, self.pool,
            self.question, self.asked, self.present,
        )  # fmt: skip
        labels = (self.target, self.types, self.weight)
        return [torch.from_numpy(array) for array in given], [torch.from_numpy(array) for array in labels]
