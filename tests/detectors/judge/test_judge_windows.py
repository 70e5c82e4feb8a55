"""Long evidence in windows: every part of it is in one, and support in any of them is support."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from misbehaving import ModelServer, prompt_of
from scripted_judges import RESPONSE, judge, sample, says

from veriglot.detectors.judge.judges import evidence_windows
from veriglot.detectors.registry import load_detector
from veriglot.errors import UsageError
from veriglot.llm.client import estimate_tokens
from veriglot.records import Evidence
from veriglot.text.facts import facts

WRONG = {"text": "1881", "type": "entity", "before": "built in"}
TALLEST = {"text": "It is the tallest in the country.", "type": "unverifiable", "before": ""}
FILLER = "The keeper wrote another page about the weather of that day. "


def long_evidence(fact: str, place: int, words: int = 100_000) -> str:
    sentences = [FILLER] * (words // 11)
    sentences.insert(place * len(sentences) // 10, f"{fact} ")
    return "".join(sentences)


def answer(body: dict[str, Any]) -> str:
    """Marks the date everywhere, and the tallest unless the window says so."""
    supported = "tallest of all towers" in prompt_of(body)
    date = '{"before": "built in", "text": "1881", "type": "entity"}'
    tall = '{"before": "", "text": "It is the tallest in the country.", "type": "unverifiable"}'
    return f'{{"spans": [{date if supported else f"{date}, {tall}"}]}}'


@pytest.mark.parametrize("place", [0, 5, 10])
def test_support_is_found_anywhere_in_a_hundred_thousand_words(place: int) -> None:
    text = long_evidence("It is the tallest of all towers in the country.", place)
    with ModelServer(answer=answer, schemas=False) as server:
        made = load_detector("judge:spans", model="m", url=server.base_url, window=20_000, schema=False)
        (found,) = made.predict([sample(RESPONSE, text)])
        asked = len(server.arrivals)
    assert asked > 5
    assert [span.text for span in found.spans or ()] == ["1881"]
    assert f"evidence:{asked} windows" in found.notes


def test_what_no_window_supports_is_marked() -> None:
    with ModelServer(answer=answer, schemas=False) as server:
        made = load_detector("judge:spans", model="m", url=server.base_url, window=200, schema=False)
        (found,) = made.predict([sample(RESPONSE, FILLER * 40)])
    assert [span.text for span in found.spans or ()] == ["1881", TALLEST["text"]]


def test_a_fact_that_one_window_supports_is_supported_and_contradiction_outweighs_silence() -> None:
    count = len(facts(RESPONSE, "en"))
    replies = {
        "ALPHA": ["unverified", "supported", "unverified"],
        "BETA": ["supported", "unverified", "unverified"],
        "GAMMA": ["unverified", "unverified", "contradicted"],
    }
    rules = []
    for mark, said in replies.items():
        full = [*said, *["supported"] * (count - 3)]
        rows = [{"claim": n + 1, "verdict": one} for n, one in enumerate(full)]
        rules.append(says({"verdicts": rows}, match=mark))
    passages = [f"{mark}. {FILLER * 4}" for mark in replies]
    (found,) = judge("facts", *rules, window=70).predict([sample(RESPONSE, *passages)])
    assert [unit.score for unit in found.units or ()] == [0.0, 0.0, 1.0, *[0.0] * (count - 3)]
    assert {span.type for span in found.spans or ()} == {"contradicted"}
    assert "evidence:3 windows" in found.notes


def test_a_window_that_cannot_be_read_fails_the_sample() -> None:
    made = judge("spans", says({"spans": []}, match="ALPHA"), says("What?"), window=64)
    (found,) = made.predict([sample(RESPONSE, f"ALPHA. {FILLER * 4}", FILLER * 4)])
    assert found.status == "failed"


@given(
    st.lists(st.text(alphabet="abc. é中文。\n1", max_size=400), min_size=1, max_size=4), st.integers(16, 120)
)  # fmt: skip
def test_windows_hold_everything_and_no_more_than_fits(texts: list[str], size: int) -> None:
    evidence = [Evidence(text) for text in texts]
    windows = evidence_windows(evidence, size)
    pieces = [piece for window in windows for _, piece in window]
    place = 0
    for text in texts:
        reached = 0
        while reached < len(text):
            start = text.index(pieces[place], max(0, reached - len(pieces[place])))
            assert start <= reached
            reached = start + len(pieces[place])
            place += 1
        place += not text
    assert place == len(pieces)
    for window in windows:
        cost = sum(estimate_tokens(piece) for _, piece in window)
        longest = max((len(run.encode()) for text in texts for run in re.findall(r"\S+\s*", text)), default=0)
        assert cost <= max(size, longest) + 1


def test_a_window_that_is_too_small_is_refused() -> None:
    with pytest.raises(UsageError, match="too small"):
        judge("spans", says({"spans": []}), window=10)
