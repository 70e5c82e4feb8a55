"""What a prediction says of each word of its response, whoever made it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from veriglot.detectors.grounding.language import spoken_in
from veriglot.metrics.marks import marked, probabilities, ranges, unit_probabilities
from veriglot.text import word_bounds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.detectors.confidences.calibration import Source
    from veriglot.records import Prediction, Sample

__all__ = ["Reading", "language_of", "read_over", "read_words"]


@dataclass(frozen=True)
class Reading:
    """The words of a response as a prediction sees them.

    Attributes:
        bounds: half-open ranges in the response, shape (n, 2).
        confidences: probability that each word is unsupported, shape (n,); NaN where the detector gave none.
        marked: which words a span overlaps, shape (n,).
        source: whether the detector gave confidences of words, or spans alone.
    """

    bounds: NDArray[np.int32]
    confidences: NDArray[np.float64]
    marked: NDArray[np.bool_]
    source: Source


def language_of(sample: Sample, prediction: Prediction | None = None) -> tuple[str | None, str | None]:
    """The BCP 47 tag and the script of a response: as the detector said, as given, or told from the text; or None."""
    tag = (prediction.language if prediction is not None else None) or sample.language
    spoken = spoken_in(msgspec.structs.replace(sample, language=tag))
    return (None, None) if spoken is None else (spoken.tag, spoken.script)


def read_words(sample: Sample, prediction: Prediction) -> Reading:
    """The words of a scored prediction; where it has none, those of the response, with the confidences of its spans.

    A word that several spans overlap takes the greatest of their confidences.
    """
    spans = prediction.spans or ()
    if prediction.words is not None:
        bounds = ranges(prediction.words)
        given = np.array([word.confidence for word in prediction.words], dtype=np.float64)
        return Reading(bounds, given, marked(bounds, ranges(spans)), "words")
    tag, _ = language_of(sample, prediction)
    return read_over(sample, prediction, word_bounds(sample.response, tag))


def read_over(sample: Sample, prediction: Prediction, bounds: NDArray[np.int32]) -> Reading:
    """What a scored prediction says of given words, so that several detectors can be laid over each other.

    Args:
        sample: what was judged.
        prediction: of any detector, with status `scored`.
        bounds: half-open ranges in the response, in order, shape (n, 2).
    """
    spans = prediction.spans or ()
    inside = marked(bounds, ranges(spans))
    if prediction.words is not None:
        given = np.array([word.confidence for word in prediction.words], dtype=np.float64)
        by_character = probabilities(len(sample.response), ranges(prediction.words), given)
        return Reading(bounds, unit_probabilities(bounds, by_character), inside, "words")
    confidences = np.full(len(bounds), np.nan)
    for span in spans:
        if span.confidence is not None:
            here = marked(bounds, ranges([span]))
            confidences[here] = np.fmax(confidences[here], span.confidence)
    return Reading(bounds, confidences, inside, "spans")
