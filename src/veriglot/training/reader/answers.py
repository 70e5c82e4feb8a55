"""The network of `AnswerFinder`: adapters (LoRA) on the encoder, a head for the answer's place, and one for tokens.

It computes the same as `detectors.reader.AnswerFinder`; a test compares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from veriglot.detectors.reader.detector import INVERSE_TEMPERATURE, MIN_SHARE
from veriglot.training.reader.network import FIRST, MATRICES, ReaderNetwork, TrainingInput, make_head

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from veriglot.arrays import Float32s, Numbers
    from veriglot.encoders.e5 import E5File, Pair

__all__ = ["RATE", "SHARES", "AnswerNetwork", "in_bytes"]

# Share of training tokens of each source: those with questions, most of them across languages.
SHARES = {"written": 0.35, "across": 0.4, "answers": 0.25}
RATE = 6e-4  # the highest learning rate
_RANK = 16
_ANSWERS = 0.4  # weight of the loss of the answer's place
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
    """The network.

    Args:
        file: the encoder's weights.
        device: for the computation.
    """

    def __init__(self, file: E5File, device: torch.device | None = None) -> None:
        super().__init__(file, device)
        self.layers.requires_grad_(False)
        for layer in self.layers[FIRST:]:
            for name in MATRICES:
                setattr(layer, name, _Adapted(getattr(layer, name)))
        del self.tokens, self.response
        self.answer = make_head(file.sizes.width, 1)
        self.unsupported = make_head(file.sizes.width + _ALIGNED, 1)
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
            losses["answers"] = _ANSWERS * torch.stack(of_answers).mean()
        return torch.stack(list(losses.values())).sum(), {name: value.item() for name, value in losses.items()}

    def _named(self) -> dict[str, Tensor]:
        named: dict[str, Tensor] = {"part": self.part}
        for number, layer in enumerate(self.layers[FIRST:], start=FIRST):
            adapters = {name: values for name, values in layer.named_parameters() if values.requires_grad}
            named |= {f"l{number}.{name}": values for name, values in adapters.items()}
        return named | self._of_heads("answer", "unsupported")


def in_bytes(learned: Mapping[str, Float32s]) -> dict[str, Numbers]:
    """Matrices in 8 bits with a scale for each row, as `AnswerFinder` loads them; the rest as it is."""
    arrays: dict[str, Numbers] = {}
    for name, values in learned.items():
        if values.ndim < 2:
            arrays[name] = values
            continue
        scales = np.maximum(np.abs(values).max(axis=1, keepdims=True) / 127, 1e-12)
        arrays |= {name: np.rint(values / scales).astype(np.int8), f"{name}.scales": scales}
    return arrays
