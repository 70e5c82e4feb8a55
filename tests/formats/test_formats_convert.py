"""`veriglot convert`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from veriglot.cli.convert import convert
from veriglot.errors import VeriglotError
from veriglot.formats.reader import read
from veriglot.formats.writer import write
from veriglot.records import Sample

app = typer.Typer(add_completion=False)
app.command()(convert)

ROW = {
    "generated_text": "In Rome it rains. Lovely",
    "references": "In Lima it rains.",
    "silver_annotations": "In <Entity>Rome<entity> it rains. <subjective>Lovely",
}


def call(*words: str) -> int:
    try:
        code: int | None = app(list(words), standalone_mode=False)
    except VeriglotError as error:
        return error.exit_code
    return code or 0


@pytest.fixture
def tagged(tmp_path: Path) -> Path:
    path = tmp_path / "silver_german.json"
    path.write_text(json.dumps([ROW, {"generated_text": "x"}]), "utf-8")
    return path


def test_convert_says_what_it_did(tagged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "rows.parquet"
    assert call(str(tagged), "-o", str(out)) == 3
    said = capsys.readouterr().err
    assert "is mfava (the keys `generated_text`" in said
    assert "1 sample;" in said
    assert "1 row that cannot be read" in said
    assert "3 tags: 0 parsed, 3 repaired, 0 reported" in said
    (sample,) = read(out)
    assert sample.language == "de"
    (failed,) = map(json.loads, Path(f"{out}.failed.jsonl").read_text().splitlines())
    assert failed["line"] == 2
    assert "neither layer" in failed["message"]


def test_stop_and_strict(tagged: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    assert call(str(tagged), "-o", str(out), "--on-error", "stop") == 1
    assert call(str(tagged), "-o", str(out), "--strict") == 3
    assert out.read_text() == ""
    assert len(Path(f"{out}.failed.jsonl").read_text().splitlines()) == 2


def test_report_prints_the_account(tagged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(str(tagged), "-o", str(tagged.with_name("out.jsonl")), "--json") == 3
    printed = capsys.readouterr()
    assert "3 tags: 0 parsed, 3 repaired, 0 reported" in printed.err
    tags = json.loads(printed.out)["files"][0]["tags"]["silver"]
    assert tags["repaired"] == {"capitalised": 1, "opener_as_closer": 1, "unclosed": 1}
    assert tags["spans"] == {"entity": 1, "subjective": 1}


def test_losses_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.json"
    write([Sample("a", "It rains.", meta={"k": 1}, language="de")], source)
    assert call(str(source), "-o", str(out), "--to", "label-studio") == 0
    assert "lost" not in capsys.readouterr().err
    assert call(str(source), "-o", str(out), "--to", "mu-shroom", "--json") == 0
    captured = capsys.readouterr()
    assert "lost: meta, 1 time, such as in 'a'" in captured.err
    assert json.loads(captured.out)["losses"]["lost"]["meta"] == {"count": 1, "example": "a"}


def test_standard_output_and_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in.jsonl"
    write([Sample("a", "It rains.")], source)
    assert call(str(source), "--json") == 2
    assert call(str(source), "-o", str(source)) == 2
    assert call(str(tmp_path), "-o", str(tmp_path / "x.jsonl")) == 2
    assert call(str(source), "-o", str(tmp_path / "x.txt")) == 2
    assert call(str(source), "--to", "jsonn") == 2
    assert call(str(source), "--language", "klingonn") == 2
    assert call(str(tmp_path / "absent")) == 1


def test_rows_that_the_format_cannot_hold_are_an_exit_code_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "in.jsonl"
    write([Sample("a", "It rains.", language="en")], source)  # nobody labelled it
    assert call(str(source), "-o", str(tmp_path / "out.jsonl"), "--to", "ragtruth") == 3
    assert "left out" in capsys.readouterr().err


def test_the_text_of_a_mark_is_no_loss_where_the_response_says_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every Label Studio export of the studio was said to lose them, and has them."""
    for text, lost in (("was", False), ("were", True)):
        span = {"start": 4, "end": 7, "type": "entity", "text": text}
        layer = {"annotator": "Kim", "kind": "human", "taxonomy": "fava", "spans": [span]}
        row = {"id": "a", "response": "Ada was here.", "language": "en", "annotations": [layer]}
        (tmp_path / "rows.jsonl").write_text(json.dumps(row), "utf-8")
        assert call(str(tmp_path / "rows.jsonl"), "-o", str(tmp_path / "out.json"), "--to", "label-studio") == 0
        assert ("texts of spans" in capsys.readouterr().err) == lost
