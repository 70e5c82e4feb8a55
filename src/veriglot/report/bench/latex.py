"""The leaderboards of a bench as a paper prints them: LaTeX with booktabs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.bench.fewness import SURE_TEXTS
from veriglot.report.bench.view import FEW, ends, number
from veriglot.report.bench.words import FEW_TEXTS
from veriglot.report.study.matrix import latex_escaped

if TYPE_CHECKING:
    from veriglot.bench.results import BenchFigure
    from veriglot.report.bench.view import Board, View

__all__ = ["latex_boards"]


def latex_boards(view: View) -> str:
    """A `table*` for each level: values over their intervals, the best value of a column in bold."""
    if not view.levels:
        return f"% no data set has labels: there is nothing to rank\n% {view.results.signature}\n"
    return "\n".join(_board(view, view.board(level)) for level in view.levels)


def _board(view: View, board: Board) -> str:
    best = {data.name: _best(board, data.name) for data in board.data}
    heads = ["System", *(latex_escaped(data.name) for data in board.data), "Mean", "Wins (\\%)"]
    lines = [
        r"% needs \usepackage{booktabs}", r"\begin{table*}", r"\centering", r"\small",
        rf"\begin{{tabular}}{{l{'c' * (len(board.data) + 2)}}}", r"\toprule", _line(heads), r"\midrule",
    ]  # fmt: skip
    for row in board.rows:
        figures = [row.cells[data.name] for data in board.data]
        values = [_value(one, best[data.name]) for one, data in zip(figures, board.data, strict=True)]
        rate = row.win.rate if row.win is not None else None
        wins = "--" if rate is None else f"{100 * rate:.0f}"
        mean = "--" if row.mean is None else _escaped(number(row.mean))
        lines.append(_line([latex_escaped(row.system.name), *values, mean, wins]))
        under = [
            rf"{{\scriptsize {_escaped(ends(one.low, one.high, one.clusters))}}}" if one else "" for one in figures
        ]
        lines.append(_line(["", *under, "", ""]))
    caption = latex_escaped(f"{view.results.title}: {board.title}. Under each value its 95% interval over texts.")
    shown = [figure for row in board.rows for figure in row.cells.values() if figure is not None]
    if any(figure.value is not None and figure.clusters < SURE_TEXTS for figure in shown):
        caption += f" {_escaped(FEW_TEXTS)}"
    if any(figure.seen for figure in shown):
        caption += r" $\dagger$: the system was trained on the data, which is in no mean and win."
    lines += [
        r"\bottomrule", r"\end{tabular}", rf"\caption{{{caption}}}", rf"\label{{tab:bench-{board.level}}}",
        r"\end{table*}", f"% {view.results.signature}", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _best(board: Board, data: str) -> str | None:
    """The best value of a column as it is printed, among systems that were not trained on the data."""
    figures = (row.cells[data] for row in board.rows)
    values = [one.value for one in figures if one is not None and one.value is not None and not one.seen]
    return number(max(values)) if values else None


def _value(figure: BenchFigure | None, best: str | None) -> str:
    if figure is None or figure.value is None:
        return "--"
    text = _escaped(number(figure.value))
    if figure.seen:
        return rf"{text}$^\dagger$"
    return rf"\textbf{{{text}}}" if number(figure.value) == best else text


def _escaped(text: str) -> str:
    return latex_escaped(text).replace(FEW, r"$^\ddagger$")


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"
