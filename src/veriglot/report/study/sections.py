"""The frame of a part of the page: heading, explanation, and the tables of it that can be saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from veriglot.report.study.figures import csv_button
from veriglot.report.study.markup import Child, Markup, tag

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from veriglot.report.study.tables import Table

__all__ = ["Section", "folded", "framed", "note"]


class Section(NamedTuple):
    """A part of the page.

    Attributes:
        name: its id in the page's address.
        title: its heading.
        short: its name in the navigation.
        body: what stands under the heading.
        tables: names of the tables that can be saved from it.
    """

    name: str
    title: str
    short: str
    body: Sequence[Markup]
    tables: Sequence[str] = ()


def framed(section: Section, tables: Mapping[str, Table]) -> Markup:
    """A section as an element, with a button for each of its tables."""
    buttons = [csv_button(name, tables[name].title) for name in section.tables if name in tables]
    head = tag(
        "div",
        tag("h2", section.title, id=f"{section.name}-title"),
        tag("div", *buttons, class_="saves") if buttons else None,
        class_="section-head",
    )
    return tag("section", head, *section.body, id=section.name, aria_labelledby=f"{section.name}-title")


def note(*children: Child) -> Markup:
    """A paragraph that says how to read what follows."""
    return tag("p", *children, class_="note")


def folded(summary: Child, *children: Child, opened: bool = False) -> Markup:
    """Something to unfold."""
    return tag("details", tag("summary", summary), *children, open=opened)
