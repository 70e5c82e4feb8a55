"""Confusion matrices of types for the results: of one detector on one data set, in each language and in all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from veriglot.bench.belonging import tag_of
from veriglot.bench.results import BenchConfusion
from veriglot.bench.type_confusion import UNMARKED, type_confusion
from veriglot.errors import UsageError
from veriglot.metrics.reference import reference
from veriglot.records import taxonomies

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.bench.type_confusion import TypeConfusion
    from veriglot.records import Prediction, Sample

__all__ = ["EVERY", "grain_of_types", "type_confusions"]

EVERY = "all"
"""The language of a matrix of all languages together: counts add, as halluverse's Figure 4 has them."""

Grain = Literal["response", "mark"]


def grain_of_types(samples: Sequence[Sample], annotator: str | None = None) -> Grain | None:
    """What has one type in labelled data: `response` where each has one at most, else `mark`.

    None where labels tell no types apart: no taxonomy, or one with a single type (`hat`, `critical`).
    """
    found = [one for one in (reference(sample, annotator) for sample in samples) if one is not None]
    if not any(len(_types(one.taxonomy)) > 1 and any(one.marks.types) for one in found):
        return None
    return "response" if all(len(set(one.marks.types)) <= 1 for one in found) else "mark"


def _types(name: str | None) -> list[str]:
    known = taxonomies().get(name or "")
    return [type_ for type_ in known.types if type_ not in known.clean] if known else []


def type_confusions(
    system: str,
    data: str,
    samples: Sequence[Sample],
    predictions: Sequence[Prediction],
    *,
    detector_taxonomy: str | None,
    annotator: str | None,
    seen: bool,
    suffix: str,
) -> Iterator[BenchConfusion]:
    """The matrices of one detector on one data set: of all languages, then of each where there are several.

    Nothing where the labels have no types. Where the types of the data and of the detector do not lead to each other,
    one record without counts says so.

    Args:
        system, data: names.
        samples: test samples, with labels.
        predictions: of these, in order.
        detector_taxonomy: what the detector's types belong to; None to find the taxonomy that holds them.
        annotator: whose labels; see `metrics.reference`.
        seen: whether the system's own training held the data.
        suffix: what signatures end with.
    """
    grain = grain_of_types(samples, annotator)
    if grain is None:
        return
    parts = {EVERY: list(zip(samples, predictions, strict=True))}
    tags = sorted({tag_of(sample.language) for sample in samples})
    if len(tags) > 1:
        parts |= {tag: [row for row in parts[EVERY] if tag_of(row[0].language) == tag] for tag in tags}
    for language, rows in parts.items():
        signed = f"types:{grain}|language:{language}|{suffix}"
        empty = BenchConfusion(system=system, data=data, language=language, of=grain, seen=seen, signature=signed)
        try:
            found = type_confusion(
                (sample for sample, _ in rows),
                (prediction for _, prediction in rows),
                level=grain,
                annotator=annotator,
                detector_taxonomy=detector_taxonomy,
            )
        except UsageError as error:
            if language == EVERY:
                yield msgspec.structs.replace(empty, reason=error.message)
                return
            continue  # a language whose labels have no types
        yield _filled(empty, found)


def _filled(empty: BenchConfusion, found: TypeConfusion) -> BenchConfusion:
    """The record with its counts; the column `none` is always there."""
    classes, answers, counts = found.matrix.classes, found.matrix.answers, found.matrix.counts
    if UNMARKED not in answers:
        answers = (*classes, UNMARKED, *answers[len(classes) :])
        counts = np.insert(counts, len(classes), 0, axis=1)
    else:
        others = [answer for answer in answers[len(classes) :] if answer != UNMARKED]
        order = [*classes, *([] if UNMARKED in classes else [UNMARKED]), *others]
        counts, answers = counts[:, [answers.index(answer) for answer in order]], tuple(order)
    return msgspec.structs.replace(
        empty,
        taxonomy=found.taxonomy,
        classes=classes,
        answers=answers,
        counts=tuple(tuple(row) for row in counts.tolist()),
        left_out=found.left_out,
        reason=found.note or None,
    )
