"""Who stands where: rank intervals, and every pair of models held against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.report.study.axes import Axis
from veriglot.report.study.figures import interval_marks, language_label, model_label
from veriglot.report.study.grids import grid
from veriglot.report.study.markup import Markup, hidden, joined, tag
from veriglot.report.study.means import model_means
from veriglot.report.study.numbers import interval, signed
from veriglot.report.study.sections import Section, folded, note
from veriglot.report.study.strips import Strip, strip_table
from veriglot.report.study.view import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.report.study.view import View
    from veriglot.study.results import Comparison, RankInterval

__all__ = ["model_section", "p_text"]

_LISTED = 60
"""Comparisons within languages that are listed; more of them are for a program to read."""


def model_section(view: View) -> Section:
    """Means, rank intervals and comparisons of the models."""
    level = f"{100 * view.results.confidence:g}%"
    body = [
        note(f"The mean over languages of each model with its {level} interval; a faint tick is one language."),
        model_means(view),
        *_rank_intervals(view),
        *_comparisons(view),
    ]
    return Section("models", "Models", "Models", body, ("models", "ranks", "comparisons", "settings"))


def _rank_intervals(view: View) -> Iterator[Markup]:
    by_language: dict[str, list[RankInterval]] = {}
    for rank in view.results.ranks:
        by_language.setdefault(rank.language, []).append(rank)
    if not by_language:
        return
    level = f"{100 * view.results.confidence:g}%"
    yield tag("h3", "Ranks")
    yield note(
        f"1 hallucinates least. A bar holds every rank that the data do not exclude ({level}): where two bars share"
        " ranks, the order of the two is not settled."
    )
    overall = by_language.pop(ALL, None)
    if overall:
        yield _rank_chart(overall, _over(view))
    if by_language:
        yield folded("Ranks in each language", _rank_table(view, by_language))


def _over(view: View) -> str:
    """What ranks of all languages together are over."""
    shared, every = len(view.shared_languages), len(view.languages)
    if shared in {0, every}:
        return "Rank over all languages"
    return f"Rank over the {shared} of {every} languages in which every model has a reliable rate"


def _rank_chart(ranks: Sequence[RankInterval], caption: str) -> Markup:
    axis = Axis(1.0, float(max(len(ranks), 2)), tuple(float(place) for place in range(1, len(ranks) + 1)))
    strips = [
        Strip(
            model_label(rank.model),
            joined(
                [
                    interval_marks(rank.low, rank.high, axis, "span broad"),
                    tag("circle", cx=axis.at(rank.rank), cy="50%", r="5", class_="dot"),
                ]
            ),
            (tag("b", str(rank.rank)), _reach(rank)),
        )
        for rank in sorted(ranks, key=lambda rank: (rank.rank, rank.low))
    ]
    heads = ("Model", "Rank", "Rank", "Not excluded")
    return strip_table(strips, axis, caption=caption, heads=heads, tick=axis.plain, class_="ranks")


def _reach(rank: RankInterval) -> str:
    return str(rank.low) if rank.low == rank.high else f"{rank.low}–{rank.high}"


def _rank_table(view: View, by_language: dict[str, list[RankInterval]]) -> Markup:
    rows = []
    for language in view.languages:
        ranks = {rank.model: rank for rank in by_language.get(language, ())}
        if ranks:
            cells = (_rank_words(ranks.get(name)) for name in view.models)
            rows.append((language_label(view.language(language), language), *cells))
    name = "Rank in each language, with the ranks that the data do not exclude"
    return grid(name, ("Language", *map(model_label, view.models)), rows)


def _rank_words(rank: RankInterval | None) -> Markup:
    if rank is None:
        return tag("span", "–", class_="absent")
    return joined([tag("b", str(rank.rank)), " ", tag("span", f"[{_reach(rank)}]", class_="interval")])


def _comparisons(view: View) -> Iterator[Markup]:
    overall = {(c.first, c.second): c for c in view.results.comparisons if c.language == ALL}
    if not view.results.comparisons:
        return
    rest = len(view.results.comparisons) - len(overall)
    more = f" Those within languages ({rest:,}) can be saved as CSV above." if rest > _LISTED else ""
    methods = "; ".join(dict.fromkeys(c.method for c in view.results.comparisons))
    alpha = 1 - view.results.confidence
    yield tag("h3", "Differences")
    yield note(
        "Row minus column, in percentage points: below zero, the model of the row hallucinates less. Marked are"
        f" differences with an adjusted p below {alpha:.2g} ({methods}).{more}"
    )
    if overall:
        yield _matrix(view, overall, alpha)
        yield folded("Every difference, with interval and effect", _list(view, list(overall.values())))
    if 0 < rest <= _LISTED:
        within = [c for c in view.results.comparisons if c.language != ALL]
        yield folded("Differences within languages", _list(view, within), opened=not overall)


def _matrix(view: View, found: dict[tuple[str, str], Comparison], alpha: float) -> Markup:
    rows = [
        (model_label(first), *(_difference(found, first, second, alpha) for second in view.models))
        for first in view.models
    ]
    name = "Differences of mean rates over all languages, row minus column"
    return grid(name, ("", *map(model_label, view.models)), rows, class_="matrix")


def _difference(found: dict[tuple[str, str], Comparison], first: str, second: str, alpha: float) -> Markup:
    if first == second:
        return tag("td", class_="diagonal")
    comparison, sign = found.get((first, second)), 1
    if comparison is None:
        comparison, sign = found.get((second, first)), -1
    if comparison is None:
        return tag("td", "–", class_="absent")
    clear = comparison.p_adjusted < alpha
    value = signed(sign * comparison.difference)
    side = "less" if sign * comparison.difference < 0 else "more"
    p = tag("span", p_text(comparison.p_adjusted), class_="interval")
    return tag(
        "td", tag("b", value) if clear else value, hidden(" clear") if clear else None, p,
        class_=f"clear {side}" if clear else None,
    )  # fmt: skip


def _list(view: View, comparisons: Sequence[Comparison]) -> Markup:
    heads = ("First", "Second", "In", "Difference", "Interval", "p", "p adjusted", "Effect", "Queries")
    rows = [
        (
            model_label(c.first),
            model_label(c.second),
            view.language(c.language),
            signed(c.difference),
            interval(c.low, c.high),
            p_text(c.p, bare=True),
            p_text(c.p_adjusted, bare=True),
            "–" if c.effect is None else f"{c.effect:.2f}".replace("-", "\N{MINUS SIGN}"),
            f"{c.queries:,}{' paired' if c.paired else ' unpaired'}",
        )
        for c in comparisons
    ]
    return grid("First minus second, in percentage points", heads, rows, numbers_from=3)


def p_text(p: float, *, bare: bool = False) -> str:
    """A p-value: `p = 0.031`, `p < 0.001`; without `p =` where a column says it."""
    if p < 0.001:
        return "< 0.001" if bare else "p < 0.001"
    number = f"{p:.3f}" if p < 0.1 else f"{p:.2f}"
    return number if bare else f"p = {number}"
