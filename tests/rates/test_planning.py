"""Plans are held against what the estimators really give at the planned size."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from veriglot.errors import UsageError
from veriglot.rates.estimators import estimate
from veriglot.rates.plan import Plan, plan_sample_size
from veriglot.rates.proportion import Labels, Tallies
from veriglot.records import Confusion, LanguageProfile

TPR, FPR = 0.7, 0.04

plan_responses = plan_sample_size
plan_labels = partial(plan_sample_size, of="labels")


def told(plan: Plan | None) -> Plan:
    assert plan is not None
    return plan


def texts(generator: np.random.Generator, responses: int, rate: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Units of each response, and the unsupported and the marked ones among them as (tp, fp, ...) needs them."""
    units = generator.integers(20, 200, responses)
    false = generator.binomial(units, generator.beta(6 * rate, 6 * (1 - rate), responses))
    tp = generator.binomial(false, generator.beta(6 * TPR, 6 * (1 - TPR), responses))
    fp = generator.binomial(units - false, generator.beta(20 * FPR, 20 * (1 - FPR), responses))
    return units, false, np.stack([tp, fp])


def labelled(generator: np.random.Generator, responses: int) -> LanguageProfile:
    units, false, (tp, fp) = texts(generator, responses, 0.3)
    rows = zip(tp, fp, false - tp, units - false - fp, strict=True)
    return LanguageProfile.of([Confusion(*map(int, row)) for row in rows])


def study(generator: np.random.Generator, responses: int, rate: float) -> tuple[Tallies, np.ndarray]:
    units, false, marks = texts(generator, responses, rate)
    return Tallies(marks.sum(axis=0), units, np.arange(responses)), false


def half(found: tuple[float | None, float | None]) -> float:
    low, high = found
    assert low is not None
    assert high is not None
    return (high - low) / 2


@pytest.mark.parametrize("estimator", ["raw", "paper", "label-shift"])
def test_now_is_what_the_estimator_gives(estimator: str) -> None:
    generator = np.random.default_rng(1)
    pilot, profile = study(generator, 200, 0.15)[0], labelled(generator, 100)
    found = estimate(pilot, profile, estimator=estimator)
    plan = told(plan_responses(pilot, profile, 0.01, estimator=estimator))
    assert plan.now == pytest.approx(half((found.low, found.high)), rel=0.07)


@pytest.mark.parametrize(("estimator", "width"), [("raw", 0.008), ("label-shift", 0.025), ("paper", 0.015)])
def test_planned_responses_give_the_wanted_width(estimator: str, width: float) -> None:
    generator = np.random.default_rng(2)
    profile = labelled(generator, 300)
    realised = []
    for _ in range(25):
        plan = told(plan_responses(study(generator, 150, 0.15)[0], profile, width, estimator=estimator))
        assert plan.responses is not None
        assert plan.responses == plan.clusters
        made = study(generator, plan.responses, 0.15)[0]
        found = estimate(made, profile, estimator=estimator)
        realised.append(half((found.low, found.high)))
    assert np.mean(realised) == pytest.approx(width, rel=0.08)


def test_planned_labels_of_the_profile_give_the_wanted_width() -> None:
    generator = np.random.default_rng(3)
    realised = []
    for _ in range(25):
        pilot = study(generator, 600, 0.15)[0]
        plan = told(plan_labels(pilot, labelled(generator, 60), 0.03))
        assert plan.responses is not None
        found = estimate(pilot, labelled(generator, plan.responses))
        realised.append(half((found.low, found.high)))
    assert np.mean(realised) == pytest.approx(0.03, rel=0.12)


def test_planned_labels_in_the_wild_give_the_wanted_width() -> None:
    generator = np.random.default_rng(4)
    realised, asked = [], []
    for _ in range(25):
        tallies, false = study(generator, 1500, 0.15)
        first = generator.permutation(1500)
        pilot = Labels(false[first[:80]], first[:80])
        plan = told(plan_labels(tallies, None, 0.01, estimator="ppi", labels=pilot))
        assert plan.responses is not None
        asked.append(plan.responses)
        chosen = first[: plan.responses]
        found = estimate(tallies, estimator="ppi", labels=Labels(false[chosen], chosen))
        realised.append(half((found.low, found.high)))
    assert 80 < np.mean(asked) < 1000
    assert np.mean(realised) == pytest.approx(0.01, rel=0.1)


def test_a_detector_spares_labels() -> None:
    generator = np.random.default_rng(5)
    tallies, false = study(generator, 2000, 0.15)
    chosen = generator.permutation(2000)[:150]
    blind = Tallies(generator.binomial(tallies.units, 0.1), tallies.units, tallies.cluster)
    plans = [
        told(plan_labels(each, None, 0.015, estimator="ppi", labels=Labels(false[chosen], chosen)))
        for each in (tallies, blind)
    ]
    assert plans[0].responses is not None
    assert plans[1].responses is not None
    assert plans[0].responses < 0.8 * plans[1].responses


def test_what_no_number_of_responses_reaches_is_said() -> None:
    generator = np.random.default_rng(6)
    pilot = study(generator, 100, 0.15)[0]
    plan = told(plan_responses(pilot, labelled(generator, 40), 0.002))
    assert (plan.clusters, plan.responses) == (None, None)
    assert plan.limit > 0.002
    endless = Tallies(np.tile(pilot.marked, 400), np.tile(pilot.units, 400), np.arange(40_000))
    found = estimate(endless, labelled(np.random.default_rng(6), 40))
    assert plan.limit == pytest.approx(half((found.low, found.high)), rel=0.35)
    labels = told(plan_labels(pilot, labelled(generator, 40), 0.002))
    assert labels.responses is None
    assert labels.limit < labels.now


def test_responses_in_the_wild_cannot_replace_labels() -> None:
    generator = np.random.default_rng(7)
    tallies, false = study(generator, 400, 0.15)
    chosen = np.arange(60)
    given = Labels(false[:60], chosen)
    plan = told(plan_responses(tallies, None, 0.001, estimator="ppi", labels=given))
    assert plan.responses is None
    assert 0.001 < plan.limit < plan.now


def test_several_responses_a_query_count_as_one_text() -> None:
    generator = np.random.default_rng(8)
    once = study(generator, 100, 0.15)[0]
    thrice = Tallies(*(np.repeat(part, 3) for part in (once.marked, once.units, once.cluster)))
    first, again = (told(plan_responses(each, None, 0.01, estimator="raw")) for each in (once, thrice))
    assert first.clusters is not None
    assert again.clusters == pytest.approx(first.clusters, rel=0.05)
    assert again.responses == 3 * again.clusters


def test_wider_is_cheaper_and_never_below_what_holds() -> None:
    pilot = study(np.random.default_rng(9), 100, 0.15)[0]
    sizes = [told(plan_responses(pilot, None, width, estimator="raw")).clusters for width in (0.005, 0.01, 0.02, 0.9)]
    assert None not in sizes
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == pytest.approx(4 * sizes[1], rel=0.1)  # type: ignore[operator]
    assert sizes[-1] == 8


def test_nothing_marked_still_needs_responses() -> None:
    pilot = Tallies(np.zeros(30, np.int64), np.full(30, 80), np.arange(30))
    plan = told(plan_responses(pilot, None, 0.001, estimator="raw"))
    assert plan.now > 0.001
    assert plan.responses is not None
    assert plan.responses > 30


def test_too_little_to_plan_from_is_none() -> None:
    generator = np.random.default_rng(10)
    pilot = study(generator, 40, 0.15)[0]
    assert plan_responses(pilot.select(np.arange(1)), labelled(generator, 40), 0.01) is None
    assert plan_responses(pilot, LanguageProfile.of([]), 0.01) is None
    assert plan_labels(pilot, LanguageProfile.of([Confusion(5, 20, 5, 20)] * 30), 0.01) is None


def test_wrong_calls_are_refused() -> None:
    pilot = study(np.random.default_rng(11), 40, 0.15)[0]
    with pytest.raises(UsageError, match="half-width"):
        plan_responses(pilot, None, 0, estimator="raw")
    with pytest.raises(UsageError, match="needs an error profile"):
        plan_responses(pilot, None, 0.01)
    with pytest.raises(UsageError, match="em"):
        plan_responses(pilot, None, 0.01, estimator="em")
    with pytest.raises(UsageError, match="labels"):
        plan_labels(pilot, None, 0.01, estimator="ppi")
    with pytest.raises(UsageError, match="uses no labels"):
        plan_labels(pilot, None, 0.01, estimator="raw")


def test_once_all_is_labelled_the_labels_stand_alone() -> None:
    generator = np.random.default_rng(0)
    units, false, _ = texts(generator, 60, 0.1)
    every = np.arange(60)
    plan = told(
        plan_labels(Tallies(false, units, every), None, 0.5, estimator="ppi", labels=Labels(false, every)),
    )
    share = estimate(Tallies(false, units, every), estimator="raw")
    assert plan.now == pytest.approx((share.high - share.low) / 2, rel=0.1)
