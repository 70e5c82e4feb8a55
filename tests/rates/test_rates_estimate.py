"""What holds of every estimate: where it lies, what moves it, and what must not."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np
import pytest
from clustered_texts import profile_with_histograms, texts, with_confidences
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from veriglot.rates.estimators import RateEstimate, estimate
from veriglot.rates.proportion import Labels, Tallies
from veriglot.records import Confusion, Estimator, LanguageProfile

PROFILE = profile_with_histograms(*with_confidences(np.random.default_rng(0), 120, 0.3))
BY_PROFILE = ("paper", "label-shift", "em")


def study(seed: int, count: int = 60, rate: float = 0.1) -> tuple[Tallies, Labels]:
    """Three responses to a query, the first of each labelled."""
    found, table = with_confidences(np.random.default_rng(seed), count, rate)
    tallies = Tallies(found.tp + found.fp, found.tallies.units, np.arange(count) // 3, table.sum(axis=2))
    return tallies, found.labels(np.arange(0, count // 2, 3))


def ends(found: RateEstimate) -> tuple[float, float, float]:
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    return found.low, found.value, found.high


@given(
    st.lists(st.tuples(*[st.integers(0, 40)] * 4), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 5)), min_size=1, max_size=12),
    st.sampled_from(["raw", "paper", "label-shift"]),
    st.floats(0.5, 0.99),
)
@example([(0, 0, 0, 1), (0, 0, 1, 0)], [(0, 1, 0)], "paper", 0.5)  # nothing was marked where the profile was made
def test_a_rate_lies_inside_its_interval_and_is_a_share(
    profile: list[tuple[int, int, int, int]], rows: list[tuple[int, int, int]], estimator: str, confidence: float
) -> None:
    marked, left, cluster = (np.array(column) for column in zip(*rows, strict=True))
    found = estimate(
        Tallies(marked, marked + left, cluster), LanguageProfile.of(Confusion(*row) for row in profile),
        estimator=estimator, draws=60, confidence=confidence,
    )  # fmt: skip
    if found.value is None:
        assert found.reasons
        assert (found.low, found.high) == (None, None)
    else:
        low, rate, high = ends(found)
        assert 0 <= low <= rate <= high <= 1
    assert found.draws.shape == (60,)


@given(st.integers(0, 2**31), st.sampled_from(BY_PROFILE))
@settings(max_examples=15)
def test_an_interval_holds_the_rate_of_em_too(seed: int, estimator: str) -> None:
    low, rate, high = ends(estimate(study(seed)[0], PROFILE, estimator=estimator, draws=200, seed=seed))
    assert 0 <= low <= rate <= high <= 1


@given(st.integers(1, 6), st.lists(st.integers(0, 100), min_size=10, max_size=40))
def test_more_marks_are_a_higher_rate(more: int, marks: list[int]) -> None:
    units = np.full(len(marks), 110)
    for estimator in ("raw", "paper", "label-shift"):
        low, high = (
            estimate(Tallies(each, units, np.arange(len(marks))), PROFILE, estimator=estimator, draws=50).value
            for each in (np.array(marks), np.array(marks) + more)
        )
        assert low is not None
        assert high is not None
        assert low <= high
        if estimator == "raw":
            assert low < high


@given(st.integers(2, 50))
def test_longer_texts_of_the_same_shares_have_the_same_rate(times: int) -> None:
    """Units within a cluster are no new clusters: neither the rate nor its error falls."""
    plain = texts(np.random.default_rng(1), 60, 0.1).tallies
    longer = Tallies(plain.marked * times, plain.units * times, plain.cluster)
    for estimator in ("raw", "paper", "label-shift"):
        first, second = (ends(estimate(each, PROFILE, estimator=estimator)) for each in (plain, longer))
        assert second[1] == pytest.approx(first[1])
        assert second[2] - second[0] == pytest.approx(first[2] - first[0], rel=0.1)


@given(st.integers(0, 2**31))
@settings(max_examples=25)
def test_the_order_of_responses_changes_nothing(seed: int) -> None:
    tallies, labels = study(5)
    order = np.random.default_rng(seed).permutation(len(tallies))
    moved = Labels(labels.unsupported, np.argsort(order)[labels.response])
    for estimator in Estimator:
        first, second = (
            estimate(each, PROFILE, estimator=estimator, labels=told, draws=200)
            for each, told in ((tallies, labels), (tallies.select(order), moved))
        )
        assert ends(second) == pytest.approx(ends(first), rel=1e-9)
        assert second.reasons == first.reasons


def test_numbers_of_clusters_are_names() -> None:
    tallies, labels = study(6)
    other = Tallies(tallies.marked, tallies.units, 10**17 - 13 * tallies.cluster, tallies.confidences)
    for estimator in Estimator:
        first, second = (
            estimate(each, PROFILE, estimator=estimator, labels=labels, draws=200) for each in (tallies, other)
        )
        assert ends(second) == pytest.approx(ends(first), abs=0.02)
        assert second.value == pytest.approx(first.value)


@pytest.mark.parametrize("estimator", BY_PROFILE)
def test_two_models_move_together_with_their_profile(estimator: str) -> None:
    """A sure study and an unsure profile: all noise is the profile's, and both models have it."""
    draw = np.random.default_rng(7)
    unsure, other = (profile_with_histograms(*with_confidences(draw, 12, 0.3)) for _ in range(2))
    first, second = (study(seed, 1800)[0] for seed in (8, 9))
    one, two = (estimate(each, unsure, estimator=estimator, draws=1500).draws for each in (first, second))
    apart = estimate(second, other, estimator=estimator, draws=1500).draws
    assert np.corrcoef(one, two)[0, 1] > 0.4, "what is left is a drift, which each model may have for itself"
    assert abs(np.corrcoef(one, apart)[0, 1]) < 0.15


@pytest.mark.parametrize("estimator", list(Estimator))
def test_two_models_share_no_noise_of_their_own(estimator: Estimator) -> None:
    sure = msgspec.structs.replace(PROFILE)
    (first, labels), (second, others) = study(10), study(11)
    drawn = [
        estimate(each, sure, estimator=estimator, labels=told, draws=2000).draws
        for each, told in ((first, labels), (second, others))
    ]
    shared = 0.6 if estimator in BY_PROFILE else 0.08
    assert abs(np.corrcoef(*drawn)[0, 1]) < shared


def test_intervals_nest() -> None:
    tallies, labels = study(12)
    for estimator in Estimator:
        found = [
            ends(estimate(tallies, PROFILE, estimator=estimator, labels=labels, confidence=each, draws=500))
            for each in (0.5, 0.8, 0.95, 0.99)
        ]
        for inner, outer in pairwise(found):
            assert outer[0] <= inner[0] <= inner[2] <= outer[2]


@given(st.floats(0.0, 1.0), st.floats(0.05, 1.0), st.floats(0.0, 0.95))
def test_label_shift_is_the_line_through_both_error_rates(share: float, tpr: float, fpr: float) -> None:
    """Nothing marked but false alarms is 0, all hits is 1, and between them it is straight (Rogan and Gladen 1978)."""
    assume(tpr > fpr + 0.02)
    size = 10**6
    profile = LanguageProfile.of(
        [Confusion(round(tpr * size), round(fpr * size), size - round(tpr * size), size - round(fpr * size))] * 10
    )
    marked = np.full(10, round(share * size))
    found = estimate(Tallies(marked, np.full(10, size), np.arange(10)), profile, draws=10)
    exact = (marked[0] / size - profile.fp / (profile.fp + profile.tn)) / (
        profile.tp / (profile.tp + profile.fn) - profile.fp / (profile.fp + profile.tn)
    )
    assert found.value == pytest.approx(min(1.0, max(0.0, exact)), abs=1e-9)


def test_the_bias_of_the_paper_is_what_its_equation_says() -> None:
    """At another prevalence than the profile's, equation 1 is off by a factor that follows from TPR, FPR and both."""
    draw = np.random.default_rng(13)
    profile = texts(draw, 4000, 0.3, tpr=0.75, fpr=0.06).profile
    assert profile.tpr is not None
    assert profile.fpr is not None
    assert profile.precision is not None
    found = estimate(texts(draw, 4000, 0.03, tpr=0.75, fpr=0.06).tallies, profile, estimator="paper", draws=10)
    marked = 0.03 * profile.tpr + 0.97 * profile.fpr
    assert found.value == pytest.approx(marked * profile.precision / profile.tpr, rel=0.06)
    assert found.value is not None
    assert found.value > 2.5 * 0.03


def test_the_correction_is_right_where_that_of_the_paper_is_off_by_factors() -> None:
    """A small part of benchmarks/rates.py, which takes minutes."""
    draw = np.random.default_rng(14)
    values: dict[str, list[float]] = {"label-shift": [], "paper": []}
    held = 0
    for number in range(250):
        profile = texts(draw, 150, 0.3).profile
        given_ = texts(draw, 600, 0.05).tallies
        for name, kept in values.items():
            low, rate, high = ends(estimate(given_, profile, estimator=name, draws=500, seed=number))
            kept.append(rate)
            held += name == "label-shift" and low <= 0.05 <= high
    assert np.mean(values["label-shift"]) == pytest.approx(0.05, rel=0.04)
    assert np.mean(values["paper"]) > 1.6 * 0.05
    assert 0.92 <= held / 250 <= 0.985
