"""Natural language inference: claims of responses, premises of evidence, and how far one supports the other."""

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
        text: what is held against the evidence; of a fact, with the context that it needs to be read by itself.
        kind: `sentence`, or the kind of fact.
        parts: its own places in the response, half-open, in order; together the claims of a response hold each of its
            words once.
    """

    text: str
    kind: str
    parts: tuple[Range, ...]


@dataclass(frozen=True)
class Premise:
    """A stretch of the evidence: `[start, end)` of the passage `passage`."""

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
    """Facts as texts, without the dates, numbers and names in their context that are checked apart."""
    apart = [part for fact in found_facts if fact.kind in _VALUES for part in fact.parts]
    claims = []
    for fact in found_facts:
        context = [left for range_ in fact.context for left in _without(range_, apart)]
        texts = (response[start:end].strip() for start, end in sorted({*fact.parts, *context}))
        claims.append(Claim(" ".join(text for text in texts if text), fact.kind, fact.parts))
    return claims


def _without(range_: Range, cuts: list[Range]) -> list[Range]:
    """What is left of a range without others that lie in it, in order."""
    start, end = range_
    left = []
    for low, high in sorted(cut for cut in cuts if start <= cut[0] and cut[1] <= end):
        left.append((start, low))
        start = high
    return [(low, high) for low, high in [*left, (start, end)] if low < high]


def declared_for(entailment: Entailment, tag: str) -> bool:
    """Whether a model is declared for a language, given by its tag; one that declares none takes any."""
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
    """Judges pairs: does the premise say what the hypothesis says, or otherwise, or neither?

    What a pair gets hangs on its two texts alone, never on what else is asked with it or was asked before, up to the
    last digits of the arithmetic (1e-5). Nothing is cut: texts longer than the model takes are judged in stretches.

    Attributes:
        signature: one line `key:value|key:value` that tells apart any two models whose judgements differ.
        revision: which model it is, whatever machine it runs on: a commit, or a hash of its files.
        labels: what it tells apart, in its own order: `entailment`, `neutral`, `contradiction`; or `entailment`,
            `not_entailment`, which says nothing of contradiction: its third column is 0.
        languages: base tags of the languages that it is declared to be for; empty where nobody has said.
    """

    signature: str
    revision: str
    labels: tuple[str, ...]
    languages: frozenset[str]

    def judge(self, pairs: Sequence[tuple[str, str]]) -> Float64s:
        """Probabilities of entailment, neutral and contradiction, shape (n, 3), for pairs of premise and hypothesis.

        A pair that fits gets the model's own three, which sum to 1. Of a premise in several windows the entailment is
        the greatest, and so is the contradiction: support by any window is support (SummaC's max). Of a hypothesis in
        several pieces the entailment is the least, since every piece has to be supported, and the contradiction the
        greatest. Neutral is then `1 - max(entailment, contradiction)`, as UNV of Kang et al.
        """
        ...

    def pieces(self, hypothesis: str) -> list[tuple[int, int]]:
        """The stretches in which a hypothesis is judged, half-open code point ranges: one, unless it is very long."""
        ...


# How far premises support claims: the zero-shot method of SummaC, and the four metrics that Kang et al. make of it.
#
# For a claim `i` and premises `m`, with the model's probabilities of entailment `e` and contradiction `c`
# (Kang, Blevins, Zettlemoyer 2024, section 2.2; Laban et al. 2022, SummaC-ZS with max):
#
#     ENT_i  = max_m e(m, i)
#     CON_i  = max_m c(m, i)
#     DIFF_i = ENT_i - CON_i
#     UNV_i  = 1 - max(ENT_i, CON_i)


_DIGITS = 6  # beyond them the arithmetic of a batch shows
_PAIRS = 65536  # judged in one call


@dataclass(frozen=True)
class Support:
    """What n claims got from the premises that they were held against.

    Attributes:
        entailment: ENT, 0 to 1, shape (n,).
        contradiction: CON, 0 to 1, shape (n,).
        nearest: place of the premise with the greatest entailment, the first of several, shape (n,).
        opposed: place of the premise with the greatest contradiction, likewise.
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


def hold(entailment: Entailment, tasks: Sequence[_Task]) -> list[Support]:
    """Hold claims against premises, every claim of a task against every premise of it."""
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
    """Neighbouring tasks of some `_PAIRS` pairs together; one that has more stands by itself."""
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
    """What of a sample is held against what, and the language that its response was read in."""

    language: str
    claims: list[Claim]
    premises: list[Premise]


class ClaimReader:
    """Reads the claims and premises of samples, and has a model judge them.

    Args:
        model: a name or folder as `load_entailment` takes it, or an entailment model.
        claim: `sentence` or `fact`: what of the response is held against the evidence, piece by piece.
        premise_sentences: sentences of the evidence that make a premise; 0 for whole passages.
        question: whether the sample's question stands before each claim.
        options: of the entailment model.

    Raises:
        UnknownNameError, UsageError: an option that makes no sense.
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
        """What a signature says of it."""
        return {
            "claim": self.level,
            "premise": f"sentences-{self._size}" if self._size else "passage",
            "question": "before each claim" if self._question else None,
        }

    def read(self, sample: Sample, tag: str) -> Claims | NotScored:
        """The claims and premises of a sample in a language, possibly none; or that the model does not know it."""
        if not declared_for(self.entailment, tag):
            known = ", ".join(sorted(self.entailment.languages))
            return NotScored(Status.UNSUPPORTED_LANGUAGE, f"the model is declared for {known} only")
        claims = claims_of(sample.response, tag, self.level, sample.question if self._question else None)
        return Claims(tag, claims, premises_of(sample.evidence, self._size))

    def hold(self, samples: Sequence[Claims]) -> list[Support | NotScored]:
        """The support of each sample's claims; where the batch fails, each sample is judged by itself."""
        tasks = [([c.text for c in sample.claims], [p.text for p in sample.premises]) for sample in samples]
        try:
            return [*hold(self.entailment, tasks)]
        except Exception as error:  # one sample's failure must not lose the batch
            if len(samples) == 1:
                return [NotScored.failed(error)]
            return [support for sample in samples for support in self.hold([sample])]
