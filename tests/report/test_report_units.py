"""Judged sentences and facts in the views."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING

from browser import visit
from rich.console import Console

from veriglot.records import Evidence, JudgedUnit, Prediction, Sample, Status
from veriglot.report.pages import write_html
from veriglot.report.terminal import render_terminal

if TYPE_CHECKING:
    from pathlib import Path

RESPONSE = "Mira Holt, a <b>Danish</b> painter,\nwas born in Odense."
UNITS = (
    JudgedUnit(0, len(RESPONSE) - 1, "clause", 0.13, ((0, 9), (36, len(RESPONSE) - 1))),
    JudgedUnit(11, 34, "aside", 0.9),
)


def pair(
    units: tuple[JudgedUnit, ...] | None = UNITS, response: str = RESPONSE, tag: str = "en"
) -> tuple[Sample, Prediction]:
    sample = Sample("a", response, language=tag, evidence=(Evidence("Mira Holt was born."),))
    return sample, Prediction("a", Status.SCORED, "rule@1", 0.5, (), units=units)


def terminal(given: tuple[Sample, Prediction]) -> str:
    out = io.StringIO()
    render_terminal(*given, Console(file=out, width=80))
    return out.getvalue()


def page_units(given: tuple[Sample, Prediction], folder: Path) -> list[list[object]]:
    write_html([given], folder / "page.html", title="units")
    found = re.search(r'class="shown">(.*)</script>', (folder / "page.html").read_text("utf-8"))
    assert found
    units: list[list[object]] = json.loads(found.group(1))["units"]
    return units


def test_the_terminal_lists_each_unit_with_its_score_on_lines_of_its_own() -> None:
    text = terminal(pair())
    assert " .13  clause\n      “Mira Holt … was born in Odense”\n .90  aside\n      “a <b>Danish</b> painter”" in text
    assert "clause" not in terminal(pair(None))


def test_right_to_left_units_say_their_direction() -> None:
    response = "ولدت ميرا في أودنسه"
    text = terminal(pair((JudgedUnit(0, len(response), "sentence", 0.3),), response, "ar"))
    assert f"\u200f      “{response}”" in text


def test_units_beyond_the_response_are_named_not_hidden() -> None:
    assert "1 unit beyond the end of the response of 55 code points" in terminal(
        pair((JudgedUnit(40, 99, "clause", 0.2),))
    )


def test_the_page_holds_units_and_none_where_none_were_asked_for(tmp_path: Path) -> None:
    assert page_units(pair(), tmp_path) == [
        ["clause", 0.13, "Mira Holt … was born in Odense"], ["aside", 0.9, "a <b>Danish</b> painter"],
    ]  # fmt: skip
    assert page_units(pair(None), tmp_path) == []


def test_a_browser_draws_the_units(chromium: str, tmp_path: Path) -> None:
    write_html([pair()], tmp_path / "page.html", title="units")
    dom, console = visit(chromium, tmp_path / "page.html")
    assert console == []
    rows = re.findall(r"<li>(.*?)</li>", dom.split('class="unit-list"', 1)[1].split("</ol>", 1)[0])
    shown = [re.sub(r"<[^>]+>", "|", row).split("|") for row in rows]
    assert [[part for part in row if part] for row in shown] == [
        ["13%", "clause", "Mira Holt … was born in Odense"],
        ["90%", "aside", "a &lt;b&gt;Danish&lt;/b&gt; painter"],
    ]
