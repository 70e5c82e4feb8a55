from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tricky_texts import TEXTS, TRICKY

from veriglot.text.segmentation import _sentences, sentences
from veriglot.text.unicode import Kind, code_points, kind_table

if TYPE_CHECKING:
    from pathlib import Path


def cut(text: str, language: str | None = None) -> list[str]:
    return [text[start:end] for start, end in sentences(text, language)]


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Dr. Smith met Mr. Jones. He left.", None, ["Dr. Smith met Mr. Jones.", "He left."]),
        ("J. K. Rowling wrote it on Jan. 3. Yes.", "en", ["J. K. Rowling wrote it on Jan. 3.", "Yes."]),
        ("So did I. Then we left.", None, ["So did I.", "Then we left."]),
        ("Wait... What? Yes!", "en", ["Wait...", "What?", "Yes!"]),
        ("Am 3. Mai kam er z. B. nach Ulm. Gut.", "de", ["Am 3. Mai kam er z. B. nach Ulm.", "Gut."]),
        ("Im Jahr 2014. Dann nicht.", "de", ["Im Jahr 2014.", "Dann nicht."]),
        ("1. One.\r\n2. Two.", "en", ["1. One.", "2. Two."]),
        ("line one\r\n\r\nline two", None, ["line one", "line two"]),
        ("我来了。你呢？“好。”他说。", "zh-Hans", ["我来了。", "你呢？", "“好。”", "他说。"]),
        ("東京は大きい。「はい」と言った。", "ja", ["東京は大きい。", "「はい」と言った。"]),
        ("यह एक वाक्य है। यह दूसरा है।", "hi", ["यह एक वाक्य है।", "यह दूसरा है।"]),
        ("هذا أول. هل هذا ثان؟ نعم.", "ar", ["هذا أول.", "هل هذا ثان؟", "نعم."]),
        ("یہ ایک جملہ ہے۔ یہ دوسرا ہے۔", "ur", ["یہ ایک جملہ ہے۔", "یہ دوسرا ہے۔"]),
        ("В 2014 г. Иванов и др. Уехали.", "ru", ["В 2014 г. Иванов и др. Уехали."]),
        (
            "The end.Next one, by St.Gallen on example.com.",
            None,
            ["The end.", "Next one, by St.Gallen on example.com."],
        ),
        ("श्री के. सी. शर्मा आए। वे गए।", "hi", ["श्री के. सी. शर्मा आए।", "वे गए।"]),
        ("", None, []),
        (" \r\n ", None, []),
    ],
)
def test_sentences(text: str, language: str | None, expected: list[str]) -> None:
    assert cut(text, language) == expected


def test_long_thai_is_parted_at_spaces() -> None:
    clause = "ประเทศไทยเป็นประเทศที่ตั้งอยู่ในภูมิภาคเอเชียตะวันออกเฉียงใต้และมีประชากรมาก"
    parts = cut(f"{clause} {clause} {clause}", "th")
    assert parts == [clause] * 3


@pytest.mark.parametrize("text", TRICKY)
def test_tricky(text: str) -> None:
    check(text, None)


@pytest.mark.fuzz
@given(TEXTS, st.sampled_from([None, "de", "en", "th", "zh-Hans"]))
def test_every_visible_code_point_is_in_one_sentence(text: str, language: str | None) -> None:
    check(text, language)


def check(text: str, language: str | None) -> None:
    spans = sentences(text, language)
    flat = [offset for span in spans for offset in span]
    assert flat == sorted(flat)
    assert all(start < end for start, end in spans)
    spaces = (kind_table()[code_points(text)] & Kind.SPACE != 0).tolist()
    covered = [0] * len(text)
    for start, end in spans:
        assert not spaces[start]
        assert not spaces[end - 1]
        for place in range(start, end):
            covered[place] += 1
    assert all(count == 1 for count, space in zip(covered, spaces, strict=True) if not space)


@pytest.mark.parametrize("unit", ["A short one. ", "1. ", "Dr. ", "ภาษาไทย ", "x", "。"])
def test_time_is_linear(unit: str) -> None:
    def seconds(times: int) -> float:
        text = unit * times
        _sentences.cache_clear()
        started = time.process_time()
        sentences(text, "en")
        return time.process_time() - started

    # 32 times the text takes 1,024 times as long where time is quadratic
    assert min(seconds(64_000) for _ in range(2)) < 250 * min(seconds(2_000) for _ in range(5))


def test_real_text(shared_data: Path) -> None:
    for path in sorted((shared_data / "xquad").glob("*.json")):
        language = path.name.split(".")[1]
        for paragraph in json.loads(path.read_text("utf-8"))["data"][0]["paragraphs"][:5]:
            check(paragraph["context"], language)
