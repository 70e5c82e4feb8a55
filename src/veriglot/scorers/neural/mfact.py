"""mFACT: a classifier of faithful and unfaithful summaries, a checkpoint per language (Qiu et al. 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import transformers

from veriglot.entailment.tokens import Tokens
from veriglot.errors import UsageError, WeightsError
from veriglot.provenance import signature
from veriglot.scorers.neural.claims import ClaimScorer, Level
from veriglot.scorers.neural.network import load
from veriglot.weights.batches import batches
from veriglot.weights.checkpoints import positions

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MFact"]

_ANY_LENGTH = 512
_FAITHFUL = ("faithful", "consistent", "correct", "supported", "entailment", "factual", "true", "yes")


class MFact(ClaimScorer):
    """The probability that a classifier of pairs gives to "faithful"; between 0 and 1, higher is better.

    Evidence that is longer than the model takes is seen in overlapping windows, of which the best counts.

    Args:
        model: a folder, a name that `veriglot models` lists, or a name on the hub (`yfqiu-nlp/mFACT-zh_CN`). Any
            sequence classifier of pairs will do.
        label: which output means "faithful", by its name or number. None reads it off the configuration, where one
            of the names says so (`faithful`, `consistent`, `supported`, `entailment` ...); a name such as `LABEL_1`
            does not, and then it has to be given. A model with a single output gives the sigmoid of that.
        level: judge the whole `response`, or each `sentence` or `fact` of it (the mean counts), as kang does.
        claim_first: the model was trained on (summary, document) in place of (document, summary).
        revision: of a model on the hub.
        max_length: tokens of a pair; None for as many as the model takes.
        device: such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.
        accept_licence: its licence, where it is not a permissive one, is accepted.

    Raises:
        WeightsError: the model cannot be loaded, or its configuration does not say which label means "faithful".
        LicenceError: its licence has to be accepted first.
        UsageError: an option that makes no sense.
    """

    name = "mfact@1"

    def __init__(
        self,
        model: str,
        *,
        label: str | int | None = None,
        level: Level = "response",
        claim_first: bool = False,
        revision: str | None = None,
        max_length: int | None = None,
        device: str | None = None,
        accept_licence: bool = False,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        self._options = given
        kind = transformers.AutoModelForSequenceClassification
        self._network = load(
            kind,
            str(model),
            what="classifier of faithfulness",
            revision=revision,
            device=device,
            accept_licence=accept_licence,
        )
        self._column = _column(self._network.model.config, label, str(model))
        self._claim_first = claim_first
        most = positions(self._network.tokenizer, self._network.model)
        if max_length is not None and most is not None and max_length > most:
            raise UsageError(f"{model!r} takes {most:,} tokens.", remedy=f"Give max_length {most} or less.")
        room = max_length or most or _ANY_LENGTH
        tokens = Tokens(self._network.tokenizer, str(model))
        super().__init__(tokens, room - tokens.special, level)
        self.signature = signature(
            scorer=self.name,
            label=self._column if self._column is not None else "sigmoid",
            level=level,
            order="claim-first" if claim_first else None,
            window=room,
            **self._network.about,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._options,)

    def probabilities(self, judged: Sequence[tuple[str, str]]) -> list[float]:
        """See `ClaimScorer`."""
        found = [0.0] * len(judged)
        lengths = [self._tokens.count(evidence) + self._tokens.count(claim) for evidence, claim in judged]
        for batch in batches(lengths):
            first, second = ([judged[place][side] for place in batch] for side in (0, 1))
            pair = (second, first) if self._claim_first else (first, second)
            inputs = self._tokens.pairs(*pair).to(self._network.device)
            with torch.inference_mode():
                logits = self._network.model(**inputs).logits.float()
            chances = logits.sigmoid()[:, 0] if self._column is None else logits.softmax(-1)[:, self._column]
            for place, chance in zip(batch, chances.tolist(), strict=True):
                found[place] = chance
        return found


def _again(options: dict[str, Any]) -> MFact:
    return MFact(**options)


def _column(config: Any, label: str | int | None, model: str) -> int | None:
    """Which output means "faithful"; None of a model with a single one."""
    names = {int(number): str(name) for number, name in config.id2label.items()}
    if config.num_labels == 1:
        return None
    if label is not None:
        wanted = [number for number, name in names.items() if str(label) in (name, str(number))]
        if not wanted:
            raise UsageError(f"{model!r} has no label {label!r}.", remedy=f"It has {', '.join(names.values())}.")
        return wanted[0]
    said = [number for number, name in names.items() if name.strip().casefold() in _FAITHFUL]
    if len(said) != 1:
        raise WeightsError(
            f"The configuration of {model!r} does not say which label means faithful: {', '.join(names.values())}.",
            remedy="Read its card, and give label= the name or the number.",
        )
    return said[0]
