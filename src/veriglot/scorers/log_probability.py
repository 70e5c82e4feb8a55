"""How likely a model finds a response: the mean log probability of its tokens, which it is made to read.

Of the model that translated, this is the sequence log probability of Guerreiro et al. (2023), which HAT's data were
judged by (section 2.2); of another model, it is that model's opinion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import transformers

from veriglot.errors import UsageError
from veriglot.hub.checkpoints import batches, checkpoint, hub_options, loading
from veriglot.judging.base import NotScored
from veriglot.records import Status
from veriglot.scorers.base import Codes, Measured, Pair, PairScorer
from veriglot.scorers.neural import load, padded
from veriglot.signatures import digest, signature

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LogProbability"]

_IGNORED = -100
_NUMBERS = 100_000_000  # of a batch: a number for each token of the vocabulary at each place
_FEWEST = 256  # tokens of a batch


class LogProbability(PairScorer):
    """Mean natural logarithm of the probability of the response's tokens: 0 and below, higher is better.

    Of a model of two halves (Marian, NLLB, M2M, mBART, T5) the source goes into the encoder, and the token that ends
    the response counts as one of its tokens; tokens that name languages do not count, and languages that are not given
    are identified. Of a causal model the `prompt` goes before the response, and only the response's tokens count.
    `parts` holds `tokens` and `sum`.

    Args:
        model: a folder, a name that `veriglot models` lists, or a name on the hub.
        prompt: for a causal model: what stands before the response; `{source}` and `{question}` are filled in.
        codes: for a model whose tokenizer wants to be told the languages, `TAG=CODE` parted by commas, such as
            `de=deu_Latn,en=eng_Latn`; tags that are absent are looked for among the tokenizer's own codes.
        revision: of a model on the hub.
        device: such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.
        dtype: of the weights; of less than `float32`, scores vary with the batch in their last digits.
        accept_licence: its licence, where it is not a permissive one, is accepted.

    Raises:
        WeightsError: the model cannot be loaded.
        LicenceError: its licence has to be accepted first.
        UsageError: a prompt with other fields, or codes that are none.
    """

    name = "log-probability@1"

    def __init__(
        self,
        model: str,
        *,
        prompt: str = "{source}\n",
        codes: str = "",
        revision: str | None = None,
        device: str | None = None,
        dtype: str = "float32",
        accept_licence: bool = False,
    ) -> None:
        try:
            prompt.format(source="", question="")
        except (KeyError, IndexError, ValueError) as error:
            raise UsageError(f"The prompt {prompt!r} has a field that is neither source nor question.") from error
        self._prompt = prompt
        source = checkpoint(model)
        with loading("language model", source):
            config = transformers.AutoConfig.from_pretrained(source, **hub_options(source, revision))
        self._halves = bool(config.is_encoder_decoder)
        self._network = load(
            transformers.AutoModelForSeq2SeqLM if self._halves else transformers.AutoModelForCausalLM,
            str(model),
            what="language model",
            revision=revision,
            device=device,
            dtype=dtype,
            accept_licence=accept_licence,
        )
        self._codes = Codes(self._network.tokenizer, codes) if self._halves else None
        words = self._network.tokenizer
        self._uncounted = sorted(set(words.all_special_ids) - {words.eos_token_id, words.unk_token_id})
        self._most = max(_FEWEST, _NUMBERS // len(words))
        self._room = getattr(config, "max_position_embeddings", None)
        self.signature = signature(
            scorer=self.name,
            prompt=None if self._halves else digest([prompt])[:8],
            codes=codes or None,
            unit="token",
            **self._network.about,
        )

    def measure(self, pairs: Sequence[Pair]) -> list[Measured | NotScored]:
        """See `PairScorer`."""
        rows = [self._halved(pair) if self._halves else self._joined(pair) for pair in pairs]
        results: list[Measured | NotScored] = [row if isinstance(row, NotScored) else self._fits(row) for row in rows]
        open_rows = {
            index: row
            for index, (row, result) in enumerate(zip(rows, results, strict=True))
            if not isinstance(row, NotScored) and isinstance(result, Measured)
        }
        places = list(open_rows)
        for batch in batches([len(open_rows[index][0]) + len(open_rows[index][1]) for index in places], self._most):
            some = [places[number] for number in batch]
            sums = self._run([open_rows[index] for index in some])
            for index, (total, tokens) in zip(some, sums, strict=True):
                results[index] = Measured(total / tokens, {"tokens": float(tokens), "sum": total})
        return results

    def _fits(self, row: tuple[list[int], list[int]]) -> Measured | NotScored:
        longest = max(map(len, row)) if self._halves else sum(map(len, row))
        if self._room is not None and longest > self._room:
            reason = f"{longest:,} tokens, and the model takes {self._room:,}"
            return NotScored(Status.TOO_LONG, reason)
        if not row[1]:
            return NotScored(Status.NOTHING_TO_COMPARE, "the response holds no token of the model")
        return Measured(0.0, {})

    def _halved(self, pair: Pair) -> tuple[list[int], list[int]] | NotScored:
        assert self._codes is not None
        return self._codes.ids(pair)

    def _joined(self, pair: Pair) -> tuple[list[int], list[int]]:
        tokenizer = self._network.tokenizer
        before = self._prompt.format(source=pair.source, question=pair.question)
        ahead = tokenizer(before, truncation=False, verbose=False)["input_ids"] if before else []
        if ahead and ahead[-1] == tokenizer.eos_token_id:
            ahead = ahead[:-1]
        if not ahead:  # something has to stand before the first token
            start = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
            ahead = [] if start is None else [start]
        own = tokenizer(pair.response, add_special_tokens=False, truncation=False, verbose=False)["input_ids"]
        return ahead, own

    def _run(self, rows: list[tuple[list[int], list[int]]]) -> list[tuple[float, int]]:
        """Sum of log probabilities, and of how many tokens."""
        logits, labels = self._two_halves(rows) if self._halves else self._one(rows)
        chances = torch.log_softmax(logits.float(), -1)
        counted = labels != _IGNORED
        chosen = chances.gather(-1, labels.masked_fill(~counted, 0).unsqueeze(-1)).squeeze(-1)
        sums = (chosen * counted).double().sum(-1).tolist()
        return list(zip(sums, counted.sum(-1).tolist(), strict=True))

    def _two_halves(self, rows: list[tuple[list[int], list[int]]]) -> tuple[torch.Tensor, torch.Tensor]:
        model, device = self._network.model, self._network.device
        ids, mask = padded([source for source, _ in rows], _padding(self._network.tokenizer), device)
        labels, _ = padded([target for _, target in rows], _IGNORED, device)
        with torch.inference_mode():
            logits = model(input_ids=ids, attention_mask=mask, labels=labels).logits
        uncounted = torch.tensor(self._uncounted, dtype=labels.dtype, device=device)
        return logits, labels.masked_fill(torch.isin(labels, uncounted), _IGNORED)

    def _one(self, rows: list[tuple[list[int], list[int]]]) -> tuple[torch.Tensor, torch.Tensor]:
        device = self._network.device
        ids, mask = padded([[*ahead, *own] for ahead, own in rows], _padding(self._network.tokenizer), device)
        labels, _ = padded([[*[_IGNORED] * len(ahead), *own] for ahead, own in rows], _IGNORED, device)
        with torch.inference_mode():
            logits = self._network.model(input_ids=ids, attention_mask=mask).logits
        return logits[:, :-1], labels[:, 1:]


def _padding(tokenizer: Any) -> int:
    return int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0)
