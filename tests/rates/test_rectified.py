"""Rates from the detector everywhere and people's labels on a few responses."""

from __future__ import annotations

import numpy as np
import pytest
from clustered_texts import texts

from veriglot.rates.estimators import estimate, rectified
from veriglot.rates.proportion import Labels, Tallies


def test_labels_alone_where_the_detector_says_nothing() -> None:
    draw = np.random.default_rng(1)
    found = texts(draw, 200, 0.2, tpr=0.5, fpr=0.5)
    chosen = np.arange(0, 200, 4)
    labels = found.labels(chosen)
    made = rectified(found.tallies, labels, draws=100, generator=draw)
    assert made is not None
    assert made.factor < 0.6, "a coin is not relied on"
    units = found.tallies.units[chosen]
    assert made.value == pytest.approx(labels.unsupported.sum() / units.sum(), abs=0.05)


def test_a_perfect_detector_is_relied_on_fully() -> None:
    draw = np.random.default_rng(2)
    found = texts(draw, 400, 0.2, tpr=1 - 1e-9, fpr=1e-9, hard=1e-6)
    made = rectified(found.tallies, found.labels(np.arange(40)), draws=100, generator=draw)
    assert made is not None
    assert made.factor > 0.8
    rest = found.tallies.select(np.arange(40, 400))
    share = rest.marked.sum() / rest.units.sum()
    gold = found.tallies.select(np.arange(40))
    both = made.factor * share + (1 - made.factor) * gold.marked.sum() / gold.units.sum()
    assert made.value == pytest.approx(both)


@pytest.mark.parametrize(("rate", "labels"), [(0.03, 60), (0.1, 30), (0.3, 30)])
def test_intervals_hold_with_few_labels_and_a_detector_that_no_profile_fits(rate: float, labels: int) -> None:
    draw = np.random.default_rng([3, int(100 * rate)])
    held, judged, sums = 0, 0, 0.0
    for number in range(400):
        found = texts(draw, 300, rate, tpr=0.5, fpr=0.15)
        made = estimate(
            found.tallies, estimator="ppi", labels=found.labels(draw.choice(300, labels, replace=False)),
            draws=800, seed=number,
        )  # fmt: skip
        assert made.value is not None
        sums += made.value
        if not made.reasons:
            judged += 1
            assert made.low is not None
            assert made.high is not None
            held += made.low <= rate <= made.high
    assert judged > 350
    assert 0.91 <= held / judged <= 0.985
    assert sums / 400 == pytest.approx(rate, rel=0.06)


def test_the_detector_shortens_the_interval() -> None:
    draw = np.random.default_rng(4)
    found = texts(draw, 2000, 0.2, tpr=0.9, fpr=0.02, hard=0.01)
    chosen = draw.choice(2000, 60, replace=False)
    both = rectified(found.tallies, found.labels(chosen), draws=100, generator=draw)
    alone = rectified(found.tallies.select(chosen), Labels((found.tp + found.fn)[chosen], np.arange(60)),
                      draws=100, generator=draw)  # fmt: skip
    assert both is not None
    assert alone is not None
    assert alone.factor == 0.0
    assert both.error < 0.6 * alone.error


def test_too_few_labelled_texts_of_a_kind_are_a_finding() -> None:
    draw = np.random.default_rng(5)
    found = texts(draw, 300, 0.001)
    made = estimate(found.tallies, estimator="ppi", labels=found.labels(np.arange(100)))
    assert made.value is not None
    assert any("with an unsupported unit" in reason for reason in made.reasons)
    few = estimate(found.tallies, estimator="ppi", labels=found.labels(np.arange(5)))
    assert any(reason.endswith(" queries with labels, and the study has 5") for reason in few.reasons)


def test_responses_to_one_query_are_one_label() -> None:
    draw = np.random.default_rng(6)
    once = texts(draw, 100, 0.2)
    plain = once.tallies
    again = Tallies.join([plain, plain])
    chosen = np.concatenate([np.arange(30), 100 + np.arange(30)])
    labels = Labels(np.tile((once.tp + once.fn)[:30], 2), chosen)
    first = rectified(plain, once.labels(np.arange(30)), draws=10, generator=np.random.default_rng(0))
    twice = rectified(again, labels, draws=10, generator=np.random.default_rng(0))
    assert first is not None
    assert twice is not None
    assert twice.clusters == 30
    assert twice.value == pytest.approx(first.value)
    assert twice.error == pytest.approx(first.error, rel=1e-6)


def test_no_labelled_unit_gives_no_number() -> None:
    empty = Tallies(np.array([0, 3]), np.array([0, 9]), np.array([0, 1]))
    made = estimate(empty, estimator="ppi", labels=Labels(np.array([0]), np.array([0])))
    assert made.value is None
    assert "no labelled response has a unit" in made.reasons
