"""The stream that texts are compared in, and the words that stand in it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.detectors.grounding.document import STEM, Document
from veriglot.text.normalization import fold
from veriglot.text.segmentation import words
from veriglot.text.unicode import Kind

GAP, WALL = " ", "\uffff"
PIECES = st.sampled_from(
    [
        "Rome", "rome", "größer", "e\u0301te\u0301", "1,234.5", "２０２４", "東京は", "日本の首都",
        "สวัสดีชาวโลก", "שלום",
        "👩‍👩‍👧", "🌊", "𝒳𝒴", "𐌰𐌱", "क्षत्रिय", "l'homme", " ", "  ", ", ", ".", "\n", "\r\n",
        "\u200f", "\u0301", "\ufeff",
    ]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=20)


def stream_of(document: Document) -> str:
    return "".join(map(chr, document.stream.tolist()))


def _ungrouped(text: str) -> str:
    return re.sub(r"(?<=\d)[.,'٬](?=\d{3})", "", text)


@pytest.mark.fuzz
@given(passages=st.lists(TEXTS, min_size=1, max_size=4))
def test_words_stand_in_the_stream_in_order_and_parted_as_in_the_text(passages: list[str]) -> None:
    document = Document(passages, None)
    text, stream = "\n".join(passages), stream_of(document)
    last_end, last_bound = 0, 0
    for i, (start, end) in enumerate(document.bounds.tolist()):
        at, to = int(document.starts[i]), int(document.ends[i])
        assert _ungrouped(stream[at:to]) == _ungrouped(fold(text[start:end]))
        between = stream[last_end:at]
        if i == 0:
            assert between.rstrip(GAP) in {WALL * k for k in range(len(passages))} or set(between) <= {GAP, WALL}
        elif document.passage[i] != document.passage[i - 1]:
            assert between.count(WALL) == document.passage[i] - document.passage[i - 1]
        else:
            assert between == (GAP if start > last_bound else "")
        last_end, last_bound = to, end
    assert set(stream[last_end:]) <= {GAP, WALL}
    assert stream.count(WALL) - sum(fold(p).count(WALL) for p in passages) <= len(passages) - 1


@pytest.mark.fuzz
@given(passages=st.lists(TEXTS, min_size=1, max_size=4))
def test_offsets_are_code_points_of_each_passage(passages: list[str]) -> None:
    document = Document(passages, None)
    found: list[list[str]] = [[] for _ in passages]
    for (start, end), passage in zip(document.bounds.tolist(), document.passage.tolist(), strict=True):
        begin = int(document.offsets[passage])
        assert end - begin <= len(passages[passage])
        found[passage].append(passages[passage][start - begin : end - begin])
    text = "\n".join(passages)
    assert [word for part in found for word in part] == [text[s:e] for s, e in words(text)]


@pytest.mark.parametrize(
    ("text", "stream"),
    [
        ("Rome, (the) CITY", " rome the city "),
        ("— Rome …  the", " rome the "),
        ("東京は日本", " 东京は日本 "),  # traditional and simplified are one
        ("1,234 ２０２４", " 1234 2024 "),
        ("", "  "),
    ],
)
def test_streams(text: str, stream: str) -> None:
    assert stream_of(Document([text], None)) == stream


def test_no_stretch_crosses_passages() -> None:
    apart = Document(["the old", "mill stands"], "en")
    together = Document(["the old mill stands"], "en")
    asked = Document(["old mill"], "en")
    grams = set(apart.hashes.grams(6).tolist())
    (wanted,) = asked.hashes.of(asked.starts[:1], asked.starts[:1] + 6)
    assert int(wanted) in together.hashes.of(*_all(together, 6)).tolist()
    assert int(wanted) not in apart.hashes.of(*_all(apart, 6)).tolist()
    assert len(grams) == len(apart.stream) - 5


def _all(document: Document, size: int) -> tuple[np.ndarray, np.ndarray]:
    starts = np.arange(len(document.stream) - size + 1)
    return starts, starts + size


def test_words_and_stems_meet_where_their_folded_letters_do() -> None:
    document = Document(["Straßen STRASSEN Rome rome ROMAN romanisch Romantik ２０２４ 2024"], None)
    listed = [
        fold(t) for t in ["Straßen", "STRASSEN", "Rome", "rome", "ROMAN", "romanisch", "Romantik", "２０２４", "2024"]
    ]
    for i, one in enumerate(listed):
        for j, other in enumerate(listed):
            assert (document.word[i] == document.word[j]) == (one == other)
            assert (document.stem[i] == document.stem[j]) == (one[:STEM] == other[:STEM])


def test_what_words_are_made_of() -> None:
    document = Document(["B2B costs 1,200 東京 ÄÖ かな"], None)
    assert document.counts_in_words(document.of_kind(Kind.DIGIT)).tolist() == [1, 0, 4, 0, 0, 0]
    assert document.counts_in_words(document.of_kind(Kind.UPPER)).tolist() == [2, 0, 0, 0, 2, 0]
    assert document.ideographic.tolist() == [False, False, False, True, False, True]
    assert document.lengths.tolist() == [3, 5, 4, 2, 2, 2]
    half = np.arange(len(document.stream)) % 2 == 0
    expected = [half[s:e].mean() for s, e in zip(document.starts.tolist(), document.ends.tolist(), strict=True)]
    assert document.mean_in_words(half).tolist() == pytest.approx(expected)


def test_a_text_without_words() -> None:
    document = Document(["?!", "", "…"], None)
    assert len(document) == 0
    assert len(document.word) == len(document.stem) == 0
    assert stream_of(document).count(WALL) == 2
