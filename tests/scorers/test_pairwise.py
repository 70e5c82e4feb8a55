"""Self-consistency: each response against its sisters, whatever the scorer and the batch."""

from __future__ import annotations

import pickle

import msgspec
import pytest

from veriglot.errors import UnknownNameError, UsageError
from veriglot.records import Direction, Evidence, Generator, Sample, Scorer, Status
from veriglot.scorers.pairwise import Pairwise, other_responses_of, with_other_responses
from veriglot.scorers.registry import load_scorer


def answer(name: str, response: str, seed: int | None = None, question: str | None = "q", model: str = "m") -> Sample:
    return Sample(id=name, response=response, question=question, language="en", generator=Generator(model, seed=seed))


def test_the_mean_over_sisters_by_hand() -> None:
    """`a b c d` shares two words with `a b x`, three with `a b c y`; so 2/4 and 3/4."""
    samples = with_other_responses([answer("1", "a b c d"), answer("2", "a b x"), answer("3", "a b c y")])
    first, second, third = load_scorer("pairwise:rouge-l").score(samples)
    assert first.value == pytest.approx((2 / 4 + 3 / 4) / 2)
    assert second.value == pytest.approx((2 / 3 + 2 / 3) / 2)
    assert third.value == pytest.approx((3 / 4 + 2 / 4) / 2)
    assert first.parts["samples"] == first.parts["compared"] == 2
    assert first.parts["recall"] == pytest.approx((2 / 3 + 3 / 4) / 2)
    assert [score.id for score in (first, second, third)] == ["1", "2", "3"]


def test_sisters_share_the_query_and_the_model() -> None:
    samples = with_other_responses(
        [
            answer("1", "x", 1),
            answer("2", "x", 2),
            answer("3", "y", 3),
            answer("4", "y", 3),  # the same row again
            answer("5", "z", 1, question="other"),
            answer("6", "w", 1, model="n"),
            answer("7", "v", 1, question=None),
            msgspec.structs.replace(answer("8", "u", 4), language="de"),
        ]
    )
    assert [other_responses_of(sample) for sample in samples] == [
        ("x", "y"),
        ("x", "y"),
        ("x", "x"),
        ("x", "x"),
        (),
        (),
        (),
        (),
    ]
    assert "samples" not in samples[4].meta
    assert [sample.id for sample in samples] == list("12345678")


def test_a_list_of_ones_own_stays() -> None:
    given = [msgspec.structs.replace(answer(str(i), t), meta={"samples": ["own"], "k": 1}) for i, t in enumerate("ab")]
    assert with_other_responses(given) == given
    assert other_responses_of(msgspec.structs.replace(given[0], meta={"samples": "text"})) == ()
    assert other_responses_of(msgspec.structs.replace(given[0], meta={"samples": ["a", 3, None]})) == ("a",)


def test_evidence_is_not_looked_at_and_batches_change_nothing() -> None:
    scorer = load_scorer("pairwise:rouge-1", value="f1")
    samples = with_other_responses([answer(str(i), f"the quick fox number w{i}") for i in range(4)])
    together = scorer.score(samples)
    assert together == [scorer.score([sample])[0] for sample in samples]
    held = [msgspec.structs.replace(sample, evidence=(Evidence("quick"),)) for sample in samples]
    assert scorer.score(held) == together
    assert pickle.loads(pickle.dumps(scorer)).score(samples) == together


def test_what_has_no_sisters_or_none_that_can_be_scored() -> None:
    scorer = load_scorer("pairwise:number-agreement")
    alone, empty, numbers = scorer.score(
        [
            answer("1", "in 1990"),
            msgspec.structs.replace(answer("2", "no figure"), meta={"samples": ["in 1990"]}),
            msgspec.structs.replace(answer("3", "in 1990"), meta={"samples": ["in 1990", " ", "in 1991"]}),
        ]
    )
    assert alone.status is Status.NO_EVIDENCE
    assert "meta.samples" in (alone.reason or "")
    assert empty.status is Status.NOTHING_TO_COMPARE
    assert "other responses" in (empty.reason or "")
    assert numbers.value == 0.5
    assert (numbers.parts["samples"], numbers.parts["compared"]) == (3, 2), "what was not compared is said"


def test_names_and_options() -> None:
    scorer = load_scorer("pairwise:top-ngram", t=1)
    assert isinstance(scorer, Scorer)
    assert scorer.name == "pairwise:top-ngram@1"
    assert scorer.direction is Direction.HIGHER_IS_WORSE
    assert "t:1" in scorer.signature
    assert scorer.signature.startswith("scorer:pairwise:top-ngram@1|mean:arithmetic|of:top-ngram@1")
    with pytest.raises(UnknownNameError, match="rouge-l"):
        load_scorer("pairwise:rougel")
    with pytest.raises(UnknownNameError, match="value"):
        load_scorer("pairwise:rouge-l", valu="f1")
    with pytest.raises(UsageError, match="pairwise itself"):
        load_scorer("pairwise:pairwise:rouge-l")
    with pytest.raises(UsageError, match="exists already"):
        Pairwise(load_scorer("rouge-l"), value="f1")
