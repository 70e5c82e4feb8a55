"""Neural scorers of published checkpoints: SEAHORSE Q4 (Clark et al. 2023), MetricX, mFACT, and log probabilities.

The log probability under the model that translated is the sequence log probability of Guerreiro et al. (2023), which
HAT's data were scored with (section 2.2); under another model, it is that model's view.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import torch
import transformers

from veriglot.errors import UsageError, WeightsError
from veriglot.hub.checkpoints import check_licence, checkpoint, hub_options, in_batches, load_pretrained, loading, pad
from veriglot.judging.base import NotScored
from veriglot.judging.classifiers import LockedTokenizer
from veriglot.records import Direction, Status
from veriglot.records.languages import find_language, translation_codes
from veriglot.scorers.base import Pair, PairScorer, RawScore, answered, check_choice, pair_languages, parse_codes
from veriglot.signatures import checkpoint_revision, digest, signature
from veriglot.text.facts import facts
from veriglot.text.segmentation import sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["ForcedDecoding", "Network"]


Level = Literal["response", "sentence", "fact"]
_MIN_EVIDENCE = 16  # minimum tokens of evidence besides a claim


class _ClaimPair(NamedTuple):
    evidence: str
    claim: str


class _ClaimScorer(PairScorer):
    """The mean, over the claims of a response, of the best support probability in any window of the evidence.

    `parts` has `claims` (number), `least` (probability of the least supported claim) and `windows` (of the evidence,
    the maximum for a claim). A claim that leaves no room for evidence makes the sample `too_long`. `room` is the
    model's maximum number of tokens for evidence and claim together.
    """

    def __init__(self, tokens: LockedTokenizer, room: int, level: Level) -> None:
        check_choice("level", level, get_args(Level))
        if room < 2 * _MIN_EVIDENCE:
            raise UsageError(f"The model has room for {room} tokens, which is too few.", "Raise max_length.")
        self._tokens, self._room, self._level = tokens, room, level

    @abstractmethod
    def _probabilities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """For each (evidence, claim), the probability that the evidence supports the claim."""

    def measure(self, pairs: Sequence[Pair]) -> list[RawScore | NotScored]:
        """See `PairScorer`."""
        return answered([self._plan(pair) for pair in pairs], self._results)

    def _results(self, plans: list[list[list[_ClaimPair]]]) -> list[RawScore]:
        distinct = list(dict.fromkeys(pair for plan in plans for windows in plan for pair in windows))
        known = dict(zip(distinct, self._probabilities(distinct) if distinct else [], strict=True))
        return [_measured(plan, known) for plan in plans]

    def _plan(self, pair: Pair) -> list[list[_ClaimPair]] | NotScored:
        """For each claim, the windows of evidence to compare it with."""
        claims = self._claims(pair)
        if not claims:
            return NotScored(Status.NOTHING_TO_COMPARE, f"the response has no {self._level}")
        plan = []
        for claim in claims:
            left = self._room - self._tokens.count(claim)
            if left < _MIN_EVIDENCE:
                advice = " (level=sentence judges it in parts)" if self._level == "response" else ""
                reason = (
                    f"a {self._level} of {self._room - left:,} tokens leaves no room for evidence"
                    f" among {self._room:,}{advice}"
                )
                return NotScored(Status.TOO_LONG, reason)
            windows = self._tokens.split_chunks(pair.source, left, overlap=True)
            plan.append([_ClaimPair(pair.source[start:end], claim) for start, end in windows])
        return plan

    def _claims(self, pair: Pair) -> list[str]:
        text = pair.response
        if self._level == "response":
            return [text]
        if self._level == "sentence":
            return [text[start:end] for start, end in sentences(text, pair.language)]
        return [fact.text(text) for fact in facts(text, pair.language)]


def _measured(plan: list[list[_ClaimPair]], known: dict[_ClaimPair, float]) -> RawScore:
    best = [max(known[pair] for pair in windows) for windows in plan]
    parts = {"claims": float(len(best)), "least": min(best), "windows": float(max(map(len, plan)))}
    return RawScore(sum(best) / len(best), parts)


class Network:
    """A loaded checkpoint; checks its licence first.

    Raises:
        WeightsError: the model cannot be loaded, or its licence must be accepted first.
    """

    def __init__(
        self,
        kind: Any,
        model: str,
        *,
        what: str,
        tokenizer: str | None = None,
        revision: str | None = None,
        device: str | None = None,
        dtype: str = "float32",
        accept_licence: bool = False,
    ) -> None:
        check_licence(model, accepted=accept_licence)
        loaded = load_pretrained(
            kind, model, what=what, tokenizer=tokenizer, revision=revision, device=device, dtype=dtype
        )
        words = checkpoint(tokenizer or model)
        # For a checkpoint without one, the library silently creates a tokenizer that knows no letters.
        probe = loaded.tokenizer("the a 1 2", add_special_tokens=False)["input_ids"]
        special = {loaded.tokenizer.unk_token_id, *loaded.tokenizer.all_special_ids}
        if not any(token not in special and loaded.tokenizer.decode([token]).strip() for token in probe):
            raise WeightsError(
                f"The {what} {words!r} has no tokenizer.",
                "Name the checkpoint of the right one by the option tokenizer.",
            )
        self.tokenizer, self.model = loaded.tokenizer, loaded.network
        self.device, self.effective_max_length = loaded.device, loaded.effective_max_length
        self.about: dict[str, str | None] = {
            "model": model,
            "revision": loaded.revision,
            "tokenizer": checkpoint_revision(words, None) if words != loaded.source else None,
            **loaded.settings,
        }
        self._scale = (
            _head_scale(loaded.source, loaded.network, revision) if loaded.network.config.model_type == "mt5" else 1.0
        )

    def ids(self, text: str) -> list[int]:
        """The token ids of a text of any length."""
        ids: list[int] = self.tokenizer(text, truncation=False, verbose=False)["input_ids"]
        return ids

    def padded(self, rows: Sequence[Sequence[int]], fill: int) -> Sequence[torch.Tensor]:
        """Padded token ids and their mask, on its device; see `pad`."""
        return [torch.from_numpy(array).to(self.device) for array in pad(rows, fill)]

    def first_logits(self, rows: Sequence[Sequence[int]]) -> torch.Tensor:
        """The logits of the first token of the answers, of shape (b, vocabulary), of an encoder-decoder model."""
        config = self.model.config
        ids, mask = self.padded(rows, config.pad_token_id or 0)
        begin = torch.full((len(rows), 1), config.decoder_start_token_id or 0, device=self.device)
        with torch.inference_mode():
            logits = self.model(input_ids=ids, attention_mask=mask, decoder_input_ids=begin).logits
        first: torch.Tensor = logits[:, 0].float() * self._scale
        return first

    def first_scores(self, rows: Sequence[Sequence[int]], read: Callable[[torch.Tensor], torch.Tensor]) -> list[float]:
        """`read` applied to the logits of the first token of each answer, in order."""

        def run(batch: list[int]) -> Any:
            return read(self.first_logits([rows[index] for index in batch])).tolist()

        return in_batches([len(row) for row in rows], run)


def _head_scale(source: str, network: Any, revision: str | None = None) -> float:
    """The factor from the logits of an mT5 to those of transformers 4.

    Checkpoints were published for that version. With tied embeddings, it divided the decoder's output by the square
    root of its width. Version 5 does so for T5, but not for mT5, and sets the flag for it whatever the file has.
    """
    stored, _ = transformers.PretrainedConfig.get_config_dict(source, **hub_options(source, revision))
    return float(network.config.d_model**-0.5) if stored.get("tie_word_embeddings", True) else 1.0


_PREMISE, _HYPOTHESIS = "premise: ", " hypothesis: "  # as in the model card
_ANSWERS = ("0", "1")


class Seahorse(_ClaimScorer):
    """The probability of `1` as the first token of the model's answer; between 0 and 1, higher is better.

    The input is `premise: EVIDENCE hypothesis: RESPONSE` (the model card). The probability is over the whole
    vocabulary, as in TRUE (Honovich et al. 2022), whose training it follows; with `among=answers` it is over `0` and
    `1` alone. Evidence longer than `max_length` is split into overlapping windows, of which the best counts.

    Args:
        model: a folder, a name that `veriglot models` lists, or a name on the hub (`google/seahorse-large-q4`).
        level: score the whole `response`, or each `sentence` or `fact` of it (and average), as Kang et al. do.
        tokenizer: checkpoint of the tokenizer, if the model's has none (`google/mt5-large`).
        among: `vocabulary` or `answers`.
        revision: of a model on the hub.
        max_length: maximum tokens of the input; mT5 has no limit, 2,048 is our choice.
        device: such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.
        dtype: of the weights; with `bfloat16`, scores vary with the batch in their third digit.
        accept_licence: whether to accept its licence, if it is not a permissive one.

    Raises:
        WeightsError: the model cannot be loaded, or its tokenizer has no single token for `0` and `1`.
        WeightsError: its licence must be accepted first.
        UsageError: an invalid option.
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
        check_choice("among", among, ("vocabulary", "answers"))
        self._network = Network(
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
        tokens = LockedTokenizer(self._network.tokenizer, str(model))
        words = tokens.count(_PREMISE) + tokens.count(_HYPOTHESIS) + 4  # tokens may differ where the parts are joined
        super().__init__(tokens, max_length - words, level)
        self.signature = signature(scorer=self.name, level=level, among=among, window=max_length, **self._network.about)

    def _probabilities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        rows = [self._network.ids(f"{_PREMISE}{evidence}{_HYPOTHESIS}{claim}") for evidence, claim in pairs]
        if self._among == "answers":
            return self._network.first_scores(rows, lambda logits: logits[:, self._answers].softmax(-1)[:, 1])
        return self._network.first_scores(rows, lambda logits: logits.softmax(-1)[:, self._answers[1]])


def _token(tokenizer: Any, answer: str, model: str) -> int:
    """The first token of an answer at the start of a text."""
    ids = tokenizer(answer, add_special_tokens=False)["input_ids"]
    meant = [token for token in ids if tokenizer.decode([token]).strip() == answer]
    if len(meant) != 1 or meant[0] == tokenizer.unk_token_id:
        raise WeightsError(
            f"The tokenizer of {model!r} has no token for {answer!r}, so it is not that of SEAHORSE.",
            "Name the right one by the option tokenizer, such as google/mt5-large.",
        )
    return int(meant[0])


_SCORE_TOKEN = 250089  # `<extra_id_10>`: its logit in the first step of the decoder is the score
_MAX_SCORE = 25.0


class MetricX(PairScorer):
    """The score of a translation without a reference: 0 to 25, as in MQM; higher is worse.

    As in the published code of google-research/metricx (metricx23/models.py, metricx24/predict.py): the input is
    `source: SOURCE candidate: TRANSLATION` without the end-of-text token, the decoder input is one padding token, and
    the logit of `<extra_id_10>` is clipped at 0 and 25. `parts` has `raw`, before clipping. Inputs longer than
    `max_length`, which the published code truncates, are `too_long`.

    Args:
        model: a folder, a name that `veriglot models` lists, or a name on the hub
            (`google/metricx-24-hybrid-large-v2p6`).
        tokenizer: checkpoint of the tokenizer, which MetricX's repositories lack: that of its base mT5, such as
            `google/mt5-large`.
        revision: of a model on the hub.
        max_length: maximum tokens of the input; 1,536 as in the published code's example.
        device: such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.
        dtype: of the weights; with `bfloat16`, scores vary with the batch in their third digit.
        accept_licence: whether to accept its licence, if it is not a permissive one.

    Raises:
        WeightsError: the model cannot be loaded, or has no such token.
        WeightsError: its licence must be accepted first.
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
        self._network = Network(
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
        if config.vocab_size <= _SCORE_TOKEN:
            raise WeightsError(
                f"{model!r} has {config.vocab_size:,} tokens, and MetricX reads its score off number {_SCORE_TOKEN:,}.",
                "Use a checkpoint of MetricX.",
            )
        self._longest = max_length
        self.signature = signature(scorer=self.name, window=max_length, **self._network.about)

    def measure(self, pairs: Sequence[Pair]) -> list[RawScore | NotScored]:
        """See `PairScorer`."""
        return answered([self._ids(pair) for pair in pairs], self._scores)

    def _ids(self, pair: Pair) -> list[int] | NotScored:
        ids = self._network.ids(f"source: {pair.source} candidate: {pair.response}")
        ids = ids[:-1] if ids and ids[-1] == self._network.tokenizer.eos_token_id else ids
        if len(ids) <= self._longest:
            return ids
        reason = f"source and translation have {len(ids):,} tokens, and the model takes {self._longest:,}"
        return NotScored(Status.TOO_LONG, reason)

    def _scores(self, rows: list[list[int]]) -> list[RawScore]:
        scores = self._network.first_scores(rows, lambda logits: logits[:, _SCORE_TOKEN])
        return [RawScore(min(max(raw, 0.0), _MAX_SCORE), {"raw": raw}) for raw in scores]


_FAITHFUL = ("faithful", "consistent", "correct", "supported", "entailment", "factual", "true", "yes")


class MFact(_ClaimScorer):
    """The probability of "faithful" by a classifier of text pairs; between 0 and 1, higher is better.

    Evidence longer than the model's maximum is split into overlapping windows, of which the best counts.

    Args:
        model: a folder, a name that `veriglot models` lists, or a name on the hub (`yfqiu-nlp/mFACT-zh_CN`); any
            classifier of text pairs.
        label: the output for "faithful", by its name or number. None takes it from the configuration, if one of the
            names says so (`faithful`, `consistent`, `supported`, `entailment` ...); for names such as `LABEL_1` it is
            required. A model with a single output gives its sigmoid.
        level: score the whole `response`, or each `sentence` or `fact` of it (and average), as Kang et al. do.
        claim_first: whether the model was trained on (summary, document) instead of (document, summary).
        revision: of a model on the hub.
        max_length: maximum tokens of a pair; None for the model's maximum.
        device: such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.
        accept_licence: whether to accept its licence, if it is not a permissive one.

    Raises:
        WeightsError: the model cannot be loaded, or its configuration does not say which label means "faithful".
        WeightsError: its licence must be accepted first.
        UsageError: an invalid option.
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
        self._network = Network(
            transformers.AutoModelForSequenceClassification,
            str(model),
            what="classifier of faithfulness",
            revision=revision,
            device=device,
            accept_licence=accept_licence,
        )
        self._column = _column(self._network.model.config, label, str(model))
        self._claim_first = claim_first
        room = self._network.effective_max_length(max_length)
        tokens = LockedTokenizer(self._network.tokenizer, str(model))
        super().__init__(tokens, room - tokens.special, level)
        self.signature = signature(
            scorer=self.name,
            label=self._column if self._column is not None else "sigmoid",
            level=level,
            order="claim-first" if claim_first else None,
            window=room,
            **self._network.about,
        )

    def _probabilities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        def run(batch: list[int]) -> Any:
            first, second = ([pairs[index][side] for index in batch] for side in (0, 1))
            pair = (second, first) if self._claim_first else (first, second)
            inputs = self._tokens.pairs(*pair).to(self._network.device)
            with torch.inference_mode():
                logits = self._network.model(**inputs).logits.float()
            chances = logits.sigmoid()[:, 0] if self._column is None else logits.softmax(-1)[:, self._column]
            return chances.tolist()

        return in_batches([self._tokens.count(evidence) + self._tokens.count(claim) for evidence, claim in pairs], run)


def _column(config: Any, label: str | int | None, model: str) -> int | None:
    """Index of the output for "faithful"; None for a model with a single output."""
    names = {int(number): str(name) for number, name in config.id2label.items()}
    if config.num_labels == 1:
        return None
    if label is not None:
        wanted = [number for number, name in names.items() if str(label) in (name, str(number))]
        if not wanted:
            raise UsageError(f"{model!r} has no label {label!r}.", f"It has {', '.join(names.values())}.")
        return wanted[0]
    faithful = [number for number, name in names.items() if name.strip().casefold() in _FAITHFUL]
    if len(faithful) != 1:
        raise WeightsError(
            f"The configuration of {model!r} does not say which label means faithful: {', '.join(names.values())}.",
            "Read its card, and give label= the name or the number.",
        )
    return faithful[0]


_Ids = tuple[list[int], list[int]]  # input ids and labels
_IGNORED = -100
_NUMBERS = 100_000_000  # maximum logits of a batch: vocabulary size times positions
_SMALLEST_BATCH = 256  # tokens of a batch


class ForcedDecoding(PairScorer):
    """A scorer that forces a model to decode the response, whatever it would generate itself.

    For an encoder-decoder model, the source is the encoder input; languages that are not given are identified. The
    end-of-text token counts as a token of the response; language tokens do not.

    Args:
        network: the model.
        codes: `TAG=CODE` separated by commas, for a tokenizer that needs language codes; None for a causal model.
    """

    def __init__(self, network: Network, codes: str | None) -> None:
        words = network.tokenizer
        self._network = network
        self._codes = None if codes is None else _Codes(words, codes)
        self._uncounted = sorted(set(words.all_special_ids) - {words.eos_token_id, words.unk_token_id})
        self._most = max(_SMALLEST_BATCH, _NUMBERS // len(words))
        self._room = getattr(network.model.config, "max_position_embeddings", None)

    @abstractmethod
    def _run(self, rows: list[_Ids]) -> list[RawScore]:
        """The scores of a batch of input ids and labels."""

    def measure(self, pairs: Sequence[Pair]) -> list[RawScore | NotScored]:
        """See `PairScorer`."""
        return answered([self._row(pair) for pair in pairs], self._results)

    def _results(self, rows: list[_Ids]) -> list[RawScore]:
        lengths = [len(ids) + (0 if self._codes is None else len(labels)) for ids, labels in rows]
        return in_batches(lengths, lambda batch: self._run([rows[index] for index in batch]), self._most)

    def _row(self, pair: Pair) -> _Ids | NotScored:
        ids = self._ids(pair)
        if isinstance(ids, NotScored):
            return ids
        length = max(map(len, ids))
        if self._room is not None and length > self._room:
            return NotScored(Status.TOO_LONG, f"{length:,} tokens, and the model takes {self._room:,}")
        if all(label == _IGNORED for label in ids[1]):
            return NotScored(Status.NOTHING_TO_COMPARE, "the response has no token of the model")
        return ids

    def _ids(self, pair: Pair) -> _Ids | NotScored:
        """Input ids and labels; `_IGNORED` labels do not count."""
        assert self._codes is not None
        return self._codes.ids(pair)

    def _counted(self, labels: torch.Tensor) -> torch.Tensor:
        """Which tokens of an encoder-decoder model count: all but language tokens."""
        return ~torch.isin(labels, torch.tensor(self._uncounted, dtype=labels.dtype, device=labels.device))


class LogProbability(ForcedDecoding):
    """Mean natural logarithm of the probability of the response's tokens: 0 and below, higher is better.

    Encoder-decoder models are Marian, NLLB, M2M, mBART and T5; see `ForcedDecoding`. For a causal model the `prompt`
    precedes the response, and only the response's tokens count. `parts` has `tokens` and `sum`.

    Args:
        model: a folder, a name that `veriglot models` lists, or a name on the hub.
        prompt: for a causal model: the text before the response; `{source}` and `{question}` are filled in.
        codes: if the tokenizer needs language codes: `TAG=CODE` separated by commas, such as
            `de=deu_Latn,en=eng_Latn`; missing tags are looked up in the tokenizer's own codes.
        revision: of a model on the hub.
        device: such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.
        dtype: of the weights; below `float32`, scores vary with the batch in their last digits.
        accept_licence: whether to accept its licence, if it is not a permissive one.

    Raises:
        WeightsError: the model cannot be loaded.
        WeightsError: its licence must be accepted first.
        UsageError: a prompt with other fields, or invalid codes.
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
        halves = bool(config.is_encoder_decoder)
        network = Network(
            transformers.AutoModelForSeq2SeqLM if halves else transformers.AutoModelForCausalLM,
            str(model),
            what="language model",
            revision=revision,
            device=device,
            dtype=dtype,
            accept_licence=accept_licence,
        )
        super().__init__(network, codes if halves else None)
        prompted = None if halves else digest([prompt])[:8]
        self.signature = signature(
            scorer=self.name, prompt=prompted, codes=codes or None, unit="token", **network.about
        )

    def _ids(self, pair: Pair) -> _Ids | NotScored:
        """See `ForcedDecoding`; for a causal model both have the same length, with the response at the end."""
        if self._codes is not None:
            return super()._ids(pair)
        ahead, target = self._joined(pair)
        return [*ahead, *target], [*[_IGNORED] * len(ahead), *target]

    def _joined(self, pair: Pair) -> _Ids:
        tokenizer = self._network.tokenizer
        before = self._prompt.format(source=pair.source, question=pair.question)
        ahead = self._network.ids(before) if before else []
        if ahead and ahead[-1] == tokenizer.eos_token_id:
            ahead = ahead[:-1]
        if not ahead:  # the first token needs a token before it
            start = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
            ahead = [] if start is None else [start]
        return ahead, tokenizer(pair.response, add_special_tokens=False, truncation=False, verbose=False)["input_ids"]

    def _run(self, rows: list[_Ids]) -> list[RawScore]:
        network = self._network
        ids, mask = network.padded([row for row, _ in rows], int(network.tokenizer.pad_token_id or 0))
        labels, _ = network.padded([row for _, row in rows], _IGNORED)
        options = {} if self._codes is None else {"labels": labels}
        with torch.inference_mode():
            logits = network.model(input_ids=ids, attention_mask=mask, **options).logits
        if self._codes is not None:
            labels = labels.masked_fill(~self._counted(labels), _IGNORED)
        else:
            logits, labels = logits[:, :-1], labels[:, 1:]
        counted = labels != _IGNORED
        chosen = logits.float().log_softmax(-1).gather(-1, labels.masked_fill(~counted, 0).unsqueeze(-1)).squeeze(-1)
        sums = (chosen * counted).double().sum(-1).tolist()
        pairs = zip(sums, counted.sum(-1).tolist(), strict=True)
        return [RawScore(total / tokens, {"tokens": float(tokens), "sum": total}) for total, tokens in pairs]


class _Codes:
    """Source and target of a pair as token ids, with language codes if the tokenizer needs them."""

    def __init__(self, tokenizer: Any, codes: str = "") -> None:
        self._tokenizer = tokenizer
        self._given = parse_codes(codes)
        self._wanted = hasattr(tokenizer, "src_lang") and hasattr(tokenizer, "tgt_lang")
        self._known = _own_codes(tokenizer) if self._wanted else {}

    def ids(self, pair: Pair) -> _Ids | NotScored:
        """Token ids of the source and of the target; or why there are none: the model lacks a language."""
        tokenizer = self._tokenizer
        if self._wanted:
            tags = pair_languages(pair)
            ends = [self._code(tag) for tag in tags]
            if None in ends:
                missing = tags[ends.index(None)]
                side = "source" if ends[0] is None else "response"
                reason = f"the model has no code for the language of the {side} ({missing or 'unknown'})"
                return NotScored(Status.UNSUPPORTED_LANGUAGE, reason)
            tokenizer.src_lang, tokenizer.tgt_lang = ends
        source = tokenizer(pair.source, truncation=False, verbose=False)["input_ids"]
        target = tokenizer(text_target=pair.response, truncation=False, verbose=False)["input_ids"]
        return list(source), list(target)

    def _code(self, tag: str | None) -> str | None:
        entry = find_language(tag) if tag is not None else None
        if tag is None or entry is None:
            return None
        for key in (tag, entry.tag, entry.base):
            if key in self._given:
                return self._given[key]
        candidates = (translation_codes()["nllb"].get(entry.tag, entry.tag), entry.tag, entry.base, *entry.aliases)
        for name in candidates:
            if name.casefold() in self._known:
                return self._known[name.casefold()]
        codes = [code for key, code in self._known.items() if key.partition("_")[0] == entry.base]
        return codes[0] if len(codes) == 1 else None  # mBART's `de_DE`


def _own_codes(tokenizer: Any) -> dict[str, str]:
    """The language codes among a tokenizer's own tokens."""
    table = getattr(tokenizer, "lang_code_to_id", None) or getattr(tokenizer, "lang_code_to_token", None)
    names = list(table) if table else list(getattr(tokenizer, "additional_special_tokens", ()) or ())
    if not names:
        names = [str(token) for token in tokenizer.added_tokens_decoder.values()]
    return {name.strip("_<>").casefold(): name for name in names}
