"""The colour of each span type; the table is a data file in this folder.

A slot is a colour with its shades: `ink` (text on the page), `tint` (background of text, at full confidence) for
light and dark pages, a background for terminals and the nearest of the 16 ANSI names. Types of the built-in taxonomies
have fixed slots. Any other type gets one of the spare slots by a hash of its name, so its colour is the same in every
run.

The heat scale goes from low to high in equal steps of lightness, so that it is also readable in greyscale.
"""

from __future__ import annotations

from functools import cache
from zlib import crc32

from veriglot.plugins import read_package_data
from veriglot.records.settings import Record

__all__ = ["UNTYPED", "palette", "slot_of"]

UNTYPED = "unsupported"
"""The name of spans without a type in the views."""


class _Shades(Record):
    ink: str
    tint: str


class _TerminalShades(Record):
    background: str
    ansi: str


class _Slot(Record):
    light: _Shades
    dark: _Shades
    terminal: _TerminalShades


class _Palette(Record):
    pages: dict[str, dict[str, str]]
    heat: dict[str, tuple[_Shades, ...]]
    slots: dict[str, _Slot]
    types: dict[str, str]
    untyped: str
    spare: tuple[str, ...]


@cache
def palette() -> _Palette:
    """The built-in palette."""
    return read_package_data(__package__, "palette.json", _Palette)


def slot_of(type_: str | None) -> str:
    """The name of the slot for a span type (None: a span without a type). The same type always has the same slot."""
    table = palette()
    if type_ is None:
        return table.untyped
    name = type_.strip().casefold()
    if name in table.types:
        return table.types[name]
    return table.spare[crc32(name.encode("utf-8", "surrogatepass")) % len(table.spare)]
