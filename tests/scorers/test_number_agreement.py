"""Numbers by value, in every script, and which of them the evidence has."""

from __future__ import annotations

from typing import Any

import pytest

from veriglot.errors import UsageError
from veriglot.records import Evidence, Sample, Score, Status
from veriglot.scorers.registry import load_scorer


def score_of(response: str, *evidence: str, language: str | None = None, **options: Any) -> Score:
    passages = tuple(Evidence(text) for text in evidence)
    sample = Sample(id="1", response=response, evidence=passages, language=language)
    (score,) = load_scorer("number-agreement", **options).score([sample])
    return score


def test_agreement_by_hand() -> None:
    found = score_of("In 1990 it had 1,200 people, 3 of them old, and 1200 houses.", "1990: 1.200 people", "7")
    assert found.value == pytest.approx(2 / 3), "1990 and 1200 of 1990, 1200 and 3"
    assert found.parts["recall"] == pytest.approx(2 / 3)
    assert score_of("3.5 km", "3,5 km").value == 1.0
    assert score_of("1.234 people", "1234 people").value == 1.0
    assert score_of("1.234 g", "1,2340 g").value == 1.0
    assert score_of("1,234 people", "1.234 g").value == 1.0, "written the same but for the mark: nothing says which"
    assert score_of("14.03.1879", "on March 14, 1879").value == 1.0
    assert score_of("15.03.1879", "on March 14, 1879").value == 0.5
    assert score_of("十二万", "120,000").value == 1.0
    assert score_of("twelve hundred", "1,200", language="en").value == 1.0
    assert score_of("1. first\n2) second", "1 and 2").status is Status.NOTHING_TO_COMPARE, "marks of a list"
    assert score_of("一" * 5000, "一" * 5000).value == 1.0, "models repeat themselves"


def test_a_passage_is_read_in_its_own_language() -> None:
    sample = Sample("1", "21 people", language="en", evidence=(Evidence("einundzwanzig Einwohner", language="de"),))
    (score,) = load_scorer("number-agreement").score([sample])
    assert score.value == 1.0


def test_nothing_to_compare_is_not_scored() -> None:
    found = score_of("no figures", "1990")
    assert (found.status, found.value) == (Status.NOTHING_TO_COMPARE, None)
    assert "no number in the response" in (found.reason or "")
    assert score_of("no figures", "1990", empty=1.0).value == 1.0
    assert score_of("1990", "none").value == 0.0
    assert score_of("1990", "none", value="recall").status is Status.NOTHING_TO_COMPARE
    assert score_of("", "none", value="f1").status is Status.NOTHING_TO_COMPARE
    assert score_of("1990", " ").status is Status.NO_EVIDENCE
    with pytest.raises(UsageError, match="between 0 and 1"):
        load_scorer("number-agreement", empty=2.0)
