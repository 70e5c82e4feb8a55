"""What the study found, in sentences that claim no more than its intervals do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.report.study.figures import flag, model_label
from veriglot.report.study.markup import Markup, joined, tag
from veriglot.report.study.means import shared_means
from veriglot.report.study.numbers import count, interval, percent
from veriglot.report.study.view import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.report.study.view import View
    from veriglot.study.results import Average

__all__ = ["findings"]


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
            place = "first" if word == "least" else "last"
            lead = [where, model_label(end.model), f" stands {place}, but the data do not exclude that another"]
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
