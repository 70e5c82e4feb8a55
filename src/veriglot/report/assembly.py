"""What every self-contained page is made of: its parts, its colours, its policy, and a file that appears when whole."""

from __future__ import annotations

import base64
import hashlib
import sys
from contextlib import contextmanager
from functools import cache
from html import escape
from importlib.resources import files
from io import TextIOWrapper
from pathlib import Path
from string import Template
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, TextIO

from veriglot.report.palette import palette
from veriglot.report.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["colours", "head", "in_one_scope", "opened", "part", "policy", "scoped"]


@contextmanager
def opened(path: str | Path) -> Iterator[TextIO]:
    """A text file to write a page into; it appears under its name once it is whole. `-` is standard output.

    Raises:
        OSError: the file cannot be written.
    """
    if str(path) == "-":
        yield from _standard_output()
        return
    path = Path(path)
    with NamedTemporaryFile(
        "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        unfinished = Path(file.name)
        try:
            yield file.file  # type: ignore[misc]  # the wrapped text file
        except BaseException:
            file.close()
            unfinished.unlink()
            raise
    unfinished.chmod(0o644)  # a temporary file is private; a report is an ordinary file
    unfinished.replace(path)


def _standard_output() -> Iterator[TextIO]:
    """Standard output as UTF-8 whatever the locale says: the page declares that it is UTF-8."""
    if not hasattr(sys.stdout, "buffer"):  # redirected to a text in memory
        yield sys.stdout
        return
    sys.stdout.flush()
    file = TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="\n", write_through=True)
    try:
        yield file
    finally:
        file.detach()


def part(folder: str, name: str) -> str:
    """The text of a data file of a page, such as `part("page", "layout.css")`."""
    return files("veriglot.report").joinpath(folder, name).read_text("utf-8")


def scoped(folder: str, names: Sequence[str]) -> str:
    """Script files of one folder as one; see `in_one_scope`."""
    return in_one_scope([(folder, name) for name in names])


def in_one_scope(places: Sequence[tuple[str, str]]) -> str:
    """Script files (folder, name) as one, in one function scope, so that nothing of the page is global."""
    parts = "\n".join(part(folder, name) for folder, name in places)
    return f'(function () {{\n"use strict";\n{parts}\n}})();'


def head(title: str, script: str, style: str) -> str:
    """The head of a page: its title, its style, and the policy that lets this script and this style alone run.

    Args:
        title: plain text.
        script: the only script of the page.
        style: the only style.
    """
    return (
        Template(part("page", "head.html"))
        .substitute(title=escape(printable(title)), policy=policy(script, style), style=style)
        .rstrip("\n")
    )


def policy(script: str, style: str) -> str:
    """A content security policy that allows exactly one script and one style, by hash, and no request of any kind."""
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def colours() -> str:
    """The palette as custom properties, for light and dark pages; paper is light.

    A class `slot-NAME` sets `--ink` and `--tint` to the shades of a slot, `heat-N` to those of a step of heat.
    """
    light, dark = (_properties(kind) for kind in ("light", "dark"))
    names = [*palette().slots, *(f"heat-{step}" for step in range(len(palette().heat["light"])))]
    classes = "\n".join(
        f".{name if name.startswith('heat-') else f'slot-{name}'} "
        f"{{ --ink: var(--{name}-ink); --tint: var(--{name}-tint); }}"
        for name in names
    )
    return (
        f":root {{ {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme='light']) {{ {dark} }} }}\n"
        f"@media screen {{ :root[data-theme='dark'] {{ {dark} }} }}\n{classes}\n"
    )


def _properties(kind: str) -> str:
    table = palette()
    values = {f"page-{use}": colour for use, colour in table.pages[kind].items()}
    for name, slot in table.slots.items():
        shades = slot.light if kind == "light" else slot.dark
        values |= {f"{name}-ink": shades.ink, f"{name}-tint": shades.tint}
    for step, shades in enumerate(table.heat[kind]):
        values |= {f"heat-{step}-ink": shades.ink, f"heat-{step}-tint": shades.tint}
    return " ".join(f"--{key}: {value};" for key, value in values.items()) + f" color-scheme: {kind};"
