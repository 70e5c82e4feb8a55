"""Rows that do not say their language are not taken for English because a format's published data are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from veriglot.formats.base import Report
from veriglot.formats.columns import read_row
from veriglot.formats.reader import read

if TYPE_CHECKING:
    from pathlib import Path

GERMAN = "Die Mühle wurde im Jahr 1901 am Fluss gebaut und steht seither leer."
ROWS: dict[str, dict[str, Any]] = {
    "fava": {"annotated": GERMAN.replace("1901", "<entity><delete>1901</delete><mark>1874</mark></entity>")},
    "ragtruth": {"id": "1", "response": GERMAN, "labels": [], "source_id": "1", "source_info": "Die Mühle."},
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize(("stated", "expected", "counted"), [(None, "de", 1), ("nl", "nl", 0)])
def test_the_language_is_stated_or_identified(
    name: str, stated: str | None, expected: str, counted: int, tmp_path: Path
) -> None:
    row = ROWS[name] | ({"language": stated} if stated else {})
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    report = Report()
    (sample,) = read(path, format=name, report=report)
    assert sample.language == expected
    assert next(iter(report.files.values())).notes["languages_identified"] == counted


@pytest.mark.parametrize(("told", "expected"), [(None, "bn"), ("en", "en")])
def test_what_the_reader_is_told_wins_over_the_name_of_the_file(
    told: str | None, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "ben.txt"
    path.write_text("Der <entity>Turm</entity> ist alt.\n", encoding="utf-8")
    (sample,) = read(path, format="inline", language=told)
    assert sample.language == expected


def test_the_language_of_a_translation_is_that_of_its_target() -> None:
    assert read_row({"source": "It opened.", "target": "DC", "target_lang": "ja", "source_lang": "en"}).language == "ja"


@pytest.mark.parametrize(
    ("pair", "languages"),
    [({"lp": "en-de"}, ("en", "de")), ({"lp": "en-cs_CZ"}, ("en", "cs")), ({"Language Pair": "isl-eng"}, ("is", "en")),
     ({"lp": "en-de", "tgt_lang": "nl"}, ("en", "nl")), ({"lp": "qq-xx"}, (None, None)), ({}, (None, None))],
)  # fmt: skip
@pytest.mark.parametrize("target", ["mt", "hyp", "tgt"])
def test_rows_of_wmt_state_both_languages_in_one_column(
    pair: dict[str, str], languages: tuple[str | None, str | None], target: str
) -> None:
    row = {**pair, "src": "Brúin opnaði.", target: "Brücke.", "ref": "x", "system": "a", "segment_id": 3}
    sample = read_row(row)
    assert (sample.response, sample.evidence_text) == ("Brücke.", "Brúin opnaði.")
    assert (sample.evidence[0].language, sample.language) == languages
    assert sample.meta.get("lp") == pair.get("lp")
