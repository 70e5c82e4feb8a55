"""MetricX-24: an mT5 that gives a number of errors to a translation (Juraska et al. 2024)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import transformers

from veriglot.errors import WeightsError
from veriglot.provenance import signature
from veriglot.records import Direction, Status
from veriglot.scorers.against_evidence import Measured, Unmeasured
from veriglot.scorers.neural.mt5 import head_scale
from veriglot.scorers.neural.network import load, padded
from veriglot.scorers.neural.pairs import Pair, PairScorer
from veriglot.weights.batches import batches
from veriglot.weights.checkpoints import hub_options

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MetricX"]

_READ = 250089  # `<extra_id_10>`: its logit in the first step of the decoder is the score
_WORST = 25.0


class MetricX(PairScorer):
    """The score of a translation without a reference: 0 to 25, as in MQM; higher is worse.

    As the published code of google-research/metricx has it (metricx23/models.py, metricx24/predict.py): the input is
    `source: SOURCE candidate: TRANSLATION` without the token that ends a text, the decoder gets one padding token, and
    the logit of `<extra_id_10>` is clipped at 0 and 25. `parts` holds `raw`, before clipping. The published code cuts
    what is longer than `max_length`; here it is `too_long`.

    Args:
        model: a folder, a name that `veriglot models` lists, or a name on the hub
            (`google/metricx-24-hybrid-large-v2p6`).
        tokenizer: checkpoint of the tokenizer, which MetricX's repositories lack: that of the mT5 it began as, such as
            `google/mt5-large`.
        revision: of a model on the hub.
        max_length: tokens of the input; 1,536 by the published code's example.
        device: such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.
        dtype: of the weights; of `bfloat16`, scores vary with the batch in their third digit.
        accept_licence: its licence, where it is not a permissive one, is accepted.

    Raises:
        WeightsError: the model cannot be loaded, or has no such token.
        LicenceError: its licence has to be accepted first.
    """

    name = "metricx-24@1"
    direction = Direction.HIGHER_IS_WORSE

    def __init__(
        self,
        model: str,
        *,
        tokenizer: str | None = None,
        revision: str | None = None,
        max_length: int = 1536,
        device: str | None = None,
        dtype: str = "float32",
        accept_licence: bool = False,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        self._options = given
        self._network = load(
            transformers.MT5ForConditionalGeneration,
            str(model),
            what="model of MetricX",
            tokenizer=tokenizer,
            revision=revision,
            device=device,
            dtype=dtype,
            accept_licence=accept_licence,
        )
        config = self._network.model.config
        if config.vocab_size <= _READ:
            raise WeightsError(
                f"{model!r} has {config.vocab_size:,} tokens, and MetricX reads its score off number {_READ:,}.",
                remedy="Take a checkpoint of MetricX.",
            )
        self._scale = head_scale(self._network.place, self._network.model, **hub_options(self._network.place, revision))
        self._longest = max_length
        self.signature = signature(scorer=self.name, window=max_length, **self._network.about)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._options,)

    def measure(self, pairs: Sequence[Pair]) -> list[Measured | Unmeasured]:
        """See `PairScorer`."""
        rows = [self._ids(pair) for pair in pairs]
        found: list[Measured | Unmeasured] = [_too_long(len(row), self._longest) for row in rows]
        fits = [place for place, row in enumerate(rows) if len(row) <= self._longest]
        for batch in batches([len(rows[place]) for place in fits]):
            places = [fits[one] for one in batch]
            for place, raw in zip(places, self._run([rows[place] for place in places]), strict=True):
                found[place] = Measured(min(max(raw, 0.0), _WORST), {"raw": raw})
        return found

    def _ids(self, pair: Pair) -> list[int]:
        tokenizer = self._network.tokenizer
        text = f"source: {pair.source} candidate: {pair.response}"
        ids: list[int] = tokenizer(text, truncation=False, verbose=False)["input_ids"]
        return ids[:-1] if ids and ids[-1] == tokenizer.eos_token_id else ids

    def _run(self, rows: list[list[int]]) -> list[float]:
        device = self._network.device
        ids, mask = padded(rows, 0, device)
        begin = torch.zeros((len(rows), 1), dtype=torch.long, device=device)
        with torch.inference_mode():
            model = self._network.model
            logits = model(input_ids=ids, attention_mask=mask, decoder_input_ids=begin).logits
        values: list[float] = (logits[:, 0, _READ].float() * self._scale).tolist()
        return values


def _again(options: dict[str, Any]) -> MetricX:
    return MetricX(**options)


def _too_long(tokens: int, most: int) -> Unmeasured:
    return Unmeasured(Status.TOO_LONG, f"source and translation have {tokens:,} tokens, and the model takes {most:,}")
