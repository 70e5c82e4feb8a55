"""Readers of labelled translations on small files of ours: labels, places, languages, the traps of real files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from veriglot.errors import InputError
from veriglot.formats.base import Report, pairs_in_name
from veriglot.formats.reader import read, read_rows
from veriglot.records import Sample, Span, Task, Unit
from veriglot.storage.checkpoint import FailedRow

if TYPE_CHECKING:
    from pathlib import Path

GERMAN = "Die alte Mühle am Fluss wurde vor vielen Jahren von den Leuten des Dorfes gebaut."
ENGLISH = "The old mill by the river was built many years ago by the people of the village."
SCORED = f'7\t{GERMAN}\t"{ENGLISH}\t[0, 1, 1]\tERR\n8\t{GERMAN}\t{ENGLISH}\t[0, 3, 0]\tNOT\n'
MQM = "system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity"


def rows(path: Path, report: Report | None = None, **options: object) -> list[Sample | FailedRow]:
    return list(read_rows(path, report=report, **options))  # type: ignore[arg-type]


def one_of(path: Path) -> Sample:
    (sample,) = read(path)
    return sample


def kinds(found: list[Sample | FailedRow]) -> list[str]:
    return [f"bad {row.line}" if isinstance(row, FailedRow) else row.id for row in found]


# Token labels in parallel files.


def parallel(folder: Path, labels: str, target: str, source: str | None = GERMAN + "\n") -> Path:
    (folder / "sys.label").write_text(labels, encoding="utf-8")
    (folder / "sys.target").write_text(target, encoding="utf-8")
    if source is not None:
        (folder / "sys.source").write_text(source, encoding="utf-8")
    return folder / "sys.label"


def test_runs_of_token_labels_are_spans(tmp_path: Path) -> None:
    (tmp_path / "sys.ref").write_text("The mill is old.\n", encoding="utf-8")
    sample = one_of(parallel(tmp_path, "0 0 1 1 0 0 1\n", "the old  mill by\tthe blue river.\n"))
    assert (sample.task, sample.language, sample.evidence[0].language) == (Task.TRANSLATION, "en", "de")
    assert sample.annotations[0].spans == (Span(9, 16, "hallucination"), Span(26, 32, "hallucination"))
    assert [sample.response[s.start : s.end] for s in sample.annotations[0].spans] == ["mill by", "river."]
    assert (sample.evidence[0].text, sample.meta) == (GERMAN, {"reference": "The mill is old."})
    assert sample.generator is not None
    assert sample.generator.name == "sys"


def test_a_line_without_its_labels_or_its_text_is_never_dropped(tmp_path: Path) -> None:
    labels, target = "0 0\n\n0 1 0\n0 0\n0\n", "a mill\nforgotten here\n\nold mill\none two\nunlabelled\n"
    report = Report()
    found = rows(parallel(tmp_path, labels, target), report, language="en")
    assert kinds(found) == ["sys-1", "bad 2", "bad 3", "sys-4", "bad 5", "bad 6"]
    said = [row.message for row in found if isinstance(row, FailedRow)]
    assert said == [
        "this translation has no labels",
        "labels and tokens of the target differ in number, 3 and 0",
        "labels and tokens of the target differ in number, 1 and 2",
        "this translation has no labels",
    ]


def test_labels_alone_are_an_error_and_a_missing_source_is_counted(tmp_path: Path) -> None:
    path = parallel(tmp_path, "0 0\n", "a mill\n", source=None)
    report = Report()
    (sample,) = rows(path, report)
    assert isinstance(sample, Sample)
    assert sample.evidence == ()
    assert report.files[str(path)].notes["without_source_file"] == 1
    (tmp_path / "sys.target").unlink()
    with pytest.raises(InputError, match=r"'sys\.target'"):
        list(read(path))


def test_lines_end_at_line_feeds_alone(tmp_path: Path) -> None:
    path = parallel(tmp_path, "0 1\n1\n", "a\u2028b mill\x0b\r\nold\r\n", source=f"{GERMAN}\x85\n{GERMAN}\n")
    first, second = read(path)
    assert (first.response, second.response) == ("a\u2028b mill\x0b", "old")
    assert first.evidence[0].text == GERMAN + "\x85"


def test_a_bad_byte_is_the_fault_of_its_own_line(tmp_path: Path) -> None:
    path = parallel(tmp_path, "0\n0\n0\n", "a\nb\nc\n", source="x\ny\nz\n")
    (tmp_path / "sys.source").write_bytes(b"x\n\xff\nz\n")
    assert kinds(rows(path)) == ["sys-1", "bad 2", "sys-3"]


def test_texts_in_utf_16_beside_labels_are_read(tmp_path: Path) -> None:
    """They became rows full of NUL."""
    path = parallel(tmp_path, "0 1\n1 0\n", "a mill\nold mill\n")
    texts = {"target": "a mill\nold mill\n", "source": f"{GERMAN}\n{GERMAN}\n"}
    for ending, text in texts.items():
        (tmp_path / f"sys.{ending}").write_text(text, encoding="utf-16", newline="")
    assert [(sample.response, sample.evidence_text) for sample in read(path)] == [
        ("a mill", GERMAN),
        ("old mill", GERMAN),
    ]
    (tmp_path / "sys.target").write_bytes("a mill\nold mill\n".encode("utf-16") + b"A")
    with pytest.raises(InputError, match="not valid UTF-16"):
        list(read(path))


def test_texts_belong_to_labels_only_where_there_are_labels(tmp_path: Path) -> None:
    parallel(tmp_path, "0 0\n", "a mill\n")
    (tmp_path / "lone.source").write_text('{"id": "1", "response": "rain"}\n', encoding="utf-8")
    report = Report()
    assert kinds(rows(tmp_path, report)) == ["1", "sys-1"]
    assert {path.rsplit("/", 1)[1] for path in report.unread} == {"sys.source", "sys.target"}


# CSV of pathologies.

PATHOLOGIES = ",src,mt,ref,repetitions,named-entities,omission,strong-unsupport,full-unsupport\n"


def test_pathologies_are_flags_and_hallucinations_units(tmp_path: Path) -> None:
    path = tmp_path / "corpus.csv"
    row = f"%d,{GERMAN},{ENGLISH},A mill.,%s\n"
    cells = ["0,0,0,0,0", "0,1,1,0,0", "1,0,0,1,0", "0,0,0,0,1"]
    path.write_text(PATHOLOGIES + "".join(row % pair for pair in enumerate(cells)), encoding="utf-8")
    samples = list(read(path))
    whole = (Unit(0, len(ENGLISH), "hallucination"),)
    assert [(s.annotations[0].units, s.annotations[0].flags) for s in samples] == [
        ((), ()),
        ((), ("omission", "named_entities")),
        (whole, ("oscillation", "strong_detachment")),
        (whole, ("full_detachment",)),
    ]
    assert all(s.annotations[0].spans is None for s in samples), "no one was asked where"
    assert (samples[0].id, samples[0].language, samples[0].evidence[0].language) == ("corpus-0", "en", "de")


def test_a_row_with_unquoted_commas_is_repaired_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "corpus.csv"
    bad = "1,Er ist da, der Regen.,It is here.,Rain.,0,0,0,0,0\n"
    path.write_text(f"{PATHOLOGIES}{bad}2,a,b,c,0,0,0,0,2\n3,a,b,c,d,e,0,0,0,0,0\n", encoding="utf-8")
    report = Report()
    found = rows(path, report)
    assert kinds(found) == ["corpus-1", "bad 3", "bad 4"]
    assert isinstance(found[0], Sample)
    assert found[0].evidence[0].text == "Er ist da, der Regen."
    assert report.files[str(path)].notes["unquoted_commas"] == 1
    assert kinds(rows(path, strict=True)) == ["bad 2", "bad 3", "bad 4"]


# Critical errors: no header, no quotes.


def test_the_majority_and_each_annotator_have_their_own_annotation(tmp_path: Path) -> None:
    path = tmp_path / "deen_majority_dev.tsv"
    path.write_text(SCORED, encoding="utf-8")
    first, second = read(path)
    assert (first.id, first.response[0], first.meta) == ("deen_majority_dev-7", '"', {"split": "dev"})
    assert (first.evidence[0].language, first.language) == ("de", "en")
    whole = (Unit(0, len(first.response), "critical_error"),)
    assert [(a.annotator, a.units) for a in first.annotations] == [
        ("gold", whole), ("annotator_1", ()), ("annotator_2", whole), ("annotator_3", whole)
    ]  # fmt: skip
    assert [a.units for a in second.annotations] == [(), (), None, ()]
    assert second.annotations[2].ratings == {"score": 3.0}


def test_a_blind_file_has_no_labels(tmp_path: Path) -> None:
    path = tmp_path / "blind"
    path.write_text(f"7\t{GERMAN}\t{ENGLISH}\n", encoding="utf-8")
    sample = one_of(path)
    assert sample.annotations == ()
    assert (sample.evidence[0].language, sample.language) == ("de", "en")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("9\ta\tb\t[0, 1]", "not 4"),
        ("9\ta\tb\t[0, 4, 0]\tNOT", "from 0 to 3"),
        ("9\ta\tb\t[0, 0, 1]\tERR", "not what most"),
        ("9\ta\tb\t[0, 0, 1]\tMAYBE", "ERR or NOT"),
    ],
)
def test_a_malformed_row_of_critical_errors_is_one_failed_row(tmp_path: Path, row: str, said: str) -> None:
    path = tmp_path / "deen.tsv"
    path.write_text(SCORED + row + "\n", encoding="utf-8")
    *good, bad = rows(path, format="mlqe")
    assert len(good) == 2
    assert isinstance(bad, FailedRow)
    assert said in bad.message


# MQM: a header, no quotes.


def mqm(folder: Path, *cells: str, header: str = MQM) -> Path:
    path = folder / "mqm_deen.tsv"
    path.write_text("".join(f"{line}\n" for line in (header, *cells)), encoding="utf-8")
    return path


def rated(rater: str, source: str, target: str, category: str, segment: int = 1) -> str:
    return f"sys\tdoc\t1\t{segment}\t{rater}\t{source}\t{target}\t{category}\tMajor"


def test_additions_are_spans_and_every_error_is_kept(tmp_path: Path) -> None:
    path = mqm(
        tmp_path,
        rated("r1", GERMAN, ENGLISH.replace("old mill", "<v>old </v>mill"), "Accuracy/Addition"),
        rated("r1", GERMAN, ENGLISH.replace("river", "<v>river</v>"), "Accuracy/Mistranslation"),
        rated("r2", GERMAN.replace("Dorfes", "<v>Dorfes</v>"), ENGLISH, "Accuracy/Omission"),
        rated("r2", GERMAN, ENGLISH, "No-error", segment=2),
    )
    first, second = read(path)
    assert (first.id, first.response, first.evidence[0].text) == ("mqm_deen-sys-doc-1", ENGLISH, GERMAN)
    assert [(a.annotator, a.spans) for a in first.annotations] == [("r1", (Span(4, 8, "hallucination"),)), ("r2", ())]
    errors = first.meta["errors"]
    assert [(e["category"].split("/")[1], e["in"], e["rater"]) for e in errors] == [
        ("Addition", "target", "r1"), ("Mistranslation", "target", "r1"), ("Omission", "source", "r2")
    ]  # fmt: skip
    (start, end), (low, high) = errors[1]["places"][0], errors[2]["places"][0]
    assert (ENGLISH[start:end], GERMAN[low:high]) == ("river", "Dorfes")
    assert (second.annotations[0].spans, "errors" in second.meta) == ((), False)


def test_quotation_marks_are_text(tmp_path: Path) -> None:
    path = mqm(tmp_path, rated("r", GERMAN, '"The mill', "No-error"), rated("r", GERMAN, 'mill"', "No-error", 2))
    assert [s.response for s in read(path)] == ['"The mill', 'mill"']


def test_a_mark_that_is_never_closed_reaches_to_the_end(tmp_path: Path) -> None:
    path = mqm(
        tmp_path,
        rated("r", GERMAN, "The <v>old mill", "Accuracy/Addition"),
        rated("r", GERMAN, "The <v>old <v>mill", "Accuracy/Addition", 2),
    )
    report = Report()
    found = rows(path, report)
    assert kinds(found) == ["bad 3", "mqm_deen-sys-doc-1"]  # a bad row ends no group
    assert isinstance(found[1], Sample)
    assert found[1].annotations[0].spans == (Span(4, 12, "hallucination"),)
    assert report.files[str(path)].notes["unclosed_marks"] == 1
    assert kinds(rows(path, strict=True)) == ["bad 2", "bad 3"]


def test_rows_of_one_segment_apart_or_with_another_text_are_samples_of_their_own(tmp_path: Path) -> None:
    path = mqm(
        tmp_path,
        rated("r1", GERMAN, ENGLISH, "No-error"),
        rated("r1", GERMAN, "A mill.", "No-error"),
        rated("r1", GERMAN, ENGLISH, "No-error", 2),
        rated("r2", GERMAN, ENGLISH, "No-error"),
        "sys\tdoc",
    )
    name = "mqm_deen-sys-doc-"
    assert kinds(rows(path)) == [f"{name}1", f"{name}1-2", f"{name}2", "bad 6", f"{name}1-3"]


def test_comments_are_kept_and_missing_columns_named(tmp_path: Path) -> None:
    path = mqm(tmp_path, rated("r", GERMAN, "<v>A</v>", "Other") + "\tHm.", header=MQM + "\tcomment")
    assert one_of(path).meta["errors"][0]["comment"] == "Hm."
    bad = mqm(tmp_path, rated("r", GERMAN, "A", "Other"), header=MQM.replace("rater", "who"))
    found = rows(bad, format="mqm")
    assert "does not name the columns rater" in found[0].message  # type: ignore[union-attr]


# Languages of a pair.


@pytest.mark.parametrize(
    ("stem", "pairs"),
    [
        ("mqm_ted_zhen", [("zh-Hans", "en")]),
        ("news.en-de", [("en", "de")]),
        ("eng_deu", [("en", "de")]),
        ("rows", []),
        ("enen", []),
    ],
)
def test_a_language_pair_is_read_from_the_file_name(stem: str, pairs: list[tuple[str, str]]) -> None:
    assert pairs_in_name(stem) == pairs


@pytest.mark.parametrize("name", ["test", "frit", "deen", "ende", "csen"])
def test_a_name_that_the_texts_contradict_is_not_believed(tmp_path: Path, name: str) -> None:
    """`test` reads as Telugu to Southern Sotho, and `csen` agrees with the texts in one language only."""
    path = tmp_path / f"{name}.tsv"
    path.write_text(SCORED, encoding="utf-8")
    sample = next(iter(read(path)))
    source = "cs" if name == "csen" else "de"
    assert (sample.evidence[0].language, sample.language) == (source, "en")
    assert next(iter(read(path, language="nl"))).language == "nl"


def test_a_table_states_the_language_of_its_sources(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("src\tmt\tsrc_lang\ttgt_lang\nNi.\tNie.\tuk\tpol\n", encoding="utf-8")
    sample = one_of(tmp_path / "a.tsv")
    assert (sample.language, sample.evidence[0].language, dict(sample.meta)) == ("pl", "uk", {})
    (tmp_path / "b.tsv").write_text("context\tanswer\tsource_lang\nAlt.\tSo alt.\ten\n", encoding="utf-8")
    other = one_of(tmp_path / "b.tsv")  # the language of what both were translated from, as far as anybody knows
    assert (other.evidence[0].language, dict(other.meta)) == (None, {"source_lang": "en"})


def test_the_rows_of_several_people_are_one_translation(tmp_path: Path) -> None:
    row = {"srcLocale": "de", "tgtLocale": "en", "id": "1", "source": GERMAN, "target": ENGLISH}
    error = {"category": "Hallucination", "spans": [{"start": 0, "end": 3, "text": "The"}]}
    people = [row | {"annotatorID": "anna", "errors": [error]}, row | {"annotatorID": "ben", "errors": []}]
    alike = [each | {"id": "2"} for each in people]  # a translation that recurs is another one
    (tmp_path / "hat.json").write_text(json.dumps([*people, *alike, people[1]]), encoding="utf-8")
    first, second, again = rows(tmp_path / "hat.json", labelled=True)
    assert isinstance(first, Sample)
    assert isinstance(second, Sample)
    assert isinstance(again, FailedRow)
    assert [(each.annotator, len(each.spans or ())) for each in first.annotations] == [("anna", 1), ("ben", 0)]
    assert (second.id, second.annotations) == ("2", first.annotations)
    assert "labels the response of line 1 again" in again.message
    (tmp_path / "one.json").write_text(json.dumps([people[0], people[0] | {"id": "2"}]), encoding="utf-8")
    assert kinds(rows(tmp_path / "one.json", labelled=True)) == ["1", "2"]
