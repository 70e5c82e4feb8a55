"""What people (or a model in their stead) said of some of a study's own responses, for the estimator `ppi`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from veriglot.errors import InputError
from veriglot.metrics.marks import marked
from veriglot.metrics.reference import reference
from veriglot.metrics.units import segmenter
from veriglot.rates import Labels
from veriglot.run import FailedRow
from veriglot.study.files import all_files, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from veriglot.records import Kind
    from veriglot.study.config import Config
    from veriglot.study.tallying import Group

__all__ = ["Gold", "gold_counts", "gold_in", "labels_of", "without_response"]


@dataclass(frozen=True)
class Gold:
    """Labels of responses, as counts; false where there are none.

    Attributes:
        counts: unsupported units and units of each labelled response, by its id.
        kinds: who labelled: people, models or both.
    """

    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    kinds: frozenset[Kind] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.counts)


def gold_counts(config: Config) -> Gold:
    """The labels that a study names; none where it names none.

    Raises:
        InputError: a file cannot be read, or no row of it is labelled.
        UsageError: several annotators labelled, and the study does not say whose labels count.
    """
    entry = config.entries.labels
    if entry is None:
        return Gold()
    paths = config.places(entry.path)
    return gold_in(paths, unit=config.study.unit, annotator=entry.annotator, format_name=entry.format)


def gold_in(paths: Sequence[Path], *, unit: str, annotator: str | None = None, format_name: str | None = None) -> Gold:
    """The same, of the labelled samples in files; arguments and errors as there."""
    segment = segmenter(unit)
    found: dict[str, tuple[int, int]] = {}
    kinds: set[Kind] = set()
    for row in rows_of(all_files(paths), format_name=format_name, language=None):
        if isinstance(row, FailedRow):
            raise row.as_error()
        labels = reference(row, annotator)
        if labels is not None:
            bounds = segment(row.response, row.language)
            kinds.add(labels.kind)
            found[row.id] = (int(np.count_nonzero(marked(bounds, labels.marks.spans))), len(bounds))
    if not found:
        raise InputError("no row of it is labelled", path=str(paths[0]), field="annotations")
    return Gold(found, frozenset(kinds))


def labels_of(ids: Sequence[str], units: Sequence[int], gold: Gold) -> Labels | None:
    """The labels of the responses with these ids, in order; None where none is labelled.

    Args:
        ids: of the judged responses.
        units: of each.
        gold: see `gold_counts`.

    Raises:
        InputError: a labelled response has other units than the one that was judged, so it is another text.
    """
    places = [place for place, id_ in enumerate(ids) if id_ in gold.counts]
    if not places:
        return None
    for place in places:
        if gold.counts[ids[place]][1] != units[place]:
            raise InputError(
                f"the labelled response {ids[place]!r} is not the one that was judged: it has"
                f" {gold.counts[ids[place]][1]} units, and that one {units[place]}",
                field="labels",
            )
    unsupported = np.array([gold.counts[ids[place]][0] for place in places], dtype=np.int64)
    return Labels(unsupported, np.array(places, dtype=np.int64))


def without_response(gold: Gold, groups: Iterable[Group]) -> int:
    """Labelled responses that are none of the judged ones in `groups`: no estimate uses them."""
    return len(gold.counts.keys() - {id_ for group in groups for id_ in group.ids})
