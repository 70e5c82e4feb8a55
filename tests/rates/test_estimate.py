"""Rates from tallies and a profile: the arithmetic, the intervals, and what shares its noise with what."""

from __future__ import annotations

import numpy as np
import pytest
from clustered_texts import Texts, texts
from hypothesis import given
from hypothesis import strategies as st

from veriglot.errors import UsageError
from veriglot.rates.estimators import ESTIMATORS, estimate
from veriglot.rates.proportion import Tallies
from veriglot.records import Confusion, Estimator, LanguageProfile, Reliability

PROFILE = LanguageProfile.of([Confusion(8, 3, 2, 27)] * 30)  # TPR 0.8, FPR 0.1, P 8/11, prevalence 0.25


def tallies(share: float, *, count: int = 200, units: int = 100) -> Tallies:
    """Responses of which each has exactly that share marked."""
    return Tallies(np.full(count, round(share * units)), np.full(count, units), np.arange(count))


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [("raw", 0.24), ("paper", 0.24 * (8 / 11) / 0.8), ("label-shift", (0.24 - 0.1) / 0.7)],
)
def test_the_arithmetic_is_that_of_the_sources(estimator: str, expected: float) -> None:
    found = estimate(tallies(0.24), PROFILE, estimator=estimator)
    assert found.value == pytest.approx(expected)
    assert found.status is Reliability.OK
    assert found.low is not None
    assert found.high is not None
    assert found.low <= expected <= found.high


@given(st.floats(0.0, 1.0), st.floats(0.55, 0.95), st.floats(0.01, 0.4))
def test_label_shift_inverts_what_a_detector_does_at_any_prevalence(rate: float, tpr: float, fpr: float) -> None:
    size = 10_000
    tp, fp = round(size * tpr), round(size * fpr)
    profile = LanguageProfile.of([Confusion(tp, fp, size - tp, size - fp)] * 20)
    marked = round(rate * tp + (1 - rate) * fp)
    found = estimate(Tallies(np.full(20, marked), np.full(20, size), np.arange(20)), profile)
    assert found.value == pytest.approx(rate, abs=2e-3)


def test_the_paper_is_right_only_at_the_prevalence_of_its_profile() -> None:
    same = estimate(tallies(0.25 * 0.8 + 0.75 * 0.1, units=1000), PROFILE, estimator="paper")
    assert same.value == pytest.approx(0.25, abs=1e-3)
    rare = tallies(0.03 * 0.8 + 0.97 * 0.1, units=1000)
    assert estimate(rare, PROFILE).value == pytest.approx(0.03, abs=1e-3)
    of_paper = estimate(rare, PROFILE, estimator="paper").value
    assert of_paper is not None
    assert of_paper > 3 * 0.03


@pytest.mark.parametrize("estimator", ["label-shift", "paper", "raw"])
@pytest.mark.parametrize("rate", [0.03, 0.3])
def test_intervals_hold(estimator: str, rate: float) -> None:
    """Four hundred studies of clustered texts: 95% intervals hold 93% to 97%, give or take what chance does."""
    draw = np.random.default_rng([7, int(1000 * rate)])
    marked = rate * 0.7 + (1 - rate) * 0.05
    truth = {"label-shift": rate, "raw": marked, "paper": marked * 0.3 / (0.3 * 0.7 + 0.7 * 0.05)}[estimator]
    held, sums = 0, 0.0
    for number in range(400):
        profile = texts(draw, 120, 0.3).profile
        found = estimate(texts(draw, 200, rate).tallies, profile, estimator=estimator, draws=800, seed=number)
        assert found.value is not None
        assert found.low is not None
        assert found.high is not None
        held += found.low <= truth <= found.high
        sums += found.value
    assert 0.915 <= held / 400 <= 0.985
    assert sums / 400 == pytest.approx(truth, rel=0.05)


def test_clustered_responses_are_less_than_independent_ones() -> None:
    draw = np.random.default_rng(1)
    once = texts(draw, 60, 0.2).tallies
    again = Tallies.join([once] * 5)  # the same text five times: nothing new is known
    spread = Tallies(again.marked, again.units, np.arange(len(again)))
    narrow, wide, first = (estimate(each, estimator="raw") for each in (spread, again, once))
    assert width(wide) == pytest.approx(width(first), rel=0.1)
    assert width(narrow) < 0.6 * width(wide)


def width(found: object) -> float:
    return found.high - found.low  # type: ignore[attr-defined,no-any-return]


def test_a_small_profile_widens_the_interval() -> None:
    draw = np.random.default_rng(2)
    study = texts(draw, 5000, 0.1).tallies
    large, small = (estimate(study, texts(draw, count, 0.3).profile) for count in (2000, 40))
    assert width(small) > 2.5 * width(large)


def test_more_confidence_is_a_wider_interval() -> None:
    draw = np.random.default_rng(3)
    study, profile = texts(draw, 100, 0.1).tallies, texts(draw, 100, 0.3).profile
    widths = [width(estimate(study, profile, confidence=level)) for level in (0.5, 0.8, 0.95, 0.99)]
    assert widths == sorted(widths)
    assert widths[-1] > 2 * widths[0]


def test_the_same_seed_gives_the_same_bits() -> None:
    draw = np.random.default_rng(4)
    study, profile = texts(draw, 50, 0.1).tallies, texts(draw, 50, 0.3).profile
    first, second, other = (estimate(study, profile, seed=seed) for seed in (5, 5, 6))
    assert first.draws.tobytes() == second.draws.tobytes()
    assert (first.low, first.high) == (second.low, second.high)
    assert first.draws.tobytes() != other.draws.tobytes()


def test_models_share_the_noise_of_the_profile_and_not_each_others() -> None:
    draw = np.random.default_rng(5)
    profile = texts(draw, 40, 0.3).profile
    large = [texts(draw, 20_000, 0.1, words=40).tallies for _ in range(2)]
    first, second = (estimate(each, profile).draws for each in large)
    assert np.corrcoef(first, second)[0, 1] > 0.9, "with many responses, what is left is the profile's error"
    small = [texts(draw, 30, 0.1).tallies for _ in range(2)]
    exact = texts(draw, 20_000, 0.3, words=40).profile
    first, second = (estimate(each, exact).draws for each in small)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.1


def test_draws_lie_where_the_interval_does() -> None:
    draw = np.random.default_rng(6)
    found = estimate(texts(draw, 80, 0.2).tallies, texts(draw, 80, 0.3).profile, draws=1500)
    assert found.draws.shape == (1500,)
    assert ((found.draws >= 0) & (found.draws <= 1)).all()
    assert found.low is not None
    assert found.high is not None
    inside = ((found.draws >= found.low) & (found.draws <= found.high)).mean()
    assert inside == pytest.approx(0.95, abs=0.005)


@pytest.mark.parametrize("estimator", ["label-shift", "paper", "em"])
def test_an_estimator_that_needs_a_profile_says_so(estimator: str) -> None:
    with pytest.raises(UsageError, match="needs an error profile"):
        estimate(tallies(0.1), estimator=estimator)


def test_what_an_estimator_lacks_it_names() -> None:
    with pytest.raises(UsageError, match="confidence of every word"):
        estimate(tallies(0.1), PROFILE, estimator=Estimator.EM)
    with pytest.raises(UsageError, match="labels of people"):
        estimate(tallies(0.1), PROFILE, estimator=Estimator.PPI)
    with pytest.raises(ValueError, match="best"):
        estimate(tallies(0.1), PROFILE, estimator="best")


def test_nothing_marked_is_not_surely_nothing() -> None:
    found = estimate(tallies(0.0, count=40), estimator="raw")
    assert (found.value, found.low) == (0.0, pytest.approx(0.0, abs=1e-3))
    assert found.high is not None
    assert 0.0 < found.high < 0.05
    many = estimate(tallies(0.0, count=4000), estimator="raw")
    assert many.high is not None
    assert many.high < found.high / 10


def test_counts_of_one_unit_do_not_break_anything() -> None:
    one = Texts(*(np.array([value]) for value in (1, 0, 0, 0)))
    found = estimate(one.tallies, one.profile)
    assert found.status is Reliability.UNRELIABLE
    assert found.value is None, "a profile without a supported unit has no FPR"


def test_every_name_of_an_estimator_has_a_method() -> None:
    assert set(ESTIMATORS) == set(Estimator)
