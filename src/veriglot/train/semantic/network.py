"""The head, in PyTorch: words of response and evidence compared by meaning, then the grounding detector's network.

Every word of the response looks at every word of the evidence through a few learned projections of the encoder's
vectors. Two things come of that. Soft windows: how well any word of a window matches, so that the same questions can be
asked as the grounding detector asks of stems (does the window that holds what stands around this word hold the
word?). And attention: which evidence words answer to this one where its surroundings are, and how far they differ.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from veriglot.detectors.semantic.selection import STRIDE
from veriglot.train.grounding.network import OUTPUTS, Blocks

__all__ = ["HEADS", "SemanticNetwork", "Sizes"]

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
        told, place = self._compared(words, evidence, matched, filled, pool, question, asked, present, weight)
        hidden = self.blocks(self.enter(torch.cat([self.dropout(scaled), told], dim=-1)), present, pool)
        return self.leave(self.norm(hidden)), place

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
        theirs = self._looks(evidence)
        empty = 2 * (1 - filled)[:, None, None, :]
        alike = self._looks(words) @ theirs.transpose(2, 3) - empty  # (b, heads, n, l)
        by_form = _highest(matched).unsqueeze(1)
        held = torch.cat([self._windows(alike), by_form], dim=1) * present.unsqueeze(1)  # (b, channels, n, windows)
        to_question = self._windows(self._looks(question) @ theirs.transpose(2, 3) - empty) * asked[:, None, :, None]
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
        place = shares[:, -1].argmax(-1)
        return torch.cat([torch.cat(told, dim=1).transpose(1, 2), *handed], dim=-1), place

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
