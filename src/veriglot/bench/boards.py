"""What is said over all data sets of a bench: win rates, comparisons with the baseline, how systems go together."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from veriglot.bench.correlating import correlation_matrix
from veriglot.bench.fewness import too_few
from veriglot.bench.measuring import by_cell
from veriglot.bench.results import BenchComparison, BenchCorrelations, BenchWin
from veriglot.bench.significance import Contender, corrected, difference
from veriglot.bench.wins import scope_means, win_rates
from veriglot.metrics.item_measures import AT_THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from veriglot.bench.items import ItemTable
    from veriglot.bench.measuring import Judgement, Measured
    from veriglot.bench.results import At, Level
    from veriglot.metrics.resampling import Resampling

    Array = NDArray[np.float64]

__all__ = ["Board", "comparisons", "correlations", "wins"]

_LESS_IS_BETTER = frozenset({"fpr"})


class Board:
    """Everything of one level: data set to its items, resamples, judgements and figures."""

    def __init__(self, level: Level) -> None:
        self.level = level
        self.tables: dict[str, ItemTable] = {}
        self.resamplings: dict[str, Resampling] = {}
        self.judgements: dict[str, list[Judgement]] = {}
        self.measured: dict[str, Measured] = {}


def wins(board: Board, scopes: Mapping[str, Sequence[str]]) -> Iterator[BenchWin]:
    """Win rates of every measure: each language of each data set is a cell (hat, section 4.3.1).

    Data that the training of any of the systems held is left out, for all of them: the rest is the same ground for all.

    Args:
        board: of one level.
        scopes: group to its cells, each `data/language`.
    """
    held = {data for data, judgements in board.judgements.items() if any(one.seen for one in judgements)}
    fair = {data: found for data, found in board.measured.items() if data not in held}
    for (measure, at), cells in by_cell(fair).items():
        if at == "own":
            continue  # systems have thresholds of their own for uses of their own
        points = {cell: {name: _number(row[0]) for name, row in rows.items()} for cell, rows in cells.items()}
        draws = {cell: {name: row[1:] for name, row in rows.items()} for cell, rows in cells.items()}
        means = {(one.scope, one.system): one.mean for one in scope_means(points, scopes)}
        found = win_rates(
            points, scopes, greater_is_better=measure not in _LESS_IS_BETTER, draws=draws if _resampled(draws) else None
        )
        for one in found:
            sure = too_few(sum(_texts(board, cell) for cell in points if cell in scopes[one.scope])) is None
            yield BenchWin(
                board.level, measure, at, one.scope, one.system, one.wins, one.ties, one.cells, one.played, one.rate,
                one.low if sure else None, one.high if sure else None, means.get((one.scope, one.system)),
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
    places, found = [], []
    for data, judgements in board.judgements.items():
        table = board.tables[data]
        by_name = {one.system: one for one in judgements}
        if baseline not in by_name or not table.labelled:
            continue
        theirs = _contender(board, data, by_name[baseline], measure)
        for name, judgement in by_name.items():
            ours = _contender(board, data, judgement, measure)
            if name == baseline or ours is None or theirs is None:
                continue
            parts = [table.languages == tag for tag in table.tags()]
            resampling = board.resamplings[data]
            places.append(data)
            found.append(difference(ours, theirs, measure, resampling, names=(name, baseline), parts=parts))
    at: At | None = "tuned" if measure in AT_THRESHOLD else None
    return [
        BenchComparison(
            data, board.level, measure, at, one.system, one.baseline, one.difference, one.low, one.high, one.p,
            one.adjusted, one.items, one.clusters, one.left_out, correction, one.reason,
        )
        for data, one in zip(places, corrected(found, correction), strict=True)
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


def _said(judgement: Judgement, method: str) -> Array | None:
    """Of each item, what is held against what others said: a verdict for `kappa`, else a number."""
    return judgement.test.verdict if method == "kappa" else judgement.test.badness


def correlations(board: Board, method: str) -> BenchCorrelations | None:
    """How what systems said goes together, averaged over cells (kang, Figure 1); None where there are not two systems.

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
                one.system: said[mask] for one in judgements if (said := _said(one, method)) is not None
            }
    names = tuple(dict.fromkeys(name for row in scores.values() for name in row))
    if len(names) < 2:
        return None
    found = correlation_matrix(scores, method=method, systems=names)
    return BenchCorrelations(
        board.level,
        method,
        names,
        tuple(tuple(_number(value) for value in row) for row in found.r),
        tuple(tuple(int(value) for value in row) for row in found.cells),
        tuple(tuple(_number(value) for value in row) for row in found.largest_p),
    )
