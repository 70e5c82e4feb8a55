"""Natural language inference: claims of responses, premises of evidence, and how far premises support claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, get_args

import numpy as np

from veriglot.errors import UnknownNameError, UsageError
from veriglot.judging.base import NotScored
from veriglot.plugins import Entry, Registry
from veriglot.records import Evidence, Sample, Status
from veriglot.records.languages import base_tag
from veriglot.text.facts import Fact, facts
from veriglot.text.segmentation import sentences, words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.arrays import Float64s, Int64s

__all__ = ["ENTAILMENTS", "Claim", "ClaimReader", "Claims", "Entailment", "Support"]


Level = Literal["sentence", "fact"]
LEVELS: tuple[str, ...] = get_args(Level)
Range = tuple[int, int]
_VALUES = frozenset({"date", "number", "name"})


@dataclass(frozen=True)
class Claim:
    """A sentence or an atomic fact of a response.

    Attributes:
        text: the hypothesis; for a fact, with the context that makes it readable by itself.
        kind: `sentence`, or the kind of fact.
        parts: its code point ranges in the response, half-open, in order; each word of the response belongs to exactly
            one claim.
    """

    text: str
    kind: str
    parts: tuple[Range, ...]


@dataclass(frozen=True)
class Premise:
    """A part of the evidence: `[start, end)` of the passage with the id `passage`."""

    text: str
    passage: str
    start: int
    end: int


def claims_of(response: str, tag: str | None, level: Level, question: str | None = None) -> list[Claim]:
    """The claims of a response, in order."""
    if level == "fact":
        claims = _fact_claims(response, facts(response, tag))
    else:
        places = (range_ for range_ in sentences(response, tag) if words(response[slice(*range_)], tag))
        claims = [Claim(response[start:end], "sentence", ((start, end),)) for start, end in places]
    if question is None or not question.strip():
        return claims
    return [replace(claim, text=f"{question.strip()} {claim.text}") for claim in claims]


def _fact_claims(response: str, found_facts: list[Fact]) -> list[Claim]:
    """Claims of facts; dates, numbers and names that are facts by themselves are left out of the others' contexts."""
    apart = [part for fact in found_facts if fact.kind in _VALUES for part in fact.parts]
    claims = []
    for fact in found_facts:
        context = [left for range_ in fact.context for left in _without(range_, apart)]
        texts = (response[start:end].strip() for start, end in sorted({*fact.parts, *context}))
        claims.append(Claim(" ".join(text for text in texts if text), fact.kind, fact.parts))
    return claims


def _without(range_: Range, cuts: list[Range]) -> list[Range]:
    """A range without the `cuts` that lie within it, in order."""
    start, end = range_
    left = []
    for low, high in sorted(cut for cut in cuts if start <= cut[0] and cut[1] <= end):
        left.append((start, low))
        start = high
    return [(low, high) for low, high in [*left, (start, end)] if low < high]


def declared_for(entailment: Entailment, tag: str) -> bool:
    """Whether a model supports the language of a tag; a model that states no languages takes any."""
    return not entailment.languages or base_tag(tag).lower() in entailment.languages


def premises_of(evidence: Sequence[Evidence], size: int = 1) -> list[Premise]:
    """The premises of the evidence, in order."""
    premises = []
    for passage in evidence:
        for start, end in _ranges(passage, size):
            text = passage.text[start:end]
            if words(text):
                premises.append(Premise(text, passage.id or "", start, end))
    return premises


def _ranges(passage: Evidence, size: int) -> list[Range]:
    if not passage.text.strip():
        return []
    if size == 0:
        return [(0, len(passage.text))]
    places = sentences(passage.text, passage.language)
    step = max(size - size // 2, 1)
    last = max(len(places) - size, 0)
    firsts = sorted({*range(0, last, step), last})
    return [(places[first][0], places[min(first + size, len(places)) - 1][1]) for first in firsts]


class Entailment(Protocol):
    """An entailment model: does the premise entail the hypothesis, contradict it, or neither?

    The result for a pair depends on its two texts alone, not on the batch or on earlier calls, up to rounding (1e-5).
    Nothing is truncated: texts longer than the model takes are judged in chunks.

    Attributes:
        signature: one line `key:value|key:value`, different for any two models whose results differ.
        revision: of the model, the same on every machine: a commit, or a hash of its files.
        labels: of its outputs, in its own order: `entailment`, `neutral`, `contradiction`; or `entailment`,
            `not_entailment`, with which the probability of contradiction is always 0.
        languages: base tags of the languages that it supports; empty if it states none.
    """

    signature: str
    revision: str
    labels: tuple[str, ...]
    languages: frozenset[str]

    def judge(self, pairs: Sequence[tuple[str, str]]) -> Float64s:
        """Probabilities of entailment, neutral and contradiction, shape (n, 3), for pairs (premise, hypothesis).

        A pair that fits gets the model's own three, which sum to 1. Over several windows of a premise, entailment and
        contradiction are the maximum: support by any window is support (SummaC's max). Over several pieces of a
        hypothesis, entailment is the minimum, since every piece needs support, and contradiction the maximum. Neutral
        is then `1 - max(entailment, contradiction)`, as UNV of Kang et al.
        """
        ...

    def pieces(self, hypothesis: str) -> list[tuple[int, int]]:
        """The chunks in which a hypothesis is judged, half-open code point ranges; only a very long one has several."""
        ...


# How far premises support claims: the zero-shot method of SummaC, and the four metrics that Kang et al. derive from it.
#
# For claim `i` and premises `m`, with the model's probabilities of entailment `e` and contradiction `c`
# (Kang, Blevins, Zettlemoyer 2024, section 2.2; Laban et al. 2022, SummaC-ZS with max):
#
#     ENT_i  = max_m e(m, i)
#     CON_i  = max_m c(m, i)
#     DIFF_i = ENT_i - CON_i
#     UNV_i  = 1 - max(ENT_i, CON_i)


_DIGITS = 6  # further digits depend on the batch
_PAIRS = 65536  # most pairs of one call


@dataclass(frozen=True)
class Support:
    """The support of n claims by their premises.

    Attributes:
        entailment: ENT, 0 to 1, shape (n,).
        contradiction: CON, 0 to 1, shape (n,).
        nearest: index of the premise with the highest entailment (the first, if equal), shape (n,).
        opposed: index of the premise with the highest contradiction (the first, if equal), shape (n,).
    """

    entailment: Float64s
    contradiction: Float64s
    nearest: Int64s
    opposed: Int64s

    @property
    def difference(self) -> Float64s:
        """DIFF, -1 to 1, shape (n,)."""
        return self.entailment - self.contradiction

    @property
    def unverified(self) -> Float64s:
        """UNV, 0 to 1, shape (n,)."""
        return 1.0 - np.maximum(self.entailment, self.contradiction)


_Task = tuple[Sequence[str], Sequence[str]]  # claims and premises


def judge_claims(entailment: Entailment, tasks: Sequence[_Task]) -> list[Support]:
    """The support of the claims of each task; within a task, every claim is paired with every premise."""
    supports: list[Support] = []
    for group in _groups(tasks):
        rows = entailment.judge(
            [(premise, claim) for claims, premises in group for claim in claims for premise in premises]
        )
        start = 0
        for claims, premises in group:
            end = start + len(claims) * len(premises)
            part = rows[start:end].reshape(len(claims), len(premises), 3).round(_DIGITS)
            entailed, contradicted = part[:, :, 0], part[:, :, 2]
            supports.append(Support(entailed.max(1), contradicted.max(1), entailed.argmax(1), contradicted.argmax(1)))
            start = end
    return supports


def _groups(tasks: Sequence[_Task]) -> Iterator[list[_Task]]:
    """Neighbouring tasks, in groups of at most `_PAIRS` pairs; a task with more is a group by itself."""
    group: list[_Task] = []
    pairs = 0
    for claims, premises in tasks:
        size = len(claims) * len(premises)
        if group and pairs + size > _PAIRS:
            yield group
            group, pairs = [], 0
        group.append((claims, premises))
        pairs += size
    if group:
        yield group


ENTAILMENTS = Registry(
    "entailment model",
    "veriglot.judging.nli",
    {
        "transformers": Entry(
            "veriglot.judging.nli_classifier:SequenceClassifier",
            extra="local",
            summary="any sequence classifier of the transformers library that was trained on pairs with NLI labels",
        )
    },
)


def load_entailment(model: str | Path, *, kind: str = "transformers", **options: Any) -> Entailment:
    """An entailment model."""
    loaded: Entailment = ENTAILMENTS.make(kind, model=str(model), **options)
    return loaded


@dataclass(frozen=True)
class Claims:
    """The claims and premises of a sample, and the language of its response."""

    language: str
    claims: list[Claim]
    premises: list[Premise]


class ClaimReader:
    """Extracts claims and premises of samples, and has a model judge them.

    Args:
        model: an entailment model, or its name or folder for `load_entailment`.
        claim: the unit of the response that is judged: `sentence` or `fact`.
        premise_sentences: sentences of a premise; 0 for whole passages.
        question: whether to put the sample's question before each claim.
        options: of the entailment model.

    Raises:
        UnknownNameError, UsageError: an invalid option.
    """

    def __init__(
        self, model: str | Path | Entailment, claim: str, premise_sentences: int, *, question: bool, **options: Any
    ) -> None:
        if claim not in LEVELS:
            raise UnknownNameError("kind of claim", claim, LEVELS)
        if premise_sentences < 0:
            raise UsageError(
                f"A premise is made of {premise_sentences} sentences.",
                remedy="Give premise_sentences 1 or more, or 0 for whole passages.",
            )
        self.level = cast("Level", claim)
        self._size = premise_sentences
        self._question = question
        self.entailment = load_entailment(model, **options) if isinstance(model, str | Path) else model

    def settings(self) -> dict[str, object]:
        """The settings for a detector's signature."""
        return {
            "claim": self.level,
            "premise": f"sentences-{self._size}" if self._size else "passage",
            "question": "before each claim" if self._question else None,
        }

    def read(self, sample: Sample, tag: str) -> Claims | NotScored:
        """The claims and premises of a sample (possibly none), or why its language is not supported."""
        if not declared_for(self.entailment, tag):
            known = ", ".join(sorted(self.entailment.languages))
            return NotScored(Status.UNSUPPORTED_LANGUAGE, f"the model is declared for {known} only")
        claims = claims_of(sample.response, tag, self.level, sample.question if self._question else None)
        return Claims(tag, claims, premises_of(sample.evidence, self._size))

    def judge(self, samples: Sequence[Claims]) -> list[Support | NotScored]:
        """The support of each sample's claims. If a batch fails, its samples are judged one by one."""
        tasks = [([c.text for c in sample.claims], [p.text for p in sample.premises]) for sample in samples]
        try:
            return [*judge_claims(self.entailment, tasks)]
        except Exception as error:  # one sample must not fail the batch
            if len(samples) == 1:
                return [NotScored.failed(error)]
            return [support for sample in samples for support in self.judge([sample])]
