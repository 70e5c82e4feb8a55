from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from tricky_texts import TEXTS, TRICKY

from veriglot.text.segmentation import word_bounds, words
from veriglot.text.unicode import Kind, code_points, kind_table

if TYPE_CHECKING:
    from pathlib import Path


def cut(text: str, language: str | None = None) -> list[str]:
    return [text[start:end] for start, end in words(text, language)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat, 1,234.5 m.", ["The", "cat", "1,234.5", "m"]),
        ("2014-05-03 at 12:30", ["2014", "05", "03", "at", "12", "30"]),
        ("can't O'Brien l'homme d’Italie dell'arte qu'il L'AQUILA", [
            "can't", "O'Brien", "l", "homme", "d", "Italie", "dell", "arte", "qu", "il", "L", "AQUILA"
        ]),
        ("U-Bahn foo_bar _x_ example.com end.Next", ["U", "Bahn", "foo_bar", "x", "example.com", "end", "Next"]),
        ("e\u0301te\u0301", ["e\u0301te\u0301"]),
        ("\U00020000\U0001d400\U0001d401 x", ["\U00020000", "\U0001d400\U0001d401", "x"]),
        ("👨\u200d👩\u200d👧 😀 ok", ["ok"]),
        ("\u202bשלום\u202c עולם\u200f!", ["שלום", "עולם"]),
        ("צה\"ל ג׳ירפה", ["צה\"ל", "ג׳ירפה"]),
        ("می\u200cخواهم والكتاب", ["می\u200cخواهم", "والكتاب"]),
        ("대한민국의 수도", ["대한민국의", "수도"]),
        ("हिन्दी भाषा।", ["हिन्दी", "भाषा"]),
        ("ภาษาไทย", ["ภาษา", "ไทย"]),
        ("我喜欢北京大学。", ["我", "喜欢", "北京", "大学"]),
        ("2014年に東京で", ["2014", "年", "に", "東京", "で"]),
        ("a\r\nb", ["a", "b"]),
        ("a\ud800b", ["a", "b"]),
        ("a\u00adb", ["a\u00adb"]),
        ("3 ㎞ ½", ["3", "㎞", "½"]),
        ("", []),
        ("?! —", []),
    ],
)  # fmt: skip
def test_words(text: str, expected: list[str]) -> None:
    assert cut(text) == expected


def test_a_colon_joins_in_finnish_and_swedish() -> None:
    assert cut("EU:n maat", "fi") == ["EU:n", "maat"]
    assert cut("EU:n maat") == ["EU", "n", "maat"]


def test_offsets_are_code_points_after_astral_text() -> None:
    text = "😀" * 7 + " word 𝐀 end"
    assert word_bounds(text).tolist() == [[8, 12], [13, 14], [15, 18]]


@pytest.mark.parametrize("text", TRICKY)
def test_tricky(text: str) -> None:
    check(text)


@pytest.mark.fuzz
@given(TEXTS)
def test_bounds_hold(text: str) -> None:
    check(text)


def check(text: str) -> None:
    bounds = word_bounds(text)
    assert bounds.dtype == np.int32
    assert bounds.shape == (len(bounds), 2)
    flat = bounds.ravel().tolist()
    assert flat == sorted(flat)
    assert not flat or (flat[0] >= 0 and flat[-1] <= len(text))
    assert (bounds[:, 0] < bounds[:, 1]).all()
    kinds = kind_table()[code_points(text)]
    inside = np.zeros(len(text), bool)
    for start, end in bounds.tolist():
        inside[start:end] = True
        assert (kinds[start:end] & (Kind.LETTER | Kind.DIGIT)).any()
        assert not kinds[end - 1] & (Kind.EDGE | Kind.SPACE)
    lettered = kinds & (Kind.LETTER | Kind.DIGIT) != 0
    assert inside[lettered].all(), "a letter or digit lies outside every word"


def test_time_is_linear() -> None:
    text = "Die Wörter dieses Satzes sind 42 an der Zahl, l'homme. " * 400

    def seconds(times: int) -> float:
        longer = text * times
        started = time.process_time()
        word_bounds(longer)
        return time.process_time() - started

    # 32 times the text takes 1,024 times as long where time is quadratic
    assert min(seconds(32) for _ in range(2)) < 250 * min(seconds(1) for _ in range(5))


def test_real_text(shared_data: Path) -> None:
    for path in sorted((shared_data / "xquad").glob("*.json")):
        paragraphs = json.loads(path.read_text("utf-8"))["data"][0]["paragraphs"]
        for paragraph in paragraphs[:5]:
            check(paragraph["context"])
