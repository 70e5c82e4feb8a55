"""The network that reads: multilingual-e5-small with its upper layers trained, and heads for tokens and responses.

It computes what `encoders.e5` builds for ONNX Runtime; there is a test of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from veriglot.encoders.e5 import OUTLIER_MATRICES, PARTS, E5File, Pair, pad_pairs
from veriglot.training.grounding.examples import TYPES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from veriglot.arrays import Float32s, Int64s

__all__ = ["Lesson", "ReaderNetwork", "loss_of"]

FIRST = 4  # layer that is trained, counted from 0, and all above it; those below stay as they are
_INNER = 128  # of the heads
_MATRICES = ("q", "k", "v", "ao", "fi", "fo")
_LOWEST = -1e4
_OUTLIERS = 4  # of a matrix


@dataclass(frozen=True)
class Lesson:
    """One sequence to learn from.

    Attributes:
        pair: its tokens.
        target: how unsupported each token of the response is, 0 to 1, shape (t,).
        weight: what each counts for, shape (t,); all 0 where only the label of the response is known.
        types: place of each token's type in `TYPES`, or -1, shape (t,).
        unsupported: whether anything in the response is unsupported; None where that is not known.
        twin: whether the lesson before it in a batch is the right answer of which this one is the wrong twin.
    """

    pair: Pair
    target: Float32s
    weight: Float32s
    types: Int64s
    unsupported: bool | None
    twin: bool = False


class Read(NamedTuple):
    """What the network makes of a batch.

    Attributes:
        tokens: logits of every token, unsupported and then each type, shape (b, t, 7).
        responses: logits of every response, shape (b,).
        inside: which tokens are of the response, shape (b, t).
    """

    tokens: Tensor
    responses: Tensor
    inside: Tensor


class ReaderNetwork(nn.Module):
    """The network.

    Args:
        file: the encoder's.
        device: where it computes.
    """

    def __init__(self, file: E5File, device: torch.device | None = None) -> None:
        super().__init__()
        width = file.sizes.width
        self._file = file
        self._norm = _Norm(file, "emb.ln")
        self.layers = nn.ModuleList(_Layer(file, number) for number in range(file.sizes.layers))
        self.part = nn.Parameter(torch.zeros(len(PARTS), width))
        self.tokens = _head(width, 1 + len(TYPES))
        self.response = _head(3 * width, 1)
        for module in (self._norm, *self.layers[:FIRST]):
            module.requires_grad_(False)
        self.to(device or torch.device("cpu"))

    def forward(self, pairs: Sequence[Pair]) -> Read:
        """Judge sequences together."""
        device = self.part.device
        ids, mask, parts = pad_pairs(pairs)
        embedded, part, seen = (
            torch.from_numpy(values).to(device) for values in (self._file.embedded(ids), parts, mask.astype(bool))
        )
        attended = seen[:, None, None, :]
        with torch.no_grad():
            state = self._norm(embedded)
            for layer in self.layers[:FIRST]:
                state = layer(state, attended)
        state = state + part @ self.part
        for layer in self.layers[FIRST:]:
            state = layer(state, attended)
        inside = torch.zeros_like(seen)
        for row, pair in enumerate(pairs):
            inside[row, slice(*pair.response)] = True
        chosen = inside[..., None]
        mean = (state * chosen).sum(1) / chosen.sum(1).clamp(min=1)
        highest = state.masked_fill(~chosen, _LOWEST).amax(1)
        responses = self.response(torch.cat([state[:, 0], mean, highest], dim=-1))[:, 0]
        return Read(self.tokens(state), responses, inside)

    def learned(self) -> dict[str, Float32s]:
        """What was learned, by the names that `encoders.e5` and `detectors.reader` know."""
        return {name: values.detach().float().cpu().numpy().copy() for name, values in self._named().items()}

    def outliers(self, pairs: Sequence[Pair]) -> Int64s:
        """The inputs of `OUTLIER_MATRICES` whose values are highest on some sequences, shape (layers, 2, 4)."""
        highest: dict[nn.Module, Tensor] = {}

        def note(matrix: nn.Module, inputs: tuple[Tensor]) -> None:
            values = inputs[0].detach().float().abs().amax((0, 1))
            highest[matrix] = torch.maximum(highest.get(matrix, values), values)

        matrices = [getattr(layer, name) for layer in self.layers for name in OUTLIER_MATRICES]
        hooks = [matrix.register_forward_pre_hook(note) for matrix in matrices]
        with torch.no_grad():
            for pair in pairs:
                self([pair])
        for hook in hooks:
            hook.remove()
        places = torch.stack([highest[matrix].topk(_OUTLIERS).indices for matrix in matrices])
        return np.asarray(places.cpu().numpy().reshape(len(self.layers), len(OUTLIER_MATRICES), _OUTLIERS))

    def start_from(self, learned: Mapping[str, Float32s]) -> None:
        """Take over what another training learned; it may have trained fewer layers."""
        with torch.no_grad():
            for name, values in self._named().items():
                if name in learned:
                    values.copy_(torch.from_numpy(learned[name]))

    def _named(self) -> dict[str, Tensor]:
        named: dict[str, Tensor] = {"part": self.part}
        for number, layer in enumerate(self.layers[FIRST:], start=FIRST):
            for name, values in layer.named_parameters():
                named[f"l{number}." + name.replace("weight", "w").replace("bias", "b")] = values
        for head in ("tokens", "response"):
            linear = [module for module in getattr(self, head) if isinstance(module, nn.Linear)]
            for number, module in enumerate(linear):
                named |= {f"{head}.{number}.w": module.weight, f"{head}.{number}.b": module.bias}
        return named


class _Norm(nn.Module):
    """Layer normalisation."""

    def __init__(self, file: E5File, name: str) -> None:
        super().__init__()
        self._epsilon = file.sizes.epsilon
        self.weight = nn.Parameter(torch.from_numpy(file.numbers(f"{name}.w").copy()))
        self.bias = nn.Parameter(torch.from_numpy(file.numbers(f"{name}.b").copy()))

    def forward(self, state: Tensor) -> Tensor:
        return functional.layer_norm(state.float(), (state.shape[-1],), self.weight, self.bias, self._epsilon)


@cache
def _has_bf16(device: str) -> bool:
    """Whether products in bf16 are fast; a CPU without instructions for it takes nine times as long as in 32 bits."""
    return device != "cpu" or bool(torch.cpu.get_capabilities().get("avx512_bf16"))


class _Dense(nn.Linear):
    """A product, in bf16 where the processor has it."""

    def forward(self, values: Tensor) -> Tensor:
        low = torch.bfloat16 if _has_bf16(values.device.type) else torch.float32
        return functional.linear(values.to(low), self.weight.to(low), self.bias.to(low))


class _Layer(nn.Module):
    """One transformer layer."""

    ao: _Dense
    fi: _Dense
    fo: _Dense

    def __init__(self, file: E5File, number: int) -> None:
        super().__init__()
        sizes = file.sizes
        self._heads = sizes.heads
        for name in _MATRICES:
            matrix = file.dense(f"l{number}.{name}.w", sizes.inner if name == "fo" else sizes.width)
            linear = _Dense(matrix.shape[1], matrix.shape[0])
            linear.weight.data = torch.from_numpy(matrix.copy())
            linear.bias.data = torch.from_numpy(file.numbers(f"l{number}.{name}.b").copy())
            self.add_module(name, linear)
        self.aln, self.oln = _Norm(file, f"l{number}.aln"), _Norm(file, f"l{number}.oln")

    def forward(self, state: Tensor, attended: Tensor) -> Tensor:
        rows, count, width = state.shape
        query, key, value = (
            getattr(self, name)(state).view(rows, count, self._heads, -1).transpose(1, 2) for name in "qkv"
        )
        met = functional.scaled_dot_product_attention(  # in bf16 it is slower on a CPU
            query.float(), key.float(), value.float(), attn_mask=attended
        )
        between = self.aln(state + self.ao(met.transpose(1, 2).reshape(rows, count, width)))
        output: Tensor = self.oln(between + self.fo(functional.gelu(self.fi(between))))
        return output


def _head(width: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, _INNER), nn.ReLU(), nn.Linear(_INNER, outputs))


_TYPES, _RESPONSES, _LABELLED, _TWINS = 0.15, 0.5, 0.2, 0.5  # what the losses beside that of the tokens count for
_LIKELIEST = 3  # tokens whose mean says of a response that anything in it is unsupported


def loss_of(read: Read, lessons: Sequence[Lesson]) -> tuple[Tensor, dict[str, float]]:
    """The loss of a batch, and its parts by name.

    Tokens: binary cross entropy, where a response counts by the root of its length. Where only its label is known, the
    mean of the likeliest tokens takes the label. The wrong one of twins must be more suspect than the right one.
    """
    device = read.responses.device
    shape = read.inside.shape
    target, weight, types = np.zeros(shape, np.float32), np.zeros(shape, np.float32), np.full(shape, -1)
    for row, lesson in enumerate(lessons):
        part = slice(*lesson.pair.response)
        target[row, part], weight[row, part], types[row, part] = lesson.target, lesson.weight, lesson.types
    targets, weights, kinds = (torch.from_numpy(values).to(device) for values in (target, weight, types))
    unsupported = read.tokens[..., 0].float()
    each = functional.binary_cross_entropy_with_logits(unsupported, targets, reduction="none") * weights
    count = weights.sum(1)
    losses = {"tokens": (each.sum(1) / count.sqrt().clamp(min=1)).sum() / count.sqrt().sum().clamp(min=1)}
    typed = kinds >= 0
    if typed.any():
        losses["types"] = _TYPES * functional.cross_entropy(read.tokens[..., 1:][typed].float(), kinds[typed])
    known = torch.tensor([lesson.unsupported is not None for lesson in lessons], device=device)
    labels = torch.tensor([float(bool(lesson.unsupported)) for lesson in lessons], device=device)
    likeliest = unsupported.masked_fill(~read.inside, _LOWEST).topk(min(_LIKELIEST, shape[1]), dim=1).values
    likeliest = likeliest.masked_fill(likeliest <= _LOWEST, 0.0).mean(1)
    binary = functional.binary_cross_entropy_with_logits
    if known.any():
        losses["responses"] = _RESPONSES * binary(read.responses[known].float(), labels[known])
    alone = known & (count == 0)
    if alone.any():
        losses["labels"] = _LABELLED * binary(likeliest[alone], labels[alone])
    wrong = [row for row, lesson in enumerate(lessons) if lesson.twin]
    if wrong:
        right = [row - 1 for row in wrong]
        values = read.responses.float() + likeliest
        losses["twins"] = _TWINS * functional.softplus(values[right] - values[wrong]).mean()
    return torch.stack(list(losses.values())).sum(), {name: value.item() for name, value in losses.items()}
