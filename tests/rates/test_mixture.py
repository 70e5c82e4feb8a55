"""The estimator from confidences: the likeliest mixture, its intervals, and confidences that no mixture explains."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from clustered_texts import profile_with_histograms, texts, with_confidences
from hypothesis import given
from hypothesis import strategies as st

from veriglot.rates.estimators import estimate, weight
from veriglot.rates.proportion import Tallies
from veriglot.records import CONFIDENCE_BINS, LanguageProfile

WEIGHTS = st.lists(st.integers(1, 50), min_size=CONFIDENCE_BINS, max_size=CONFIDENCE_BINS)


def study(found: object, table: np.ndarray) -> Tallies:
    plain = found.tallies  # type: ignore[attr-defined]
    return Tallies(plain.marked, plain.units, plain.cluster, table.sum(axis=2))


@given(WEIGHTS, WEIGHTS, st.floats(0.0, 1.0))
def test_the_weight_of_an_exact_mixture_is_found(first: list[int], second: list[int], truth: float) -> None:
    unsupported, supported = (np.array(each) / sum(each) for each in (first, second))
    if np.abs(unsupported - supported).sum() < 0.05:
        return  # the two say the same, so every weight explains the mixture
    mixed = truth * unsupported + (1 - truth) * supported
    assert float(weight(1000 * mixed, unsupported, supported)) == pytest.approx(truth, abs=1e-5)


def test_the_weight_is_what_the_iteration_of_saerens_ends_at() -> None:
    draw = np.random.default_rng(1)
    unsupported, supported = draw.dirichlet(np.ones(CONFIDENCE_BINS), 2)
    counts = draw.multinomial(500, 0.2 * unsupported + 0.8 * supported)
    rate = 0.5
    for _ in range(5000):
        share = rate * unsupported / (rate * unsupported + (1 - rate) * supported)
        rate = float(counts @ share / counts.sum())
    assert float(weight(counts, unsupported, supported)) == pytest.approx(rate, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.03, 0.3])
def test_intervals_hold_and_are_not_longer_than_those_of_label_shift(rate: float) -> None:
    draw = np.random.default_rng([2, int(100 * rate)])
    held, of_em, of_shift, sums = 0, 0.0, 0.0, 0.0
    for number in range(120):
        profile = profile_with_histograms(*with_confidences(draw, 60, 0.3))
        given_ = study(*with_confidences(draw, 80, rate))
        em = estimate(given_, profile, estimator="em", draws=500, seed=number)
        shift = estimate(given_, profile, draws=500, seed=number)
        assert em.value is not None
        assert em.low is not None
        assert em.high is not None
        assert shift.low is not None
        assert shift.high is not None
        assert em.notes[0] == "em:histograms"
        held += em.low <= rate <= em.high
        sums += em.value
        of_em, of_shift = of_em + em.high - em.low, of_shift + shift.high - shift.low
    assert held >= 105, "95% of 120 are 114; chance leaves fewer than 106 once in a thousand"
    assert of_em < 1.15 * of_shift, "small profiles widen them, as they should"
    assert sums / 120 == pytest.approx(rate, rel=0.12)


def test_intervals_are_shorter_where_rates_are_low_and_the_profile_is_not_small() -> None:
    draw = np.random.default_rng(9)
    of_em = of_shift = 0.0
    for number in range(15):
        profile = profile_with_histograms(*with_confidences(draw, 200, 0.3))
        given_ = study(*with_confidences(draw, 150, 0.02))
        em, shift = (
            estimate(given_, profile, estimator=name, draws=500, seed=number) for name in ("em", "label-shift")
        )
        assert em.low is not None
        assert em.high is not None
        assert shift.low is not None
        assert shift.high is not None
        of_em, of_shift = of_em + em.high - em.low, of_shift + shift.high - shift.low
    assert of_em < 0.9 * of_shift


def test_sums_alone_give_intervals_too() -> None:
    """Profiles of before hold sums of confidences and nothing of each response."""
    draw = np.random.default_rng(3)
    profile = profile_with_histograms(*with_confidences(draw, 100, 0.3))
    old = msgspec.structs.replace(profile, histograms=())
    given_ = study(*with_confidences(draw, 150, 0.1))
    new, before = (estimate(given_, each, estimator="em") for each in (profile, old))
    assert new.value == before.value
    assert new.value == pytest.approx(0.1, abs=0.05)
    assert before.low is not None
    assert before.high is not None
    assert before.low < 0.1 < before.high


def test_without_histograms_the_confidences_are_taken_at_their_word() -> None:
    """Calibrated confidences at the profile's prevalence lead to another prevalence."""
    draw = np.random.default_rng(4)
    prevalence, rate, size = 0.3, 0.1, 400_000
    confidence = draw.beta(0.4, 0.4 * (1 - prevalence) / prevalence, size)  # mean: the prevalence
    unsupported = draw.random(size) < confidence
    told = np.where(unsupported, rate / prevalence, (1 - rate) / (1 - prevalence))
    kept = draw.random(size) < told / told.max()
    bins = np.minimum((confidence[kept] * CONFIDENCE_BINS).astype(int), CONFIDENCE_BINS - 1)
    by_response = np.stack([np.bincount(part, minlength=CONFIDENCE_BINS) for part in np.array_split(bins, 100)])
    marked = by_response[:, CONFIDENCE_BINS // 2 :].sum(axis=1)
    given_ = Tallies(marked, by_response.sum(axis=1), np.arange(100), by_response)
    profile = texts(draw, 100, prevalence).profile
    found = estimate(given_, profile, estimator="em")
    assert found.notes == ("em:posteriors",)
    assert unsupported[kept].mean() == pytest.approx(rate, abs=0.005)
    assert found.value == pytest.approx(rate, abs=0.02)


def test_what_a_bolder_detector_may_do_widens_the_interval() -> None:
    """Of detectors that mark more than in their profile, plain intervals would hold the rate in a quarter."""
    draw = np.random.default_rng(5)
    holds = plain = 0
    for number in range(40):
        profile = profile_with_histograms(*with_confidences(draw, 150, 0.3))
        bold = study(*with_confidences(draw, 300, 0.1, off=0.5))
        wide, narrow = (
            estimate(each, profile, seed=number, draws=500) for each in (bold, replace(bold, confidences=None))
        )
        assert wide.value == narrow.value
        holds += (wide.low or 0.0) <= 0.1 <= (wide.high or 0.0)
        plain += (narrow.low or 0.0) <= 0.1 <= (narrow.high or 0.0)
    assert holds >= 28
    assert plain <= holds / 2


def test_a_detector_that_is_another_one_is_found_out() -> None:
    draw = np.random.default_rng(5)
    profile = profile_with_histograms(*with_confidences(draw, 150, 0.3))
    found = estimate(study(*with_confidences(draw, 300, 0.1, off=2.0)), profile)
    assert found.value is not None, "the number is kept, with the reason beside it"
    assert any("distributed unlike the profile's" in reason for reason in found.reasons)


def test_chance_alone_is_rarely_taken_for_another_distribution() -> None:
    draw = np.random.default_rng(6)
    alarms = 0
    for number in range(60):
        profile = profile_with_histograms(*with_confidences(draw, 60, 0.3))
        found = estimate(study(*with_confidences(draw, 60, 0.05)), profile, draws=100, seed=number)
        alarms += any("distributed unlike" in reason for reason in found.reasons)
    assert alarms <= 3


def test_a_profile_without_one_kind_of_unit_has_no_mixture() -> None:
    draw = np.random.default_rng(7)
    found, table = with_confidences(draw, 40, 0.1)
    clean = profile_with_histograms(*with_confidences(draw, 40, 1e-9))
    assert isinstance(clean, LanguageProfile)
    made = estimate(study(found, table), clean, estimator="em")
    assert made.value is None
    assert any("unsupported" in reason for reason in made.reasons)
