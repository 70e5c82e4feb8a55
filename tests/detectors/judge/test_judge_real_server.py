"""Judges on a small real language model behind its real server: not what it says, but what becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from real_server import MODEL, RealServer, start_real_server
from scripted_judges import sample

from veriglot.detectors.registry import load_detector
from veriglot.records import Status

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def server() -> Iterator[RealServer]:
    started = start_real_server()
    yield started
    assert started.stop() == 0, "the server did not end by itself"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["translation", "pairs", "facts"])
def test_the_grammar_of_a_schema_makes_a_small_model_answer(kind: str, server: RealServer) -> None:
    made = load_detector(
        f"judge:{kind}", model=MODEL, url=server.base_url, probabilities=True, seed=1, jobs=1, max_tokens=300,
        client_options={"server": "llama.cpp", "retries": 0},
    )  # fmt: skip
    text = sample("The tower was built in 1881.", "The tower was built in 1871.")
    found, again = made.predict([text])[0], made.predict([text])[0]
    assert found == again
    if found.status is Status.SCORED:
        assert found.score is not None
        assert 0 <= found.score <= 1
        if kind == "pairs":  # what the model would have liked better fills the alternatives: no label's share is known
            assert "confidence:verdict" in found.notes
            assert found.score in {0.0, 1.0}
            assert all(span.confidence is None for span in found.spans or ())
        else:
            assert "confidence:token_probabilities" in found.notes
        if kind == "facts":
            assert found.units
    else:
        assert found.status is Status.FAILED
        assert "The judge" in (found.reason or "")
        assert kind == "facts", found.reason  # lists can miss claims; the form of one verdict cannot be missed


@pytest.mark.slow
def test_spans_of_a_small_model_stand_in_the_response_or_are_reported(server: RealServer) -> None:
    made = load_detector(
        "judge:spans", model=MODEL, url=server.base_url, seed=1, jobs=1, max_tokens=200,
        client_options={"server": "llama.cpp", "retries": 0},
    )  # fmt: skip
    text = sample("The tower was built in 1881.", "The tower was built in 1871.")
    (found,) = made.predict([text])
    if found.status is Status.SCORED:
        assert all(span.text == text.response[span.start : span.end] for span in found.spans or ())
    else:
        assert found.status is Status.FAILED
        assert found.reason
