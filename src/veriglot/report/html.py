"""Judged samples as one HTML file that needs nothing beside it and asks the network for nothing.

The page is assembled from the data files in `page/`. A content security policy allows exactly the one script and the
one style of the page, by hash, and no request of any kind. Each sample becomes two blocks of JSON, which a browser does
not run: what the list of samples needs, read when the page opens, and the rest, read when the sample is shown.
"""

from __future__ import annotations

from html import escape
from string import Template
from typing import TYPE_CHECKING

from veriglot.report.assembly import colours, head, opened, part, scoped
from veriglot.report.page_data import meanings, sample_blocks, script_safe
from veriglot.report.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

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
    with opened(path) as file:
        file.write(head)
        for sample, prediction in pairs:
            listed, shown = sample_blocks(sample, prediction)
            file.write(f'<script type="application/json" class="listed">{listed}</script>\n')
            file.write(f'<script type="application/json" class="shown">{shown}</script>\n')
            written += 1
        file.write(tail)
    return written


def _page(title: str) -> str:
    script = scoped("page", _SCRIPTS)
    style = colours() + "\n".join(part("page", name) for name in _STYLES)
    return Template(part("page", "page.html")).substitute(
        head=head(title, script, style),
        title=escape(printable(title)),
        script=script,
        meta=script_safe({"meanings": meanings()}),
    )
