"""From the results of a bench to the figures that the detector `auto` chooses by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.bench.results import MEAN
from veriglot.detectors.recorded import RECORDED, Recorded, RecordedFigure
from veriglot.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.bench.results import BenchData, BenchFigure, BenchResults
    from veriglot.detectors.recorded import Setting

__all__ = ["FEWEST_TEXTS", "LEAST_COVERAGE", "MEASURE", "recorded"]

MEASURE = "auc_pr_nonfactual"  # of words: it needs no threshold, so that none is compared
FEWEST_TEXTS = 20
_LESS_IS_BETTER = frozenset({"fpr"})
LEAST_COVERAGE = 0.9  # a detector that scores the easy half is not to win by it


def recorded(results: BenchResults, *, level: str = "word", measure: str = MEASURE) -> Recorded:
    """The figures of detectors in each language of each data set.

    Left out are figures on data that the detector learned from, those on fewer than 20 texts or less than nine tenths
    of the labelled items, those of languages that are not known, and those of `auto` itself.

    Args:
        results: of a bench.
        level: `word`, `sentence` or `response`.
        measure: one of which more is better, and that needs no threshold or was taken at the detector's own.

    Raises:
        UnknownNameError: the bench took no such measure at that level, or less of it is better.
        UsageError: no figure is left.
    """
    known = [name for name in results.measures.get(level, ()) if name not in _LESS_IS_BETTER]
    if measure not in known:
        raise UnknownNameError(f"measure of {level}s in these results", measure, known)
    data = {one.name: one for one in results.data}
    found = tuple(_figures(results, data, level, measure))
    if not found:
        raise UsageError(
            f"The results hold no {measure} of {level}s of a detector on {FEWEST_TEXTS} texts that it had not seen.",
            remedy="Choose another --measure or --level, or run the bench on more labelled data.",
        )
    return Recorded(format=RECORDED, level=level, measure=measure, figures=found, signature=results.signature)


def _figures(results: BenchResults, data: dict[str, BenchData], level: str, measure: str) -> Iterator[RecordedFigure]:
    systems = {one.name: one for one in results.systems if one.kind == "detector" and one.description is not None}
    for figure in results.figures:
        system = systems.get(figure.system)
        if (
            system is None
            or system.made_by == "auto"
            or (figure.level, figure.measure) != (level, measure)
            or figure.at == "tuned"
        ):
            continue
        if figure.value is None or not _counts(figure):
            continue
        yield RecordedFigure(
            detector=system.description or "",
            name=system.made_by,
            language=figure.language,
            setting=_setting(data[figure.data], figure.language),
            data=figure.data,
            value=round(figure.value, 4),
            low=None if figure.low is None else round(figure.low, 4),
            high=None if figure.high is None else round(figure.high, 4),
            items=figure.items,
            texts=figure.clusters,
            options=system.options,
        )


def _counts(figure: BenchFigure) -> bool:
    known = figure.language not in {MEAN, "und"}
    enough = figure.clusters >= FEWEST_TEXTS and figure.coverage >= LEAST_COVERAGE
    return known and enough and not figure.seen


def _setting(data: BenchData, language: str) -> Setting:
    """A cell of a translation belongs to two languages."""
    return "translation" if len(data.pairs.get(language, ())) > 1 else "evidence"
