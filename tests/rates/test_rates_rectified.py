"""Prediction-powered rates against the formula of PPI++ and against a bootstrap by hand."""

from __future__ import annotations

import numpy as np
import pytest
from clustered_texts import texts
from hypothesis import assume, given
from hypothesis import strategies as st

from veriglot.rates.estimators import Rectified, estimate, rectified
from veriglot.rates.proportion import Labels, Share, Tallies


def made(tallies: Tallies, labels: Labels, draws: int = 2000) -> Rectified:
    found = rectified(tallies, labels, draws=draws, generator=np.random.default_rng(0))
    assert found is not None
    return found


def ppi_plus_plus(truth: np.ndarray, told: np.ndarray) -> tuple[float, float, float] | None:
    """Factor, value and error of PPI++ for the mean, the first 200 labelled (equations 5 and 7 of the paper)."""
    y, f, others = truth[:200].astype(float), told[:200].astype(float), told[200:].astype(float)
    if min(y.std(), f.std(), others.std()) == 0:
        return None
    covariance = np.cov(y, f)
    tuned = np.clip(covariance[0, 1] / 200 / (covariance[1, 1] / 200 + others.var(ddof=1) / len(others)), 0, 1)
    value = (y - tuned * f).mean() + tuned * others.mean()
    variance = (y - tuned * f).var(ddof=1) / 200 + tuned**2 * others.var(ddof=1) / len(others)
    return float(tuned), float(value), float(variance**0.5)


def single_units(draw: np.random.Generator, rate: float, agreement: float) -> tuple[np.ndarray, np.ndarray]:
    """What is true and what the detector says of 1500 responses of one unit each."""
    truth = draw.random(1500) < rate
    return truth, np.where(draw.random(1500) < agreement, truth, draw.random(1500) < 0.4)


def of_single_units(truth: np.ndarray, told: np.ndarray) -> Rectified:
    tallies = Tallies(told.astype(np.int64), np.ones(1500, dtype=np.int64), np.arange(1500))
    return made(tallies, Labels(truth[:200].astype(np.int64), np.arange(200)), 10)


@given(st.integers(0, 2**31), st.floats(0.05, 0.95), st.floats(0.0, 1.0))
def test_without_clusters_it_is_ppi_plus_plus(seed: int, rate: float, agreement: float) -> None:
    truth, told = single_units(np.random.default_rng(seed), rate, agreement)
    expected = ppi_plus_plus(truth, told)
    assume(expected is not None)
    assert expected is not None
    found = of_single_units(truth, told)
    assert (found.factor, found.value) == pytest.approx(expected[:2])


def test_the_error_is_that_of_ppi_plus_plus_but_for_that_of_its_factor() -> None:
    draw = np.random.default_rng(0)
    ratios = []
    for _ in range(60):
        truth, told = single_units(draw, 0.3, 0.7)
        expected = ppi_plus_plus(truth, told)
        assert expected is not None
        ratios.append(of_single_units(truth, told).error / expected[2])
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_the_error_is_that_of_a_bootstrap_of_queries(rate: float) -> None:
    draw = np.random.default_rng([1, int(100 * rate)])
    truth = texts(draw, 600, rate, tpr=0.6, fpr=0.1)
    gold, marked, units = (
        np.asarray(each, dtype=float).reshape(300, 2).sum(axis=1)
        for each in (truth.tp + truth.fn, truth.tallies.marked, truth.tallies.units)
    )
    tallies = Tallies(truth.tallies.marked, truth.tallies.units, np.repeat(np.arange(300), 2))
    found = made(tallies, truth.labels(np.arange(160)))
    again = []
    for _ in range(1500):
        told, rest = draw.integers(0, 80, 80), draw.integers(80, 300, 220)
        shares = [each[told].sum() / units[told].sum() for each in (gold, marked)]
        off = [(each[told] - share * units[told]) / units[told].sum()
               for each, share in zip((gold, marked), shares, strict=True)]  # fmt: skip
        others = marked[rest].sum() / units[rest].sum()
        spread = (((marked[rest] - others * units[rest]) / units[rest].sum()) ** 2).sum()
        tuned = np.clip((off[0] * off[1]).sum() / ((off[1] ** 2).sum() + spread), 0, 1)
        again.append(shares[0] + tuned * (others - shares[1]))
    assert found.value == pytest.approx(np.mean(again), abs=0.2 * found.error)
    assert found.error == pytest.approx(np.std(again), rel=0.12)


def test_right_whatever_the_detector_does() -> None:
    """Even one that marks what is supported and leaves what is not."""
    draw = np.random.default_rng(2)
    values = []
    for _ in range(150):
        found = texts(draw, 300, 0.2, tpr=0.05, fpr=0.4)
        values.append(made(found.tallies, found.labels(draw.choice(300, 60, replace=False)), 2).value)
    assert np.mean(values) == pytest.approx(0.2, abs=3.5 * np.std(values) / 150**0.5)


def test_a_profile_does_not_count() -> None:
    draw = np.random.default_rng(3)
    found = texts(draw, 200, 0.1)
    labels = found.labels(np.arange(60))
    plain, with_one = (
        estimate(found.tallies, profile, estimator="ppi", labels=labels) for profile in (None, found.profile)
    )
    assert (plain.value, plain.low, plain.high) == (with_one.value, with_one.low, with_one.high)


def test_all_labelled_is_the_share_of_the_labels() -> None:
    draw = np.random.default_rng(4)
    found = texts(draw, 80, 0.2)
    every = np.arange(80)
    alone = Share.of(Tallies(found.tp + found.fn, found.tallies.units, every))
    assert alone is not None
    result = made(found.tallies, found.labels(every))
    assert result.value == alone.value
    assert result.factor == 0.0


def test_unlabelled_responses_to_labelled_queries_are_left_aside() -> None:
    draw = np.random.default_rng(5)
    truth = texts(draw, 400, 0.2)
    cluster = np.repeat(np.arange(200), 2)
    labels = truth.labels(np.arange(0, 100, 2))  # the first response to each of 50 queries
    plain = Tallies(truth.tallies.marked, truth.tallies.units, cluster)
    beside = plain.marked.copy()
    beside[1:100:2] = 0
    other = Tallies(beside, plain.units, cluster)
    assert made(plain, labels, 2).value == made(other, labels, 2).value


def test_draws_are_of_the_value_and_its_error() -> None:
    found = made(*(lambda told: (told.tallies, told.labels(np.arange(100))))(texts(np.random.default_rng(6), 500, 0.3)))
    assert found.draws.mean() == pytest.approx(found.value, abs=0.1 * found.error)
    assert found.draws.std() == pytest.approx(found.error, rel=0.1)
    assert ((found.draws >= 0) & (found.draws <= 1)).all()
