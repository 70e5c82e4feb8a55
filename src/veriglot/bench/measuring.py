"""The figures of all systems on one data set at one level, from the same items and the same resamples.

Thresholds are tuned on the dev part alone. A figure of several languages is the mean of theirs, draw by draw; draws are
those of `bench.drawing`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from veriglot.bench.drawing import bench_draws
from veriglot.bench.fewness import honest, too_few
from veriglot.bench.results import MEAN, BenchFigure, BenchThreshold
from veriglot.bench.tuning import Threshold, tune
from veriglot.metrics.estimate import Estimate, estimated, mean_of_draws
from veriglot.metrics.item_measures import AT_THRESHOLD, CORRELATIONS, ITEM_MEASURES, described
from veriglot.records import Direction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from veriglot.bench.items import ItemTable
    from veriglot.bench.results import At
    from veriglot.bench.verdicts import Opinion
    from veriglot.metrics.items import Items
    from veriglot.metrics.resampling import Resampling

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

__all__ = ["UNTUNED", "Drawn", "Judgement", "Measured", "by_cell", "measured"]

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
class Measured:
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
) -> Measured:
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
    found = Measured()
    for judgement in judgements:
        maker = _Maker(data, test, judgement, suffix)
        for name in measures:
            if name not in AT_THRESHOLD:
                _add(found, maker, name, None, judgement.test.badness, {}, {}, resampling)
                continue
            cuts, without = _tuned(found, data, dev, judgement, name, test.tags(), by_language=by_language)
            _add(found, maker, name, "tuned", judgement.test.badness, cuts, without, resampling)
            found.cuts[judgement.system, name] = cuts
            if judgement.test.verdict is not None:
                own = dict.fromkeys(test.tags(), 0.5)
                _add(found, maker, name, "own", judgement.test.verdict, own, {}, resampling)
    return found


def _tuned(
    into: Measured, data: str, dev: ItemTable, judgement: Judgement, measure: str, tags: Sequence[str], *,
    by_language: bool,
) -> tuple[Cuts, dict[str, str]]:  # fmt: skip
    """Language to its cut, and to why it has none where none can be tuned."""
    sign = 1.0 if Direction(judgement.direction) is Direction.HIGHER_IS_WORSE else -1.0
    cuts: Cuts = {}
    without: dict[str, str] = {}
    for tag in tags if by_language else [MEAN]:
        chosen = dev.languages == tag if by_language else np.ones(len(dev), dtype=bool)
        found = tune(sign * judgement.dev.badness[chosen], dev.nonfactual[chosen], measure, judgement.direction)
        into.thresholds.append(_threshold(data, dev.level, judgement.system, measure, tag, found))
        meant = [tag] if by_language else tags
        if found.cut is not None:
            cuts |= dict.fromkeys(meant, found.cut)
        else:
            without |= dict.fromkeys(meant, _why_not(found))
    return cuts, without


def _why_not(found: Threshold) -> str:
    """Why no threshold could be tuned, and on how much it was tried."""
    scored = f" ({found.items:,} scored item{'' if found.items == 1 else 's'})" if found.items else ""
    return f"{UNTUNED}: {found.reason}{scored}"


def _threshold(data: str, level: str, system: str, measure: str, tag: str, found: Threshold) -> BenchThreshold:
    return BenchThreshold(
        system, data, level, measure, tag, found.value, found.direction.value, found.reached, found.items,  # type: ignore[arg-type]
        found.positives, found.reason,
    )  # fmt: skip


def _add(
    into: Measured, maker: _Maker, name: str, at: At | None, badness: Array, cuts: Mapping[str, float],
    without: Mapping[str, str], resampling: Resampling,
) -> None:  # fmt: skip
    """The figures of one measure: of each language, then the mean over them."""
    parts: dict[str, tuple[Array, Estimate]] = {}
    table = maker.table
    items = table.items(badness)
    for tag in table.tags():
        mask = table.languages == tag
        if name in AT_THRESHOLD and tag not in cuts:
            into.figures.append(
                maker.untuned(name, tag, int(np.count_nonzero(items.scored & mask)), mask, without[tag])
            )
            continue
        kept, drawing = items.select(mask), resampling.select(mask)
        values, alike = bench_draws(name, kept, drawing, cut=cuts.get(tag))
        estimate = described(name, kept, drawing, values)
        if alike:
            estimate = estimate._replace(reason=f"{_ALIKE}; {estimate.reason}" if estimate.reason else _ALIKE)
        parts[tag] = values, estimate
        into.drawn.append(Drawn(maker.judgement.system, name, at, tag, values))
        into.figures.append(maker.figure(name, at, tag, estimate, mask, _p(name, kept, drawing, values)))
    into.figures.append(maker.mean(name, at, parts, "; ".join(dict.fromkeys(without.values()))))


def _p(name: str, items: Items, resampling: Resampling, values: Array) -> float | None:
    """The p-value of a correlation; None for other measures, and where the extra `stats` is missing."""
    from veriglot.bench.correlating import associate
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
        self, name: str, at: At | None, tag: str, found: Estimate, mask: Mask, p: float | None = None
    ) -> BenchFigure:
        found = honest(found)
        scored = np.count_nonzero(~np.isnan(self.judgement.test.badness[mask]))
        return BenchFigure(
            system=self.judgement.system,
            data=self.data,
            level=self.table.level,  # type: ignore[arg-type]
            language=tag,
            measure=name,
            at=at,
            value=found.value,
            low=found.low,
            high=found.high,
            items=found.items,
            positives=found.positives,
            clusters=found.clusters,
            chance=found.chance,
            coverage=float(scored) / max(int(np.count_nonzero(mask)), 1),
            p=p if too_few(found.clusters) is None else None,
            seen=self.judgement.seen,
            reason=found.reason,
            signature=self._signature(name, at, tag),
        )

    def untuned(self, name: str, tag: str, items: int, mask: Mask, why: str) -> BenchFigure:
        """Of a language for which no threshold could be tuned."""
        return self.figure(name, "tuned", tag, Estimate(None, None, None, items, 0, 0, None, why), mask)

    def mean(
        self, name: str, at: At | None, parts: Mapping[str, tuple[Array, Estimate]], untuned: str = ""
    ) -> BenchFigure:
        """Over the languages in which the measure is defined; `untuned` says why there are no parts."""
        every = self.table.tags()
        defined = [tag for tag, (values, _) in parts.items() if not np.isnan(values[0])]
        behind = [parts[tag][1] for tag in defined or parts]
        chances = [one.chance for one in behind if one.chance is not None]
        drawn = mean_of_draws([parts[tag][0] for tag in parts]) if parts else np.array([np.nan])
        found = estimated(
            drawn,
            items=sum(one.items for one in behind),
            positives=sum(one.positives for one in behind),
            clusters=sum(one.clusters for one in behind),
            why=ITEM_MEASURES[name].why if parts else untuned or UNTUNED,
            chance=float(np.mean(chances)) if chances else None,
        )
        missing = [tag for tag in every if tag not in defined]
        if missing and defined:
            gap = f"over {len(defined)} of {len(every)} languages, without {', '.join(missing)}"
            found = found._replace(reason=f"{gap}; {found.reason}" if found.reason else gap)
        return self.figure(name, at, MEAN, found, np.ones(len(self.table), dtype=bool))

    def _signature(self, name: str, at: At | None, tag: str) -> str:
        where = f"figure:{self.table.level}.{name}|at:{at or 'none'}|language:{tag}"
        return f"{where}|cell:{self.judgement.cell[:16]}|{self.suffix}"


def by_cell(found: Mapping[str, Measured]) -> dict[tuple[str, At | None], dict[str, dict[str, Array]]]:
    """Draws arranged for win rates: measure and threshold to cell (`data/language`) to system to its draws."""
    table: dict[tuple[str, At | None], dict[str, dict[str, Array]]] = defaultdict(lambda: defaultdict(dict))
    for data, one in found.items():
        for drawn in one.drawn:
            table[drawn.measure, drawn.at][f"{data}/{drawn.language}"][drawn.system] = drawn.values
    return table
