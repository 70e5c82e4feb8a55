"""Bad input: a clear error with its place, and the rest of the file goes on."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import json_values

from veriglot.errors import InputError, UnknownNameError, VeriglotError
from veriglot.formats.base import FORMATS, FileReport, Reading, load_format
from veriglot.formats.containers import Source
from veriglot.formats.reader import SeenIds, guess, read_rows
from veriglot.formats.reader import read as read_file
from veriglot.formats.writer import write
from veriglot.records import Evidence, Sample
from veriglot.storage.checkpoint import FailedRow

pytestmark = pytest.mark.slow

GOOD = b'{"id":"%d","response":"rain"}'


def rows(path: Path, data: bytes, **options: object) -> list[Sample | FailedRow]:
    path.write_bytes(data)
    return list(read_rows(path, **options))  # type: ignore[arg-type]


def kinds(found: list[Sample | FailedRow]) -> list[str]:
    return [row.id if isinstance(row, Sample) else f"bad {row.line}" for row in found]


@pytest.mark.parametrize(
    ("line", "field", "message"),
    [
        (b'{"id":"x","response":"caf\xe9"}', None, "not valid UTF-8: byte 25 is 0xe9"),
        (b'{"id":"x","resp', None, "not valid JSON"),
        (b'{"id":"x"}', "response", "it is missing"),
        (b'{"id":7,"response":"rain"}', "id", "a string is expected, and this is a whole number"),
        (b'{"id":"x","response":"rain","evidence":"wet"}', "evidence", "a list is expected, and this is a string"),
        (b'{"id":"x","response":"rain","evidence":["wet"]}', "evidence[0]", 'as a list of objects: [{"text": "..."}]'),
        (b'["x"]', None, "a sample is a JSON object"),
        (b'{"id":"1","response":"rain"}', "id", "occurred before"),
        (
            b'{"id":"x","response":"rain","annotations":[{"annotator":"a","kind":"human","taxonomy":"fava",'
            b'"spans":[{"start":2,"end":9}]}]}',
            "annotations[0].spans[0]",
            "ends beyond the response of 4",
        ),
    ],
)
def test_a_bad_line_is_placed_and_the_rest_goes_on(
    tmp_path: Path, line: bytes, field: str | None, message: str
) -> None:
    path = tmp_path / "rows.jsonl"
    found = rows(path, GOOD % 1 + b"\n" + line + b"\n" + GOOD % 2 + b"\n", format="jsonl")
    assert kinds(found) == ["1", "bad 2", "2"]
    bad = found[1]
    assert isinstance(bad, FailedRow)
    assert (bad.path, bad.line) == (str(path), 2)
    assert message in str(bad.as_error())
    assert field is None or bad.field == field
    with pytest.raises(InputError, match="line 2"):
        list(read_file(path, format="jsonl"))


def test_predictions_are_told_from_samples(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"id":"1","status":"scored","score":0.1,"spans":[],"detector":"grounding@1.0"}\n')
    with pytest.raises(InputError, match=r"predictions, not samples\. Name the samples"):
        guess(path)


def test_the_raw_row_is_kept(tmp_path: Path) -> None:
    (bad,) = rows(tmp_path / "rows.jsonl", b'{"id":"caf\xe9"}\n', format="jsonl")
    assert isinstance(bad, FailedRow)
    assert bad.raw == '{"id":"caf\ufffd"}'


def test_a_byte_order_mark_crlf_and_empty_lines_are_skipped(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf" + GOOD % 1 + b"\r\n\r\n   \n" + GOOD % 2
    assert kinds(rows(tmp_path / "rows.jsonl", data)) == ["1", "2"]


def test_rows_of_empty_cells_are_no_rows(tmp_path: Path) -> None:
    data = b'answer;context;id\nYes.;It rains.;a\n;;\nNo.;It snows.;b\n ;"";\n;;;\n'
    assert kinds(rows(tmp_path / "rows.csv", data)) == ["a", "b"]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.csv"])
def test_utf16_is_read(tmp_path: Path, name: str) -> None:
    """PowerShell writes it with `>`, and Excel as Unicode text."""
    texts = {"rows.jsonl": '{"id":"1","response":"ŕäin"}\n{"id":"2","response":"𝄞"}\n'}
    texts |= {"rows.json": f"[{','.join(texts['rows.jsonl'].splitlines())}]"}
    text = texts.get(name, "id\tcontext\tanswer\n1\tx\tŕäin\n2\tx\t𝄞\n")
    found = rows(tmp_path / name, text.encode("utf-16"))
    assert [row.response for row in found if isinstance(row, Sample)] == ["ŕäin", "𝄞"]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.csv"])
@pytest.mark.parametrize("end", [b"A", b"\x3d\xd8", b"\x3d\xd8A\0\n\0"])
def test_damaged_utf16_is_a_bad_row(tmp_path: Path, name: str, end: bytes) -> None:
    """It ended in a report of a fault in Veriglot."""
    text = "id\tcontext\tanswer\n1\tx\ty\n" if name == "rows.csv" else '{"id":"1","response":"ŕäin"}\n'
    found = rows(tmp_path / name, text.encode("utf-16") + end)
    bad = found[-1]
    assert isinstance(bad, FailedRow)
    assert "this is not valid UTF-16" in bad.message


def test_xml_is_refused_with_what_to_save(tmp_path: Path) -> None:
    data = b'<?xml version="1.0"?><tmx><body><tu><tuv xml:lang="en"><seg>a</seg></tuv></tu></body></tmx>'
    with pytest.raises(InputError, match=r"XML, such as TMX or XLIFF.*CSV, JSON lines or Parquet"):
        rows(tmp_path / "memory.tmx", data)


def test_a_huge_line_is_skipped_without_being_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veriglot.formats.containers.MAX_LINE_BYTES", 1 << 20)
    path = tmp_path / "rows.jsonl"
    huge = b'{"id":"x","response":"' + b"a" * (50 << 20) + b'"}\n'
    path.write_bytes(GOOD % 1 + b"\n" + huge + GOOD % 2 + b"\n")
    del huge
    tracemalloc.start()
    found = list(read_rows(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert kinds(found) == ["1", "bad 2", "2"]
    assert isinstance(found[1], FailedRow)
    assert "longer than 1048576 bytes" in found[1].message
    assert peak < 20 << 20


def test_a_line_of_exactly_the_bound_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"
    line = GOOD % 1
    monkeypatch.setattr("veriglot.formats.containers.MAX_LINE_BYTES", len(line))
    assert kinds(rows(path, line + b"\n")) == ["1"]
    monkeypatch.setattr("veriglot.formats.containers.MAX_LINE_BYTES", len(line) - 1)
    assert kinds(rows(path, line)) == ["bad 1"]


def test_memory_does_not_grow_with_rows(tmp_path: Path) -> None:
    peaks = []
    for count in (500, 5000):
        path = tmp_path / f"{count}.jsonl"
        path.write_bytes(b"".join(b'{"id":"%d","response":"%s"}\n' % (i, b"r" * 2000) for i in range(count)))
        tracemalloc.start()
        assert sum(1 for _ in read_file(path)) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    ids = 4500 * 200  # the hashes of the ids, with the set around them
    assert peaks[1] < peaks[0] + ids + (1 << 20)


def test_an_absent_an_empty_and_an_unknown_file_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        list(read_file(tmp_path / "absent.jsonl"))
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(b" \n")
    for name in (None, "jsonl"):
        with pytest.raises(InputError, match="empty"):
            list(read_file(empty, format=name))
    other = tmp_path / "other.jsonl"
    other.write_bytes(b'{"a":1,"b":2}\n')
    with pytest.raises(InputError, match="its keys are a, b") as caught:
        list(read_file(other))
    assert "add columns={'response': 'COLUMN'" in caught.value.remedy
    with pytest.raises(InputError, match="no file of this folder"):
        list(read_file(tmp_path))
    with pytest.raises(UnknownNameError, match="mfava"):
        list(read_file(other, format="mfav"))


def test_a_wrong_guess_can_be_corrected(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"id": "1", "response": "rain", "tagged": "<entity>rain</entity>"}) + "\n")
    assert guess(path).format in {"inline", "jsonl"}
    (inline,) = read_file(path, format="inline")
    (native,) = read_file(path, format="jsonl")
    assert inline.annotations
    assert native.meta == {"tagged": "<entity>rain</entity>"}


def test_a_csv_row_with_a_missing_column_or_bad_bytes_is_one_failed_row(tmp_path: Path) -> None:
    path = tmp_path / "en_pairs.csv"
    path.write_bytes(
        b"original_sentence,edited_sentence,hallucination_type\r\n"
        b"It rains.,It snows.,Relation\r\n"
        b"It rains.,It snows.\r\n"
        b"It rains.,caf\xe9,Entity\r\n"
        b'"It rains\nin Lima.",It rains in Rome.,Entity\r\n'
    )
    found = list(read_rows(path))
    assert [type(row).__name__ for row in found] == ["Sample", "FailedRow", "FailedRow", "Sample"]
    assert [row.line for row in found if isinstance(row, FailedRow)] == [3, 4]


def test_a_cut_off_json_array_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "silver_german.json"
    path.write_bytes(b'[{"generated_text":"Es regnet.","silver_annotations":"Es regnet."},{"gener')
    (bad,) = read_rows(path)
    assert isinstance(bad, FailedRow)
    assert "not valid JSON" in bad.message


def test_a_cut_off_parquet_file_is_one_failed_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write([Sample("1", "rain")], path)
    path.write_bytes(path.read_bytes()[:-7])
    (bad,) = read_rows(path, format="parquet")
    assert isinstance(bad, FailedRow)
    assert "not readable as Parquet" in bad.message


class Standard:
    """Standard input made of bytes."""

    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


def test_standard_input_is_read_as_a_file_is(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"".join(GOOD % i + b" " * 1000 + b"\n" for i in range(3000))  # more than the look at its beginning takes
    monkeypatch.setattr("sys.stdin", Standard(data))
    assert [row.id for row in read_file("-")] == [str(i) for i in range(3000)]


@pytest.mark.parametrize("name", ["rows.parquet", "rows.jsonl.gz", "rows.parquet.gz", "rows.csv.gz"])
def test_standard_input_that_is_no_text_is_read_as_a_file_is(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name.removesuffix(".gz")
    samples = [Sample(str(i), f"rain {i}", evidence=(Evidence("rain", id="p0"),)) for i in range(3)]
    if path.suffix == ".csv":
        path.write_text("id,response,evidence\n" + "".join(f"{each.id},{each.response},rain\n" for each in samples))
    else:
        write(samples, path)
    data = path.read_bytes()
    monkeypatch.setattr("sys.stdin", Standard(gzip.compress(data) if name.endswith(".gz") else data))
    assert list(read_file("-")) == samples


@pytest.mark.fuzz
@given(
    st.binary(max_size=200)
    | st.lists(st.sampled_from([GOOD % 1, b"\n", b"{", b"[", b"\xff", b'"', b","])).map(b"".join)
)
def test_any_bytes_give_rows_or_an_error_of_ours(data: bytes) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        path.write_bytes(data)
        for name in (None, "jsonl", "mfava", "halluverse", "inline", "mlqe", "mqm", "guerreiro", "token-labels"):
            try:
                found = list(read_rows(path, format=name))
            except VeriglotError:
                continue
            assert all(isinstance(row, Sample | FailedRow) for row in found)


KEYS = """
    id response generated_text gold_annotations silver_annotations references labels source_id model_output_text
    hard_labels soft_labels annotations lang claim evidence claim_tokens non_supported_spans supporting_sentences label
    meta data paragraphs qas answers context llm_answer annotated_span prompt answer srcLocale tgtLocale source target
    errors spans start end text original edited type mt src error_spans mt_text hall_spans tgt_lang src_lang result
    value tagged annotated language question bbcid summary source_info query_1 reference_1 category confidence score
    taxonomy predictions
""".split()  # noqa: SIM905
keyed = st.recursive(
    json_values | st.sampled_from(["rain", "<entity>rain</entity>", "de", "entity"]),
    lambda inner: st.dictionaries(st.sampled_from(KEYS), inner, max_size=8) | st.lists(inner, max_size=3),
    max_leaves=20,
)


@pytest.mark.fuzz
@pytest.mark.parametrize("name", FORMATS.names())
@given(record=st.dictionaries(st.sampled_from(KEYS), keyed, max_size=12) | keyed)
def test_any_record_gives_samples_or_an_error_of_ours(name: str, record: object) -> None:
    format_ = load_format(name)
    reading = Reading(Source(__file__), FileReport(__file__, name))  # a file that is there: its encoding is told
    from veriglot.formats.containers import Record

    found = list(format_.rows(iter([Record(1, record)]), reading))
    assert all(isinstance(row, Sample | FailedRow) for row in found)


RECORDS: dict[str, object] = {
    "columns": {
        "uid": 7, "question": "Where?", "contexts": [{"content": "In Lima.", "doc_id": 3, "metadata": {"source": "u"}}],
        "answer": "In Rome.", "lang": "en", "is_wrong": 1,
        "spans": [{"startIndex": 3, "length": 4, "category": "entity"}],
    },
    "fava": {"annotated": "<entity><mark>Lima</mark><delete>Rome</delete></entity>.", "prompt": "Where?", "model": "m"},
    "guerreiro": {
        "": "7", "src": "Regen.", "mt": "Rain falls.", "ref": "Rain.", "repetitions": "0", "named-entities": "0",
        "omission": "1", "strong-unsupport": "1", "full-unsupport": "0",
    },
    "halluverse": {"original": "In Lima.", "edited": "In Rome.", "label": "Entity", "language": "English"},
    "halomi": {
        "src_lang": "deu_Latn", "tgt_lang": "eng_Latn", "src_text": "Regen.", "mt_text": "Rain falls.",
        "hall_spans": "Rain <<<falls>>>.", "class_hall": "2_Small", "class_omit": "1_No",
    },
    "hat": {
        "srcLocale": "de-DE", "tgtLocale": "en-US", "id": "1", "annotatorID": "a", "source": "Regen.",
        "target": "Rain falls.",
        "errors": [{"category": "hallucination", "spans": [{"startIndex": 5, "endIndex": 9, "text": "falls"}]}],
    },
    "inline": {"id": "1", "tagged": "<entity>Rome</entity>", "evidence": ["a"], "kind": "human", "taxonomy": "fava"},
    "jsonl": {
        "id": "1", "response": "Rain.", "evidence": [{"id": "p0", "text": "t"}], "generator": {"name": "m"},
        "annotations": [{"annotator": "a", "kind": "human", "taxonomy": "fava", "spans": [{"start": 0, "end": 2}]}],
    },
    "label-studio": {
        "id": 4, "data": {"text": "Rain \U0001f600 falls.", "source": ["a"], "language": "en"},
        "annotations": [
            {"completed_by": {"id": 1}, "was_cancelled": False, "result": [
                {"value": {"start": 8, "end": 13, "text": "falls", "labels": ["Entity"]}, "score": 0.5}
            ]}
        ],
        "predictions": [{"model_version": "m", "result": []}],
    },
    "lettucedetect": {
        "prompt": "p", "answer": "Rain falls.", "labels": [{"start": 0, "end": 4, "label": "Evident Conflict"}],
        "context": "c", "language": "cn", "task_type": "qa",
    },
    "mfava": {"generated_text": "In Rome.", "gold_annotations": "In <entity>Rome</entity>.", "references": "In Lima."},
    "mfava-queries": {"query_1": "Where?", "reference_1": "Lima.", "Article Title": "Lima", "URL": "u"},
    "mu-shroom": {
        "id": "v-1", "lang": "DE", "model_input": "q", "model_output_text": "Regen.", "model_id": "m",
        "hard_labels": [[0, 5]],
        "soft_labels": [{"start": 0, "prob": 0.5, "end": 5}], "annotations": {"a": [[0, 5]]}, "wikipedia_url": "u",
    },
    "psiloqa": {
        "id": "1", "lang": "de", "llm_answer": "Regen.", "wiki_passage": "p", "labels": [[0, 5]],
        "annotated_span": "[HAL]Regen[/HAL].", "llm_checkpoint": "m", "question": "q",
    },
    "ragtruth": {
        "id": "1", "source_id": "2", "response": "Rain falls.", "model": "m", "temperature": 0.7, "task_type": "QA",
        "labels": [{"start": 0, "end": 4, "text": "Rain", "label_type": "Evident Conflict"}],
        "source_info": {"question": "q", "passages": "passage 1:a\n\npassage 2:b"},
    },
    "squad": {
        "data": [{"title": "t", "paragraphs": [{"context": "In Lima.", "qas": [
            {"id": "1", "question": "q", "answers": [{"text": "Lima", "answer_start": 3}, {"text": "In Lima"}]}
        ]}]}]
    },
    "wice": {
        "claim": "Rain falls.", "claim_tokens": ["Rain", "falls", "."], "non_supported_spans": [False, True, False],
        "evidence": ["(meta data) TITLE: t", "b"], "label": "partially_supported", "meta": {"id": "1"},
        "supporting_sentences": [[0, 1]],
    },
    "xcomet": {
        "id": "1", "src": "s", "mt": "Rain falls.", "score": 0.5, "tgt_lang": "en",
        "error_spans": [{"text": "Rain", "confidence": 0.4, "severity": "minor", "start": 0, "end": 4}],
    },
    "xsum": {
        "bbcid": "1", "system": "s", "summary": "rain falls", "hallucination_type": "extrinsic", "worker_id": "w",
        "hallucinated_span": "rain", "hallucinated_span_start": "1", "hallucinated_span_end": "5",
    },
}  # fmt: skip
JUNK = [None, True, -1, 0, 10**30, 0.5, float("inf"), "", "x", "<", [], [None], [[]], {}, {"a": None}, [[1]], [[-1, 2]]]


def places(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    found = [path]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += places(inner, (*path, key))
    return found


def test_every_format_has_a_record_to_damage() -> None:
    lines = {"mlqe", "mqm", "token-labels"}  # tests/formats/test_translation_formats.py damages those
    assert RECORDS.keys() | {"parquet"} | lines == set(FORMATS.names())


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_of_each_format_is_read_and_any_damage_is_an_error_of_ours(name: str, tmp_path: Path) -> None:
    from veriglot.formats.containers import Record

    (tmp_path / "rows.json").touch()  # some formats look at the beginning of their file

    def read(record: object) -> list[Sample | FailedRow]:
        reading = Reading(Source(tmp_path / "rows.json"), FileReport("rows.json", name))
        return list(load_format(name).rows(iter([Record(1, record)]), reading))

    assert [type(row) for row in read(RECORDS[name])] == [Sample]
    for path in places(RECORDS[name]):
        for junk in JUNK:
            damaged = json.loads(json.dumps(RECORDS[name]))
            inner = damaged
            for key in path[:-1]:
                inner = inner[key]
            if path:
                inner[path[-1]] = junk
            else:
                damaged = junk
            found = read(damaged)
            assert all(isinstance(row, Sample | FailedRow) for row in found), (path, junk)


def test_a_label_that_is_no_object_is_a_bad_row(tmp_path: Path) -> None:
    row = {"prompt": "It rained.", "answer": "rain", "labels": [[0, 2]], "split": "dev", "task_type": "qa"}
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([row, {**row, "labels": []}]), "utf-8")
    bad, good = read_rows(path, format="lettucedetect")
    assert isinstance(bad, FailedRow)
    assert "an object is expected" in str(bad.as_error())
    assert isinstance(good, Sample)


def test_an_id_is_new_once_and_costs_at_most_72_bytes() -> None:
    seen = SeenIds()
    ids = [f"row {number}" for number in range(5000)]
    tracemalloc.start()
    assert all(map(seen.is_new, ids))
    size, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not any(map(seen.is_new, ids))
    assert size <= 48 * len(ids) + 4096
    assert peak <= 72 * len(ids) + 4096


def test_a_request_that_failed_says_why_and_the_rest_of_its_batch_is_read(tmp_path: Path) -> None:
    body = {"choices": [{"message": {"role": "assistant", "content": "Most otwarto w 1897 roku."}}]}
    batch: list[dict[str, object]] = [
        {"custom_id": "a", "response": {"status_code": 500, "body": {"error": {"message": "Overloaded."}}}},
        {"custom_id": "b", "response": None, "error": {"code": "batch_expired", "message": "Too late"}},
        {"custom_id": "c", "response": None, "error": "no connection"},
        {"custom_id": "d", "response": {"status_code": 200, "body": body}, "error": None},
    ]
    lines = [json.dumps({**row, "context": "Most otwarto w 1897 roku."}) for row in batch]
    *failed, read = rows(tmp_path / "batch.jsonl", "\n".join(lines).encode())
    for row, why in zip(failed, ("Overloaded", "Too late", "no connection"), strict=True):
        assert isinstance(row, FailedRow)
        assert str(row.as_error()).endswith(f"the request to the model failed: {why}. Send that request again.")
    assert isinstance(read, Sample)
    with pytest.raises(InputError, match="the request to the model failed: Overloaded"):
        rows(tmp_path / "all.jsonl", lines[0].encode())


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"custom_id": "a", "response": None, "error": {"message": "Za dużo zapytań."}}, "Za dużo zapytań"),
        ({"custom_id": "a", "response": None, "error": {"code": "batch_expired"}}, "batch_expired"),
        ({"question": "Kiedy?", "answer": "", "error": "no connection"}, "no connection"),
        ({"custom_id": "a", "result": {"type": "expired"}}, "expired"),
        ({"key": "a", "response": {"promptFeedback": {"blockReason": "SAFETY"}, "usage": {}}}, "SAFETY"),
    ],
)
def test_a_batch_that_failed_as_a_whole_says_why_though_it_holds_no_evidence(
    tmp_path: Path, row: dict[str, object], why: str
) -> None:
    """It asked for the column of the evidence."""
    with pytest.raises(InputError, match=f"the request to the model failed: {why}"):
        rows(tmp_path / "all.jsonl", json.dumps(row).encode())


def test_a_batch_is_known_by_an_answer_though_its_first_request_failed(tmp_path: Path) -> None:
    answered = {"type": "succeeded", "message": {"role": "assistant", "content": "Most otwarto w 1897 roku."}}
    results = [{"type": "canceled"}, {"type": "errored", "error": {"error": {"message": "no"}}}, answered]
    lines = [json.dumps({"context": "Most otwarto w 1897 roku.", "result": result}).encode() for result in results]
    read = rows(tmp_path / "a.jsonl", b"\n".join(lines))
    assert [isinstance(row, Sample) for row in read] == [False, False, True]


def test_an_error_that_is_marked_beside_a_response_is_no_failed_request(tmp_path: Path) -> None:
    row = {"context": "Most otwarto w 1897 roku.", "answer": "Most otwarto w 1879 roku."}
    lines = [json.dumps({**row, "error": error}).encode() for error in (True, "entity")]
    assert [isinstance(read, Sample) for read in rows(tmp_path / "a.jsonl", b"\n".join(lines))] == [True, True]
    for error in (True, "entity"):
        with pytest.raises(InputError, match="no column is known to hold the evidence"):
            rows(tmp_path / "b.jsonl", json.dumps({"answer": row["answer"], "error": error}).encode())


@pytest.mark.parametrize(
    ("lines", "read", "said"),
    [
        (['1,rain,"rain', "2,rain,rain", "3,r,r"], [], "2: a quote is left open, so that the row goes on to line 4."),
        (['1,rain,"rain', '2,rain,"r', "3,r,r"], ["3"], "2: a quote is left open, so that the row goes on to line 3."),
        (["1,rain,rain", '2,rain,"rain'], ["1"], "3: a quote is left open, so that the row goes on to line 3."),
        (["1,rain,rain", "rain"], ["1"], "the row and the header differ in columns, 1 and 3."),
        (['1,rain,"a ""b"" c\n\nd"', '2,rain,"a" b', '3,rain,5" c'], ["1", "2", "3"], ""),
    ],
)  # fmt: skip
def test_a_quote_that_is_left_open_takes_no_row_in_silence(
    tmp_path: Path, lines: list[str], read: list[str], said: str
) -> None:
    found = rows(tmp_path / "a.csv", "\n".join(["id,context,answer", *lines]).encode())
    assert [row.id for row in found if isinstance(row, Sample)] == read
    errors = [str(row.as_error()) for row in found if isinstance(row, FailedRow)]
    assert len(errors) == bool(said)
    assert said in "".join(errors)


@pytest.mark.parametrize("cell", ["nan", "None", "null", "N/A", " ", '["nan", ""]'])
def test_a_cell_that_stands_for_nothing_is_no_evidence(tmp_path: Path, cell: str) -> None:
    data = json.dumps({"context": cell, "answer": "It rains."}).encode()
    (row,) = rows(tmp_path / "a.jsonl", data)
    assert isinstance(row, Sample)
    assert row.evidence == ()


def test_a_row_of_known_columns_may_lack_the_evidence(tmp_path: Path) -> None:
    """A retrieval that returned nothing; the row was refused."""
    whole = {"context": "It was opened in 1897.", "answer": "It was opened in 1879."}
    given = [whole, {"answer": "1879."}, {"answer": "1879.", "pages": "It was opened in 1897."}, whole]
    first, without, unknown, last = rows(tmp_path / "a.jsonl", "\n".join(map(json.dumps, given)).encode())
    assert isinstance(without, Sample)
    assert without.evidence == ()
    assert isinstance(unknown, FailedRow), "a new column may be the evidence"
    assert [row.evidence[0].text for row in (first, last) if isinstance(row, Sample)] == [whole["context"]] * 2
