from __future__ import annotations

import sys
import unicodedata

import pytest

from veriglot.report import text_layout
from veriglot.text.unicode import (
    Kind,
    code_points,
    kind_table,
    script_names,
    script_of,
    script_shares,
    script_table,
    text_of,
)


@pytest.mark.parametrize(
    ("text", "script", "direction"),
    [
        ("Hello, wörld 42", "Latn", "ltr"), ("Привет", "Cyrl", "ltr"), ("שלום abc", "Hebr", "rtl"),
        ("مرحبا", "Arab", "rtl"), ("漢字かな漢", "Hani", "ltr"), ("ไทย", "Thai", "ltr"), ("हिन्दी", "Deva", "ltr"),
        ("ދިވެހި", "Thaa", "rtl"), ("𐐀𐐁", "Dsrt", "ltr"), ("𞤀𞤁", "Adlm", "rtl"), ("12 !", None, None), ("", None, None),
    ],
)  # fmt: skip
def test_script_and_direction(text: str, script: str | None, direction: str | None) -> None:
    assert script_of(text) == script
    assert text_layout.direction(text, None) == (direction or "auto")


def test_shares_sum_to_one() -> None:
    assert script_shares("abc где") == {"Latn": 0.5, "Cyrl": 0.5}
    assert script_shares("123") == {}


def test_scripts_of_code_points() -> None:
    names = script_names()
    assert [names[i] for i in script_table()[code_points("aа漢 \u0301")]] == ["Latn", "Cyrl", "Hani", "Zyyy", "Zinh"]


def test_kinds_agree_with_the_interpreter() -> None:
    # The tables may be of a newer Unicode than the interpreter; what it knows as assigned must agree.
    kinds = kind_table()
    for code in range(sys.maxunicode + 1):
        category = unicodedata.category(chr(code))
        kind = int(kinds[code])
        if category[0] == "L" or category == "Nl":
            assert kind & Kind.LETTER, hex(code)
        elif category in ("Nd", "No"):
            assert kind & Kind.DIGIT, hex(code)
        elif category[0] == "M":
            assert kind & Kind.MARK, hex(code)
        elif category[0] in "PZ":
            assert not kind & (Kind.LETTER | Kind.DIGIT | Kind.MARK), hex(code)


def test_code_points_and_back() -> None:
    text = "a\ud800\U0001f600漢\udfff"
    assert text_of(code_points(text)) == text
    assert code_points(text).tolist() == [ord(char) for char in text]
    assert code_points("").shape == (0,)
