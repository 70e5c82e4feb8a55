"""The head of the semantic detector, in PyTorch, and how it is fitted.

Every word of the response looks at every word of the evidence through a few learned projections of the encoder's
vectors. Two things come of that. Soft windows: how well any word of a window matches, so that the same questions can be
asked as the grounding detector asks of stems (does the window that holds what stands around this word hold the
word?). And attention: which evidence words answer to this one where its surroundings are, and how far they differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from veriglot.detectors.semantic.features import STRIDE
from veriglot.training.grounding.dataset import TYPES
from veriglot.training.grounding.network import OUTPUTS, Blocks, fit_on
from veriglot.training.semantic.examples import TOKENS, relation_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from veriglot.training.grounding.network import Plan
    from veriglot.training.semantic.dataset import Arrays, Row, Shelves

__all__ = ["SemanticNetwork", "fit", "predict", "statistics"]


HEADS = 2
_CHANNELS = HEADS + 1  # the last is matching by form
_REACHES = (4, 10)  # words on either side, as in the grounding detector's features
_SHARP = 12.0  # how much of a choice is made among windows
_CLIP = 6.0
_ABSENT = 30.0  # what keeps attention off empty slots


class Sizes:
    """Widths of a projection, of what attention hands on, and of the layers above; and the dropout of these."""

    look = 64
    value = 64
    attentions = 2
    width = 128
    dropout = 0.15


class SemanticNetwork(nn.Module):
    """Features and vectors to logits.

    Args:
        features: mean and standard deviation of each of the grounding detector's features, shapes (f,).
        columns: the same of the further features, shapes (c,).
        rarity: which of the features is the rarity of a word.
        vectors: length of a word vector.
    """

    def __init__(
        self, features: tuple[Tensor, Tensor], columns: tuple[Tensor, Tensor], rarity: int, vectors: int
    ) -> None:
        super().__init__()
        self._means: Tensor
        self._deviations: Tensor
        self.register_buffer("_means", torch.cat([features[0], columns[0]]))
        self.register_buffer("_deviations", torch.cat([features[1], columns[1]]))
        self._rarity = rarity
        self.look = nn.Linear(vectors, HEADS * Sizes.look, bias=False)
        _start_plain(self.look.weight)
        self.value = nn.Linear(vectors, Sizes.value, bias=False)
        self.slope = nn.Parameter(torch.full((HEADS, 1, 1), 8.0))
        self.shift = nn.Parameter(torch.full((HEADS, 1, 1), 0.5))
        self.context = nn.Parameter(torch.ones(3, _CHANNELS, 1, 1))
        self.by_meaning = nn.Parameter(torch.full((Sizes.attentions, HEADS), 6.0))
        self.by_form = nn.Parameter(torch.full((Sizes.attentions, 1, 1), 3.0))
        self.by_context = nn.Parameter(torch.linspace(1.0, 6.0, Sizes.attentions).view(-1, 1, 1))
        told = _CHANNELS * 8 + HEADS * 3 + Sizes.attentions * 4
        inputs = len(self._means) + told + Sizes.value * (1 + 2 * Sizes.attentions)
        self.enter = nn.Linear(inputs, Sizes.width)
        self.blocks = Blocks(Sizes.width, Sizes.dropout)
        self.norm = nn.LayerNorm(Sizes.width)
        self.leave = nn.Linear(Sizes.width, OUTPUTS)
        self.dropout = nn.Dropout(Sizes.dropout)
        self.vector_dropout = nn.Dropout(0.1)

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
        present: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Logits.

        Args:
            features: of the grounding detector, shape (b, n, f).
            columns: further ones, shape (b, n, c).
            words: vectors of the response's words, shape (b, n, d).
            evidence: vectors of the slots, shape (b, l, d).
            matched: how well word and slot match by form, shape (b, n, l).
            filled: 1 for slots that hold a word, shape (b, l).
            pool: row s holds 1/k for the k words of sentence s and 0 elsewhere, shape (b, s, n).
            question: vectors of the question's words, shape (b, q, d).
            asked: 1 for words of the question, 0 for padding, shape (b, q).
            present: 1 for words of the response, 0 for padding, shape (b, n, 1).

        Returns:
            Logits, shape (b, n, 7): unsupported, then the six FAVA types; and the slot that each word looks at, (b, n).
        """
        given = torch.cat([features, columns], dim=-1)
        scaled = ((given - self._means) / self._deviations).clamp(-_CLIP, _CLIP)
        weight = (features[..., self._rarity] + 0.05) * present[..., 0]
        told, position = self._compared(words, evidence, matched, filled, pool, question, asked, present, weight)
        hidden = self.blocks(self.enter(torch.cat([self.dropout(scaled), told], dim=-1)), present, pool)
        return self.leave(self.norm(hidden)), position

    def _compared(
        self,
        words: Tensor,
        evidence: Tensor,
        matched: Tensor,
        filled: Tensor,
        pool: Tensor,
        question: Tensor,
        asked: Tensor,
        present: Tensor,
        weight: Tensor,
    ) -> tuple[Tensor, Tensor]:
        words = self.vector_dropout(words)
        evidence_looks = self._looks(evidence)
        empty = 2 * (1 - filled)[:, None, None, :]
        alike = self._looks(words) @ evidence_looks.transpose(2, 3) - empty  # (b, heads, n, l)
        by_form = _highest(matched).unsqueeze(1)
        held = torch.cat([self._windows(alike), by_form], dim=1) * present.unsqueeze(1)  # (b, channels, n, windows)
        to_question = (
            self._windows(self._looks(question) @ evidence_looks.transpose(2, 3) - empty) * asked[:, None, :, None]
        )
        of_question = to_question.sum(2, keepdim=True) / asked.sum(1)[:, None, None, None].clamp(min=1)
        of_question = torch.cat([of_question, of_question.mean(1, keepdim=True)], dim=1)
        near, far = (_around(held, weight, reach) for reach in _REACHES)
        sentence = _in_sentence(held, weight, pool)
        context = (self.context[0] * far + self.context[1] * sentence + self.context[2] * of_question).mean(1)
        best = torch.softmax(_SHARP * sentence.mean(1, keepdim=True), dim=-1)
        best_in_context = torch.softmax(_SHARP * context, dim=-1).unsqueeze(1)
        told = [
            *(part.amax(-1) for part in (held, near, near * held, far * held, sentence, of_question * held)),
            (best * held).sum(-1),
            (best_in_context * held).sum(-1),
        ]
        top = alike.topk(2, dim=-1).values
        told += [top[..., 0], top[..., 0] - top[..., 1], alike.clamp(min=0).mean(-1)]
        own = self.value(words)
        beside = _of_words(context)
        mixed = torch.einsum("kh,bhnl->bknl", self.by_meaning, alike)
        logits = mixed + self.by_form * matched.unsqueeze(1) + self.by_context * beside.unsqueeze(1)
        logits = logits - _ABSENT * (1 - filled)[:, None, None]
        shares = torch.softmax(logits, dim=-1)
        met = shares @ self.value(evidence).unsqueeze(1)
        told += [(shares * mixed).sum(-1) / 10, (shares * matched.unsqueeze(1)).sum(-1)]
        told += [shares.amax(-1), torch.logsumexp(logits, dim=-1) / 10]
        handed = [own, *(met * own.unsqueeze(1)).unbind(1), *(met - own.unsqueeze(1)).abs().unbind(1)]
        position = shares[:, -1].argmax(-1)
        return torch.cat([torch.cat(told, dim=1).transpose(1, 2), *handed], dim=-1), position

    def _looks(self, vectors: Tensor) -> Tensor:
        """Unit vectors of each head, shape (b, heads, n, look)."""
        split = self.look(vectors).unflatten(-1, (HEADS, Sizes.look)).transpose(1, 2)
        out: Tensor = split / (split.pow(2).sum(-1, keepdim=True) + 1e-4).sqrt()
        return out

    def _windows(self, alike: Tensor) -> Tensor:
        """How well any word of each window matches, between 0 and 1."""
        return torch.sigmoid(self.slope * (_highest(alike) - self.shift))


def _highest(values: Tensor) -> Tensor:
    """The highest of each window, two strides long, over slots on the last axis (`max_pool1d` cannot be exported)."""
    strides: Tensor = values.unflatten(-1, (-1, STRIDE)).amax(-1)  # type: ignore[no-untyped-call]
    return torch.maximum(strides[..., :-1], strides[..., 1:])


def _start_plain(weight: Tensor) -> None:
    """Each head begins as the first directions of the vectors, where meaning lies, with a little noise to part them."""
    with torch.no_grad():
        weight.normal_(0.0, 0.02)
        for head in range(HEADS):
            rows = slice(head * Sizes.look, (head + 1) * Sizes.look)
            weight[rows, : Sizes.look] += torch.eye(Sizes.look, min(Sizes.look, weight.shape[1]))


def _around(held: Tensor, weight: Tensor, reach: int) -> Tensor:
    """The share of the words up to `reach` away, by weight and without the word itself, that each window holds."""
    size = 2 * reach + 1
    weighted = held * weight[:, None, :, None]
    rows = weighted.permute(0, 1, 3, 2)
    sums: Tensor = functional.avg_pool1d(rows.flatten(1, 2), size, 1, reach) * size
    sums = sums.unflatten(1, (_CHANNELS, -1)).permute(0, 1, 3, 2) - weighted  # type: ignore[no-untyped-call]
    total = functional.avg_pool1d(weight.unsqueeze(1), size, 1, reach)[:, 0] * size - weight
    return sums / total.clamp(min=1e-3)[:, None, :, None]


def _in_sentence(held: Tensor, weight: Tensor, pool: Tensor) -> Tensor:
    """The share of each word's sentence, by weight, that each window holds."""
    shares = pool * weight.unsqueeze(1)
    shares = (shares / shares.sum(-1, keepdim=True).clamp(min=1e-3)).unsqueeze(1)
    back = (pool > 0).to(held.dtype).transpose(1, 2).unsqueeze(1)
    return back @ (shares @ held)


def _of_words(context: Tensor) -> Tensor:
    """From windows to slots: a slot lies in two windows, but for the first and the last stride; the better counts."""
    padded = functional.pad(context, (1, 1), value=-1e4)
    return torch.maximum(padded[..., :-1], padded[..., 1:]).repeat_interleave(STRIDE, dim=-1)


# Batches of responses with their evidence, and predictions one response at a time.


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
    pairs = []
    for parts in ([arrays.features[:200] for arrays in some], [arrays.columns[:200] for arrays in some]):
        values = np.concatenate(parts).astype(np.float32)
        pairs.append((torch.from_numpy(values.mean(axis=0)), torch.from_numpy(values.std(axis=0) + 0.05)))
    return pairs[0], pairs[1]


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
    logits = []
    with torch.no_grad():
        for row in rows:
            given, _ = _batch([row], shelves, None)
            logits.append(network(*given)[0][0].numpy())
    return logits


def _scale(row: Row) -> float:
    """What a row counts for beside the weights of its words."""
    if row.example.kind == "natural":
        return _NATURAL_SCALE.get(row.example.source, 1.0)
    return _SILVER_SCALE if row.example.kind == "silver" else _MADE_SCALE


def _batches(rows: Sequence[Row], rng: np.random.Generator) -> list[list[Row]]:
    order = rng.permutation(len(rows))
    batches: list[list[Row]] = []
    for at in range(0, len(order), _SORTED):
        near = sorted((rows[i] for i in order[at : at + _SORTED]), key=lambda row: len(row) * row.slots)
        batch: list[Row] = []
        for row in near:
            longest = max([len(row), *map(len, batch)])
            most = max([row.slots, *(other.slots for other in batch)])
            words = (len(batch) + 1) * longest
            if batch and (words * most > _BATCH_PAIRS or words > _BATCH_WORDS):
                batches.append(batch)
                batch = []
            batch.append(row)
        if batch:
            batches.append(batch)
    rng.shuffle(batches)
    return batches


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
        np.maximum.at(self.matched[nth], (some.ours, some.slot), some.value.astype(np.float32))
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
