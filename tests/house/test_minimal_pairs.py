"""The twins of the benchmark: every language says all that English does, in the same form, and any twin can be made."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import minimal_pairs as pairs

TAGS = pairs.languages()
LISTS = ("women", "men", "places", "companies", "works")


def wordings(kind: str, frame: dict[str, Any]) -> dict[str, list[str]]:
    """What a frame says, by what it is for."""
    if kind != "state":
        return {name: frame[name] for name in ("questions", "evidence", "answers")}
    states = {name: [text for state in frame["states"] for text in state[name]] for name in ("evidence", "answers")}
    return {"questions": frame["questions"] + frame["ask"], **states}


@pytest.mark.parametrize("tag", TAGS)
def test_a_language_says_what_english_does(tag: str) -> None:
    ours, english = pairs.read_frames(tag), pairs.read_frames("en")
    assert english.keys() <= ours.keys()
    assert {name: len(ours[name]) for name in LISTS} == {name: len(english[name]) for name in LISTS}
    assert {name: kind for name, (kind, _) in ours["frames"].items()} == {
        name: kind for name, (kind, _) in english["frames"].items()
    }
    for name, (kind, frame) in ours["frames"].items():
        known = {slot[1] for slot in pairs.SLOT.finditer(json.dumps(english["frames"][name][1]))}
        for purpose, texts in wordings(kind, frame).items():
            assert texts
            for text in texts:
                assert {slot[1] for slot in pairs.SLOT.finditer(text)} <= known, (name, text)
                assert "[" not in text or purpose == "answers", (name, text)
                assert bool(re.search(r"\[[^\[\]]+\]", text)) == (purpose == "answers"), (name, text)


@pytest.mark.parametrize("tag", TAGS)
def test_states_and_answers_have_their_counterparts(tag: str) -> None:
    english = pairs.read_frames("en")["frames"]
    for name, (kind, frame) in pairs.read_frames(tag)["frames"].items():
        if kind == "state":
            assert frame["kind"] in pairs.KINDS
            assert len(frame["states"]) == len(english[name][1]["states"])
            assert len({len(state["answers"]) for state in frame["states"]}) == 1, name
            for answers in zip(*(state["answers"] for state in frame["states"]), strict=True):
                assert len(set(answers)) == len(answers), (name, answers)
        elif kind == "fact":
            for answer in frame["answers"]:
                letter = pairs.SLOT.search(answer, answer.index("["))[1]  # type: ignore[index]
                assert any(f"{{{letter}" in told for told in frame["evidence"]), (name, answer)


@pytest.mark.parametrize("tag", TAGS)
def test_twins_differ_where_the_wrong_one_is_marked(tag: str) -> None:
    kinds = set()
    for right, wrong in pairs.draw(tag, 150, seed=1):
        kinds.add(right.meta["kind"])
        spans = wrong.annotations[0].spans or ()
        assert right.annotations[0].spans == ()
        assert right.response != wrong.response
        assert spans
        assert all(wrong.response[span.start : span.end].strip() for span in spans)
        assert not re.search(r"[\[\]{}]", right.response + wrong.response + (right.question or ""))
        assert right.evidence == wrong.evidence
    assert kinds == set(pairs.KINDS)


def test_a_draw_is_repeated_by_its_seed() -> None:
    assert pairs.draw("en", 20, seed=3) == pairs.draw("en", 20, seed=3) != pairs.draw("en", 20, seed=4)


def test_a_changed_number_keeps_its_last_digit_where_nouns_depend_on_it() -> None:
    rng = Random(0)
    assert {pairs._changed(125, rng, last=False) % 10 for _ in range(50)} == {5}
