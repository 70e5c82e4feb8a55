"""Confusion of types, of responses and of marks, across taxonomies."""

from __future__ import annotations

from typing import Literal

import pytest

from veriglot.bench.evaluation import type_confusion
from veriglot.bench.results import BenchConfusion
from veriglot.errors import InputError, UsageError
from veriglot.records import Annotation, Kind, Prediction, Sample, Span, Status, Unit

TEXT = "one two three four"


def pair(name: str, label: str | None) -> Sample:
    """A row of halluverse's data; its `0` has no annotation."""
    if label is None:
        return Sample(id=name, response=TEXT, meta={"label": "0"})
    gold = Annotation("gold", Kind.HUMAN, "halluverse", units=(Unit(0, len(TEXT), label),))
    return Sample(id=name, response=TEXT, annotations=(gold,))


def said(name: str, *spans: tuple[int, int, str | None], status: Status = Status.SCORED) -> Prediction:
    if status is not Status.SCORED:
        return Prediction(id=name, status=status, detector="d@1", reason="it broke")
    return Prediction(
        id=name, status=status, detector="d@1", score=float(bool(spans)), spans=tuple(Span(*span) for span in spans)
    )


def confused(
    samples: list[Sample], predictions: list[Prediction], *, of: Literal["response", "mark"] = "response",
    detector: str | None = None,
) -> BenchConfusion:  # fmt: skip
    blank = BenchConfusion(system="d", data="data", language="all", of=of)
    return type_confusion(blank, zip(samples, predictions, strict=True), None, detector)


def test_responses_with_one_label() -> None:
    samples = [pair("a", "entity"), pair("b", "entity"), pair("c", "relation"), pair("d", "sentence"), pair("e", None)]
    samples += [Sample(id="f", response=TEXT)]
    predictions = [
        said("a", (0, 3, "entity")),
        said("b", (0, 3, "entity"), (4, 13, "relation")),  # most characters are a relation
        said("c", status=Status.FAILED),
        said("d"),
        said("e"),
        said("f", (0, 3, "entity")),
    ]
    found = confused(samples, predictions)
    assert found.classes == ("entity", "relation", "sentence", "none")
    assert found.answers == ("entity", "relation", "sentence", "none", "no answer")
    assert found.counts == ((1, 1, 0, 0, 0), (0, 0, 0, 0, 1), (0, 0, 0, 1, 0), (0, 0, 0, 1, 0))
    assert (found.taxonomy, found.left_out) == ("halluverse", 1)


def test_types_of_the_detector_are_brought_to_the_data_s() -> None:
    predictions = [said("a", (0, 3, "invented")), said("b", (0, 3, None))]
    found = confused([pair("a", "sentence"), pair("b", "entity")], predictions, detector="fava")
    assert found.counts[found.classes.index("sentence")][found.answers.index("sentence")] == 1
    assert found.answers[-1] == "other type"
    assert found.counts[0] == (0, 0, 0, 0, 1)


def test_marks_of_responses_with_several() -> None:
    spans = (Span(0, 3, "entity"), Span(4, 7, "relation"), Span(8, 18, "invented"), Span(8, 9, None))
    gold = Annotation("gold", Kind.HUMAN, "fava", spans=spans)
    sample = Sample(id="a", response=TEXT, annotations=(gold,))
    found = confused([sample], [said("a", (2, 7, "entity"), (8, 10, "entity"), (10, 18, "subjective"))], of="mark")
    table = dict(zip(found.classes, found.counts, strict=True))
    answers = found.answers
    assert sum(table["entity"]) == table["entity"][answers.index("entity")] == 1
    assert table["relation"][answers.index("entity")] == 1
    assert table["invented"][answers.index("subjective")] == 1
    assert found.left_out == 1  # the mark without a type
    several = confused([sample], [said("a")])
    assert (several.left_out, sum(map(sum, several.counts))) == (1, 0)


def test_types_of_the_data_are_brought_to_the_detector_s_where_the_other_way_does_not_lead() -> None:
    spans = (Span(0, 3, "entity"), Span(4, 7, "invented"), Span(8, 13, "subjective"))
    sample = Sample(id="a", response=TEXT, annotations=(Annotation("gold", Kind.HUMAN, "fava", spans=spans),))
    answer = said("a", (0, 3, "contradicted"), (4, 6, "unverified"))
    found = confused([sample], [answer], of="mark", detector="support")
    assert (found.taxonomy, found.classes) == ("support", ("contradicted", "unverified"))
    assert found.answers == ("contradicted", "unverified", "none")
    assert found.counts == ((1, 0, 0), (0, 1, 1))
    assert "compared as those of support" in str(found.reason)


def test_what_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match="no labels"):
        confused([Sample(id="a", response=TEXT)], [said("a")])
    with pytest.raises(UsageError):
        confused([pair("a", "entity")], [said("a", (0, 3, "critical_error"))])
    with pytest.raises(InputError, match="'b'"):
        confused([pair("a", "entity")], [said("b")])
