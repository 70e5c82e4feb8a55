"""Checks that were skipped for lack of data are never reported as passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from faulty_data import sample, sentences, sound, write

from veriglot.datasets.cards.card import card, card_page
from veriglot.datasets.checks.checker import check
from veriglot.datasets.checks.findings import checks

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.records import Sample

BALANCE = ("no_clean_rows", "dense_marks")
TYPES = ("missing_types", "rare_types")


def marked(count: int, seed: int) -> list[Sample]:
    """Rows without a clean one, with about half of their words marked, all as one type."""
    texts = sentences(count, seed)
    return [sample(f"r{n}", text, [(0, len(text) // 2, "entity")], evidence=text) for n, text in enumerate(texts)]


def test_nine_rows_are_too_few_to_be_balanced(tmp_path: Path) -> None:
    path = str(write(tmp_path / "rows.jsonl", marked(9, 61)))
    report = check([path])
    assert {one.check for one in report.findings} <= {"span_edges"}
    assert not {*BALANCE, *TYPES} & set(report.passed)
    for name in BALANCE:
        assert report.not_looked_for[name] == "too few labelled rows (9; from 20 on)"
    for name in TYPES:
        assert report.not_looked_for[name] == "too few spans (9; from 100 on)"
    page = card_page(card([path]))
    passed, skipped = (line for line in page.splitlines() if line.startswith(("- **Looked", "- **Not looked")))
    for name in BALANCE:
        assert checks()[name].title.lower() not in passed
    assert "hardly a clean response, many marked words (too few labelled rows (9; from 20 on))" in skipped


@pytest.mark.parametrize(("rows", "found"), [(19, False), (20, True)])
def test_from_twenty_rows_on_they_are_judged(tmp_path: Path, rows: int, found: bool) -> None:
    report = check([str(write(tmp_path / "rows.jsonl", marked(rows, 62)))])
    for name in BALANCE:
        assert (name in {finding.check for finding in report.findings}) is found
        assert (name in report.not_looked_for) is not found


def test_a_small_file_beside_one_that_is_judged_is_named_unless_something_was_found(tmp_path: Path) -> None:
    small = str(write(tmp_path / "small.jsonl", marked(9, 63)))
    large = str(write(tmp_path / "large.jsonl", sound(40, 64)))
    report = check([small, large])
    for name in BALANCE:
        assert name not in report.passed
        assert report.not_looked_for[name] == "too few labelled rows in 1 of 2 sets of labels (9; from 20 on)"
    other = check([small, str(write(tmp_path / "bad.jsonl", marked(30, 65)))])
    for name in BALANCE:
        assert name in {finding.check for finding in other.findings}
        assert name not in other.not_looked_for


def test_what_nothing_could_have_was_not_looked_for(tmp_path: Path) -> None:
    rows = [sample(f"r{n}", f"Row {n}.", None, evidence=None, language="en") for n in range(30)]
    report = check([str(write(tmp_path / "rows.jsonl", rows))])
    for name in ("span_edges", "blank_span", "garbled_reference", "no_response", "malformed_tags"):
        assert report.not_looked_for[name] == f"no {checks()[name].unit} here could have it"
    assert "format of a paper" in report.not_looked_for["absent_languages"]
    for name in (*BALANCE, *TYPES):
        assert report.not_looked_for[name] == "no set of labels here can be judged by it"
    assert "32 letters" in report.not_looked_for["near_text"]
    assert {"unreadable_row", "bad_offsets", "repeated_id", "leftover_tags"} <= set(report.passed)
