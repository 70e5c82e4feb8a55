"""Words of a card as Markdown in which nothing that a file or a person wrote becomes a mark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["bullets", "code", "inline", "share", "table"]

_BAR = re.compile(r"(?<!\\)\|")
_ESCAPED = r"\\|"
_MARKS = re.compile(r"([\\`*_\[\]<>|#])")


def inline(text: str) -> str:
    """A text on one line, with its marks escaped."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """A text as code."""
    return f"`{' '.join(text.replace('`', chr(39)).split())}`" if text else "-"


def bullets(said: Mapping[str, str], otherwise: str) -> Iterator[str]:
    """A line for each, with `otherwise` where nothing is said."""
    for name, text in said.items():
        yield f"- **{name}:** {inline(text) or otherwise}"
    yield ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table; cells are escaped by whoever writes them, but for the bars of what is code."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(_BAR.sub(_ESCAPED, cell) for cell in row)} |"
    yield ""


def share(part: int, whole: int) -> str:
    """A share in percent, with what it is of."""
    if not whole:
        return "-"
    percent = "under 0.1%" if 0 < part / whole < 0.0005 else f"{100 * part / whole:.1f}%"
    return f"{percent} ({part:,} of {whole:,})"
