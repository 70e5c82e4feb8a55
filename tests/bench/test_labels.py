"""What labels say of responses, sentences and facts."""

from __future__ import annotations

import msgspec
import pytest

from veriglot.bench.items import item_labels
from veriglot.records import Annotation, Kind, Sample, Span, Unit

TEXT = "Mira Holt was born in Odense in 1902. She died in Paris."


def labelled(taxonomy: str, *spans: tuple[str, str | None], text: str = TEXT) -> Sample:
    marks = tuple(Span(text.index(part), text.index(part) + len(part), type_) for part, type_ in spans)
    annotation = Annotation(annotator="gold", kind=Kind.HUMAN, taxonomy=taxonomy, spans=marks)
    return Sample(id="s", response=text, language="English", annotations=(annotation,), meta={"group": "g"})


def test_shares_are_of_facts() -> None:
    sample = labelled("fava", ("1902", "entity"), ("Paris", "unverifiable"))
    facts = item_labels(sample, "fact")
    assert facts is not None
    assert [TEXT[item.start : item.end] for item in facts] == [
        "Mira Holt was born", "in Odense", "in 1902", "She died in Paris",
    ]  # fmt: skip
    assert [(f.nonfactual, f.support, f.contradicted, f.unverified) for f in facts] == [
        (False, 1, 0, 0), (False, 1, 0, 0), (True, 0, 1, 0), (True, 0, 0, 1),
    ]  # fmt: skip
    (whole,) = item_labels(sample) or ()
    assert (whole.nonfactual, whole.facts) == (True, 4)
    assert (whole.support, whole.contradicted, whole.unverified) == (0.5, 0.25, 0.25)
    first, second = item_labels(sample, "sentence") or ()
    assert (first.facts, first.support, second.facts, second.unverified) == (3, pytest.approx(2 / 3), 1, 1.0)


def test_a_contradicted_fact_is_not_unverified_too() -> None:
    (whole,) = item_labels(labelled("support", ("in 1902", "unverified"), ("1902", "contradicted"))) or ()
    assert (whole.contradicted, whole.unverified) == (0.25, 0.0)


def test_supported_marks_are_no_errors() -> None:
    (whole,) = item_labels(labelled("support", ("1902", "supported"))) or ()
    assert (whole.nonfactual, whole.support, whole.unverified) == (False, 1.0, 0.0)


@pytest.mark.parametrize("spans", [(), (("1902", "hallucination"),)])
def test_one_type_does_not_tell_what_is_unverified_even_of_clean_items(spans: tuple[tuple[str, str], ...]) -> None:
    (whole,) = item_labels(labelled("hat", *spans)) or ()
    assert whole.support == (0.75 if spans else 1.0)
    assert (whole.contradicted, whole.unverified) == (None, None)


def test_a_mark_without_a_type_leaves_its_item_untold() -> None:
    first, second = item_labels(labelled("fava", ("1902", None), ("Paris", "invented")), "sentence") or ()
    assert (first.support, first.unverified) == (pytest.approx(2 / 3), None)
    assert (second.support, second.unverified) == (0.0, 1.0)


def test_units_over_the_whole_response_are_labels_too() -> None:
    annotation = Annotation("gold", Kind.HUMAN, "critical", units=(Unit(0, len(TEXT), "critical_error"),))
    sample = Sample(id="s", response=TEXT, language="en", annotations=(annotation,))
    (whole,) = item_labels(sample) or ()
    assert (whole.nonfactual, whole.support, whole.unverified) == (True, 0.0, None)
    sentences = item_labels(sample, "sentence")
    assert sentences is not None
    assert [item.nonfactual for item in sentences] == [True, True]


def test_no_labels_and_no_words() -> None:
    assert item_labels(Sample(id="s", response=TEXT)) is None
    assert item_labels(labelled("fava", ("1902", "entity")), annotator="somebody") is None
    empty = labelled("fava", text="")
    (whole,) = item_labels(empty) or ()
    assert (whole.nonfactual, whole.facts, whole.support, whole.unverified) == (False, 0, None, None)
    assert item_labels(empty, "sentence") == []
    assert item_labels(empty, "fact") == []


def supported(*units: Unit) -> Sample:
    gold = Annotation("gold", Kind.HUMAN, "support", units=units)
    return Sample(id="s", response=TEXT, language="en", annotations=(gold,))


def test_facts_that_a_person_counted_stand_for_those_of_the_rules() -> None:
    first = TEXT.index(".") + 1
    counted = Unit(0, first, "contradicted", counts={"supported": 2, "contradicted": 1, "unverified": 1})
    sentences = item_labels(supported(counted), "sentence")
    assert sentences is not None
    assert (sentences[0].nonfactual, sentences[0].facts) == (True, 4)
    assert (sentences[0].support, sentences[0].contradicted, sentences[0].unverified) == (0.5, 0.25, 0.25)
    others = sentences[1].facts
    assert others > 0, "the next sentence was not counted: its facts are those of the rules"
    (whole,) = item_labels(supported(counted)) or ()
    assert whole.facts == 4 + others
    assert whole.unverified == pytest.approx(1 / (4 + others))


def test_the_label_of_a_fact_is_not_that_of_the_facts_inside_it() -> None:
    text = "Mira Holt, a Danish painter, was born in Odense in 1902."
    labels = (("supported", 0, 37), ("contradicted", 11, 27), ("unverified", 38, 47), ("supported", 48, 55))
    for clause in ("supported", "contradicted"):
        units = tuple(Unit(start, end, clause if start == 0 else label) for label, start, end in labels)
        sample = msgspec.structs.replace(supported(*units), response=text)
        facts = item_labels(sample, "fact")
        assert facts is not None
        assert [fact.contradicted for fact in facts] == [float(clause == "contradicted"), 1.0, 0.0, 0.0]
    only = item_labels(msgspec.structs.replace(supported(Unit(0, 37, "contradicted")), response=text), "fact")
    assert only is not None
    assert [fact.nonfactual for fact in only] == [True, False, False, False]
