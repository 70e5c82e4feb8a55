"""The estimator from confidences against brute force: every weight tried, every cluster drawn anew."""

from __future__ import annotations

import numpy as np
import pytest
from clustered_texts import profile_with_histograms, with_confidences
from hypothesis import given
from hypothesis import strategies as st

from veriglot.errors import UsageError
from veriglot.rates.estimators import Drift, Study, components, estimate, weight
from veriglot.rates.proportion import Tallies, detector_rates
from veriglot.records import CONFIDENCE_BINS, Confusion, LanguageProfile

COUNTS = st.lists(st.integers(0, 40), min_size=CONFIDENCE_BINS, max_size=CONFIDENCE_BINS)
PROFILE = profile_with_histograms(*with_confidences(np.random.default_rng(0), 200, 0.3))


def tallies(draw: np.random.Generator, count: int, rate: float, *, per_query: int = 1, off: float = 0.0) -> Tallies:
    found, table = with_confidences(draw, count, rate, off=off)
    plain = found.tallies
    return Tallies(plain.marked, plain.units, np.arange(count) // per_query, table.sum(axis=2))


def distribution(counts: list[int]) -> np.ndarray:
    smooth = np.array(counts) + 0.5
    return smooth / smooth.sum()


@given(COUNTS.filter(any), COUNTS, COUNTS)
def test_no_weight_is_likelier(study: list[int], first: list[int], second: list[int]) -> None:
    unsupported, supported, counts = distribution(first), distribution(second), np.array(study)
    grid = np.linspace(0.0, 1.0, 2001)
    likelihood = np.log(np.outer(grid, unsupported) + np.outer(1 - grid, supported)) @ counts
    found = float(weight(counts, unsupported, supported))
    of_found = np.log(found * unsupported + (1 - found) * supported) @ counts
    assert of_found >= likelihood.max() - 1e-9 * abs(likelihood.max())


@given(COUNTS.filter(any), st.integers(2, 1000))
def test_only_shares_of_bins_count(study: list[int], times: int) -> None:
    unsupported, supported = np.random.default_rng(1).dirichlet(np.ones(CONFIDENCE_BINS), 2)
    counts = np.array(study)
    assert float(weight(times * counts, unsupported, supported)) == pytest.approx(
        float(weight(counts, unsupported, supported)), abs=1e-9
    )


def test_many_weights_at_once_are_each_alone() -> None:
    draw = np.random.default_rng(2)
    counts = draw.integers(0, 50, (7, CONFIDENCE_BINS))
    unsupported, supported = draw.dirichlet(np.ones(CONFIDENCE_BINS), 7), draw.dirichlet(np.ones(CONFIDENCE_BINS), 7)
    assert weight(counts, unsupported, supported) == pytest.approx(
        [float(weight(*row)) for row in zip(counts, unsupported, supported, strict=True)]
    )


@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_draws_are_as_wide_as_a_bootstrap_of_queries_and_texts(rate: float) -> None:
    """Everything drawn anew, by hand: queries of the study, and texts of the profile with their histograms."""
    draw = np.random.default_rng([3, int(100 * rate)])
    given_ = tallies(draw, 300, rate, per_query=3)
    found = estimate(given_, PROFILE, estimator="em", draws=3000)
    of_texts = np.zeros((len(PROFILE.histograms), CONFIDENCE_BINS, 2))
    for text, cells in enumerate(PROFILE.histograms):
        for place, *pair in cells:
            of_texts[text, place] = pair
    assert given_.confidences is not None
    by_query = np.stack([given_.confidences[given_.cluster == each].sum(axis=0) for each in range(100)])
    again = []
    for _ in range(1500):
        both = of_texts[draw.integers(0, len(of_texts), len(of_texts))].sum(axis=0) + 0.5
        kinds = both / both.sum(axis=0)
        again.append(float(weight(by_query[draw.integers(0, 100, 100)].sum(axis=0), kinds[:, 0], kinds[:, 1])))
    drifted = 2.0**0.5 * found.drift  # Student's t of 4 degrees of freedom has twice the variance
    assert found.draws.std() == pytest.approx(np.hypot(np.std(again), drifted), rel=0.15)
    assert np.quantile(found.draws, [0.025, 0.975]) == pytest.approx(np.quantile(again, [0.025, 0.975]), rel=0.12)


def test_confidences_at_the_ends_have_their_bins() -> None:
    """A detector that is sure of every word: the mixture is then the line of label-shift."""
    sure = np.zeros((40, CONFIDENCE_BINS), dtype=np.int64)
    sure[:, 0], sure[:, -1] = 90, 10
    texts = [Confusion(12, 4, 8, 76)] * 40
    histograms = [[(0, 8, 76), (CONFIDENCE_BINS - 1, 12, 4)]] * 40
    profile = LanguageProfile.of(texts, histograms=histograms)
    given_ = Tallies(np.full(40, 10), np.full(40, 100), np.arange(40), sure)
    em, shift = (estimate(given_, profile, estimator=each).value for each in ("em", "label-shift"))
    assert shift == pytest.approx((0.10 - 0.05) / (0.60 - 0.05))
    assert em == pytest.approx(shift, rel=0.03), "but for half a unit a bin"


def test_chance_is_measured_as_queries_vary() -> None:
    """One odd query of many responses is no other distribution; the same units in all queries would be."""
    draw = np.random.default_rng(4)
    given_ = tallies(draw, 200, 0.1)
    assert given_.confidences is not None
    extra = np.zeros(CONFIDENCE_BINS, dtype=np.int64)
    extra[9] = given_.units.sum() // 5
    rates = detector_rates(PROFILE, seed=0, draws=100)
    assert rates.tpr is not None
    assert rates.fpr is not None
    found = []
    for spread in (1, 200):
        table = given_.confidences.copy()
        table[:spread] += extra // spread
        study = Study.of(Tallies(given_.marked, table.sum(axis=1), given_.cluster, table))
        assert study is not None
        parts = components(PROFILE, study.counts, (rates.tpr, rates.fpr))
        assert parts is not None
        found.append(Drift.of(study, parts, int(given_.marked.sum())).size)
    odd, common = found
    assert odd < 0.05
    assert common > 2 * odd


def test_profiles_of_sums_alone_share_draws_too() -> None:
    old = LanguageProfile.of(PROFILE.responses[:20], confidences=PROFILE.confidences)
    draw = np.random.default_rng(5)
    first, second = (tallies(draw, 2000, rate) for rate in (0.1, 0.2))
    drawn = [estimate(each, old, estimator="em", draws=1000).draws for each in (first, second)]
    assert np.corrcoef(*drawn)[0, 1] > 0.5


def test_confidences_are_needed() -> None:
    plain = Tallies(np.full(20, 3), np.full(20, 30), np.arange(20))
    with pytest.raises(UsageError, match="needs the confidence of every word"):
        estimate(plain, PROFILE, estimator="em")
    assert CONFIDENCE_BINS == CONFIDENCE_BINS
