"""Marks become spans: crossing ones are parted, opinions are counted, and nothing is lost or doubled."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from veriglot.detectors.judge.answers import resolve_overlaps, vote_marks
from veriglot.records import Span

TEXT = "Ada Berg built it in 1881. It fell in 1900."
TYPES = ["entity", "relation", "contradictory"]


def mark(part: str, type_: str = "entity", confidence: float | None = None) -> Span:
    start = TEXT.index(part)
    return Span(start, start + len(part), type_, confidence)


def test_a_mark_inside_another_keeps_its_place() -> None:
    spans, crossing = resolve_overlaps(
        TEXT, [mark("Ada Berg built it in 1881.", "contradictory", 0.4), mark("1881", "entity", 0.9)]
    )
    assert [(span.text, span.type, span.confidence) for span in spans] == [
        ("Ada Berg built it in", "contradictory", 0.4),
        ("1881", "entity", 0.9),
        (".", "contradictory", 0.4),
    ]
    assert crossing == 2


def test_the_same_mark_twice_is_one() -> None:
    spans, crossing = resolve_overlaps(TEXT, [mark("1881"), mark("1881")])
    assert [span.text for span in spans] == ["1881"]
    assert crossing == 0


def test_shares_are_those_of_the_opinions_by_hand() -> None:
    opinions = [[mark("1881")], [mark("in 1881")], [mark("81", "relation")], []]
    (span,), words = vote_marks(TEXT, "en", opinions, 0.5, TYPES)
    shares = {TEXT[word.start : word.end]: word.confidence for word in words}
    assert shares == {
        "Ada": 0.0, "Berg": 0.0, "built": 0.0, "it": 0.0, "in": 0.0, "1881": 0.75, "It": 0.0, "fell": 0.0, "1900": 0.0
    }  # fmt: skip
    assert (span.text, span.type, span.confidence) == ("1881", "entity", 0.75)
    (wider,), _ = vote_marks(TEXT, "en", opinions, 0.25, TYPES)
    assert (wider.text, wider.type) == ("in 1881", "entity")
    assert vote_marks(TEXT, "en", opinions, 0.8, TYPES)[0] == ()


def test_a_run_ends_where_the_type_or_the_sentence_does() -> None:
    opinion = [mark("it in 1881. It fell"), mark("fell in 1900", "relation")]
    assert [(span.text, span.type) for span in vote_marks(TEXT, "en", [opinion], 0.5, TYPES)[0]] == [
        ("it in 1881.", "entity"),
        ("It", "entity"),
        ("fell in 1900", "relation"),
    ]


ranges = st.tuples(st.integers(0, 39), st.integers(1, 12), st.sampled_from(TYPES)).map(
    lambda r: Span(r[0], min(len(TEXT), r[0] + r[1]), r[2])
)


@given(st.lists(ranges, max_size=6))
def test_spans_hold_exactly_what_was_marked(marks: list[Span]) -> None:
    spans, _ = resolve_overlaps(TEXT, marks)
    assert all(one.end <= other.start for one, other in pairwise(spans))
    held = {place for span in spans for place in range(span.start, span.end)}
    wanted = {place for one in marks for place in range(one.start, one.end)}
    assert {p for p in wanted if not TEXT[p].isspace()} <= held <= wanted
    assert all(TEXT[span.start : span.end] == span.text == (span.text or "").strip() for span in spans)


@given(st.lists(st.lists(ranges, max_size=4), min_size=1, max_size=5), st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0]))
def test_words_and_spans_of_a_ballot_agree(opinions: list[list[Span]], threshold: float) -> None:
    spans, words = vote_marks(TEXT, "en", opinions, threshold, TYPES)
    assert all(one.end <= other.start for one, other in pairwise(spans))
    for word in words:
        inside = any(span.start <= word.start and word.end <= span.end for span in spans)
        assert inside == (word.confidence >= threshold)
