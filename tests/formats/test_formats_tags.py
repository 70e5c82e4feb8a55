"""Inline tags: each repair and each report on a text of our own, and the account that must always balance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import ranges

from veriglot.formats.tags import parse_tags, render_tags
from veriglot.records import Span
from veriglot.records.taxonomy import taxonomy

if TYPE_CHECKING:
    from veriglot.formats.base import TagReport

TYPES = tuple(taxonomy("fava").types)


def balanced(report: TagReport) -> bool:
    return report.seen == report.parsed + report.repaired.total() + report.reported.total()


def marked(tagged: str, **options: str) -> list[tuple[str, str | None]]:
    """The marked texts with their types."""
    result = parse_tags(tagged, TYPES, **options)  # type: ignore[arg-type]
    assert balanced(result.report)
    return [(result.text[span.start : span.end], span.type) for span in result.spans]


def test_right_tags_are_parsed() -> None:
    result = parse_tags("The <entity>Danube</entity> flows <relation>north</relation>.", TYPES)
    assert result.text == "The Danube flows north."
    assert [(s.start, s.end, s.type) for s in result.spans] == [(4, 10, "entity"), (17, 22, "relation")]
    assert (result.report.seen, result.report.parsed) == (4, 4)
    assert dict(result.report.spans) == {"entity": 1, "relation": 1}


BOTH = [("Lima", "entity"), ("Rome", "entity")]
REPAIRS = [
    ("capitalised", "In <Entity>Lima</Entity> it rains.", [("Lima", "entity")], 2),
    ("misspelt", "In <entiuty>Lima</entity> it rains.", [("Lima", "entity")], 1),
    ("misspelt", "<contradiction>It never rains.</contradiction>", [("It never rains.", "contradictory")], 2),
    ("misspelt", "<contridictory>It never rains.</contridictory>", [("It never rains.", "contradictory")], 2),
    ("misspelt", "<unverified>It rains.</unverified>", [("It rains.", "unverifiable")], 2),
    ("misspelt", "<subejctive>Lovely.</subejctive>", [("Lovely.", "subjective")], 2),
    ("malformed", "In <--entity>Lima</entity--> it rains.", [("Lima", "entity")], 2),
    ("malformed", "In <entity>Lima<\\entity> it rains.", [("Lima", "entity")], 1),
    ("opener_as_closer", "In <entity>Lima<entity> it rains.", [("Lima", "entity")], 1),
    ("opener_as_closer", "<entity>Lima<entity> or <entity>Rome</entity>.", BOTH, 1),
    ("closer_as_opener", "In <entity>Lima</entity> or </entity>Rome</entity>.", BOTH, 1),
    ("mismatched", "<invented>A fish sang.</entity> Then rain.", [("A fish sang.", "invented")], 1),
    ("crossing", "<entity>a b <relation>c</entity> d</relation>", [("a b c", "entity"), ("c d", "relation")], 1),
    ("unclosed", "First. <invented>A fish sang all day", [("A fish sang all day", "invented")], 1),
    ("unclosed", "<invented>It sang. Oh <entity>Lima</entity>.", [("It sang.", "invented"), ("Lima", "entity")], 1),
    ("cut_off", "First. <invented>A fish sang</inv", [("A fish sang", "invented")], 1),
    ("cut_off", "First. <invented>A fish sang</", [("A fish sang", "invented")], 1),
    ("edit_mark", "In <entity><delete>Lima</delete></entity>.", [("Lima", "entity")], 2),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "tagged", "expected", "count"), REPAIRS)
def test_what_is_repaired(kind: str, tagged: str, expected: list[tuple[str, str]], count: int) -> None:
    assert marked(tagged) == expected
    report = parse_tags(tagged, TYPES).report
    assert report.repaired[kind] == count
    assert not report.reported


REPORTS = [
    ("stray_closer", "It rains.</entity> Much.", "It rains. Much.", 1),
    ("empty", "It <entity></entity>rains.", "It rains.", 2),
    ("cut_off", "It rains. <contr", "It rains. ", 1),
    ("not_a_tag", "It <i>rains</i>.", "It <i>rains</i>.", 2),
    ("not_a_tag", "The film <Summer Rain> ran.", "The film <Summer Rain> ran.", 1),
    ("broken", "It </c rains all day, and all night too, without an end", None, 1),
]


@pytest.mark.parametrize(("kind", "tagged", "text", "count"), REPORTS)
def test_what_is_reported(kind: str, tagged: str, text: str | None, count: int) -> None:
    result = parse_tags(tagged, TYPES)
    assert result.text == (tagged if text is None else text)
    assert dict(result.report.reported) == {kind: count}
    assert result.spans == []


def test_nested_tags_of_one_type_are_right_as_they_stand() -> None:
    result = parse_tags("<entity>a <entity>b</entity> c</entity>", TYPES)
    assert result.report.parsed == 4
    assert [(s.start, s.end) for s in result.spans] == [(0, 5), (2, 3)]


def test_an_opener_that_starts_a_new_sentence_is_no_closer() -> None:
    assert marked("<invented>A fish sang. It was loud. <invented>A cat flew.</invented>") == [
        ("A fish sang.", "invented"),
        ("A cat flew.", "invented"),
    ]


def test_a_lone_bracket_is_text() -> None:
    result = parse_tags("2 < 3 and I <3 rain", TYPES)
    assert result.text == "2 < 3 and I <3 rain"
    assert result.report.seen == 0


def test_favas_output_keeps_what_the_response_said() -> None:
    tagged = "Messina lies on <entity><mark>Sicily</mark><delete>Crete</delete></entity>."
    result = parse_tags(tagged, TYPES, edits="delete")
    assert result.text == "Messina lies on Crete."
    assert [(s.start, s.end) for s in result.spans] == [(16, 21)]
    assert [(c.start, c.end, c.text) for c in result.corrections] == [(16, 21, "Sicily")]
    assert result.report.parsed == 6


def test_favas_errors_keep_what_was_put_in() -> None:
    tagged = "Messina lies on <entity><delete>Sicily</delete><mark>Crete</mark></entity>."
    result = parse_tags(tagged, TYPES, edits="mark")
    assert result.text == "Messina lies on Crete."
    assert [(c.start, c.end, c.text) for c in result.corrections] == [(16, 21, "Sicily")]


def test_an_edit_mark_without_its_partner_is_reported() -> None:
    result = parse_tags("<entity><delete>Crete</entity>", TYPES, edits="mark")
    assert result.text == "Crete"
    assert dict(result.report.reported) == {"unpaired_edit": 1}


PIECES = [f"<{t}>" for t in TYPES] + [f"</{t}>" for t in TYPES] + [
    "<Entity>", "<entiti>", "<", "</", ">", "<i>", "<mark>", "</mark>", "<delete>", "</delete>", "<\\invented>", "</c",
    " ", ". ", "word", "字。", "\n", "\u0301", "😀", "<entity", "&lt;",
]  # fmt: skip


@pytest.mark.fuzz
@given(
    st.lists(st.sampled_from(PIECES), max_size=25).map("".join) | st.text(),
    st.sampled_from(["strip", "mark", "delete"]),
)
def test_any_text_is_read_and_every_tag_accounted_for(tagged: str, edits: str) -> None:
    result = parse_tags(tagged, TYPES, edits=edits)  # type: ignore[arg-type]
    assert balanced(result.report)
    assert sum(result.report.spans.values()) == len(result.spans)
    assert len(result.faults) == result.report.repaired.total() + result.report.reported.total()
    for span in result.spans:
        assert 0 <= span.start < span.end <= len(result.text)
    for fault in result.faults:
        assert tagged[fault.at : fault.at + len(fault.raw)] == fault.raw
    rest = iter(tagged)
    assert all(char in rest for char in result.text)  # in order: nothing is made up, nothing moved


@st.composite
def crossing_free(draw: st.DrawFn) -> tuple[str, list[Span]]:
    """A text without brackets, and spans of different types, or of one type side by side."""
    text = draw(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<>"), min_size=1, max_size=40))
    types = draw(st.lists(st.sampled_from(TYPES), unique=True, max_size=4))
    return text, [Span(*draw(ranges(len(text))), type_) for type_ in types]


@pytest.mark.fuzz
@given(crossing_free())
def test_rendered_tags_read_back(case: tuple[str, list[Span]]) -> None:
    text, spans = case
    back = parse_tags(render_tags(text, spans), TYPES)
    assert back.text == text
    assert sorted((s.start, s.end, s.type or "") for s in back.spans) == sorted(
        (s.start, s.end, s.type or "") for s in spans
    )
    assert not back.report.reported
