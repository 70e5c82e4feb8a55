"""HTML made of Python: everything is text unless it is markup, so no text of a study can become an element."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from veriglot.report.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Child", "Markup", "bdi", "hidden", "joined", "tag"]


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | None
"""What stands inside an element: markup as it is, any other text escaped, None left out."""

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


def tag(element: str, /, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """An element.

    Attributes are written with `_` for `-`; a trailing `_` is taken off (`class_`, `for_`). None and False leave an
    attribute out, True gives it no value.
    """
    parts = [element]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.removesuffix("_").replace("_", "-")
        parts.append(key if value is True else f'{key}="{_attribute(value)}"')
    head = f"<{' '.join(parts)}>"
    return Markup(head if element in _VOID else f"{head}{joined(children)}</{element}>")


def joined(children: Iterable[Child], separator: str = "") -> Markup:
    """Children one after the other."""
    return Markup(escape(separator).join(_inner(child) for child in children if child is not None))


def bdi(text: str, **attributes: str | float | bool | None) -> Markup:
    """A name from elsewhere, whose direction does not reach what stands around it."""
    return tag("bdi", text, **attributes)


def hidden(text: str) -> Markup:
    """Text for screen readers only."""
    return tag("span", text, class_="unseen")


def _inner(child: str) -> str:
    return child if isinstance(child, Markup) else escape(printable(child), quote=False)


def _attribute(value: str | float) -> str:
    if isinstance(value, float):
        return f"{value:.5g}"
    return escape(printable(str(value)), quote=True)
