"""The NLI detector: marks the claims of a response that no premise of the evidence entails."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from veriglot.judging.base import (
    DIGITS,
    BaseDetector,
    NotScored,
    ResolvedLanguage,
    check_sample,
    evidence_notes,
    has_fact_rules,
    no_words,
    words_from_confidences,
)
from veriglot.judging.nli import ClaimReader, Claims, Entailment, Support
from veriglot.records import Pointer, Prediction, Sample, Span, Word
from veriglot.signatures import digest, signature
from veriglot.text.segmentation import word_bounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


__all__ = []

_CONTRADICTED = 0.5  # the threshold of Kang et al. for CON
_RULE = 1  # version of the rules for claims, premises and marks; raise it when predictions change
_THRESHOLD = 0.5  # that of Kang et al. for ENT: from there on, a claim is supported


class _JudgedClaim(NamedTuple):
    """A claim: ranges in the response, confidence `1 - ENT`, type of a mark, best premise, and premise of a mark."""

    parts: tuple[tuple[int, int], ...]
    confidence: float
    type: str
    support: Pointer
    against: Pointer


def _judged(claims: Claims, support: Support) -> Iterator[_JudgedClaim]:
    """Each claim; a mark points to the premise that contradicts it most, if any, else to the most supporting one."""
    pointers = [Pointer(premise.passage, premise.start, premise.end) for premise in claims.premises]
    columns = (support.entailment, support.contradiction, support.nearest, support.opposed)
    for claim, entailed, opposing, nearest, opposed in zip(
        claims.claims, *(column.tolist() for column in columns), strict=True
    ):
        contradicted = opposing >= _CONTRADICTED
        confidence = min(max(round(1.0 - entailed, DIGITS), 0.0), 1.0)
        type_ = "contradicted" if contradicted else "unverified"
        against = pointers[opposed if contradicted else nearest]
        yield _JudgedClaim(claim.parts, confidence, type_, pointers[nearest], against)


class NLI(BaseDetector[tuple[ResolvedLanguage, Claims], Support]):
    """Marks the sentences or facts of a response that no premise of the evidence entails (SummaC-ZS with max).

    A claim's confidence is `1 - ENT`: the model's probability, without calibration (each prediction has the note
    `calibration:none`). See `docs/nli.md`.

    Args:
        model: a folder, a name that `veriglot models` lists, a name on the hub, or an entailment model.
        threshold: confidence from which a claim is marked, 0 to 1; None takes 0.5.
        words: whether predictions include every word, each with the confidence of its claim.
        claim: the unit of the response that is judged: `sentence` or `fact`.
        premise_sentences: sentences of a premise; 0 for whole passages.
        question: whether to put the sample's question before each claim, for answers that say little by themselves.
        options: of the entailment model; see `veriglot.judging.nli.load_entailment`.

    Raises:
        MissingExtraError: the packages of the model are not installed.
        WeightsError: the model cannot be loaded, or its labels are not known.
        UnknownNameError, UsageError: an invalid option.
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
        super().__init__(_THRESHOLD if threshold is None else threshold, words=words)
        self._reader = ClaimReader(model, claim, premise_sentences, question=question, **options)
        self._entailment = self._reader.entailment

    @cached_property
    def name(self) -> str:
        """`nli@`, the version of the rules, and the beginning of the model's revision."""
        return f"nli@{_RULE}-{self._entailment.revision[:8]}"

    @cached_property
    def signature(self) -> str:
        """Name, model, settings of claims and premises, and threshold in one line."""
        return signature(
            detector=self.name,
            model=digest([self._entailment.signature])[:12],
            **self._reader.settings(),
            threshold=self.threshold,
            unit=self._reader.level,
        )

    def _plan(self, sample: Sample) -> tuple[ResolvedLanguage, Claims] | NotScored:
        resolved = check_sample(sample)
        if isinstance(resolved, NotScored):
            return resolved
        claims = self._reader.read(sample, resolved.tag)
        if isinstance(claims, NotScored):
            return claims
        return (resolved, claims) if claims.claims and claims.premises else no_words(sample)

    def _run(self, plans: Sequence[tuple[Sample, tuple[ResolvedLanguage, Claims]]]) -> list[Support | NotScored]:
        return self._reader.judge([claims for _, (_, claims) in plans])

    def _scored(self, sample: Sample, plan: tuple[ResolvedLanguage, Claims], result: Support) -> Prediction:
        resolved, claims = plan
        pairs = ((part, claim) for claim in _judged(claims, result) for part in claim.parts)
        parts = sorted(pairs, key=lambda pair: pair[0])
        return self._prediction(
            sample,
            score=max(claim.confidence for _, claim in parts),
            spans=tuple(
                Span(start, end, claim.type, claim.confidence, sample.response[start:end], (claim.against,))
                for (start, end), claim in parts
                if claim.confidence >= self.threshold
            ),
            words=self._word_list(sample, resolved.tag, parts) if self._words else None,
            language=resolved.tag,
            notes=(*resolved.notes, *evidence_notes(sample, resolved), *self._notes(resolved.tag, claims)),
        )

    def _word_list(
        self, sample: Sample, tag: str, parts: Sequence[tuple[tuple[int, int], _JudgedClaim]]
    ) -> tuple[Word, ...]:
        """Every word with its claim's confidence; supported words point to the best premise."""
        starts = [start for (start, _), _ in parts]
        bounds = word_bounds(sample.response, tag)
        claims = [parts[bisect_right(starts, start) - 1][1] for start in bounds[:, 0].tolist()]
        confidences = [claim.confidence for claim in claims]
        return words_from_confidences(bounds, confidences, self.threshold, lambda word: (claims[word].support,))

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
