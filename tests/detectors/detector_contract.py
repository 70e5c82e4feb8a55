"""What every detector must keep to, as checks that a test calls with a detector of its own.

`load` makes the detector: `load(threshold=..., words=...)`.
"""

from __future__ import annotations

import multiprocessing
import pickle
import random
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from veriglot.records import (
    Detector,
    Pointer,
    Prediction,
    Sample,
    Span,
    Status,
    decode_json,
    encode,
    prediction_from,
    taxonomy,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


class Load(Protocol):
    def __call__(self, *, threshold: float | None = None, words: bool = False) -> Detector: ...


def check_contract(load: Load, samples: Sequence[Sample]) -> None:
    """All checks but the one with processes of their own, which is slow: `check_processes`."""
    detector = load()
    check_description(detector)
    found = detector.predict(samples)
    assert sum(prediction.status is Status.SCORED for prediction in found) > len(samples) // 2
    for sample, prediction in zip(samples, found, strict=True):
        check_prediction(detector, sample, prediction)
    check_batches(detector, samples, found)
    check_words(load, samples, found)
    check_thresholds(load, samples)
    again: Detector = pickle.loads(pickle.dumps(detector))
    assert again.signature == detector.signature
    assert again.predict(samples) == found


def check_description(detector: Detector) -> None:
    assert isinstance(detector, Detector)
    name, at, revision = detector.name.partition("@")
    assert name
    assert at
    assert revision
    assert taxonomy(detector.taxonomy).types
    assert 0 <= detector.threshold <= 1
    assert name in detector.signature
    assert "\n" not in detector.signature
    assert detector.predict([]) == []


def check_prediction(detector: Detector, sample: Sample, prediction: Prediction) -> None:
    assert prediction.id == sample.id
    assert prediction.asked == detector.name
    assert all(prediction.detector.partition("@"))
    assert prediction.signature == detector.signature
    assert prediction_from(decode_json(encode(prediction))) == prediction
    if prediction.status is not Status.SCORED:
        assert prediction.reason
        return
    assert prediction.spans is not None
    for span in prediction.spans:
        check_span(sample, span, taxonomy(detector.taxonomy).types)
    assert all(one.end <= other.start for one, other in pairwise(prediction.spans))


def check_span(sample: Sample, span: Span, types: Collection[str]) -> None:
    assert span.text == sample.response[span.start : span.end]
    assert span.text == span.text.strip() != ""
    assert span.type in types
    assert span.confidence is not None
    for pointer in span.evidence:
        check_pointer(sample, pointer)


def check_pointer(sample: Sample, pointer: Pointer) -> str:
    text = next(passage.text for passage in sample.evidence if passage.id == pointer.id)
    assert pointer.end <= len(text)
    return text[pointer.start : pointer.end]


def check_batches(detector: Detector, samples: Sequence[Sample], found: Sequence[Prediction]) -> None:
    """Batch equals single equals any order."""
    assert [detector.predict([sample])[0] for sample in samples] == list(found)
    order = list(range(len(samples)))
    random.Random(5).shuffle(order)
    assert detector.predict([samples[i] for i in order]) == [found[i] for i in order]


def check_words(load: Load, samples: Sequence[Sample], found: Sequence[Prediction]) -> None:
    """Asking for words changes nothing else; spans hold exactly the words from the threshold on."""
    detector = load(words=True)
    for sample, plain, full in zip(samples, found, detector.predict(samples), strict=True):
        assert (plain.status, plain.score, plain.spans, plain.notes) == (
            full.status,
            full.score,
            full.spans,
            full.notes,
        )
        assert plain.words is None
        assert (full.words is not None) == (full.status is Status.SCORED)
        for word in full.words or ():
            inside = any(span.start <= word.start and word.end <= span.end for span in full.spans or ())
            # confidences are rounded to four digits; at the threshold itself a rounded one says nothing
            assert inside == (word.confidence >= detector.threshold) or word.confidence == detector.threshold
            for pointer in word.evidence:
                assert not inside
                check_pointer(sample, pointer)


def marked(prediction: Prediction) -> set[int]:
    return {place for span in prediction.spans or () for place in range(span.start, span.end)}


def check_thresholds(load: Load, samples: Sequence[Sample]) -> None:
    """A higher threshold marks a part of what a lower one marks, and the score is the same."""
    ladder = [load(threshold=value).predict(samples) for value in (0.0, 0.2, 0.5, 0.8, 1.0)]
    for lower, higher in pairwise(ladder):
        for one, other in zip(lower, higher, strict=True):
            assert marked(other) <= marked(one)
            assert one.score == other.score
    assert all(prediction.spans for prediction in ladder[0] if prediction.status is Status.SCORED)


def judged(detector: Detector, sample: Sample) -> bytes:
    return encode(detector.predict([sample])[0])


def check_processes(detector: Detector, samples: Sequence[Sample]) -> None:
    """Two new processes say what this one says, byte for byte."""
    here = [judged(detector, sample) for sample in samples]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn) as pool:
        assert list(pool.map(partial(judged, detector), samples)) == here
