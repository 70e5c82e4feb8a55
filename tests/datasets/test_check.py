"""Checks of data sets: they report the inserted faults with counts, and nothing else; a cleaned copy is clean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from faulty_data import sample, sentences, sound, write
from msgspec.structs import replace

from json_lines import read_lines
from veriglot.datasets.checks.checker import CheckReport, CleanedCopy, check
from veriglot.datasets.checks.findings import Finding, checks
from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.formats.reader import read
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task, encode

if TYPE_CHECKING:
    from pathlib import Path

BALANCE = {"no_clean_rows", "dense_marks", "missing_types", "rare_types"}


def counts(report: CheckReport) -> dict[str, int]:
    """The findings, without those about sets of labels."""
    return {one.check: one.count for one in report.findings if one.check not in BALANCE}


def the(report: CheckReport, name: str) -> Finding:
    found = report.finding(name)
    assert found is not None, f"{name} found nothing"
    return found


def test_sound_rows_have_no_findings(tmp_path: Path) -> None:
    report = check([str(write(tmp_path / "rows.jsonl", sound(40, 1)))])
    assert counts(report) == {}
    assert {*report.passed, *report.not_looked_for} >= checks().keys() - BALANCE
    assert report.files[0].samples == 40
    assert "check:checks@2" in report.signature


def test_a_row_that_cannot_be_read_says_which_field_and_is_counted_among_all(tmp_path: Path) -> None:
    report = check([str(write(tmp_path / "rows.jsonl", [*sound(3, 7), b'{"id": "nothing said"}']))])
    found = the(report, "unreadable_row")
    assert (found.count, found.of) == (1, 4)
    assert found.examples[0].detail == "response: it is missing"
    twice = check([str(write(tmp_path / "twice.jsonl", [sample("same", "A text."), sample("same", "Another.")]))])
    assert the(twice, "repeated_id").examples[0].detail == "the id 'same' occurred before"


def test_every_planted_fault_of_a_row_is_found_and_only_those(tmp_path: Path) -> None:
    text = "The old mill near the river was built by the widow Kroll in 1734."
    evidence = "A mill stood by the river; the widow Anna Kroll had it built in the year 1734, as the chronicle tells."
    rows: list[Sample | bytes] = [
        *sound(20, 2),
        b"{broken",
        b'{"id": "late", "response": "abc", "annotations":'
        b' [{"annotator": "a", "kind": "human", "taxonomy": "fava", "spans": [{"start": 1, "end": 9}]}]}',
        encode(sample("r0", text + " Twice the same id.")),
        sample("type", text, [(4, 7, "nonsense")], evidence=evidence),
        sample("space", f"{text} Space.", [(3, 8, "entity")], evidence=evidence),
        sample("dots", f"{text} Dots ...", [(len(text) + 6, len(text) + 9, "entity"), (4, 7, "entity")]),
        sample("only", f"{text} Only ...", [(len(text) + 6, len(text) + 9, "entity")], evidence=evidence),
        sample("twice", f"{text} Twice.", [(4, 7, "entity"), (4, 7, "entity")], evidence=evidence),
        sample("nested", f"{text} Nested.", [(4, 12, "entity"), (8, 12, "entity")], evidence=evidence),
        sample("crossing", f"{text} Crossing.", [(4, 12, "entity"), (8, 20, "entity")], evidence=evidence),
        sample("none", "  ", [], evidence=evidence),
        sample("tags", f"{text} It is <entity>red</entity>.", [], evidence=evidence),
        sample("lost", f"{text} Lost bytes \ufffd here.", [], evidence=evidence),
        sample("tongue", f"{text} No tongue.", [], evidence=evidence, language=None),
        sample("loop", "It goes round and round. " * 20, [], evidence=evidence),
        sample("echo", f"{text} Echo.", [], evidence="der Turm der Turm der Turm " * 30),
        sample("unknown", f"{text} Unknown.", [], evidence="\u2047 " * 40 + evidence),
    ]
    report = check([str(write(tmp_path / "rows.jsonl", rows))])
    found = counts(report)
    assert found.pop("near_text") == 9  # rows of one text with different endings
    assert found == {
        "unreadable_row": 1, "bad_offsets": 1, "repeated_id": 1, "unknown_type": 1, "span_edges": 1, "blank_span": 2,
        "repeated_span": 1, "overlapping_spans": 2, "no_response": 1, "leftover_tags": 1, "broken_characters": 1,
        "no_language": 1, "looping_response": 1, "garbled_reference": 2, "no_evidence": 1,
    }  # fmt: skip
    assert the(report, "overlapping_spans").kinds == {"nested": 1, "crossing": 1}
    assert the(report, "garbled_reference").kinds == {"looping": 1, "unknown_characters": 1}
    assert {one.id for one in the(report, "garbled_reference").examples} == {"echo", "unknown"}
    assert report.files[0].unreadable == 3
    assert the(report, "unreadable_row").of == len(rows)  # the row itself is one of them


def test_a_cleaned_copy_holds_what_is_sound_repaired_and_says_why_the_rest_is_gone(tmp_path: Path) -> None:
    text = "The old mill near the river was built by the widow Kroll in 1734"
    rows: list[Sample | bytes] = [
        *sound(10, 3),
        b"{broken",
        sample("space", f"{text} again.", [(3, 8, "entity")], evidence="Nothing is known of it."),
        sample("dots", f"{text} and so on ...", [(len(text) + 11, len(text) + 14, "entity"), (4, 7, "entity")]),
        sample("only", f"{text} and on ...", [(len(text) + 8, len(text) + 11, "entity")]),
        sample("none", "", [(0, 0, "x")][:0]),
        sample("tags", f"{text}, <entity>they</entity> say.", []),
    ]
    source = write(tmp_path / "rows.jsonl", rows)
    target = tmp_path / "clean.jsonl"
    report = check([str(source)], clean=CleanedCopy(str(target)))
    assert report.cleaned is not None
    kept = {one.id: one for one in read(target)}
    assert sorted(kept) == sorted([*(f"r{n}" for n in range(10)), "dots", "space"])
    assert (report.cleaned.rows, report.cleaned.repaired, report.cleaned.left_out) == (12, 2, 4)
    space, dots = kept["space"], kept["dots"]
    assert [space.response[s.start : s.end] for s in space.annotations[0].spans or ()] == ["old"]
    assert [dots.response[s.start : s.end] for s in dots.annotations[0].spans or ()] == ["old"]
    assert space.meta["check"]["repaired"] == ["span_edges"]
    gone = read_lines(tmp_path / "clean.jsonl.rejected.jsonl")
    assert [(row.get("sample", {}).get("id"), row["reasons"]) for row in gone] == [
        (None, ["unreadable_row"]), ("only", ["blank_span"]), ("none", ["no_response"]), ("tags", ["leftover_tags"]),
    ]  # fmt: skip
    assert gone[0]["raw"] == "{broken"
    again = check([str(target)])
    assert {one.check for one in again.findings if one.level == "error"} == set()


def test_rows_with_a_faulty_source_are_counted_by_their_flags_and_left_out(tmp_path: Path) -> None:
    text = "The old mill near the river was built by the widow Kroll in 1734"
    rows: list[Sample | bytes] = [*sound(20, 3)]
    for number, flags in enumerate([("source_noise",), ("nonsensical", "spelling_errors"), ("omission",)]):
        row = sample(f"f{number}", f"{text}{', and on' * 9 * (number + 1)}.", [], evidence=text)
        rows.append(replace(row, annotations=(replace(row.annotations[0], flags=flags),)))
    target = tmp_path / "clean.jsonl"
    report = check([str(write(tmp_path / "rows.jsonl", rows))], clean=CleanedCopy(str(target)))
    finding = the(report, "faulty_source")
    assert (finding.count, finding.of, finding.level) == (2, 23, "warning")
    assert finding.kinds == {"source_noise": 1, "nonsensical, spelling_errors": 1}
    gone = {row["sample"]["id"]: row["reasons"] for row in read_lines(tmp_path / "clean.jsonl.rejected.jsonl")}
    assert [id_ for id_, reasons in gone.items() if "faulty_source" in reasons] == ["f0", "f1"]


@pytest.mark.parametrize(("coding", "unit"), [("utf-16-le", "utf-16"), ("utf-8", "utf-8")])
def test_offsets_in_another_unit_are_told_and_put_right(tmp_path: Path, coding: str, unit: str) -> None:
    text = "Über 🏰🏰 der Stadt Łódź liegt das Schloß der Familie Groß."
    start = text.index("Schloß")
    width = len("a".encode(coding))
    first = len(text[:start].encode(coding)) // width
    wrong = Span(first, first + len("Schloß".encode(coding)) // width, "entity", text="Schloß")
    other = Span(0, 3, "entity", text="nirgends")
    rows = [
        Sample(id_, text + id_ * 40, language="de", annotations=(Annotation("a", Kind.HUMAN, "fava", spans=(span,)),))
        for id_, span in (("x", wrong), ("y", other))
    ]
    path = write(tmp_path / "rows.jsonl", rows)
    report = check([str(path)], clean=CleanedCopy(str(tmp_path / "clean.jsonl")))
    assert the(report, "text_mismatch").kinds == {unit: 1, "unknown": 1}
    (kept,) = read(tmp_path / "clean.jsonl")
    (span,) = kept.annotations[0].spans or ()
    assert (kept.response[span.start : span.end], span.text) == ("Schloß", "Schloß")


def test_leaks_are_found_by_text_by_likeness_and_by_reference_and_the_copy_has_none(tmp_path: Path) -> None:
    train, test = sound(30, 4, "train"), sound(30, 5, "test")
    shared = " ".join(sentences(5, 6))
    train += [
        sample("exact", test[0].response.upper(), [], evidence="Quite another reference than that of the test row."),
        sample("near", test[2].response.replace("the", "this", 1) + " " + shared, [], evidence="And yet another one."),
        sample("passage", "A response that nobody has given before, in this or that way.", [], evidence=shared),
        sample("nearly", "One more response that nobody gave, or so it would seem.", [], evidence=shared + " It."),
        Sample("foreign", "Une réponse que personne n'a donnée avant, ni ici ni ailleurs, semble-t-il.", language="fr",
               evidence=(Evidence(" ".join(sentences(5, 7)), language="en"),),
               annotations=(Annotation("silver", Kind.MODEL, "fava", spans=()),)),
    ]  # fmt: skip
    test += [
        sample("held-near", test[2].response + " " + shared, [], evidence="The reference of a row that is held out."),
        sample("held", "What the test asks for is something else entirely, as one may see.", [], evidence=shared),
        sample("held-fr", "What the test asks here is again another thing, as one may see.", [],
               evidence=" ".join(sentences(5, 7))),
    ]  # fmt: skip
    files = [str(write(tmp_path / f"{name}.jsonl", rows)) for name, rows in (("train", train), ("test", test))]
    report = check(files, clean=CleanedCopy(str(tmp_path / "out")))
    found = {one.check: {e.id for e in one.examples} for one in report.findings if one.check.startswith("leaked")}
    assert found == {
        "leaked_text": {"exact"}, "leaked_near_text": {"near"}, "leaked_reference": {"passage"},
        "leaked_near_reference": {"nearly"}, "leaked_reference_across": {"foreign"},
    }  # fmt: skip
    assert {(one.left, one.stays, one.rows) for one in report.leaks} == {("train", "test", 1)}
    kept = {one.id for one in read(tmp_path / "out" / "train.jsonl")}
    assert kept & {"exact", "near", "passage", "nearly", "foreign"} == {"foreign"}
    assert {one.id for one in read(tmp_path / "out" / "test.jsonl")} == {one.id for one in test}
    again = check([str(tmp_path / "out" / f"{name}.jsonl") for name in ("train", "test")])
    assert not [one.check for one in again.findings if one.check.startswith("leaked") and one.level == "error"]


def test_without_two_splits_leaks_are_said_not_to_have_been_looked_for(tmp_path: Path) -> None:
    first = write(tmp_path / "one.jsonl", sound(5, 8))
    second = write(tmp_path / "two.jsonl", sound(5, 8))
    report = check([str(first), str(second)])
    assert "leaked_text" in report.not_looked_for
    assert "leaked_text" not in report.passed
    assert counts(check([str(first), str(second)], splits="files"))["leaked_text"] == 5
    assert counts(check([str(first), str(second)], splits="none")).get("leaked_text") is None


def test_a_split_that_a_sample_states_wins_over_the_name_of_its_file(tmp_path: Path) -> None:
    rows = [
        sample(f"{split}{n}", text, [], evidence=f"Reference {n} of {split}, that no one shares with anybody.",
               meta={"split": split})
        for split in ("train", "test")
        for n, text in enumerate(sentences(4, 9))
    ]  # fmt: skip
    assert counts(check([str(write(tmp_path / "dev.jsonl", rows))]))["leaked_text"] == 4


def test_one_reference_for_several_languages_is_told_from_the_source_of_a_translation(tmp_path: Path) -> None:
    shared = sentences(12, 10)
    german = [f"Die Mühle Nummer {n} wurde vor langer Zeit am Fluss gebaut und steht noch heute." for n in range(12)]
    french = [f"Le moulin numéro {n} fut construit il y a longtemps au bord de la rivière." for n in range(12)]
    for task, expected in ((Task.QA, 24), (Task.TRANSLATION, None)):
        for tag, texts in (("de", german), ("fr", french)):
            rows = [
                sample(f"{tag}{n}", text, [], evidence=shared[n], language=tag, task=task)
                for n, text in enumerate(texts)
            ]
            write(tmp_path / str(task) / f"{tag}.jsonl", rows)
        report = check([str(tmp_path / str(task))])
        assert counts(report).get("foreign_reference") == expected
        assert [(one.shared, one.foreign) for one in report.shared] == [(12, expected is not None)]


def test_scripts_and_languages_are_held_against_what_is_said(tmp_path: Path) -> None:
    cyrillic = "Стара воденица поред реке саграђена је давно и још увек стоји на истом месту."
    latin = "Stara vodenica pored reke sagrađena je davno i još uvek stoji na istom mestu."
    german = "Die alte Mühle am Fluss wurde vor langer Zeit gebaut und steht noch heute an derselben Stelle."
    rows = [
        sample("sr", latin, [], evidence=cyrillic, language="sr-Latn"),
        sample("script", cyrillic, [], evidence=german, language="de"),
        sample("language", german.replace("alte", "neue"), [], evidence=german, language="fi"),
        Sample("translation", german.replace("alte", "rote"), Task.TRANSLATION, "de", evidence=(Evidence(cyrillic),)),
        sample(
            "title",
            "Variations of Snow and Ice on a Global and Regional Scale",
            [],
            language="de",
            evidence=f"{german} Das Buch heißt „Variations of Snow and Ice on a Global and Regional Scale“.",
        ),
        sample("mixed", "日本語の文の中に Directors Guild of America Awards がある。", [], language="ja"),
    ]
    report = check([str(write(tmp_path / "rows.jsonl", rows))])
    found = {one.check: [e.id for e in one.examples] for one in report.findings}
    assert found["wrong_script"] == ["script"]
    assert found["wrong_language"] == ["language"]
    assert found["reference_script"] == ["sr"]
    assert found["reference_language"] == ["language"]  # its evidence is assumed to be Finnish too


def test_repeats_are_grouped_compared_and_counted_once(tmp_path: Path) -> None:
    text = "The northern harbour was sold to a merchant from Lund before any railway came there."
    spans = ([(4, 12, "entity")], [(4, 12, "relation")], [(4, 20, "entity")], [])
    rows = [
        sample(
            f"g{n}", text, marks, kind=Kind.HUMAN, annotator="gold", evidence="The harbour was given away for nothing."
        )
        for n, marks in enumerate(spans)
    ]
    copy = sample(
        "copy", text, spans[0], kind=Kind.HUMAN, annotator="gold", evidence="The harbour was given away for nothing."
    )
    path = write(tmp_path / "rows.jsonl", [*sound(20, 11), *rows, copy])
    report = check([str(path)], clean=CleanedCopy(str(tmp_path / "clean.jsonl")))
    assert counts(report) == {"copied_row": 1, "repeated_text": 4, "disagreeing_labels": 1}
    assert the(report, "repeated_text").kinds == {"texts that occur 5 times": 1}
    assert the(report, "disagreeing_labels").kinds == {"clean or not": 1}
    (agreement,) = report.agreement
    assert (agreement.texts, agreement.annotations, agreement.pairs, agreement.same) == (1, 5, 10, 3)
    groups = {one.meta["check"]["group"] for one in read(tmp_path / "clean.jsonl") if one.id.startswith("g")}
    assert len(groups) == 1


def test_one_answer_right_and_wrong_beside_different_evidence_is_no_disagreement(tmp_path: Path) -> None:
    """A regression: annotators disagreed, with an alpha of -0.04, although each row has one annotation."""
    rows = [
        sample(year, "It opened in 1879.", marks, kind=Kind.HUMAN, annotator="gold", evidence=f"It opened in {year}.")
        for year, marks in (("1879", []), ("1897", [(13, 17, "entity")]))
    ]
    report = check([str(write(tmp_path / "rows.jsonl", [*sound(20, 11), *rows]))])
    assert report.finding("disagreeing_labels") is None
    assert report.agreement == ()


def test_labels_without_a_clean_row_or_with_a_missing_type_are_told(tmp_path: Path) -> None:
    texts = sentences(120, 12)
    rows = [sample(f"r{n}", text, [(0, len(text) // 2, "entity")], evidence=text) for n, text in enumerate(texts)]
    report = check([str(write(tmp_path / "rows.jsonl", rows))])
    assert the(report, "no_clean_rows").count == 120
    assert 0.4 < the(report, "dense_marks").count / the(report, "dense_marks").of < 0.6
    assert the(report, "missing_types").count == 5
    (labels,) = report.labels
    assert (labels.responses, labels.clean, labels.types) == (120, 0, {"entity": 120})


def test_rows_are_the_same_whatever_the_container(tmp_path: Path) -> None:
    from veriglot.formats.writer import write as write_samples

    pytest.importorskip("pyarrow", reason="needs the extra `parquet`: pip install 'veriglot[parquet]'")
    rows = sound(15, 13)
    write_samples(rows, tmp_path / "rows.parquet")
    write(tmp_path / "rows.jsonl", rows)
    first, second = (check([str(tmp_path / name)]) for name in ("rows.parquet", "rows.jsonl"))
    assert first.signature == second.signature
    assert first.labels[0].types == second.labels[0].types


def test_two_files_of_one_name_stay_apart_in_the_copy(tmp_path: Path) -> None:
    paths = [str(write(tmp_path / name / "rows.jsonl", sound(4, seed))) for name, seed in (("a", 14), ("b", 15))]
    check(paths, clean=CleanedCopy(str(tmp_path / "out")))
    assert sum(1 for path in (tmp_path / "out").glob("rows*.jsonl") for _ in read(path)) == 8
    report = check(paths, clean=CleanedCopy(str(tmp_path / "one.jsonl")))
    assert report.cleaned is not None
    assert len({one.id for one in read(tmp_path / "one.jsonl")}) == report.cleaned.rows == 8


def test_what_a_copy_cannot_be_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "data" / "rows.jsonl", sound(3, 16))
    with pytest.raises(UsageError, match="would lie inside the data"):
        check([str(path)], clean=CleanedCopy(str(path)))
    with pytest.raises(UsageError, match="would lie inside the data"):
        check([str(path)], clean=CleanedCopy(str(tmp_path / "data")))
    with pytest.raises(UnknownNameError, match="glued_spans"):
        CleanedCopy("out", keep=frozenset({"glued_spans"}))
    with pytest.raises(UsageError, match="not check single rows"):
        CleanedCopy("out", drop=frozenset({"no_clean_rows"}))
    with pytest.raises(UsageError, match="kept and dropped"):
        CleanedCopy("out", keep=frozenset({"near_text"}), drop=frozenset({"near_text"}))
    with pytest.raises(InputError, match="no such file"):
        check([str(tmp_path / "nowhere")])


def test_keep_and_drop_change_what_a_copy_holds(tmp_path: Path) -> None:
    text = "The old mill near the river was built by the widow Kroll in 1734"
    rows = [*sound(5, 17), sample("tags", f"{text} <entity>so</entity>.", []), sample("edge", text, [(3, 7, "entity")])]
    path = write(tmp_path / "rows.jsonl", rows)
    cleaning = CleanedCopy(
        str(tmp_path / "a.jsonl"), frozenset({"leftover_tags", "span_edges"}), frozenset({"no_evidence"})
    )
    report = check([str(path)], clean=cleaning)
    assert report.cleaned is not None
    assert report.cleaned.reasons == {"no_evidence": 2}
    cleaning = CleanedCopy(str(tmp_path / "b.jsonl"), frozenset({"leftover_tags", "span_edges"}))
    check([str(path)], clean=cleaning)
    kept = {one.id: one for one in read(tmp_path / "b.jsonl")}
    assert kept["tags"].response == rows[-2].response
    assert kept["edge"].annotations == rows[-1].annotations


def test_files_without_labels_or_evidence_are_no_trouble(tmp_path: Path) -> None:
    rows = [Sample(f"q{n}", "", Task.QA, "en", question=text) for n, text in enumerate(sentences(4, 18))]
    report = check([str(write(tmp_path / "queries.jsonl", rows))])
    assert counts(report) == {}
    assert (report.files[0].queries, report.files[0].labelled) == (4, 0)
