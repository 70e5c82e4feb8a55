"""Predictions from files: joined with their samples by id, checked against them, and stored as annotations of them.

A detector's prediction becomes an annotation whose annotator has kind `model`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from veriglot.bench.evaluation import taxonomy_of_types
from veriglot.bench.items import tag_of
from veriglot.errors import InputError, UsageError
from veriglot.formats.reader import read_predictions
from veriglot.formats.writer import Losses
from veriglot.records import Annotation, Kind, Prediction, Sample, Status
from veriglot.records.taxonomy import taxonomy
from veriglot.signatures import stated_threshold

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


__all__ = ["PredictedLabels", "Predictions", "check_marks"]

UNCHECKED = "unchecked"
"""Key of `meta` for the reasons, by annotator, why a sample has no annotation of it."""

_NAMED = 5  # ids given as examples in a report
_OF_OTHERS = "Are these predictions of other data? They are joined by id alone."
_SHOWN = 40  # code points of a text that an error quotes


@dataclass
class Predictions:
    """Predictions by the id of their samples.

    Attributes:
        by_id: all of them.
        used: id of each prediction that was taken, to its data set.
    """

    by_id: dict[str, Prediction]
    used: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, *paths: str | Path) -> Predictions:
        """Read the predictions in files.

        Raises:
            InputError: there are none, or two with one id.
        """
        by_id: dict[str, Prediction] = {}
        for path in paths:
            for prediction in read_predictions(path):
                if prediction.id in by_id:
                    raise InputError(
                        f"there are two predictions of {prediction.id!r}",
                        f"To compare these files, type: veriglot bench DATA --systems {','.join(map(str, paths))}"
                        if paths[1:]
                        else "",
                        path=str(path),
                        field="id",
                    )
                by_id[prediction.id] = prediction
        if not by_id:
            raise InputError("there are no predictions", path=", ".join(map(str, paths)))
        return cls(by_id)

    @property
    def detectors(self) -> list[str]:
        """The detectors that made them, sorted."""
        return sorted({prediction.asked for prediction in self.by_id.values()})

    @property
    def threshold(self) -> float | None:
        """The threshold that all of them state; None if they do not agree."""
        stated = {stated_threshold(prediction.signature) for prediction in self.by_id.values()}
        return stated.pop() if len(stated) == 1 else None

    @property
    def types(self) -> frozenset[str]:
        """The types of all spans."""
        spans = (span for prediction in self.by_id.values() for span in prediction.spans or ())
        return frozenset(span.type for span in spans if span.type is not None)

    @property
    def unused(self) -> list[str]:
        """Ids of predictions that belong to no sample so far."""
        return [id_ for id_ in self.by_id if id_ not in self.used]

    def take(self, id_: str, data: str = "") -> Prediction | None:
        """The prediction for a sample of a data set; None if there is none."""
        prediction = self.by_id.get(id_)
        if prediction is not None:
            self.used.setdefault(id_, data)
        return prediction


def check_marks(prediction: Prediction, sample: Sample, *, path: str | None = None) -> None:
    """Raise an error if a prediction (read at `path`) has marks that do not fit the sample's text.

    Raises:
        InputError: a mark ends beyond the response, or the `text` of a span differs from the response.
    """
    spans = prediction.spans or ()
    end = max([0, *(mark.end for marks in (spans, prediction.words or (), prediction.units or ()) for mark in marks)])
    if end > len(sample.response):
        raise InputError(
            f"the prediction of {sample.id!r} marks up to {end}, but its response has {len(sample.response)}"
            " characters",
            "Check that the predictions are of this data, and that offsets count code points.",
            path=path,
            field="spans",
        )
    for span in spans:
        there = sample.response[span.start : span.end]
        if span.text is not None and span.text != there:
            raise InputError(
                f"the prediction of {sample.id!r} marks {_quoted(span.text)}, but its response has {_quoted(there)} at"
                f" [{span.start}, {span.end})",
                _OF_OTHERS,
                path=path,
                field="spans",
            )


def _quoted(text: str) -> str:
    """The beginning of a text, in quotation marks."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


@dataclass
class PredictedLabels:
    """The predictions of one detector as annotations of their samples.

    Attributes:
        predictions: by id.
        annotator: the annotator's name of these annotations.
        taxonomy: of their types.
        joined: how many samples got an annotation.
        unchecked: how many samples were not checked, by status.
        missing: ids of samples that have no prediction.
        refused: how many samples have a prediction that does not fit them or cannot be stored in them.
        losses: what an annotation cannot store.
    """

    predictions: Predictions
    annotator: str
    taxonomy: str
    joined: int = 0
    unchecked: Counter[str] = field(default_factory=Counter)
    missing: list[str] = field(default_factory=list)
    refused: int = 0
    losses: Losses = field(default_factory=Losses)

    @classmethod
    def of(
        cls, predictions: Predictions, *, annotator: str | None = None, taxonomy: str | None = None
    ) -> PredictedLabels:
        """Turn predictions into annotations.

        Args:
            predictions: of one detector.
            annotator: None for the name and revision of the detector.
            taxonomy: None for the first that has every type of their spans.

        Raises:
            UsageError: several detectors made them and no annotator is named; or no taxonomy is named, and none has all
                their types.
            UnknownNameError: no such taxonomy, or it lacks a type.
        """
        names = predictions.detectors
        if annotator is None and len(names) > 1:
            raise UsageError(
                f"These predictions were made by {len(names)} detectors: {', '.join(names[:_NAMED])}.",
                "Name them together: --annotator NAME.",
            )
        return cls(predictions, annotator or names[0], _taxonomy(predictions.types, taxonomy))

    @property
    def fit(self) -> bool:
        """Whether any sample so far got its prediction."""
        return bool(self.joined or self.unchecked)

    def put_into(self, sample: Sample) -> Sample:
        """The sample with its prediction as an annotation.

        A sample that was not checked gets no annotation, since one without spans would read as clean; its `meta` says
        why.

        Raises:
            InputError: it has an annotation by that name already; the prediction does not fit the response's text or
                language; or the key of `meta` for why it was not checked has other content.
        """
        prediction = self.predictions.take(sample.id)
        if prediction is None:
            self.missing.append(sample.id)
            return sample
        try:
            if any(annotation.annotator == self.annotator for annotation in sample.annotations):
                raise InputError(
                    f"{sample.id!r} has an annotation by {self.annotator!r} already",
                    "Give another name: --annotator NAME.",
                    field="annotations",
                )
            _check_belongs(prediction, sample)
            result = (
                self._unchecked(prediction, sample)
                if prediction.status is not Status.SCORED
                else self._marked(prediction, sample)
            )
        except InputError:
            self.refused += 1
            raise
        self.losses.note(sample.id, *_lost(prediction, sample))
        return result

    def _unchecked(self, prediction: Prediction, sample: Sample) -> Sample:
        """The sample with the reason why it was not checked; replaces nothing in its `meta`."""
        notes, why = sample.meta.get(UNCHECKED, {}), f"{prediction.status}: {prediction.reason}"
        if not isinstance(notes, dict):
            raise InputError(
                f"{sample.id!r} was not checked, and the key that records this holds something else:"
                f" {_quoted(str(notes))}",
                "Rename that key of the data.",
                field=f"meta.{UNCHECKED}",
            )
        if notes.get(self.annotator, why) != why:
            raise InputError(
                f"{sample.id!r} already states why {self.annotator!r} did not check it",
                "Give another name: --annotator NAME.",
                field=f"meta.{UNCHECKED}",
            )
        self.unchecked[prediction.status] += 1
        return replace(sample, meta={**sample.meta, UNCHECKED: {**notes, self.annotator: why}})

    def _marked(self, prediction: Prediction, sample: Sample) -> Sample:
        values = {
            "score": prediction.score,
            "detector": prediction.detector,
            "signature": prediction.signature,
            "notes": "; ".join(prediction.notes) or None,
        }
        ratings = {name: value for name, value in values.items() if value is not None}
        annotation = Annotation(
            self.annotator, Kind.MODEL, self.taxonomy, spans=prediction.spans or (), ratings=ratings
        )
        self.joined += 1
        return replace(sample, annotations=(*sample.annotations, annotation))

    def as_data(self) -> dict[str, Any]:
        """The report: what was joined and what was not, with some ids of each."""
        unused = self.predictions.unused
        return {
            "annotator": self.annotator,
            "taxonomy": self.taxonomy,
            "joined": self.joined,
            "unchecked": dict(self.unchecked),
            "refused": self.refused,
            "samples_without": {"count": len(self.missing), "such_as": self.missing[:_NAMED]},
            "predictions_of_no_sample": {"count": len(unused), "such_as": unused[:_NAMED]},
            "lost": self.losses.lost,
        }


def _check_belongs(prediction: Prediction, sample: Sample) -> None:
    """Refuse a prediction of another text or language; scripts may differ, since a tag does not always name one."""
    check_marks(prediction, sample)
    if prediction.language is None or sample.language is None:
        return
    predicted, stated = tag_of(prediction.language), tag_of(sample.language)
    if predicted.partition("-")[0].casefold() != stated.partition("-")[0].casefold():
        raise InputError(
            f"the prediction of {sample.id!r} was made in {predicted}, but the sample is in {stated}",
            _OF_OTHERS,
            field="language",
        )


def _lost(prediction: Prediction, sample: Sample) -> Iterator[str]:
    """Parts of a prediction that an annotation cannot store: its units have labels of the taxonomy, and no score."""
    if prediction.words:
        yield "words of predictions"
    if prediction.units:
        yield "units of predictions"
    if prediction.language is not None and sample.language is None:
        yield "language of predictions, where the sample states none"
    if prediction.status is not Status.SCORED and (prediction.notes or prediction.signature):
        yield "notes and signature of predictions that were not scored"


def _taxonomy(types: frozenset[str], asked: str | None) -> str:
    if asked is not None:
        known = taxonomy(asked)
        for type_ in sorted(types):
            known.check(type_)
        return known.name
    name = taxonomy_of_types(types)
    if name is None:
        what = f"the types {', '.join(sorted(types))}" if types else "no types"
        raise UsageError(
            f"These predictions have {what}, which do not determine a taxonomy.",
            "Name it: --taxonomy NAME, such as fava.",
        )
    return name
