"""The network, in PyTorch: word features in, one unsupported logit and six type logits per word out.

Convolutions see a word's neighbours; two layers pool every sentence, look at the sentences beside it, and hand the
result back to its words, since most unsupported text comes in whole sentences. No attention: time stays linear.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["OUTPUTS", "Blocks", "Network", "WithLearnedVectors"]

OUTPUTS = 7
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
