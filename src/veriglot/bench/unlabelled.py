"""What systems said of data without labels: how much they mark, and how high their numbers are.

Neither is a figure of merit: a detector that marks more is not better. What can be had without labels besides is how
far systems agree (`bench.correlating`), what became of the samples, and what they cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from veriglot.bench.fewness import too_few
from veriglot.bench.results import MEAN, BenchAnswers
from veriglot.metrics.bootstrap import percentile
from veriglot.metrics.estimate import mean_of_draws
from veriglot.records import Direction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from veriglot.bench.items import ItemTable
    from veriglot.bench.measuring import Judgement
    from veriglot.metrics.resampling import Resampling

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

__all__ = ["answered"]


class _Share(NamedTuple):
    """A mean with its interval; None where it is undefined."""

    value: float | None
    low: float | None
    high: float | None


def answered(
    data: str, table: ItemTable, judgements: Sequence[Judgement], resampling: Resampling, *, suffix: str
) -> Iterator[BenchAnswers]:
    """What every system said, in each language and in the mean over languages.

    Args:
        data: name of the data set.
        table: its items.
        judgements: what systems said of them.
        resampling: of the same items.
        suffix: what every signature ends with.
    """
    for one in judgements:
        sign = 1.0 if Direction(one.direction) is Direction.HIGHER_IS_WORSE else -1.0
        numbers = sign * one.test.badness
        verdicts = np.full(len(table), np.nan) if one.test.verdict is None else one.test.verdict
        drawn: list[tuple[Array, Array]] = []
        for tag in [*table.tags(), MEAN]:
            mask = table.languages == tag if tag != MEAN else np.ones(len(table), dtype=bool)
            if tag != MEAN:
                drawn.append((_means(verdicts, mask, resampling), _means(numbers, mask, resampling)))
                flagged, mean = drawn[-1]
            else:
                flagged, mean = (mean_of_draws([pair[place] for pair in drawn]) for place in (0, 1))
            yield _answers(data, table, one, tag, mask, resampling, _told(flagged), _told(mean), suffix)


def _answers(
    data: str, table: ItemTable, said: Judgement, tag: str, mask: Mask, resampling: Resampling, flagged: _Share,
    mean: _Share, suffix: str,
) -> BenchAnswers:  # fmt: skip
    scored = mask & ~np.isnan(said.test.badness)
    items, clusters = int(np.count_nonzero(scored)), resampling.select(scored).clusters()
    if too_few(clusters) is not None:
        flagged, mean = (one._replace(low=None, high=None) for one in (flagged, mean))
    return BenchAnswers(
        system=said.system,
        data=data,
        level=table.level,
        language=tag,
        items=items,
        clusters=clusters,
        coverage=items / max(int(np.count_nonzero(mask)), 1),
        flagged=flagged.value,
        flagged_low=flagged.low,
        flagged_high=flagged.high,
        mean=mean.value,
        mean_low=mean.low,
        mean_high=mean.high,
        signature=f"answers:{table.level}|language:{tag}|cell:{said.cell[:16]}|{suffix}",
    )


def _means(values: Array, mask: Mask, resampling: Resampling) -> Array:
    """The mean of the known values in the data and in every resample, shape `(1 + resamples,)`; NaN of nothing."""
    known = mask & ~np.isnan(values)
    parts = [np.stack([weights @ values[known], weights.sum(axis=1)]) for weights in resampling.select(known).blocks()]
    total, count = np.concatenate(parts, axis=1)
    found: Array = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
    return found


def _told(draws: Array) -> _Share:
    if np.isnan(draws[0]):
        return _Share(None, None, None)
    return _Share(float(draws[0]), *percentile(draws[1:])[:2])
