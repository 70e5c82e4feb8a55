"""The judge of facts: one verdict per atomic fact, found by rules or by the model; none is skipped in silence."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from misbehaving import ModelServer, prompt_of
from scripted_judges import RESPONSE, judge, sample, says

from veriglot.detectors.registry import load_detector
from veriglot.errors import UnknownNameError
from veriglot.records import Status
from veriglot.text.facts import facts

FACTS = facts(RESPONSE, "en")


def verdicts(*said: str, first: int = 1) -> dict[str, Any]:
    return {"verdicts": [{"claim": first + n, "verdict": one} for n, one in enumerate(said)]}


def test_each_fact_of_the_rules_has_its_verdict() -> None:
    said = ["supported"] * len(FACTS)
    place = next(n for n, fact in enumerate(FACTS) if "1881" in RESPONSE[fact.start : fact.end])
    said[place], said[-1] = "contradicted", "unverified"
    (found,) = judge("facts", says(verdicts(*said))).predict([sample()])
    assert [unit.score for unit in found.units or ()] == [0.0 if one == "supported" else 1.0 for one in said]
    assert [unit.kind for unit in found.units or ()] == [fact.kind for fact in FACTS]
    assert {(span.text, span.type) for span in found.spans or ()} == {
        (RESPONSE[low:high], said[n]) for n in (place, len(FACTS) - 1) for low, high in FACTS[n].parts
    }
    assert (found.score, found.notes) == (1.0, ("confidence:verdict",))


def test_all_supported_is_clean() -> None:
    (found,) = judge("facts", says(verdicts(*["supported"] * len(FACTS)))).predict([sample()])
    assert (found.score, found.spans) == (0.0, ())


@pytest.mark.parametrize(
    "said",
    [
        verdicts("supported"),
        verdicts(*["supported"] * (len(FACTS) + 1)),
        verdicts(*["supported"] * len(FACTS), first=0),
        {"verdicts": []},
        verdicts(*["supported"] * (len(FACTS) - 1), "true"),
    ],
)
def test_a_claim_without_one_verdict_was_not_checked(said: dict[str, Any]) -> None:
    (found,) = judge("facts", says(said)).predict([sample()])
    assert found.status is Status.FAILED


def test_long_lists_are_asked_about_in_parts() -> None:
    text = " ".join(f"Tower number {n} stands on the hill of the town." for n in range(45))
    count = len(facts(text, "en"))
    asked: list[int] = []

    def answer(body: dict[str, Any]) -> str:
        numbers = [int(number) for number in re.findall(r"^(\d+)\. ", prompt_of(body), re.MULTILINE)]
        asked.append(len(numbers))
        said = ", ".join(
            f'{{"claim": {n}, "verdict": "{"unverified" if n == count else "supported"}"}}' for n in numbers
        )
        return f'{{"verdicts": [{said}]}}'

    with ModelServer(answer=answer, schemas=False) as server:
        made = load_detector("judge:facts", model="m", url=server.base_url, schema=False)
        (found,) = made.predict([sample(text)])
    assert sum(asked) == count
    assert max(asked) <= 20 < count
    assert [unit.score for unit in found.units or ()] == [0.0] * (count - 1) + [1.0]


def test_probabilities_and_words() -> None:
    said = ["supported", *["contradicted"] * (len(FACTS) - 1)]

    def answer(_: dict[str, Any]) -> str:
        rows = ", ".join(f'{{"claim": {n + 1}, "verdict": "{one}"}}' for n, one in enumerate(said))
        return f'{{"verdicts": [{rows}]}}'

    with ModelServer(answer=answer, schemas=False) as server:
        made = load_detector("judge:facts", model="m", url=server.base_url, probabilities=True, words=True)
        (found,) = made.predict([sample()])
    # tokens 4, 8, 12 ... (from 0) end each row; labels stand in token 4n, of log probability 0
    assert found.notes == ("confidence:token_probabilities", "calibration:none")
    assert [unit.score for unit in found.units or ()] == [0.0, *[1.0] * (len(FACTS) - 1)]
    inside = {place for span in found.spans or () for place in range(span.start, span.end)}
    assert all((word.start in inside) == (word.confidence >= made.threshold) for word in found.words or ())
    assert len(found.words or ()) == 18


def test_the_probability_of_support_is_turned_around() -> None:
    answer = '{"verdicts": [{"claim":1, "verdict":"supported"}]}'  # the label is in the third token: -0.5
    text = "Ada sleeps."
    assert len(facts(text, "en")) == 1
    with ModelServer(answer=lambda _: answer, schemas=False) as server:
        made = load_detector("judge:facts", model="m", url=server.base_url, probabilities=True)
        (found,) = made.predict([sample(text)])
    assert found.score == round(1 - math.exp(-0.5), 4)


def test_shares_of_samples() -> None:
    count = len(FACTS)
    replies = [verdicts(*["supported"] * (count - 1), last) for last in ("contradicted", "supported", "contradicted")]
    (found,) = judge("facts", says(*replies), samples=3).predict([sample()])
    assert [unit.score for unit in found.units or ()] == [0.0] * (count - 1) + [0.6667]
    assert {span.type for span in found.spans or ()} == {"contradicted"}
    assert found.score == 0.6667


def test_without_rules_for_the_language_a_sentence_is_a_fact() -> None:
    text = "Mnara ulijengwa mwaka 1881. Ni mrefu."
    (found,) = judge("facts", says(verdicts("contradicted", "supported"))).predict([sample(text, language="sw")])
    assert "facts:sentences" in found.notes
    assert [unit.kind for unit in found.units or ()] == ["sentence", "sentence"]
    assert [span.text for span in found.spans or ()] == ["Mnara ulijengwa mwaka 1881"]


def parted(*claims: tuple[str, str]) -> dict[str, Any]:
    rows = [{"claim": claim, "before": "", "text": text} for claim, text in claims]
    return says({"facts": rows}, match="Split the response")


def test_the_model_parts_the_response_and_judges_its_own_claims() -> None:
    parting = parted(
        ("The lighthouse was built in 1881.", "built in 1881"),
        ("Ada Berg built the lighthouse.", "by Ada Berg"),
        ("Ada Berg was a sailor.", "the sailor Ada Berg"),
    )
    made = judge("facts", parting, says(verdicts("contradicted", "supported")), decompose="model", words=True)
    (found,) = made.predict([sample()])
    assert [(span.text, span.type) for span in found.spans or ()] == [("built in 1881", "contradicted")]
    assert [(unit.kind, unit.score) for unit in found.units or ()] == [("claim", 1.0), ("claim", 0.0)]
    assert "quote:not in the response: 'the sailor Ada Berg'" in found.notes
    assert "facts:12 words in no fact" in found.notes
    assert found.words is None


@pytest.mark.parametrize(
    "parting",
    [
        parted(),
        parted(("Made up.", "that stands nowhere")),
        says("Sorry, no.", match="Split the response"),
        {"error": "down", "match": "Split the response"},
    ],
)
def test_a_response_that_was_not_parted_was_not_checked(parting: dict[str, Any]) -> None:
    (found,) = judge("facts", parting, says(verdicts("supported")), decompose="model").predict([sample()])
    assert found.status is Status.FAILED


def test_ways_to_decompose_have_names_and_a_place_in_the_signature() -> None:
    with pytest.raises(UnknownNameError, match="rules"):
        judge("facts", says("x"), decompose="rule")
    assert "facts:rules" in judge("facts", says("x")).signature
    assert "facts:decompose@2" in judge("facts", says("x"), decompose="model").signature
