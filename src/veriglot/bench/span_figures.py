"""Figures of spans and confidences that no score of an item gives: overlap in characters, soft labels, calibration.

They are those of `veriglot evaluate` (`metrics.measures`), at the detector's own threshold: the character IoU and the
correlation with soft labels of the Mu-SHROOM shared task, and the expected calibration error of words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.bench.evaluate import Evaluator, Settings
from veriglot.bench.evaluate import measured as evaluated
from veriglot.bench.fewness import too_few
from veriglot.bench.results import BenchFigure
from veriglot.metrics.figure import POOLED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.bench.systems import System
    from veriglot.metrics.figure import Figure
    from veriglot.records import Prediction, Sample

__all__ = ["SPAN_MEASURES", "span_figures"]

SPAN_MEASURES = {"iou": "char", "soft_correlation": "char", "ece": "unit"}
"""Name of the measure to its level in `metrics.measures`."""


def span_figures(
    system: System,
    data: str,
    samples: Sequence[Sample],
    predictions: Sequence[Prediction],
    *,
    annotator: str | None,
    unit: str,
    seed: int,
    resamples: int,
    seen: bool,
    suffix: str,
) -> list[BenchFigure]:
    """The figures of one detector on one data set, by language and as the mean over languages.

    Args:
        system: one that marks.
        data: name of the data set.
        samples: test samples, with labels.
        predictions: of these, in order.
        annotator: whose labels; see `metrics.reference`.
        unit: `word`, `char` or `hf:<tokenizer>`.
        seed, resamples: of the bootstrap, which draws texts as `veriglot evaluate` does.
        seen: whether the system's own training held the data.
        suffix: what signatures end with.
    """
    settings = Settings(
        system.about.description or system.name,
        system.about.signature,
        system.taxonomy,
        system.kept.types if system.kept is not None else frozenset(),
        threshold=system.threshold,
        unit=unit,
        annotator=annotator,
    )
    evaluator = Evaluator(settings)
    for sample, prediction in zip(samples, predictions, strict=True):
        evaluator.add(sample, prediction)
    levels = sorted(set(SPAN_MEASURES.values()))
    found = evaluated(evaluator.stored(), seed=seed, resamples=resamples, levels=levels).figures
    return [
        _figure(system.name, data, one, seen=seen, suffix=suffix)
        for one in found
        if SPAN_MEASURES.get(one.name) == one.level and one.language != POOLED
    ]


def _figure(system: str, data: str, found: Figure, *, seen: bool, suffix: str) -> BenchFigure:
    why = too_few(found.n_clusters) if found.low is not None else None
    return BenchFigure(
        system=system,
        data=data,
        level="word",
        language=found.language,
        measure=found.name,
        at="own",
        value=found.value,
        low=None if why else found.low,
        high=None if why else found.high,
        items=found.n_units,
        positives=round((found.prevalence or 0.0) * found.n_units),
        clusters=found.n_clusters,
        coverage=found.coverage or 0.0,
        seen=seen,
        reason="; ".join(part for part in (found.reason, why) if part) or None,
        signature=f"{found.signature}|{suffix}",
    )
