"""The tables of a set: yields by language and type, words, reasons, and how diverse its people are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.records.languages import languages
from veriglot.report.bench.grids import Grid
from veriglot.report.halluverse.charts import year_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.build.diversity import Diversity, Spread
    from veriglot.build.halluverse import LanguageSummary, Summary

__all__ = ["diversity_grid", "groups_of", "language_name", "reason_grid", "spread_grid", "word_grid", "yield_grid"]

_DASH = "–"


def language_name(tag: str) -> str:
    """A language's English name with its tag."""
    entry = languages().get(tag)
    return f"{entry.name} ({tag})" if entry is not None else tag


def _rows(summary: Summary) -> list[tuple[str, LanguageSummary]]:
    rows = [(language_name(tag), one) for tag, one in summary.languages.items()]
    return rows if len(rows) == 1 else [*rows, ("all", summary.total)]


def yield_grid(summary: Summary) -> Grid:
    """What became of pages and sentences."""
    heads = (
        "language", "pages", "used", "facts wanted", "facts", "pairs",
        *(f"{type_}, of those drawn" for type_ in summary.total.types), "balance", "people",
    )  # fmt: skip
    rows = []
    for name, one in _rows(summary):
        used = one.pages - sum(one.unfit.values())
        counts = (one.pages, used, one.asked, one.facts, one.pairs)
        types = (f"{each.taken:,} of {each.asked:,}" for each in one.types.values())
        rows.append((name, *(f"{n:,}" for n in counts), *types, _number(one.balance, 3), f"{one.people:,}"))
    return Grid("Yield", heads, tuple(rows))


def word_grid(summary: Summary) -> Grid:
    """Words of the pairs (halluverse25, Table 2)."""
    rows = tuple(
        (
            name,
            f"{one.pairs:,}",
            f"{one.words_original:,}",
            f"{one.words_edited:,}",
            *(_number(total / one.pairs if one.pairs else None) for total in (one.words_original, one.words_edited)),
        )
        for name, one in _rows(summary)
    )
    heads = ("language", "pairs", "words, original", "words, edited", "a sentence, original", "a sentence, edited")
    return Grid("Words", heads, rows)


def reason_grid(summary: Summary) -> Grid:
    """Everything that was not taken, by reason and language."""
    tags = list(summary.languages)
    found: dict[tuple[str, str], dict[str, int]] = {}
    for tag, one in summary.languages.items():
        for what, reasons in _reasons(one):
            for reason, number in reasons.items():
                found.setdefault((what, reason), {})[tag] = number
    rows = tuple(
        (what, reason, *(f"{counts.get(tag, 0):,}" for tag in tags)) for (what, reason), counts in found.items()
    )
    return Grid("Not taken, by reason", ("what", "reason", *tags), rows)


def _reasons(one: LanguageSummary) -> Iterator[tuple[str, dict[str, int]]]:
    yield "page", one.unfit
    yield "fact", one.fact_reasons
    yield "sentence", one.sentence_reasons
    for type_, each in one.types.items():
        yield f"{type_} error", each.reasons


def groups_of(summary: Summary) -> dict[str, Diversity]:
    """The groups of people that are described, by name."""
    given = {"people given": summary.given} if summary.given is not None else {}
    by_language = {language_name(tag): one for tag, one in summary.by_language.items()}
    return {**given, "in the set": summary.set, **(by_language if len(by_language) > 1 else {})}


def diversity_grid(summary: Summary) -> Grid:
    """How diverse each group of people is, in figures."""
    heads = (
        "people", "number", "of", "known of", "categories", "entropy", "evenness", "effective number", "largest share",
    )  # fmt: skip
    rows = []
    for name, one in groups_of(summary).items():
        for what, spread in (("profession", one.professions), ("citizenship", one.countries)):
            rows.append((name, f"{one.people:,}", what, *_figures(spread)))
        births = one.births
        rows.append(
            (
                name, f"{one.people:,}", "year of birth", _percent(births.coverage),
                f"{sum(span.people > 0 for span in births.spans):,} of {len(births.spans):,}", _DASH,
                _number(births.evenness, 3), _DASH,
                _DASH if births.earliest is None or births.latest is None
                else f"{year_name(births.earliest)} to {year_name(births.latest)}",
            )
        )  # fmt: skip
    return Grid("Diversity in figures", heads, tuple(rows))


def _figures(spread: Spread) -> tuple[str, ...]:
    return (
        _percent(spread.coverage),
        f"{len(spread.categories):,}",
        f"{spread.entropy:.2f}",
        _number(spread.evenness, 3),
        f"{spread.effective:.1f}",
        _percent(spread.largest),
    )


def spread_grid(summary: Summary, which: str, title: str) -> Grid:
    """The people of every category, in each group.

    Args:
        summary: the set.
        which: `professions` or `countries`.
        title: of the table.
    """
    groups = {name: getattr(one, which) for name, one in groups_of(summary).items()}
    counts = {name: {one.item: one.people for one in spread.categories} for name, spread in groups.items()}
    widest: Spread = groups.get("people given") or groups["in the set"]
    rows = tuple(
        (one.label, one.item, *(f"{counts[name].get(one.item, 0):,}" for name in groups)) for one in widest.categories
    )
    return Grid(title, ("name", "item", *groups), rows)


def _percent(share: float | None) -> str:
    return _DASH if share is None else f"{100 * share:.1f}%"


def _number(value: float | None, digits: int = 2) -> str:
    return _DASH if value is None else f"{value:.{digits}f}"
