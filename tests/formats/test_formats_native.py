"""The native format: every sample comes back, in JSON lines and in Parquet."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import filled, predictions, samples

from veriglot.errors import InputError, UsageError
from veriglot.formats.native import schema_of
from veriglot.formats.reader import read, read_predictions
from veriglot.formats.writer import open_writer, write
from veriglot.records import Annotation, Generator, Kind, Prediction, Sample, Status

if TYPE_CHECKING:
    from collections.abc import Iterator


def unique(rows: list[Sample]) -> list[Sample]:
    return list({row.id: row for row in rows}.values())


@pytest.mark.fuzz
@given(st.lists(samples(), max_size=4).map(unique), st.sampled_from(["jsonl", "parquet"]))
def test_samples_come_back(rows: list[Sample], name: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"rows.{name}"
        losses = write(rows, path)
        assert losses.written == len(rows)
        assert not losses
        assert path.stat().st_size or not rows
        assert not rows or list(read(path, format=name)) == rows


@pytest.mark.fuzz
@given(st.lists(predictions(), max_size=4), st.sampled_from(["jsonl", "parquet"]))
def test_predictions_come_back(rows: list[Prediction], name: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"rows.{name}"
        assert write(rows, path, kind="predictions").written == len(rows)
        assert list(read_predictions(path)) == rows


@pytest.mark.fuzz
@given(samples(), st.dictionaries(filled.map("x_".__add__), st.integers(), max_size=3))
def test_unknown_keys_are_kept_in_meta(sample: Sample, unknown: dict[str, int]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        write([sample], path)
        row = {**json.loads(path.read_text("utf-8")), **unknown}
        path.write_text(json.dumps(row) + "\n", "utf-8")
        (back,) = read(path, format="jsonl")
        assert back.meta == {**unknown, **sample.meta}


@pytest.mark.parametrize("name", ["jsonl", "parquet"])
def test_no_spans_and_none_asked_for_stay_apart(tmp_path: Path, name: str) -> None:
    looked = Annotation("a", Kind.HUMAN, "fava", spans=())
    unasked = Annotation("b", Kind.HUMAN, "fava", units=())
    path = tmp_path / f"rows.{name}"
    write([Sample("1", "rain", annotations=(looked, unasked))], path)
    (back,) = read(path)
    assert [a.spans for a in back.annotations] == [(), None]
    assert [a.units for a in back.annotations] == [None, ()]


def test_writers_leave_out_what_is_null(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    write([Sample("1", "rain")], path)
    assert json.loads(path.read_text()) == {"id": "1", "response": "rain"}


def test_a_number_too_large_for_parquet_is_an_error_that_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    big = Sample("1", "rain", generator=Generator("m", seed=2**70))
    with pytest.raises(InputError, match="Parquet cannot hold"):
        write([big], path)
    assert not path.exists()
    assert not list(tmp_path.iterdir())


def test_json_lines_go_on_where_they_ended(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    write([Sample("1", "rain")], path)
    write([Sample("2", "snow")], path, append=True)
    assert [row.id for row in read(path)] == ["1", "2"]


def test_a_torn_last_line_is_taken_off_before_going_on(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"id":"1","response":"rain"}\n{"id":"2","resp')
    write([Sample("2", "snow")], path, append=True)
    assert [(row.id, row.response) for row in read(path)] == [("1", "rain"), ("2", "snow")]


def test_a_whole_last_line_without_a_break_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"id":"1","response":"rain"}')
    write([Sample("2", "snow")], path, append=True)
    assert [row.id for row in read(path)] == ["1", "2"]


def test_columns_of_samples_stand_in_the_order_of_older_files() -> None:
    pytest.importorskip("pyarrow")
    assert schema_of(Sample).names[:5] == ["id", "response", "task", "language", "question"]
    assert schema_of(Prediction).names[-4:] == ["language", "notes", "reason", "signature"]


def test_parquet_goes_on_by_taking_the_place_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write([Sample(str(i), "rain") for i in range(3)], path)
    write([Sample(str(i), "snow") for i in range(3, 6)], path, append=True)
    assert [row.id for row in read(path)] == [str(i) for i in range(6)]
    with pytest.raises(UsageError, match="other columns"):
        write([Prediction("1", Status.FAILED, "d", reason="r")], path, append=True, kind="predictions")
    assert len(list(read(path))) == 6


def broken_off(error: BaseException, *rows: Sample) -> Iterator[Sample]:
    yield from rows
    raise error


def test_an_interrupted_parquet_file_keeps_what_is_done(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    with pytest.raises(KeyboardInterrupt):
        write(broken_off(KeyboardInterrupt(), Sample("1", "rain")), path)
    assert [row.id for row in read(path)] == ["1"]


def test_an_error_leaves_the_old_parquet_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write([Sample("1", "rain")], path)
    with pytest.raises(ZeroDivisionError):
        write(broken_off(ZeroDivisionError(), Sample("2", "snow")), path)
    assert [row.id for row in read(path)] == ["1"]


def test_what_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not say which format"):
        open_writer(tmp_path / "rows.txt")
    with pytest.raises(UsageError, match="read but not written"):
        open_writer(tmp_path / "rows.jsonl", format="wice")
    with pytest.raises(UsageError, match="Predictions are written as"):
        open_writer(tmp_path / "rows.json", format="hat", kind="predictions")
    with pytest.raises(UsageError, match="cannot be continued"):
        open_writer(tmp_path / "rows.json", format="hat", append=True)
    with pytest.raises(InputError, match="cannot be written"):
        open_writer(tmp_path / "absent" / "rows.jsonl")
