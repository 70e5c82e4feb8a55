"""No format makes a clean response of one that nobody labelled, or whose labels it cannot hold."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING
from unicodedata import normalize

import pytest

from veriglot.errors import InputError
from veriglot.formats.base import FORMATS, load_format
from veriglot.formats.columns import read_row
from veriglot.formats.reader import read, read_rows
from veriglot.formats.writer import write
from veriglot.records import Annotation, Evidence, Kind, Sample, Span
from veriglot.storage.checkpoint import FailedRow

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

_WRITABLE = [name for name in FORMATS.names() if load_format(name).writable]


def _sample(*annotations: Annotation) -> Sample:
    return Sample(
        id="a",
        response="The mill was built in 1901.",
        language="en",
        question="When was the mill built?",
        evidence=(Evidence("The mill was built in 1874.", language="en"),),
        annotations=annotations,
    )


def _rated() -> Annotation:
    return Annotation(annotator="gold", kind=Kind.HUMAN, taxonomy="fava", ratings={"fluency": 4.0})


@pytest.mark.parametrize("name", _WRITABLE)
@pytest.mark.parametrize("annotations", [(), (_rated(),)], ids=["none", "ratings only"])
def test_what_nobody_labelled_never_comes_back_as_clean(
    name: str, annotations: tuple[Annotation, ...], tmp_path: Path
) -> None:
    path = tmp_path / "out"
    losses = write([_sample(*annotations)], path, format=name)
    if losses.written:
        (back,) = read(path, format=name)
        assert not any(annotation.spans == () for annotation in back.annotations)
    else:
        assert any(what.startswith("row: ") for what in losses.lost)


def test_ragtruth_keeps_the_spans_of_an_annotator_with_another_name(tmp_path: Path) -> None:
    anna = Annotation(annotator="anna", kind=Kind.HUMAN, taxonomy="support", spans=(Span(22, 26, "contradicted"),))
    write([_sample(anna)], tmp_path / "out", format="ragtruth")
    (back,) = read(tmp_path / "out", format="ragtruth")
    assert back.annotations[0].spans == anna.spans


_ROW = {"id": "a", "context": "Silta avattiin vuonna 1897.", "answer": "Silta avattiin vuonna 1879."}


def _table(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize(
    ("cells", "spans"),
    [
        ({"start": 22, "end": 26}, [(22, 26, "hallucination")]),
        ({"start": "22.0", "end": "26.0"}, [(22, 26, "hallucination")]),
        ({"span_start": 22, "span_end": 26, "span": "1879"}, [(22, 26, "hallucination")]),
        ({"start": 22, "end": 26, "type": "entity"}, [(22, 26, "entity")]),
        ({"start": 22, "end": 26, "label": "entity"}, [(22, 26, "entity")]),
        ({"start": 22, "end": 26, "is_wrong": 1}, [(22, 26, "hallucination")]),
        ({"hallucinated_span": "1879"}, [(22, 26, "hallucination")]),
        ({"span": "Silta; 1879"}, [(0, 5, "hallucination"), (22, 26, "hallucination")]),
    ],
)
def test_spans_in_cells_of_a_table_are_read(
    cells: dict[str, Any], spans: list[tuple[int, int, str]], tmp_path: Path
) -> None:
    (sample,) = read(_table(tmp_path / "a.csv", [{**_ROW, **cells}]))
    (annotation,) = sample.annotations
    assert [(span.start, span.end, span.type) for span in annotation.spans or ()] == spans


@pytest.mark.parametrize(
    "cells", [[{"start": 0, "end": 5}, {"start": 22, "end": 26}], [{"span": "Silta"}, {"span": "1879"}]]
)
@pytest.mark.parametrize("left_out", ["id", ""])
def test_rows_of_one_span_each_are_one_response(cells: list[dict[str, Any]], left_out: str, tmp_path: Path) -> None:
    row = {key: value for key, value in _ROW.items() if key != left_out}
    (sample,) = read(_table(tmp_path / "a.csv", [{**row, **each} for each in cells]))
    assert sample.annotations[0].spans == (Span(0, 5, "hallucination"), Span(22, 26, "hallucination"))


@pytest.mark.parametrize("word", ["no", "0", "correct"])
def test_a_word_that_may_be_a_label_or_a_quotation_is_asked_about(word: str, tmp_path: Path) -> None:
    row = {**_ROW, "answer": f"Silta: {word} auki.", "hallucinated_span": word}
    with pytest.raises(InputError, match="may be quoted"):
        list(read(_table(tmp_path / "a.csv", [row])))
    (sample,) = read(_table(tmp_path / "b.csv", [{**row, "hallucinated_span": f'["{word}"]'}]))
    assert sample.annotations[0].spans == (Span(7, 7 + len(word), "hallucination"),)
    other = {**row, "answer": "Silta tunnetaan nimellä Noro."}
    (flag,) = read(_table(tmp_path / "c.csv", [other]), columns={"id": ""})
    assert not any(layer.spans for layer in flag.annotations)


@pytest.mark.parametrize("cells", [["1879", ""], ["", "1879"]])
def test_a_mark_and_an_empty_cell_of_one_person_for_one_answer_are_refused(cells: list[str], tmp_path: Path) -> None:
    """They were two samples, one marked and one clean."""
    rows = [{"context": _ROW["context"], "answer": _ROW["answer"], "annotator": "jana", "span": cell} for cell in cells]
    with pytest.raises(InputError, match="line 3, field annotator: 'jana' labels the response of line 2 again"):
        list(read(_table(tmp_path / "a.csv", rows)))


def test_spans_with_ids_of_their_own_are_told_how_to_join(tmp_path: Path) -> None:
    path = _table(tmp_path / "a.csv", [{**_ROW, "start": 0, "end": 5}, {**_ROW, "id": "b", "start": 22, "end": 26}])
    with pytest.raises(InputError, match="Join them with --map id="):
        list(read_rows(path, labelled=True))
    assert len(list(read_rows(path, labelled=True, columns={"id": ""}))) == 1
    assert len(list(read_rows(path, labelled=True, columns={"annotator": ""}))) == 2


@pytest.mark.parametrize(
    "cells",
    [{"start": "10:00", "end": "10:05"}, {"start": 1_699_999_999, "end": 1_700_000_000}, {"start": 3, "end": ""}],
)
def test_columns_that_hold_no_places_cost_no_row_and_are_kept(cells: dict[str, Any], tmp_path: Path) -> None:
    (sample,) = read(_table(tmp_path / "a.csv", [{**_ROW, **cells}]))
    assert not sample.annotations
    assert sample.meta == {key: str(value) for key, value in cells.items()}


def test_a_quotation_that_is_none_is_told_what_to_write(tmp_path: Path) -> None:
    path = _table(tmp_path / "a.csv", [{**_ROW, "span": "1897"}, {**_ROW, "id": "b", "span": "1879"}])
    failed, sample = read_rows(path, labelled=True)
    assert isinstance(failed, FailedRow)
    assert "occurs 0 times in the response: give start and end" in failed.message
    assert "--map spans=" in failed.remedy
    assert isinstance(sample, FailedRow) is False


@pytest.mark.parametrize("cell", ["nan", "NaN", "None", "null"])
def test_a_cell_for_quotations_that_says_nothing_costs_no_row(cell: str, tmp_path: Path) -> None:
    quoted = {**_ROW, "id": "b", "answer": f"{cell} avattiin.", "span": cell}
    path = _table(tmp_path / "a.csv", [{**_ROW, "span": cell}, quoted])
    empty, marked = (row for row in read_rows(path, labelled=True) if isinstance(row, Sample))
    assert not empty.annotations
    assert marked.annotations[0].spans == (Span(0, len(cell), "hallucination"),)


@pytest.mark.parametrize("cell", ["韩国；东京", "东京 | 韩国；", "韩国؛ 东京"])
def test_quotations_are_parted_by_semicolons_of_any_script(cell: str, tmp_path: Path) -> None:
    row = {"context": "东京在日本。", "answer": "东京在韩国。", "span": cell}
    (sample,) = read(_table(tmp_path / "a.csv", [row]))
    assert sample.annotations[0].spans == (Span(0, 2, "hallucination"), Span(3, 5, "hallucination"))


def test_rows_that_are_alike_all_count_where_labels_do_not_matter(tmp_path: Path) -> None:
    """Detection left out the second of two rows without ids for its label."""
    row = {"context": _ROW["context"], "answer": _ROW["answer"], "span": "1879"}
    path = _table(tmp_path / "a.csv", [row, row, row])
    assert [row.id for row in read_rows(path) if isinstance(row, Sample)] == ["a-2", "a-3", "a-4"]
    assert [isinstance(row, Sample) for row in read_rows(path, labelled=True)] == [True, False, False]


def test_a_quotation_that_is_labelled_supported_is_refused(tmp_path: Path) -> None:
    """It was marked, and the label taken for its type."""
    path = _table(tmp_path / "a.csv", [{**_ROW, "span": "1879", "label": "supported"}])
    with pytest.raises(InputError, match="the label says supported, and spans are marked"):
        list(read_rows(path, labelled=True))


def test_rows_of_spans_of_two_taxonomies_keep_their_places(tmp_path: Path) -> None:
    spans = [{"start": 0, "end": 5, "type": "entity"}, {"start": 22, "end": 26, "type": "number"}]
    (sample,) = read(_table(tmp_path / "a.csv", [{**_ROW, **span} for span in spans]))
    assert sample.annotations[0].taxonomy == "fava"
    assert sample.annotations[0].spans == (Span(0, 5, "entity"), Span(22, 26))


@pytest.mark.parametrize("marked", [[(0, 5), (0, 26), (0, 11), (0, 21)], [(0, 26), (0, 21), (0, 11), (0, 5)]])
def test_spans_of_several_rows_are_in_the_order_of_their_places(marked: list[tuple[int, int]], tmp_path: Path) -> None:
    """Those that begin together came in another order in every process."""
    (sample,) = read(_table(tmp_path / "a.csv", [{**_ROW, "start": start, "end": end} for start, end in marked]))
    assert [span.end for span in sample.annotations[0].spans or ()] == [5, 11, 21, 26]


@pytest.mark.parametrize(
    ("evidence", "response"),
    [
        ("প্রসঙ্গ", "উত্তর"), ("संदर्भ", "उत्तर"), ("บริบท", "คำตอบ"), ("संदर्भ:", "जवाब।"), ("సందర్భం", "సమాధానం"),
        ("ఆధారం", "జవాబు"), ("زمینه", "پاسخ"), ("証拠", "答え"), ("ushahidi", "jibu"), ("bối cảnh", "trả lời"),
        ("Kontekst", "Odpowiedz"), ("πλαίσιο", "απάντηση"), ("சூழல்", "பதில்"), ("맥락", "응답"), ("证据", "答覆"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_names_with_signs_of_vowels_are_known(evidence: str, response: str, form: Any, tmp_path: Path) -> None:
    row = {normalize(form, evidence): "Silta avattiin.", normalize(form, response): "Silta suljettiin."}
    (sample,) = read(_table(tmp_path / "a.csv", [row]))
    assert (sample.evidence_text, sample.response) == ("Silta avattiin.", "Silta suljettiin.")


@pytest.mark.parametrize(
    ("cells", "expected", "said"),
    [
        (["1879", ""], [("1879",), ()], "counts as 'nothing wrong'; delete rows that nobody looked at; such rows: 1"),
        (
            ["1879", "", "[]"],
            [("1879",), None, ()],
            "does not count; write [] as its spans if nothing is wrong; such rows: 1",
        ),
        (["", ""], [None, None], "does not count; write [] as its spans if nothing is wrong; such rows: 2"),
    ],
)
def test_an_empty_cell_beside_a_name_is_nothing_wrong_where_its_person_marks_other_rows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, cells: list[str], expected: list[Any], said: str
) -> None:
    """Agreement of people who left clean answers empty counted the marked ones alone: a kappa of 1."""
    path = tmp_path / "labels.csv"
    rows = "".join(f"q{n},Most z roku 1897.,Most {n} z roku 1879.,{cell},jana\n" for n, cell in enumerate(cells))
    path.write_text(f"id,evidence,response,spans,annotator\n{rows}", encoding="utf-8")
    samples = list(read(path))
    found = [
        tuple(sample.response[span.start : span.end] for span in layer.spans or ())
        if (layer := next(iter(sample.annotations), None))
        else None
        for sample in samples
    ]
    assert found == expected
    assert said in caplog.text


@pytest.mark.parametrize(
    ("false", "true"), [("FALSCH", "WAHR"), ("FAŁSZ", "PRAWDA"), ("YANLIŞ", "DOĞRU"), ("కాదు", "అవును")]
)
def test_a_truth_in_the_language_of_the_spreadsheet_is_a_label(false: str, true: str, tmp_path: Path) -> None:
    rows = [{**_ROW, "id": word, "is_wrong": word} for word in (false, true)]
    labels = [sample.annotations[0].ratings for sample in read(_table(tmp_path / "a.csv", rows))]
    assert labels == [{"unsupported": 0.0}, {"unsupported": 1.0}]


@pytest.mark.parametrize(
    ("column", "label", "unsupported"),
    [("is_hallucination", "nei", 0.0), ("is_hallucination", "JA", 1.0), ("is_supported", "Nei", 1.0),
     ("is_supported", "NEI", 1.0), ("label", "NEI", 1.0), ("verdict", "not enough info", 1.0),
     ("label", "nei", 1.0), ("verdict", "Nei", 1.0), ("hallucination", "NEI", 1.0)],
)  # fmt: skip
def test_norwegian_for_no_is_not_short_for_not_enough_info(column: str, label: str, unsupported: float) -> None:
    (layer,) = read_row({"context": "Broen er fra 1897.", "answer": "Fra 1879.", column: label}).annotations
    assert layer.ratings == {"unsupported": unsupported}


@pytest.mark.parametrize("word", ["nei", "Nei", "NEI"])
def test_rows_of_fever_may_be_short_for_not_enough_info(word: str, tmp_path: Path) -> None:
    """The file was refused at its third line."""
    row = {"evidence": "Broen er fra 1897.", "claim": "Fra 1879."}
    path = _table(tmp_path / "a.csv", [{**row, "label": label} for label in ("supports", "refutes", word)])
    labels = [row.annotations[0].ratings for row in read_rows(path, labelled=True) if isinstance(row, Sample)]
    assert labels == [{"unsupported": 0.0}, {"unsupported": 1.0}, {"unsupported": 1.0}]


def test_a_word_for_no_under_a_name_that_does_not_say_of_what_is_refused(tmp_path: Path) -> None:
    """It was taken for `not enough info`: each answer without a hallucination was unsupported."""
    path = _table(tmp_path / "a.csv", [{**_ROW, "id": "a", "Hallusinasjon": "nei"}])
    columns = {"response": "answer", "evidence": "context", "label": "Hallusinasjon"}
    columns = {part: column for part, column in columns.items() if part == "label" or column in _ROW}
    with pytest.raises(InputError, match="does not say whether 'nei' is supported or unsupported"):
        list(read_rows(path, columns=columns, labelled=True))


@pytest.mark.parametrize("answer", ["reject", "ignore"])
def test_what_was_not_accepted_in_prodigy_is_no_label(answer: str, tmp_path: Path) -> None:
    """`reject` was the response, and the label that was rejected that of the row."""
    row = {"text": "Fra 1879.", "context": "Broen er fra 1897.", "label": "HALLUCINATION", "_input_hash": 1}
    accepted, rejected = (read_row({**row, "answer": each}) for each in ("accept", answer))
    assert accepted.response == rejected.response == "Fra 1879."
    assert [layer.ratings for layer in accepted.annotations] == [{"unsupported": 1.0}]
    assert rejected.annotations == ()
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({**row, "answer": answer}) + "\n")
    with pytest.raises(InputError, match="did not accept"):
        list(read_rows(path, labelled=True))


def test_ranges_with_a_type_as_doccano_writes_them_are_spans() -> None:
    row = {"id": 1, "text": "Fra 1879.", "label": [[4, 8, "contradicted"]], "context": "Broen er fra 1897."}
    (layer,) = read_row(row, columns={"response": "text", "evidence": "context"}).annotations
    assert layer.spans == (Span(4, 8, "contradicted"),)


def test_numbers_with_a_comma_are_those_of_a_spreadsheet(tmp_path: Path) -> None:
    """Cells of 15,0 and 19,0 were no places, and the row came without its label in silence."""
    text = "id;context;answer;start;end;is_wrong\na;Most z 1897 r.;Most z 1879 r.;7,0;11,0;1,0\n"
    (tmp_path / "a.csv").write_text(text, encoding="utf-16")
    (sample,) = read(tmp_path / "a.csv")
    (layer,) = sample.annotations
    assert [sample.response[span.start : span.end] for span in layer.spans or ()] == ["1879"]
    assert layer.ratings == {"unsupported": 1.0}


def test_column_names_of_another_code_page_are_recognised(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("kontekst;odpowiedź\nMost z 1897 r.;Most z 1879 r.\n".encode("cp1250"))
    assert next(read(path)).response == "Most z 1879 r."
    path.write_bytes("Süße;Größe\nMost z 1897 r.;Most z 1879 r.\n".encode("cp1252"))
    with pytest.raises(InputError, match="If letters look wrong, save the file as UTF-8"):
        list(read(path))


def test_evidence_that_a_tool_left_empty_is_taken_from_its_other_key() -> None:
    """DeepEval writes null for the one of its two contexts that a test case lacks."""
    row = {"input": "Kiedy?", "actual_output": "W 1879.", "expected_output": "W 1897."}
    for empty in None, [], "":
        sample = read_row({**row, "context": ["Most z 1897 r."], "retrieval_context": empty})
        assert sample.evidence_text == "Most z 1897 r."
    sample = read_row({**row, "context": ["a"], "retrieval_context": None}, columns={"evidence": "retrieval_context"})
    assert sample.evidence == ()


@pytest.mark.parametrize("reference", ["tgt", "hyp"])
@pytest.mark.parametrize(
    "column", ["response", "prediction", "output", "answer", "summary", "generated_text", "claim", "mt"]
)
def test_a_short_name_for_a_translation_holds_no_response_beside_another_that_does(reference: str, column: str) -> None:
    """The reference in `tgt` was judged, even beside a column `response`."""
    row = {"src": "Most z 1897 r.", reference: "From 1897.", column: "From 1879."}
    assert read_row(row).response == "From 1879."
    del row[column]
    assert read_row(row).response == "From 1897."
    assert read_row({**row, "hyp": "From 1879.", "tgt": "From 1897."}).response == "From 1879."


@pytest.mark.parametrize(
    ("row", "column", "nested"),
    [
        ({"evidence": "W 1897."}, "claim", {"answer": {"value": "REFUTED"}}),
        ({"article": "W 1897."}, "summary", {"response": {"value": 3}}),
        ({"article": "W 1897."}, "summary", {"prediction": {"value": 0.93}}),
        ({"question": "Kiedy?", "context": "W 1897."}, "candidate", {"answer": {"value": "W 1897.", "aliases": []}}),
    ],
)
def test_a_value_in_an_object_is_no_response_beside_a_column_that_holds_one(
    row: dict[str, Any], column: str, nested: dict[str, Any]
) -> None:
    """The label or the gold answer in the object was judged."""
    sample = read_row({**row, column: "W 1879.", **nested})
    assert (sample.response, sample.evidence_text) == ("W 1879.", "W 1897.")


def test_a_response_in_an_object_is_as_good_as_an_answer_beside_it() -> None:
    row = {"question": "Kiedy?", "context": "W 1897.", "answer": "W 1897.", "response": {"text": "W 1879."}}
    with pytest.raises(InputError, match=r"could be in answer or response\.text"):
        read_row(row)
    assert read_row({**row, "answer": None}, columns={"response": "response.text"}).response == "W 1879."


@pytest.mark.parametrize(
    "name", ["outputs", "model_response", "final_answer", "llm_output", "generated_answer", "hypothesis", "antwort"]
)
def test_the_text_of_an_object_of_any_name_for_a_response_is_one(name: str) -> None:
    asked = {"question": "Kiedy?", "context": "W 1897."}
    for row in asked, {"inputs": asked}:
        sample = read_row({**row, name: {"text": "W 1879."}})
        assert (sample.question, sample.evidence_text, sample.response) == ("Kiedy?", "W 1897.", "W 1879.")


@pytest.mark.parametrize(
    "row", [{"output": {"text": "W 1879."}}, {"output": {"summary": "W 1879."}}, {"summary": "W 1879."}]
)
def test_the_text_of_an_input_is_the_evidence(row: dict[str, Any]) -> None:
    """It was the question, and the row refused."""
    sample = read_row({"input": {"text": "W 1897."}, **row})
    assert (sample.question, sample.evidence_text, sample.response) == (None, "W 1897.", "W 1879.")


@pytest.mark.parametrize(
    "held",
    [{"data": {"label": "x"}}, {"data": {"answer": "W 1897."}}, {"fields": {"answer": "W 1897."}},
     {"request": {"context": "x"}}, {"data": {"context": "W 1897.", "source": "cnn"}}, {"sampled": True}],
)  # fmt: skip
def test_what_lies_beside_the_columns_of_a_row_changes_none_of_them(held: dict[str, Any]) -> None:
    """Such rows were refused, lost their label, or had the evidence twice."""
    row = {"question": "Kiedy?", "context": "W 1897.", "answer": "W 1879.", "label": "supported"}
    plain, sample = read_row(row), read_row({**row, **held})
    assert sample.meta == held
    assert (sample.response, sample.evidence) == ("W 1879.", plain.evidence)
    assert sample.annotations == plain.annotations != ()
    both = read_row({"data": {**row, "label": "x"}, "label": "supported"})
    assert (both.question, both.evidence, both.annotations) == ("Kiedy?", plain.evidence, plain.annotations)


@pytest.mark.parametrize(
    "cells", [{"answer": "Fra 1879."}, {"response": "Fra 1879."}, {"claim": "Fra 1879.", "answer": ["x"]}]
)
def test_labels_of_rows_that_went_through_prodigy_count_without_an_acceptance(cells: dict[str, Any]) -> None:
    row = {"context": "Broen er fra 1897.", "label": "supported", "_input_hash": 1}
    columns = {"response": next(iter(cells))}
    assert [layer.ratings for layer in read_row({**row, **cells}, columns=columns).annotations] == [
        {"unsupported": 0.0}
    ]


def test_the_name_of_a_source_is_not_taken_for_empty_evidence() -> None:
    for empty in None, "":
        sample = read_row({"src": empty, "source": "newstest2023", "mt": "Die Mühle."})
        assert sample.evidence == ()
        row = {"text": "Fra 1879.", "answer": "accept", "_input_hash": 1, "meta": {"source": "wiki_dump.txt"}}
        assert read_row({**row, "context": empty}).evidence == ()
    with pytest.raises(InputError, match="the response is missing"):
        read_row(row)


def test_a_key_counts_as_it_is_spelt_before_another_spelling() -> None:
    """A key `Start` without a value hid `start`."""
    row = {"response": "Fra 1879.", "evidence": [{"text": "Fra 1897.", "title": "T", "Title": None}]}
    for span in (
        {"start": 4, "end": 8, "Start": None},
        {"Start": 4, "end": 8, "start": None},
        {"start": 4, "end": 8, "Start": 0},
    ):
        sample = read_row({**row, "spans": [span]})
        assert sample.annotations[0].spans == (Span(4, 8, "hallucination"),)
        assert sample.evidence[0].title == "T"
    (layer,) = read_row({**row, "spans": [(4, 8, "entity")]}).annotations
    assert layer.spans == (Span(4, 8, "entity"),)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        *(("richtig", "halluziniert"), ("Correcta", "Incorrecta"), ("верно", "неверно"), ("सही", "गलत")),
        *(("صحيح", "خطأ"), ("正确", "错误"), ("正しい", "幻覚"), ("정답", "환각"), ("σωστό", "λάθος")),
    ],
)
def test_labels_are_words_in_the_language_of_those_who_labelled(tmp_path: Path, right: str, wrong: str) -> None:
    rows = [f"The den is old.,It is {word}.,{label}" for word, label in (("old", right), ("new", wrong))]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["evidence,response,label", *rows]), "utf-8")
    assert [sample.annotations[0].ratings["unsupported"] for sample in read(path)] == [0, 1]


def test_what_a_span_does_not_say_itself_is_not_lost() -> None:
    span = {"start": 4, "end": 8, "text": "mill", "type": "entity", "source": "mill", "note": "entity"}
    row = {"evidence": "The den was built.", "response": "The mill was built.", "spans": [span]}
    assert read_row(row).meta == {"labels": [{"source": "mill", "note": "entity"}]}
