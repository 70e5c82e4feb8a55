"""The reader as a PyTorch module: the encoder as it is, low-rank additions to its upper layers, and two heads.

What it computes is what `encoders.e5_graph` and `detectors.semantic.reader` compute; there is a test of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from veriglot.detectors.semantic.reader import FURTHER, LEAST, SHARP
from veriglot.encoders.e5 import LAYER
from veriglot.encoders.e5_file import Embeddings
from veriglot.encoders.e5_reader import PARTS, padded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from veriglot.encoders.e5_file import E5File
    from veriglot.encoders.e5_reader import Pair

__all__ = ["ReaderNetwork"]

_FIRST = 4  # layer with additions: those below are as they were, and need no gradient
_RANK = 16
_INNER = 128  # of the heads
_DROPOUT = 0.1
_MATRICES = ("q", "k", "v", "ao", "fi", "fo")
_MASKED = -1e4


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
            found = torch.stack(columns, dim=1)
            rows = torch.cat([found, rows[:, found.shape[1] :]], dim=1)
        return self.heads["unsupported"](torch.cat([last[response], rows], dim=1))[:, 0], answer

    def learned(self) -> dict[str, NDArray[np.float32]]:
        """What was learned, as `detectors.semantic.reader` and `encoders.e5_graph` take it."""
        found: dict[str, Tensor] = {"part": self.part}
        for nth, layer in enumerate(self.layers):
            found |= {f"l{nth}.{name.replace('_', '.')}": values for name, values in layer.named_parameters()}
        for name, head in self.heads.items():
            for nth, part in enumerate(one for one in head.children() if isinstance(one, nn.Linear)):
                found |= {f"{name}.{nth}.w": part.weight, f"{name}.{nth}.b": part.bias}
        return {name: values.detach().float().numpy().copy() for name, values in found.items()}


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
        found: Tensor = self._after_all(between + self._dense(inner, "fo").float())
        return found

    def _dense(self, state: Tensor, name: str) -> Tensor:
        found = functional.linear(state, getattr(self, f"{name}_w"), getattr(self, f"{name}_b"))
        if not self._rank:
            return found
        low = functional.linear(state, getattr(self, f"{name}_down").to(self._number))
        return found + functional.linear(low, getattr(self, f"{name}_up").to(self._number))


def _head(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, _INNER), nn.ReLU(), nn.Dropout(_DROPOUT), nn.Linear(_INNER, 1))
