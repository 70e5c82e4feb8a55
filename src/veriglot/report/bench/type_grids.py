"""Confusion matrices of types: as text, as small grids of heat, and as rows to save."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.report.bench.cells import plain_table, shade
from veriglot.report.bench.grids import Grid
from veriglot.report.bench.view import ALL, SEEN
from veriglot.report.study.grids import scrolled
from veriglot.report.study.markup import tag
from veriglot.report.study.sections import Section, folded, note
from veriglot.report.study.tables import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.bench.results import BenchConfusion
    from veriglot.report.bench.view import View
    from veriglot.report.study.markup import Markup
    from veriglot.report.study.tables import Value

__all__ = ["HOW_TO_READ", "type_grid", "type_section", "type_summary", "type_table", "typed", "untyped_grid"]

HOW_TO_READ = (
    "Rows are the types of the labels, columns what the detector called them, at its own threshold: of whole responses"
    " where each has one type, else of each mark of the labels, by most of the characters that the detector marks in"
    " it. The column `none` is what it did not mark, `other type` what it marked as nothing that the labels have a type"
    " for. Shares are of the row."
)


def typed(view: View) -> list[BenchConfusion]:
    """The matrices of all languages together."""
    return [one for one in view.confusions if one.language == ALL and one.counts]


def untyped_grid(view: View) -> Grid:
    """Detectors whose types cannot be held against the data's, and why; those with one reason in one row."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for one in view.confusions:
        if not one.counts:
            found.setdefault((one.data, one.reason or ""), {})[one.system] = None
    rows = tuple((", ".join(systems), *key) for key, systems in found.items())
    return Grid("Types not compared, and why", ("systems", "data", "why"), rows)


def type_grid(found: BenchConfusion) -> Grid:
    """One matrix as text: how many, and which share of the row."""
    rows = tuple(
        (name, *(_counted(count, sum(row)) for count in row), f"{sum(row):,}")
        for name, row in zip(found.classes, found.counts, strict=True)
    )
    return Grid(_title(found), ("label", *found.answers, "all"), rows)


def _counted(count: int, whole: int) -> str:
    return f"{count:,} ({100 * count / whole:.0f}%)" if whole else "–"


def _title(found: BenchConfusion) -> str:
    seen = SEEN if found.seen else ""
    return f"{found.system} on {found.data}{seen}, types of {found.of}s ({found.taxonomy})"


def type_summary(found: BenchConfusion) -> str:
    """How many are right, and what to know."""
    right = sum(row[place] for place, row in enumerate(found.counts))
    whole = sum(map(sum, found.counts))
    share = f" ({100 * right / whole:.1f}%)" if whole else ""
    left_out = f", {found.left_out:,} left out for want of one type" if found.left_out else ""
    words = f"{right:,} of {whole:,} are called what they are{share}{left_out}"
    return f"{words}; {found.reason}." if found.reason else f"{words}."


def type_section(view: View) -> Iterator[Section]:
    """The part of the page; nothing where no data has types."""
    if not view.confusions:
        return
    body: list[Markup] = [note(HOW_TO_READ)]
    by_data: dict[str, list[BenchConfusion]] = {}
    for one in typed(view):
        by_data.setdefault(one.data, []).append(one)
    for data, matrices in by_data.items():
        grids = [part for one in matrices for part in (_heat(one), note(type_summary(one)))]
        body.append(
            folded(f"{data}: {len(matrices)} detector{'s' * (len(matrices) > 1)}", *grids, opened=len(by_data) == 1)
        )
    missing = untyped_grid(view)
    if missing.rows:
        body.append(plain_table(missing))
    yield Section("types", "Which types are taken for which", "Types", body, ("type_confusions",))


def _heat(found: BenchConfusion) -> Markup:
    head = tag("tr", *(tag("th", text, scope="col") for text in ("label", *found.answers, "all")))
    lines = [
        tag("tr", tag("th", name, scope="row"), *_cells(found, place), tag("td", f"{sum(row):,}", class_="number"))
        for place, (name, row) in enumerate(zip(found.classes, found.counts, strict=True))
    ]
    title = _title(found)
    table = tag("table", tag("caption", title), tag("thead", head), tag("tbody", *lines), class_="plain board types")
    return scrolled(table, title)


def _cells(found: BenchConfusion, place: int) -> Iterator[Markup]:
    row = found.counts[place]
    whole = sum(row)
    for column, count in enumerate(row):
        share = count / whole if whole else 0.0
        right = " right" if column == place else ""
        yield tag(
            "td",
            tag("b", f"{count:,}"),
            tag("span", f"{100 * share:.0f}%" if whole else "–", class_="interval"),
            class_=f"heat-cell {shade(share)}{right}",
            title=f"{found.classes[place]} called {found.answers[column]}",
        )


def type_table(view: View) -> Table:
    """Every matrix, by language too, a row a cell; a row without counts says why there are none."""
    columns = (
        "system", "data", "language", "of", "taxonomy", "type", "answer", "count", "share", "left_out", "seen",
        "reason", "signature",
    )  # fmt: skip
    rows = tuple(row for one in view.confusions for row in _rows(one))
    return Table("type_confusions", "Which types are taken for which", columns, rows)


def _rows(one: BenchConfusion) -> Iterator[tuple[Value, ...]]:
    first: tuple[Value, ...] = (one.system, one.data, one.language, one.of, one.taxonomy)
    last: Sequence[Value] = (one.left_out, one.seen, one.reason, one.signature)
    if not one.counts:
        yield (*first, None, None, None, None, *last)
    for name, row in zip(one.classes, one.counts, strict=True):
        for answer, count in zip(one.answers, row, strict=True):
            yield (*first, name, answer, count, count / sum(row) if sum(row) else None, *last)
