"""What a word shares with the evidence, against implementations that any reader can check."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.detectors.grounding import features as matching
from veriglot.detectors.grounding.document import STEM, Document
from veriglot.text.normalization import fold

WORDS = st.sampled_from(
    ["Rome", "romans", "romantic", "old", "older", "mill", "1998", "19", "東京", "の", "вода", "نهر"]
)
TEXTS = st.lists(WORDS, max_size=9).map(" ".join)
SIZES = (3, 4, 5, 6, 8, 11)


def folded_words(document: Document, text: str) -> list[str]:
    return [fold(text[s:e]) for s, e in document.bounds.tolist()]


def naive_coverage(response: Document, other: Document, size: int) -> list[bool]:
    ours, theirs = (tuple(d.stream.tolist()) for d in (response, other))
    known = {theirs[i : i + size] for i in range(len(theirs) - size + 1)}
    flags = [False] * len(ours)
    for i in range(len(ours) - size + 1):
        if ours[i : i + size] in known:
            flags[i : i + size] = [True] * size
    return flags


@pytest.mark.fuzz
@given(response=TEXTS, other=TEXTS, size=st.sampled_from(SIZES))
def test_coverage_misses_no_shared_stretch(response: str, other: str, size: int) -> None:
    ours, theirs = Document([response], None), Document([other], None)
    found = matching.covered(ours, theirs, size).tolist()
    wanted = naive_coverage(ours, theirs, size)
    assert len(found) == len(wanted)
    assert all(hit for hit, want in zip(found, wanted, strict=True) if want)


@pytest.mark.parametrize(
    ("response", "other"),
    [
        ("The mill was built in 1874.", "In 1874 the old mill was built by the river."),
        ("Die Mühle wurde abgerissen.", "Die alte Mühle steht am Fluss, sie wurde 1874 gebaut."),
        ("東京は日本の首都です。", "日本の首都である東京は大きい。"),
        ("Ҷавоб нест", "The old mill"),
        ("мельница построена", "Старая мельница была построена"),
    ],
)
@pytest.mark.parametrize("size", SIZES)
def test_coverage_is_the_naive_one(response: str, other: str, size: int) -> None:
    ours, theirs = Document([response], None), Document([other], None)
    wanted = naive_coverage(ours, theirs, size)
    assert matching.covered(ours, theirs, size).tolist() == wanted
    shares = ours.mean_in_words(matching.covered(ours, theirs, size)).tolist()
    expected = [np.mean(wanted[s:e]) for s, e in zip(ours.starts.tolist(), ours.ends.tolist(), strict=True)]
    assert shares == pytest.approx(expected)


def naive_edges(ours: list[str], theirs: list[str], sizes: tuple[int, ...], *, front: bool) -> list[int]:
    def edge(word: str, size: int) -> str:
        return word[:size] if front else word[-size:]

    return [
        max(
            (n for n in sizes if len(w) >= n and any(len(o) >= n and edge(o, n) == edge(w, n) for o in theirs)),
            default=0,
        )
        for w in ours
    ]


@pytest.mark.fuzz
@given(response=TEXTS, other=TEXTS)
def test_beginnings_and_endings(response: str, other: str) -> None:
    ours, theirs = Document([response], None), Document([other], None)
    words, known = folded_words(ours, response), folded_words(theirs, other)
    assert matching.shared_edge(ours, theirs, matching.BEGINNINGS, front=True).tolist() == naive_edges(
        words, known, (2, 3, 4, 6, 8, 10), front=True
    )
    assert matching.shared_edge(ours, theirs, matching.ENDINGS, front=False).tolist() == naive_edges(
        words, known, (3, 4, 6), front=False
    )


@pytest.mark.fuzz
@given(response=TEXTS, other=TEXTS)
def test_occurrences_are_exact(response: str, other: str) -> None:
    ours, theirs = Document([response], None), Document([other], None)
    words, known = folded_words(ours, response), folded_words(theirs, other)
    exact, stems = matching.occurrences(ours, theirs)
    assert exact.tolist() == [known.count(w) for w in words]
    assert stems.tolist() == [[k[:STEM] for k in known].count(w[:STEM]) for w in words]


def shared(response: str, *evidence: str) -> dict[str, list[bool]]:
    ours = Document([response], None)
    words = folded_words(ours, response)
    values = matching.numbers_shared(ours, *(Document([text], None) for text in evidence))
    return {word: [bool(v[i]) for v in values] for i, word in enumerate(words)}


@pytest.mark.parametrize(
    "written",
    [
        "1234",
        "1,234",
        "1.234",
        "1٬234",
        "１２３４",
        "１，２３４",
        "١٢٣٤",
        "١٬٢٣٤",
        "१२३४",
        "१,२३४",
        "১২৩৪",
        "๑๒๓๔",
        "01234",
    ],
)
@pytest.mark.parametrize(
    "evidence", ["It cost 1234 pounds.", "التكلفة ١٬٢٣٤ جنيه", "लागत १,२३४ रुपये थी।", "費用は１２３４円。"]
)
def test_numbers_meet_by_value_however_they_are_written(written: str, evidence: str) -> None:
    assert next(iter(shared(f"{written} in all", evidence).values())) == [True]


@pytest.mark.parametrize(
    ("number", "evidence"), [("1998", "1989"), ("20", "2020"), ("7", "17"), ("0", "10"), ("1234", "")]
)
def test_other_numbers_do_not_meet(number: str, evidence: str) -> None:
    assert shared(f"{number} mills", f"since {evidence} or so")[number] == [False]


def test_numbers_are_held_against_each_text_alone_and_words_are_none() -> None:
    found = shared("Rome had 7 hills and 007 roads in B2", "seven or 7", "B2 and Rome", "nothing")
    assert found["7"] == found["007"] == [True, False, False]
    assert found["b2"] == [False, True, False]
    assert found["rome"] == found["hills"] == [False, False, False]


def test_pairs_stand_in_the_evidence_in_their_order() -> None:
    evidence = Document(["The old mill stands by the river."], "en")
    response = Document(["An old mill stands near a river"], "en")
    before, after = matching.has_pair(response, matching.pairs(evidence, 1), 1)
    assert before.tolist() == [0, 0, 1, 1, 0, 0, 0]
    assert after.tolist() == [0, 1, 1, 0, 0, 0, 0]
    before, after = matching.has_pair(response, matching.pairs(evidence, 2), 2)
    assert before.tolist() == [0, 0, 0, 1, 0, 0, 0]
    assert after.tolist() == [0, 1, 0, 0, 0, 0, 0]


def test_swapped_neighbours_are_seen() -> None:
    known = matching.pairs(Document(["Karpov beat Kasparov in Lyon"], "en"), 1)
    swapped = matching.has_swapped_pair(Document(["Kasparov beat Karpov in Lyon"], "en"), known)
    kept = matching.has_swapped_pair(Document(["Karpov beat Kasparov in Lyon"], "en"), known)
    assert swapped.tolist() == [1, 2, 1, 0, 0]
    assert kept.tolist() == [0, 0, 0, 0, 0]


@pytest.mark.parametrize("response", ["", "mill", "old mill"])
@pytest.mark.parametrize("evidence", ["", "mill", "old mill"])
def test_short_and_empty_texts(response: str, evidence: str) -> None:
    ours, theirs = Document([response], None), Document([evidence], None)
    for gap in (1, 2, 3):
        for part in matching.has_pair(ours, matching.pairs(theirs, gap), gap):
            assert len(part) == len(ours)
    assert len(matching.has_swapped_pair(ours, matching.pairs(theirs, 1))) == len(ours)
    assert all(len(ours.mean_in_words(matching.covered(ours, theirs, size))) == len(ours) for size in (3, 40))
