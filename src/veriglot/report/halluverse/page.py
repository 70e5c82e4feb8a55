"""A set as one HTML file that needs nothing beside it and asks the network for nothing."""

from __future__ import annotations

from html import escape
from string import Template
from typing import TYPE_CHECKING

from veriglot.report.assembly import colours, head, in_one_scope, opened, part
from veriglot.report.bench.cells import plain_table
from veriglot.report.checking.view import plural
from veriglot.report.direction import direction
from veriglot.report.halluverse.charts import Bar, bar_table, birth_chart, spread_chart, year_name
from veriglot.report.halluverse.tables import (
    diversity_grid,
    groups_of,
    language_name,
    reason_grid,
    spread_grid,
    word_grid,
    yield_grid,
)
from veriglot.report.page_data import script_safe
from veriglot.report.palette import slot_of
from veriglot.report.study.delimited import csv_text
from veriglot.report.study.grids import scrolled
from veriglot.report.study.markup import Markup, bdi, joined, tag
from veriglot.report.study.sections import Section, folded, framed, note
from veriglot.report.study.tables import Table

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.build.diversity import Births, Diversity
    from veriglot.build.halluverse import Example, Summary

__all__ = ["write_set"]

_SHARED, _OWN = "study/parts", "bench/parts"
_SCRIPTS = ((_SHARED, "tables.js"), (_OWN, "sort.js"), (_SHARED, "page.js"))
_STYLES = (
    (_SHARED, "page.css"), (_SHARED, "tables.css"), (_SHARED, "charts.css"), (_OWN, "bench.css"),
    ("halluverse", "set.css"), (_SHARED, "narrow.css"), (_SHARED, "print.css"),
)  # fmt: skip


def write_set(summary: Summary, name: str, path: str | Path) -> None:
    """Write what came of a set as one self-contained page; the same summary gives the same bytes.

    Args:
        summary: of the set.
        name: of its file.
        path: of the page.

    Raises:
        OSError: the file cannot be written.
    """
    grids = {
        "yield": yield_grid(summary),
        "words": word_grid(summary),
        "reasons": reason_grid(summary),
        "diversity": diversity_grid(summary),
        "professions": spread_grid(summary, "professions", "Professions"),
        "citizenships": spread_grid(summary, "countries", "Countries of citizenship"),
    }
    tables = {key: Table(key, grid.title, grid.heads, grid.rows) for key, grid in grids.items()}
    sections = [
        _yields(summary, tables), _examples(summary), _diversity(summary, tables), *_spreads(summary, tables),
        _births(summary),
        Section("reasons", "Not taken", "Not taken", (plain_table(grids["reasons"]),), ("reasons",)),
    ]  # fmt: skip
    script = in_one_scope(_SCRIPTS)
    style = colours() + "\n".join(part(folder, file) for folder, file in _STYLES)
    saved = {key: {"csv": csv_text(table), "file": f"{key}.csv"} for key, table in tables.items()}
    navigation = [tag("a", section.short, href=f"#{section.name}") for section in sections]
    total = summary.total
    said = f"{total.pairs:,} pairs about {total.people:,} people in {plural(len(summary.languages), 'language')}"
    cost = f"{total.calls:,} calls, {total.tokens_in + total.tokens_out:,} tokens" if total.calls else "by rule"
    text = Template(part(_OWN, "page.html")).substitute(
        head=head(f"{name}: pairs", script, style),
        title=escape(name),
        subtitle=joined([tag("span", said), tag("span", cost)], " "),
        script=script,
        navigation=joined(navigation, "\n"),
        sections=joined([framed(section, tables) for section in sections], "\n"),
        data=script_safe({"tables": saved}),
    )
    with opened(path) as file:
        file.write(text)


def _yields(summary: Summary, tables: dict[str, Table]) -> Section:
    types = list(summary.total.types)
    bars = [
        Bar(
            language_name(tag_),
            [(one.types[type_].taken, slot_of(type_), type_) for type_ in types],
            (f"{one.pairs:,}", "–" if one.balance is None else f"{one.balance:.3f}"),
        )
        for tag_, one in summary.languages.items()
        if one.types
    ]
    key = tag(
        "ul", *(tag("li", tag("span", name, class_=f"chip slot-{slot_of(name)}")) for name in types), class_="key"
    )
    chart = bar_table(
        bars, caption="Pairs by language and type of error", heads=("Language", "Pairs", "pairs", "balance")
    )
    said = note(
        "Balance is the evenness of the pairs over the types, 1 where there are equally many of each. A type that is"
        " drawn more often than others passes less often."
    )
    body = (chart, key, said, _table(tables["yield"]), _table(tables["words"]))
    return Section("findings", "What came of it", "Yield", body, ("yield", "words"))


def _examples(summary: Summary) -> Section:
    rows = [
        tag(
            "tr",
            tag("th", language_name(one.language), scope="row"),
            tag("td", tag("span", one.type, class_=f"chip slot-{slot_of(one.type)}")),
            *(_text(text, one) for text in (one.original, one.edited)),
        )
        for one in summary.examples
    ]
    heads = tag("tr", *(tag("th", text, scope="col") for text in ("language", "type", "original", "edited")))
    table = tag("table", tag("caption", "Some pairs"), tag("thead", heads), tag("tbody", *rows), class_="plain pairs")
    return Section("pairs", "Some pairs", "Pairs", (scrolled(table, "Some pairs"),))


def _text(text: str, one: Example) -> Markup:
    return tag("td", text, lang=one.language, dir=direction(text, one.language))


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
        _table(tables["diversity"]),
    ]
    if unknown:
        body.insert(
            0, note(tag("b", f"Of {unknown:,} people in the set nothing is known: they are in no figure here."))
        )
    return Section("diversity", "Whom the pairs are about", "People", body, ("diversity",))


def _spreads(summary: Summary, tables: dict[str, Table]) -> list[Section]:
    found = []
    for name, which, title, head_ in (
        ("professions", "professions", "Professions", "Profession"),
        ("citizenships", "countries", "Countries of citizenship", "Country"),
    ):
        spread = getattr(summary.set, which)
        if not spread.categories:
            continue
        chart = spread_chart(spread, f"{title} of the {spread.known:,} people in the set of whom any is known", head_)
        body = (chart, folded("Every one of them, in each group", _table(tables[name])))
        found.append(Section(name, title, title.split()[0], body, (name,)))
    return found


def _births(summary: Summary) -> Section:
    panels = [_birth_panel(name, one) for name, one in groups_of(summary).items()]
    body = [panel for panel in panels if panel is not None] or [tag("p", "No year of birth is known.")]
    return Section("births", "Years of birth", "Births", body)


def _birth_panel(name: str, one: Diversity) -> Markup | None:
    told = _told(name, one.births)
    chart = birth_chart(one.births, told)
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


def _table(table: Table) -> Markup:
    from veriglot.report.bench.grids import Grid

    return plain_table(Grid(table.title, table.columns, tuple(tuple(map(str, row)) for row in table.rows)))
