"""The findings of a study in sentences that claim no more than the intervals, and its terminal view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from veriglot.report.html import joined, tag
from veriglot.report.study.rates import shared_means
from veriglot.report.study.view import ALL, View, flag, is_sound, model_label
from veriglot.report.tables import PLAIN_WIDTH, Cell, Table
from veriglot.report.text_layout import count, interval, percent, points, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup

    from veriglot.records import Rate
    from veriglot.report.tables import Value
    from veriglot.study.results import Average, StudyResults

__all__ = ["findings", "render_study"]


def findings(view: View) -> Markup:
    """Key figures, the main findings as sentences, and the warnings."""
    sentences = [tag("li", sentence) for sentence in _sentences(view)]
    return tag(
        "section",
        tag("h2", "Findings", class_="unseen", id="findings-title"),
        _tiles(view),
        tag("ul", *sentences, class_="findings"),
        _warnings(view.results.warnings),
        id="findings",
        aria_labelledby="findings-title",
    )


def _tiles(view: View) -> Markup:
    overall = view.results.overall
    judged, planned = judged_of_planned(view)
    ends = interval(overall.low, overall.high)
    doubtful = len(view.unreliable)
    mean = tag("b", percent(overall.mean)) if overall.mean is not None else flag("no mean")
    tiles = [
        (mean, f"mean rate {ends}".rstrip()),
        (tag("b", f"{len(view.models)} × {len(view.languages)}"), "models × languages"),
        (tag("b", f"{judged:,}"), "responses judged"),
        (tag("b", percent(judged / planned if planned else None)), "coverage of those planned"),
        (tag("b", f"{doubtful} of {len(view.own_rates)}"), "rates unreliable"),
    ]
    return tag("dl", *(tag("div", tag("dt", label), tag("dd", value)) for value, label in tiles), class_="tiles")


def judged_of_planned(view: View) -> tuple[int, int]:
    """Responses that the first detector judged, and responses that the design asks for."""
    cells = view.results.cells
    return sum(c.coverage.statuses.get("scored", 0) for c in cells), sum(c.coverage.planned for c in cells)


def _sentences(view: View) -> Iterator[Markup]:
    yield from _overall(view)
    yield from _by_rank(view) if view.unlike_means else _best_and_worst(view)
    yield from _languages(view)
    yield from _correction(view)
    if view.unreliable:
        yield joined(
            [
                f"{count(len(view.unreliable), 'rate')} of {len(view.own_rates)} ",
                "is " if len(view.unreliable) == 1 else "are ",
                flag(), " and in no mean: the data do not support a number there.",
            ]
        )  # fmt: skip


def _overall(view: View) -> Iterator[Markup]:
    overall = view.results.overall
    if overall.mean is None:
        yield joined(["No rate is reliable, so there is no mean."])
        return
    level = f"{100 * view.results.confidence:g}% interval"
    ends = interval(overall.low, overall.high)
    yield joined(
        [
            "On average ", tag("b", percent(overall.mean)),
            f" of the {view.units} that the models wrote are not supported by the evidence",
            f" ({level} {ends}, mean of {count(overall.cells, 'reliable rate')})." if ends else ".",
        ]
    )  # fmt: skip


def _best_and_worst(view: View) -> Iterator[Markup]:
    measured = [average for average in view.results.by_model if average.mean is not None]
    if len(measured) < 2:
        return
    ranks = [rank for rank in view.results.ranks if rank.language == ALL]
    first = [rank.model for rank in ranks if rank.low == 1]
    last = [rank.model for rank in ranks if rank.high == len(ranks)]
    yield _extreme("least", measured[0], first)
    yield _extreme("most", measured[-1], last)


def _by_rank(view: View) -> Iterator[Markup]:
    """The first and the last model by rank, where means are of other languages for each model."""
    yield joined([view.unlike_means or ""])
    ranks = sorted((rank for rank in view.results.ranks if rank.language == ALL), key=lambda rank: rank.rank)
    if len(ranks) < 2:
        return
    where = f"In {count(len(view.shared_languages), 'language')} with a rate of every model, "
    for word, end, possible in (
        ("least", ranks[0], [rank.model for rank in ranks if rank.low == 1]),
        ("most", ranks[-1], [rank.model for rank in ranks if rank.high == len(ranks)]),
    ):
        others = [name for name in possible if name != end.model]
        if others:
            names = joined([model_label(name) for name in others], ", ")
            end_name = "first" if word == "least" else "last"
            lead = [where, model_label(end.model), f" stands {end_name}, but the data do not exclude that another"]
            yield joined([*lead, f" hallucinates {word}: ", names, "."])
        else:
            yield joined([where, model_label(end.model), f" hallucinates {word}; its rank interval holds no other."])


def _extreme(word: str, average: Average, possible: Sequence[str]) -> Markup:
    figure = f" ({percent(average.mean)} {interval(average.low, average.high)}".rstrip() + ")"
    others = [name for name in possible if name != average.name]
    if average.name not in possible:  # no rank interval says so
        return joined([model_label(average.name), f" has the {_superlative(word)} mean rate", figure, "."])
    if not others:
        return joined(
            [model_label(average.name), f" hallucinates {word}", figure, "; its rank interval holds no other rank."]
        )
    names = joined([model_label(name) for name in others], ", ")
    lead = joined([model_label(average.name), f" has the {_superlative(word)} mean rate", figure])
    return joined([lead, f", but the data do not exclude that another hallucinates {word}: ", names, "."])


def _superlative(word: str) -> str:
    return "lowest" if word == "least" else "highest"


def _languages(view: View) -> Iterator[Markup]:
    measured = [average for average in view.results.by_language if average.mean is not None]
    if len(measured) < 2:
        return
    low, high = measured[0], measured[-1]
    yield joined(
        [
            "Mean rates go from ", tag("b", percent(low.mean)), f" in {view.language(low.name)} to ",
            tag("b", percent(high.mean)), f" in {view.language(high.name)}.",
        ]
    )  # fmt: skip


def _correction(view: View) -> Iterator[Markup]:
    own = view.results.estimator
    means, cells = shared_means(view, ["raw", own])
    if own == "raw" or means is None:
        return
    yield joined(
        [
            f"The detector marks {percent(means['raw'])} of the {view.units}; corrected for its own errors that is ",
            tag("b", percent(means[own])), f" (means over the {count(cells, 'rate')} where both are reliable).",
        ]
    )  # fmt: skip


def _warnings(warnings: Sequence[str]) -> Markup | None:
    if not warnings:
        return None
    items = (tag("li", warning) for warning in warnings)
    title = tag("h3", "Before you use these figures")
    return tag("aside", title, tag("ul", *items), class_="warnings", aria_label="Warnings")


def render_study(results: StudyResults, console: Console) -> None:
    """Print a study.

    Args:
        results: the study's results.
        console: where to print; a table that is wider becomes several, and a pipe has 200 columns. Without colours
            nothing is lost: what is unreliable says so.
    """
    view = View(results)
    if not console.is_terminal:  # it says 80 columns, which is a guess
        console = Console(file=console.file, width=PLAIN_WIDTH, color_system=None)
    _line(console, Text(printable(results.title), style="bold"))
    _line(console, Text(_caption(view), style="dim"))
    _rates(view).print(console)
    console.print()
    _models(view).print(console)
    console.print()
    for line in _notes(view):
        _line(console, line)


def _caption(view: View) -> str:
    level = f"{100 * view.results.confidence:g}%"
    judged, planned = judged_of_planned(view)
    return (
        f"Share of {view.units} that the evidence does not support, by {view.results.estimator}, with {level} interval;"
        f" below it the coverage. {judged:,} of {count(planned, 'response')} judged."
    )


def _line(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True, markup=False, highlight=False, emoji=False)


def _rates(view: View) -> Table:
    rows: list[tuple[Value | Cell, ...]] = []
    for tag_ in view.languages:
        rates = (_rate_cell(view.rate(name, tag_)) for name in view.models)
        rows.append((Cell(view.language(tag_), tag_), *rates, _mean_cell(view.average(tag_))))
    means = (_mean_cell(view.average(name)) for name in view.models)
    rows.append(("mean", *means, _mean_cell(view.results.overall)))
    return Table("", "", ("language", *view.models, "mean"), rows, totals=1)


def _rate_cell(rate: Rate | None) -> Cell:
    if rate is None:
        return Cell("not estimated", kind="absent")
    coverage = f"cov. {percent(rate.coverage, 0)}"
    if is_sound(rate):
        return Cell(percent(rate.rate), f"{_ends(rate.low, rate.high)}\n{coverage}", kind="strong")
    number = "no estimate" if rate.rate is None else f"({percent(rate.rate)}?)"
    return Cell("unreliable", f"{number}\n{coverage}", kind="doubtful")


def _ends(low: float | None, high: float | None) -> str:
    return "no interval" if low is None or high is None else f"{points(low)}–{points(high)}"


def _mean_cell(average: Average | None) -> Cell:
    if average is None or average.mean is None:
        return Cell("no mean", kind="doubtful")
    ends = _ends(average.low, average.high) if average.low is not None else ""
    left_out = f"\n{average.unreliable} left out" if average.unreliable else ""
    return Cell(percent(average.mean), ends + left_out, kind="strong")


def _models(view: View) -> Table:
    ranks = {rank.model: rank for rank in view.results.ranks if rank.language == ALL}
    rows = []
    for average in view.results.by_model:
        rank = ranks.get(average.name)
        reach = "" if rank is None else str(rank.low) if rank.low == rank.high else f"{rank.low}–{rank.high}"
        mean = "no mean" if average.mean is None else percent(average.mean)
        languages = f" of {average.cells + average.unreliable}" if average.unreliable else ""
        rows.append(
            (
                average.name,
                Cell(mean, kind="doubtful" if average.mean is None else "strong"),
                interval(average.low, average.high),
                None if rank is None else rank.rank,
                reach,
                f"{average.cells}{languages}",
            )
        )
    heads = ("model", "mean", "interval", "rank", "not excluded", "languages")
    return Table("", "Models, over languages", heads, rows)


def _notes(view: View) -> Iterator[Text]:
    for reason, rates in view.by_reason.items():
        told = f"{reason} ({view.places(rates)})"
        yield Text.assemble(("Unreliable: ", "bold yellow"), printable(told))
    if view.unlike_means:
        yield Text.assemble(("Note: ", "bold"), view.unlike_means)
    for warning in view.results.warnings:
        yield Text.assemble(("Warning: ", "bold"), printable(warning))
    yield Text(f"Signature: {printable(view.results.signature)}", style="dim")
