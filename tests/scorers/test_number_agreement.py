"""Numbers by value, in every script, and which of them the evidence has."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.errors import UsageError
from veriglot.records import Evidence, Sample, Score, Status
from veriglot.scorers.numbers import number_values
from veriglot.scorers.registry import load_scorer


def score_of(response: str, *evidence: str, **options: Any) -> Score:
    sample = Sample(id="1", response=response, evidence=tuple(Evidence(text) for text in evidence))
    (score,) = load_scorer("number-agreement", **options).score([sample])
    return score


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,234.5", [{"1234.5"}]),
        ("1.234,5", [{"1234.5"}]),
        ("1.234", [{"1234", "1.234"}]),
        ("0,125 and 3.14", [{"0.125"}, {"3.14"}]),
        ("1\u00a0234\u202f567", [{"1234567"}]),
        ("1'234'567", [{"1234567"}]),
        ("12,34,567.8", [{"1234567.8"}]),
        ("١٬٢٣٤٫٥", [{"1234.5"}]),
        ("३,५०,०००", [{"350000"}]),
        ("1,2,3", [{"1"}, {"2"}, {"3"}]),
        ("12万 3천만 5億", [{"120000"}, {"30000000"}, {"500000000"}]),
        ("一百二十 二〇一九年 三万五千 二十", [{"120"}, {"2019"}, {"35000"}, {"20"}]),
        ("万一 一些 三三两两", []),
        ("B52, 20th, 1879年", [{"52"}, {"20"}, {"1879"}]),
        ("14.03.1879 1879-03-14 03/14/1879 14/03/1879", [{"14"}, {"1879"}, {"1879"}, {"14"}] + [{"14"}, {"1879"}] * 2),
        ("1879年3月14日", [{"1879"}, {"14"}]),
        ("192.168.1.1", [{"192"}, {"168"}, {"1"}, {"1"}]),
        ("1. first\n 2) second 7 of 3.", [{"7"}, {"3"}]),
        ("version 1.2.3", [{"1"}, {"2"}, {"3"}]),
        ("², ½, seven", []),
        ("一" * 5000, [{"1" * 5000}]),  # models repeat themselves; Python makes no whole number of so many digits
    ],
)
def test_readings(text: str, expected: list[set[str]]) -> None:
    assert number_values(text) == [frozenset(map(Decimal, reading)) for reading in expected]


@given(st.integers(0, 10**15), st.sampled_from([",", ".", "'", "\u00a0", "\u202f"]))
def test_grouping_marks_make_no_difference(number: int, mark: str) -> None:
    (reading,) = number_values(f"{number:,}".replace(",", mark))
    assert Decimal(number) in reading


@given(st.decimals(0, 10**6, places=2), st.sampled_from(["0", "٠", "०", "๐", "০"]))
def test_digits_of_every_script(number: Decimal, zero: str) -> None:
    written = "".join(chr(ord(zero) + int(char)) if char.isdigit() else char for char in f"{number:f}")
    (reading,) = number_values(written)
    assert number in reading


@given(st.text(alphabet="0123456789.,-/' \u00a0一二十百万月万천 x\n", max_size=40))
def test_anything_can_be_read(text: str) -> None:
    for reading in number_values(text):
        assert 1 <= len(reading) <= 2
        assert all(value.is_finite() and value >= 0 for value in reading)


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
