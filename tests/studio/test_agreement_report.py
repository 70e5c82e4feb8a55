"""Agreement of the annotators of samples: who is compared with whom, in which texts, and what is said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import krippendorff
import msgspec
import pytest
from sklearn.metrics import cohen_kappa_score

from veriglot.errors import InputError, UnknownNameError
from veriglot.formats.reader import read
from veriglot.records import Annotation, Kind, Sample, Span, Unit
from veriglot.studio.agreement import AgreementReport, AgreementRow, agreement
from veriglot.text.facts import facts
from veriglot.text.segmentation import word_bounds

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "Ada Lovelace was born in 1815 in London and never learned to play chess in Paris."
SPANS = {
    "anna": [(24, 29, "entity"), (44, 80, "invented")],
    "ben": [(25, 29, "entity"), (50, 72, "subjective")],
    "cleo": [(33, 39, "entity")],
}
TAGS = ("de", "en", "fr", "it", "pt")
MODEL = [(24, 29, "entity"), (44, 72, "invented")]


def layer(name: str, spans: list[tuple[int, int, str]], kind: Kind = Kind.HUMAN) -> Annotation:
    return Annotation(name, kind, "fava", tuple(Span(start, end, kind) for start, end, kind in spans))


def sample(number: int, *layers: Annotation, language: str = "en") -> Sample:
    return Sample(f"s{number}", f"{TEXT} {number}", language=language, annotations=layers)


def three_people(texts: int = 6) -> list[Sample]:
    """Everybody shifts their first span by a little from text to text, so that texts differ."""
    found = []
    for number in range(texts):
        layers = [layer(name, [(spans[0][0], spans[0][1] + number % 3, spans[0][2]), *spans[1:]])
                  for name, spans in SPANS.items()]  # fmt: skip
        found.append(sample(number, *layers, layer("gpt", MODEL, Kind.MODEL)))
    return found


def row(report: AgreementReport, measure: str, scope: str = "binary", **wanted: object) -> AgreementRow:
    wanted = {"among": "people", "language": "en", "between": ("all", "all"), **wanted}
    (found,) = (
        one
        for one in report.rows
        if (one.measure, one.scope) == (measure, scope) and all(getattr(one, k) == v for k, v in wanted.items())
    )
    return found


def labels(one: Sample, name: str) -> list[str]:
    spans = next(layer.spans for layer in one.annotations if layer.annotator == name) or ()
    found = []
    for start, end in word_bounds(one.response, "en").tolist():
        over = [span for span in spans if span.start < end and span.end > start]
        found.append(over[0].type or "" if over else "-")
    return found


def test_kappa_is_averaged_over_pairs_and_each_pair_is_shown() -> None:
    samples = three_people()
    report = agreement(samples, resamples=50, gamma=0)
    for scope in ("binary", "typed"):
        by_pair = {}
        for pair in (("anna", "ben"), ("anna", "cleo"), ("ben", "cleo")):
            first, second = ([word for one in samples for word in labels(one, name)] for name in pair)
            if scope == "binary":
                first, second = ([word != "-" for word in side] for side in (first, second))
            by_pair[pair] = cohen_kappa_score(first, second)
            assert row(report, "kappa", scope, between=pair).value == pytest.approx(by_pair[pair])
        mean = row(report, "kappa", scope)
        assert mean.value == pytest.approx(sum(by_pair.values()) / 3)
        assert mean.pairs == 3
        assert mean.texts == 6
        assert mean.low is not None
        assert mean.high is not None
        assert mean.low <= mean.high
    assert report.annotators == {"anna": 6, "ben": 6, "cleo": 6}
    assert not report.anonymous


def test_a_file_for_each_annotator_is_the_same_as_one_for_all() -> None:
    samples = three_people()
    parted = [
        Sample(f"{one.id}-{layer.annotator}", one.response, language="en", annotations=(layer,))
        for one in samples
        for layer in one.annotations
    ]
    together, apart = agreement(samples, gamma=2), agreement(reversed(parted), gamma=2)
    assert together == apart


def test_people_are_held_against_silver_and_the_best_is_named() -> None:
    report = agreement(three_people(), resamples=0, gamma=0)
    kappas = {name: row(report, "kappa", "typed", among="silver", between=(name, "gpt")).value for name in SPANS}
    assert report.best == {"en": max(kappas, key=lambda name: kappas[name] or 0.0)} == {"en": "anna"}
    few = agreement(three_people()[:4], resamples=0, gamma=0)
    assert few.best == {}
    assert "nobody is named best with silver in en: 5 texts are the fewest" in few.notes
    mean = row(report, "kappa", "typed", among="silver").value
    assert mean == pytest.approx(sum(value or 0.0 for value in kappas.values()) / 3)
    assert not any(one.measure in ("alpha", "gamma") for one in report.rows if one.among == "silver")


def test_one_name_for_several_people_is_nobody() -> None:
    samples = [sample(n, layer("gold", spans)) for n in range(3) for spans in SPANS.values()]
    report = agreement(samples, resamples=0, gamma=0)
    assert report.anonymous
    assert report.annotators == {}
    assert report.shared == 3
    assert {one.measure for one in report.rows} == {"pi", "alpha", "span_f1", "span_f1_exact"}
    assert all(one.between == ("all", "all") for one in report.rows)
    assert any("several people" in note for note in report.notes)


def test_order_of_nobodies_changes_nothing() -> None:
    samples = [sample(n, layer("gold", spans)) for n in range(3) for spans in SPANS.values()]
    first, second = agreement(samples, gamma=0), agreement(samples[::-1], gamma=0)
    assert {(one.measure, one.scope, one.value) for one in first.rows} == {
        (one.measure, one.scope, one.value) for one in second.rows
    }


def test_single_texts_of_many_languages_make_an_interval_that_has_a_width() -> None:
    """Each drawn from itself alone would tell of a certainty that five texts do not give."""
    found = [msgspec.structs.replace(one, language=tag) for one, tag in zip(three_people(5), TAGS, strict=True)]
    report = agreement(found, resamples=200)
    assert all(row(report, "kappa", language=tag).low is None for tag in TAGS)
    whole = row(report, "kappa", language="all")
    assert whole.low is not None
    assert whole.high is not None
    assert whole.low < whole.value < whole.high  # type: ignore[operator]


def test_languages_stand_alone_and_together() -> None:
    samples = [*three_people(), *(sample(9 + n, *three_people()[n].annotations, language="de") for n in range(2))]
    report = agreement(samples, resamples=20, gamma=0)
    assert {one.language for one in report.rows} == {"en", "de", "all"}
    assert row(report, "alpha", language="all").texts == 8
    assert row(report, "alpha", language="de").texts == 2


def test_full_agreement_is_one_and_marking_nothing_is_no_agreement_by_chance_alone() -> None:
    same = [sample(n, layer("a", SPANS["anna"]), layer("b", SPANS["anna"])) for n in range(3)]
    report = agreement(same, resamples=0, gamma=2)
    assert {one.value for one in report.rows} == {1.0}
    nothing = [sample(n, layer("a", []), layer("b", [])) for n in range(3)]
    empty = agreement(nothing, resamples=0, gamma=2)
    assert all(one.value is None and one.reason for one in empty.rows)


def test_fewer_than_five_texts_give_a_figure_and_no_interval() -> None:
    few = agreement(three_people(4), resamples=50, gamma=2)
    assert all(one.value is not None for one in few.rows)
    assert all((one.low, one.high) == (None, None) for one in few.rows)
    assert all("too few texts for an interval: 4 texts" in (one.reason or "") for one in few.rows)
    enough = agreement(three_people(5), resamples=50, gamma=2)
    assert all((one.low is None) == (one.reason == "no interval: all resamples agree") for one in enough.rows)
    assert any(one.low is not None for one in enough.rows)


def test_a_row_that_makes_one_name_several_people_is_named() -> None:
    samples = [*three_people(3), sample(1, layer("ben", SPANS["ben"]))]
    report = agreement(samples, resamples=0, gamma=0, where=lambda number: f"row {number + 1}")
    assert report.anonymous
    assert [(one.annotator, one.first, one.second) for one in report.repeated] == [("ben", "row 2", "row 4")]
    assert any("'ben': row 2, and row 4" in note for note in report.notes)
    assert not agreement(three_people(3), resamples=0, gamma=0).repeated


def test_nobody_to_compare_with_is_an_error() -> None:
    with pytest.raises(InputError, match="no text has two annotators"):
        agreement([sample(n, layer("a", SPANS["anna"])) for n in range(3)])


def test_people_agree_on_real_gold_about_as_the_paper_says(shared_data: Path) -> None:
    """mFAVA's gold has repeats, without names; binary kappas of its Figure 2 are about 0.7."""
    report = agreement(read(shared_data / "mfava" / "gold_dev"), resamples=100, gamma=0)
    for language in ("de", "ru"):
        found = row(report, "pi", language=language)
        assert found.texts >= 10
        assert 0.6 < (found.value or 0.0) < 0.9
        assert (row(report, "pi", "typed", language=language).value or 1.0) < (found.value or 0.0)
    silver = row(report, "kappa", among="silver", language="all")
    assert 0.6 < (silver.value or 0.0) < 0.8
    assert silver.texts == 571


def test_gold_that_was_made_of_peoples_layers_is_nobodys() -> None:
    without = three_people()
    settled = [
        msgspec.structs.replace(one, annotations=(*one.annotations, layer("gold", SPANS["anna"]))) for one in without
    ]
    report, plain = (agreement(samples, resamples=20, gamma=0) for samples in (settled, without))
    assert report.rows == plain.rows
    assert report.annotators == {"anna": 6, "ben": 6, "cleo": 6}
    assert [note for note in report.notes if "`gold`" in note and note.startswith("in 6 texts")]
    assert plain.notes == ()


def test_gold_alone_stands_for_people() -> None:
    """In data sets that leave names out, the same response stands there once for each of them."""
    twice = [sample(n, layer("gold", SPANS[name])) for n in range(6) for name in ("anna", "ben")]
    report = agreement(twice, resamples=20, gamma=0)
    assert report.anonymous
    assert row(report, "pi").texts == 6


def test_two_models_are_held_against_each_other() -> None:
    samples = [
        sample(n, layer("one@1", MODEL, Kind.MODEL), layer("two@1", [(24, 29 + n % 2, "entity")], Kind.MODEL))
        for n in range(6)
    ]
    report = agreement(samples, resamples=20, gamma=0)
    assert {one.among for one in report.rows} == {"models"}
    first, second = ([word != "-" for one in samples for word in labels(one, name)] for name in ("one@1", "two@1"))
    found = row(report, "kappa", among="models", between=("one@1", "two@1"))
    assert found.value == pytest.approx(cohen_kappa_score(first, second))


PAIRS = {  # labels of ten pairs by two people
    "anna": ["Entity", "Entity", "Entity", "Relation", "Relation", "Sentence", "Sentence", "0", "0", "Entity"],
    "ben": ["Entity", "Entity", "Relation", "Relation", "Relation", "Sentence", "Entity", "0", "Entity", "Entity"],
}


def pair_files(folder: Path) -> list[Path]:
    """HalluVerse CSV of each person: formats without names call everybody `gold`."""
    paths = []
    for name, column in PAIRS.items():
        paths.append(folder / f"{name}.csv")
        rows = (f"{n},en,It rained in Lima {n}.,It rained in Rome {n}.,{label}" for n, label in enumerate(column))
        heads = "id,language,original_sentence,edited_sentence,hallucination_type"
        paths[-1].write_text("\n".join((heads, *rows)) + "\n", "utf-8")
    return paths


def of_files(paths: list[Path], unit: str) -> AgreementReport:
    rows = [(str(path), sample) for path in paths for sample in read(path)]
    return agreement((one for _, one in rows), unit=unit, resamples=20, file=lambda number: rows[number][0])


def test_kappa_of_pairs_is_that_of_halluverse_with_no_hallucination_as_a_label(tmp_path: Path) -> None:
    report = of_files(pair_files(tmp_path), "response")
    found = row(report, "kappa", "typed", between=("anna", "ben"))
    # alike in 7 of 10; by chance 4 * 5, 2 * 3, 2 * 1 and 2 * 1 of 100
    assert found.value == pytest.approx((0.7 - 0.30) / (1 - 0.30))
    assert found.value == pytest.approx(cohen_kappa_score(*PAIRS.values()))
    assert (found.items, found.texts) == (10, 10)
    binary = row(report, "kappa", between=("anna", "ben"))
    assert binary.value == pytest.approx((0.9 - 0.74) / (1 - 0.74))  # 8 * 9 and 2 * 1 of 100
    names = sorted({name for column in PAIRS.values() for name in column})
    labels_of = [[names.index(label) for label in column] for column in PAIRS.values()]
    expected = krippendorff.alpha(labels_of, level_of_measurement="nominal")
    assert row(report, "alpha", "typed").value == pytest.approx(expected)
    assert {one.among for one in report.rows} == {"people"}  # the spans that the reader computes are nobody's
    assert {one.measure for one in report.rows} == {"kappa", "alpha"}
    assert report.annotators == {"anna": 10, "ben": 10}
    assert any("each file stands for one annotator" in note for note in report.notes)


def test_files_stand_for_nobody_where_one_holds_a_text_twice(tmp_path: Path) -> None:
    first, second = pair_files(tmp_path)
    lines = second.read_text("utf-8").splitlines()
    second.write_text("\n".join([*lines, lines[1].replace("0,", "again,", 1)]) + "\n", "utf-8")
    report = of_files([first, second], "response")
    assert report.anonymous
    assert {one.measure for one in report.rows} == {"pi", "alpha"}


def test_pairs_with_one_edited_sentence_and_two_originals_are_two(tmp_path: Path) -> None:
    paths = pair_files(tmp_path)
    for path in paths:
        lines = path.read_text("utf-8").splitlines()
        path.write_text(
            "\n".join([*lines, lines[1].replace("0,en,It rained in Lima", "x,en,It snowed in Lima")]) + "\n"
        )
    assert row(of_files(paths, "response"), "kappa", "typed").texts == 11


FACT_TEXT = "Mira Holt, a Danish painter, was born in Odense in 1902."
FACTS = [(0, 37), (11, 27), (38, 47), (48, 55)]  # an apposition lies inside the clause


def fact_sample(number: int, **labels_of: str) -> Sample:
    names = {"s": "supported", "c": "contradicted", "u": "unverified"}
    layers = [
        Annotation(
            name,
            Kind.HUMAN,
            "support",
            units=tuple(Unit(*place, names[c]) for place, c in zip(FACTS, codes, strict=True) if c != "-"),
        )
        for name, codes in labels_of.items()
    ]
    return Sample(str(number), f"{FACT_TEXT} {number}", language="en", annotations=tuple(layers))


def test_facts_that_people_labelled_are_compared_one_by_one() -> None:
    codes = [("csss", "csus"), ("csuc", "cssc"), ("ussc", "csss"), ("ssss", "scss"), ("cscs", "cscs")]
    samples = [fact_sample(number, anna=a, ben=b) for number, (a, b) in enumerate(codes)]
    report = agreement(samples, unit="fact", resamples=20)
    anna, ben = ("".join(column) for column in zip(*codes, strict=True))
    found = row(report, "kappa", "typed", between=("anna", "ben"))
    assert found.value == pytest.approx(cohen_kappa_score(list(anna), list(ben)))
    assert found.items == 20
    binary = cohen_kappa_score([c != "s" for c in anna], [c != "s" for c in ben])
    assert row(report, "kappa", between=("anna", "ben")).value == pytest.approx(binary)
    numbers = [["scu".index(c) for c in column] for column in (anna, ben)]
    assert row(report, "alpha", "typed").value == pytest.approx(
        krippendorff.alpha(numbers, level_of_measurement="nominal")
    )
    partly = agreement([*samples, fact_sample(9, anna="cs-s", ben="csss")], unit="fact", resamples=0)
    assert row(partly, "kappa").items == 23
    assert any(note.startswith("1 facts that not all annotators") for note in partly.notes)


def test_spans_mark_the_facts_whose_own_words_they_touch() -> None:
    samples = three_people()
    report = agreement(samples, unit="fact", resamples=0)
    columns = [
        [
            any(s.start < high and low < s.end for low, high in fact.parts for s in layer.spans or ())
            for one in samples
            for fact in facts(one.response, "en")
            for layer in one.annotations
            if layer.annotator == name
        ]
        for name in ("anna", "ben")
    ]
    found = row(report, "kappa", between=("anna", "ben"))
    assert found.value == pytest.approx(cohen_kappa_score(*columns))
    assert found.items == len(columns[0]) > 12


def test_a_single_type_says_nothing_more_of_spans() -> None:
    """Every column stood twice with the same figures, and so did every note."""
    spans = {"anna": [(24, 29, "entity")], "ben": [(25, 39, "entity")]}
    samples = [sample(number, *(layer(*each) for each in spans.items())) for number in range(6)]
    assert {each.scope for each in agreement(samples, resamples=0, gamma=0).rows} == {"binary"}
    assert {each.scope for each in agreement(samples, unit="response", resamples=0).rows} == {"binary", "typed"}


def test_two_people_of_one_name_in_one_row_are_not_the_same_twice() -> None:
    samples = [sample(n, layer("gold", SPANS["anna"]), layer("gold", SPANS["cleo"])) for n in range(6)]
    apart = [sample(n, layer("gold", SPANS[name])) for n in range(6) for name in ("anna", "cleo")]
    report = agreement(samples, resamples=20, gamma=0)
    assert (row(report, "pi").value or 1.0) < 0.5
    assert report.rows == agreement(apart, resamples=20, gamma=0).rows


def test_a_unit_that_is_none_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean response"):
        agreement(three_people(), unit="responses")
