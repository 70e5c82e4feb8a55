"""Tests of answers: run `pytest in_pytest.py`. The fixture comes with Veriglot, without an import."""

import pytest

import veriglot

PASSAGES = ["The bridge was opened in 1879.", "It is 120 metres long."]


def answer(question):
    """Stands for the application under test."""
    return {"When?": "The bridge was opened in 1879.", "Wrong?": "It opened in 1907 and is 340 metres long."}[question]


def test_a_supported_answer(grounded):
    prediction = grounded(response=answer("When?"), evidence=PASSAGES)
    assert prediction.verdict is veriglot.Verdict.SUPPORTED


def test_an_unsupported_answer_fails_with_its_spans(grounded):
    with pytest.raises(AssertionError) as failure:
        grounded(response=answer("Wrong?"), evidence=PASSAGES)
    text = str(failure.value)
    print(text)
    assert "2 unsupported spans in the response, 0 allowed" in text
    assert "It opened in ⟦1907⟧ and is ⟦340⟧ metres long." in text
    veriglot.assert_grounded(response=answer("Wrong?"), evidence=PASSAGES, max_unsupported=2)


def test_what_was_not_checked_fails(grounded):
    with pytest.raises(AssertionError, match=r"not checked \(no_evidence\).*does not pass"):
        grounded(response=answer("When?"), evidence=[], max_unsupported=100)
