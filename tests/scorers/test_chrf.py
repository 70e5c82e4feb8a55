"""chrF is sacrebleu's, with its settings in the signature."""

from __future__ import annotations

import pytest
from sacrebleu import sentence_chrf

from veriglot.errors import UsageError
from veriglot.records import Evidence, Sample, Score, Status
from veriglot.scorers.registry import load_scorer

PAIRS = [
    ("The cat sat on a mat.", "A cat sat on the mat."),
    ("猫坐在垫子上", "一只猫坐在旧垫子上"),
    ("แมวนั่งบนเสื่อ", "แมวตัวหนึ่งนั่งอยู่บนเสื่อ"),
    ("", "not empty"),
]


def score_of(response: str, *evidence: str, **options: object) -> Score:
    sample = Sample(id="1", response=response, evidence=tuple(Evidence(text) for text in evidence))
    (score,) = load_scorer("chrf", **options).score([sample])
    return score


@pytest.mark.parametrize(("response", "evidence"), PAIRS)
def test_it_is_that_of_sacrebleu(response: str, evidence: str) -> None:
    assert score_of(response, evidence).value == sentence_chrf(response, [evidence]).score
    plus = sentence_chrf(response, [evidence], word_order=2).score
    assert score_of(response, evidence, words=2).value == plus
    assert (plus == score_of(response, evidence).value) == (not response), "words make a difference"


def test_passages() -> None:
    best = score_of("the old mill", "something else", "the old mill", passages="best")
    assert best.value == pytest.approx(100)
    assert 20 < (score_of("the old mill", "something else", "the old mill").value or 0) < 100


def test_settings() -> None:
    signature = score_of("a", "a", words=2, lowercase=True).signature or ""
    for part in ("scorer:chrf@1", "case:lc", "nc:6", "nw:2", "beta:2", "space:no", "sacrebleu:"):
        assert part in signature
    assert score_of("ABCDEFG", "abcdefg", lowercase=True).value == pytest.approx(100)
    assert score_of("a", " ").status is Status.NO_EVIDENCE
    for wrong in ({"characters": 0}, {"words": -1}, {"beta": 1.5}, {"passages": "all"}):
        with pytest.raises(UsageError):
            load_scorer("chrf", **wrong)
