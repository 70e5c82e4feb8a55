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

import veriglot
from veriglot.cli.app import load_verb
from veriglot.errors import InputError, UsageError
from veriglot.formats.base import FORMATS, Report, load_format
from veriglot.formats.columns import read_row
from veriglot.formats.reader import read, read_predictions
from veriglot.formats.writer import Writer, write
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
        assert write(rows, path).written == len(rows)
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


def test_columns_stand_in_the_order_of_older_files(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    write([Sample("1", "rain")], path)
    assert parquet.read_schema(path).names[:5] == ["id", "response", "task", "language", "question"]
    write([Prediction("1", Status.FAILED, "d", reason="r")], path)
    assert parquet.read_table(path).to_pylist()[0]["verdict"] == "not_checked"
    assert parquet.read_schema(path).names[-5:] == ["notes", "reason", "signature", "units", "verdict"]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.parquet"])
def test_what_detect_gives_is_written_as_the_command_writes_it(tmp_path: Path, name: str) -> None:
    rows = [{"evidence": "It opened in 1897.", "response": response} for response in ("It opened in 1879.", "")]
    predictions = list(veriglot.detect_many(rows))
    veriglot.write(predictions, tmp_path / name)
    assert list(read_predictions(tmp_path / name)) == [prediction.record for prediction in predictions]
    with pytest.raises(TypeError, match="a Sample or a Prediction is expected, and this is a dict"):
        veriglot.write(rows, tmp_path / name)  # type: ignore[arg-type]


def test_samples_in_place_of_predictions_are_named(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text('{"id": "1", "evidence": [{"text": "e"}], "response": "r"}\n', "utf-8")
    with pytest.raises(InputError, match="this is a sample, not a prediction"):
        list(read_predictions(path))


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
        Writer(tmp_path / "rows.txt")
    with pytest.raises(UsageError, match="'wice' cannot be written") as refused:
        Writer(tmp_path / "rows.jsonl", format="wice")
    with pytest.raises(UsageError, match="'tsv' cannot be written") as unknown:
        Writer(tmp_path / "rows.tsv", format="tsv")
    writable = [name for name in FORMATS.names() if load_format(name).writable]
    assert unknown.value.remedy == refused.value.remedy == f"Choose one of {', '.join(writable)}."
    helps = [parameter.help for parameter in load_verb("convert").params if parameter.name == "to"]
    assert not [name for name in writable if name not in helps[0]]
    with pytest.raises(UsageError, match="Predictions are written as"):
        Writer(tmp_path / "rows.json", format="hat", kind="predictions")
    with pytest.raises(InputError, match="cannot be written"):
        Writer(tmp_path / "absent" / "rows.jsonl")


def test_annotations_in_a_simpler_shape_are_read_and_others_counted(tmp_path: Path) -> None:
    """They went to `meta` without a word."""
    response, evidence, path = "It was opened in 1879.", "The bridge was opened in 1897.", tmp_path / "rows.jsonl"
    native = {"id": "1", "response": response, "evidence": [{"text": evidence}]}
    for row in (native, {"answer": response, "context": evidence}):
        for spans in ([[17, 21]], [{"start": 17, "end": 21}]):
            path.write_text(json.dumps(row | {"annotations": [{"annotator": "a", "spans": spans}]}), "utf-8")
            (sample,) = veriglot.read(path)
            (annotation,) = sample.annotations
            assert (annotation.annotator, annotation.kind, annotation.taxonomy) == ("a", "human", "hat")
            assert [(span.start, span.end) for span in annotation.spans or ()] == [(17, 21)]
        path.write_text(json.dumps(row | {"annotations": [{"annotator": "a", "spans": [[17, 210]]}]}), "utf-8")
        with pytest.raises(InputError, match=r"annotations.*spans\[0\]"):
            list(veriglot.read(path))
        path.write_text(json.dumps(row | {"annotations": [{"by": "a"}]}), "utf-8")
        report = Report()
        (sample,) = veriglot.read(path, report=report)
        assert "annotations" in sample.meta
        assert [dict(file.notes) for file in report.files.values()] == [{"annotations_not_used": 1}]


def test_several_columns_for_what_takes_one_are_refused() -> None:
    """The last column of spans counted, the first of anything else, without a word."""
    row = {"answer": "It was opened in 1879.", "context": "It was opened in 1897.", "anna": [[17, 21]], "b+c": []}
    with pytest.raises(InputError, match=r"spans takes one column, not anna \+ ben.*Name one.*`annotations`"):
        read_row({**row, "ben": []}, columns={"spans": "anna+ben"})
    for part in ("spans", "id", "response"):
        with pytest.raises(InputError, match=f"{part} takes one column"):
            read_row(row, columns={part: "anna+absent"})
    assert read_row(row, columns={"spans": "b+c"}).annotations[0].spans == ()
    assert len(read_row(row, columns={"evidence": "context+answer", "response": "answer"}).evidence) == 2


_COMPLETION = {"choices": [{"message": {"role": "assistant", "content": "Silta avattiin vuonna 1879."}}]}
_PARTS = [{"type": "output_text", "text": "Silta avattiin vuonna 1879."}]
_OUTPUT = {"output": [{"type": "reasoning"}, {"type": "message", "role": "assistant", "content": _PARTS}]}


_THOUGHT = {"text": "Year?", "thought": True}
_CANDIDATES = {
    "candidates": [{"content": {"parts": [_THOUGHT, {"text": "Silta avattiin "}, {"text": "vuonna 1879."}]}}]
}


@pytest.mark.parametrize("answer", [_COMPLETION, _OUTPUT, _CANDIDATES], ids=["completion", "output", "candidates"])
@pytest.mark.parametrize("evidence", ["evidence", "context"])
def test_what_a_batch_answered_is_the_response(answer: dict[str, object], evidence: str, tmp_path: Path) -> None:
    row = {"id": "batch-1", "custom_id": "a", "response": {"status_code": 200, "body": answer}, "error": None}
    (tmp_path / "batch.jsonl").write_text(json.dumps({**row, evidence: "Silta avattiin vuonna 1897."}) + "\n")
    (sample,) = read(tmp_path / "batch.jsonl")
    assert (sample.response, sample.evidence_text) == ("Silta avattiin vuonna 1879.", "Silta avattiin vuonna 1897.")
    (prediction,) = veriglot.detect_many([{"response": row["response"], "evidence": "Silta avattiin vuonna 1897."}])
    assert prediction.verdict == "unsupported"


@pytest.mark.parametrize(
    "answer",
    [
        {"response": _CANDIDATES},
        {"response": [{"generated_text": "Silta avattiin vuonna 1879."}]},
        {"output": [{"generated_text": [{"role": "user", "content": "Milloin?"}, *_OUTPUT["output"][1:]]}]},
        {"response": {"text": "Silta avattiin vuonna 1879.", "seconds": 0.3}},
        {"result": {"type": "succeeded", "message": {"role": "assistant", "content": _PARTS}}},
    ],
)
def test_what_other_services_answered_is_the_response(answer: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({**answer, "context": "Silta avattiin vuonna 1897."}) + "\n")
    (sample,) = read(path)
    assert (sample.response, sample.evidence_text) == ("Silta avattiin vuonna 1879.", "Silta avattiin vuonna 1897.")
    if "response" in answer:  # with our own keys, in memory
        (prediction,) = veriglot.detect_many([{**answer, "evidence": "Silta avattiin vuonna 1897."}])
        assert prediction.verdict == "unsupported"


def test_the_text_of_a_response_is_no_evidence_for_it() -> None:
    """`output.text` was, and every such answer supported."""
    with pytest.raises(InputError, match="no column is known to hold the evidence"):
        read_row({"output": {"text": "Silta avattiin vuonna 1879."}})


def test_the_texts_of_objects_are_response_and_question() -> None:
    """Beside `answer`, which may be the gold one, nobody can tell which of the two is meant."""
    passage = {"context": "Silta avattiin vuonna 1897."}
    with pytest.raises(InputError, match=r"the response could be in answer or output\.text"):
        read_row({"answer": "Silta.", "output": {"text": "Silta avattiin."}, **passage})
    for inner in "text", "content", "value":
        sample = read_row({"query": {inner: "Milloin?"}, "output": {inner: "Silta.", "tokens": 3}, **passage})
        assert (sample.question, sample.response, sample.evidence_text) == ("Milloin?", "Silta.", passage["context"])


def test_an_answer_that_is_no_text_is_not_called_none() -> None:
    candidate = {"content": {"parts": [{"text": None}]}}
    for answer in {"candidates": [candidate]}, {"role": "model", "content": [{"type": "text", "text": None}]}:
        assert read_row({"response": answer, "context": "Silta."}).response == ""


def test_a_completion_with_evidence_in_it_is_a_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"id": "a", **_COMPLETION, "evidence": "Silta avattiin vuonna 1897."}) + "\n")
    assert [sample.response for sample in read(path)] == ["Silta avattiin vuonna 1879."]


def test_an_object_in_place_of_a_response_is_told_of_paths(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    response = {"answers": [{"content": {"parts": _PARTS}}]}
    path.write_text(json.dumps({"id": "a", "response": response, "evidence": "Silta avattiin vuonna 1897."}) + "\n")
    with pytest.raises(InputError, match="leads into objects and lists"):
        list(read(path))
    columns = {"response": "response.answers.0.content.parts.0.text", "evidence": "evidence"}
    assert [sample.response for sample in read(path, columns=columns)] == ["Silta avattiin vuonna 1879."]


def test_a_misspelt_column_is_told_the_nearest() -> None:
    with pytest.raises(InputError, match="Did you mean Antwort"):
        read_row({"Antwort": "a", "Quelle": "b"}, columns={"response": "Antwrot", "evidence": "Quelle"})


def test_documents_that_langchain_wrote_are_evidence() -> None:
    document = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "Document"]}
    document["kwargs"] = {"page_content": "Silta avattiin vuonna 1897.", "metadata": {}}
    assert read_row({"context": [document], "answer": "Silta."}).evidence_text == "Silta avattiin vuonna 1897."


_TEXTS = {"question": "Milloin?", "context": "Silta avattiin vuonna 1897."}


@pytest.mark.parametrize(
    "row",
    [
        {"request": {"question": "Milloin?"}, "response": {"answer": "Silta."}, "retrieved_context": _TEXTS["context"]},
        {"id": "1", "fields": {**_TEXTS, "answer": "Silta."}, "responses": {"label": []}, "status": "completed"},
        {"doc": _TEXTS, "target": "1897", "resps": [["Silta. "]], "filtered_resps": ["Silta."], "doc_id": 1},
        {"sample_id": "1", "type": "match", "data": {**_TEXTS, "sampled": "Silta.", "expected": "1897"}},
        {"question": "Milloin?", "reference_context": _TEXTS["context"], "agent_answer": "Silta."},
    ],
    ids=["MLflow", "Argilla", "lm-evaluation-harness", "OpenAI evals", "Giskard"],
)
def test_what_tools_write_is_read_by_their_own_keys(row: dict[str, object]) -> None:
    sample = read_row(row)
    assert (sample.question, sample.response, sample.evidence_text) == ("Milloin?", "Silta.", _TEXTS["context"])
