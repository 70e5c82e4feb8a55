"""Direction, safe printing, wrapping and excerpts."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judged_samples import arabic, chinese, english, hebrew
from rich.cells import cell_len

from veriglot.records import Pointer, Prediction, Sample, Span, Status, Word
from veriglot.records.languages import language_name
from veriglot.report.terminal import line_breaks
from veriglot.report.text_layout import direction, excerpt, misplaced_parts, note_words, printable

NOTES = (
    "calibration:default", "calibration:none", "language:from_response", "language:unknown_tag",
    "language:other_script", "evidence:other_language", "evidence:other_script", "evidence:language_from_text",
    "evidence:language_unsure", "evidence:3 windows", "auto:no reader", "auto:by figures (mcc of words, de: reader .6)",
    "ensemble:without reader (no_evidence)", "ensemble:without nli (not installed)", "languages:not stated",
    "languages:undeclared", "prompt:en", "words:3 not seen", "facts:sentences", "facts:2 words in no fact",
    "labels:contradiction not told apart", "claim:in pieces", "quality:0.8123", "severities:minor,major",
    "task:qa, and the model was trained on translations", "samples:2 of 3", "spans:1 below the threshold",
    "spans:2 crossing ones parted", "quote:not in the response: 'a'", "quote:at several places: 'a'",
    "quote:elided: 'a'", "confidence:verdict", "confidence:samples", "confidence:token_probabilities",
    "confidence:verbalised", "units:the detector's own", "units:no word confidences",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "tag", "expected"),
    [
        ("مرحبا", "ar", "rtl"),
        ("שלום", "he", "rtl"),
        ("hello", "en", "ltr"),
        ("GPT-4 قال", "ar", "rtl"),
        ("GPT-4 and more קצת", "he", "rtl"),  # mostly Latin letters, but Hebrew
        ("kya haal hai", "ur", "ltr"),  # Urdu in Latin letters
        ("12 + 30", "fa", "rtl"),
        ("", "ar", "rtl"),
        ("مرحبا", None, "rtl"),
        ("مرحبا", "tlh", "rtl"),  # a tag that the table does not hold
        ("hello", None, "ltr"),
        ("123", None, "auto"),
        ("", None, "auto"),
    ],
)
def test_direction(text: str, tag: str | None, expected: str) -> None:
    assert direction(text, tag) == expected


def test_language_names() -> None:
    assert language_name("de") == "German"
    assert language_name("tlh-x-made-up") == "tlh-x-made-up"
    assert language_name(None) == "unknown"


@pytest.mark.fuzz
@given(st.text(st.characters(exclude_categories=[]), max_size=60))
def test_nothing_printed_steers_the_terminal(text: str) -> None:
    shown = printable(text)
    shown.encode("utf-8")
    for char in shown.replace("\n", ""):
        assert unicodedata.category(char) not in {"Cc", "Zl", "Zp", "Cs"}
        assert char not in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def test_printable_names_what_it_replaces() -> None:
    assert printable("a\x1b[31mb\x07") == "a␛[31mb␇"
    assert printable("a\u202eb\x9bc") == "a<U+202E>b<U+009B>c"
    assert printable("a\r\nb\u2028c\td") == "a\nb\nc    d"
    assert printable("می\u200cخواهم 👩\u200d👩\u200d👧") == "می\u200cخواهم 👩\u200d👩\u200d👧"
    assert printable("\ud800x") == "\ufffdx"


@pytest.mark.fuzz
@given(st.text("ab  ,.中文，。語ไทยก็é\u0301קש{}", max_size=120), st.integers(4, 30))
def test_no_line_is_wider_than_the_terminal(text: str, width: int) -> None:
    breaks = line_breaks(text, width)
    assert breaks == sorted(set(breaks))
    edges = [0, *breaks, len(text)]
    lines = [text[a:b] for a, b in pairwise(edges)]
    assert "".join(lines) == text
    for line in lines:
        assert cell_len(line.rstrip()) <= width


def test_wide_characters_fill_their_line() -> None:
    assert line_breaks("Note 青石图书馆建于一九三八年", 20) == [12]  # 5 cells and seven wide characters are 19


def test_closing_marks_do_not_start_a_line() -> None:
    text = "青石图书馆。馆藏"
    assert line_breaks(text, 10) == [4]  # five characters fill ten cells, but the full stop stays with the fifth


@pytest.mark.fuzz
@given(st.text("ab cd é𠮷", min_size=1, max_size=300), st.data())
def test_excerpts_hold_their_place(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    before, place, after = excerpt(text, start, end, around=20)
    assert text[:start].endswith(before.removeprefix("…"))
    assert text[end:].startswith(after.removesuffix("…"))
    assert len(before) <= 21
    assert len(after) <= 21
    assert place == text[start:end] if end - start <= 160 else " … " in place


def test_a_long_place_is_not_cut_inside_a_number() -> None:
    for shift in range(1, 10):
        text = "x" * shift + " 1234567" * 40
        place = excerpt(text, 0, len(text)).quoted
        assert " … " in place
        assert set(place.split()) == {"x" * shift, "1234567", "…"}


def test_a_long_place_shows_the_number_that_the_mark_is_about() -> None:
    filler = "the engineer planned it for many years with her brother and the council of the town, "
    text = f"{filler * 2}and it was finished in 1871 after long quarrels; {filler * 2}so that 34 people came."
    place = excerpt(text, 0, len(text), mark="1887").quoted
    assert "was finished in 1871 after" in place
    assert len(place) < 300
    assert "long quarrels" in excerpt(text, 0, len(text), mark="no quarrels").quoted
    chinese = "图书馆位于河东路其中包括手稿" * 12 + "馆藏古籍约30000册" + "图书馆位于河东路其中包括手稿" * 12
    assert "约30000册" in excerpt(chinese, 0, len(chinese), mark="20000").quoted


@pytest.mark.parametrize("around", range(3, 30))
def test_surroundings_are_not_cut_inside_a_number_nor_before_its_unit(around: int) -> None:
    text = "馆藏古籍约12345册其中包括手稿共67890页"
    before, _, after = excerpt(text, 15, 17, around=around)
    assert not re.search(r"\d", before) or "12345" in before
    assert not re.search(r"\d", after) or "67890页" in after
    assert (
        "60 million"
        in excerpt("It formed when lava cooled some 60 million years ago, far away.", 3, 9, around=26).after
    )


@pytest.mark.parametrize("note", NOTES)
def test_notes_are_sentences(note: str) -> None:
    words = note_words(note)
    assert re.fullmatch(r"[A-Z0-9][^_]+\.", words)
    assert note.partition(":")[0] + ":" not in words.lower()


def test_notes_of_plug_ins_stay_as_they_are() -> None:
    assert note_words("my_plugin:3 {odd} things") == "my_plugin:3 {odd} things"
    assert note_words("quote:words: 'a {b} c'") == "The judge quoted with other letters or gaps: 'a {b} c'."


def test_good_predictions_have_no_misfits() -> None:
    for make in (english, arabic, chinese, hebrew):
        assert misplaced_parts(*make()) == []


def test_misfits_are_named() -> None:
    sample = Sample("a", "short")
    spans = (Span(2, 9), Span(0, 2, evidence=(Pointer("p7", 0, 1),)))
    words = (Word(0, 5, 0.1, (Pointer("p9", 0, 4),)), Word(6, 9, 0.1))
    found = misplaced_parts(sample, Prediction("a", Status.SCORED, "d@1", 0.5, spans, words))
    assert len(found) == 4
    assert "[2, 9)" in found[0]
    assert "'p7'" in found[1]
