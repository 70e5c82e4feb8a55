"""What every training here shares: the loop, layers, calibration on held-out texts, export, the model card."""

from __future__ import annotations

import logging
import math
import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass
from random import Random
from string import Template
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_

from veriglot.detectors.grounding.detector import Line, response_evidence
from veriglot.detectors.grounding.detector import ScriptCalibration as Calibration
from veriglot.errors import UnknownNameError, WeightsError
from veriglot.records.languages import get_language
from veriglot.training.calibration import logistic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.resources.abc import Traversable

    from numpy.typing import NDArray

    from veriglot.training.grounding.examples import WordLabels

    Judged = tuple[Tensor, Sequence[Tensor]]

__all__ = [
    "Blocks",
    "Plan",
    "by_folds",
    "calibrate",
    "counts_table",
    "figures_table",
    "fit_on",
    "model_card",
    "onnx_bytes",
]


B = TypeVar("B")


def train_network(
    network: nn.Module,
    batches: Callable[[int], Sequence[B]],
    loss_of: Callable[[B], Tensor | None],
    *,
    epochs: int,
    seed: int,
    rate: Callable[[int], float],
    decay: float,
    epoch_done: Callable[[int, list[float]], None] = lambda epoch, losses: None,  # noqa: ARG005
) -> None:
    """Train in place, seeded, by AdamW with gradients clipped to norm 1.

    Args:
        network: whose parameters are fitted.
        batches: the batches of an epoch, by its number from 0.
        loss_of: the loss of a batch, a scalar; None passes the batch over.
        epochs: how many.
        seed: of what is dropped.
        rate: learning rate of a step, by its number from 0.
        decay: weight decay.
        epoch_done: told the number of each finished epoch, and its losses.
    """
    torch.manual_seed(seed)
    parameters = [values for values in network.parameters() if values.requires_grad]
    optimizer = torch.optim.AdamW(parameters, rate(0), weight_decay=decay)
    step = 0
    for epoch in range(epochs):
        network.train()
        losses = []
        for batch in batches(epoch):
            loss = loss_of(batch)
            if loss is None:
                continue
            for group in optimizer.param_groups:
                group["lr"] = rate(step)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            step += 1
            losses.append(loss.item())
        epoch_done(epoch, losses)
    network.eval()


R = TypeVar("R")
_WARM_UP = 50  # steps
_LAST_RATE = 0.02  # of the highest learning rate
_DECAY = 0.02


@dataclass(frozen=True)
class Plan:
    """What a fit depends on besides its rows: passes, highest learning rate, seed, weight of the type loss."""

    epochs: int
    rate: float
    seed: int
    type_weight: float


def _loss(out: Tensor, target: Tensor, types: Tensor, weight: Tensor, type_weight: float) -> Tensor:
    """Cross-entropy of marking over all words, and of types over unsupported words whose type is known."""
    marking = functional.binary_cross_entropy_with_logits(out[..., 0], target, reduction="none")
    loss: Tensor = (marking * weight).sum() / weight.sum().clamp(min=1)
    typed = (weight * target * (types.sum(-1) > 0)).unsqueeze(-1)
    typing = functional.binary_cross_entropy_with_logits(out[..., 1:], types, reduction="none")
    return loss + type_weight * (typing * typed).sum() / typed.sum().clamp(min=1)


def fit_on(
    network: nn.Module,
    plan: Plan,
    batches: Callable[[np.random.Generator], Sequence[list[R]]],
    judged: Callable[[list[R]], Judged],
    *,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Train in place on batches of any kind of row, seeded.

    Args:
        network: whose parameters are fitted.
        plan: epochs, learning rate, seed, weight of the type loss.
        batches: draws the batches of an epoch; always as many, but for a few.
        judged: what the network says of a batch, shape (b, n, 7), and its target, types and weight.
        say: told the mean loss after each epoch.
    """
    rng = np.random.default_rng(plan.seed)
    steps = len(batches(np.random.default_rng(plan.seed))) * plan.epochs

    def loss_of(batch: list[R]) -> Tensor:
        out, (target, types, weight) = judged(batch)
        return _loss(out, target, types, weight, plan.type_weight)

    def rate(step: int) -> float:
        falling = max(_LAST_RATE, 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps))))
        return plan.rate * (min(1.0, (step + 1) / _WARM_UP) * falling)

    train_network(
        network,
        lambda _: batches(rng),
        loss_of,
        epochs=plan.epochs,
        seed=plan.seed,
        rate=rate,
        decay=_DECAY,
        epoch_done=lambda epoch, losses: say(f"epoch {epoch + 1} of {plan.epochs}: loss {np.mean(losses):.4f}"),
    )


# Layers that the networks of words share.


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


# From PyTorch to ONNX.


def onnx_bytes(
    module: nn.Module,
    given: tuple[Tensor, ...],
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    axes: tuple[dict[int, Any], ...],
) -> bytes:
    """A module as the bytes of an ONNX file, which name nothing of the machine it was made on.

    Args:
        module: ready to run.
        given: inputs to trace it with.
        inputs: their names.
        outputs: names of what comes out.
        axes: for each input, the axes of any length.

    Raises:
        WeightsError: PyTorch exported nothing.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own: of its internals, and of parts that this network does not use
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        program = torch.onnx.export(
            module,
            given,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_shapes=axes,
            dynamo=True,
            verbose=False,
        )
    if program is None:
        raise WeightsError("PyTorch did not export the network.")
    model = program.model_proto
    _strip(model)
    written: bytes = model.SerializeToString()
    return written


def _strip(model: Any) -> None:
    """Take out what the exporter notes beside every node: stack traces, with the paths of the machine it ran on."""
    model.doc_string = ""
    for holder in (model, model.graph, *model.graph.node, *model.graph.value_info, *model.graph.initializer):
        del holder.metadata_props[:]
        holder.doc_string = ""
    for value in (*model.graph.input, *model.graph.output):
        del value.metadata_props[:]
    for function in model.functions:
        del function.metadata_props[:]
        for node in function.node:
            del node.metadata_props[:]


# Fitting the lines that turn logits into probabilities, on responses that no weight was fitted on.


_MIN_WORDS = 1500  # held-out words that a script needs for a line of its own
_PRIOR = 500.0  # words' worth of pull towards the default line


def calibrate(rows: Sequence[WordLabels], logits: Sequence[NDArray[np.float32]]) -> Calibration:
    """Lines by script, the default, and the weights of the response score.

    Rows labelled by people fit the lines. Held-out rows that were made like the training rows, by a model or by
    rule, are far easier than what users bring, and lines fitted on them would promise too much; they serve only
    where there is nothing else. The response score needs clean responses and is fitted on all.

    Args:
        rows: held-out rows.
        logits: what a network that did not see them says of them, each of shape (n, 7).
    """
    chosen = [i for i, row in enumerate(rows) if row.example.kind == "natural"] or list(range(len(rows)))
    default = logistic(*_words([rows[i] for i in chosen], [logits[i] for i in chosen]))
    by_script: dict[str, list[int]] = defaultdict(list)
    for i in chosen:
        script = script_of_tag(rows[i].example.language)
        if script is not None:
            by_script[script].append(i)
    lines, tags = {}, set()
    for script, members in by_script.items():
        if sum(len(rows[i]) for i in members) >= _MIN_WORDS:
            some = _words([rows[i] for i in members], [logits[i] for i in members])
            lines[script] = _line(logistic(*some, start=default, pull=_PRIOR))
            tags |= {(rows[i].example.language or "").split("-")[0] for i in members}
    return Calibration(lines, tuple(sorted(tags)), _line(default), _response_weights(rows, logits))


def script_of_tag(tag: str | None) -> str | None:
    """The script of a language, or None where the language table does not hold it."""
    try:
        return get_language(tag or "").script
    except UnknownNameError:
        return None


def _words(
    rows: Sequence[WordLabels], logits: Sequence[NDArray[np.float32]]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Logits and ones, targets, and weights of every word."""
    values = np.concatenate([row[:, 0] for row in logits]).astype(np.float64)
    targets = np.concatenate([row.target for row in rows]).astype(np.float64)
    weights = np.concatenate([(row.weight > 0).astype(np.float64) for row in rows])
    return np.stack([values, np.ones_like(values)], axis=1), targets, weights


def _line(weights: NDArray[np.float64]) -> Line:
    return Line(slope=float(weights[0]), offset=float(weights[1]))


def _response_weights(rows: Sequence[WordLabels], logits: Sequence[NDArray[np.float32]]) -> tuple[float, ...]:
    evidence = np.array([response_evidence(row[:, 0]) for row in logits])
    any_marked = np.array([float((row.target >= 0.5).any()) for row in rows])
    return tuple(logistic(evidence, any_marked, np.ones(len(rows))).tolist())


_GROUPS = 15


def counts_table(rows: Sequence[WordLabels]) -> str:
    """Responses and words of each kind and source, as a Markdown table."""
    counts: Counter[tuple[str, str]] = Counter()
    words: Counter[tuple[str, str]] = Counter()
    for row in rows:
        counts[row.example.kind, row.example.source] += 1
        words[row.example.kind, row.example.source] += len(row)
    lines = [f"| {kind} | {source} | {n} | {words[kind, source]} |" for (kind, source), n in sorted(counts.items())]
    return "\n".join(["| kind | source | responses | words |", "|---|---|---|---|", *lines])


def figures_table(
    held_out: Sequence[WordLabels],
    logits: Sequence[NDArray[np.float32]],
    calibration: Calibration,
    threshold: float,
) -> str:
    """How well held-out words of each kind and source were told apart, as a Markdown table.

    Args:
        held_out: what trained nothing.
        logits: what a network that did not see them says of them, each of shape (n, 7).
        calibration: what makes probabilities of the logits.
        threshold: probability from which a word is marked.
    """
    lines = [
        "| kind | source | words | unsupported | marked | F1 | calibration error |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind, source in sorted({(row.example.kind, row.example.source) for row in held_out}):
        chosen = [i for i, row in enumerate(held_out) if (row.example.kind, row.example.source) == (kind, source)]
        truth = np.concatenate([held_out[i].target >= 0.5 for i in chosen])
        chances = np.concatenate([_confidences(held_out[i], logits[i], calibration) for i in chosen])
        marked = chances >= threshold
        both = int((marked & truth).sum())
        f1 = f"{2 * both / (marked.sum() + truth.sum()):.3f}" if truth.any() else "-"
        lines.append(
            f"| {kind} | {source} | {len(truth)} | {truth.mean():.3f} | {marked.mean():.3f} | {f1} |"
            f" {_calibration_error(truth, chances):.3f} |"
        )
    return "\n".join(lines)


def _confidences(row: WordLabels, logits: NDArray[np.float32], calibration: Calibration) -> NDArray[np.float64]:
    tag = row.example.language or ""
    return calibration.confidences(logits[:, 0], tag, script_of_tag(tag))


def _calibration_error(truth: NDArray[np.bool_], chances: NDArray[np.float64]) -> float:
    """Expected calibration error over groups of equal width."""
    group = np.minimum((chances * _GROUPS).astype(int), _GROUPS - 1)
    total = 0.0
    for g in np.unique(group):
        inside = group == g
        total += float(inside.mean() * abs(truth[inside].mean() - chances[inside].mean()))
    return total


def model_card(template: Traversable, trained: Sequence[WordLabels], left_out: Counter[str], **parts: object) -> str:
    """A page about weights, filled in.

    Args:
        template: the page, with `$name` where a part stands.
        trained: what weights were fitted on.
        left_out: what was not used, by reason.
        parts: what else the page names.
    """
    languages = sorted({(row.example.language or "").split("-")[0] for row in trained})
    unused = "\n".join(f"- {reason}: {count}" for reason, count in sorted(left_out.items()) if count)
    return Template(template.read_text("utf-8")).substitute(
        trained=counts_table(trained), languages=" ".join(languages), left_out=unused or "- none", **parts
    )


# Natural answers by folds, each judged by a network that did not see it.


_FOLDS = 5
L = TypeVar("L", bound="WordLabels")


def by_folds(
    answers: Sequence[L],
    judged: Callable[[list[L], list[L]], list[NDArray[np.float32]]],
    say: Callable[[str], None],
) -> list[tuple[L, NDArray[np.float32]]]:
    """Every answer with its logits from a network that did not see it.

    Args:
        answers: the answers.
        judged: the logits of the second list, from a network that learned from the first.
        say: told of each fold.
    """
    results: list[tuple[L, NDArray[np.float32]]] = []
    fold = folds_of(answers)
    for k in sorted(set(fold)):
        seen = [row for row, part in zip(answers, fold, strict=True) if part != k]
        unseen = [row for row, part in zip(answers, fold, strict=True) if part == k]
        results += zip(unseen, judged(seen, unseen), strict=True)
        say(f"second stage without fold {k + 1} of {_FOLDS}")
    return results


def folds_of(answers: Sequence[WordLabels]) -> list[int]:
    """A fold for each natural answer, 0 to 4, balanced inside each language."""
    fold = [0] * len(answers)
    by_language: dict[str | None, list[int]] = defaultdict(list)
    for i, row in enumerate(answers):
        by_language[row.example.language].append(i)
    for members in by_language.values():
        Random(0).shuffle(members)  # noqa: S311  a seeded draw, not a secret
        for rank, i in enumerate(members):
            fold[i] = rank % _FOLDS
    return fold
