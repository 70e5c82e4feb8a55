"""Standard input can be read only once, and a page or a table of what came from it shows the samples all the same."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest
from rows import samples

from veriglot.errors import InputError
from veriglot.formats.reader import read_predictions
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


def test_a_table_for_spreadsheets(veriglot: Callable[..., Outcome], tmp_path: Path) -> None:
    row = {"context": "alte Mühle", "answer": "=neue, alte Mühle leer", "tenant": "x", "score": 0.7}
    whole = [{"item_id": "a", **row}, {"item_id": "b", **row, "answer": "Mühle"}]
    lines = [json.dumps(whole[0]).encode(), b'{"id": "cut o', json.dumps(whole[1]).encode()]
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines))
    words = ("--detector", "word_absence:WordAbsence", "-o")
    for name, source in (("a.csv", tmp_path / "in.jsonl"), ("b.csv", "-")):
        assert veriglot("detect", source, *words, tmp_path / name, stdin=b"\n".join(lines)).code == 3
        text = (tmp_path / name).read_bytes().decode("utf-8")
        assert text.startswith("\ufeffid,verdict,score,marked,reason,response,evidence,tenant\n")
        first, failed, last = csv.DictReader(io.StringIO(text[1:]))
        assert (first["id"], first["verdict"], first["marked"]) == ("a", "unsupported", "neue | leer")
        assert first["response"] == "'=neue, alte Mühle leer", "no formula"
        assert (first["evidence"], first["tenant"], failed["tenant"]) == ("alte Mühle", "x", "")
        assert (failed["id"], failed["verdict"], failed["score"]) == ("row 2", "not_checked", "")
        assert "JSON" in failed["reason"]
        assert (last["verdict"], last["marked"], last["reason"]) == ("supported", "", "")
    with pytest.raises(InputError, match=r"-o FILE\.jsonl or -o FILE\.parquet"):
        list(read_predictions(tmp_path / "a.csv"))
    assert "one .jsonl or .parquet" in veriglot("detect", "in.jsonl", "--shard", "1/2", "-o", "x.csv").err
