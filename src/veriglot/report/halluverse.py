"""Report of a data set like HalluVerse25 as one HTML file: diversity of people, yields, words, reasons, examples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.report.charts import Axis, Mark, Strip, strip_table
from veriglot.report.pages import Section, macro, write_report
from veriglot.report.palette import slot_of
from veriglot.report.tables import Table
from veriglot.report.text_layout import count, language_with_tag, number, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from markupsafe import Markup

    from veriglot.datasets.halluverse.pairs import Births, Diversity, LanguageSummary, Spread, Summary

__all__ = ["write_set"]


_SHOWN = 20  # maximum number of categories; rarer ones share one line
_GAP = 0.12  # gap between two bars, as a share of their width
_SPREADS = (
    ("professions", "professions", "Professions", "Profession"),
    ("citizenships", "countries", "Countries of citizenship", "Country"),
)


def write_set(summary: Summary, name: str, path: str | Path) -> None:
    """Write the report of a set as one self-contained page; the same summary gives the same bytes.

    Args:
        summary: of the set.
        name: of its file.
        path: of the page.

    Raises:
        OSError: the file cannot be written.
    """
    groups = _groups(summary)
    tables = {**dict(_of_languages(summary)), **dict(_of_people(groups))}
    types = list(summary.total.types)
    yields = _html("yields", _yield_chart(summary, types), types, tables)
    charts = [
        (group, _birth_chart(group, diversity.births), _births_text(group, diversity.births))
        for group, diversity in groups.items()
        if diversity.births.spans
    ]
    sections = [
        Section("findings", "Results", "Yield", (yields,), ("yield", "words")),
        Section("pairs", "Some pairs", "Pairs", (_html("pairs", summary.examples),)),
        Section(
            "diversity", "People of the pairs", "People",
            (_html("diversity", summary.unknown, tables["diversity"]),), ("diversity",),
        ),
        *_spread_sections(summary, tables),
        Section("births", "Years of birth", "Births", (_html("births", charts),)),
        Section("reasons", "Not taken", "Not taken", (tables["reasons"],), ("reasons",)),
    ]  # fmt: skip
    total = summary.total
    cost = f"{total.calls:,} calls, {total.tokens_in + total.tokens_out:,} tokens" if total.calls else "by rule"
    people = f"{count(total.pairs, 'pair')} about {count(total.people, 'person', 'people')}"
    subtitle = (f"{people} in {count(len(summary.languages), 'language')}", cost)
    write_report(path, title=f"{name}: pairs", subtitle=subtitle, sections=sections, tables=tables)


def _html(name: str, *values: Any) -> Markup:
    return macro(name, "halluverse.html")(*values)


# Bars: counts by type and category as rows of a table, years of birth as a histogram.


def _counts(numbers: Iterable[int]) -> Axis:
    """An axis of counts, with ticks at whole numbers."""
    axis = Axis.of(numbers, count=4)
    return axis._replace(ticks=tuple(tick for tick in axis.ticks if tick == int(tick)))


def _yield_chart(summary: Summary, types: Sequence[str]) -> Markup:
    parts = {tag: part for tag, part in summary.languages.items() if part.types}
    axis = _counts(sum(part.types[type_].taken for type_ in types) for part in parts.values())
    strips = []
    for tag, part in parts.items():
        marks, end = [], 0
        for type_ in types:
            start, end = end, end + part.types[type_].taken
            if end > start:
                marks.append(Mark("bar", start, end, f"slot-{slot_of(type_)}", f"{type_}: {end - start:,}"))
        strips.append(Strip(language_with_tag(tag), marks, (f"{part.pairs:,}", number(part.balance, 3))))
    caption, heads = "Pairs by language and type of error", ("Language", "Pairs", "pairs", "balance")
    return strip_table(strips, axis, caption=caption, heads=heads, tick=axis.plain, class_="stacked")


def _spread_sections(summary: Summary, tables: dict[str, Table]) -> Iterator[Section]:
    """The people of each category; the rarest are only in the table."""
    for name, which, title, head in _SPREADS:
        spread: Spread = getattr(summary.set, which)
        if not spread.categories:
            continue
        shown = spread.categories[: _SHOWN + 1 if len(spread.categories) == _SHOWN + 1 else _SHOWN]
        axis = _counts(category.people for category in shown)
        strips = [
            Strip(
                _html("name", category.label),
                [Mark("bar", 0, category.people, "count", f"{category.label}: {category.people:,}")],
                (f"{category.people:,}", percent(category.people / spread.known if spread.known else None)),
            )
            for category in shown
        ]
        caption = f"{title} of the {spread.known:,} people in the set of whom any is known"
        heads = (head, "People", "people", "share")
        chart = strip_table(strips, axis, caption=caption, heads=heads, tick=axis.plain, class_="stacked")
        body = _html("spread", chart, spread.categories[len(shown) :], tables[name])
        yield Section(name, title, title.split()[0], (body,), (name,))


def _birth_chart(name: str, births: Births) -> Markup | None:
    """The histogram of the years of birth; None if no two people are in one bin."""
    if max(span.people for span in births.spans) < 2:
        return None
    first, last, width = births.spans[0].start, births.spans[-1].start, births.spans[0].years
    every = max(1, round((last + width - first) / width / 7))  # bins per tick, for about eight ticks
    x = Axis(first, last + width, tuple(range(first, last + width + 1, every * width)))
    y = _counts(span.people for span in births.spans)
    return _html("birth_chart", births.spans, x, y, _GAP, _year, _births_text(name, births))


def _year(year: float) -> str:
    """A year as text: Wikidata's -43 is 44 BC."""
    return str(int(year)) if year > 0 else f"{1 - int(year)} BC"


def _births_text(name: str, births: Births) -> str:
    if births.earliest is None or births.latest is None or births.median is None:
        return f"{name}: no year is known"
    return (
        f"{name}: {births.known:,} of {count(births.people, 'year')} known, from {_year(births.earliest)} to"
        f" {_year(births.latest)}; the median is {_year(round(births.median))}."
    )


# The tables of a set: yields by language and type, words, reasons, and the diversity of its people.


_DASH = "–"


def _rows(summary: Summary) -> list[tuple[str, LanguageSummary]]:
    rows = [(language_with_tag(tag), part) for tag, part in summary.languages.items()]
    return rows if len(rows) == 1 else [*rows, ("all", summary.total)]


def _of_languages(summary: Summary) -> Iterator[tuple[str, Table]]:
    """Outcomes of pages and sentences, words of the pairs (HalluVerse25, Table 2), and reasons for leaving out."""
    heads = (
        "language", "pages", "used", "facts wanted", "facts", "pairs",
        *(f"{type_}, of those drawn" for type_ in summary.total.types), "balance", "people",
    )  # fmt: skip
    yields, words = [], []
    for name, part in _rows(summary):
        used = part.pages - sum(part.unfit.values())
        counts = (part.pages, used, part.asked, part.facts, part.pairs)
        types = (f"{each.taken:,} of {each.asked:,}" for each in part.types.values())
        yields.append((name, *(f"{n:,}" for n in counts), *types, number(part.balance, 3), f"{part.people:,}"))
        sums = (part.words_original, part.words_edited)
        means = (number(n / part.pairs if part.pairs else None, 2) for n in sums)
        words.append((name, *(f"{n:,}" for n in (part.pairs, *sums)), *means))
    yield "yield", Table("Yield", heads, yields)
    heads = ("language", "pairs", "words, original", "words, edited", "a sentence, original", "a sentence, edited")
    yield "words", Table("Words", heads, words)
    tags = list(summary.languages)
    by_reason: dict[tuple[str, str], dict[str, int]] = {}
    for language, part in summary.languages.items():
        for what, reasons in _reasons(part):
            for reason, times in reasons.items():
                by_reason.setdefault((what, reason), {})[language] = times
    rows = [
        (what, reason, *(f"{counts.get(tag, 0):,}" for tag in tags)) for (what, reason), counts in by_reason.items()
    ]
    yield "reasons", Table("Not taken, by reason", ("what", "reason", *tags), rows)


def _reasons(part: LanguageSummary) -> Iterator[tuple[str, dict[str, int]]]:
    yield "page", part.unfit
    yield "fact", part.fact_reasons
    yield "sentence", part.sentence_reasons
    for type_, each in part.types.items():
        yield f"{type_} error", each.reasons


def _groups(summary: Summary) -> dict[str, Diversity]:
    """The groups of people in the report, by name."""
    given = {"people given": summary.given} if summary.given is not None else {}
    by_language = {language_with_tag(tag): group for tag, group in summary.by_language.items()}
    return {**given, "in the set": summary.set, **(by_language if len(by_language) > 1 else {})}


def _of_people(groups: dict[str, Diversity]) -> Iterator[tuple[str, Table]]:
    """Diversity of each group of people, and the people of every category in each group."""
    heads = (
        "people", "number", "of", "known of", "categories", "entropy", "evenness", "effective number", "largest share",
    )  # fmt: skip
    rows = []
    for name, group in groups.items():
        for what, spread in (("profession", group.professions), ("citizenship", group.countries)):
            rows.append((name, f"{group.people:,}", what, *_figures(spread)))
        births = group.births
        rows.append(
            (
                name, f"{group.people:,}", "year of birth", percent(births.coverage),
                f"{sum(span.people > 0 for span in births.spans):,} of {len(births.spans):,}", _DASH,
                number(births.evenness, 3), _DASH,
                _DASH if births.earliest is None or births.latest is None
                else f"{_year(births.earliest)} to {_year(births.latest)}",
            )
        )  # fmt: skip
    yield "diversity", Table("Diversity in figures", heads, rows)
    for name, which, title, _ in _SPREADS:
        spreads: dict[str, Spread] = {group: getattr(of_group, which) for group, of_group in groups.items()}
        people = {group: {item.item: item.people for item in spread.categories} for group, spread in spreads.items()}
        widest = spreads.get("people given") or spreads["in the set"]
        shown = [
            (item.label, item.item, *(f"{people[group].get(item.item, 0):,}" for group in groups))
            for item in widest.categories
        ]
        yield name, Table(title, ("name", "item", *groups), shown)


def _figures(spread: Spread) -> tuple[str, ...]:
    return (
        percent(spread.coverage),
        f"{len(spread.categories):,}",
        f"{spread.entropy:.2f}",
        number(spread.evenness, 3),
        f"{spread.effective:.1f}",
        percent(spread.largest),
    )
