"""Predictions and the samples that they are of, brought together by id: in one pass where both stand in one order."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

from veriglot.errors import InputError
from veriglot.formats import SeenIds
from veriglot.study.files import tag_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from veriglot.records import Prediction, Sample

__all__ = ["Joining"]


class Joining:
    """Pairs of two streams. What comes early waits, so two files in the same order take no memory.

    Attributes:
        without_sample: predictions that no sample has the id of; known once the pairs were read.
        without_prediction: samples without a prediction, by (model, language, seed); likewise.
    """

    def __init__(self) -> None:
        self.without_sample = 0
        self.without_prediction: Counter[tuple[str | None, str | None, int | None]] = Counter()

    def pairs(
        self, samples: Iterable[Sample], predictions: Iterable[Prediction]
    ) -> Iterator[tuple[Sample, Prediction]]:
        """Each sample that has a prediction, with it; in the order of the predictions.

        Args:
            samples: each id once.
            predictions: in any order.

        Raises:
            InputError: two predictions share an id.
        """
        source = iter(samples)
        early: dict[str, Sample] = {}
        met = SeenIds()
        for prediction in predictions:
            if not met.is_new(prediction.id):
                raise InputError(f"the id {prediction.id!r} occurs twice among the predictions", field="id")
            sample = early.pop(prediction.id, None)
            while sample is None and (following := next(source, None)) is not None:
                if following.id == prediction.id:
                    sample = following
                else:
                    early[following.id] = following
            if sample is None:
                self.without_sample += 1
            else:
                yield sample, prediction
        for left in chain(early.values(), source):
            name, seed = (left.generator.name, left.generator.seed) if left.generator is not None else (None, None)
            self.without_prediction[name, tag_of(left.language), seed] += 1
