"""Ask a detector or scorer about a batch and hold it to its protocol: an answer per sample, in order, come what may."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from veriglot.errors import VeriglotError
from veriglot.records import Prediction, Score, Status
from veriglot.run.recipe import Description, scores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.records import Detector, Sample, Scorer

__all__ = ["failed_answer", "judge"]


@overload
def judge(maker: Detector, samples: Sequence[Sample]) -> list[Prediction]: ...
@overload
def judge(maker: Scorer, samples: Sequence[Sample]) -> list[Score]: ...
@overload
def judge(maker: Detector | Scorer, samples: Sequence[Sample]) -> list[Prediction] | list[Score]: ...
def judge(maker: Detector | Scorer, samples: Sequence[Sample]) -> list[Any]:
    """One answer per sample, in order: predictions of a detector, scores of a scorer.

    Neither may raise because of a sample. Where one does, or breaks the protocol, its samples are asked about one by
    one, and those that fail alone come back with status `failed` and the reason.
    """
    try:
        return _ask(maker, samples)
    except Exception as error:
        if len(samples) == 1:
            about = Description.of(maker)
            return [failed_answer(samples[0], about, _reason(error, about.kind))]
    return [answer for sample in samples for answer in judge(maker, [sample])]


def failed_answer(sample: Sample, about: Description, reason: str) -> Prediction | Score:
    """The record of a sample that could not be judged, and why."""
    if about.kind == "scorer":
        return Score(
            id=sample.id,
            status=Status.FAILED,
            scorer=about.name,
            language=sample.language,
            reason=reason,
            signature=about.signature,
        )
    return Prediction(
        id=sample.id,
        status=Status.FAILED,
        detector=about.name,
        language=sample.language,
        reason=reason,
        signature=about.signature,
    )


def _ask(maker: Detector | Scorer, samples: Sequence[Sample]) -> list[Any]:
    answers: list[Any] = [*(maker.score(samples) if scores(maker) else maker.predict(samples))]
    wanted = [sample.id for sample in samples]
    given = [answer.id for answer in answers]
    if given != wanted:
        kind, what = ("scorer", "scores") if scores(maker) else ("detector", "predictions")
        raise VeriglotError(
            f"the {kind} {maker.name} gave {what} for {given[:3]} (of {len(given)})"
            f" where {wanted[:3]} (of {len(wanted)}) were asked for"
        )
    return answers


def _reason(error: Exception, kind: str) -> str:
    if isinstance(error, VeriglotError):
        return str(error)
    return f"the {kind} raised {type(error).__name__}: {error}".rstrip(": ")
