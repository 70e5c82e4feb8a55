"""The items of a data set at one level, in an order that all systems share: words, sentences or responses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.bench.belonging import tag_of
from veriglot.bench.labels import item_labels
from veriglot.metrics.items import Items
from veriglot.metrics.marks import marked
from veriglot.metrics.reference import reference
from veriglot.metrics.units import segmenter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from veriglot.records import Sample

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

__all__ = ["ItemTable", "item_table"]


@dataclass(frozen=True)
class ItemTable:
    """The items of one part of a data set at one level.

    Attributes:
        level: `word`, `sentence` or `response`.
        samples: the samples, in order.
        owner: index of the sample that each item is of, ascending, shape `(n,)`.
        places: its place in the response, half-open, in code points, shape `(n, 2)`.
        languages: tag of each item, shape `(n,)`.
        texts: what each item is resampled with, shape `(n,)`.
        nonfactual: whether the labels mark anything in it, shape `(n,)`.
        support: share of its facts that are supported, NaN where it has none; None at level `word`.
        unverified: share of its facts that the evidence does not speak of, NaN where the labels do not tell; None at
            level `word`.
        labelled: whether there are labels; where not, `nonfactual` says nothing.
    """

    level: str
    samples: tuple[Sample, ...]
    owner: NDArray[np.int64]
    places: NDArray[np.int32]
    languages: NDArray[np.str_]
    texts: tuple[str, ...]
    nonfactual: Mask
    support: Array | None
    unverified: Array | None
    labelled: bool = True

    def __len__(self) -> int:
        return len(self.owner)

    def tags(self) -> list[str]:
        """The languages that items are of, sorted."""
        return sorted(set(self.languages.tolist()))

    def items(self, badness: Array) -> Items:
        """The items with what a system said of them, shape `(n,)`."""
        return Items(badness, self.nonfactual, self.support, self.unverified)

    def of_sample(self, index: int) -> slice:
        """Where the items of one sample stand."""
        return slice(*np.searchsorted(self.owner, [index, index + 1]).tolist())


def item_table(
    samples: Sequence[Sample],
    texts: Mapping[str, str],
    level: str,
    *,
    annotator: str | None = None,
    unit: str = "word",
    labelled: bool = True,
) -> ItemTable:
    """Lay out the items of samples.

    Args:
        samples: with labels of the annotator, unless `labelled` is false.
        texts: id of a sample to the text that it belongs to.
        level: `word`, `sentence` or `response`.
        annotator: whose labels; see `metrics.reference`.
        unit: what level `word` counts.
        labelled: whether they have labels.
    """
    if not labelled:
        rows = _bare(samples, level, unit)
    else:
        rows = _words(samples, annotator, unit) if level == "word" else _labelled(samples, level, annotator)
    owner = np.array([row[0] for row in rows], dtype=np.int64)
    rates = [np.array([row[place] for row in rows], dtype=np.float64) for place in (4, 5)]
    return ItemTable(
        level,
        tuple(samples),
        owner,
        np.array([row[1:3] for row in rows], dtype=np.int32).reshape(-1, 2),
        np.array([tag_of(samples[place].language) for place in owner.tolist()], dtype=np.str_),
        tuple(texts[samples[place].id] for place in owner.tolist()),
        np.array([row[3] for row in rows], dtype=bool),
        None if level == "word" else rates[0],
        None if level == "word" else rates[1],
        labelled,
    )


_Row = tuple[int, int, int, bool, float, float]  # owner, start, end, nonfactual, support, unverified


def _labelled(samples: Sequence[Sample], level: str, annotator: str | None) -> list[_Row]:
    return [
        (index, one.start, one.end, one.nonfactual, _number(one.support), _number(one.unverified))
        for index, sample in enumerate(samples)
        for one in item_labels(sample, level, annotator) or ()
    ]


def _bare(samples: Sequence[Sample], level: str, unit: str) -> list[_Row]:
    """The items of samples without labels."""
    from veriglot.text import sentences

    segment = segmenter(unit)
    rows: list[_Row] = []
    for index, sample in enumerate(samples):
        tag = tag_of(sample.language)
        if level == "response":
            places = [(0, len(sample.response))]
        else:
            places = segment(sample.response, tag).tolist() if level == "word" else sentences(sample.response, tag)
        rows += [(index, start, end, False, np.nan, np.nan) for start, end in places]
    return rows


def _words(samples: Sequence[Sample], annotator: str | None, unit: str) -> list[_Row]:
    segment = segmenter(unit)
    rows: list[_Row] = []
    for index, sample in enumerate(samples):
        found = reference(sample, annotator)
        if found is None:
            continue
        bounds = segment(sample.response, tag_of(sample.language))
        bad = marked(bounds, found.marks.spans).tolist()
        rows += [(index, s, e, b, np.nan, np.nan) for (s, e), b in zip(bounds.tolist(), bad, strict=True)]
    return rows


def _number(value: float | None) -> float:
    return np.nan if value is None else value
