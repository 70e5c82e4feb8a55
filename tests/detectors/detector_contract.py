"""What our own detectors keep to beyond the contract that `veriglot.testing` checks for everyone.

`load` makes the detector: `load(threshold=..., words=...)`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from veriglot.records import Detector, Pointer, Prediction, Sample, Status, encode
from veriglot.testing import check_detector, in_processes

if TYPE_CHECKING:
    from collections.abc import Sequence

Load = Callable[..., Detector]

__all__ = ["Load", "check_contract", "check_pointer", "check_processes", "judged"]


def check_contract(load: Load, samples: Sequence[Sample], **options: Any) -> None:
    """The contract of detectors, and more than half scored; spans are apart, and have a confidence where words do.

    The check with processes of their own is slow: `check_processes`.
    """
    check_detector(load, samples, scored=0.5, **options)
    detector = load(words=True)
    for sample, prediction in zip(samples, detector.predict(samples), strict=True):
        check_words(sample, prediction)
    if any(prediction.words for prediction in detector.predict(samples)):
        lowest = load(threshold=0.0).predict(samples)
        assert all(prediction.spans for prediction in lowest if prediction.status is Status.SCORED)


def check_words(sample: Sample, prediction: Prediction) -> None:
    spans = prediction.spans or ()
    assert all(one.end <= other.start for one, other in pairwise(spans))
    for span in spans:
        assert span.text == sample.response[span.start : span.end]
        assert prediction.words is None or span.confidence is not None
    marked = {place for span in spans for place in range(span.start, span.end)}
    for word in prediction.words or ():
        assert not word.evidence or word.start not in marked, "only supported words point at evidence"


def check_pointer(sample: Sample, pointer: Pointer) -> str:
    text = next(passage.text for passage in sample.evidence if passage.id == pointer.id)
    assert pointer.end <= len(text)
    return text[pointer.start : pointer.end]


def judged(detector: Detector, sample: Sample) -> bytes:
    return encode(detector.predict([sample])[0])


def check_processes(detector: Detector, samples: Sequence[Sample]) -> None:
    """Two new processes say what this one says, byte for byte."""
    here = [judged(detector, sample) for sample in samples]
    assert [encode(prediction) for prediction in in_processes(detector, "predict", samples)] == here
