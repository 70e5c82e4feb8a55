"""Findings of a bench in words: how to read its tables, who leads, and which differences are significant.

Each sentence follows from the tests that the page shows, and there is none if the tests show nothing: a greater mean
alone is no lead, a system that left rows out cannot lead, and comparisons on data that one of the two was trained on
do not count.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from veriglot.bench.figures import RELIABLE_TEXTS, UNTUNED
from veriglot.bench.leaderboard import SIGNIFICANT, winner
from veriglot.metrics.estimate import FEWEST_TEXTS
from veriglot.report.text_layout import count, number

if TYPE_CHECKING:
    from veriglot.bench.results import BenchComparison, BenchData
    from veriglot.report.bench_tables import Board, Row, View

__all__ = ["FEW", "SEEN", "few_texts", "findings", "reading", "tuning_share"]


SEEN = "†"
"""Mark of a figure on data that the system was trained on."""


FEW = "‡"
"""Mark of an interval over few texts."""


def tuning_share(data: BenchData) -> str:
    """The part of a data set that thresholds were tuned on, in words: `1 of 15 samples, 7%`."""
    every = data.dev + sum(samples for samples, _ in data.languages.values())
    return f"{data.dev:,} of {every:,} samples, {100 * data.dev / max(every, 1):.0f}%"


def _headline(view: View, board: Board) -> str:
    """One sentence on a leaderboard in which any system has a figure: what the tests show about who leads."""
    level, ranked = f"{board.level.capitalize()}s", board.ranked
    counted = [row for row in board.rows if row.mean is not None]
    if not counted:
        data_names = ", ".join(data.name for data in board.data if data.seen)
        return f"{level}: no system leads: one was trained on all data with figures ({data_names})."
    if len(counted) == 1:
        return f"{level}: only {counted[0].system.name} has figures that count, {board.measure} {_mean(counted[0])}."
    if not ranked and not board.incomplete:
        return f"{level}: no ranking: these results have no tests of all pairs. Rerun the bench to make them."
    if not ranked:
        return f"{level}: no ranking: every system left out rows that another judged."
    apart = _and_list([row.system.name for row in board.incomplete])
    left_out = f"; without a rank, as rows were left out: {apart}" if apart else ""
    if len(ranked) == 1:
        return f"{level}: only {ranked[0].system.name} has a rank, {board.measure} {_mean(ranked[0])}{left_out}."
    first = [row for row in ranked if row.standing is not None and row.standing.best == 1]
    behind = next((row for row in ranked if row.system.name == view.results.baseline and row not in first), None)
    other = f"; {behind.system.name} ranks {behind.rank} of {len(ranked)}" if behind is not None else ""
    return f"{level}: {_leaders(view, board, first)}{other}{left_out}."


def _leaders(view: View, board: Board, first: list[Row]) -> str:
    """Who leads, and by which tests; who shares the first ranks; or that no test is significant."""
    ranked = {row.system.name for row in board.ranked}
    tests = [pair for pair in view.pairs(board.level) if {pair.system, pair.baseline} <= ranked]
    top = first[0].system.name
    if not any(map(winner, tests)):
        texts = min(pair.clusters for pair in tests)
        why = f" (on {texts:,} texts, and under {RELIABLE_TEXTS} no test counts)" if texts < RELIABLE_TEXTS else ""
        return f"no system leads by {board.measure}: the tests do not tell the {len(ranked)} systems apart{why}"
    own = [pair for pair in tests if top in {pair.system, pair.baseline}]
    if len(first) == 1 and all(winner(pair) == top for pair in own):
        rest = ranked - {top}
        others = next(iter(rest)) if len(rest) == 1 else f"each of the {len(rest)} others"
        worst = max(pair.adjusted or 0.0 for pair in own)
        lead = (
            f"{top} leads by {board.measure}, {_mean(first[0])}: better than {others} (corrected p at most {worst:.3f})"
        )
        fair = [row for row in _fair(view) if row.level == board.level and top in {row.system, row.baseline}]
        ahead = [f"{best} is ahead of it on {row.data}" for row in fair if (best := winner(row)) not in {None, top}]
        return lead + (f", though {_and_list(ahead)}" if ahead else "")
    if len(first) == 1:
        rivals = [pair.baseline if pair.system == top else pair.system for pair in own if winner(pair) is None]
        best = f"{top} has the best {board.measure}, {_mean(first[0])}"
        return f"{best}, but the tests do not tell it apart from {_and_list(rivals)}"
    names = _and_list([f"{row.system.name} ({number(row.mean)})" for row in first])
    return f"{names} share the first ranks by {board.measure}: the tests do not tell them apart"


def _fair(view: View) -> list[BenchComparison]:
    """Comparisons with the baseline on data that neither of the two was trained on."""
    seen = {data.name: data.seen for data in view.results.data}
    return [row for row in view.results.comparisons if not {row.system, row.baseline} & set(seen.get(row.data, ()))]


def _mean(row: Row) -> str:
    """The mean of a row, and its number of data sets."""
    return number(row.mean) + (f" over {len(row.unseen)} data sets" if len(row.unseen) > 1 else "")


def _and_list(names: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`; empty for none."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


# Notes for readers of a leaderboard, in words: how to read it, and who leads by how much.


FEW_TEXTS = (
    f"{FEW} marks intervals over {FEWEST_TEXTS} to {RELIABLE_TEXTS - 1} texts. They are too narrow: in simulations, 65%"
    " to 94% of them held the truth, not 95%. Trust no interval, test or lead on so few texts."
    f" Under {FEWEST_TEXTS} texts no interval is given."
)


def few_texts(shown: object) -> list[str]:
    """The note on the mark of few texts, if any interval of the tables shown has the mark."""
    return [FEW_TEXTS] * (f"]{FEW}" in repr(shown))


_RANKED = (
    "Thresholds are tuned on the dev part of each data set for each system and measure (precision and recall take that"
    " of F1), and never on the test part, which gives the figures.",
    "Systems with a rank come first, the best mean on top. Ranks such as 1–3 are those that tests of all pairs,"
    f" corrected for their number, cannot exclude; under {RELIABLE_TEXTS} texts no test counts. A system that left out"
    " rows that another judged has no rank, and is compared on the rows that both judged.",
    "A win or tie is a language of a data set in which no system has more, at two decimals. A dash is a figure that is"
    " undefined or was not measured; it is never a zero.",
)


_REMEDY = "more labelled texts, a greater dev_share, or files named as dev can bring items of both kinds"


def reading(view: View) -> list[str]:
    """How to read the tables."""
    results = view.results
    words = list(_RANKED) if view.levels else []
    words[:0] = [
        "Figures are means over a data set's languages, each measured alone, with 95% intervals over"
        f" {results.resamples:,} resamples of whole texts; all systems share the resamples of a data set."
    ]
    if results.answers:
        words.append(
            "For data without labels, the page shows how much a system marks and how high its numbers are. A system"
            " that marks more, or agrees with more others, is not better for it: without labels there is no ranking."
        )
    if any(figure.seen for figure in results.figures):
        words.append(
            f"{SEEN} marks figures on data that the system was trained on. Such data is in no mean over data sets and"
            " in no win rate, for any system."
        )
    if any(cell.coverage < 1.0 for cell in results.cells if cell.status == "partial"):
        words.append(
            "Where a system scored only a part of the samples, its figures are of that part: see the coverage, and"
            " the comparisons, which take the samples that both scored."
        )
    return [*words, *results.notes]


def findings(view: View) -> list[str]:
    """Who leads at each level, and which differences are significant; without labels, what the bench shows instead."""
    bare = [each.name for each in view.results.data if not each.labelled]
    sentences = []
    if bare:
        sentences.append(f"Without labels, and so without a ranking: {', '.join(bare)}.")
    for level in view.levels:
        board = view.board(level)
        if not board.rows:
            continue
        if not any(
            figure is not None and figure.value is not None for row in board.rows for figure in row.cells.values()
        ):
            sentences.append(f"{level.capitalize()}s: no system has a figure of {board.measure}{_why(view, level)}.")
            continue
        sentences.append(_headline(view, board))
    sentences += _differences(view)
    missing = {cell.system for cell in view.results.cells if cell.status == "unavailable"}
    if missing:
        sentences.append(f"Not judged, being unavailable here: {', '.join(sorted(missing))}.")
    return sentences


_NAMED = 6  # maximum number of comparisons in a sentence


def _differences(view: View) -> list[str]:
    """Which comparisons with the baseline have a winner, and who it is; not on data that one was trained on."""
    baseline = view.results.baseline
    compared = [row for row in _fair(view) if row.adjusted is not None]
    if not compared:
        return []
    won = sorted((row for row in compared if winner(row)), key=lambda row: (winner(row) == baseline, row.adjusted))
    of = f"{len(won)} of {count(len(compared), 'difference')} from {baseline}"
    if not won:
        return [f"{of} beyond chance (corrected p below {SIGNIFICANT})."]
    named = []
    for row in won[:_NAMED]:
        best = winner(row)
        loser = row.baseline if best == row.system else row.system
        named.append(f"{best} is better than {loser} on {row.data} ({row.level}s)")
    more = f"; {len(won) - _NAMED} more in the table" if len(won) > _NAMED else ""
    return [f"{of} beyond chance (corrected p below {SIGNIFICANT}): {'; '.join(named)}{more}."]


def _why(view: View, level: str) -> str:
    """The most frequent reason of undefined figures of the ranking measure."""
    every = view.undefined(level)
    reasons = [reason for reason, _ in Counter(figure.reason for figure in every).most_common() if reason]
    if not reasons:
        return ""
    if not reasons[0].startswith(f"{UNTUNED}: the development split has no"):
        return f": {reasons[0]}"
    bare = {figure.data for figure in every if figure.reason == reasons[0]}
    tried = "; of ".join(f"{data.name} {tuning_share(data)}" for data in view.data(level) if data.name in bare)
    return f": {reasons[0]}. Of {tried} were taken for tuning; {_REMEDY}"
