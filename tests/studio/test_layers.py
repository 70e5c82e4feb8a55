"""Layers against forms and items: whole characters of any text, words that the form has, and nothing else."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.records import Evidence, Pointer, Sample, from_mapping
from veriglot.studio.layers import CharBoundaries, Layer, LayerSpan, LayerUnit
from veriglot.studio.project import Entries, Form, ProjectEntry, RatingEntry, TaskKind, form_of
from veriglot.text.segmentation import clusters, grapheme_ends

RATING = RatingEntry("fools_reader")
TEXT = "Ada war 👩‍👩‍👧 in ปี้ क्षि e\u0301!"
texts = st.text(min_size=1, max_size=40) | st.text("aé👩‍👧🇩🇪กิ्षक\u0301 \u200d", min_size=1, max_size=40)


def form(task: str = "spans", ratings: tuple[RatingEntry, ...] = (RATING,), **more) -> Form:
    return form_of(Entries(ProjectEntry("N", "n", TaskKind(task), **more), ratings=ratings))


def sample(text: str = TEXT) -> Sample:
    return Sample("x", text, language="de", evidence=(Evidence("Ada war in Rom e\u0301."),))


def span(start: int = 0, end: int = 3, type_: str = "entity", id_: str = "s1", **more) -> LayerSpan:
    return LayerSpan(id_, start, end, type_, **more)


@given(texts)
def test_characters_cover_the_text(text: str) -> None:
    ends = grapheme_ends(text).tolist()
    assert ends == sorted(set(ends))
    assert ends[-1] == len(text)
    borders = {0, *ends}
    inside = {place for start, end in clusters(text) for place in range(start + 1, end)}
    assert borders | inside == set(range(len(text) + 1))
    assert not borders & inside


@given(texts, st.integers(-2, 42), st.integers(-2, 42))
def test_a_span_fits_just_where_it_lies_on_whole_characters(text: str, start: int, end: int) -> None:
    borders = {0, *grapheme_ends(text).tolist()}
    fits = 0 <= start < end <= len(text) and start in borders and end in borders
    layer = Layer(spans=(span(start, end),))
    if fits:
        layer.check(form(), sample(text), complete=True)
    else:
        with pytest.raises(InputError) as refused:
            layer.check(form(), sample(text))
        assert refused.value.field == "spans[0]"


@given(texts, st.data())
def test_widening_gives_the_smallest_whole_characters(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    ends = [0, *grapheme_ends(text).tolist()]
    wide = CharBoundaries.of(text).widened(start, end)
    assert wide == (max(e for e in ends if e <= start), min(e for e in ends if e >= end))


@given(texts, st.data())
def test_spans_survive_records_to_the_code_point(text: str, data: st.DataObject) -> None:
    ends = [0, *grapheme_ends(text).tolist()]
    places = st.tuples(st.sampled_from(ends), st.sampled_from(ends), st.sampled_from(["entity", "relation"]))
    drawn = data.draw(st.lists(places, unique=True, max_size=8))
    kept = {(min(a, b), max(a, b), type_) for a, b, type_ in drawn if a != b}
    layer = Layer(spans=tuple(LayerSpan(f"s{n}", *place) for n, place in enumerate(sorted(kept), 1)))
    layer.check(form(), sample(text))
    annotation = layer.to_annotation(form(), sample(text), "a1")
    assert annotation is not None
    assert [s.text for s in annotation.spans or ()] == [text[s.start : s.end] for s in layer.spans]
    assert Layer.from_annotation(annotation, form(), sample(text)) == layer


@given(st.text(max_size=30), st.text(max_size=30))
def test_a_layer_survives_being_written(note: str, comment: str) -> None:
    layer = Layer(spans=(span(note=note, rating=3),), ratings={"r": 2}, comment=comment)
    assert from_mapping(json.loads(layer.encode()), Layer) == layer
    assert layer.encode().isascii()
    assert from_mapping(msgspec.to_builtins(layer), Layer) == layer


@pytest.mark.parametrize(
    ("layer", "field"),
    [
        (Layer(spans=(span(type_="nonsense"),)), "spans[0].type"),
        (Layer(spans=(span(rating=6),)), "spans[0].rating"),
        (Layer(spans=(span(rating=0),)), "spans[0].rating"),
        (Layer(spans=(span(id_=""),)), "spans[0].id"),
        (Layer(spans=(span(), span(4, 7))), "spans"),
        (Layer(spans=(span(), span(id_="s2"))), "spans"),
        (Layer(spans=(span(note="x" * 2001),)), "spans[0].note"),
        (Layer(spans=(span(note="\ud800"),)), "spans[0].note"),
        (Layer(comment="\udfff"), "comment"),
        (Layer(units=(LayerUnit(0, 3, "supported"),)), "units"),
        (Layer(label="0"), "label"),
        (Layer(flags=("loud",)), "flags"),
        (Layer(ratings={"beauty": 1}), "ratings"),
        (Layer(skip="lunch"), "skip"),
        (Layer(spans=tuple(span(id_=str(n)) for n in range(5001))), "spans"),
    ],
)
def test_what_the_form_does_not_have_is_refused_with_its_place(layer: Layer, field: str) -> None:
    with pytest.raises(InputError) as refused:
        layer.check(form(), sample())
    assert refused.value.field == field


def test_spans_may_nest_overlap_and_share_a_place_under_other_types() -> None:
    spans = (span(0, 7), span(4, 13, id_="b"), span(4, 7, id_="c"), span(0, 7, "relation", "d"))
    Layer(spans=spans).check(form(), sample(), complete=True)


def test_required_ratings_are_asked_for_when_work_is_handed_in() -> None:
    strict = form(
        ratings=(RatingEntry("fools_reader", required=True), RatingEntry("fluency", of="item", required=True))
    )
    layer = Layer(spans=(span(),))
    layer.check(strict, sample())
    with pytest.raises(InputError, match=r"ratings\.fluency"):
        layer.check(strict, sample(), complete=True)
    with pytest.raises(InputError, match=r"spans\[0\]\.rating"):
        msgspec.structs.replace(layer, ratings={"fluency": 2}).check(strict, sample(), complete=True)
    Layer(skip="not_sure").check(strict, sample(), complete=True)


@pytest.mark.parametrize("units", ["fact", "sentence"])
def test_every_unit_has_an_answer_before_work_is_handed_in(units: str) -> None:
    facts, text = form("facts", (), units=units), sample("Ada was born in Paris in 1901. She wrote books.")
    places = facts.units_of(text)
    assert len(places) >= 2
    answered = tuple(
        LayerUnit(*place, "supported", (Pointer("p0", 0, 3),), ("context_conflict",)) for place in places[:-1]
    )
    Layer(units=answered).check(facts, text)
    with pytest.raises(InputError, match=f"1 {units}s have no label"):
        Layer(units=answered).check(facts, text, complete=True)
    counted = LayerUnit(*places[-1], counts={"supported": 2, "contradicted": 1, "unverified": 0})
    Layer(units=(*answered, counted)).check(facts, text, complete=True)


@pytest.mark.parametrize(
    ("counts", "label"),
    [
        ({"supported": 3}, "supported"),
        ({"supported": 3, "unverified": 1}, "unverified"),
        ({"unverified": 2, "contradicted": 1}, "contradicted"),
        ({"supported": 0}, None),
    ],
)
def test_counted_facts_make_the_label_of_their_sentence(counts: dict[str, int], label: str | None) -> None:
    counting, text = form("facts", (), units="sentence"), sample("Ada was born in Paris.")
    layer = Layer(units=(LayerUnit(0, 22, evidence=(Pointer("p0", 0, 3),), counts=counts),))
    annotation = layer.to_annotation(counting, text, "ada")
    assert annotation is not None
    assert annotation.units is not None
    assert [unit.label for unit in annotation.units] == ([] if label is None else [label])
    assert list(layer.marks(counting)) == ([] if label in {None, "supported"} else [(0, 22, label)])
    again = Layer.from_annotation(annotation, counting, text)
    assert [(unit.counts, unit.evidence) for unit in again.units] == [(counts, layer.units[0].evidence)][
        : label is not None
    ]


@pytest.mark.parametrize(
    ("unit", "field"),
    [
        (LayerUnit(0, 3, "supported", (Pointer("p9", 0, 3),)), "units[0].evidence[0].id"),
        (LayerUnit(0, 3, "supported", (Pointer("p0", 15, 16),)), "units[0].evidence[0]"),
        (LayerUnit(0, 3, "supported", (Pointer("p0", 0, 99),)), "units[0].evidence[0]"),
        (LayerUnit(0, 3, "true"), "units[0].label"),
        (LayerUnit(0, 3, counts={"supported": -1}), "units[0].counts.supported"),
        (LayerUnit(0, 3, "supported", flags=("noise",)), "units[0].flags"),
    ],
)
def test_units_that_do_not_fit_are_refused(unit: LayerUnit, field: str) -> None:
    with pytest.raises(InputError) as refused:
        Layer(units=(unit,)).check(form("facts", ()), sample())
    assert refused.value.field == field


def test_pairs_have_one_label_which_survives_records() -> None:
    pairs = form("pairs", ())
    assert [choice.name for choice in pairs.labels] == ["0", "entity", "relation", "sentence"]
    assert [choice.shortcut for choice in pairs.labels] == ["0", "1", "2", "3"]
    with pytest.raises(InputError, match="no label yet"):
        Layer().check(pairs, sample(), complete=True)
    for label in ("0", "relation"):
        layer = Layer(label=label)
        layer.check(pairs, sample(), complete=True)
        annotation = layer.to_annotation(pairs, sample(), "a")
        assert annotation is not None
        assert Layer.from_annotation(annotation, pairs, sample()) == layer


def test_what_was_skipped_is_no_annotation() -> None:
    assert Layer(skip="not_sure").to_annotation(form(), sample(), "a") is None
    empty = Layer().to_annotation(form(), sample(), "a")
    assert empty is not None
    assert empty.spans == ()


@pytest.mark.parametrize(
    "data", [{"spans": [{"id": "a", "start": 0, "end": 1}]}, {"sapns": []}, [], None, {"spans": [[0, 3]]}, {"skip": 3}]
)
def test_other_shapes_are_no_layers(data: object) -> None:
    with pytest.raises(InputError):
        from_mapping(data, Layer)


def test_a_form_needs_a_taxonomy_that_goes_with_it() -> None:
    with pytest.raises(UsageError, match="no label for what is supported"):
        form("facts", (), taxonomy="fava")
    with pytest.raises(UnknownNameError):
        form(taxonomy="favva")
    with pytest.raises(UnknownNameError):
        form(colours={"entitty": "#000000"})
    assert [choice.name for choice in form("translation").types] == ["hallucination"]
    assert "wrong_language" in form("translation").source_flags
