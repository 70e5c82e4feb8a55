"""Two markers around parts of a text, as `[HAL]...[/HAL]` in PsiloQA and `<<<...>>>` in HalOmi."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from veriglot.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.records import Span

__all__ = ["marked_ranges", "with_markers"]


def marked_ranges(marked: str, text: str, markers: tuple[str, str], *, field: str, of: str) -> list[tuple[int, int]]:
    """The marked parts as half-open code point ranges of `text`, in order; markers inside markers make one part.

    Args:
        marked: the text with its markers.
        text: the text without them.
        markers: what opens and what closes.
        field: the field of the marked text, for messages.
        of: the field of the text without markers, for messages.

    Raises:
        InputError: without its markers it is another text, or a marker lacks its counterpart.
    """
    opening, closing = markers
    pattern = re.compile("|".join(map(re.escape, markers)))
    if pattern.sub("", marked) != text:
        raise InputError(f"without its markers this is not `{of}`", field=field)
    ranges = []
    removed = depth = start = 0
    for match in pattern.finditer(marked):
        place = match.start() - removed
        removed += len(match.group())
        if match.group() == opening:
            start = place if depth == 0 else start
            depth += 1
            continue
        depth -= 1
        if depth < 0:
            raise InputError(f"{closing} at code point {match.start()} closes nothing", field=field)
        if depth == 0 and place > start:
            ranges.append((start, place))
    if depth:
        raise InputError(f"{opening} is never closed", field=field)
    return ranges


def with_markers(text: str, spans: Sequence[Span], markers: tuple[str, str]) -> str:
    """The text with markers around its spans: the inverse of `marked_ranges` where spans neither overlap nor touch."""
    opening, closing = markers
    edges = [(span.end, 0, closing) for span in spans] + [(span.start, 1, opening) for span in spans]
    for place, _, marker in sorted(edges, reverse=True):
        text = text[:place] + marker + text[place:]
    return text
