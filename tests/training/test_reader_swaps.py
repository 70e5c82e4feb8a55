"""Swapped sentences: all words stand in the evidence, and nothing but the marked places differs."""

from __future__ import annotations

from random import Random

import pytest

from veriglot.training.grounding.examples import Example
from veriglot.training.reader.sources import Row
from veriglot.training.reader.swaps import Swap, Swaps, borrowed, exchanged

PASSAGES = {
    "en": "In 1952 the painter Marta Lindqvist taught Jonas Weber in Kelsund, where they met. "
    "The tower was built in 1873, and the museum opened in 2004. Later Henri Delmas replaced Louis Fabre at Nortek.",
    "de": "Die Brücke von Halvik wurde 1883 eröffnet, und 1926 kamen die Laternen. "
    "Adele Rohde hatte den Bauleiter Ludwig Faber selbst gewählt, der aus Kelsund kam.",
    "zh": "大桥于一八八三年在北京通车，设计者是工程师王小明，负责施工的是李大伟先生。博物馆在上海开放，由市政府管理。",
}


def rows_of(texts: dict[str, str], copies: int = 30) -> list[Row]:
    return [
        Row(Example("clean", "articles", f"{tag} {number}", tag, text, (f"{text} {number}.",)), False, located=True)
        for tag, text in texts.items()
        for number in range(copies)
    ]


def without(text: str, places: tuple[tuple[int, int], ...]) -> list[str]:
    """What stands around the places."""
    starts = [0, *(end for _, end in places)]
    return [text[start:end] for start, end in zip(starts, [*(start for start, _ in places), len(text)], strict=True)]


@pytest.mark.parametrize("tag", sorted(PASSAGES))
def test_words_change_places(tag: str) -> None:
    swaps = [swap for seed in range(40) if (swap := exchanged(PASSAGES[tag], tag, Random(seed))) is not None]
    assert swaps
    for swap in swaps:
        assert sorted(swap.right) == sorted(swap.wrong)
        assert swap.right != swap.wrong
        assert without(swap.right, swap.places) == without(swap.wrong, swap.marks)
        first, second = (swap.right[start:end] for start, end in swap.places)
        assert [swap.wrong[start:end] for start, end in swap.marks] == [second, first]
        assert swap.mirrored().mirrored() == swap


def test_a_clause_holds_what_differs() -> None:
    shorter = 0
    for seed in range(60):
        swap = exchanged(PASSAGES["en"], "en", Random(seed))
        assert swap is not None
        part = swap.clause(Random(seed))
        assert part.right in swap.right
        assert without(part.right, part.places) == without(part.wrong, part.marks)
        assert [part.wrong[a:b] for a, b in part.marks] == [swap.wrong[a:b] for a, b in swap.marks]
        shorter += len(part.right) < len(swap.right)
    assert shorter > 10


def test_a_value_of_another_sentence() -> None:
    lines = ["The tower of Halvik was built in 1873.", "The museum in Kelsund opened in 2004."]
    swaps = {borrowed(lines[0], lines[1:], "en", Random(seed)) for seed in range(20)}
    assert swaps == {
        Swap(lines[0], "The tower of Kelsund was built in 1873.", ((13, 19),), ((13, 20),)),
        Swap(lines[0], "The tower of Halvik was built in 2004.", ((33, 37),), ((33, 37),)),
    }
    assert borrowed(lines[0], ["Nothing of the kind stands here."], "en", Random(0)) is None


def test_lists_tell_no_order() -> None:
    assert exchanged("We met Anna and Peter.", "en", Random(0)) is None


def test_drawn_twins_are_told_by_their_evidence() -> None:
    swaps, rng = Swaps(rows_of(PASSAGES), []), Random(1)
    for _ in range(60):
        right, wrong = swaps.draw(rng)
        evidence = right.example.passages[0]
        assert right.example.passages == wrong.example.passages
        assert right.example.response in evidence
        assert wrong.example.response not in evidence
        assert (right.unsupported, wrong.unsupported) == (False, True)
        assert wrong.example.marks
        assert not right.example.marks
        assert right.twin == wrong.twin


def test_translations_are_evidence() -> None:
    german = "Marta Lindqvist lehrte 1952 zusammen mit Jonas Weber."
    english = "In 1952 Marta Lindqvist taught together with Jonas Weber."
    pairs = [
        Row(Example("clean", "pawsx", "1", tag, text, (text,)), False, located=True)
        for tag, text in (("de", german), ("en", english))
    ]
    swaps = Swaps([], pairs)
    drawn = [swaps.draw(Random(seed)) for seed in range(10)]
    assert {(wrong.example.language, wrong.example.evidence_language) for _, wrong in drawn} == {
        ("de", "en"),
        ("en", "de"),
    }
    assert Swaps([], []).draw(Random(0)) == []
