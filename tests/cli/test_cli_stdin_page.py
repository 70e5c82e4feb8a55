"""Standard input can be read only once, and a page of what came from it shows the samples all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rows import samples

from veriglot.records import encode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome


def test_a_page_of_standard_input(veriglot: Callable[..., Outcome], tmp_path: Path) -> None:
    rows = list(samples(5))
    lines = [encode(row) for row in rows]
    lines.insert(2, b'{"id": "cut o')
    page = tmp_path / "page.html"
    outcome = veriglot("detect", "-", "--detector", "word_absence:WordAbsence", "-o", page, stdin=b"\n".join(lines))
    assert outcome.code == 3, outcome.err
    assert page.read_text("utf-8").count('class="listed"') == len(rows) + 1, "what could not be read is not checked"
    assert '"row 3"' in page.read_text("utf-8")
    assert len((tmp_path / "page.html.failed.jsonl").read_bytes().splitlines()) == 1
