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


@pytest.mark.parametrize(
    ("pair", "languages"),
    [("eng_Latn-deu_Latn", ("en", "de")), ("en-zh_TW", ("en", "zh-Hant")), ("en-sr_Latn_RS", ("en", "sr-Latn")),
     ("pt_BR-en", ("pt", "en")), ("zh-TW-en", (None, None)), ("en-mas_KE", (None, None))],
)  # fmt: skip
def test_a_pair_of_languages_is_read_half_by_half(pair: str, languages: tuple[str | None, str | None]) -> None:
    """Scripts and regions were taken for languages: `eng_Latn-deu_Latn` was a translation from Latin into Tswana."""
    row = {"src": "Die Mühle.", "mt": "The mill.", "lp": pair}
    sample = read_row(row)
    assert (sample.evidence[0].language, sample.language) == languages
    assert read_row(row, columns={"language": ""}).language is None
    qa = {"question": "When?", "context": "In 1874.", "answer": "In 1901.", "langs": pair.partition("-")[0]}
    assert read_row(qa).language is None


def test_the_language_that_the_reader_is_told_wins_over_a_pair(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"src": "The mill.", "mt": "Die Mühle.", "lp": "en-nl"}\n', encoding="utf-8")
    assert [sample.language for told in ("de", None) for sample in read(path, language=told)] == ["de", "nl"]
