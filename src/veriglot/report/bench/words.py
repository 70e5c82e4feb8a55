"""What a reader of a leaderboard must know, in words: how to read it, and who leads by how much."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from veriglot.bench.fewness import FEWEST_TEXTS, SURE_TEXTS
from veriglot.bench.measuring import UNTUNED
from veriglot.report.bench.leading import headline
from veriglot.report.bench.view import FEW, SEEN, taken

if TYPE_CHECKING:
    from veriglot.report.bench.view import View

__all__ = ["FEW_TEXTS", "findings", "reading"]

FEW_TEXTS = (
    f"{FEW} marks intervals over {FEWEST_TEXTS} to {SURE_TEXTS - 1} texts: so few, drawn again, show too little of how"
    " other texts would differ (in simulations, 65% to 94% of such intervals held the truth, not 95%). Believe neither"
    f" them nor a test or a lead on so few texts. Under {FEWEST_TEXTS} texts no interval is given."
)


_RANKED = (
    "Thresholds are tuned on the dev part of each data set for each system and measure (precision and recall take that"
    " of F1), and never on the test part that figures stand on.",
    "A win is a language of a data set in which no system has more, at two decimals; all who tie are credited. A dash"
    " is a figure that is undefined or was not measured; it is never a zero.",
)
_REMEDY = "more labelled texts, a greater dev_share, or files named as dev can bring items of both kinds"


def reading(view: View) -> list[str]:
    """How to read the tables."""
    results = view.results
    words = list(_RANKED) if view.levels else []
    words[:0] = [
        "Figures are means over a data set's languages, each measured alone, with 95% intervals over"
        f" {results.resamples:,} resamples of whole texts; all systems share the resamples of a data set.",
    ]
    if results.answers:
        words.append(
            "Of data without labels it is shown how much a system marks and how high its numbers are. Who marks more,"
            " or agrees with more of the others, is not better by that: without labels nobody is ranked."
        )
    if any(figure.seen for figure in results.figures):
        words.append(
            f"{SEEN} marks figures on data that the system was trained on. Such data is in no mean over data sets and"
            " in no win rate, of whatever system."
        )
    if any(cell.coverage < 1.0 for cell in results.cells if cell.status == "partial"):
        words.append(
            "Where a system scored only a part of the samples, its figures stand on that part: see the coverage, and"
            " the comparisons, which take the samples that both scored."
        )
    return [*words, *results.notes]


def findings(view: View) -> list[str]:
    """Who leads at each level, and what of it is beyond chance; what there is where there are no labels."""
    bare = [one.name for one in view.results.data if not one.labelled]
    found = []
    if bare:
        found.append(f"Without labels, so that nobody is ranked by it: {', '.join(bare)}.")
    for level in view.levels:
        board = view.board(level)
        if not board.rows:
            continue
        if not any(
            figure is not None and figure.value is not None for row in board.rows for figure in row.cells.values()
        ):
            found.append(f"{level.capitalize()}s: no system has a figure of {board.measure}{_why(view, level)}.")
            continue
        found.append(headline(board, view.results.baseline))
    compared = [one for one in view.results.comparisons if one.adjusted is not None]
    firm = [one.difference or 0.0 for one in compared if one.adjusted is not None and one.adjusted < 0.05]
    if compared:
        better, worse = sum(value > 0 for value in firm), sum(value < 0 for value in firm)
        found.append(
            f"Against {view.results.baseline}, {better} of {len(compared)} comparisons are better and {worse} worse"
            " beyond chance (corrected p below 0.05)."
        )
    missing = {cell.system for cell in view.results.cells if cell.status == "unavailable"}
    if missing:
        found.append(f"Not available here: {', '.join(sorted(missing))}.")
    return [*found, FEW_TEXTS] if _few(view) else found


def _few(view: View) -> bool:
    """Whether any number stands on fewer texts than make an interval sound."""
    figures = (one.clusters for one in view.results.figures if one.value is not None)
    answers = (one.clusters for one in view.results.answers if one.items)
    compared = (one.clusters for one in view.results.comparisons if one.difference is not None)
    return any(texts < SURE_TEXTS for texts in (*figures, *answers, *compared))


def _why(view: View, level: str) -> str:
    """What most of the undefined figures of the measure that systems are ranked by say of themselves."""
    every = view.undefined(level)
    told = [reason for reason, _ in Counter(figure.reason for figure in every).most_common() if reason]
    if not told:
        return ""
    if not told[0].startswith(f"{UNTUNED}: the development split has no"):
        return f": {told[0]}"
    bare = {figure.data for figure in every if figure.reason == told[0]}
    tried = "; of ".join(f"{one.name} {taken(one)}" for one in view.data(level) if one.name in bare)
    return f": {told[0]}. Of {tried} were taken for tuning; {_REMEDY}"
