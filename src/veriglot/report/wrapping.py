"""Where to break a line for a terminal: at spaces, and between wide characters, which are written without spaces."""

from __future__ import annotations

import re

from rich.cells import cell_len, chop_cells

__all__ = ["line_breaks"]

_WIDE = (
    "\u2e80-\u2fff\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_NEVER_FIRST = "、。，．！？；：）」』】》〉〕…～ー々%％,.!?;:)\\]}”’"
_TOKEN = re.compile(rf"\s+|[{_WIDE}][{_NEVER_FIRST}]*|[^\s{_WIDE}]+")


def line_breaks(text: str, width: int, *, first_width: int | None = None) -> list[int]:
    """Offsets, in code points, at which to break `text` into lines of at most `width` cells.

    Spaces at the end of a line may stand beyond the width. A word that is wider than a line is broken between
    characters. Wide characters count two cells, combining marks and joiners none.

    Args:
        text: a text without line breaks.
        width: cells in a line, at least 2.
        first_width: cells that are left in the first line, where something stands before it.
    """
    breaks: list[int] = []
    room = width if first_width is None else first_width
    for match in _TOKEN.finditer(text):
        token, at = match.group(), match.start()
        cells = cell_len(token)
        if token.isspace() or cells <= room:
            room -= cells
            continue
        if at and not (breaks and breaks[-1] == at):
            breaks.append(at)
        room = width - cells
        if cells > width:
            for part in (parts := chop_cells(token, width))[:-1]:
                at += len(part)
                breaks.append(at)
            room = width - cell_len(parts[-1])
    return breaks
