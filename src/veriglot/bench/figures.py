"""The figures of all systems on one data set, from the same items and the same resamples; unlabelled data too.

Thresholds are tuned on the dev part alone. A figure of several languages is the mean of theirs, draw by draw; draws are
those of `bench.comparison.bench_draws`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from veriglot.bench.comparison import bench_draws, too_few, without_unsure_interval
from veriglot.bench.evaluation import Evaluator, Settings
from veriglot.bench.evaluation import measured as evaluated
from veriglot.bench.results import MEAN, BenchAnswers, BenchFigure, BenchThreshold
from veriglot.bench.thresholds import Threshold, tune
from veriglot.metrics.estimate import POOLED, ClusteredEstimate, estimated, mean_of_draws, percentile
from veriglot.metrics.measures import AT_THRESHOLD, CORRELATIONS, ITEM_MEASURES, SPAN_MEASURES, described
from veriglot.records import Direction, Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from veriglot.bench.labels import ItemTable
    from veriglot.bench.results import At
    from veriglot.bench.systems import System
    from veriglot.bench.thresholds import Opinion
    from veriglot.metrics.estimate import MetricResult, Resampling
    from veriglot.metrics.measures import Items
    from veriglot.records import Prediction, Sample

__all__ = ["UNTUNED", "DataMeasurements", "Judgement", "by_cell", "measured", "span_figures", "unlabelled_answers"]


if TYPE_CHECKING:
    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]


_ALIKE = "all items are marked, or none: marks that go with nothing count as 0"
UNTUNED = "no threshold could be tuned"
"""What the reason of a figure begins with that has no threshold."""
Cuts = dict[str, float]  # language to the badness from which items are marked


@dataclass(frozen=True)
class Judgement:
    """What one system said of the items of a data set.

    Attributes:
        system: its name.
        direction: of its own numbers, for thresholds.
        test: of the test items.
        dev: of the dev items.
        seen: whether its own training held the data.
        cell: key of the cell, which signs what was said.
    """

    system: str
    direction: str
    test: Opinion
    dev: Opinion
    seen: bool
    cell: str


@dataclass(frozen=True)
class Drawn:
    """One measure of one system in one language, with its resamples.

    Attributes:
        at: `tuned`, `own` or None.
        values: the data in draw 0, resamples after it.
    """

    system: str
    measure: str
    at: At | None
    language: str
    values: Array


@dataclass
class DataMeasurements:
    """Figures, thresholds and draws of all systems on one data set at one level.

    Attributes:
        figures: see `BenchFigure`.
        thresholds: see `BenchThreshold`.
        drawn: draws by language, for win rates.
        cuts: system and measure to the badness from which items are marked in each language, as tuned.
    """

    figures: list[BenchFigure] = field(default_factory=list)
    thresholds: list[BenchThreshold] = field(default_factory=list)
    drawn: list[Drawn] = field(default_factory=list)
    cuts: dict[tuple[str, str], Cuts] = field(default_factory=dict)


def measured(
    data: str,
    test: ItemTable,
    dev: ItemTable,
    judgements: Sequence[Judgement],
    measures: Sequence[str],
    resampling: Resampling,
    *,
    by_language: bool,
    suffix: str,
) -> DataMeasurements:
    """Measure every system.

    Args:
        data: name of the data set.
        test, dev: its items.
        judgements: what systems said of them.
        measures: names of `ITEM_MEASURES`.
        resampling: of the test items.
        by_language: tune a threshold for each language, not for the data set.
        suffix: what the signature of every figure ends with.
    """
    result = DataMeasurements()
    for judgement in judgements:
        maker = _Maker(data, test, judgement, suffix)
        for name in measures:
            if name not in AT_THRESHOLD:
                _add(result, maker, name, None, judgement.test.badness, {}, {}, resampling)
                continue
            cuts, without = _tuned(result, data, dev, judgement, name, test.tags(), by_language=by_language)
            _add(result, maker, name, "tuned", judgement.test.badness, cuts, without, resampling)
            result.cuts[judgement.system, name] = cuts
            if judgement.test.verdict is not None:
                own = dict.fromkeys(test.tags(), 0.5)
                _add(result, maker, name, "own", judgement.test.verdict, own, {}, resampling)
    return result


def _tuned(
    into: DataMeasurements, data: str, dev: ItemTable, judgement: Judgement, measure: str, tags: Sequence[str], *,
    by_language: bool,
) -> tuple[Cuts, dict[str, str]]:  # fmt: skip
    """Language to its cut, and to why it has none where none can be tuned."""
    sign = 1.0 if Direction(judgement.direction) is Direction.HIGHER_IS_WORSE else -1.0
    cuts: Cuts = {}
    without: dict[str, str] = {}
    for tag in tags if by_language else [MEAN]:
        chosen = dev.languages == tag if by_language else np.ones(len(dev), dtype=bool)
        threshold = tune(sign * judgement.dev.badness[chosen], dev.nonfactual[chosen], measure, judgement.direction)
        into.thresholds.append(_threshold(data, dev.level, judgement.system, measure, tag, threshold))
        meant = [tag] if by_language else tags
        if threshold.cut is not None:
            cuts |= dict.fromkeys(meant, threshold.cut)
        else:
            without |= dict.fromkeys(meant, _why_not(threshold))
    return cuts, without


def _why_not(threshold: Threshold) -> str:
    """Why no threshold could be tuned, and on how much it was tried."""
    scored = f" ({threshold.items:,} scored item{'' if threshold.items == 1 else 's'})" if threshold.items else ""
    return f"{UNTUNED}: {threshold.reason}{scored}"


def _threshold(data: str, level: str, system: str, measure: str, tag: str, threshold: Threshold) -> BenchThreshold:
    return BenchThreshold(
        system, data, level, measure, tag, threshold.value, threshold.direction.value, threshold.reached,  # type: ignore[arg-type]
        threshold.items, threshold.positives, threshold.reason,
    )  # fmt: skip


def _add(
    into: DataMeasurements, maker: _Maker, name: str, at: At | None, badness: Array, cuts: Mapping[str, float],
    without: Mapping[str, str], resampling: Resampling,
) -> None:  # fmt: skip
    """The figures of one measure: of each language, then the mean over them."""
    parts: dict[str, tuple[Array, ClusteredEstimate]] = {}
    table = maker.table
    items = table.items(badness)
    for tag in table.tags():
        mask = table.languages == tag
        if name in AT_THRESHOLD and tag not in cuts:
            into.figures.append(
                maker.untuned(name, tag, int(np.count_nonzero(items.scored & mask)), mask, without[tag])
            )
            continue
        part, drawing = items.select(mask), resampling.select(mask)
        values, alike = bench_draws(name, part, drawing, cut=cuts.get(tag))
        estimate = described(name, part, drawing, values)
        if alike:
            estimate = replace(estimate, reason=f"{_ALIKE}; {estimate.reason}" if estimate.reason else _ALIKE)
        parts[tag] = values, estimate
        into.drawn.append(Drawn(maker.judgement.system, name, at, tag, values))
        into.figures.append(maker.figure(name, at, tag, estimate, mask, _p(name, part, drawing, values)))
    into.figures.append(maker.mean(name, at, parts, "; ".join(dict.fromkeys(without.values()))))


def _p(name: str, items: Items, resampling: Resampling, values: Array) -> float | None:
    """The p-value of a correlation; None for other measures, and where the extra `stats` is missing."""
    from veriglot.bench.comparison import associate
    from veriglot.errors import MissingExtraError

    if name not in CORRELATIONS or np.isnan(values[0]):
        return None
    try:
        return associate(name, items, resampling).p
    except MissingExtraError:
        return None


@dataclass(frozen=True)
class _Maker:
    """Makes the figures of one system."""

    data: str
    table: ItemTable
    judgement: Judgement
    suffix: str

    def figure(
        self, name: str, at: At | None, tag: str, estimate: ClusteredEstimate, mask: Mask, p: float | None = None
    ) -> BenchFigure:
        estimate = without_unsure_interval(estimate)
        scored = np.count_nonzero(~np.isnan(self.judgement.test.badness[mask]))
        return BenchFigure(
            system=self.judgement.system,
            data=self.data,
            level=self.table.level,  # type: ignore[arg-type]
            language=tag,
            measure=name,
            at=at,
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
            items=estimate.items,
            positives=estimate.positives,
            clusters=estimate.clusters,
            chance=estimate.chance,
            coverage=float(scored) / max(int(np.count_nonzero(mask)), 1),
            p=p if too_few(estimate.clusters) is None else None,
            seen=self.judgement.seen,
            reason=estimate.reason,
            signature=self._signature(name, at, tag),
        )

    def untuned(self, name: str, tag: str, items: int, mask: Mask, why: str) -> BenchFigure:
        """Of a language for which no threshold could be tuned."""
        return self.figure(name, "tuned", tag, ClusteredEstimate(items, 0, 0, None, why, value=None), mask)

    def mean(
        self, name: str, at: At | None, parts: Mapping[str, tuple[Array, ClusteredEstimate]], untuned: str = ""
    ) -> BenchFigure:
        """Over the languages in which the measure is defined; `untuned` says why there are no parts."""
        every = self.table.tags()
        defined = [tag for tag, (values, _) in parts.items() if not np.isnan(values[0])]
        behind = [parts[tag][1] for tag in defined or parts]
        chances = [estimate.chance for estimate in behind if estimate.chance is not None]
        drawn = mean_of_draws([parts[tag][0] for tag in parts]) if parts else np.array([np.nan])
        mean = estimated(
            drawn,
            items=sum(estimate.items for estimate in behind),
            positives=sum(estimate.positives for estimate in behind),
            clusters=sum(estimate.clusters for estimate in behind),
            why=ITEM_MEASURES[name].why if parts else untuned or UNTUNED,
            chance=float(np.mean(chances)) if chances else None,
        )
        missing = [tag for tag in every if tag not in defined]
        if missing and defined:
            gap = f"over {len(defined)} of {len(every)} languages, without {', '.join(missing)}"
            mean = replace(mean, reason=f"{gap}; {mean.reason}" if mean.reason else gap)
        return self.figure(name, at, MEAN, mean, np.ones(len(self.table), dtype=bool))

    def _signature(self, name: str, at: At | None, tag: str) -> str:
        where = f"figure:{self.table.level}.{name}|at:{at or 'none'}|language:{tag}"
        return f"{where}|cell:{self.judgement.cell[:16]}|{self.suffix}"


def by_cell(results: Mapping[str, DataMeasurements]) -> dict[tuple[str, At | None], dict[str, dict[str, Array]]]:
    """Draws arranged for win rates: measure and threshold to cell (`data/language`) to system to its draws."""
    table: dict[tuple[str, At | None], dict[str, dict[str, Array]]] = defaultdict(lambda: defaultdict(dict))
    for data, result in results.items():
        for drawn in result.drawn:
            table[drawn.measure, drawn.at][f"{data}/{drawn.language}"][drawn.system] = drawn.values
    return table


# Figures of spans and confidences that no score of an item gives: overlap in characters, soft labels, calibration.
#
# They are those of `veriglot evaluate` (`metrics.measures`), at the detector's own threshold: the character IoU and the
# correlation with soft labels of the Mu-SHROOM shared task, and the expected calibration error of words.


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
        system.imported.types if system.imported is not None else frozenset(),
        threshold=system.threshold,
        unit=unit,
        annotator=annotator,
    )
    evaluator = Evaluator(settings)
    for sample, prediction in zip(samples, predictions, strict=True):
        evaluator.add(sample, prediction)
    levels = sorted(set(SPAN_MEASURES.values()))
    results = evaluated(evaluator.stored(), seed=seed, resamples=resamples, levels=levels).figures
    return [
        _figure(system.name, data, result, seen=seen, suffix=suffix)
        for result in results
        if SPAN_MEASURES.get(result.name) == result.level and result.language != POOLED
    ]


def _figure(system: str, data: str, result: MetricResult, *, seen: bool, suffix: str) -> BenchFigure:
    why = too_few(result.n_clusters) if result.low is not None else None
    return BenchFigure(
        system=system,
        data=data,
        level="word",
        language=result.language,
        measure=result.name,
        at="own",
        value=result.value,
        low=None if why else result.low,
        high=None if why else result.high,
        items=result.n_units,
        positives=round((result.prevalence or 0.0) * result.n_units),
        clusters=result.n_clusters,
        coverage=result.coverage or 0.0,
        seen=seen,
        reason="; ".join(part for part in (result.reason, why) if part) or None,
        signature=f"{result.signature}|{suffix}",
    )


# What systems said of data without labels: how much they mark, and how high their numbers are.
#
# Neither is a figure of merit: a detector that marks more is not better. What can be had without labels besides is how
# far systems agree (`bench.comparison`), what became of the samples, and what they cost.


def unlabelled_answers(
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
    for judgement in judgements:
        sign = 1.0 if Direction(judgement.direction) is Direction.HIGHER_IS_WORSE else -1.0
        numbers = sign * judgement.test.badness
        verdicts = np.full(len(table), np.nan) if judgement.test.verdict is None else judgement.test.verdict
        drawn: list[tuple[Array, Array]] = []
        for tag in [*table.tags(), MEAN]:
            mask = table.languages == tag if tag != MEAN else np.ones(len(table), dtype=bool)
            if tag != MEAN:
                drawn.append((_means(verdicts, mask, resampling), _means(numbers, mask, resampling)))
                flagged, mean = drawn[-1]
            else:
                flagged, mean = (mean_of_draws([pair[index] for pair in drawn]) for index in (0, 1))
            yield _answers(
                data, table, judgement, tag, mask, resampling, _estimate_of(flagged), _estimate_of(mean), suffix
            )


def _answers(
    data: str, table: ItemTable, judgement: Judgement, tag: str, mask: Mask, resampling: Resampling, flagged: Estimate,
    mean: Estimate, suffix: str,
) -> BenchAnswers:  # fmt: skip
    scored = mask & ~np.isnan(judgement.test.badness)
    items, clusters = int(np.count_nonzero(scored)), resampling.select(scored).clusters()
    if too_few(clusters) is not None:
        flagged, mean = (replace(estimate, low=None, high=None) for estimate in (flagged, mean))
    return BenchAnswers(
        system=judgement.system,
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
        signature=f"answers:{table.level}|language:{tag}|cell:{judgement.cell[:16]}|{suffix}",
    )


def _means(values: Array, mask: Mask, resampling: Resampling) -> Array:
    """The mean of the known values in the data and in every resample, shape `(1 + resamples,)`; NaN of nothing."""
    known = mask & ~np.isnan(values)
    parts = [np.stack([weights @ values[known], weights.sum(axis=1)]) for weights in resampling.select(known).blocks()]
    total, count = np.concatenate(parts, axis=1)
    means: Array = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
    return means


def _estimate_of(draws: Array) -> Estimate:
    if np.isnan(draws[0]):
        return Estimate(value=None)
    low, high, _ = percentile(draws[1:])
    return Estimate(value=float(draws[0]), low=low, high=high)
