"""What several annotators marked in one text, as labels of units and as sums that agreement is computed from."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from veriglot.metrics.agreement.coefficients import coincidences
from veriglot.metrics.agreement.gamma import SAMPLES, Disorder, Placed, disorder, expected_disorder
from veriglot.metrics.bootstrap import stream
from veriglot.metrics.matching import exact, overlap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from veriglot.metrics.reference import Marks

    Array = NDArray[np.float64]

__all__ = ["Layered", "Pair", "PairSums", "gamma_of", "label_sums", "labels_of", "pair_sums"]

Pair = tuple[str, str]


@dataclass(frozen=True)
class Layered:
    """One text with what each annotator marked in it.

    Attributes:
        id: of the text; the bootstrap draws whole texts.
        language: BCP 47 tag, or an empty string.
        length: in code points.
        bounds: the units, half-open ranges of shape `(n, 2)`.
        layers: annotator to what they marked; one that marked nothing is there too.
    """

    id: str
    language: str
    length: int
    bounds: NDArray[np.int32]
    layers: Mapping[str, Marks]


@dataclass(frozen=True)
class PairSums:
    """What two annotators of one text have in common.

    Attributes:
        pair: who.
        table: how many units the one gave which label and the other which, shape `(labels, labels)`; 0 is unmarked.
        spans: spans of both; `overlapping` and `exact` count matched ones of both, so that F1 is matched / spans.
    """

    pair: Pair
    table: Array
    spans: float
    overlapping: float
    exact: float


def labels_of(text: Layered, names: Sequence[str] | None, annotator: str) -> NDArray[np.int64]:
    """What one annotator says of each unit, shape `(n,)`: 0 where it is unmarked, else 1 and up.

    A unit is marked when a span overlaps it in at least one code point. Of several spans over a unit the shortest gives
    the type: it says the most about this very unit. Of equally short ones the first does.

    Args:
        text: the text.
        names: types in order, of which the first is 1; None for 1 wherever a unit is marked.
        annotator: whose marks.
    """
    marks = text.layers[annotator]
    labels = np.zeros(len(text.bounds), np.int64)
    order = sorted(range(len(marks.spans)), key=lambda i: (int(marks.spans[i, 0] - marks.spans[i, 1]), -i))
    for index in order:  # the shortest last
        start, end = marks.spans[index]
        inside = (text.bounds[:, 1] > start) & (text.bounds[:, 0] < end)
        labels[inside] = 1 if names is None else 1 + names.index(marks.types[index] or "")
    return labels


def pair_sums(text: Layered, names: Sequence[str] | None) -> list[PairSums]:
    """Sums of every two annotators of a text, in the order of their names.

    Args:
        text: the text.
        names: types in order, or None to leave types aside.
    """
    labels = {annotator: labels_of(text, names, annotator) for annotator in sorted(text.layers)}
    return [_pair(text, names, (a, b), labels[a], labels[b]) for a, b in combinations(labels, 2)]


def _pair(
    text: Layered, names: Sequence[str] | None, pair: Pair, first: NDArray[np.int64], second: NDArray[np.int64]
) -> PairSums:
    values = 1 + (1 if names is None else len(names))
    table = np.bincount(first * values + second, minlength=values * values).reshape(values, values)
    one, other = text.layers[pair[0]], text.layers[pair[1]]
    types = (None, None) if names is None else (one.types, other.types)
    return PairSums(
        pair,
        table.astype(np.float64),
        float(len(one.spans) + len(other.spans)),
        2.0 * overlap(one.spans, other.spans, *types).matched,
        2.0 * exact(one.spans, other.spans, *types).matched,
    )


def label_sums(text: Layered, names: Sequence[str] | None) -> Array:
    """Coincidences of the labels of all annotators of a text, shape `(labels, labels)`."""
    values = 1 + (1 if names is None else len(names))
    labels = np.stack([labels_of(text, names, annotator) for annotator in sorted(text.layers)])
    return coincidences(labels, values)


def gamma_of(text: Layered, names: Sequence[str] | None, *, seed: int = 1, samples: int = SAMPLES) -> Disorder | None:
    """Observed and expected disorder of a text; None where nobody marked anything, so that nothing can be aligned.

    Args:
        text: with two annotators or more.
        names: types in order, or None to leave types aside.
        seed: of the random annotations; a text gets the same whatever stands beside it.
        samples: how many random annotations.
    """
    placed = [
        Placed(
            marks.spans.astype(np.int64),
            np.array([0 if names is None else names.index(one or "") for one in marks.types], np.int64),
        )
        for _, marks in sorted(text.layers.items())
    ]
    spans = sum(len(one.spans) for one in placed)
    if not spans:
        return None
    chance = expected_disorder(placed, text.length, stream(seed, f"gamma {text.id}"), samples)
    return Disorder(disorder(placed), chance, spans / len(placed))
