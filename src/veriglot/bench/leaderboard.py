"""Leaderboards: win rates (HAT, section 4.3.1), means, comparisons with the baseline, figures for the detector `auto`.

Every system that reaches the best value of a cell is credited with it, so that the rates of all may sum to more than 1.
Values are compared as they would be printed: HAT's win rates follow from its tables of two decimals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.bench.comparison import Contender, correct_p_values, correlation_matrix, difference, too_few
from veriglot.bench.figures import by_cell
from veriglot.bench.results import MEAN, BenchComparison, BenchCorrelations, BenchWin
from veriglot.detectors.auto import RECORDED, Recorded, RecordedFigure
from veriglot.errors import UnknownNameError, UsageError
from veriglot.metrics.estimate import percentile
from veriglot.metrics.measures import AT_THRESHOLD
from veriglot.records import Interval

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from veriglot.bench.figures import DataMeasurements, Judgement
    from veriglot.bench.labels import ItemTable
    from veriglot.bench.results import At, BenchData, BenchFigure, BenchResults, Level
    from veriglot.detectors.auto import Setting
    from veriglot.metrics.estimate import Resampling

__all__ = ["Board", "comparisons", "correlations", "recorded", "wins"]


if TYPE_CHECKING:
    Array = NDArray[np.float64]
    Cells = Mapping[str, Mapping[str, float | None]]
    Draws = Mapping[str, Mapping[str, Array]]


DIGITS = 2


class WinRate(Interval, frozen=True):
    """How often one system is the best within one scope, with its interval over resampled texts of the same cells.

    Attributes:
        scope: name of a group of cells.
        system: its name.
        wins: cells in which no system has a greater value.
        ties: wins that are shared with another system.
        cells: cells of the scope in which any system has a value: what `rate` is a share of.
        played: those of them in which this system has one.
        rate: wins / cells; None where there are no cells.
    """

    scope: str
    system: str
    wins: int
    ties: int
    cells: int
    played: int
    rate: float | None


@dataclass(frozen=True)
class ScopeMean:
    """A system's mean over the cells of one scope in which it has a value; `cells` of them, without `left_out`."""

    scope: str
    system: str
    mean: float | None
    cells: int
    left_out: int


def win_rates(
    values: Cells,
    scopes: Mapping[str, Collection[str]] | None = None,
    *,
    digits: int | None = DIGITS,
    greater_is_better: bool = True,
    draws: Draws | None = None,
) -> list[WinRate]:
    """The win rate of every system in every scope.

    Args:
        values: cell to system to value; None or NaN where a system has none there: it cannot win, and the cell counts.
        scopes: name to cells (see `groups.scopes`); None for `all`.
        digits: decimals that values are rounded to before they are compared, so that what a table shows as equal is a
            tie; None to compare them as they are.
        greater_is_better: False for measures such as a false positive rate.
        draws: cell to system to resampled values, shape `(resamples,)`, the same draws for all systems of a cell; for
            intervals. Cells without them count as they are.

    Returns:
        Scopes in the order given, systems in the order in which they first occur.
    """
    sign = 1.0 if greater_is_better else -1.0
    systems = _systems(values)
    tables = {cell: _numbers(row, systems, digits) * sign for cell, row in values.items()}
    rates: list[WinRate] = []
    for scope, members in (scopes or {"all": tuple(values)}).items():
        cells = [cell for cell in values if cell in members and not np.isnan(tables[cell]).all()]
        winners = np.array([_winners(tables[cell]) for cell in cells], dtype=bool).reshape(len(cells), len(systems))
        played = sum((~np.isnan(tables[cell]) for cell in cells), np.zeros(len(systems), dtype=np.int64))
        shared = winners & (winners.sum(axis=1, keepdims=True) > 1)
        drawn = None if draws is None else _drawn_rates(cells, tables, draws, systems, digits, sign)
        for index, system in enumerate(systems):
            wins = int(winners[:, index].sum())
            low, high, _ = (None, None, 0) if drawn is None else percentile(drawn[index])
            rates.append(
                WinRate(
                    scope, system, wins, int(shared[:, index].sum()), len(cells), int(played[index]),
                    wins / len(cells) if cells else None, low=low, high=high,
                )
            )  # fmt: skip
    return rates


def scope_means(values: Cells, scopes: Mapping[str, Collection[str]] | None = None) -> list[ScopeMean]:
    """The mean of every system over the cells of every scope, each of which counts the same (HAT, Figure 5)."""
    result = []
    for scope, members in (scopes or {"all": tuple(values)}).items():
        cells = [cell for cell in values if cell in members]
        for system in _systems(values):
            given = [values[cell].get(system) for cell in cells]
            known = [value for value in given if value is not None and not np.isnan(value)]
            mean = float(np.mean(known)) if known else None
            result.append(ScopeMean(scope, system, mean, len(known), len(given) - len(known)))
    return result


def _systems(values: Cells) -> list[str]:
    return list(dict.fromkeys(system for row in values.values() for system in row))


def _numbers(row: Mapping[str, float | None], systems: Sequence[str], digits: int | None) -> Array:
    given = [row.get(system) for system in systems]
    numbers = np.array([np.nan if value is None else value for value in given], dtype=np.float64)
    return numbers if digits is None else np.round(numbers, digits)


def _winners(values: Array) -> NDArray[np.bool_]:
    """Which systems have the greatest value; shape `(systems,)` or `(systems, draws)`."""
    filled = np.where(np.isnan(values), -np.inf, values)
    top = filled.max(axis=0)
    best: NDArray[np.bool_] = (filled == top) & (top > -np.inf)
    return best


def _drawn_rates(
    cells: Sequence[str],
    tables: Mapping[str, Array],
    draws: Draws,
    systems: Sequence[str],
    digits: int | None,
    sign: float,
) -> Array | None:
    """Win rates of each draw, shape `(systems, draws)`; None where no cell has draws."""
    sizes = {len(row) for cell in cells for row in draws.get(cell, {}).values()}
    if not sizes:
        return None
    if len(sizes) > 1:
        raise ValueError(f"cells have the same number of draws, not {sorted(sizes)}")
    size = sizes.pop()
    total = np.zeros((len(systems), size))
    for cell in cells:
        given = draws.get(cell)
        if given is None:
            total += _winners(tables[cell])[:, None]
            continue
        rows = np.array([given.get(system, np.full(size, np.nan)) for system in systems], dtype=np.float64)
        total += _winners(sign * (rows if digits is None else np.round(rows, digits)))
    rates: Array = total / len(cells)
    return rates


# What is said over all data sets of a bench: win rates, comparisons with the baseline, how systems go together.


_LESS_IS_BETTER = frozenset({"fpr"})


class Board:
    """Everything of one level: data set to its items, resamples, judgements and figures."""

    def __init__(self, level: Level) -> None:
        self.level = level
        self.tables: dict[str, ItemTable] = {}
        self.resamplings: dict[str, Resampling] = {}
        self.judgements: dict[str, list[Judgement]] = {}
        self.measured: dict[str, DataMeasurements] = {}


def wins(board: Board, scopes: Mapping[str, Sequence[str]]) -> Iterator[BenchWin]:
    """Win rates of every measure: each language of each data set is a cell (HAT, section 4.3.1).

    Data that the training of any of the systems held is left out, for all of them: the rest is the same ground for all.

    Args:
        board: of one level.
        scopes: group to its cells, each `data/language`.
    """
    held = {data for data, judgements in board.judgements.items() if any(win.seen for win in judgements)}
    fair = {data: rates for data, rates in board.measured.items() if data not in held}
    for (measure, at), cells in by_cell(fair).items():
        if at == "own":
            continue  # systems have thresholds of their own for uses of their own
        points = {cell: {name: _number(row[0]) for name, row in rows.items()} for cell, rows in cells.items()}
        draws = {cell: {name: row[1:] for name, row in rows.items()} for cell, rows in cells.items()}
        means = {(win.scope, win.system): win.mean for win in scope_means(points, scopes)}
        rates = win_rates(
            points, scopes, greater_is_better=measure not in _LESS_IS_BETTER, draws=draws if _resampled(draws) else None
        )
        for win in rates:
            sure = too_few(sum(_texts(board, cell) for cell in points if cell in scopes[win.scope])) is None
            yield BenchWin(
                board.level, measure, at, win.scope, win.system, win.wins, win.ties, win.cells, win.played, win.rate,
                means.get((win.scope, win.system)), low=win.low if sure else None, high=win.high if sure else None,
            )  # fmt: skip


def _texts(board: Board, cell: str) -> int:
    """How many texts a cell (`data/language`) is drawn from."""
    data, _, tag = cell.rpartition("/")
    return board.resamplings[data].select(board.tables[data].languages == tag).clusters()


def _resampled(draws: Mapping[str, Mapping[str, Array]]) -> bool:
    return any(len(row) for rows in draws.values() for row in rows.values())


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def comparisons(board: Board, baseline: str, measure: str, correction: str) -> list[BenchComparison]:
    """Every system against the baseline on every data set, corrected for all of them together.

    Args:
        board: of one level.
        baseline: name of a system.
        measure: of `ITEM_MEASURES`.
        correction: `holm` or `bh`.
    """
    places, compared = [], []
    for data, judgements in board.judgements.items():
        table = board.tables[data]
        by_name = {judgement.system: judgement for judgement in judgements}
        if baseline not in by_name or not table.labelled:
            continue
        reference = _contender(board, data, by_name[baseline], measure)
        for name, judgement in by_name.items():
            candidate = _contender(board, data, judgement, measure)
            if name == baseline or candidate is None or reference is None:
                continue
            parts = [table.languages == tag for tag in table.tags()]
            resampling = board.resamplings[data]
            places.append(data)
            compared.append(difference(candidate, reference, measure, resampling, names=(name, baseline), parts=parts))
    at: At | None = "tuned" if measure in AT_THRESHOLD else None
    return [
        BenchComparison(
            data, board.level, measure, at, row.system, row.baseline, row.difference, row.p, row.adjusted, row.items,
            row.clusters, row.left_out, correction, row.reason, low=row.low, high=row.high,
        )
        for data, row in zip(places, correct_p_values(compared, correction), strict=True)
    ]  # fmt: skip


def _contender(board: Board, data: str, judgement: Judgement, measure: str) -> Contender | None:
    """A system with its cut of every item; None where it has none in some language."""
    table = board.tables[data]
    items = table.items(judgement.test.badness)
    if measure not in AT_THRESHOLD:
        return Contender(items)
    cuts = board.measured[data].cuts[judgement.system, measure]
    if any(tag not in cuts for tag in table.tags()):
        return None
    return Contender(items, np.array([cuts[tag] for tag in table.languages.tolist()]))


def _numbers_of(judgement: Judgement, method: str) -> Array | None:
    """Of each item, what is held against what others said: a verdict for `kappa`, else a number."""
    return judgement.test.verdict if method == "kappa" else judgement.test.badness


def correlations(board: Board, method: str) -> BenchCorrelations | None:
    """How systems correlate, averaged over cells (Kang et al., Figure 1); None where there are not two systems.

    Args:
        board: of one level.
        method: of `METHODS`.

    Raises:
        MissingExtraError: the extra `stats` is not installed.
    """
    scores: dict[str, dict[str, Array]] = {}
    for data, judgements in board.judgements.items():
        table = board.tables[data]
        for tag in table.tags():
            mask = table.languages == tag
            scores[f"{data}/{tag}"] = {
                judgement.system: values[mask]
                for judgement in judgements
                if (values := _numbers_of(judgement, method)) is not None
            }
    names = tuple(dict.fromkeys(name for row in scores.values() for name in row))
    if len(names) < 2:
        return None
    matrix = correlation_matrix(scores, method=method, systems=names)
    return BenchCorrelations(
        board.level,
        method,
        names,
        tuple(tuple(_number(value) for value in row) for row in matrix.r),
        tuple(tuple(int(value) for value in row) for row in matrix.cells),
        tuple(tuple(_number(value) for value in row) for row in matrix.largest_p),
    )


# From the results of a bench to the figures that the detector `auto` chooses by.


MEASURE = "auc_pr_nonfactual"  # of words: it needs no threshold, so that none is compared
FEWEST_TEXTS = 20
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
    data = {entry.name: entry for entry in results.data}
    figures = tuple(_figures(results, data, level, measure))
    if not figures:
        raise UsageError(
            f"The results hold no {measure} of {level}s of a detector on {FEWEST_TEXTS} texts that it had not seen.",
            remedy="Choose another --measure or --level, or run the bench on more labelled data.",
        )
    return Recorded(format=RECORDED, level=level, measure=measure, figures=figures, signature=results.signature)


def _figures(results: BenchResults, data: dict[str, BenchData], level: str, measure: str) -> Iterator[RecordedFigure]:
    systems = {
        entry.name: entry for entry in results.systems if entry.kind == "detector" and entry.description is not None
    }
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
