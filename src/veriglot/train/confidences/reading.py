"""From samples and several detectors' predictions to rows over common words."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from veriglot.detectors.confidences.readings import language_of, read_over
from veriglot.records import Status
from veriglot.text import word_bounds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from veriglot.records import Prediction, Sample
    from veriglot.train.confidences.rows import Rows

__all__ = ["batches", "row_of"]

_BATCH = 64


def batches(samples: Iterable[Sample]) -> Iterator[list[Sample]]:
    """Samples by the batch, in order."""
    source = iter(samples)
    while batch := list(islice(source, _BATCH)):
        yield batch


def row_of(rows: Rows, sample: Sample, predictions: Sequence[Prediction]) -> None:
    """Add one response with what several detectors say of its words; one that a detector did not score is left out."""
    if any(one.status is not Status.SCORED for one in predictions):
        rows.add(sample, predictions)
        return
    tag, _ = language_of(sample, predictions[0])
    bounds = word_bounds(sample.response, tag)
    rows.add(sample, predictions, [read_over(sample, one, bounds) for one in predictions])
