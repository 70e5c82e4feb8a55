"""Judged samples as one HTML file that needs nothing beside it and asks the network for nothing.

The page is assembled from the data files in `page/`. A content security policy allows exactly the one script and the
one style of the page, by hash, and no request of any kind. Each sample becomes two blocks of JSON, which a browser does
not run: what the list of samples needs, read when the page opens, and the rest, read when the sample is shown.
"""

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

from veriglot.report.page_data import meanings, sample_blocks, script_safe
from veriglot.report.palette import palette
from veriglot.report.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from veriglot.records import Prediction, Sample

__all__ = ["write_html"]

_SCRIPTS = (
    "offsets.js", "blocks.js", "data.js", "marks.js", "response.js", "evidence.js", "inspector.js", "list.js", "app.js",
)  # fmt: skip
_STYLES = ("layout.css", "text.css", "print.css")
_DATA_PLACE = "<!-- data -->\n"


def write_html(pairs: Iterable[tuple[Sample, Prediction]], path: str | Path, *, title: str) -> int:
    """Write one self-contained page with every sample beside its evidence.

    Memory holds one sample at a time. The file appears under its name once it is whole.

    Args:
        pairs: each sample with its prediction, in the order to list them.
        path: where to write; `-` is standard output.
        title: the heading of the page.

    Returns:
        How many samples were written.

    Raises:
        UsageError: a prediction is paired with a sample of another id.
        OSError: the file cannot be written.
    """
    head, tail = _page(title).split(_DATA_PLACE)
    written = 0
    with _output(path) as file:
        file.write(head)
        for sample, prediction in pairs:
            listed, shown = sample_blocks(sample, prediction)
            file.write(f'<script type="application/json" class="listed">{listed}</script>\n')
            file.write(f'<script type="application/json" class="shown">{shown}</script>\n')
            written += 1
        file.write(tail)
    return written


@contextmanager
def _output(path: str | Path) -> Iterator[TextIO]:
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


def _page(title: str) -> str:
    script, style = _script(), _style()
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return Template(_file("page.html")).substitute(
        title=escape(printable(title)),
        policy=policy,
        style=style,
        script=script,
        meta=script_safe({"meanings": meanings()}),
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _file(name: str) -> str:
    return files(__package__).joinpath("page", name).read_text("utf-8")


@cache
def _script() -> str:
    """All parts in one function scope, so that nothing of the page is global."""
    parts = "\n".join(_file(name) for name in _SCRIPTS)
    return f'(function () {{\n"use strict";\n{parts}\n}})();'


@cache
def _style() -> str:
    """The colours of the palette as custom properties, then the style sheets."""
    light, dark = (_properties(kind) for kind in ("light", "dark"))
    slots = "\n".join(
        f".slot-{name} {{ --ink: var(--{name}-ink); --tint: var(--{name}-tint); }}" for name in palette().slots
    )
    colours = (
        f":root {{ {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme='light']) {{ {dark} }} }}\n"
        f"@media screen {{ :root[data-theme='dark'] {{ {dark} }} }}\n{slots}\n"
    )
    return colours + "\n".join(_file(name) for name in _STYLES)


def _properties(kind: str) -> str:
    table = palette()
    values = {f"page-{use}": colour for use, colour in table.pages[kind].items()}
    for name, slot in table.slots.items():
        shades = slot.light if kind == "light" else slot.dark
        values |= {f"{name}-ink": shades.ink, f"{name}-tint": shades.tint}
    return " ".join(f"--{key}: {value};" for key, value in values.items()) + f" color-scheme: {kind};"
