from __future__ import annotations

import pytest

from veriglot.errors import UsageError
from veriglot.metrics.reference import reference
from veriglot.records import Annotation, Kind, Sample, Span, Unit

TEXT = "Anna was born in Oslo in 1950."


def by(name: str, *spans: tuple[int, int, str | None], kind: Kind = Kind.HUMAN, taxonomy: str = "fava") -> Annotation:
    return Annotation(name, kind, taxonomy, spans=tuple(Span(s, e, t) for s, e, t in spans))


def sample(*annotations: Annotation) -> Sample:
    return Sample("s", TEXT, annotations=annotations)


def test_one_person_wins_over_models() -> None:
    found = reference(sample(by("gpt", (0, 4, "entity"), kind=Kind.MODEL), by("ann", (17, 21, "entity"))))
    assert found is not None
    assert (found.annotator, found.kind) == ("ann", Kind.HUMAN)
    assert found.marks.spans.tolist() == [[17, 21]]
    assert found.marks.types == ("entity",)
    assert found.soft is None


def test_gold_wins_among_people() -> None:
    found = reference(sample(by("a", (0, 4, None)), by("gold", (17, 21, None)), by("b")))
    assert found is not None
    assert found.annotator == "gold"


def test_majority_of_people() -> None:
    found = reference(
        sample(by("a", (17, 21, "entity")), by("b", (14, 21, "relation")), by("c", (18, 29, "entity")), by("d"))
    )
    assert found is not None
    assert found.annotator == "majority"
    assert found.marks.spans.tolist() == [[18, 21]]  # three of four mark these code points; two of four is no majority
    assert found.marks.types == ("entity",)
    assert found.soft is not None
    assert found.soft[[0, 14, 17, 18, 25]].tolist() == [0, 0.25, 0.5, 0.75, 0.25]


def test_union_keeps_every_span_once() -> None:
    found = reference(sample(by("a", (17, 21, "entity")), by("b", (17, 21, "entity"), (25, 29, None))), "union")
    assert found is not None
    assert found.marks.spans.tolist() == [[17, 21], [25, 29]]
    assert found.marks.types == ("entity", None)


def test_an_empty_annotation_is_a_label_and_an_absent_one_is_not() -> None:
    looked = reference(sample(by("a")))
    assert looked is not None
    assert len(looked.marks.spans) == 0
    assert reference(sample(Annotation("a", Kind.HUMAN, "fava"))) is None
    assert reference(sample()) is None
    assert reference(sample(by("a")), "b") is None


def test_several_models_have_to_be_chosen_from() -> None:
    two = sample(by("m1", kind=Kind.MODEL), by("m2", (0, 4, None), kind=Kind.MODEL))
    with pytest.raises(UsageError, match="m1, m2"):
        reference(two)
    chosen = reference(two, "m2")
    assert chosen is not None
    assert chosen.marks.spans.tolist() == [[0, 4]]


def test_clean_types_mark_nothing() -> None:
    found = reference(sample(by("a", (0, 4, "supported"), (17, 21, "contradicted"), taxonomy="support")))
    assert found is not None
    assert found.marks.types == ("contradicted",)


def test_labelled_units_stand_for_spans_and_soft_labels() -> None:
    units = (
        Unit(0, 4, "supported", 0.9), Unit(17, 21, "unverified", 0.6), Unit(25, 29, "unverified", 0.5),
    )  # fmt: skip
    found = reference(sample(Annotation("a", Kind.HUMAN, "support", units=units)))
    assert found is not None
    assert found.marks.spans.tolist() == [[17, 21]]
    assert found.marks.types == ("unverified",)
    assert found.soft is not None
    assert found.soft[[0, 17, 25]].tolist() == [0, 0.6, 0.5]


def test_no_soft_label_means_that_nobody_marked_anything() -> None:
    looked = reference(sample(Annotation("a", Kind.HUMAN, "hat", spans=(), units=())))
    assert looked is not None
    assert looked.soft is not None
    assert not looked.soft.any()
    labels = (Unit(0, 4, "unverified"),)
    without = reference(sample(Annotation("a", Kind.HUMAN, "support", units=labels)))
    assert without is not None
    assert without.soft is None


@pytest.mark.parametrize(
    ("marker", "kind", "expected"),
    [("anna", Kind.HUMAN, "majority"), ("model", Kind.MODEL, "ben")],
)
def test_who_calls_a_response_supported_marks_nothing_beside_marks(marker: str, kind: Kind, expected: str) -> None:
    marks = Annotation(marker, kind, "fava", spans=(Span(0, 3, "entity"),))
    whole = Annotation("ben", Kind.HUMAN, "hat", ratings={"unsupported": 0.0})
    labels = reference(Sample("a", "The mill.", annotations=(marks, whole)))
    assert labels is not None
    assert (labels.annotator, labels.taxonomy, labels.marks.types) == (expected, "fava", ())
    assert reference(Sample("a", "The mill.", annotations=(whole,))) is None, "alone it says nothing of words"
    assert reference(Sample("a", "The mill.", annotations=(marks, whole)), "ben") is None
