from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tricky_texts import TEXTS, TRICKY

from veriglot.text.normalization import fold, normalise, plain

OPTIONS = ["fold_case", "spaces"]
NOTHING = dict.fromkeys(OPTIONS, False)


@pytest.mark.parametrize(
    ("text", "expected", "starts", "ends"),
    [
        ("aßb", "assb", [0, 1, 1, 2], [1, 2, 2, 3]),
        ("ﬁ\r\n x", "fi x", [0, 0, 1, 4], [1, 1, 4, 5]),
        ("E\u0301!", "é!", [0, 2], [2, 3]),
        ("مُـد", "مد", [0, 3], [3, 4]),
        ("\u200fa\u200bb", "ab", [0, 3], [3, 4]),
        ("שָׁל", "של", [0, 3], [3, 4]),
        ("٣４२", "342", [0, 1, 2], [1, 2, 3]),
        ("ｶﾞ", "ガ", [0], [2]),
        ("\u1112\u1161\u11ab.", "한.", [0, 3], [3, 4]),
        ("“İ” – ı", '"i" - i', [0, 1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6, 7]),
        ("می\u200cخواهم", "ميخواهم", [0, 1, 3, 4, 5, 6, 7], [1, 3, 4, 5, 6, 7, 8]),
        ("\ud800x", "\ud800x", [0, 1], [1, 2]),
        ("\u200f", "", [], []),
        ("", "", [], []),
    ],
)
def test_normalise(text: str, expected: str, starts: list[int], ends: list[int]) -> None:
    found = normalise(text)
    assert found.text == expected
    assert found.starts.tolist() == starts
    assert found.ends.tolist() == ends


@pytest.mark.parametrize(
    ("option", "text", "expected"),
    [
        ("fold_case", "ÀẞI", "àssi"),
        ("spaces", "a \r\n\u3000b", "a b"),
    ],
)
def test_each_option_alone(option: str, text: str, expected: str) -> None:
    assert normalise(text, **{**NOTHING, option: True}).text == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("٣x", "3x"),
        ("أةץё", "اهצе"),
        ("مُحَـمد שָׁ", "محمد ש"),
        ("a\u200bb\u00adc\ufeff", "abc"),
        ("ﬁＡ²", "fiA2"),
        ("“x”—’", '"x"-\''),
    ],
    ids=["digits", "letters", "marks", "invisible", "compatibility", "punctuation"],
)
def test_what_needs_no_option(text: str, expected: str) -> None:
    assert normalise(text, **NOTHING).text == expected


def test_original_range() -> None:
    found = normalise("Die  Straße!")
    at = found.text.index("strasse")
    assert found.original(at, at + len("strasse")) == (5, 11)
    with pytest.raises(IndexError, match="no range"):
        found.original(3, 3)


@pytest.mark.parametrize("text", TRICKY)
def test_tricky(text: str) -> None:
    check(text, {})


@pytest.mark.fuzz
@given(TEXTS, st.dictionaries(st.sampled_from(OPTIONS), st.booleans()))
def test_map_is_monotone_and_covers(text: str, options: dict[str, bool]) -> None:
    check(text, options)


def check(text: str, options: dict[str, bool]) -> None:
    found = normalise(text, **options)
    starts, ends = found.starts, found.ends
    assert starts.dtype == ends.dtype == np.int32
    assert len(starts) == len(ends) == len(found.text)
    if not found.text:
        return
    assert (np.diff(starts) >= 0).all()
    assert (np.diff(ends) >= 0).all()
    assert (starts < ends).all()
    assert (starts[0], ends[-1]) == (0, len(text))
    assert (starts[1:] <= ends[:-1]).all(), "an original code point between two ranges is lost"


@pytest.mark.parametrize("text", TRICKY)
def test_plain_text_is_the_normalised_text_folded(text: str) -> None:
    assert plain(text) == fold(normalise(text, spaces=False).text)


@given(TEXTS)
def test_plain_text_is_so_of_any_text(text: str) -> None:
    assert plain(text) == fold(normalise(text, spaces=False).text)
