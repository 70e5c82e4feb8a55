"""SEAHORSE Q4: an mT5 that was trained on people's answers whether a summary is attributable (Clark et al. 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import transformers

from veriglot.entailment.tokens import Tokens
from veriglot.errors import UsageError, WeightsError
from veriglot.provenance import signature
from veriglot.scorers.neural.claims import ClaimScorer, Level
from veriglot.scorers.neural.mt5 import head_scale
from veriglot.scorers.neural.network import load, padded
from veriglot.weights.batches import batches
from veriglot.weights.checkpoints import hub_options

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Seahorse"]

_PREMISE, _HYPOTHESIS = "premise: ", " hypothesis: "  # as the model's card has it
_ANSWERS = ("0", "1")


class Seahorse(ClaimScorer):
    """The probability of the first token `1` of the model's answer; between 0 and 1, higher is better.

    The input is `premise: EVIDENCE hypothesis: RESPONSE` (the model's card). The probability is over the whole
    vocabulary, as in TRUE (Honovich et al. 2022), whose training it follows; `among=answers` takes it among `0` and
    `1` alone. Evidence that is longer than `max_length` is seen in overlapping windows, of which the best counts.

    Args:
        model: a folder, a name that `veriglot models` lists, or a name on the hub (`google/seahorse-large-q4`).
        level: judge the whole `response`, or each `sentence` or `fact` of it (the mean counts), as kang does.
        tokenizer: checkpoint of the tokenizer, where the model's has none (`google/mt5-large`).
        among: `vocabulary` or `answers`.
        revision: of a model on the hub.
        max_length: tokens of the input; mT5 sets no bound, 2,048 is ours.
        device: such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.
        dtype: of the weights; of `bfloat16`, scores vary with the batch in their third digit.
        accept_licence: its licence, where it is not a permissive one, is accepted.

    Raises:
        WeightsError: the model cannot be loaded, or its tokenizer has no single token for `0` and `1`.
        LicenceError: its licence has to be accepted first.
        UsageError: an option that makes no sense.
    """

    name = "seahorse-q4@1"

    def __init__(
        self,
        model: str,
        *,
        level: Level = "response",
        tokenizer: str | None = None,
        among: str = "vocabulary",
        revision: str | None = None,
        max_length: int = 2048,
        device: str | None = None,
        dtype: str = "float32",
        accept_licence: bool = False,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        self._options = given
        if among not in ("vocabulary", "answers"):
            raise UsageError(
                f"There is no {among!r} to take the probability among.", remedy="Give vocabulary or answers."
            )
        self._network = load(
            transformers.AutoModelForSeq2SeqLM,
            str(model),
            what="model of SEAHORSE",
            tokenizer=tokenizer,
            revision=revision,
            device=device,
            dtype=dtype,
            accept_licence=accept_licence,
        )
        self._answers = [_token(self._network.tokenizer, answer, str(model)) for answer in _ANSWERS]
        self._among = among
        self._scale = head_scale(self._network.place, self._network.model, **hub_options(self._network.place, revision))
        tokens = Tokens(self._network.tokenizer, str(model))
        words = tokens.count(_PREMISE) + tokens.count(_HYPOTHESIS) + 4  # what joins them may part in other tokens
        super().__init__(tokens, max_length - words, level)
        self.signature = signature(scorer=self.name, level=level, among=among, window=max_length, **self._network.about)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._options,)

    def probabilities(self, judged: Sequence[tuple[str, str]]) -> list[float]:
        """See `ClaimScorer`."""
        texts = [f"{_PREMISE}{evidence}{_HYPOTHESIS}{claim}" for evidence, claim in judged]
        rows = [self._network.tokenizer(text, truncation=False, verbose=False)["input_ids"] for text in texts]
        found = [0.0] * len(rows)
        for batch in batches([len(row) for row in rows]):
            for place, chance in zip(batch, self._run([rows[place] for place in batch]), strict=True):
                found[place] = chance
        return found

    def _run(self, rows: list[list[int]]) -> list[float]:
        model, device = self._network.model, self._network.device
        ids, mask = padded(rows, model.config.pad_token_id or 0, device)
        begin = torch.full((len(rows), 1), model.config.decoder_start_token_id or 0, device=device)
        with torch.inference_mode():
            logits = model(input_ids=ids, attention_mask=mask, decoder_input_ids=begin).logits[:, 0].float()
        logits = logits * self._scale
        if self._among == "answers":
            logits = logits[:, self._answers]
            chances = logits.softmax(-1)[:, 1]
        else:
            chances = logits.softmax(-1)[:, self._answers[1]]
        values: list[float] = chances.tolist()
        return values


def _again(options: dict[str, Any]) -> Seahorse:
    return Seahorse(**options)


def _token(tokenizer: Any, answer: str, model: str) -> int:
    """The token that an answer begins with, as it is written at the beginning of a text."""
    ids = tokenizer(answer, add_special_tokens=False)["input_ids"]
    meant = [token for token in ids if tokenizer.decode([token]).strip() == answer]
    if len(meant) != 1 or meant[0] == tokenizer.unk_token_id:
        raise WeightsError(
            f"The tokenizer of {model!r} has no token for {answer!r}, so it is not that of SEAHORSE.",
            remedy="Name the right one by the option tokenizer, such as google/mt5-large.",
        )
    return int(meant[0])
