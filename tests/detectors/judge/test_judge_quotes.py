"""Quotes of judges find their places: several scripts, other spellings, repeats; what is not there is not found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.detectors.judge.answers import Quote, locate
from veriglot.text.normalization import normalise
from veriglot.text.segmentation import words


def found(response: str, quote: str, before: str = "", language: str | None = None) -> tuple[str, str] | None:
    (place,), notes = locate(response, [Quote(quote, before)], language)
    how = notes[0].split(":")[1] if notes else "exact"
    return None if place is None else (response[slice(*place)], how)


@pytest.mark.parametrize(
    ("response", "quote", "text", "how"),
    [
        ("Built in 1881 by Ada.", "1881", "1881", "exact"),
        ("Built in 1881 by Ada.", '"1881"', "1881", "words"),
        ("Er heißt STRASSER.", "strasser", "STRASSER", "normalised"),
        ("It’s a “small” town", "It's a \"small\" town", "It’s a “small” town", "normalised"),
        ("灯塔建于１８８１年，由艾达建造。", "1881年,由艾达", "１８８１年，由艾达", "normalised"),
        ("وُلِدَ أَحْمَدُ في القاهرةِ", "ولد احمد", "وُلِدَ أَحْمَدُ", "normalised"),
        ("जन्म १९८१ में हुआ", "1981 में", "१९८१ में", "normalised"),
        ("ประภาคารสร้างในปี พ.ศ. ๒๔๑๔ ที่นี่", "2414", "๒๔๑๔", "normalised"),
        ("New York, Boston and Rome", "New York Boston", "New York, Boston", "words"),
        ("New\nYork\t City", "New York City", "New\nYork\t City", "normalised"),
        ("Ada was born in Rome in the year 1901.", "born in Rome … 1901", "born in Rome in the year 1901", "elided"),
        ("cafe\u0301s are open", "cafés", "cafe\u0301s", "normalised"),
    ],
)  # fmt: skip
def test_a_quote_is_found_as_it_was_written(response: str, quote: str, text: str, how: str) -> None:
    assert found(response, quote) == (text, how)


@pytest.mark.parametrize(
    "quote", ["1882", "Berlin", "", "   ", '""', "built in 1882", "1881 by Ada Berg and her son", "…"]
)
def test_what_does_not_stand_there_is_not_found(quote: str) -> None:
    assert found("Built in 1881 by Ada Berg.", quote) is None


def test_a_place_at_the_edges_of_words_comes_before_one_inside_a_word() -> None:
    assert locate("The party was no art.", [Quote("art")]) == ([(17, 20)], ())
    assert locate("Donaudampfschiff", [Quote("dampf")]) == ([(5, 10)], ())


def test_context_tells_repeats_apart_in_several_scripts() -> None:
    for response, quote, before in (
        ("In 1871 it was planned, and in 1871 it was built in 1871.", "1871", "was built in"),
        ("计划于1871年，建于1871年。", "1871年", "建于"),
        ("Планируется в 1871 году, построен в 1871 году.", "1871", "построен в"),
        ("เริ่มปี 1871 และสร้างปี 1871", "1871", "และสร้างปี"),
    ):
        start = response.rindex(quote)
        assert locate(response, [Quote(quote, before)]) == ([(start, start + len(quote))], ())


def test_repeats_without_context_are_taken_in_order() -> None:
    assert locate("one two one two", [Quote("one"), Quote("one")]) == ([(0, 3), (8, 11)], ())


def test_a_repeat_that_nothing_tells_apart_is_said_to_be_ambiguous() -> None:
    ambiguous = ("quote:at several places: 'one'",)
    assert locate("one two one two", [Quote("one")]) == ([(0, 3)], ambiguous)
    assert locate("one two one two", [Quote("one", "never said")])[1] == ambiguous


def test_an_elision_does_not_bridge_a_whole_text() -> None:
    assert found("Alpha one. " + "Filler words here. " * 40 + "Omega two.", "Alpha one ... Omega two") is None


@given(st.text(alphabet="aébc ßÄجمी中文ท1２ .,’-\n\u0301\u200d", min_size=1, max_size=60), st.data())
def test_every_run_of_words_is_found_and_reads_as_quoted(text: str, data: st.DataObject) -> None:
    bounds = words(text)
    if not bounds:
        return
    low = data.draw(st.integers(0, len(bounds) - 1))
    high = data.draw(st.integers(low, len(bounds) - 1))
    quote = text[bounds[low][0] : bounds[high][1]]
    (place,), _ = locate(text, [Quote(quote)])
    assert place is not None
    assert text[slice(*place)] == quote.strip()


@given(st.text(max_size=40), st.text(max_size=12), st.text(max_size=12))
def test_whatever_is_quoted_a_place_lies_in_the_text_and_holds_what_was_quoted(
    text: str, quote: str, before: str
) -> None:
    (place,), notes = locate(text, [Quote(quote, before)])
    if place is not None:
        assert 0 <= place[0] < place[1] <= len(text)
        if not notes or notes[0].startswith("quote:normalised:"):
            bare = normalise(quote).text.strip()
            there = normalise(text[slice(*place)]).text.strip()
            assert there == bare or there in bare or bare in there
