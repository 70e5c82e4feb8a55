"""A set of HalluVerse25's kind as one HTML file: diversity of people, yields, words, reasons and examples."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from veriglot.report.charts import Axis, Strip, axis_for, strip_table
from veriglot.report.html import Child, bdi, folded, joined, macro, note, scrolled, tag
from veriglot.report.pages import Section, write_report
from veriglot.report.palette import slot_of
from veriglot.report.tables import Table
from veriglot.report.text_layout import count, direction, language_with_tag

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from markupsafe import Markup

    from veriglot.datasets.halluverse.summary import Births, Diversity, Example, LanguageSummary, Spread, Summary

__all__ = ["write_set"]


# Bars: of counts by type and category as rows of a table, of years of birth as a histogram.


_SHOWN = 20  # categories; those that are rarer are one bar
_GAP = 0.12  # of a span of years, between two bars


class Bar(NamedTuple):
    """A bar: what it is of, its parts one after the other (length and colour slot), and figures beside it."""

    label: Child
    parts: Sequence[tuple[float, str | None, str]]
    figures: Sequence[Child]


def bar_table(bars: Sequence[Bar], *, caption: Child, heads: Sequence[str]) -> Markup:
    """Bars on one axis from zero, each with its figures.

    Args:
        bars: the rows.
        caption: what they show.
        heads: of the labels, the bars and each column of figures.
    """
    axis = axis_for([sum(length for length, _, _ in bar.parts) for bar in bars])
    strips = [Strip(joined([bar.label]), _parts(bar, axis), bar.figures) for bar in bars]
    return strip_table(strips, axis, caption=caption, heads=heads, tick=axis.plain, class_="stacked")


def _parts(bar: Bar, axis: Axis) -> Markup:
    drawn, start = [], 0.0
    for length, slot, name in bar.parts:
        if length:
            drawn.append(
                tag(
                    "rect",
                    tag("title", f"{name}: {length:,.10g}"),
                    x=axis.at(start),
                    width=axis.length(start, start + length),
                    y="18%",
                    height="64%",
                    class_=f"bar-part slot-{slot}" if slot else "bar-part count",
                )
            )
        start += length
    return joined(drawn)


def spread_chart(spread: Spread, caption: str, head: str) -> Markup:
    """The people of each category; those that are rarest are together in the last bar."""
    shown = spread.categories[: _SHOWN + 1 if len(spread.categories) == _SHOWN + 1 else _SHOWN]
    bars = [
        Bar(
            bdi(category.label),
            [(category.people, None, category.label)],
            (f"{category.people:,}", _share(category.people, spread.known)),
        )
        for category in shown
    ]
    rest = spread.categories[len(shown) :]
    chart = bar_table(bars, caption=caption, heads=(head, "People", "people", "share"))
    if not rest:
        return chart
    most = max(category.people for category in rest)
    remainder = (
        f"{len(rest):,} more, with {most:,} {'person' if most == 1 else 'people'} at the most, stand in the table."
    )
    return joined([chart, tag("p", remainder, class_="note")])


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "–"


def year_name(year: int) -> str:
    """A year as people write it: Wikidata's -43 is 44 BC."""
    return str(year) if year > 0 else f"{1 - year} BC"


def birth_chart(births: Births, told: str) -> Markup | None:
    """The histogram of the years of birth; None where none is known."""
    if not births.spans:
        return None
    first, last, width = births.spans[0].start, births.spans[-1].start, births.spans[0].years
    x = Axis(first, last + width, tuple(_ticks(first, last + width, width)))
    y = axis_for([span.people for span in births.spans], count=4)
    y = Axis(y.low, y.high, tuple(tick for tick in y.ticks if tick == int(tick)))
    drawn = [
        tag(
            "rect",
            tag("title", f"{year_name(span.start)} to {year_name(span.start + span.years - 1)}: {span.people:,}"),
            x=x.at(span.start + _GAP / 2 * span.years),
            width=x.length(span.start, span.start + (1 - _GAP) * span.years),
            y=y.at(span.people, upwards=True),
            height=y.length(0, span.people),
            class_="bar-part count",
        )
        for span in births.spans
        if span.people
    ]
    x_name = f"Year of birth, by {width} years"
    return macro("plot")(x, y, x_name, "People", _year_tick, y.plain, told, joined(drawn), "births", x_lines=False)


def _year_tick(year: float) -> str:
    return year_name(int(year))


def _ticks(low: int, high: int, width: int) -> range:
    """Borders of spans, at most about eight of them."""
    every = max(1, round((high - low) / width / 7))
    return range(low, high + 1, every * width)


# The tables of a set: yields by language and type, words, reasons, and how diverse its people are.


_DASH = "–"


def _rows(summary: Summary) -> list[tuple[str, LanguageSummary]]:
    rows = [(language_with_tag(tag), part) for tag, part in summary.languages.items()]
    return rows if len(rows) == 1 else [*rows, ("all", summary.total)]


def yield_grid(summary: Summary) -> Table:
    """What became of pages and sentences."""
    heads = (
        "language", "pages", "used", "facts wanted", "facts", "pairs",
        *(f"{type_}, of those drawn" for type_ in summary.total.types), "balance", "people",
    )  # fmt: skip
    rows = []
    for name, part in _rows(summary):
        used = part.pages - sum(part.unfit.values())
        counts = (part.pages, used, part.asked, part.facts, part.pairs)
        types = (f"{each.taken:,} of {each.asked:,}" for each in part.types.values())
        rows.append((name, *(f"{n:,}" for n in counts), *types, _number(part.balance, 3), f"{part.people:,}"))
    return Table("", "Yield", heads, tuple(rows))


def word_grid(summary: Summary) -> Table:
    """Words of the pairs (HalluVerse25, Table 2)."""
    rows = tuple(
        (
            name,
            f"{part.pairs:,}",
            f"{part.words_original:,}",
            f"{part.words_edited:,}",
            *(
                _number(total / part.pairs if part.pairs else None)
                for total in (part.words_original, part.words_edited)
            ),
        )
        for name, part in _rows(summary)
    )
    heads = ("language", "pairs", "words, original", "words, edited", "a sentence, original", "a sentence, edited")
    return Table("", "Words", heads, rows)


def reason_grid(summary: Summary) -> Table:
    """Everything that was not taken, by reason and language."""
    tags = list(summary.languages)
    by_reason: dict[tuple[str, str], dict[str, int]] = {}
    for language, part in summary.languages.items():
        for what, reasons in _reasons(part):
            for reason, number in reasons.items():
                by_reason.setdefault((what, reason), {})[language] = number
    rows = tuple(
        (what, reason, *(f"{counts.get(tag, 0):,}" for tag in tags)) for (what, reason), counts in by_reason.items()
    )
    return Table("", "Not taken, by reason", ("what", "reason", *tags), rows)


def _reasons(part: LanguageSummary) -> Iterator[tuple[str, dict[str, int]]]:
    yield "page", part.unfit
    yield "fact", part.fact_reasons
    yield "sentence", part.sentence_reasons
    for type_, each in part.types.items():
        yield f"{type_} error", each.reasons


def groups_of(summary: Summary) -> dict[str, Diversity]:
    """The groups of people that are described, by name."""
    given = {"people given": summary.given} if summary.given is not None else {}
    by_language = {language_with_tag(tag): group for tag, group in summary.by_language.items()}
    return {**given, "in the set": summary.set, **(by_language if len(by_language) > 1 else {})}


def diversity_grid(summary: Summary) -> Table:
    """How diverse each group of people is, in figures."""
    heads = (
        "people", "number", "of", "known of", "categories", "entropy", "evenness", "effective number", "largest share",
    )  # fmt: skip
    rows = []
    for name, group in groups_of(summary).items():
        for what, spread in (("profession", group.professions), ("citizenship", group.countries)):
            rows.append((name, f"{group.people:,}", what, *_figures(spread)))
        births = group.births
        rows.append(
            (
                name, f"{group.people:,}", "year of birth", _percent(births.coverage),
                f"{sum(span.people > 0 for span in births.spans):,} of {len(births.spans):,}", _DASH,
                _number(births.evenness, 3), _DASH,
                _DASH if births.earliest is None or births.latest is None
                else f"{year_name(births.earliest)} to {year_name(births.latest)}",
            )
        )  # fmt: skip
    return Table("", "Diversity in figures", heads, tuple(rows))


def _figures(spread: Spread) -> tuple[str, ...]:
    return (
        _percent(spread.coverage),
        f"{len(spread.categories):,}",
        f"{spread.entropy:.2f}",
        _number(spread.evenness, 3),
        f"{spread.effective:.1f}",
        _percent(spread.largest),
    )


def spread_grid(summary: Summary, which: str, title: str) -> Table:
    """The people of every category, in each group.

    Args:
        summary: the set.
        which: `professions` or `countries`.
        title: of the table.
    """
    groups = {name: getattr(item, which) for name, item in groups_of(summary).items()}
    counts = {name: {item.item: item.people for item in spread.categories} for name, spread in groups.items()}
    widest: Spread = groups.get("people given") or groups["in the set"]
    rows = tuple(
        (item.label, item.item, *(f"{counts[name].get(item.item, 0):,}" for name in groups))
        for item in widest.categories
    )
    return Table("", title, ("name", "item", *groups), rows)


def _percent(share: float | None) -> str:
    return _DASH if share is None else f"{100 * share:.1f}%"


def _number(value: float | None, digits: int = 2) -> str:
    return _DASH if value is None else f"{value:.{digits}f}"


def write_set(summary: Summary, name: str, path: str | Path) -> None:
    """Write what came of a set as one self-contained page; the same summary gives the same bytes.

    Args:
        summary: of the set.
        name: of its file.
        path: of the page.

    Raises:
        OSError: the file cannot be written.
    """
    tables = {
        "yield": yield_grid(summary),
        "words": word_grid(summary),
        "reasons": reason_grid(summary),
        "diversity": diversity_grid(summary),
        "professions": spread_grid(summary, "professions", "Professions"),
        "citizenships": spread_grid(summary, "countries", "Countries of citizenship"),
    }
    sections = [
        _yields(summary, tables), _examples(summary), _diversity(summary, tables), *_spreads(summary, tables),
        _births(summary),
        Section("reasons", "Not taken", "Not taken", (tables["reasons"].to_html(),), ("reasons",)),
    ]  # fmt: skip
    total = summary.total
    cost = f"{total.calls:,} calls, {total.tokens_in + total.tokens_out:,} tokens" if total.calls else "by rule"
    write_report(
        path,
        title=f"{name}: pairs",
        subtitle=(
            f"{count(total.pairs, 'pair')} about {count(total.people, 'person', 'people')} in"
            f" {count(len(summary.languages), 'language')}",
            cost,
        ),
        sections=sections,
        tables=tables,
    )


def _yields(summary: Summary, tables: dict[str, Table]) -> Section:
    types = list(summary.total.types)
    bars = [
        Bar(
            language_with_tag(tag_),
            [(part.types[type_].taken, slot_of(type_), type_) for type_ in types],
            (f"{part.pairs:,}", "–" if part.balance is None else f"{part.balance:.3f}"),
        )
        for tag_, part in summary.languages.items()
        if part.types
    ]
    key = tag(
        "ul", *(tag("li", tag("span", name, class_=f"chip slot-{slot_of(name)}")) for name in types), class_="key"
    )
    chart = bar_table(
        bars, caption="Pairs by language and type of error", heads=("Language", "Pairs", "pairs", "balance")
    )
    balance_note = note(
        "Balance is the evenness of the pairs over the types, 1 where there are equally many of each. A type that is"
        " drawn more often than others passes less often."
    )
    body = (chart, key, balance_note, tables["yield"].to_html(), tables["words"].to_html())
    return Section("findings", "What came of it", "Yield", body, ("yield", "words"))


def _examples(summary: Summary) -> Section:
    rows = [
        tag(
            "tr",
            tag("th", language_with_tag(example.language), scope="row"),
            tag("td", tag("span", example.type, class_=f"chip slot-{slot_of(example.type)}")),
            *(_text(text, example) for text in (example.original, example.edited)),
        )
        for example in summary.examples
    ]
    heads = tag("tr", *(tag("th", text, scope="col") for text in ("language", "type", "original", "edited")))
    table = tag("table", tag("caption", "Some pairs"), tag("thead", heads), tag("tbody", *rows), class_="plain pairs")
    return Section("pairs", "Some pairs", "Pairs", (scrolled(table, "Some pairs"),))


def _text(text: str, example: Example) -> Markup:
    return tag("td", text, lang=example.language, dir=direction(text, example.language))


def _diversity(summary: Summary, tables: dict[str, Table]) -> Section:
    unknown = summary.unknown
    body = [
        note(
            "Who has several professions or citizenships counts with equal parts for each in the entropy (Shannon's, in"
            " nats), the evenness (Pielou's: the entropy over the greatest that so many categories can have) and the"
            " effective number (how many equal categories have that entropy). The largest share is that of the"
            " heaviest category; of years of birth the table has the spans of the histogram with anybody in them, and"
            " the first and last year."
        ),
        tables["diversity"].to_html(),
    ]
    if unknown:
        body.insert(
            0, note(tag("b", f"Of {unknown:,} people in the set nothing is known: they are in no figure here."))
        )
    return Section("diversity", "Whom the pairs are about", "People", body, ("diversity",))


def _spreads(summary: Summary, tables: dict[str, Table]) -> list[Section]:
    sections = []
    for name, which, title, head_ in (
        ("professions", "professions", "Professions", "Profession"),
        ("citizenships", "countries", "Countries of citizenship", "Country"),
    ):
        spread = getattr(summary.set, which)
        if not spread.categories:
            continue
        chart = spread_chart(spread, f"{title} of the {spread.known:,} people in the set of whom any is known", head_)
        body = (chart, folded("Every one of them, in each group", tables[name].to_html()))
        sections.append(Section(name, title, title.split()[0], body, (name,)))
    return sections


def _births(summary: Summary) -> Section:
    panels = [_birth_panel(name, group) for name, group in groups_of(summary).items()]
    body = [panel for panel in panels if panel is not None] or [tag("p", "No year of birth is known.")]
    return Section("births", "Years of birth", "Births", body)


def _birth_panel(name: str, group: Diversity) -> Markup | None:
    told = _told(name, group.births)
    chart = birth_chart(group.births, told)
    return (
        None
        if chart is None
        else tag("div", tag("h3", bdi(name[0].upper() + name[1:])), chart, tag("p", told, class_="note"))
    )


def _told(name: str, births: Births) -> str:
    if births.earliest is None or births.latest is None or births.median is None:
        return f"{name}: no year is known"
    return (
        f"{name}: {births.known:,} of {births.people:,} years are known, from {year_name(births.earliest)} to"
        f" {year_name(births.latest)}, half of them before {year_name(round(births.median))}."
    )
