"""Predictions as annotations: what a detector said, put into a data set as an annotator of kind `model` says it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.bench.type_mapping import holding
from veriglot.errors import InputError, UsageError
from veriglot.records import Annotation, Kind, Sample, Status, taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from veriglot.records import Prediction

__all__ = ["UNCHECKED", "PredictedLabels"]

UNCHECKED = "unchecked"
"""Key of `meta` that holds, by annotator, why a sample bears no annotation of it."""

_NAMED = 5  # ids that an account gives as examples


@dataclass
class PredictedLabels:
    """The predictions of one detector, to be joined with their samples by id.

    Attributes:
        predictions: by id.
        annotator: the name that their annotations bear.
        taxonomy: what their types belong to.
        joined: how many samples got an annotation.
        unchecked: how many samples were not checked, by status.
        missing: ids of samples that have no prediction.
    """

    predictions: dict[str, Prediction]
    annotator: str
    taxonomy: str
    joined: int = 0
    unchecked: Counter[str] = field(default_factory=Counter)
    missing: list[str] = field(default_factory=list)
    _used: set[str] = field(default_factory=set)

    @classmethod
    def of(
        cls, predictions: Iterable[Prediction], *, annotator: str | None = None, taxonomy: str | None = None
    ) -> PredictedLabels:
        """Collect predictions.

        Args:
            predictions: of one detector, in any order.
            annotator: None for the name and revision of the detector that was asked.
            taxonomy: None for the first that holds every type of their spans.

        Raises:
            InputError: there are none, or two of one id.
            UsageError: several detectors made them and no annotator is named; or no taxonomy is named, and their types
                tell none.
            UnknownNameError: no such taxonomy, or a type that is not of it.
        """
        found: dict[str, Prediction] = {}
        for one in predictions:
            if one.id in found:
                raise InputError(f"there are two predictions of {one.id!r}", field="id")
            found[one.id] = one
        if not found:
            raise InputError("there are no predictions")
        return cls(found, annotator or _annotator(found.values()), _taxonomy(found.values(), taxonomy))

    @property
    def unused(self) -> list[str]:
        """Ids of the predictions that belong to none of the samples so far."""
        return [id_ for id_ in self.predictions if id_ not in self._used]

    def put_into(self, sample: Sample) -> Sample:
        """The sample with its prediction as an annotation.

        A sample that was not checked gets none, and says why in `meta`: one without spans would read as clean.

        Raises:
            InputError: it has an annotation by that name already, or a span ends beyond its response.
        """
        found = self.predictions.get(sample.id)
        if found is None:
            self.missing.append(sample.id)
            return sample
        self._used.add(sample.id)
        if any(one.annotator == self.annotator for one in sample.annotations):
            raise InputError(
                f"{sample.id!r} has an annotation by {self.annotator!r} already",
                field="annotations",
                remedy="Give another name: --annotator NAME.",
            )
        if found.status is not Status.SCORED:
            self.unchecked[found.status] += 1
            why = {**sample.meta.get(UNCHECKED, {}), self.annotator: f"{found.status}: {found.reason}"}
            return msgspec.structs.replace(sample, meta={**sample.meta, UNCHECKED: why})
        annotations = (*sample.annotations, self._annotation(found, sample))
        self.joined += 1
        return msgspec.structs.replace(sample, annotations=annotations)

    def _annotation(self, found: Prediction, sample: Sample) -> Annotation:
        spans = found.spans or ()
        end = max((span.end for span in spans), default=0)
        if end > len(sample.response):
            raise InputError(
                f"the prediction of {sample.id!r} marks up to {end}, but its response has {len(sample.response)}"
                " characters",
                field="spans",
                remedy="Are these predictions of other data, or offsets in bytes or UTF-16? They are in code points.",
            )
        said: dict[str, float | str | None] = {
            "score": found.score,
            "detector": found.detector,
            "signature": found.signature,
            "notes": "; ".join(found.notes) or None,
        }
        ratings = {name: value for name, value in said.items() if value is not None}
        return Annotation(self.annotator, Kind.MODEL, self.taxonomy, spans=spans, ratings=ratings)

    def as_data(self) -> dict[str, Any]:
        """The account: what was joined, and what was not, with some ids of each."""
        return {
            "annotator": self.annotator,
            "taxonomy": self.taxonomy,
            "joined": self.joined,
            "unchecked": dict(self.unchecked),
            "samples_without": {"count": len(self.missing), "such_as": self.missing[:_NAMED]},
            "predictions_of_no_sample": {"count": len(self.unused), "such_as": self.unused[:_NAMED]},
        }


def _annotator(predictions: Iterable[Prediction]) -> str:
    names = sorted({one.asked for one in predictions})
    if len(names) > 1:
        raise UsageError(
            f"These predictions were made by {len(names)} detectors: {', '.join(names[:_NAMED])}.",
            remedy="Say what they are called together: --annotator NAME.",
        )
    return names[0]


def _taxonomy(predictions: Iterable[Prediction], asked: str | None) -> str:
    types = {span.type for one in predictions for span in one.spans or () if span.type is not None}
    if asked is not None:
        known = taxonomy(asked)
        for type_ in sorted(types):
            known.check(type_)
        return known.name
    found = holding(types)
    if found is None:
        what = f"the types {', '.join(sorted(types))}" if types else "no types"
        raise UsageError(
            f"These predictions hold {what}, which tell no taxonomy.", remedy="Name it: --taxonomy NAME, such as fava."
        )
    return found
