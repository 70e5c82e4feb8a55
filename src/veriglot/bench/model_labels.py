"""Labels that a model made: in a bench they count only where its file names their annotator, and never for their maker.

Published silver is fair ground where everybody knows that it is silver. What a detector marked and somebody put into
the data is not a reference by itself: held against its own marks, every detector is perfect.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from veriglot.metrics.reference import COMBINED, labelled, reference
from veriglot.records import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from veriglot.metrics.reference import Reference
    from veriglot.records import Annotation, Sample

__all__ = ["OWN_MARKS", "bench_reference", "made_by", "model_annotators", "same_maker"]

OWN_MARKS = "the labels are its own marks, or those of another revision or a member of it"
"""Why a system is not judged on a data set."""

_VERSION = re.compile(r"@[0-9.]+$")


def bench_reference(sample: Sample, annotator: str | None) -> Reference | None:
    """As `metrics.reference`, but a model's labels count by its own name alone, not by default or in a majority."""
    named = annotator is not None and annotator not in COMBINED
    if not named and all(one.kind is Kind.MODEL for one in labelled(sample)):
        return None
    return reference(sample, annotator)


def model_annotators(samples: Iterable[Sample]) -> tuple[str, ...]:
    """The names of the models that labelled any of the samples, sorted."""
    return tuple(sorted({one.annotator for sample in samples for one in _by_models(sample)}))


def made_by(samples: Iterable[Sample], annotator: str | None) -> frozenset[str]:
    """The names of the models that made labels: annotators, and the detectors that the annotations state.

    Args:
        samples: with annotations.
        annotator: of which labels; None for every model's.

    Returns:
        Nothing where people made them.
    """
    found = [one for sample in samples for one in _by_models(sample) if annotator in {None, one.annotator}]
    stated = {one.ratings.get("detector") for one in found}
    return frozenset({one.annotator for one in found} | {name for name in stated if isinstance(name, str)})


def same_maker(makers: Iterable[str], names: Iterable[str | None]) -> bool:
    """Whether any of the names is one of the makers'.

    Revisions that count up are one detector: `grounding@1.1` made what `grounding@1.0` did. What tells models apart
    counts: `judge:spans@1+one` and `judge:spans@1+two` are two.
    """
    return not {_unversioned(one) for one in makers}.isdisjoint(_unversioned(one) for one in names if one)


def _by_models(sample: Sample) -> list[Annotation]:
    return [one for one in labelled(sample) if one.kind is Kind.MODEL]


def _unversioned(name: str) -> str:
    return _VERSION.sub("", name)
