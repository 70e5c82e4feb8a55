"""The table of rates, languages by models, as a paper prints it: Markdown and LaTeX."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from veriglot.report.printable import printable
from veriglot.report.study.numbers import count, interval, percent, points
from veriglot.report.study.view import is_sound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.records import Rate
    from veriglot.report.study.view import View
    from veriglot.study.results import Average

__all__ = ["latex_escaped", "latex_matrix", "markdown_escaped", "markdown_matrix"]

_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#])")
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "\N{MINUS SIGN}": "$-$", "–": "--",
}  # fmt: skip


def markdown_escaped(text: str) -> str:
    """Text in one cell of a Markdown table, with nothing in it that marks anything up."""
    return _MARKDOWN.sub(r"\\\1", " ".join(printable(text).split()))


def latex_escaped(text: str) -> str:
    """Text in one cell of a LaTeX table."""
    return "".join(_LATEX.get(char, char) for char in " ".join(printable(text).split()))


def markdown_matrix(view: View) -> str:
    """Title, table, what is unreliable and why, and the signature."""
    lines = [f"**{markdown_escaped(view.results.title)}**", "", markdown_escaped(_caption(view)), ""]
    heads = ["Language", *(markdown_escaped(name) for name in view.models), "Mean"]
    lines += [_row(heads), _row(["---", *("---:" for _ in heads[1:])])]
    for tag in view.languages:
        cells = [_markdown_cell(view.rate(name, tag)) for name in view.models]
        lines.append(_row([f"{view.language(tag)} ({tag})", *cells, _average(view.average(tag))]))
    means = [_average(view.average(name)) for name in view.models]
    lines += [_row(["**Mean**", *means, _average(view.results.overall)]), ""]
    lines += [f"- {markdown_escaped(text)}" for text in _notes(view)]
    return "\n".join([*lines, "", f"Signature: `{view.results.signature.replace('`', '')}`", ""])


def _caption(view: View) -> str:
    level = f"{100 * view.results.confidence:g}%"
    return (
        f"Share of {view.units} that the evidence does not support, by {view.results.estimator}, with {level} intervals"
        " in percentage points and coverage (judged responses over those asked for or given)."
    )


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(rate: Rate | None) -> str:
    if rate is None:
        return "not estimated"
    coverage = f"cov. {percent(rate.coverage, 0)}"
    if is_sound(rate):
        return f"{percent(rate.rate)} {interval(rate.low, rate.high)} {coverage}".replace("  ", " ")
    number = "no estimate" if rate.rate is None else f"{percent(rate.rate)}?"
    return f"*unreliable* ({number}) {coverage}"


def _average(average: Average | None) -> str:
    if average is None or average.mean is None:
        return "no mean"
    left_out = f" ({average.unreliable} left out)" if average.unreliable else ""
    return f"{percent(average.mean)} {interval(average.low, average.high)}".rstrip() + left_out


def _notes(view: View) -> Iterator[str]:
    """Why rates are unreliable, then the warnings of the study."""
    if view.unreliable:
        yield f"Unreliable, and in no mean: {count(len(view.unreliable), 'rate')} of {len(view.own_rates)}."
    for reason, rates in view.by_reason.items():
        yield f"{reason} ({view.places(rates)})"
    if view.unlike_means:
        yield view.unlike_means
    yield from view.results.warnings


def latex_matrix(view: View) -> str:
    """A `table*` for a paper (needs the package booktabs): rates over their intervals and coverage."""
    columns = "l" + "c" * len(view.models) + "c"
    heads = ["Language", *(latex_escaped(name) for name in view.models), "Mean"]
    lines = [
        r"% needs \usepackage{booktabs}", r"\begin{table*}", r"\centering", r"\small",
        rf"\begin{{tabular}}{{{columns}}}", r"\toprule", _latex_row(heads), r"\midrule",
    ]  # fmt: skip
    for tag in view.languages:
        rates = [view.rate(name, tag) for name in view.models]
        mean = view.average(tag)
        lines.append(_latex_row([latex_escaped(view.language(tag)), *map(_latex_rate, rates), _latex_mean(mean)]))
        lines.append(_latex_row(["", *map(_latex_under, rates), _latex_ends(mean)]))
    means = [view.average(name) for name in view.models] + [view.results.overall]
    lines += [r"\midrule", _latex_row(["Mean", *map(_latex_mean, means)])]
    lines += [_latex_row(["", *map(_latex_ends, means)]), r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\caption{{{_latex_caption(view)}}}", r"\label{tab:rates}", r"\end{table*}"]
    lines += [f"% {' '.join(printable(text).split())}" for text in (*_notes(view), view.results.signature)]
    return "\n".join([*lines, ""])


def _latex_caption(view: View) -> str:
    text = latex_escaped(f"{view.results.title}. {_caption(view)} Rates in %; under each its interval and coverage.")
    doubtful = r" \emph{unr.}: unreliable, not a rate and in no mean; in parentheses what the estimator gave."
    return text + (doubtful if view.unreliable else "")


def _latex_row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_rate(rate: Rate | None) -> str:
    if rate is None or rate.rate is None:
        return "--" if rate is None else r"\emph{unr.}"
    number = latex_escaped(points(rate.rate))
    return number if is_sound(rate) else rf"\emph{{unr.}} ({number}?)"


def _latex_under(rate: Rate | None) -> str:
    if rate is None:
        return ""
    coverage = latex_escaped(percent(rate.coverage, 0))
    ends = interval(rate.low, rate.high) if is_sound(rate) else ""
    return rf"{{\scriptsize {' '.join(filter(None, (latex_escaped(ends), coverage)))}}}"


def _latex_mean(average: Average | None) -> str:
    return r"--" if average is None or average.mean is None else rf"\textbf{{{latex_escaped(points(average.mean))}}}"


def _latex_ends(average: Average | None) -> str:
    ends = interval(average.low, average.high) if average is not None else ""
    return rf"{{\scriptsize {latex_escaped(ends)}}}" if ends else ""
