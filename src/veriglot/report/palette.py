"""The colour of each span type; the table is the data file beside this one.

A slot is a colour with its shades: `ink` (text on the page), `tint` (background behind text, at full confidence) for
light and dark pages, a background for terminals and the nearest of the 16 ANSI names. Types of the shipped taxonomies
have fixed slots. Any other type gets one of the spare slots from a hash of its name, so that it keeps its colour from
run to run.

The heat scale goes from little to much in equal steps of lightness, so that it reads in grey too.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from zlib import crc32

import msgspec

__all__ = ["UNTYPED", "palette", "palette_css", "slot_of"]

UNTYPED = "unsupported"
"""What a span without a type is called in the views."""


class _Shades(msgspec.Struct, frozen=True):
    ink: str
    tint: str


class _TerminalShades(msgspec.Struct, frozen=True):
    background: str
    ansi: str


class _Slot(msgspec.Struct, frozen=True):
    light: _Shades
    dark: _Shades
    terminal: _TerminalShades


class _Palette(msgspec.Struct, frozen=True):
    pages: dict[str, dict[str, str]]
    heat: dict[str, tuple[_Shades, ...]]
    slots: dict[str, _Slot]
    types: dict[str, str]
    untyped: str
    spare: tuple[str, ...]


@cache
def palette() -> _Palette:
    """The shipped palette."""
    return msgspec.json.decode(files(__package__).joinpath("palette.json").read_bytes(), type=_Palette)


def slot_of(type_: str | None) -> str:
    """The name of the slot for a span type (None: a span without a type). The same type always has the same slot."""
    table = palette()
    if type_ is None:
        return table.untyped
    name = type_.strip().casefold()
    if name in table.types:
        return table.types[name]
    return table.spare[crc32(name.encode("utf-8", "surrogatepass")) % len(table.spare)]


@cache
def palette_css() -> str:
    """The palette as custom properties, for light and dark pages; paper is light.

    A class `slot-NAME` sets `--ink` and `--tint` to the shades of a slot, `heat-N` to those of a step of heat.
    """
    light, dark = (_properties(kind) for kind in ("light", "dark"))
    steps = range(len(palette().heat["light"]))
    classes = {f"slot-{name}": name for name in palette().slots} | {f"heat-{step}": f"heat-{step}" for step in steps}
    rules = "\n".join(
        f".{class_} {{ --ink: var(--{name}-ink); --tint: var(--{name}-tint); }}" for class_, name in classes.items()
    )
    return (
        f":root {{ {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme='light']) {{ {dark} }} }}\n"
        f"@media screen {{ :root[data-theme='dark'] {{ {dark} }} }}\n{rules}\n"
    )


def _properties(kind: str) -> str:
    table = palette()
    shades = {name: slot.light if kind == "light" else slot.dark for name, slot in table.slots.items()}
    shades |= {f"heat-{step}": step_shades for step, step_shades in enumerate(table.heat[kind])}
    values = {f"page-{use}": colour for use, colour in table.pages[kind].items()}
    for name, pair in shades.items():
        values |= {f"{name}-ink": pair.ink, f"{name}-tint": pair.tint}
    return " ".join(f"--{key}: {value};" for key, value in values.items()) + f" color-scheme: {kind};"
