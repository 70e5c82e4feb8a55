"""Markers around parts of a text: every marker counts, and one without a counterpart is an error, not a clean row."""

from __future__ import annotations

import pytest

from veriglot.errors import InputError
from veriglot.formats.tags import marked_ranges, with_tags

_MARKERS = ("[HAL]", "[/HAL]")


def _ranges(marked: str, text: str) -> list[tuple[int, int]]:
    return marked_ranges(marked, text, _MARKERS, field="annotated_span", of="llm_answer")


def test_ranges_are_those_of_the_text_without_markers() -> None:
    assert _ranges("ab[HAL]cd[/HAL]e[HAL]🙂[/HAL]", "abcde🙂") == [(2, 4), (5, 6)]


def test_markers_inside_markers_make_one_part() -> None:
    assert _ranges("[HAL]a[HAL]b[/HAL]c[/HAL]d", "abcd") == [(0, 3)]


@pytest.mark.parametrize("marked", ["a[HAL]bc", "ab[/HAL]c", "[HAL]a[/HAL]b[/HAL]c", "[HAL]a[HAL]b[/HAL]c"])
def test_a_marker_without_its_counterpart_is_refused(marked: str) -> None:
    with pytest.raises(InputError, match=r"closes nothing|never closed") as caught:
        _ranges(marked, "abc")
    assert caught.value.field == "annotated_span"


def test_another_text_is_refused() -> None:
    with pytest.raises(InputError, match="not `llm_answer`"):
        _ranges("[HAL]a[/HAL]b", "abc")


def test_markers_are_put_back() -> None:
    marked = with_tags("abcdef", ((1, 2, *_MARKERS), (4, 6, *_MARKERS)))
    assert marked == "a[HAL]b[/HAL]cd[HAL]ef[/HAL]"
    assert _ranges(marked, "abcdef") == [(1, 2), (4, 6)]
