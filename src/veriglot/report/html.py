"""HTML from templates, and what makes a page one file that loads nothing: its style, script and policy."""

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
from markupsafe import Markup

from veriglot.report.palette import palette_css, slot_of
from veriglot.report.text_layout import count, interval, language_with_tag, percent, points, printable
from veriglot.storage.files import open_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["macro", "opened", "render", "script_safe"]


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
def _templates() -> Environment:
    """Templates in which whatever is no `Markup` is made printable and escaped, and None is empty."""
    environment = Environment(
        loader=PackageLoader("veriglot.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "plain": _finalize, "percent": percent, "points": points, "grouped": "{:,}".format,
        "ends": lambda estimate: interval(estimate.low, estimate.high),
    }  # fmt: skip
    environment.globals |= {"count": count, "slot_of": slot_of, "language_with_tag": language_with_tag}
    return environment


def _finalize(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, Markup) else printable(str(value))


def macro(name: str, template: str = "macros.html") -> Callable[..., Markup]:
    """A macro of a template, to be called with its arguments."""
    return getattr(_templates().get_template(template).module, name)  # type: ignore[no-any-return]


def render(
    template: str, title: str, *, folder: str, scripts: Sequence[str], styles: Sequence[str], **values: Any
) -> str:
    """A whole page. Its policy allows exactly its one script and its one style, by hash, and no request of any kind.

    The scripts stand in one function scope, so that nothing of the page is global.

    Args:
        template: the name of its file.
        title: plain text.
        folder: of the scripts and styles, under `veriglot.report`.
        scripts: names of files.
        styles: likewise; the colours come before them.
        values: what the template shows.
    """
    script, style = ("\n".join(_asset(folder, name) for name in names) for names in (scripts, styles))
    script = f'(function () {{\n"use strict";\n{script}\n}})();'
    style = palette_css() + style
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = {"title": title, "script": Markup(script), "style": Markup(style), "policy": Markup(policy)}  # noqa: S704
    return _templates().get_template(template).render(head, **values)


def _asset(folder: str, name: str) -> str:
    return files("veriglot.report").joinpath(folder, name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


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
