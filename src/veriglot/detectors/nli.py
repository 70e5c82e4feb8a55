"""The NLI detector: which claims of a response no premise of the evidence entails."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from veriglot.judging.base import (
    BaseDetector,
    NotScored,
    ResolvedLanguage,
    admit,
    check_threshold,
    evidence_notes,
    has_fact_rules,
    without_words,
)
from veriglot.judging.nli import ClaimReader, Claims, Support
from veriglot.records import Pointer, Prediction, Span, Word
from veriglot.signatures import digest, signature
from veriglot.text.segmentation import words

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from veriglot.judging.nli import Entailment, Premise
    from veriglot.records import Sample

__all__ = ["NLI"]

_DIGITS = 4
_CONTRADICTED = 0.5  # the threshold of Kang et al. for CON
_RULE = 1  # how claims, premises and marks are made; rises when a prediction may change
_THRESHOLD = 0.5  # that of Kang et al. for ENT: a claim is supported from there on


@dataclass(frozen=True)
class JudgedClaim:
    """A claim and whether the evidence supports it.

    Attributes:
        parts: its places in the response.
        confidence: probability that the evidence does not support it, `1 - ENT`.
        type: what it is if it is marked: `contradicted` or `unverified`.
        support: the premise that supports it best.
        against: what a mark points at: the premise that contradicts it most where one does, else `support`.
    """

    parts: tuple[tuple[int, int], ...]
    confidence: float
    type: str
    support: Pointer
    against: Pointer


def judged_claims(claims: Claims, support: Support) -> list[JudgedClaim]:
    """Each claim with its support, in order."""
    judged = []
    for index, claim in enumerate(claims.claims):
        contradicted = float(support.contradiction[index]) >= _CONTRADICTED
        nearest = _pointer(claims.premises[int(support.nearest[index])])
        opposed = _pointer(claims.premises[int(support.opposed[index])])
        judged.append(
            JudgedClaim(
                claim.parts,
                min(max(round(1.0 - float(support.entailment[index]), _DIGITS), 0.0), 1.0),
                "contradicted" if contradicted else "unverified",
                nearest,
                opposed if contradicted else nearest,
            )
        )
    return judged


def spans_of(sample: Sample, judged: Sequence[JudgedClaim], threshold: float) -> tuple[Span, ...]:
    """A span for each part of each claim whose confidence reaches the threshold, in order of the text."""
    spans = [
        Span(start, end, claim.type, claim.confidence, sample.response[start:end], (claim.against,))
        for claim in judged
        if claim.confidence >= threshold
        for start, end in claim.parts
    ]
    return tuple(sorted(spans, key=lambda span: span.start))


def words_of(sample: Sample, language: str, judged: Sequence[JudgedClaim], threshold: float) -> tuple[Word, ...]:
    """Every word with its claim's confidence; a supported one with the premise that supports it."""
    parts = sorted((start, end, index) for index, claim in enumerate(judged) for start, end in claim.parts)
    starts = [start for start, _, _ in parts]
    claims = [
        (start, end, judged[parts[bisect_right(starts, start) - 1][2]])
        for start, end in words(sample.response, language)
    ]
    return tuple(
        Word(start, end, claim.confidence, () if claim.confidence >= threshold else (claim.support,))
        for start, end, claim in claims
    )


def _pointer(premise: Premise) -> Pointer:
    return Pointer(premise.passage, premise.start, premise.end)


class NLI(BaseDetector[tuple[ResolvedLanguage, Claims], Support]):
    """Marks the sentences or facts of a response that no premise of the evidence entails (SummaC-ZS with max).

    A claim's confidence is `1 - ENT`: the model's own probability, not a calibrated one, and each prediction says so
    (`calibration:none`). See `docs/nli.md`.

    Args:
        model: a folder, a name that `veriglot models` lists, or a name on the hub; or an entailment model.
        threshold: confidence from which a claim is marked, 0 to 1; None takes 0.5.
        words: whether predictions carry every word, each with the confidence of its claim.
        claim: `sentence` or `fact`: what of the response is held against the evidence, piece by piece.
        premise_sentences: sentences of the evidence that a claim is held against at a time; 0 for whole passages.
        question: whether the sample's question stands before each claim, for answers that say little by themselves.
        options: of the entailment model; see `veriglot.judging.nli.load_entailment`.

    Raises:
        MissingExtraError: the packages of the model are not installed.
        WeightsError: it cannot be loaded, or its labels do not say what they mean.
        UnknownNameError, UsageError: an option that makes no sense.
    """

    taxonomy = "support"

    def __init__(
        self,
        model: str | Path | Entailment,
        *,
        threshold: float | None = None,
        words: bool = False,
        claim: str = "sentence",
        premise_sentences: int = 1,
        question: bool = False,
        **options: Any,
    ) -> None:
        check_threshold(threshold)
        super().__init__(_THRESHOLD if threshold is None else threshold, words=words)
        self._reader = ClaimReader(model, claim, premise_sentences, question=question, **options)
        self._entailment = self._reader.entailment

    @cached_property
    def name(self) -> str:
        """`nli@`, the version of the rules, and the beginning of the model's revision."""
        return f"nli@{_RULE}-{self._entailment.revision[:8]}"

    @cached_property
    def signature(self) -> str:
        """Name, model, what is held against what, and threshold in one line."""
        return signature(
            detector=self.name,
            model=digest([self._entailment.signature])[:12],
            **self._reader.settings(),
            threshold=self.threshold,
            unit=self._reader.level,
        )

    def _plan(self, sample: Sample) -> tuple[ResolvedLanguage, Claims] | NotScored:
        resolved = admit(sample)
        if isinstance(resolved, NotScored):
            return resolved
        claims = self._reader.read(sample, resolved.tag)
        if isinstance(claims, NotScored):
            return claims
        return (resolved, claims) if claims.claims and claims.premises else without_words(sample)

    def _run(self, plans: Sequence[tuple[Sample, tuple[ResolvedLanguage, Claims]]]) -> list[Support | NotScored]:
        return self._reader.hold([claims for _, (_, claims) in plans])

    def _scored(self, sample: Sample, plan: tuple[ResolvedLanguage, Claims], result: Support) -> Prediction:
        resolved, claims = plan
        judged = judged_claims(claims, result)
        return self._prediction(
            sample,
            score=max(claim.confidence for claim in judged),
            spans=spans_of(sample, judged, self.threshold),
            words=words_of(sample, resolved.tag, judged, self.threshold) if self._words else None,
            language=resolved.tag,
            notes=(*resolved.notes, *evidence_notes(sample, resolved), *self._notes(resolved.tag, claims)),
        )

    def _notes(self, tag: str, claims: Claims) -> list[str]:
        model = self._entailment
        notes = {
            "calibration:none": True,
            "languages:undeclared": not model.languages,
            "labels:contradiction not told apart": "contradiction" not in model.labels,
            "facts:sentences": self._reader.level == "fact" and not has_fact_rules(tag),
            "claim:in pieces": any(len(model.pieces(claim.text)) > 1 for claim in claims.claims),
        }
        return [note for note, holds in notes.items() if holds]
