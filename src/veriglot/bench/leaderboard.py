"""Results over all data of a bench: ranks, win rates, comparisons, correlations of systems, figures for `auto`.

Two systems are compared on the items that both scored, with the same resamples, by the difference in each draw. The
p-value is how often a difference this large occurs if there is none: resampled differences are centred first (Riezler
and Maxwell 2005, after Noreen 1989). Texts are resampled, not items, since errors in sentences of one text, or in
labellings of one text, are not independent. The ranks given are those that these tests cannot exclude.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec.structs import replace

from veriglot.bench.config import ALL, Config, scopes
from veriglot.bench.figures import RELIABLE_TEXTS, WITH_PAIRWISE, Measurement, bench_draws
from veriglot.bench.items import OWN_MARKS, tag_of
from veriglot.bench.results import (
    At,
    BenchAnswers,
    BenchCell,
    BenchComparison,
    BenchConfusion,
    BenchCorrelations,
    BenchData,
    BenchError,
    BenchResults,
    BenchStanding,
    BenchSystem,
    BenchWin,
    Level,
)
from veriglot.detectors.auto import Recorded, RecordedFigure
from veriglot.errors import MissingExtraError, UnknownNameError, UsageError
from veriglot.metrics.agreement import kappa
from veriglot.metrics.estimate import MEAN, Resampling, mean_of_draws, number, percentile, too_few
from veriglot.metrics.measures import AT_THRESHOLD, CORRELATIONS, TYPES, Items
from veriglot.rates.comparison import adjust, correlate
from veriglot.records import encode
from veriglot.records.languages import language_name
from veriglot.signatures import __version__, digest, signature

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from veriglot.arrays import Bools, Float64s
    from veriglot.bench.data import DataSet

    Array = Float64s
    Mask = Bools
    Board = dict[str, Measurement]  # of one level, by data set

__all__ = ["LESS_IS_BETTER", "SIGNIFICANT", "State", "recorded", "winner"]


# Win rates (HAT, section 4.3.1) and means of cells, each a language of a data set.
#
# Every system that reaches the best value of a cell wins it, so the rates may add up to more than 1. Values are
# compared at two decimals: HAT's win rates follow from its tables, which have two.

_DIGITS = 2
LESS_IS_BETTER = frozenset({"fpr"})
"""Measures of which the lowest value is best."""


def wins(level: Level, board: Board, scopes: Mapping[str, Collection[str]]) -> Iterator[BenchWin]:
    """Win rates of every measure at one level, with their intervals over resampled texts.

    Data that any system was trained on is left out for all systems, so that all are compared on the same data.

    Args:
        level: of the items.
        board: data set to its measurement.
        scopes: group to its cells, each `data/language`.
    """
    table: dict[tuple[str, At | None], dict[str, dict[str, Array]]] = {}
    for data, measured in board.items():
        if not any(system.seen for system in measured.systems):
            for key, languages in measured.drawn.items():
                table.setdefault(key, {}).update({f"{data}/{tag}": rows for tag, rows in languages.items()})
    for (measure, at), cells in table.items():
        if at == "own" or measure == WITH_PAIRWISE:
            continue  # systems set their own thresholds for different purposes
        for win in win_rates(cells, scopes, level=level, measure=measure, at=at):
            texts = min((_texts(board, cell) for cell in cells if cell in scopes[win.scope]), default=0)
            yield win if too_few(texts) is None else replace(win, low=None, high=None)


def _texts(board: Board, cell: str) -> int:
    """Number of texts that are resampled in a cell (`data/language`)."""
    data, _, tag = cell.rpartition("/")
    return board[data].resampling.select(board[data].test.languages == tag).clusters()


def win_rates(
    cells: Mapping[str, Mapping[str, Array]],
    scopes: Mapping[str, Collection[str]],
    *,
    level: Level,
    measure: str,
    at: At | None,
) -> Iterator[BenchWin]:
    """How often every system is the best in every scope, scopes and systems in order.

    `cells` has the draws of each system in a cell, shape `(1 + resamples,)`, with the data in draw 0. A system without
    a value in a cell (NaN, or no draws) cannot win it, but the cell counts.
    """
    systems = list(dict.fromkeys(system for row in cells.values() for system in row))
    size = max((len(drawn) for row in cells.values() for drawn in row.values()), default=1)
    nothing = np.full(size, np.nan)
    tables = {cell: np.stack([row.get(system, nothing) for system in systems]) for cell, row in cells.items()}
    for scope, members in scopes.items():
        given = [tables[cell] for cell in cells if cell in members]
        played = [values for values in given if not np.isnan(values[:, 0]).all()]
        best = np.array([_winners(values, measure) for values in played], bool).reshape(-1, len(systems), size)
        rates = best.sum(axis=0) / max(len(played), 1)
        shared = best[:, :, 0] & (best[:, :, 0].sum(axis=1, keepdims=True) > 1)
        for index, system in enumerate(systems):
            known = [float(values[index, 0]) for values in given if not np.isnan(values[index, 0])]
            low, high, _ = percentile(rates[index, 1:]) if played and size > 1 else (None, None, 0)
            yield BenchWin(
                level,
                measure,
                at,
                scope,
                system,
                int(best[:, index, 0].sum()),
                int(shared[:, index].sum()),
                len(played),
                len(known),
                float(rates[index, 0]) if played else None,
                float(np.mean(known)) if known else None,
                low=low,
                high=high,
            )


def _winners(values: Array, measure: str) -> Mask:
    """Which systems have the best value (of some measures the lowest), shape `(systems, draws)`."""
    rounded = np.round(values, _DIGITS) * (-1.0 if measure in LESS_IS_BETTER else 1.0)
    filled = np.where(np.isnan(rounded), -np.inf, rounded)
    top = filled.max(axis=0)
    best: Mask = (filled == top) & (top > -np.inf)
    return best


# Every system against the baseline, by the paired bootstrap.


@dataclass(frozen=True)
class ThresholdedItems:
    """A system on a data set.

    Attributes:
        items: its scores of the items.
        cut: items are marked from this badness on, if a measure needs a threshold: one number for all items, or one for
            each, shape `(n,)`, if every language has its own.
        drawn: cache of draws, by measure and mask.
    """

    items: Items
    cut: float | Array | None = None
    drawn: dict[tuple[str, bytes], Array] = field(default_factory=dict, repr=False, compare=False)

    def select(self, mask: Mask) -> ThresholdedItems:
        """The system on some of the items."""
        cut = self.cut[mask] if isinstance(self.cut, np.ndarray) else self.cut
        return ThresholdedItems(self.items.select(mask), cut)

    def draws(self, measure: str, mask: Mask, resampling: Resampling) -> Array:
        """The draws of a measure over some of the items; `resampling` covers all items, and must always be the same."""
        key = measure, mask.tobytes()
        if key not in self.drawn:
            chosen = self.select(mask)
            self.drawn[key] = bench_draws(measure, chosen.items, resampling.select(mask), cut=chosen.cut)[0]
        return self.drawn[key]


class Test(NamedTuple):
    """A comparison with the draws of its difference, the data in draw 0, shape `(1 + resamples,)`."""

    row: BenchComparison
    drawn: Array


def difference(
    system: ThresholdedItems,
    baseline: ThresholdedItems,
    resampling: Resampling,
    blank: BenchComparison,
    *,
    parts: Sequence[Mask] | None = None,
) -> Test:
    """Compare two systems on the items that both scored.

    Args:
        system, baseline: over the same items in the same order.
        resampling: of these items; drawn within languages if there are several.
        blank: what is compared, by which measure of `ITEM_MEASURES`.
        parts: masks of the cells (languages), shape `(n,)` each: the difference is then between the means over the
            cells in which both are defined, each with equal weight. None to measure all items together.

    Returns:
        With a two-sided p-value, by the centred paired bootstrap; it cannot fall below 1 / (1 + resamples).

    Raises:
        UnknownNameError: no such measure.
        UsageError: a measure at a threshold, for a system without one.
    """
    shared = system.items.scored & baseline.items.scored
    alone = [int(np.count_nonzero(each.items.scored & ~shared)) for each in (system, baseline)]
    masks = [shared] if parts is None else [shared & part for part in parts]
    cells = [
        system.draws(blank.measure, mask, resampling) - baseline.draws(blank.measure, mask, resampling)
        for mask in masks
        if mask.any()
    ]
    drawn = mean_of_draws(cells)
    common = np.any(masks, axis=0) if masks else shared
    clusters = resampling.select(common).clusters()
    row = replace(blank, items=int(np.count_nonzero(common)), left_out=(alone[0], alone[1]), clusters=clusters)
    return Test(_tested(row, drawn), drawn)


def _tested(row: BenchComparison, drawn: Array) -> BenchComparison:
    """A row with the difference, interval and p-value of its draws, or the reason why it has none."""
    if np.isnan(drawn[0]):
        return replace(row, reason="the measure is undefined for one of them on the items that both scored")
    row = replace(row, difference=float(drawn[0]))
    why = (
        "fewer than two texts in common" if row.clusters < 2
        else "no resamples" if len(drawn) < 2
        else too_few(row.clusters, "an interval and a test")
    )  # fmt: skip
    if why is not None:
        return replace(row, reason=why)
    low, high, undefined = percentile(drawn[1:])
    gap = f"undefined in {undefined} of {len(drawn) - 1} resamples" if undefined else None
    return replace(row, low=low, high=high, p=_p(drawn), reason=gap)


def _p(drawn: Array) -> float:
    """How often a centred resampled difference is as large as the observed one, in either direction."""
    resampled = drawn[1:][~np.isnan(drawn[1:])]
    if not len(resampled):
        return 1.0
    centred = np.abs(resampled - resampled.mean())
    reached = np.count_nonzero(centred >= abs(drawn[0]) - 1e-12)
    return float((1 + reached) / (1 + len(resampled)))


def comparisons(level: Level, board: Board, baseline: str, measure: str) -> list[Test]:
    """Every system against the baseline on every data set at one level, uncorrected.

    Args:
        level: of the items.
        board: data set to its measurement.
        baseline: name of a system.
        measure: of `ITEM_MEASURES`.
    """
    at: At | None = "tuned" if measure in AT_THRESHOLD else None
    tests = []
    for data, measured in board.items():
        systems = _thresholded_items(measured, measure)
        reference = systems.pop(baseline, None)
        if reference is None:
            continue
        for name, system in systems.items():
            blank = BenchComparison(data, level, measure, at, name, baseline)
            tests.append(difference(system, reference, measured.resampling, blank, parts=_parts(measured)))
    return tests


def _parts(measured: Measurement) -> list[Mask]:
    return [measured.test.languages == tag for tag in measured.test.tags()]


def _thresholded_items(measured: Measurement, measure: str) -> dict[str, ThresholdedItems]:
    """The systems that can be compared on a data set; none without labels."""
    if not measured.test.labelled:
        return {}
    table, systems = measured.test, {}
    for judged in measured.systems:
        items = table.items(judged.test.badness, judged.test.right)
        if measure not in AT_THRESHOLD:
            systems[judged.name] = ThresholdedItems(items)
            continue
        cuts = measured.cuts[judged.name, measure]
        if cuts.keys() >= set(table.tags()):  # a system without a threshold in some language cannot be compared
            systems[judged.name] = ThresholdedItems(items, np.array([cuts[tag] for tag in table.languages.tolist()]))
    return systems


# Comparisons of all pairs of systems at a level, over the data sets that none of them was trained on, and their ranks.
#
# A system's ranks are bounded by the systems that are significantly better or worse, with p-values corrected for all
# tests of the level (Mogstad, Romano, Shaikh and Wilhelm 2024, "Inference for Ranks", section 3); systems without a
# significant difference share ranks. A system that left out rows that another scored, or lacks a value that another
# has, is compared on the common rows and has no rank: otherwise it could choose the easy rows.

SIGNIFICANT = 0.05
"""The corrected p-value below which two systems differ significantly."""


def winner(row: BenchComparison) -> str | None:
    """The better of two systems; None if the difference is not significant, or there are fewer than 30 texts."""
    if not row.difference or row.adjusted is None or row.adjusted >= SIGNIFICANT or row.clusters < RELIABLE_TEXTS:
        return None
    return row.system if (row.difference > 0) != (row.measure in LESS_IS_BETTER) else row.baseline


def pairs(level: Level, board: Board, values: Mapping[str, Array], measure: str) -> list[Test]:
    """Every two systems, by the mean over the data sets on which both can be compared, uncorrected.

    Args:
        level: of the items.
        board: the data sets that count, to their measurements.
        values: system to the draws of its mean, in the order of the pairs.
        measure: of `ITEM_MEASURES`.
    """
    at: At | None = "tuned" if measure in AT_THRESHOLD else None
    by_data = {data: _thresholded_items(measured, measure) for data, measured in board.items()}
    tests = []
    for first, second in combinations(values, 2):
        blank = BenchComparison(MEAN, level, measure, at, first, second)
        single = [
            difference(rows[first], rows[second], board[data].resampling, blank, parts=_parts(board[data]))
            for data, rows in by_data.items()
            if first in rows and second in rows
        ]
        single = [test for test in single if test.row.difference is not None]
        drawn = mean_of_draws([test.drawn for test in single])
        rows_of = [test.row for test in single]
        row = replace(
            blank,
            items=sum(row.items for row in rows_of),
            clusters=sum(row.clusters for row in rows_of),
            left_out=(sum(row.left_out[0] for row in rows_of), sum(row.left_out[1] for row in rows_of)),
        )
        tests.append(Test(_tested(row, drawn), drawn))
    return tests


def _left_out(board: Board, system: str, measure: str, at: At | None) -> str | None:
    """What a system left out that others scored, in words; None for nothing."""
    gaps = []
    for data, measured in board.items():
        judged = {each.name: ~np.isnan(each.test.badness) for each in measured.systems}
        own = judged.get(system, np.zeros(len(measured.test), bool))
        anyone = np.any(list(judged.values()), axis=0) if judged else own
        missing, every = int(np.count_nonzero(anyone & ~own)), int(np.count_nonzero(anyone))
        without = [
            tag
            for tag, rows in measured.drawn.get((measure, at), {}).items()
            if _defined(rows.values()) and not _defined([rows[system]] if system in rows else [])
        ]
        if missing:
            gaps.append(f"{missing:,} of {every:,} {measured.test.level}s of {data} not judged")
        elif without:
            gaps.append(f"no {measure} on {data} in {', '.join(map(language_name, without))}")
    return "; ".join(gaps) or None


def _defined(drawn: Iterable[Array]) -> bool:
    return any(not np.isnan(values[0]) for values in drawn)


def _means_of(board: Board, measure: str, at: At | None) -> dict[str, tuple[int, Array]]:
    """System to its number of data sets with a value and the draws of the mean over them, the best first."""
    by_system: dict[str, list[Array]] = {}
    for measured in board.values():
        cells = measured.drawn.get((measure, at), {})
        for system in dict.fromkeys(name for rows in cells.values() for name in rows):
            drawn = mean_of_draws([rows[system] for rows in cells.values() if system in rows])
            if not np.isnan(drawn[0]):
                by_system.setdefault(system, []).append(drawn)
    sign = 1.0 if measure in LESS_IS_BETTER else -1.0
    means = {system: (len(parts), mean_of_draws(parts)) for system, parts in by_system.items()}
    return dict(sorted(means.items(), key=lambda item: (sign * item[1][1][0], item[0])))


def standings(
    level: Level, board: Board, baseline: str | None, measure: str, correction: str
) -> tuple[list[BenchComparison], list[BenchComparison], list[BenchStanding]]:
    """The comparisons with the baseline, those of all pairs, and the ranks that follow from the latter.

    Args:
        level: of the items.
        board: data set to its measurement.
        baseline: name of a system; None for no comparisons with it.
        measure: of `ITEM_MEASURES`.
        correction: `romano-wolf`, `holm` or `bh`, over all tests of the level together.

    Returns:
        Systems with a value on data that none was trained on, sorted by the measure; those that left something out come
        last, without a rank.
    """
    at: At | None = "tuned" if measure in AT_THRESHOLD else None
    labelled = {data: measured for data, measured in board.items() if measured.test.labelled}
    fair = {data: each for data, each in labelled.items() if not any(system.seen for system in each.systems)}
    means = _means_of(fair, measure, at)
    against = comparisons(level, labelled, baseline, measure) if baseline is not None else []
    of_pairs = pairs(level, fair, {name: drawn for name, (_, drawn) in means.items()}, measure)
    corrected = _corrected([*against, *of_pairs], correction)
    rows, paired = corrected[: len(against)], corrected[len(against) :]
    gaps = {name: _left_out(fair, name, measure, at) for name in means}
    complete = [name for name in means if gaps[name] is None]
    decided = [(winner(row), {row.system, row.baseline}) for row in paired]
    results = []
    for name in sorted(means, key=lambda name: gaps[name] is not None):
        sets, drawn = means[name]
        low, high, _ = percentile(drawn[1:]) if _enough_texts(fair, name) else (None, None, 0)
        standing = BenchStanding(level, measure, at, name, float(drawn[0]), sets, gaps[name], low=low, high=high)
        if gaps[name] is None:
            duels = [best for best, two in decided if best and name in two and two <= set(complete)]
            lost, won = sum(best != name for best in duels), sum(best == name for best in duels)
            standing = replace(standing, best=1 + lost, worst=len(complete) - won)
        results.append(standing)
    return rows, paired, results


def _enough_texts(board: Board, system: str) -> bool:
    """Whether the data have enough texts for an interval of a system's mean."""
    judged = (
        measured.resampling.select(~np.isnan(each.test.badness)).clusters()
        for measured in board.values()
        for each in measured.systems
        if each.name == system
    )
    return too_few(sum(judged)) is None


def _corrected(tests: Sequence[Test], correction: str) -> list[BenchComparison]:
    """The rows with p-values corrected for all of them; see `BenchEntry.correction`."""
    raw = np.array([math.nan if test.row.p is None else test.row.p for test in tests])
    if correction == "romano-wolf":
        adjusted = np.full(len(raw), np.nan)
        known = np.flatnonzero(~np.isnan(raw))
        if len(known):
            drawn = np.stack([tests[index].drawn for index in known.tolist()])
            adjusted[known] = np.maximum(_step_down(drawn), raw[known])
    else:
        adjusted = adjust(raw, correction)
    return [
        replace(test.row, adjusted=number(p), correction=correction)
        for test, p in zip(tests, adjusted.tolist(), strict=True)
    ]


def _step_down(drawn: Array) -> Array:
    """P-values of differences, draws `(tests, 1 + resamples)`, by the step-down maximum (Romano and Wolf 2005).

    The greatest of all differences not yet rejected, each divided by its spread, is compared with its distribution
    under the null hypothesis. The resamples contain what tests share (texts, systems), so many tests cost less than
    with Holm's method, whose lowest p-value is the number of tests over the number of resamples.
    """
    resampled = drawn[:, 1:]
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # a difference may have no resample
        centred = np.abs(resampled - np.nanmean(resampled, axis=1, keepdims=True))
        spread = np.nanstd(resampled, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = np.where(spread[:, None] > 0, np.nan_to_num(centred / spread[:, None]), 0.0)
        seen = np.where(spread > 0, np.abs(drawn[:, 0]) / spread, np.where(drawn[:, 0] == 0, 0.0, np.inf))
    order = np.argsort(-seen, kind="stable")
    largest = np.maximum.accumulate(chance[order][::-1], axis=0)[::-1]
    reached = np.count_nonzero(largest >= seen[order][:, None] - 1e-9, axis=1)
    adjusted = np.empty(len(drawn))
    adjusted[order] = np.maximum.accumulate((1 + reached) / (1 + resampled.shape[1]))
    return adjusted


# Correlations between systems: Kang et al. (section 4.2, Figure 1), averaged over the cells of a group of languages.

METHODS = ("pearson", "spearman", "kappa")
"""Correlations of systems: Kang et al.'s, the same of ranks, and Cohen's kappa of verdicts."""


def correlations(
    level: Level, board: Board, method: str, scopes: Mapping[str, Collection[str]]
) -> Iterator[BenchCorrelations]:
    """How systems correlate at one level, averaged over the cells of each scope with at least two systems.

    Args:
        level: of the items.
        board: data set to its measurement.
        method: of `METHODS`; `kappa` is of verdicts, without p-values.
        scopes: group to its cells, each `data/language`; groups of every cell repeat `all` and are left out.

    Raises:
        MissingExtraError: the extra `stats` is not installed.
    """
    values: dict[str, dict[str, Array]] = {}
    for data, measured in board.items():
        for tag in measured.test.tags():
            mask = measured.test.languages == tag
            opinions = (
                (each.name, each.test.verdict if method == "kappa" else each.test.badness) for each in measured.systems
            )
            values[f"{data}/{tag}"] = {name: numbers[mask] for name, numbers in opinions if numbers is not None}
    for scope, members in scopes.items():
        chosen = {cell: row for cell, row in values.items() if cell in members}
        matrix = correlation_matrix(chosen, method, level) if scope == ALL or len(chosen) < len(values) else None
        if matrix is not None:
            yield replace(matrix, scope=scope)


def correlation_matrix(
    values: Mapping[str, Mapping[str, Array]], method: str = "pearson", level: Level = "response"
) -> BenchCorrelations | None:
    """The same, from a dict of cell to system to its scores of the cell's items, shape `(n,)`, NaN if not scored."""
    names = tuple(dict.fromkeys(name for row in values.values() for name in row))
    size = len(names)
    if size < 2:
        return None
    total, largest = np.zeros((size, size)), np.full((size, size), np.nan)
    count = np.zeros((size, size), np.int64)
    for row in values.values():
        for i, first in enumerate(names):
            for j in range(i + 1, size):
                tested = _pair(row[first], row[names[j]], method) if first in row and names[j] in row else None
                if tested is not None:
                    total[i, j] += tested[0]
                    count[i, j] += 1
                    largest[i, j] = np.fmax(largest[i, j], tested[1])
    mean = np.divide(total, count, out=np.full((size, size), np.nan), where=count > 0)
    low = np.tril_indices(size, -1)
    for matrix in (mean, count, largest):
        matrix[low] = matrix.T[low]
    np.fill_diagonal(mean, 1.0)
    np.fill_diagonal(count, [sum(name in row for row in values.values()) for name in names])
    r, p = (tuple(tuple(map(number, line)) for line in matrix.tolist()) for matrix in (mean, largest))
    return BenchCorrelations(level, method, names, r, tuple(map(tuple, count.tolist())), p)


def _pair(first: Array, second: Array, method: str) -> tuple[float, float] | None:
    known = ~np.isnan(first) & ~np.isnan(second)
    if method == "kappa":
        pairs = (2 * first[known] + second[known]).astype(np.int64)
        value = float(kappa(np.bincount(pairs, minlength=4).reshape(2, 2).astype(np.float64)))
        return None if math.isnan(value) else (value, math.nan)
    tested = correlate(first[known], second[known], method=method)
    return None if tested is None else (tested.r, tested.p)


# The results of a bench, from all scores and measurements.


@dataclass
class State:
    """The bench so far: boards by level, and the outcome of every system on every data set at every level."""

    systems: list[BenchSystem]
    data: list[DataSet] = field(default_factory=list)
    boards: dict[Level, Board] = field(default_factory=dict)
    cells: list[BenchCell] = field(default_factory=list)
    confusions: list[BenchConfusion] = field(default_factory=list)
    answers: list[BenchAnswers] = field(default_factory=list)
    errors: list[BenchError] = field(default_factory=list)

    def results(self, config: Config) -> BenchResults:
        """Everything that reports show; the same answers give the same record."""
        notes = []
        bench, labelled = config.bench, [data for data in self.data if data.labelled]
        cells, ranked = (
            {f"{data.name}/{tag}": pair for data in sets for tag, pair in data.pairs().items()}
            for sets in (self.data, labelled)
        )
        every, groups = (scopes(chosen, bench.groups, config.groups) for chosen in (cells, ranked))
        able = (system.name for system in self.systems if system.unavailable is None)
        baseline = bench.baseline or next(able, None)
        matrices: list[BenchCorrelations] = []
        compared: list[BenchComparison] = []
        paired: list[BenchComparison] = []
        ranks: list[BenchStanding] = []
        ranking: dict[str, str] = {level: _ranked_by(config, level, board) for level, board in self.boards.items()}
        for level, board in self.boards.items():
            against, both, ranked_here = standings(level, board, baseline, ranking[level], bench.correction)
            compared, paired, ranks = compared + against, paired + both, ranks + ranked_here
            for method in METHODS:
                try:
                    matrices += correlations(level, board, method, every)
                except MissingExtraError as error:
                    notes.append(f"Correlations are not tested: {error}")
        done = [result for board in self.boards.values() for result in board.values()]
        return BenchResults(
            title=config.title,
            measures={level: config.measures(level) for level in self.boards},
            rank_by=bench.rank_by or next(iter(ranking.values()), "mcc"),
            ranking=ranking,
            baseline=baseline,
            seed=bench.seed,
            resamples=bench.resamples,
            correction=bench.correction,
            data=tuple(_described(self, data) for data in self.data),
            systems=tuple(self.systems),
            cells=tuple(self.cells),
            figures=tuple(figure for result in done for figure in result.figures),
            thresholds=tuple(threshold for result in done for threshold in result.thresholds),
            wins=tuple(record for level, board in self.boards.items() for record in wins(level, board, groups)),
            comparisons=tuple(compared),
            pairs=tuple(paired),
            standings=tuple(ranks),
            correlations=tuple(matrices),
            groups=groups,
            notes=(*dict.fromkeys(notes), *_notes(config, self)),
            signature=_signature(config, self, ranking),
            version=__version__,
            confusions=tuple(self.confusions),
            answers=tuple(self.answers),
            errors=tuple(self.errors),
        )


def _ranked_by(config: Config, level: Level, board: Board) -> str:
    """The measure of a level; accuracy of types if all items are unsupported: no other measure is defined then."""
    named, boards = config.rank_by(level), [each for each in board.values() if each.test.labelled]
    typed = any(system.test.types is not None for each in boards for system in each.systems)
    alike = all(each.test.nonfactual.all() for each in boards)
    free = config.bench.rank_by is None and TYPES in config.measures(level)
    return TYPES if free and typed and alike else named


def _described(state: State, data: DataSet) -> BenchData:
    entry = data.entry
    tables = {level: board[data.name].test for level, board in state.boards.items() if data.name in board}
    languages = {tag: [sample for sample in data.test if tag_of(sample.language) == tag] for tag in data.pairs()}
    silver = f"LABELS BY A MODEL: {entry.annotator}" if data.makers else None
    return BenchData(
        name=data.name,
        levels=tuple(tables),
        languages={
            tag: (len(samples), len({data.texts[sample.id] for sample in samples}))
            for tag, samples in languages.items()
        },
        pairs=data.pairs(),
        dev=len(data.dev),
        bad_rows=data.bad_rows,
        unlabelled=data.unlabelled,
        items={level: len(table) for level, table in tables.items()},
        nonfactual={level: int(table.nonfactual.sum()) for level, table in tables.items() if table.labelled},
        license=entry.license,
        split=data.split,
        seen=entry.seen,
        sha256=data.hashed(),
        note="; ".join(filter(None, (silver, entry.note))) or None,
        statistics=data.statistics(),
        labelled=data.labelled,
    )


def _notes(config: Config, state: State) -> list[str]:
    """What a reader of the tables must know, in words."""
    notes = []
    for data in state.data:
        if not data.labelled:
            notes.append(f"{data.name} has no labels, so systems are not ranked on it.")
        notes += data.notes()
        own = dict.fromkeys(cell.system for cell in state.cells if cell.data == data.name and cell.reason == OWN_MARKS)
        notes += [f"{name} is not judged on {data.name}: {OWN_MARKS}." for name in own]
        if data.bad_rows:
            notes.append(f"{data.name}: rows that could not be read are in no figure ({data.bad_rows:,}).")
        if data.entry.seen:
            notes.append(f"{data.name} was in the training data of {', '.join(data.entry.seen)}.")
    related = any(measure in CORRELATIONS for level in state.boards for measure in config.measures(level))
    if related and any(data.labelled for data in state.data):
        notes.append(
            "Correlations are positive for a good system: how good it finds an item is correlated with the support"
            " rate, how bad with the unverified rate."
        )
    return notes


def _signature(config: Config, state: State, ranking: Mapping[str, str]) -> str:
    """What was scored by which systems, and how; without file paths."""
    bench = config.bench
    limits = [f"{entry.name}: {', '.join(entry.data)}" for entry in config.systems if entry.data]
    return signature(
        bench=digest(data.hashed() for data in state.data)[:16],
        systems=digest(encode(system) for system in state.systems)[:16],
        asked=digest(limits)[:16] if limits else None,
        measures=digest(measure for level in state.boards for measure in config.measures(level))[:16],
        rank_by=",".join(dict.fromkeys(ranking.values())),
        thresholds=bench.thresholds,
        unit=bench.unit,
        seed=bench.seed,
        resamples=bench.resamples,
        version=__version__,
    )


# From the results of a bench to the figures by which the detector `auto` chooses.


MEASURE = "auc_pr_nonfactual"  # of words: needs no threshold
MIN_TEXTS = 20
MIN_COVERAGE = 0.9  # a detector must not win by scoring only the easy items


def recorded(results: BenchResults, *, level: str = "word", measure: str = MEASURE) -> Recorded:
    """The figures of detectors in each language of each data set.

    Figures are left out if the detector was trained on the data, if they rest on fewer than 20 texts or on less than
    90% of the labelled items, if the language is not known, and if the detector is `auto` itself.

    Args:
        results: of a bench.
        level: `word`, `sentence` or `response`.
        measure: must be one of which more is better, without a threshold or taken at the detector's own.

    Raises:
        UnknownNameError: the bench took no such measure at that level, or less of it is better.
        UsageError: no figure is left.
    """
    known = [name for name in results.measures.get(level, ()) if name not in LESS_IS_BETTER]
    if measure not in known:
        raise UnknownNameError(
            f"measure of {level}s in these results",
            measure,
            known or [f"--figure-level {name}" for name in results.measures],
        )
    figures = tuple(_figures(results, {entry.name: entry for entry in results.data}, level, measure))
    if not figures:
        raise UsageError(
            f"The results have no {measure} of {level}s for a detector on {MIN_TEXTS} unseen texts of one language.",
            "Choose another --measure or --figure-level, or run the bench on more labelled data.",
        )
    return Recorded(format=Recorded.known, level=level, measure=measure, figures=figures, signature=results.signature)


def _figures(results: BenchResults, data: dict[str, BenchData], level: str, measure: str) -> Iterator[RecordedFigure]:
    systems = {
        entry.name: entry
        for entry in results.systems
        if entry.kind == "detector" and entry.description is not None and entry.made_by != "auto"
    }
    for figure in results.figures:
        system = systems.get(figure.system)
        asked = (figure.level, figure.measure) == (level, measure) and figure.at != "tuned"
        enough = figure.clusters >= MIN_TEXTS and figure.coverage >= MIN_COVERAGE and not figure.seen
        if system is None or figure.value is None or not (asked and enough) or figure.language in {MEAN, "und"}:
            continue
        yield RecordedFigure(
            detector=system.description or "",
            name=system.made_by,
            language=figure.language,
            # a cell of translations has two languages
            setting="translation" if len(data[figure.data].pairs.get(figure.language, ())) > 1 else "evidence",
            data=figure.data,
            value=round(figure.value, 4),
            low=None if figure.low is None else round(figure.low, 4),
            high=None if figure.high is None else round(figure.high, 4),
            items=figure.items,
            texts=figure.clusters,
            options=system.options,
        )
