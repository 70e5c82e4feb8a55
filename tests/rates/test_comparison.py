from __future__ import annotations

import numpy as np
import pytest

from veriglot.errors import UsageError
from veriglot.rates.comparison import Difference, compare, t_test
from veriglot.rates.proportion import Tallies
from veriglot.records import Confusion, LanguageProfile

TPR, FPR = 0.7, 0.04


def told(found: Difference | None) -> Difference:
    assert found is not None
    return found


def labelled(generator: np.random.Generator, responses: int, tpr: float = TPR, fpr: float = FPR) -> LanguageProfile:
    """An error profile measured on clustered texts of which 30% is unsupported."""
    units = generator.integers(20, 200, responses)
    false = generator.binomial(units, generator.beta(1.5, 3.5, responses))
    tp = generator.binomial(false, generator.beta(6 * tpr, 6 * (1 - tpr), responses))
    fp = generator.binomial(units - false, generator.beta(20 * fpr, 20 * (1 - fpr), responses))
    rows = zip(tp, fp, false - tp, units - false - fp, strict=True)
    return LanguageProfile.of([Confusion(*map(int, row)) for row in rows])


def answered(
    generator: np.random.Generator, rates: tuple[float, float], queries: int, *, perfect: bool = False
) -> tuple[Tallies, Tallies]:
    """Two models on the same queries, each of which is as hard for both."""
    hard = generator.beta(8 * rates[0], 8 * (1 - rates[0]), queries)
    made = []
    for rate in rates:
        mean = np.clip(hard * rate / rates[0], 1e-6, 1 - 1e-6)
        units = generator.integers(20, 200, queries)
        false = generator.binomial(units, generator.beta(20 * mean, 20 * (1 - mean)))
        marked = false
        if not perfect:
            marked = generator.binomial(false, generator.beta(6 * TPR, 6 * (1 - TPR), queries))
            marked = marked + generator.binomial(units - false, generator.beta(20 * FPR, 20 * (1 - FPR), queries))
        made.append(Tallies(marked, units, np.arange(queries)))
    return made[0], made[1]


def even(marked: list[int], cluster: list[int] | None = None) -> Tallies:
    """Responses of 100 units each."""
    clusters = np.arange(len(marked)) if cluster is None else np.array(cluster)
    return Tallies(np.array(marked), np.full(len(marked), 100), clusters)


def test_pairs_of_equal_length_are_compared_as_a_paired_t_test_does() -> None:
    first, second = [10, 12, 9, 20, 14, 3, 8, 11], [9, 8, 9, 15, 12, 1, 8, 6]
    found, plain = told(compare(even(first), even(second), None, estimator="raw")), t_test(first, second, "paired")
    assert plain is not None
    assert found.difference == pytest.approx(plain.difference / 100)
    assert found.effect == pytest.approx(plain.d)
    assert found.difference / found.error == pytest.approx(plain.t)
    assert found.p >= plain.p  # a few queries make the difference, which costs degrees of freedom
    assert (found.paired, found.queries, found.left_out) == (True, 8, (0, 0))


def test_the_p_value_is_that_of_flipping_who_said_what() -> None:
    """Were both models equal, each query's two answers could be exchanged: the share of exchanges as far off is p."""
    generator = np.random.default_rng(21)
    for _ in range(4):
        first = generator.binomial(100, 0.14, 60)
        second = generator.binomial(100, 0.12, 60)
        differences = first - second
        flipped = generator.choice([-1, 1], size=(20_000, 60)) @ differences
        exchanged = (np.abs(flipped) >= abs(differences.sum())).mean()
        found = told(compare(even(first.tolist()), even(second.tolist()), None, estimator="raw"))
        assert found.p == pytest.approx(exchanged, rel=0.12, abs=0.012)


def test_other_queries_are_compared_as_welch_does() -> None:
    first, second = [10, 12, 9, 20, 14, 3, 8, 11], [9, 8, 9, 15, 12]
    apart = even(second, [20, 21, 22, 23, 24])
    found, plain = told(compare(even(first), apart, None, estimator="raw")), t_test(first, second)
    assert plain is not None
    assert found.difference / found.error == pytest.approx(plain.t)
    assert found.effect == pytest.approx(plain.d)
    assert (found.paired, found.queries) == (False, 13)


def test_only_queries_of_both_are_compared_and_the_rest_is_counted() -> None:
    first = even([10, 12, 9, 20, 50], [1, 2, 3, 4, 9])
    second = even([9, 8, 9, 15, 90, 90], [1, 2, 3, 4, 7, 7])
    found = told(compare(first, second, None, estimator="raw"))
    alone = told(compare(even([10, 12, 9, 20]), even([9, 8, 9, 15]), None, estimator="raw"))
    assert (found.paired, found.queries, found.left_out) == (True, 4, (1, 2))
    assert (found.difference, found.p) == (alone.difference, alone.p)


def test_pairing_sees_what_hard_queries_hide() -> None:
    generator = np.random.default_rng(3)
    first, second = answered(generator, (0.2, 0.17), 150, perfect=True)
    elsewhere = Tallies(second.marked, second.units, second.cluster + 1000)
    paired, apart = (told(compare(first, other, None, estimator="raw")) for other in (second, elsewhere))
    assert paired.error < 0.8 * apart.error
    assert paired.difference == pytest.approx(apart.difference)


def test_the_same_model_twice_does_not_differ() -> None:
    first, _ = answered(np.random.default_rng(4), (0.2, 0.1), 40)
    found = told(compare(first, first, labelled(np.random.default_rng(5), 50)))
    assert (found.difference, found.low, found.high, found.p) == (0, 0, 0, 1)


def test_nothing_marked_is_not_certainty() -> None:
    found = told(compare(even([0] * 30), even([0] * 30), None, estimator="raw"))
    assert (found.difference, found.p) == (0, pytest.approx(1))
    assert found.low < -0.005
    assert found.high > 0.005
    all_and_none = told(compare(even([0] * 30), even([100] * 30), None, estimator="raw"))
    assert all_and_none.p < 1e-6


@pytest.mark.parametrize("rates", [(0.1, 0.1), (0.1, 0.05), (0.3, 0.2)])
def test_intervals_and_level_hold_with_the_profiles_error(rates: tuple[float, float]) -> None:
    generator = np.random.default_rng(6)
    wide = generator.beta(8 * rates[0], 8 * (1 - rates[0]), 400_000)
    truth = wide.mean() - np.clip(wide * rates[1] / rates[0], 0, 1).mean()
    found = [
        told(compare(*answered(generator, rates, 100), labelled(generator, 60), draws=800, seed=run))
        for run in range(500)
    ]
    assert np.mean([one.difference for one in found]) == pytest.approx(truth, abs=0.0035)
    assert 0.92 < np.mean([one.low <= truth <= one.high for one in found]) < 0.98
    if rates[0] == rates[1]:
        assert 0.025 < np.mean([one.p < 0.05 for one in found]) < 0.075
        assert np.mean([(one.p < 0.05) == (one.low > 0 or one.high < 0) for one in found]) > 0.99


def test_paper_and_label_shift_agree_on_who_is_better() -> None:
    generator = np.random.default_rng(7)
    pair, profile = answered(generator, (0.2, 0.1), 100), labelled(generator, 80)
    shift, paper = (told(compare(*pair, profile, estimator=name)) for name in ("label-shift", "paper"))
    assert shift.p == paper.p
    assert profile.precision is not None
    assert profile.recall is not None
    assert profile.tpr is not None
    assert profile.fpr is not None
    marked = told(compare(*pair, None, estimator="raw")).difference
    assert paper.difference == pytest.approx(marked * profile.precision / profile.recall)
    assert shift.difference == pytest.approx(marked / (profile.tpr - profile.fpr))


def test_over_languages_each_counts_the_same_and_intervals_hold() -> None:
    """Simulation: six languages, half of them the other way round, so that the models are equal on the whole."""
    generator = np.random.default_rng(8)
    found = []
    for _ in range(120):
        shared = labelled(generator, 60)
        pairs = [answered(generator, (0.1, 0.06), 60) for _ in range(6)]
        pairs = pairs[:3] + [(second, first) for first, second in pairs[3:]]
        each = [told(compare(*pair, shared, draws=600)) for pair in pairs]
        found.append(told(Difference.over(each)))
        assert found[-1].difference == pytest.approx(np.mean([one.difference for one in each]))
    assert 0.9 < np.mean([one.low <= 0 <= one.high for one in found]) <= 0.99
    assert np.mean([one.p < 0.05 for one in found]) < 0.1
    assert found[0].queries == 360
    assert found[0].method == "paired t-test over queries, mean of 6 languages"
    assert Difference.over([]) is None


def test_draws_of_any_estimator_are_compared() -> None:
    generator = np.random.default_rng(9)
    shared = generator.normal(0, 0.05, 4000)
    draws = (0.2 + shared + generator.normal(0, 0.01, 4000), 0.15 + shared + generator.normal(0, 0.01, 4000))
    found = told(Difference.of_draws((0.2, 0.15), draws, queries=50))
    assert found.error == pytest.approx(0.01 * np.sqrt(2), rel=0.05)
    assert (found.low, found.high) == (pytest.approx(0.0223, abs=0.002), pytest.approx(0.0777, abs=0.002))
    assert found.p == pytest.approx(4.1e-4, rel=0.5)
    over = told(Difference.over([found, found, found]))
    assert (over.difference, over.freedom) == (pytest.approx(0.05), np.inf)
    assert over.error == pytest.approx(found.error / np.sqrt(3))
    assert over.p < found.p
    assert Difference.of_draws((0.2, 0.1), (np.full(5, np.nan), np.ones(5)), queries=3) is None


def test_a_detector_that_tells_nothing_compares_nothing() -> None:
    generator = np.random.default_rng(10)
    pair = answered(generator, (0.2, 0.1), 40)
    assert compare(*pair, labelled(generator, 40, tpr=0.05, fpr=0.05)) is None
    assert compare(*pair, LanguageProfile.of([])) is None
    assert compare(even([5]), even([5]), None, estimator="raw") is None
    nothing = Tallies(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert compare(pair[0], nothing, None, estimator="raw") is None


def test_wrong_calls_are_refused() -> None:
    pair = even([5, 6]), even([5, 6])
    with pytest.raises(UsageError, match="of_draws"):
        compare(*pair, None, estimator="em")
    with pytest.raises(UsageError, match="needs an error profile"):
        compare(*pair, None)


def test_the_seed_decides() -> None:
    generator = np.random.default_rng(11)
    pair, profile = answered(generator, (0.2, 0.1), 40), labelled(generator, 60)
    first, again, other = (told(compare(*pair, profile, seed=seed)) for seed in (1, 1, 2))
    assert np.array_equal(first.draws, again.draws)
    assert (first.low, first.high) == (again.low, again.high)
    assert first.low != other.low
    assert first.p == other.p
