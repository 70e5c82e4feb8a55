"""The NLI detector: a sample's way from text to prediction."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from veriglot.detectors.admission import Refusal, admitted, without_words
from veriglot.detectors.grounding.language import evidence_notes
from veriglot.detectors.nli.marking import Held, judged_claims, spans_of, words_of
from veriglot.entailment import claims_of, hold, load_entailment, premises_of
from veriglot.entailment.reading import check_reading, declared_for, has_rules
from veriglot.errors import UsageError
from veriglot.provenance import digest, signature
from veriglot.records import Prediction, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.detectors.grounding.language import Spoken
    from veriglot.entailment import Entailment, Support
    from veriglot.entailment.reading import Level
    from veriglot.records import Sample

__all__ = ["NLI"]

_RULE = 1  # how claims, premises and marks are made; rises when a prediction may change
_THRESHOLD = 0.5  # kang's for ENT: a claim is supported from there on


class NLI:
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
        options: of the entailment model; see `veriglot.entailment.load_entailment`.

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
        check_reading(claim, premise_sentences)
        threshold = _THRESHOLD if threshold is None else threshold
        if not 0.0 <= threshold <= 1.0:
            raise UsageError(f"A threshold is a probability between 0 and 1, but {threshold} was given.")
        self._options: dict[str, Any] = {
            "model": model, "threshold": threshold, "words": words, "claim": claim,
            "premise_sentences": premise_sentences, "question": question, **options,
        }  # fmt: skip
        self._level = cast("Level", claim)
        self._size = premise_sentences
        self._question = question
        self._words = words
        self.threshold = threshold
        self._entailment = load_entailment(model, **options) if isinstance(model, str | Path) else model

    def __reduce__(self) -> tuple[Any, ...]:
        """A detector travels to another process as its options; the model is loaded there."""
        return _remade, (self._options,)

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
            claim=self._level,
            premise=f"sentences-{self._size}" if self._size else "passage",
            question="before each claim" if self._question else None,
            threshold=self.threshold,
            unit=self._level,
        )

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        """Judge a batch: one prediction per sample, in order. No sample makes it raise."""
        read = [self._read(sample) for sample in samples]
        held = iter(self._held([one for one in read if isinstance(one, Held)]))
        return [one if isinstance(one, Prediction) else self._scored(*next(held)) for one in read]

    def _read(self, sample: Sample) -> Held | Prediction:
        try:
            spoken = admitted(sample)
            if isinstance(spoken, Refusal):
                return self._refused(sample, spoken)
            if not declared_for(self._entailment, spoken.tag):
                reason = f"the model is declared for {', '.join(sorted(self._entailment.languages))} only"
                return self._refused(sample, Refusal(Status.UNSUPPORTED_LANGUAGE, reason))
            claims = claims_of(sample.response, spoken.tag, self._level, sample.question if self._question else None)
            premises = premises_of(sample.evidence, self._size)
            if not claims or not premises:
                return self._refused(sample, without_words(sample))
            return Held(sample, spoken, claims, premises)
        except Exception as error:  # one sample's failure must not lose the batch; it is said, not hidden
            return self._failed(sample, error)

    def _held(self, read: list[Held]) -> list[tuple[Held, Support | Exception]]:
        """Each sample with what its claims got; where the batch fails, each by itself, with what failed."""
        tasks = [([claim.text for claim in one.claims], [premise.text for premise in one.premises]) for one in read]
        try:
            return list(zip(read, hold(self._entailment, tasks), strict=True))
        except Exception:
            return [(one, self._alone(task)) for one, task in zip(read, tasks, strict=True)]

    def _alone(self, task: tuple[list[str], list[str]]) -> Support | Exception:
        try:
            return hold(self._entailment, [task])[0]
        except Exception as error:
            return error

    def _scored(self, held: Held, support: Support | Exception) -> Prediction:
        sample, spoken = held.sample, held.spoken
        if isinstance(support, Exception):
            return self._failed(sample, support)
        judged = judged_claims(held, support)
        return Prediction(
            id=sample.id,
            status=Status.SCORED,
            detector=self.name,
            score=max(claim.confidence for claim in judged),
            spans=spans_of(sample, judged, self.threshold),
            words=words_of(sample, spoken.tag, judged, self.threshold) if self._words else None,
            language=spoken.tag,
            notes=self._notes(held),
            signature=self.signature,
        )

    def _notes(self, held: Held) -> tuple[str, ...]:
        spoken: Spoken = held.spoken
        said = {
            "calibration:none": True,
            "languages:undeclared": not self._entailment.languages,
            "labels:contradiction not told apart": "contradiction" not in self._entailment.labels,
            "facts:sentences": self._level == "fact" and not has_rules(spoken.tag),
            "claim:in pieces": any(len(self._entailment.pieces(claim.text)) > 1 for claim in held.claims),
        }
        own = (note for note, holds in said.items() if holds)
        return (*spoken.notes, *evidence_notes(held.sample, spoken), *own)

    def _refused(self, sample: Sample, refusal: Refusal) -> Prediction:
        return Prediction(
            id=sample.id, status=refusal.status, detector=self.name, reason=refusal.reason,
            signature=self.signature, language=sample.language,
        )  # fmt: skip

    def _failed(self, sample: Sample, error: Exception) -> Prediction:
        return self._refused(sample, Refusal(Status.FAILED, f"{type(error).__name__}: {error}"))


def _remade(options: dict[str, Any]) -> NLI:
    return NLI(**options)
