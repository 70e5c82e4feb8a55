"""Statistics of data sets: by hand, by parts, and the percentages that hat and halluverse print."""

from __future__ import annotations

import csv
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import pytest

from veriglot.bench.data import BANDS, band_of, statistics_by_language, statistics_of, statistics_row
from veriglot.errors import UnknownNameError
from veriglot.formats.reader import read
from veriglot.records import Annotation, Evidence, Kind, Pointer, Sample, Span, Task, Unit

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def translation(name: str, source: str, target: str, *marks: tuple[int, int], labelled: bool = True) -> Sample:
    spans = tuple(Span(start, end, "hallucination") for start, end in marks)
    gold = Annotation(annotator="gold", kind=Kind.HUMAN, taxonomy="hat", spans=spans)
    return Sample(
        id=name, response=target, task=Task.TRANSLATION, language="de", evidence=(Evidence(source, language="en"),),
        annotations=(gold,) if labelled else (),
    )  # fmt: skip


SAMPLES = [
    translation("a", "one two", "eins zwei drei", (10, 14)),  # 4 of 14 characters: 28.6 %
    translation("b", "four", "vier"),
    translation("c", "five six seven eight", "fünf sechs sieben a b", (18, 19)),  # 1 of 21: 4.8 %
    translation("d", "nine", "neun", labelled=False),
]


def test_by_hand() -> None:
    found = statistics_of(SAMPLES)
    assert [found[name] for name in ("samples", "labelled", "hallucinated", "marks")] == [4, 3, 2, 2]
    assert [found[f"band_{low}_{high}"] for low, high in BANDS] == [0.5, 0.0, 0.5]
    assert found["sentence_rate"] == pytest.approx(2 / 3)
    assert found["character_rate"] == pytest.approx(5 / (14 + 4 + 21))
    assert found["length_ratio"] == pytest.approx((14 + 4 + 21) / (7 + 4 + 20))
    assert found["mean_length_ratio"] == pytest.approx((14 / 7 + 4 / 4 + 21 / 20) / 3)
    assert found["hallucinated_length_ratio"] == pytest.approx(35 / 27)
    assert found["hallucinated_mean_length_ratio"] == pytest.approx((2 + 21 / 20) / 2)
    assert (found["evidence_units"], found["response_units"], found["mean_response_units"]) == (7, 9, 3.0)
    assert found["unverified"] is None


def test_types_are_counted_by_mark_and_by_response_in_each_language() -> None:
    def labelled(name: str, language: str, *marks: Span) -> Sample:
        gold = Annotation("gold", Kind.HUMAN, "fava", spans=marks)
        return Sample(id=name, response="one two three", language=language, annotations=(gold,))

    two = Span(0, 3, "entity"), Span(4, 7, "entity")
    rows = [labelled("a", "en", *two, Span(8, 13, "invented")), labelled("b", "en", Span(0, 3, "entity"))]
    found = statistics_by_language([*rows, labelled("c", "de", Span(0, 3))])
    counted = {name: [part[name] for part in found.values()] for name in found["de"] if name.endswith(("y", "ed"))}
    names = {name: counted[name] for name in counted if name.startswith(("marks_", "responses_"))}
    assert list(found) == ["de", "en"]
    assert names == {
        "marks_entity": [0, 3], "marks_invented": [0, 1], "responses_entity": [0, 2], "responses_invented": [0, 1],
    }  # fmt: skip


def test_translations_are_counted_by_pair() -> None:
    monolingual = Sample(id="m", response="Ja.", language="German", evidence=(Evidence("Ja.", language="de"),))
    found = statistics_by_language([*SAMPLES, monolingual, Sample(id="u", response="?")])
    assert {name: part["samples"] for name, part in found.items()} == {"de": 1, "en-de": 4, "und": 1}


def test_a_language_that_is_not_stated_is_identified() -> None:
    samples = [Sample(id=text, response=text) for text in ("Der Turm wurde gebaut.", "Ce pont est très ancien.", "?")]
    assert set(statistics_by_language(samples)) == {"de", "fr", "und"}


def test_borders_belong_to_the_lower_band() -> None:
    assert [band_of(marked, 100) for marked in (0, 1, 5, 6, 25, 26, 100)] == [
        None,
        *(BANDS[k] for k in (0, 0, 1, 1, 2, 2)),
    ]
    assert band_of(1, 20) == BANDS[0]  # exactly 5 %, which floating-point division would decide either way
    assert band_of(1, 4) == BANDS[1]
    assert [band[1] for band in BANDS] == [5, 25, 100]


def test_nothing_has_no_rates() -> None:
    row = statistics_of([])
    assert row["samples"] == 0
    assert all(row[name] is None for name in ("length_ratio", "character_rate", "sentence_rate", "band_0_5"))
    with pytest.raises(UnknownNameError):
        statistics_of([], unit="token")


def test_facts_of_typed_labels() -> None:
    text = "Mira Holt was born in Odense in 1902. She died in Paris."
    spans = (Span(text.index("1902"), text.index("1902") + 4, "entity"),)
    gold = Annotation(annotator="gold", kind=Kind.HUMAN, taxonomy="fava", spans=spans)
    found = statistics_of([Sample(id="x", response=text, language="en", annotations=(gold,))])
    assert [found[name] for name in ("facts", "supported", "contradicted", "unverified")] == [4, 0.75, 0.25, 0.0]
    assert (found["support_rate"], found["evidence_units"], found["length_ratio"]) == (0.75, 0, None)


TWO = "Mira Holt was born in Odense in 1902. She died in Paris."
WIKI = (Evidence("Mira Holt was born in Aarhus in 1902.", id="w"),)


def annotated(name: str, *flags: str) -> Annotation:
    """Two sentences with their facts counted, and where the evidence for them stands."""
    places = (Pointer("w", 0, 9), Pointer("w", 22, 28))
    units = (
        Unit(0, 37, "contradicted", evidence=places, counts={"supported": 2, "contradicted": 1}),
        Unit(38, 56, "unverified", counts={"supported": 1, "unverified": 3}),
    )
    return Annotation(name, Kind.HUMAN, "support", units=units, flags=flags)


def test_annotations_as_kang_s_table_9() -> None:
    flags = ("context_conflict[38:56]", "subjective[0:37]", "source_noise")
    one = Sample(id="1", response=TWO, language="en", evidence=WIKI, annotations=(annotated("a", *flags),))
    two = Sample(id="2", response=TWO, language="en", evidence=WIKI, annotations=(annotated("a"),))
    (by_sentence,) = statistics_by_language([one, two], level="sentence").values()
    assert by_sentence == {
        "examples": 4, "mean_words": (8 + 4) / 2, "mean_evidence_places": 1.0, "mean_facts": 3.5,
        "support_rate": pytest.approx((2 / 3 + 1 / 4) / 2), "contradicted_rate": pytest.approx(1 / 6),
        "unverified_rate": 3 / 8, "flag_context_conflict": 0.25, "flag_subjective": 0.25,
    }  # fmt: skip
    (by_response,) = statistics_by_language([one, two]).values()
    shown = ("mean_facts", "mean_evidence_places", "support_rate", "supported", "flag_source_noise", "flag_subjective")
    assert [by_response[name] for name in shown] == [7, 2, pytest.approx(3 / 7), pytest.approx(3 / 7), 0.5, 0.5]
    (by_fact,) = statistics_by_language([one, two], level="fact").values()
    assert by_fact["mean_facts"] == 1
    german = msgspec.structs.replace(one, id="3", language="de", annotations=(annotated("a"),))
    assert statistics_by_language([one, german])["de"]["flag_subjective"] == 0.0, "it is set elsewhere"


def test_a_flag_counts_where_most_set_it() -> None:
    people = (annotated("a", "inferred[0:37]"), annotated("b", "inferred[0:37]", "temporal[0:37]"), annotated("c"))
    sample = Sample(id="1", response=TWO, language="en", evidence=WIKI, annotations=people)
    (most,) = statistics_by_language([sample], level="sentence").values()
    assert (most["flag_inferred"], most.get("flag_temporal")) == (0.5, None)
    (anybody,) = statistics_by_language([sample], level="sentence", annotator="union").values()
    assert (anybody["flag_inferred"], anybody["flag_temporal"]) == (0.5, 0.5)


def test_edited_pairs_as_halluverse_s_table_2() -> None:
    def pair(original: str, edited: str, label: str) -> Sample:
        whole = Annotation("gold", Kind.HUMAN, "halluverse", units=(Unit(0, len(edited), label),))
        return Sample(
            id=label,
            response=edited,
            language="en",
            evidence=(Evidence(original, language="en"),),
            annotations=(whole,),
        )

    found = statistics_of(
        [pair("He was born.", "He was born in Rome.", "entity"), pair("A b.", "A b c d.", "sentence")]
    )
    assert [found[name] for name in ("labelled", "evidence_units", "response_units")] == [2, 5, 9]
    assert (found["mean_evidence_units"], found["mean_response_units"], found["sentence_rate"]) == (2.5, 4.5, 1.0)


def test_hat_s_percentages_follow_from_counts(shared_facts: Path) -> None:
    def rows(name: str) -> list[dict[str, str]]:
        return list(csv.DictReader((shared_facts / name).read_text("utf-8").splitlines()))

    printed = {
        (row["direction"], row["language"], row["split"]): row
        for name in ("hat_table1_statistics_en_x.csv", "hat_table2_statistics_x_en.csv")
        for row in rows(name)
    }
    derived = rows("hat_derived_hallucinated_counts.csv")
    assert len(derived) == len(printed) == 114
    for row in derived:
        paper = printed[row["direction"], row["language"], row["split"]]
        solutions = row["candidates_total/0_5/5_25/25_100"].split(" | ")
        assert len(solutions) == (1 if row["status"] == "unique" else 2)
        for solution in solutions:  # four rows have two that give the same percentages
            total, *bands = (int(count) for count in solution.split("/"))
            counts = {f"band_{low}_{high}": count for (low, high), count in zip(BANDS, bands, strict=True)}
            found = statistics_row(Counter(counts, labelled=int(row["ns"]), hallucinated=total))
            assert found["sentence_rate"] is not None
            assert 100 * found["sentence_rate"] == pytest.approx(float(paper["shr_pct"]), abs=0.0501)
            for share, column in zip(
                (found[name] for name in counts), ("shr_0_5_pct", "shr_5_25_pct", "shr_25_100_pct"), strict=True
            ):
                assert share is not None
                assert 100 * share == pytest.approx(float(paper[column]), abs=0.0501)


def test_a_real_set(shared_data: Path) -> None:
    found = statistics_by_language(read(shared_data / "mt_guerreiro_deen" / "annotated_corpus.csv"))["de-en"]
    assert found["samples"] == found["labelled"] == 3415
    assert found["sentence_rate"] is not None
    assert 0 < found["sentence_rate"] < 1
    assert [found[f"band_{low}_{high}"] for low, high in BANDS] == [0, 0, 1]  # its labels are of whole translations
    assert found["unverified"] is None
