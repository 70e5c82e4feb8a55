"""Cutting nested and crossing spans into pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judged_samples import crossing

from veriglot.records import Span
from veriglot.report.terminal import any_cross
from veriglot.report.text_layout import segments

LENGTH = 30
SPANS = st.lists(
    st.tuples(st.integers(0, LENGTH + 5), st.integers(1, 12)).map(lambda p: Span(p[0], p[0] + p[1])), max_size=8
)


@pytest.mark.fuzz
@given(SPANS)
def test_pieces_cover_the_text_once_and_name_exactly_their_spans(spans: list[Span]) -> None:
    pieces = list(segments(LENGTH, spans))
    assert [p.start for p in pieces] == [0, *[p.end for p in pieces[:-1]]]
    assert pieces[-1].end == LENGTH
    for piece in pieces:
        for place in range(piece.start, piece.end):
            assert set(piece.covering) == {i for i, s in enumerate(spans) if s.start <= place < s.end}
        lengths = [spans[i].end - spans[i].start for i in piece.covering]
        assert lengths == sorted(lengths, reverse=True)


@pytest.mark.fuzz
@given(SPANS)
def test_crossing_is_overlap_without_nesting(spans: list[Span]) -> None:
    def cross(a: Span, b: Span) -> bool:
        return a.start < b.start < a.end < b.end

    assert any_cross(spans) == any(cross(a, b) for a in spans for b in spans)


def test_empty_text_has_no_pieces() -> None:
    assert list(segments(0, [])) == []
    assert list(segments(0, [Span(0, 3)])) == []


def test_the_innermost_span_comes_last() -> None:
    sample, prediction = crossing()
    found = {(p.start, p.end): p.covering for p in segments(len(sample.response), prediction.spans or ())}
    assert found[4, 6] == (0, 1)
    assert found[7, 9] == (0, 2)
    assert found[9, 12] == (2,)
    assert found[12, 15] == ()
