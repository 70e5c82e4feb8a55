"""Ask a detector about a batch and hold it to its protocol: one prediction per sample, in order, whatever happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.errors import VeriglotError
from veriglot.records import Prediction, Status
from veriglot.run.recipe import Description

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.records import Detector, Sample

__all__ = ["failed_prediction", "judge"]


def judge(detector: Detector, samples: Sequence[Sample]) -> list[Prediction]:
    """One prediction per sample, in order.

    A detector may not raise because of a sample. Where one does, or breaks the protocol, its samples are asked about
    one by one, and those that fail alone come back with status `failed` and the reason.
    """
    try:
        return _ask(detector, samples)
    except Exception as error:
        if len(samples) == 1:
            return [failed_prediction(samples[0], Description.of(detector), _reason(error))]
    return [prediction for sample in samples for prediction in judge(detector, [sample])]


def failed_prediction(sample: Sample, detector: Description, reason: str) -> Prediction:
    """The record of a sample that could not be judged, and why."""
    return Prediction(
        id=sample.id,
        status=Status.FAILED,
        detector=detector.name,
        language=sample.language,
        reason=reason,
        signature=detector.signature,
    )


def _ask(detector: Detector, samples: Sequence[Sample]) -> list[Prediction]:
    predictions = list(detector.predict(samples))
    wanted = [sample.id for sample in samples]
    given = [prediction.id for prediction in predictions]
    if given != wanted:
        raise VeriglotError(
            f"the detector {detector.name} gave predictions for {given[:3]} (of {len(given)})"
            f" where {wanted[:3]} (of {len(wanted)}) were asked for"
        )
    return predictions


def _reason(error: Exception) -> str:
    if isinstance(error, VeriglotError):
        return str(error)
    return f"the detector raised {type(error).__name__}: {error}".rstrip(": ")
