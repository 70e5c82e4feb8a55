"""The network of the reader: multilingual-e5-small with fine-tuned upper layers, and heads for tokens and responses.

It computes the same as the ONNX graph of `encoders.e5`; a test compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from veriglot.detectors.reader.detector import INVERSE_TEMPERATURE, MIN_SHARE
from veriglot.encoders.e5 import LAYER, OUTLIER_MATRICES, PARTS, E5File, Pair, pad_pairs
from veriglot.training.grounding.examples import TYPES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from veriglot.arrays import Bools, Float32s, Int64s

__all__ = ["AnswerNetwork", "ReaderNetwork", "TrainingInput", "loss_of"]

FIRST = 4  # first fine-tuned layer, counted from 0; lower layers are frozen
_INNER = 128  # hidden units of the heads
_MATRICES = ("q", "k", "v", "ao", "fi", "fo")
_LOWEST = -1e4
_OUTLIERS = 4  # columns of a matrix


@dataclass(frozen=True)
class TrainingInput:
    """One training sequence.

    Attributes:
        pair: its tokens.
        target: how unsupported each token of the response is, 0 to 1, shape (t,).
        weight: weight of each token, shape (t,); all 0 if only the label of the response is known.
        types: index of each token's type in `TYPES`, or -1, shape (t,).
        unsupported: whether anything in the response is unsupported; None if unknown.
        twin: whether this is the wrong twin, and the input before it in the batch the right one.
        answer: which tokens of the evidence are the right answer to the question, shape (e,), if known.
    """

    pair: Pair
    target: Float32s
    weight: Float32s
    types: Int64s
    unsupported: bool | None
    twin: bool = False
    answer: Bools | None = None


class ReaderOutput(NamedTuple):
    """Outputs of the network for a batch.

    Attributes:
        tokens: logits of every token, unsupported and then each type, shape (b, t, 7).
        responses: logits of every response, shape (b,).
        inside: mask of the tokens of the response, shape (b, t).
    """

    tokens: Tensor
    responses: Tensor
    inside: Tensor


class ReaderNetwork(nn.Module):
    """The network.

    Args:
        file: the encoder's weights.
        device: for the computation.
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

    def states(self, pairs: Sequence[Pair]) -> tuple[Tensor, Tensor, Tensor]:
        """The encoder's token vectors, the last states, both of shape (b, t, width), and the mask of the tokens."""
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
        vectors = state
        for number, layer in enumerate(self.layers[FIRST:], start=FIRST + 1):
            state = layer(state, attended)
            vectors = state if number == LAYER else vectors
        return vectors, state, seen

    def forward(self, pairs: Sequence[Pair]) -> ReaderOutput:
        """The outputs for a batch of sequences."""
        _, state, seen = self.states(pairs)
        inside = torch.zeros_like(seen)
        for row, pair in enumerate(pairs):
            inside[row, slice(*pair.response)] = True
        chosen = inside[..., None]
        mean = (state * chosen).sum(1) / chosen.sum(1).clamp(min=1)
        highest = state.masked_fill(~chosen, _LOWEST).amax(1)
        responses = self.response(torch.cat([state[:, 0], mean, highest], dim=-1))[:, 0]
        return ReaderOutput(self.tokens(state), responses, inside)

    def loss(self, items: Sequence[TrainingInput]) -> tuple[Tensor, dict[str, float]]:
        """The loss of a batch, and its parts by name."""
        return loss_of(self([item.pair for item in items]), items)

    def learned(self) -> dict[str, Float32s]:
        """The trained weights, with the names in `encoders.e5` and `detectors.reader`."""
        return {name: values.detach().float().cpu().numpy().copy() for name, values in self._named().items()}

    def outliers(self, pairs: Sequence[Pair]) -> Int64s:
        """Inputs of `OUTLYING` matrices with the highest values on some sequences, shape (layers, 2, 4)."""
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
        """Load the weights of another training; it may have trained fewer layers."""
        with torch.no_grad():
            for name, values in self._named().items():
                if name in learned:
                    values.copy_(torch.from_numpy(learned[name]))

    def _named(self) -> dict[str, Tensor]:
        named: dict[str, Tensor] = {"part": self.part}
        for number, layer in enumerate(self.layers[FIRST:], start=FIRST):
            for name, values in layer.named_parameters():
                named[f"l{number}." + name.replace("weight", "w").replace("bias", "b")] = values
        return named | self._of_heads("tokens", "response")

    def _of_heads(self, *heads: str) -> dict[str, Tensor]:
        named: dict[str, Tensor] = {}
        for head in heads:
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
    """Whether products in bf16 are fast; a CPU without bf16 instructions takes nine times as long as in 32 bits."""
    return device != "cpu" or bool(torch.cpu.get_capabilities().get("avx512_bf16"))


class _Dense(nn.Linear):
    """A linear layer, in bf16 if the processor supports it."""

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


_TYPES, _RESPONSES, _LABELLED, _TWINS = 0.15, 0.5, 0.2, 0.5  # weights of the losses other than the token loss
_LIKELIEST = 3  # tokens whose mean is another logit of the response


def loss_of(output: ReaderOutput, items: Sequence[TrainingInput]) -> tuple[Tensor, dict[str, float]]:
    """The loss of a batch, and its parts by name.

    Tokens: binary cross-entropy; a response counts by the root of its length. If only the response label is known, the
    mean of the highest token logits has that label. The wrong twin must have a higher logit than the right one.
    """
    device = output.responses.device
    shape = output.inside.shape
    target, weight, types = np.zeros(shape, np.float32), np.zeros(shape, np.float32), np.full(shape, -1)
    for row, item in enumerate(items):
        part = slice(*item.pair.response)
        target[row, part], weight[row, part], types[row, part] = item.target, item.weight, item.types
    targets, weights, kinds = (torch.from_numpy(values).to(device) for values in (target, weight, types))
    unsupported = output.tokens[..., 0].float()
    each = functional.binary_cross_entropy_with_logits(unsupported, targets, reduction="none") * weights
    count = weights.sum(1)
    losses = {"tokens": (each.sum(1) / count.sqrt().clamp(min=1)).sum() / count.sqrt().sum().clamp(min=1)}
    typed = kinds >= 0
    if typed.any():
        losses["types"] = _TYPES * functional.cross_entropy(output.tokens[..., 1:][typed].float(), kinds[typed])
    known = torch.tensor([item.unsupported is not None for item in items], device=device)
    labels = torch.tensor([float(bool(item.unsupported)) for item in items], device=device)
    likeliest = unsupported.masked_fill(~output.inside, _LOWEST).topk(min(_LIKELIEST, shape[1]), dim=1).values
    likeliest = likeliest.masked_fill(likeliest <= _LOWEST, 0.0).mean(1)
    binary = functional.binary_cross_entropy_with_logits
    if known.any():
        losses["responses"] = _RESPONSES * binary(output.responses[known].float(), labels[known])
    alone = known & (count == 0)
    if alone.any():
        losses["labels"] = _LABELLED * binary(likeliest[alone], labels[alone])
    wrong = [row for row, item in enumerate(items) if item.twin]
    if wrong:
        right = [row - 1 for row in wrong]
        values = output.responses.float() + likeliest
        losses["twins"] = _TWINS * functional.softplus(values[right] - values[wrong]).mean()
    return torch.stack(list(losses.values())).sum(), {name: value.item() for name, value in losses.items()}


# The network of `AnswerFinder`: adapters on the encoder, and heads for the place of the answer and for tokens. It
# computes the same as `detectors.reader.AnswerFinder`; a test compares them.


_RANK = 16
_LOCATED = 0.4  # weight of the loss of the answer's place
_ALIGNED = 5  # columns that the alignment of response and evidence adds to a token's state


class _Adapted(nn.Module):
    """A frozen linear layer with a trained addition of low rank (Hu et al. 2022)."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self._linear = linear.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(_RANK, linear.in_features) / linear.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(linear.out_features, _RANK))

    def forward(self, values: Tensor) -> Tensor:
        output: Tensor = self._linear(values)
        low = functional.linear(values.to(output.dtype), self.down.to(output.dtype))
        return output + functional.linear(low, self.up.to(output.dtype))


class AnswerNetwork(ReaderNetwork):
    """The network that locates answers: its outputs are those of `outputs`, not of `forward`.

    Args:
        file: the encoder's weights.
        device: for the computation.
    """

    def __init__(self, file: E5File, device: torch.device | None = None) -> None:
        super().__init__(file, device)
        self.layers.requires_grad_(False)
        for layer in self.layers[FIRST:]:
            for name in _MATRICES:
                setattr(layer, name, _Adapted(getattr(layer, name)))
        del self.tokens, self.response
        self.answer = _head(file.sizes.width, 1)
        self.unsupported = _head(file.sizes.width + _ALIGNED, 1)
        self.to(self.part.device)

    def outputs(self, pairs: Sequence[Pair]) -> list[tuple[Tensor, Tensor]]:
        """For each input a logit of every token of the response, unsupported, and of the evidence, the answer."""
        vectors, last, _ = self.states(pairs)
        return [self._output(pair, vectors[row], last[row]) for row, pair in enumerate(pairs)]

    def _output(self, pair: Pair, vectors: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
        question, response, evidence = (slice(*part) for part in (pair.question, pair.response, pair.evidence))
        answer = self.answer(last[evidence])[:, 0]
        unit = functional.normalize(vectors, dim=-1, eps=1e-6)
        alike = unit[response] @ unit[evidence].T
        aligned = last.new_zeros(len(alike), _ALIGNED)
        if alike.numel() and question.stop > question.start:
            near = (unit[response] @ unit[question].T).amax(1)
            asked = functional.softmax(INVERSE_TEMPERATURE * alike, dim=-1) @ functional.softmax(answer, dim=-1)
            new = (1.0 - near).clamp(0.01, 1.0).square()
            whole = torch.log((new * asked).sum() / new.sum() + MIN_SHARE).expand(len(near))
            columns = (alike.amax(1), near, torch.log(asked + MIN_SHARE), whole, torch.ones_like(near))
            aligned = torch.stack(columns, dim=1)
        return self.unsupported(torch.cat([last[response], aligned], dim=1))[:, 0], answer

    def loss(self, items: Sequence[TrainingInput]) -> tuple[Tensor, dict[str, float]]:
        """The loss of a batch, and its parts by name.

        Tokens: binary cross-entropy; a response counts by the root of its length. Answers: the negative logarithm of
        the probability that a softmax over the evidence gives the tokens of the right answer.
        """
        of_tokens, sizes, of_answers = [], [], []
        for item, (unsupported, answer) in zip(items, self.outputs([item.pair for item in items]), strict=True):
            target, weight = (torch.from_numpy(values).to(answer.device) for values in (item.target, item.weight))
            size = float(item.weight.sum()) ** 0.5
            loss = functional.binary_cross_entropy_with_logits(unsupported.float(), target, weight, reduction="sum")
            of_tokens.append(loss / max(size, 1.0))
            sizes.append(size)
            if item.answer is not None:
                right = torch.from_numpy(item.answer).to(answer.device)
                of_answers.append(torch.logsumexp(answer, 0) - torch.logsumexp(answer[right], 0))
        losses = {"tokens": torch.stack(of_tokens).sum() / max(sum(sizes), 1.0)}
        if of_answers:
            losses["answers"] = _LOCATED * torch.stack(of_answers).mean()
        return torch.stack(list(losses.values())).sum(), {name: value.item() for name, value in losses.items()}

    def _named(self) -> dict[str, Tensor]:
        named: dict[str, Tensor] = {"part": self.part}
        for number, layer in enumerate(self.layers[FIRST:], start=FIRST):
            adapters = {name: values for name, values in layer.named_parameters() if values.requires_grad}
            named |= {f"l{number}.{name}": values for name, values in adapters.items()}
        return named | self._of_heads("answer", "unsupported")
