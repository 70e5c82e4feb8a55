"""The responses to read in the report of a study: their marks, in every script, and what is shown of long ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from judged_samples import arabic, chinese, crossing, every_kind, judged, long_evidence
from study_figures import study_figures
from study_page import Page, page_of

from veriglot.records import Prediction, Sample, Span, Status
from veriglot.report.text_layout import segments
from veriglot.study.results import Example

if TYPE_CHECKING:
    from pathlib import Path


def test_examples_mark_exactly_their_spans_in_every_script(tmp_path: Path) -> None:
    pairs = every_kind()
    results = msgspec.structs.replace(study_figures(), examples=tuple(Example(*pair) for pair in pairs))
    cards = page_of(results, tmp_path).root.all("article")
    assert len(cards) == len(pairs)
    for card, (sample, prediction) in zip(cards, pairs, strict=True):
        response = card.all("div", "response")[0]
        pieces = [p for p in segments(len(sample.response), prediction.spans or ()) if p.covering]
        assert [mark.text for mark in response.all("mark")] == [sample.response[p.start : p.end] for p in pieces]
        assert response.text == (sample.response or "The response is empty.")


def test_direction_and_language_of_examples(page: Page) -> None:
    found = {node.attrs.get("lang"): node.attrs["dir"] for node in page.root.all("div", "response")}
    assert found["ar"] == "rtl"
    assert found["he"] == "rtl"
    assert found["zh-Hans"] == "ltr"
    card = next(node for node in page.root.all("article") if node.attrs["data-language"] == "ar")
    assert card.all("ol", "marks")[0].attrs["dir"] == "rtl"
    assert all(quote.attrs["dir"] == "rtl" for quote in card.all("bdi", "quoted"))


def test_a_place_that_was_quoted_is_named_and_not_quoted_again(tmp_path: Path) -> None:
    pair = judged(
        "ar", "ar", ["بُني الجسر عام 1911 من الحجر."], "بُني الجسر عام 1991 من حديد.",
        [("1991", "entity", 0.9, "1911"), ("حديد", "entity", 0.8, "1911")],
    )  # fmt: skip
    results = msgspec.structs.replace(study_figures(), examples=(Example(*pair),))
    card = page_of(results, tmp_path).root.all("article")[0]
    held = card.all("div", "held")
    assert [len(node.all("bdi", "snippet")) for node in held] == [1, 0]
    assert held[1].text == "evidence p0, as for 1"
    assert all(label.attrs["dir"] == "ltr" for node in held for label in node.all("span", "label"))


def test_a_mark_never_cuts_a_visible_character(tmp_path: Path) -> None:
    family = "👩\u200d👩\u200d👧"
    response = f"a {family} b का c"
    cut = response.index("क")
    spans = (Span(2, 3, "entity", 0.5), Span(cut, cut + 1, "entity", 0.5))
    pair = (Sample("cut", response), Prediction("cut", Status.SCORED, "d", 0.5, spans))
    results = msgspec.structs.replace(study_figures(), examples=(Example(*pair),))
    marks = page_of(results, tmp_path).root.all("div", "response")[0].all("mark")
    assert [mark.text for mark in marks] == [family, "का"]


def test_a_long_response_is_shown_around_its_marks_and_says_what_is_left_out(tmp_path: Path) -> None:
    text = "word " * 2000 + "lie" + " word" * 2000
    pair = (Sample("long", text), Prediction("long", Status.SCORED, "d", 0.9, (Span(10000, 10003, "entity", 0.9),)))
    results = msgspec.structs.replace(study_figures(), examples=(Example(*pair), Example(*long_evidence())))
    response = page_of(results, tmp_path).root.all("div", "response")[0]
    assert response.all("mark")[0].text == "lie"
    left_out = [int(re.sub(r"\D", "", node.text)) for node in response.all("span", "left-out")]
    shown = len(response.text) - sum(len(node.text) for node in response.all("span", "left-out"))
    assert len(left_out) == 2
    assert sum(left_out) + shown == len(text)


def test_spans_that_do_not_fit_their_sample_are_told(tmp_path: Path) -> None:
    sample, prediction = crossing()
    wrong = msgspec.structs.replace(prediction, spans=(Span(3, 99, "entity", 0.5), Span(50, 60, "entity", 0.4)))
    results = msgspec.structs.replace(study_figures(), examples=(Example(sample, wrong),))
    card = page_of(results, tmp_path).root.all("article")[0]
    assert card.all("mark")[0].text == sample.response[3:]
    assert len(card.all("p", "problem")) == 2


def test_lone_surrogates_and_steering_signs_do_no_harm(tmp_path: Path) -> None:
    sample = Sample("s", "a \ud800 b \u202e c", language="en")
    prediction = Prediction("s", Status.SCORED, "d", 0.5, (Span(0, 9, "entity", 0.5),))
    results = msgspec.structs.replace(study_figures(), examples=(Example(sample, prediction),))
    text = page_of(results, tmp_path).root.all("div", "response")[0].text
    assert text == "a \ufffd b <U+202E> c"


def test_the_examples_of_other_scripts_are_there(page: Page) -> None:
    text = page.root.all("main")[0].text
    assert arabic()[0].response.split(" ")[0] in text
    assert chinese()[0].response[:6] in text
