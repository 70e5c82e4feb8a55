"""HTML: templates, elements, and what makes a page one file that loads nothing: its style, script and policy."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from veriglot.report.palette import palette
from veriglot.report.text_layout import printable
from veriglot.storage.files import open_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = [
    "Child",
    "bdi",
    "folded",
    "head_context",
    "hidden",
    "joined",
    "macro",
    "note",
    "opened",
    "script_safe",
    "scrolled",
    "tag",
    "templates",
]

Child = str | None
"""What stands inside an element: markup as it is, any other text escaped, None left out."""


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
    with open_whole(path) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="\n")
        yield text
        text.detach()


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


@cache
def templates() -> Environment:
    """The templates of the pages. Whatever is no `Markup` is made printable and escaped; None is empty."""
    environment = Environment(
        loader=PackageLoader("veriglot.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["plain"] = _finalize
    return environment


def _finalize(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, Markup) else printable(str(value))


def macro(name: str) -> Callable[..., Markup]:
    """A macro of `macros.html`."""
    return getattr(templates().get_template("macros.html").module, name)  # type: ignore[no-any-return]


def head_context(title: str, folder: str, scripts: Sequence[str], styles: Sequence[str]) -> dict[str, Any]:
    """What `head.html` needs: the title, the one script and the one style of the page, and the policy.

    The policy allows exactly this script and this style, by hash, and no request of any kind. The scripts stand in one
    function scope, so that nothing of the page is global.

    Args:
        title: plain text.
        folder: of the scripts and styles, under `veriglot.report`.
        scripts: names of files.
        styles: likewise; the colours come before them.
    """
    script, style = ("\n".join(_asset(folder, name) for name in names) for names in (scripts, styles))
    script = f'(function () {{\n"use strict";\n{script}\n}})();'
    style = colours() + style
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return {"title": title, "script": Markup(script), "style": Markup(style), "policy": Markup(policy)}  # noqa: S704


def _asset(folder: str, name: str) -> str:
    return files("veriglot.report").joinpath(folder, name).read_text("utf-8")


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


_SURROGATE = re.compile("[\ud800-\udfff]")
_encoder = msgspec.json.Encoder()


def script_safe(value: Any) -> Markup:
    """JSON without `<`, `>` and `&`, so that no text in it can end the element or open a comment.

    A lone surrogate, which no encoding can carry, becomes U+FFFD; offsets hold.
    """
    try:
        data = _encoder.encode(value)
    except UnicodeEncodeError:
        data = _encoder.encode(_encodable(value))
    data = data.replace(b"<", b"\\u003c").replace(b">", b"\\u003e").replace(b"&", b"\\u0026")
    return Markup(data.decode("utf-8"))  # noqa: S704


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return value


_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


def tag(element: str, /, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """An element.

    Attributes are written with `_` for `-`; a trailing `_` is taken off (`class_`, `for_`). None and False leave an
    attribute out, True gives it no value.
    """
    head = Markup(element)  # noqa: S704
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.removesuffix("_").replace("_", "-")
        text = f"{value:.5g}" if isinstance(value, float) else _finalize(value)
        head += Markup(f" {key}") if value is True else Markup(' {}="{}"').format(key, text)  # noqa: S704
    if element in _VOID:
        return Markup("<{}>").format(head)
    return Markup("<{}>{}</{}>").format(head, joined(children), element)


def joined(children: Iterable[Child], separator: str = "") -> Markup:
    """Children one after the other."""
    return escape(separator).join(_finalize(child) for child in children if child is not None)


def bdi(text: str, **attributes: str | float | bool | None) -> Markup:
    """A name from elsewhere, whose direction does not reach what stands around it."""
    return tag("bdi", text, **attributes)


def hidden(text: str) -> Markup:
    """Text for screen readers only."""
    return tag("span", text, class_="unseen")


def note(*children: Child) -> Markup:
    """A paragraph that says how to read what follows."""
    return tag("p", *children, class_="note")


def folded(summary: Child, *children: Child, opened: bool = False) -> Markup:
    """Something to unfold."""
    return tag("details", tag("summary", summary), *children, open=opened)


def scrolled(table: Markup, name: str) -> Markup:
    """A table in a region that scrolls, also by keys."""
    return tag("div", table, class_="scroller", tabindex="0", role="region", aria_label=name)
