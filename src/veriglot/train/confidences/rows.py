"""Labelled responses with what detectors say of them, as arrays: what calibration and stacking learn from."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.confidences.readings import language_of, read_words
from veriglot.errors import UnknownNameError
from veriglot.metrics.marks import marked
from veriglot.metrics.reference import COMBINED, labelled, reference
from veriglot.provenance import digest
from veriglot.records import DataSource, Kind, Status, encode
from veriglot.train.confidences.texts import texts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.confidences.readings import Reading
    from veriglot.records import Prediction, Sample

    Array = NDArray[np.float64]

__all__ = ["Row", "Rows"]

_KINDS = {Kind.HUMAN: "gold", Kind.MODEL: "silver"}


@dataclass(frozen=True)
class Row:
    """One labelled response.

    Attributes:
        keys: what it shares with other responses of the same text; see `texts`.
        language: BCP 47 tag, or None where it is not known.
        script: ISO 15924 code, or None.
        confidences: of each word by each detector, shape (n, m); NaN where a detector gave none.
        inside: whether a span of each detector overlaps each word, shape (n, m).
        target: whether each word is unsupported, shape (n,).
        scores: of the response by each detector, shape (m,).
        wrong: whether anything in the response is unsupported.
        spans_alone: whether each detector gave spans without the confidences of words.
    """

    keys: tuple[str, ...]
    language: str | None
    script: str | None
    confidences: Array
    inside: NDArray[np.bool_]
    target: NDArray[np.bool_]
    scores: Array
    wrong: bool
    spans_alone: tuple[bool, ...]


@dataclass
class Rows:
    """Collects labelled responses; memory grows with their words, not with the texts.

    Attributes:
        annotator: whose labels; see `metrics.reference`.
        found: the responses.
        left_out: those that could not be used, by reason.
    """

    annotator: str | None = None
    found: list[Row] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    _hashes: list[str] = field(default_factory=list)
    _kinds: set[Kind] = field(default_factory=set)
    _seen: set[str] = field(default_factory=set)

    def add(self, sample: Sample, predictions: Sequence[Prediction | None], readings: Sequence[Reading] = ()) -> None:
        """Take one response.

        Args:
            sample: with its labels.
            predictions: of each detector; None where there is none.
            readings: what each says of the same words; empty for what a single detector says of its own.
        """
        self._seen.update(one.annotator for one in labelled(sample))
        chosen = reference(sample, self.annotator)
        why = _unusable(predictions) if chosen is not None else "no labels"
        if chosen is None or why:
            self.left_out[why or "no labels"] += 1
            return
        scored = [one for one in predictions if one is not None]
        read = readings or [read_words(sample, scored[0])]
        self._hashes.append(digest([encode(sample)]))
        self._kinds.add(chosen.kind)
        tag, script = language_of(sample, scored[0])
        self.found.append(
            Row(
                keys=_keys(sample),
                language=tag,
                script=script,
                confidences=np.stack([one.confidences for one in read], axis=1),
                inside=np.stack([one.marked for one in read], axis=1),
                target=marked(read[0].bounds, chosen.marks.spans),
                scores=np.array([one.score for one in scored], dtype=np.float64),
                wrong=bool(len(chosen.marks.spans)),
                spans_alone=tuple(one.source == "spans" for one in read),
            )
        )

    def check(self) -> None:
        """Whether the annotator that was asked for labelled anything.

        Raises:
            UnknownNameError: not one sample.
        """
        if self.annotator and self.annotator not in COMBINED and self._seen and self.annotator not in self._seen:
            raise UnknownNameError("annotator", self.annotator, {*self._seen, *COMBINED})

    @property
    def data(self) -> DataSource:
        """Hash and kind of the labels."""
        kinds = {_KINDS[kind] for kind in self._kinds}
        return DataSource(digest(self._hashes), kinds.pop() if len(kinds) == 1 else "mixed" if kinds else "none")

    def texts(self) -> NDArray[np.int64]:
        """The text of each response: responses that say the same, share a passage or a named group are one."""
        return texts_of([row.keys for row in self.found])


def _unusable(predictions: Sequence[Prediction | None]) -> str:
    for one in predictions:
        if one is None:
            return "no prediction"
        if one.status is not Status.SCORED:
            return str(one.status)
    return ""


def _keys(sample: Sample) -> tuple[str, ...]:
    """What a sample has in common with others of its text; one passage that two share is enough."""
    group = sample.meta.get("group")
    keys = [f"response:{digest([sample.response])[:16]}"]
    keys += [f"evidence:{digest([passage.text])[:16]}" for passage in sample.evidence if passage.text.strip()]
    if isinstance(group, str | int):
        keys.append(f"group:{group}")
    return tuple(keys)
