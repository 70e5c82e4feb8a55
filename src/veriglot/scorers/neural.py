"""Neural scorers of published checkpoints: SEAHORSE Q4 (Clark et al. 2023), MetricX and mFACT."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
import transformers

from veriglot.errors import UsageError, WeightsError
from veriglot.hub.cards import agree
from veriglot.hub.checkpoints import batches, checkpoint, device_for, hub_options, loading, positions, room_for
from veriglot.judging.base import NotScored
from veriglot.judging.classifiers import Tokens
from veriglot.records import Direction, Status
from veriglot.scorers.base import Measured, Pair, PairScorer
from veriglot.signatures import checkpoint_revision, signature
from veriglot.text.facts import facts
from veriglot.text.segmentation import sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MFact", "MetricX", "Seahorse", "load", "padded"]


Level = Literal["response", "sentence", "fact"]
UNITS = ("response", "sentence", "fact")
_FEWEST = 16  # tokens of evidence that a claim leaves room for


class _Judged(NamedTuple):
    evidence: str
    claim: str


class ClaimScorer(PairScorer):
    """The mean, over the claims of a response, of the best probability that any window of the evidence supports each.

    `parts` holds `claims` (how many), `least` (of the claim that is supported least) and `windows` (of the evidence,
    at most, for a claim). A claim that leaves no room for evidence makes the sample `too_long`.

    Args:
        tokens: the model's tokenizer.
        room: tokens of evidence and claim together, special ones and words of the prompt not counted.
        level: what is one claim: the whole response, each sentence, or each atomic fact.

    Raises:
        UsageError: no such level, or no room.
    """

    def __init__(self, tokens: Tokens, room: int, level: Level) -> None:
        if level not in UNITS:
            raise UsageError(f"There is no level {level!r}.", remedy=f"Give one of {', '.join(UNITS)}.")
        if room < 2 * _FEWEST:
            raise UsageError(f"The model has room for {room} tokens, which is too few.", remedy="Raise max_length.")
        self._tokens, self._room, self._level = tokens, room, level

    @abstractmethod
    def probabilities(self, judged: Sequence[tuple[str, str]]) -> list[float]:
        """The probability, for each (evidence, claim), that the one supports the other; none is longer than `room`."""

    def measure(self, pairs: Sequence[Pair]) -> list[Measured | NotScored]:
        """See `PairScorer`."""
        plans = [self._plan(pair) for pair in pairs]
        asked = [plan for plan in plans if not isinstance(plan, NotScored)]
        distinct = list(dict.fromkeys(judged for plan in asked for claim in plan for judged in claim))
        known = dict(zip(distinct, self.probabilities(distinct) if distinct else [], strict=True))
        return [plan if isinstance(plan, NotScored) else _measured(plan, known) for plan in plans]

    def _plan(self, pair: Pair) -> list[list[_Judged]] | NotScored:
        """For each claim, the windows that it is held against."""
        claims = self._claims(pair)
        if not claims:
            return NotScored(Status.NOTHING_TO_COMPARE, f"the response holds no {self._level}")
        plan = []
        for claim in claims:
            left = self._room - self._tokens.count(claim)
            if left < _FEWEST:
                return NotScored(Status.TOO_LONG, self._too_long(claim))
            windows = self._tokens.stretches(pair.source, left, overlap=True)
            plan.append([_Judged(pair.source[start:end], claim) for start, end in windows])
        return plan

    def _claims(self, pair: Pair) -> list[str]:
        text = pair.response
        if self._level == "response":
            return [text]
        if self._level == "sentence":
            return [text[start:end] for start, end in sentences(text, pair.language)]
        return [fact.text(text) for fact in facts(text, pair.language)]

    def _too_long(self, claim: str) -> str:
        advice = " (level=sentence judges it in parts)" if self._level == "response" else ""
        return (
            f"a {self._level} of {self._tokens.count(claim):,} tokens leaves no room for evidence"
            f" among {self._room:,}{advice}"
        )


def _measured(plan: list[list[_Judged]], known: dict[_Judged, float]) -> Measured:
    best = [max(known[judged] for judged in windows) for windows in plan]
    parts = {"claims": float(len(best)), "least": min(best), "windows": float(max(map(len, plan)))}
    return Measured(sum(best) / len(best), parts)


def head_scale(source: str, model: Any, **options: Any) -> float:
    """What the logits of a checkpoint have to be multiplied by to be those of transformers 4.

    Checkpoints were published for that version. Where the head is the embeddings, it divided the decoder's output by
    the square root of its width. Version 5 does so for T5, and not for mT5; and it sets the flag that says so, whatever
    the file holds.

    Args:
        source: folder or name on the hub.
        model: the loaded model.
        options: further arguments of `get_config_dict`, such as the revision.
    """
    if model.config.model_type != "mt5":
        return 1.0
    stored, _ = transformers.PretrainedConfig.get_config_dict(source, **options)
    return float(model.config.d_model**-0.5) if stored.get("tie_word_embeddings", True) else 1.0


_PROBE = "the a 1 2"


@dataclass(frozen=True)
class Network:
    """A checkpoint that is ready to run.

    Attributes:
        source: its folder, or its name on the hub.
        tokenizer, model: of transformers.
        device: where the model is.
        about: what a signature says of it: revision, device, kind of numbers, versions.
    """

    source: str
    tokenizer: Any
    model: Any
    device: torch.device
    about: dict[str, str | None]


def load(
    kind: Any,
    model: str,
    *,
    what: str,
    tokenizer: str | None = None,
    revision: str | None = None,
    device: str | None = None,
    dtype: str = "float32",
    trust_remote_code: bool = False,
    accept_licence: bool = False,
) -> Network:
    """Load a checkpoint once its licence was shown, and accepted where it has to be.

    Args:
        kind: class of transformers whose `from_pretrained` loads it.
        model: a folder, a name that `veriglot models` lists, or a name on the hub.
        what: what it should be, for messages.
        tokenizer: checkpoint of the tokenizer, where the model's own has none.
        revision, device, dtype, trust_remote_code: as elsewhere.
        accept_licence: a licence that is not permissive is accepted.

    Raises:
        WeightsError: it cannot be loaded, or parts of its weights are missing from it.
        LicenceError: its licence has to be accepted first.
        UsageError: there is no such device.
    """
    agree(model, accepted=accept_licence)
    source, words = checkpoint(model), checkpoint(tokenizer or model)
    options = {"trust_remote_code": trust_remote_code, **hub_options(source, revision)}
    with loading(what, source):
        network, report = kind.from_pretrained(source, dtype=dtype, output_loading_info=True, **options)
    with loading(f"tokenizer of the {what}", words):
        own = options if words == source else {**options, **hub_options(words)}
        read = transformers.AutoTokenizer.from_pretrained(words, **own)
    absent = sorted(report.get("missing_keys", ()))
    if absent:
        raise WeightsError(
            f"The {what} {source!r} lacks weights: {', '.join(absent[:3])}{' ...' if len(absent) > 3 else ''}.",
            remedy="They would be random. Take a checkpoint that was trained for this.",
        )
    _knows_text(read, words, what)
    where = device_for(device)
    about: dict[str, str | None] = {
        "model": str(model),
        "revision": checkpoint_revision(source, network.config),
        "tokenizer": checkpoint_revision(words, None) if words != source else None,
        "dtype": dtype,
        "device": where.type,
        "transformers": transformers.__version__,
        "torch": torch.__version__,
    }
    return Network(source, read, network.to(where).eval(), where, about)


def _knows_text(tokenizer: Any, source: str, what: str) -> None:
    """Of a checkpoint without one, the library makes a tokenizer that knows no letter, and says nothing."""
    ids = tokenizer(_PROBE, add_special_tokens=False)["input_ids"]
    special = {tokenizer.unk_token_id, *tokenizer.all_special_ids}
    if not [token for token in ids if token not in special and tokenizer.decode([token]).strip()]:
        raise WeightsError(
            f"The {what} {source!r} has no tokenizer.",
            remedy="Name the checkpoint of the right one by the option tokenizer.",
        )


def padded(rows: Sequence[Sequence[int]], fill: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids on the left and `fill` on the right, and which are tokens: both of shape (b, longest)."""
    longest = max(len(row) for row in rows)
    ids = torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows], device=device)
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows], device=device)
    return ids, mask


_PREMISE, _HYPOTHESIS = "premise: ", " hypothesis: "  # as the model's card has it
_ANSWERS = ("0", "1")


class Seahorse(ClaimScorer):
    """The probability of the first token `1` of the model's answer; between 0 and 1, higher is better.

    The input is `premise: EVIDENCE hypothesis: RESPONSE` (the model's card). The probability is over the whole
    vocabulary, as in TRUE (Honovich et al. 2022), whose training it follows; `among=answers` takes it among `0` and
    `1` alone. Evidence that is longer than `max_length` is seen in overlapping windows, of which the best counts.

    Args:
        model: a folder, a name that `veriglot models` lists, or a name on the hub (`google/seahorse-large-q4`).
        level: judge the whole `response`, or each `sentence` or `fact` of it (the mean counts), as Kang et al. do.
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
        self._scale = head_scale(
            self._network.source, self._network.model, **hub_options(self._network.source, revision)
        )
        tokens = Tokens(self._network.tokenizer, str(model))
        words = tokens.count(_PREMISE) + tokens.count(_HYPOTHESIS) + 4  # what joins them may part in other tokens
        super().__init__(tokens, max_length - words, level)
        self.signature = signature(scorer=self.name, level=level, among=among, window=max_length, **self._network.about)

    def probabilities(self, judged: Sequence[tuple[str, str]]) -> list[float]:
        """See `ClaimScorer`."""
        texts = [f"{_PREMISE}{evidence}{_HYPOTHESIS}{claim}" for evidence, claim in judged]
        rows = [self._network.tokenizer(text, truncation=False, verbose=False)["input_ids"] for text in texts]
        probabilities = [0.0] * len(rows)
        for batch in batches([len(row) for row in rows]):
            for index, chance in zip(batch, self._run([rows[index] for index in batch]), strict=True):
                probabilities[index] = chance
        return probabilities

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
        self._scale = head_scale(
            self._network.source, self._network.model, **hub_options(self._network.source, revision)
        )
        self._longest = max_length
        self.signature = signature(scorer=self.name, window=max_length, **self._network.about)

    def measure(self, pairs: Sequence[Pair]) -> list[Measured | NotScored]:
        """See `PairScorer`."""
        rows = [self._ids(pair) for pair in pairs]
        results: list[Measured | NotScored] = [_too_long(len(row), self._longest) for row in rows]
        fits = [index for index, row in enumerate(rows) if len(row) <= self._longest]
        for batch in batches([len(rows[index]) for index in fits]):
            places = [fits[number] for number in batch]
            for index, raw in zip(places, self._run([rows[index] for index in places]), strict=True):
                results[index] = Measured(min(max(raw, 0.0), _WORST), {"raw": raw})
        return results

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


def _too_long(tokens: int, most: int) -> NotScored:
    return NotScored(Status.TOO_LONG, f"source and translation have {tokens:,} tokens, and the model takes {most:,}")


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
        level: judge the whole `response`, or each `sentence` or `fact` of it (the mean counts), as Kang et al. do.
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
        takes = positions(self._network.tokenizer, self._network.model)
        room = room_for(str(model), takes, max_length)
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

    def probabilities(self, judged: Sequence[tuple[str, str]]) -> list[float]:
        """See `ClaimScorer`."""
        probabilities = [0.0] * len(judged)
        lengths = [self._tokens.count(evidence) + self._tokens.count(claim) for evidence, claim in judged]
        for batch in batches(lengths):
            first, second = ([judged[index][side] for index in batch] for side in (0, 1))
            pair = (second, first) if self._claim_first else (first, second)
            inputs = self._tokens.pairs(*pair).to(self._network.device)
            with torch.inference_mode():
                logits = self._network.model(**inputs).logits.float()
            chances = logits.sigmoid()[:, 0] if self._column is None else logits.softmax(-1)[:, self._column]
            for index, chance in zip(batch, chances.tolist(), strict=True):
                probabilities[index] = chance
        return probabilities


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
    faithful = [number for number, name in names.items() if name.strip().casefold() in _FAITHFUL]
    if len(faithful) != 1:
        raise WeightsError(
            f"The configuration of {model!r} does not say which label means faithful: {', '.join(names.values())}.",
            remedy="Read its card, and give label= the name or the number.",
        )
    return faithful[0]
