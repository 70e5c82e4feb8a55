"""Rows of any names: every shape that docs/formats.md lists, in a real file, by the command line and by Python."""

from __future__ import annotations

import csv
import gzip
import json
import logging
import shlex
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import veriglot
from veriglot.cli import main
from veriglot.detection import sample_from_row
from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.formats.columns import PRESETS, _name_likeness, read_row
from veriglot.formats.reader import columns_from, read_rows
from veriglot.records import Task
from veriglot.storage.checkpoint import FailedRow

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Rows = list[dict[str, Any]]

EVIDENCE = "The bridge was opened in 1897."
RESPONSE = "It was opened in 1879."
QUESTION = "When was it opened?"
TRUE, FALSE = ("spans", ()), ("spans", ((17, 21),))


def as_table(path: Path, rows: Rows, *, delimiter: str = ",", encoding: str = "utf-8") -> None:
    with path.open("w", newline="", encoding=encoding) as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def as_json(path: Path, rows: Rows) -> None:
    path.write_text(json.dumps(rows, ensure_ascii=False), "utf-8")


def as_lines(path: Path, rows: Rows) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


def packed(write: Callable[[Path, Rows], None], path: Path, rows: Rows) -> None:
    write(path, rows)
    path.write_bytes(gzip.compress(path.read_bytes()))


def as_columns(path: Path, rows: Rows) -> None:
    path.write_text(json.dumps({key: [row[key] for row in rows] for key in rows[0]}), "utf-8")


def as_results(path: Path, rows: Rows) -> None:
    results = {"version": 3, "timestamp": "t", "prompts": [{"raw": "x"}], "results": rows, "stats": {}}
    path.write_text(json.dumps({"evalId": "e", "results": results, "config": {"tests": [{"vars": {}}]}}), "utf-8")


def arrow_table(rows: Rows) -> Any:
    return pytest.importorskip("pyarrow").Table.from_pylist(rows)


def as_parquet(path: Path, rows: Rows) -> None:
    pytest.importorskip("pyarrow.parquet").write_table(arrow_table(rows), path)


def as_feather(path: Path, rows: Rows) -> None:
    pytest.importorskip("pyarrow.feather").write_feather(arrow_table(rows), path)


def as_stream(path: Path, rows: Rows) -> None:
    table = arrow_table(rows)
    with pytest.importorskip("pyarrow.ipc").new_stream(path, table.schema) as stream:
        stream.write_table(table)


def as_saved(path: Path, rows: Rows) -> None:
    """A `DatasetDict` as `save_to_disk` of `datasets` lays it out: a stream of Arrow and two objects for each split."""
    for split in ("test", "train"):
        (path / split).mkdir(parents=True)
        as_stream(path / split / "data-00000-of-00001.arrow", rows)
        (path / split / "state.json").write_text('{"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}')
        (path / split / "dataset_info.json").write_text('{"features": {}}')
    (path / "dataset_dict.json").write_text('{"splits": ["test", "train"]}')


RAG = {"question": QUESTION, "context": EVIDENCE, "answer": RESPONSE}
OLD = {"question": QUESTION, "contexts": [EVIDENCE], "answer": RESPONSE, "ground_truth": "1897"}
NEW = {"user_input": QUESTION, "retrieved_contexts": [EVIDENCE], "response": RESPONSE, "reference": "1897"}
SPAN = {"start": 17, "end": 21, "text": "1879", "label_type": "Evident Conflict"}
GRAPH = {"prompt": QUESTION, "context": EVIDENCE, "response": RESPONSE}

# Name: (how the file is written, its name, its row, what the label says or None).
SHAPES: dict[str, tuple[Callable[[Path, Rows], None], str, dict[str, Any], Any]] = {
    "CSV": (as_table, "a.csv", RAG, None),
    "TSV": (partial(as_table, delimiter="\t"), "a.tsv", RAG, None),
    "Vietnamese": (as_table, "a.csv", {"Câu hỏi": QUESTION, "Ngữ cảnh": EVIDENCE, "Câu trả lời": RESPONSE}, None),
    "Excel's CSV": (partial(as_table, delimiter=";", encoding="utf-8-sig"), "a.csv", {"id": 7, **RAG}, None),
    "CSV in cp1252": (partial(as_table, delimiter=";", encoding="cp1252"), "a.csv", {**RAG, "note": "Brücke"}, None),
    "CSV in UTF-16": (partial(as_table, delimiter="\t", encoding="utf-16"), "a.csv", {**RAG, "note": "Brücke"}, None),
    "CSV in gzip": (partial(packed, as_table), "a.csv.gz", RAG, None),
    "JSON lines in gzip": (partial(packed, as_lines), "a.jsonl.gz", NEW, None),
    "one object in gzip": (partial(packed, as_columns), "a.json.gz", OLD, None),
    "Parquet in gzip": (partial(packed, as_parquet), "a.parquet.gz", NEW, None),
    "CSV with a list in a cell": (as_table, "a.csv", {**RAG, "context": json.dumps([EVIDENCE, "x"])}, None),
    "CSV of pandas with a list in a cell": (as_table, "a.csv", {**RAG, "context": str([EVIDENCE, "it's"])}, None),
    "evidence as text": (as_lines, "a.jsonl", {"id": "q", "evidence": EVIDENCE, "response": RESPONSE}, None),
    "evidence as texts": (as_lines, "a.jsonl", {"id": "q", "evidence": [EVIDENCE, "x"], "response": RESPONSE}, None),
    "evidence as an object": (as_lines, "a.jsonl", {"evidence": {"text": EVIDENCE}, "response": RESPONSE}, None),
    "evidence as documents": (
        as_lines, "a.jsonl", {"docs": [{"page_content": EVIDENCE, "metadata": {}}], "answer": RESPONSE}, None,
    ),
    "a number as id": (as_lines, "a.jsonl", {"id": 7, "evidence": [{"text": EVIDENCE}], "response": RESPONSE}, None),
    "no id": (as_lines, "a.jsonl", {"evidence": [{"text": EVIDENCE}], "response": RESPONSE}, None),
    "empty labels": (as_lines, "a.jsonl", {"id": "q", "evidence": EVIDENCE, "response": RESPONSE, "labels": []}, TRUE),
    "spans": (
        as_lines, "a.jsonl", {"id": "q", "evidence": [EVIDENCE], "response": RESPONSE, "spans": [SPAN]}, FALSE,
    ),
    "a JSON array": (as_json, "a.json", RAG, None),
    "JSON by column": (as_columns, "a.json", OLD, None),
    "Parquet": (as_parquet, "a.parquet", NEW, None),
    "Feather": (as_feather, "a.feather", NEW, None),
    "an Arrow stream": (as_stream, "a.arrow", NEW, None),
    "a folder of datasets": (as_saved, "saved", NEW, None),
    "Ragas": (as_lines, "a.jsonl", NEW, None),
    "Ragas before 0.2": (as_json, "a.json", OLD, None),
    "DeepEval": (
        as_lines, "a.jsonl",
        {"input": QUESTION, "actual_output": RESPONSE, "context": ["x"], "retrieval_context": [EVIDENCE]}, None,
    ),
    "MLflow": (
        as_lines, "a.jsonl",
        {"request": QUESTION, "response": RESPONSE, "retrieved_context": [{"content": EVIDENCE, "doc_uri": "d"}]}, None,
    ),
    "Phoenix": (as_table, "a.csv", {"query": QUESTION, "reference": EVIDENCE, "response": RESPONSE}, None),
    "Phoenix spans": (
        as_table, "a.csv",
        {"attributes.input.value": QUESTION, "attributes.output.value": RESPONSE,
         "attributes.retrieval.documents": json.dumps([{"document.content": EVIDENCE, "document.score": 0.5}])}, None,
    ),
    "Phoenix spans, nested": (
        as_lines, "a.jsonl",
        {"context": {"trace_id": "t"}, "attributes": {"input": {"value": QUESTION}, "output": {"value": RESPONSE},
         "retrieval": {"documents": [{"document": {"content": EVIDENCE, "score": 0.5}}]}}}, None,
    ),
    "Amazon Bedrock": (
        as_lines, "a.jsonl",
        {"conversationTurns": [
            {"inputRecord": {"prompt": {"content": [{"text": QUESTION}]}},
             "output": {"text": RESPONSE, "retrievedPassages": {"retrievalResults": [{"content": {"text": EVIDENCE}}]}},
             }]}, None,
    ),
    "Argilla": (
        as_json, "a.json",
        {"id": "r", "fields": {"question": QUESTION, "context": EVIDENCE, "answer": RESPONSE},
         "responses": {"label": [{"value": "unsupported", "user_id": "u", "status": "submitted"},
                                 {"value": "supported", "user_id": "v", "status": "discarded"}]}}, 1.0,
    ),
    "Argilla, flat": (
        as_lines, "a.jsonl",
        {"id": "r", "question": QUESTION, "context": EVIDENCE, "response": RESPONSE,
         "is_hallucinated.responses": ["no", "yes"], "is_hallucinated.responses.users": ["u", "v"],
         "is_hallucinated.responses.status": ["submitted", "draft"]}, 0.0,
    ),
    "TruLens": (as_lines, "a.jsonl", GRAPH, None),
    "LlamaIndex": (as_lines, "a.jsonl", {"query": QUESTION, "contexts": [EVIDENCE], "response": RESPONSE}, None),
    "promptfoo": (
        as_results, "a.json",
        {"vars": {"query": QUESTION, "context": EVIDENCE}, "response": {"output": RESPONSE}}, None,
    ),
    "RAGChecker": (
        as_results, "a.json",
        {"query": QUESTION, "response": RESPONSE, "retrieved_context": [{"doc_id": "0", "text": EVIDENCE}]}, None,
    ),
    "DeepEval in TypeScript": (
        as_lines, "a.jsonl",
        {"input": QUESTION, "actualOutput": RESPONSE, "context": ["x"], "retrievalContext": [EVIDENCE]}, None,
    ),
    "Haystack": (
        as_lines, "a.jsonl", {"query": QUESTION, "replies": [RESPONSE], "documents": [{"content": EVIDENCE}]}, None,
    ),
    "OpenAI responses": (
        as_lines, "a.jsonl",
        {"input": QUESTION, "context": EVIDENCE,
         "output": [{"role": "assistant", "content": [{"type": "output_text", "text": RESPONSE}]}]}, None,
    ),
    "OpenAI evals": (
        as_lines, "a.jsonl",
        {"item": {"question": QUESTION, "context": EVIDENCE}, "sample": {"output_text": RESPONSE, "model": "m"}}, None,
    ),
    "LangSmith": (
        as_lines, "a.jsonl",
        {"id": "r", "inputs": {"question": QUESTION}, "outputs": {"answer": RESPONSE, "contexts": [EVIDENCE]}}, None,
    ),
    "chat messages": (
        as_lines, "a.jsonl",
        {"messages": [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": RESPONSE}],
         "context": EVIDENCE}, None,
    ),
    "a message as response": (
        as_lines, "a.jsonl",
        {"id": "q", "question": {"role": "user", "content": QUESTION}, "evidence": EVIDENCE,
         "response": {"role": "assistant", "content": RESPONSE}}, None,
    ),
    "messages as JSON in a cell": (
        as_table, "a.csv",
        {"messages": json.dumps([{"role": "user", "content": QUESTION}, {"role": "assistant", "content": RESPONSE}]),
         "context": EVIDENCE}, None,
    ),
    "messages with those of a tool": (
        as_lines, "a.jsonl",
        {"messages": [
            {"role": "user", "content": QUESTION}, {"role": "assistant", "content": None, "tool_calls": [{}]},
            {"role": "tool", "content": EVIDENCE}, {"role": "assistant", "content": RESPONSE}]}, None,
    ),
    "JSON of a tool beside the answer": (
        as_lines, "a.jsonl",
        {"input": {"messages": [
            {"role": "user", "content": QUESTION},
            {"role": "tool", "content": json.dumps({"results": [{"text": EVIDENCE, "score": 0.5}]})}]},
         "output": {"role": "assistant", "content": RESPONSE}}, None,
    ),
    "LangChain messages": (
        as_lines, "a.jsonl",
        {"messages": [{"type": "human", "content": QUESTION}, {"type": "tool", "data": {"content": EVIDENCE}},
                      {"lc": 1, "type": "constructor", "kwargs": {"type": "ai", "content": RESPONSE}}]}, None,
    ),
    "ShareGPT": (
        as_json, "a.json",
        {"conversations": [{"from": "human", "value": QUESTION}, {"from": "tool", "value": EVIDENCE},
                           {"from": "gpt", "value": RESPONSE}]}, None,
    ),
    "a list as NumPy prints it": (
        as_table, "a.csv",
        {"question": QUESTION, "contexts": f"['{EVIDENCE}'\n \"It's old.\"]", "answer": RESPONSE}, None,
    ),
    "RAGTruth, processed": (
        as_table, "a.csv",
        {"query": QUESTION, "context": EVIDENCE, "output": RESPONSE, "hallucination_labels": json.dumps([SPAN])}, FALSE,
    ),
    "HaluBench": (
        as_parquet, "a.parquet",
        {"passage": EVIDENCE, "question": QUESTION, "answer": RESPONSE, "label": "FAIL", "source_ds": "DROP"}, 1.0,
    ),
    "HaluEval": (
        as_json, "a.json",
        {"knowledge": EVIDENCE, "question": QUESTION, "answer": RESPONSE, "hallucination": "yes"}, 1.0,
    ),
    "LLM-AggreFact": (as_table, "a.csv", {"dataset": "x", "doc": EVIDENCE, "claim": RESPONSE, "label": 0}, 1.0),
    "AggreFact and SummaC": (
        as_lines, "a.jsonl",
        {"document": EVIDENCE, "claim": RESPONSE, "label": 0, "cut": "val", "dataset": "cogensumm"}, 1.0,
    ),
    "TRUE": (as_table, "a.csv", {"grounding": EVIDENCE, "generated_text": RESPONSE, "label": 1}, 0.0),
    "FEVER": (as_lines, "a.jsonl", {"id": 3, "claim": RESPONSE, "evidence": EVIDENCE, "label": "REFUTES"}, 1.0),
    "lm-evaluation-harness": (
        as_lines, "a.jsonl",
        {"doc": {"question": QUESTION, "context": EVIDENCE}, "target": "1897", "filtered_resps": [RESPONSE]}, None,
    ),
    "Prodigy": (
        as_lines, "a.jsonl", {"text": RESPONSE, "context": EVIDENCE, "answer": "accept", "_input_hash": 1}, None,
    ),
    "HHEM": (as_table, "a.csv", {"premise": EVIDENCE, "hypothesis": RESPONSE}, None),
    "SQuAD": (
        as_parquet, "a.parquet",
        {"id": "s", "context": EVIDENCE, "question": QUESTION, "answers": {"text": [RESPONSE]}}, None,
    ),
    "summaries": (as_table, "a.csv", {"article": EVIDENCE, "highlights": RESPONSE}, None),
    "translations": (as_table, "a.tsv", {"src": "Sie wurde 1879 eröffnet.", "mt": RESPONSE, "lang": "en"}, None),
}  # fmt: skip


def test_every_preset_is_tried() -> None:
    assert {preset.name for preset in PRESETS} <= set(SHAPES)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_is_read_by_the_command_and_by_python(
    shape: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    write, name, row, label = SHAPES[shape]
    second = {**row, "id": type(row["id"])(8)} if "id" in row else row
    path = tmp_path / name
    write(path, [row, second])
    samples = list(veriglot.read(path))
    assert len(samples) == (4 if shape == "a folder of datasets" else 2)
    assert all(sample.response == RESPONSE and sample.evidence[0].text for sample in samples)
    assert len({sample.id for sample in samples}) == len(samples)
    expected = {"translations": "Sie wurde 1879 eröffnet."}.get(shape, EVIDENCE)
    assert samples[0].evidence[0].text == expected
    asks = any(value == QUESTION for value in row.values()) or QUESTION in str(row)
    assert samples[0].question == (QUESTION if asks else None)
    assert asks or samples[0].task is not Task.QA
    annotations = samples[0].annotations
    if label is None:
        assert not annotations
    elif isinstance(label, float):
        assert (annotations[0].spans, annotations[0].ratings) == (None, {"unsupported": label})
    else:
        assert tuple((span.start, span.end) for span in annotations[0].spans or ()) == label[1]
        assert annotations[0].spans is not None
    assert main(["detect", str(path)]) == 0
    out, err = capsysbinary.readouterr()
    predictions = [json.loads(line) for line in out.splitlines()]
    assert [prediction["status"] for prediction in predictions] == ["scored"] * len(samples)
    assert [prediction["id"] for prediction in predictions] == [sample.id for sample in samples]
    assert err.decode().count("read as ") == (2 if path.is_dir() else 1)


@pytest.mark.parametrize(
    ("row", "message", "remedy"),
    [
        ({"q": QUESTION, "tekst_a": RESPONSE, "tekst_b": EVIDENCE}, "its keys are q, tekst_a, tekst_b",
         "--map response=tekst_a,evidence=tekst_b,question=q\n"),
        ({"user": QUESTION, "gen": RESPONSE, "ref_passage": EVIDENCE * 3}, "hold the response",
         "--map response=gen,evidence=ref_passage,question=user\n"),
        ({"answer": RESPONSE, "output": "x", "context": EVIDENCE}, "could be in answer or output",
         "--map response=answer or --map response=output"),
        ({"response": RESPONSE, "document": EVIDENCE, "passage": EVIDENCE}, "could be in document or passage",
         "--map evidence=document or --map evidence=passage"),
        ({"question": QUESTION, "answer": RESPONSE}, "hold the evidence", "--map response=answer,evidence=COLUMN"),
        ({"Frage": QUESTION, "Antwort des Bots": RESPONSE, "Quelle": EVIDENCE * 3}, "hold the response",
         "--map 'response=Antwort des Bots,evidence=Quelle,question=Frage'\n"),
    ],
)  # fmt: skip
def test_the_error_for_an_unknown_shape_lists_its_keys_and_a_map_that_works(
    row: dict[str, str], message: str, remedy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    as_table(path, [row])
    assert main(["detect", str(path)]) == 1
    said = capsys.readouterr().err
    assert message in said
    assert remedy in said
    if "COLUMN" not in remedy:  # what it says does
        columns = shlex.split(remedy.split("--map ")[1])[0]
        assert main(["detect", str(path), "--map", columns]) == 0


def test_rows_with_one_id_can_be_numbered_as_the_message_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    as_table(path, [{"id": "x", "context": EVIDENCE, "answer": RESPONSE}] * 2)
    assert main(["detect", str(path)]) == 3
    assert "or number the rows: --map id=\n" in capsys.readouterr().err
    assert main(["detect", str(path), "--map", "id="]) == 0


def test_map_and_the_table_columns_mean_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, config = tmp_path / "a.csv", tmp_path / "c.toml"
    rows = [{"q": QUESTION, "out": RESPONSE, "a": EVIDENCE, "b": "x", "bad": 1}]
    as_table(path, [*rows, {**rows[0], "out": "It was opened in 1897.", "bad": 0}])
    config.write_text('[columns]\nresponse = "out"\nevidence = "a+b"\nquestion = "q"\nunsupported = "bad"\n')
    assert main(["evaluate", str(path), "--config", str(config), "--json"]) == 0
    by_file = json.loads(capsys.readouterr().out)
    columns = "response=out, evidence=a+b,question=q,unsupported=bad"
    assert main(["evaluate", str(path), "--map", columns, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == by_file
    samples = list(veriglot.read(path, columns=columns_from([columns])))
    assert [passage.text for passage in samples[0].evidence] == [EVIDENCE, "x"]
    assert samples[0].question == QUESTION
    assert main(["convert", str(path), "--map", columns, "-o", str(tmp_path / "b.jsonl")]) == 0
    assert list(veriglot.read(tmp_path / "b.jsonl")) == samples


def test_a_map_of_unknown_repeated_or_absent_names_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="maps nothing"):
        columns_from(["response"])
    with pytest.raises(UsageError, match="mapped twice"):
        columns_from(["response=a", "response=b"])
    with pytest.raises(UnknownNameError, match="evidence"):
        columns_from(["evidense=a"])
    assert columns_from(["evidence=a, b,response=c"]) == {"evidence": "a, b", "response": "c"}
    as_table(tmp_path / "a.csv", [RAG])
    with pytest.raises(InputError, match=r"a\.csv: there is no column 'reply'"):
        list(veriglot.read(tmp_path / "a.csv", columns={"response": "reply"}))
    with pytest.raises(UsageError, match="columns of its own"):
        list(veriglot.read(tmp_path / "a.csv", format="hat", columns={"response": "answer"}))


@pytest.mark.parametrize(
    ("column", "value", "unsupported"),
    [
        ("is_wrong", 1, 1), ("is_wrong", False, 0), ("hallucinated", "no", 0), ("is_supported", "TRUE", 0),
        ("label", "Wrong", 1), ("label", "right", 0), ("is_faithful", 0, 1), ("label", "Supported", 0),
        ("label", "not supported", 1), ("label", "PASS", 0), ("is_faithful", "нет", 1), ("is_supported", "Ja", 0),
        ("verdict", "hallucinated", 1), ("label", "", None), ("label", None, None), ("label", float("nan"), None),
    ],
)  # fmt: skip
def test_a_label_column_rates_the_whole_response(column: str, value: object, unsupported: int | None) -> None:
    annotations = read_row({**RAG, column: value}).annotations
    assert [annotation.ratings for annotation in annotations] == (
        [] if unsupported is None else [{"unsupported": unsupported}]
    )


@pytest.mark.parametrize(
    ("label", "unsupported"),
    [
        ("e", 0), ("n", 1), ("C", 1), ("ent", 0), ("neu", 1), ("cnt", 1),
        ("entailment", 0), ("neutral", 1), ("contradiction", 1), ("non-entailment", 1), ("NEI", 1),
    ],
)  # fmt: skip
def test_labels_of_natural_language_inference(label: str, unsupported: int) -> None:
    """The letters, which mean other things elsewhere, beside a premise alone."""
    row = {"Premise": EVIDENCE, "hypothesis": RESPONSE, "Label": label}
    assert read_row(row).annotations[0].ratings == {"unsupported": unsupported}
    if len(label) < 4:
        assert read_row({**RAG, "label": label}).annotations == () or label == "NEI"


@pytest.mark.parametrize(
    "span",
    [
        {"start": 17, "end": 21}, [17, 21], {"startIndex": 17, "endIndex": 21}, {"offset": 17, "length": 4},
        {"begin": 17, "stop": 21, "text": "1879"}, {"text": "1879"}, "1879", {"start": 3, "end": 7, "text": "1879"},
    ],
)  # fmt: skip
def test_span_offsets_are_read_under_any_usual_key(span: object) -> None:
    (annotation,) = read_row({**RAG, "spans": [span]}).annotations
    assert [(each.start, each.end, each.type) for each in annotation.spans or ()] == [(17, 21, "hallucination")]


def test_types_of_spans_keep_their_taxonomy() -> None:
    (typed,) = read_row({**RAG, "spans": [{"start": 17, "end": 21, "type": "entity"}]}).annotations
    (of_ragtruth,) = read_row({**RAG, "labels": [SPAN]}).annotations
    assert (typed.taxonomy, of_ragtruth.taxonomy) == ("fava", "support")
    assert (of_ragtruth.spans or ())[0].type == "contradicted"
    for span, message in (({"start": 17, "end": 99}, "not lie"), ({"text": "e"}, "occurs 2"), ({"at": 3}, "`start`")):
        with pytest.raises(InputError, match=message):
            read_row({**RAG, "spans": [span]})


def test_labels_that_nobody_can_understand_are_refused_where_they_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    rows = [{**RAG, "label": 1}, {**RAG, "answer": "It was opened in 1897.", "label": 0}]
    as_table(path, rows)
    assert main(["detect", str(path)]) == 0
    assert "labels are not used: 'label' does not say" in capsys.readouterr().err
    assert next(veriglot.read(path)).meta["label"] == "1"
    assert main(["evaluate", str(path)]) == 1
    assert "--map unsupported=label if 1 or true is unsupported" in capsys.readouterr().err
    assert main(["evaluate", str(path), "--map", "unsupported=label", "--json"]) == 0
    figures = {(f["level"], f["name"]): f["value"] for f in json.loads(capsys.readouterr().out)["figures"]
               if f["language"] == "pooled"}  # fmt: skip
    assert figures["response", "recall"] == figures["response", "precision"] == 1.0
    assert not any(level == "word" for level, _ in figures), "nobody said which words"
    as_table(path, [{**RAG, "label": "perhaps"}])
    assert main(["evaluate", str(path)]) == 1
    error = capsys.readouterr().err
    assert "'perhaps' in 'label' is not known" in error
    assert "entailment, neutral, contradiction" in error


def test_rows_whose_keys_change_are_read_and_what_cannot_be_is_placed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.jsonl"
    native = {"id": "x", "response": RESPONSE, "evidence": [{"text": EVIDENCE}]}
    as_lines(path, [native, {**native, "id": 2}, {**native, "id": "y", "evidence": EVIDENCE}, {**native, "id": "x"}])
    rows = list(read_rows(path))
    assert [getattr(row, "id", None) for row in rows] == ["x", "2", "y", None]
    with caplog.at_level(logging.INFO, "veriglot.formats"):
        as_lines(path, [OLD, {**OLD, "spans": ["1879"]}, {"question": "?", "contexts": []}, {**OLD, "answer": None}])
        rows = list(read_rows(path))
    assert [isinstance(row, FailedRow) for row in rows] == [False, False, True, True]
    assert [row.line for row in rows if isinstance(row, FailedRow)] == [3, 4]
    assert [record.getMessage().split("read as ")[1] for record in caplog.records] == [
        "Ragas before 0.2 rows, response from answer, evidence from contexts, question, id from the line", "spans",
    ]  # fmt: skip


def test_files_of_one_name_in_two_folders_keep_their_rows_apart(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        as_table(tmp_path / folder / "rows.csv", [RAG])
    assert [sample.id for sample in veriglot.read(tmp_path)] == ["rows-2", "b/rows-2"]


def test_a_row_in_python_is_read_as_a_row_of_a_file() -> None:
    sample = read_row({**OLD, "model": "m", "lang": "German", "extra": 1}, id_="row-3")
    assert (sample.id, sample.language, sample.task) == ("row-3", "de", Task.QA)
    assert sample.generator is not None
    assert sample.generator.name == "m"
    assert sample.meta == {"ground_truth": "1897", "extra": 1}
    assert read_row({"outputs": {"answer": RESPONSE}, "kb": EVIDENCE}, columns={"evidence": "kb"}).response == RESPONSE
    assert read_row({"answer": RESPONSE}, columns={"evidence": ""}).evidence == ()
    titled = [["Bridge", ["It was opened.", " In 1897."]], ["Other", ["x"]]]
    assert [(p.title, p.text) for p in read_row({"context": titled, "answer": "x"}).evidence] == [
        ("Bridge", "It was opened. In 1897."), ("Other", "x"),
    ]  # fmt: skip
    with pytest.raises(InputError, match="a text is expected, but this is list of 2") as error:
        read_row({"context": EVIDENCE, "answer": ["a", "b"]})
    assert error.value.remedy == "Give the path of the text in it, such as --map response=COLUMN.0.text."


@pytest.mark.parametrize(
    ("column", "unsupported"),
    [
        ("invalid", 1), ("not_entailed", 1), ("not_fully_supported", 1), ("unattributable", 1), ("lackOfSupport", 1),
        ("hallucination_free", 0), ("noHallucination", 0), ("has_no_errors", 0), ("not_wrong", 0), ("isValid", 0),
    ],
)  # fmt: skip
def test_a_1_is_read_by_what_its_column_name_negates(column: str, unsupported: int) -> None:
    (annotation,) = read_row({**RAG, column: 1}, columns={"label": column}).annotations
    assert annotation.ratings == {"unsupported": unsupported}
    for vague in ("ground_truth", "true_label", "copyright"):
        assert not read_row({**RAG, vague: 1}, columns={"label": vague}).annotations


def test_a_label_that_contradicts_the_spans_beside_it_is_left_in_meta() -> None:
    (whole,) = read_row({**RAG, "spans": [], "is_wrong": 1}).annotations
    assert (whole.spans, whole.ratings) == (None, {"unsupported": 1})
    for contradiction in ({"spans": ["1879"], "is_wrong": 0}, {"good": 1, "bad": 1}, {"labels": "1879", "is_wrong": 0}):
        columns = {"supported": "good", "unsupported": "bad"} if "good" in contradiction else None
        sample = read_row({**RAG, **contradiction}, columns=columns)
        assert not sample.annotations
        assert sample.meta == contradiction
    zero = read_row({**RAG, "answer": "It has 0 arches.", "labels": "0"})
    assert not zero.annotations  # a label that does not say what it means, no quotation of the nought
    assert read_row({**RAG, "labels": ["bridges", "easy"]}).meta == {"labels": ["bridges", "easy"]}


def test_labels_of_native_rows_after_the_first_count(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    native = {"id": "x", "response": RESPONSE, "evidence": [{"text": EVIDENCE}]}
    rows = [native, {**native, "id": "y", "is_wrong": 1}, {**native, "id": 3, "evidence": EVIDENCE, "is_wrong": 0}]
    as_lines(path, [*rows, {**native, "id": "z", "label": 1}])
    *read, unclear = read_rows(path, labelled=True)
    assert [[a.ratings for a in row.annotations] for row in read if not isinstance(row, FailedRow)] == [
        [], [{"unsupported": 1}], [{"unsupported": 0}],
    ]  # fmt: skip
    assert isinstance(unclear, FailedRow)


def test_ids_of_any_usual_name_and_numbers_keep_their_digits() -> None:
    assert [read_row({**RAG, "id": id_}).id for id_ in (1234567.0, 1234568.0, 7)] == ["1234567", "1234568", "7"]
    assert {read_row({**RAG, name: "x"}).id for name in ("item_id", "traceId", "uid", "response_id", "pairID")} == {"x"}
    assert read_row({"context": EVIDENCE, "answer": 3.14159265}).response == "3.14159265"


def test_columns_of_one_name_are_all_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("sep=;\ncontext;context;answer\none;two;three\n", "utf-8")
    (sample,) = veriglot.read(path)
    assert ([passage.text for passage in sample.evidence], sample.response) == (["one", "two"], "three")
    path.write_text("\n\ncontext,answer,answer\none,two,three\n", "utf-8")
    with pytest.raises(InputError, match="could be in answer or answer_2"):
        list(veriglot.read(path))


def test_a_mapped_column_that_is_absent_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    as_table(tmp_path / "a.csv", [{**RAG, "is_wrong": 1}])
    with pytest.raises(InputError, match="there is no column 'is_wrnog'"):
        list(veriglot.read(tmp_path / "a.csv", columns={"label": "is_wrnog"}))
    as_lines(tmp_path / "a.jsonl", [{**RAG, "is_wrong": 1}])
    with caplog.at_level(logging.INFO, "veriglot.formats"):
        list(veriglot.read(tmp_path / "a.jsonl", columns={"label": "is_wrnog"}))
    assert caplog.messages[-1].endswith("a.jsonl: no row has the column is_wrnog (label)")


def test_rows_of_a_json_array_stay_whole_whatever_is_in_them(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": RESPONSE}]
    rows = [{"messages": talk, "documents": [{"text": EVIDENCE}, {"text": "x"}]}]
    as_json(tmp_path / "a.json", rows)
    as_json(tmp_path / "b.json", [{"id": 1, "contexts": [{"text": EVIDENCE}], "answer": 1879}])
    responses = [sample.response for name in "ab" for sample in veriglot.read(tmp_path / f"{name}.json")]
    assert responses == [RESPONSE, "1879"]


def test_every_turn_and_every_annotator_of_a_row_counts(tmp_path: Path) -> None:
    turn = {"prompt": {"content": [{"text": QUESTION}]}, "output": {"text": RESPONSE, "retrievedPassages": [EVIDENCE]}}
    as_lines(tmp_path / "a.jsonl", [{"conversationTurns": [turn, turn]}])
    assert [sample.id for sample in veriglot.read(tmp_path / "a.jsonl")] == ["a-1", "a-1-1"]
    answers = [
        [{"value": value, "user_id": user} for user, value in each]
        for each in ([("u", "yes"), ("v", "no")], [("u", [{"start": 17, "end": 21, "label": "entity"}])])
    ]
    responses = dict(zip(("is_hallucinated", "spans"), answers, strict=True))
    as_lines(
        tmp_path / "b.jsonl", [{"id": "r", "fields": {"context": EVIDENCE, "answer": RESPONSE}, "responses": responses}]
    )
    (sample,) = veriglot.read(tmp_path / "b.jsonl")
    labels = {layer.annotator: (layer.spans and layer.spans[0].start, layer.ratings) for layer in sample.annotations}
    assert labels == {"u": (17, {"unsupported": 1}), "v": (None, {"unsupported": 0})}
    as_lines(tmp_path / "c.jsonl", [{**RAG, "label.responses": None, "label.responses.users": None}])
    (sample,) = veriglot.read(tmp_path / "c.jsonl")  # nobody labelled it
    assert not sample.annotations


def test_names_are_compared_once_however_many_rows_cannot_be_read(tmp_path: Path) -> None:
    strange = {"text_of_context": EVIDENCE, "what_it_said": RESPONSE, **{f"column_{i}": EVIDENCE for i in range(10)}}
    as_lines(tmp_path / "a.jsonl", [RAG, *[strange] * 500])
    _name_likeness.cache_clear()
    assert sum(isinstance(row, FailedRow) for row in read_rows(tmp_path / "a.jsonl")) == 500
    compared = _name_likeness.cache_info()
    assert 0 < compared.misses <= compared.hits / 100


def test_the_same_map_goes_on_however_it_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    as_table(tmp_path / "a.csv", [RAG])
    command = ["detect", str(tmp_path / "a.csv"), "-o", str(tmp_path / "out.jsonl")]
    assert main([*command, "--map", "response=answer,evidence=context"]) == 0
    assert main([*command, "--map", "evidence=context", "--map", "response=answer"]) == 0
    assert "done by an earlier run" in capsys.readouterr().err
    assert main([*command, "--map", "evidence=answer,response=context"]) == 2


CONTINUED = "德国外长表示，各国将继续推进明斯克协议的执行，以确保地区的和平与稳定。"


@pytest.mark.parametrize(
    ("row", "proposed"),
    [
        ({"broadcastDate": "2015-01-22 12:16:02", "newsBeginning": CONTINUED, "continuation": CONTINUED,
          "newsRemainder": CONTINUED * 4}, "response=COLUMN,evidence=newsRemainder"),
        ({"article": EVIDENCE, "reference_summary": RESPONSE, "edited_summary": RESPONSE},
         "response=COLUMN,evidence=article"),
        ({"source_file": "f0c498d1-45ef-4826-9a78-fe3d95ddacd7.txt", "ans1_text": RESPONSE, "ans2_text": RESPONSE * 3},
         "response=COLUMN,evidence=COLUMN"),
        ({"page": "https://example.org/a page/of many words.html", "tekst_b": EVIDENCE},
         "response=COLUMN,evidence=tekst_b"),
        ({"response": RESPONSE, "claim": RESPONSE, "belege": [{"text": EVIDENCE * 3}]},
         "response=response,evidence=belege"),
    ],
)  # fmt: skip
def test_a_column_is_proposed_only_if_its_text_fits_and_no_other_does(row: dict[str, Any], proposed: str) -> None:
    with pytest.raises(InputError) as error:
        read_row(row)
    assert error.value.remedy.partition("; ")[0].endswith(f"--map {proposed}")


def test_a_map_that_was_refused_is_not_proposed() -> None:
    row = {"article": EVIDENCE, "pages": [EVIDENCE], "summary_sentences": [{"sentence": RESPONSE}]}
    columns = {"response": "summary_sentences.1.sentence", "evidence": "article + pages"}
    with pytest.raises(InputError, match=r"no column 'summary_sentences\.1\.sentence'") as error:
        read_row(row, columns=columns)
    assert "--map 'response=COLUMN,evidence=article + pages'" in error.value.remedy
    with pytest.raises(InputError, match="but this is list of 1"):
        read_row(row, columns={**columns, "response": "summary_sentences"})


def test_evidence_of_another_name_beside_id_and_response_is_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    row = {"id": "a", "response": RESPONSE, "references": [EVIDENCE]}
    as_lines(tmp_path / "a.jsonl", [row])
    with caplog.at_level(logging.INFO, "veriglot.formats"):
        (sample,) = veriglot.read(tmp_path / "a.jsonl")
    assert [passage.text for passage in sample.evidence] == [EVIDENCE]
    assert caplog.messages[0].endswith("read as id, response, evidence from references")
    as_lines(tmp_path / "a.jsonl", [{**row, "document": EVIDENCE, "passage": EVIDENCE}])
    with pytest.raises(InputError, match="could be in document or passage"):
        list(veriglot.read(tmp_path / "a.jsonl"))


def test_labels_of_which_some_are_unknown_are_not_used_in_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "a.csv", tmp_path / "b.jsonl"
    as_table(path, [{**RAG, "label": label} for label in ("cnt", "neutral", "ent")])
    assert main(["convert", str(path), "-o", str(out)]) == 1
    assert "'cnt' in 'label' is not known" in (error := capsys.readouterr().err)
    assert "--map unsupported=COLUMN" in error
    assert not out.exists()
    assert main(["convert", str(path), "--map", "label=", "-o", str(out)]) == 0
    assert [sample.annotations for sample in veriglot.read(path)] == [()] * 3


def test_a_conversation_is_no_evidence_of_what_is_said_in_it() -> None:
    talk = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": RESPONSE}]
    for columns in (None, {"response": "messages", "evidence": "messages"}):
        with pytest.raises(InputError, match=r"no message has the role tool.*--map evidence=COLUMN"):
            read_row({"messages": talk}, columns=columns)
    assert len(read_row({"dialogue": talk, "summary": RESPONSE}).evidence) == 2
    with pytest.raises(InputError, match="no message has the role assistant"):
        read_row({"messages": talk[:1], "context": EVIDENCE})


def test_evidence_in_the_triples_of_fever() -> None:
    triples = [["Bridge", 0, EVIDENCE], ["Bridge", 1, "It is long."]]
    sample = read_row({"claim": RESPONSE, "evidence": triples, "label": "REFUTES"})
    assert [(p.title, p.text) for p in sample.evidence] == [("Bridge", EVIDENCE), ("Bridge", "It is long.")]
    with pytest.raises(InputError, match="objects with `text`"):
        read_row({"claim": RESPONSE, "evidence": [[[92206, 104971, "Bridge", 7]]], "label": "REFUTES"})


@pytest.mark.parametrize("columns", [{"evidence": ["a", "b"]}, "response=x"])
def test_columns_that_are_no_names_under_names_are_refused(columns: Any, tmp_path: Path) -> None:
    as_table(tmp_path / "a.csv", [RAG])
    for read in (
        lambda: list(veriglot.read(tmp_path / "a.csv", columns=columns)),
        lambda: read_row(RAG, columns=columns),
    ):
        with pytest.raises(UsageError, match=r'"evidence": "a\+b"'):
            read()


def test_what_python_writes_beside_json_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(
        '{"id": "a", "context": "x", "answer": "y", "score": NaN}\n{"id": "b", "context": "x", "answer": "\\ud83d!"}\n'
    )
    assert [sample.response for sample in veriglot.read(path)] == ["y", "\ufffd!"]


def test_a_first_row_longer_than_what_is_looked_at_is_known_by_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_text(json.dumps({"id": "a", "context": "Ciao mondo. " * 200_000, "answer": "Ciao."}) + "\n")
    assert [sample.response for sample in veriglot.read(path)] == ["Ciao."]


def test_a_completion_of_a_service_is_a_response() -> None:
    for choice in {"message": {"role": "assistant", "content": RESPONSE}}, {"text": RESPONSE, "finish_reason": "stop"}:
        for row in {"response": {"choices": [choice]}}, {"choices": [choice]}:
            assert read_row({**row, "context": EVIDENCE}).response == RESPONSE


def test_a_misspelt_file_name_gets_the_nearest_one_suggested(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("evidence,response\na,b\n")
    with pytest.raises(InputError, match=r"Did you mean .*answers\.csv"):
        list(veriglot.read(tmp_path / "answers.cvs"))


@pytest.mark.parametrize(
    "evidence",
    [
        [{"node": {"id_": "n0", "text": EVIDENCE, "metadata": {"page": 1}}, "score": 0.8}],
        [{"type": "RETRIEVER", "output": [{"pageContent": EVIDENCE}]}],
        [{"id": "7", "score": 0.8, "payload": {"text": EVIDENCE}}],
        [{"document": {"page_content": EVIDENCE}, "score": 0.8}],
    ],
)
def test_the_text_of_evidence_is_sought_in_what_wraps_it(evidence: Any) -> None:
    sample = read_row({"query": QUESTION, "response": RESPONSE, "source_nodes": evidence})
    assert sample.passages == [EVIDENCE]
    assert sample_from_row({"response": RESPONSE, "evidence": evidence}, "0").evidence == sample.evidence


def test_evidence_without_a_known_text_is_refused() -> None:
    with pytest.raises(InputError, match="no text under a known key: its keys are name, weight"):
        read_row({"response": "It weighs 0.8 kg.", "evidence": [{"name": "kettle", "weight": 0.8}]})


def test_a_map_reaches_into_lists_by_position() -> None:
    talk = [{"role": "system", "content": EVIDENCE}, {"role": "user", "content": QUESTION}]
    choices = [{"message": {"role": "assistant", "content": RESPONSE}}]
    columns = {"evidence": "messages.0.content", "response": "choices.0.message.content"}
    sample = read_row({"messages": talk, "choices": choices}, columns=columns)
    assert (sample.passages, sample.question, sample.response) == ([EVIDENCE], QUESTION, RESPONSE)
    row = {"messages": [*talk, choices[0]["message"]]}
    assert read_row(row, columns={"evidence": "messages.0.content"}).response == RESPONSE
    with pytest.raises(InputError, match=r"no column 'messages\.9\.content'"):
        read_row(row, columns={"evidence": "messages.9.content"})
    with pytest.raises(InputError, match=r"no message has the role tool.*evidence=messages\.0\.content"):
        read_row(row, columns={"evidence": "messages"})


def test_the_remedy_is_columns_in_python_and_map_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, row = tmp_path / "a.jsonl", {"a b": "one two three", "xx": "It was opened in 1897, they say."}
    path.write_text(json.dumps(row) + "\n")
    for read in (lambda: list(veriglot.read(path)), lambda: list(veriglot.detect_many([row]))):
        with pytest.raises(InputError, match=r"Add columns=\{'response': 'a b', 'evidence': 'xx'\}$"):
            read()
    assert main(["detect", str(path)]) == 1
    assert "Add --map 'response=a b,evidence=xx'\n" in capsys.readouterr().err


def test_rows_are_named_and_unknown_languages_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"evidence": EVIDENCE, "response": RESPONSE}
    rows = [{**row, "id": "a", "language": "Englisch"}, {**row, "id": "b", "language": "klingon!!"}]
    as_lines(tmp_path / "a.jsonl", [*rows, {**row, "id": "c", "response": ""}])
    assert main(["detect", str(tmp_path / "a.jsonl")]) == 3
    err = capsys.readouterr().err
    assert "the first failed row: c: the response is empty" in err
    assert "b: 'klingon!!' is no language" in err
    assert "unknown language: 1 (Englisch 1)" in err


def test_an_output_that_cannot_be_written_and_a_calibration_without_a_detector(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    as_lines(tmp_path / "a.jsonl", [{"id": "a", "evidence": EVIDENCE, "response": RESPONSE}])
    assert main(["detect", str(tmp_path / "a.jsonl"), "-o", "/proc/x.jsonl"]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert main(["detect", str(tmp_path / "a.jsonl"), "--set", "calibration=x"]) == 2
    assert "calibrated:auto" in capsys.readouterr().err
