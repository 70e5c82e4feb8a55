from __future__ import annotations

import numpy as np
import pytest

from veriglot.rates.comparison import TTest, t_test

FIRST = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4]
SECOND = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.5, 24.4]


def told(test: TTest | None) -> TTest:
    assert test is not None
    return test


def test_welch_gives_what_statsmodels_gives() -> None:
    # statsmodels 0.15.0: ttest_ind(a, b, usevar="unequal") and CompareMeans(...).tconfint_diff(usevar="unequal").
    found = told(t_test(FIRST, SECOND))
    assert (found.t, found.df, found.p) == pytest.approx((-2.8529548702, 27.8873039884, 0.0080719382), rel=1e-8)
    assert (found.low, found.high) == pytest.approx((-4.8680227418, -0.7986439249), rel=1e-8)
    assert found.counts == (15, 15)


def test_student_gives_what_statsmodels_gives() -> None:
    found = told(t_test(FIRST[:9], SECOND, "student"))
    assert (found.t, found.df, found.p) == pytest.approx((-2.4948636285, 22.0, 0.0205968055), rel=1e-8)
    assert (found.low, found.high) == pytest.approx((-5.6931748047, -0.5246029731), rel=1e-8)


def test_effects_are_as_defined() -> None:
    x, y = np.array([1.0, 2.0, 4.0, 5.0]), np.array([2.0, 5.0, 6.0, 7.0, 10.0])
    pooled = np.sqrt((3 * x.var(ddof=1) + 4 * y.var(ddof=1)) / 7)
    found = told(t_test(x, y, "student"))
    assert found.d == pytest.approx((x.mean() - y.mean()) / pooled)
    assert found.g == pytest.approx(found.d * (1 - 3 / (4 * 7 - 1)), rel=2e-3)  # Hedges' own approximation
    assert told(t_test(x, y)).d == pytest.approx((x.mean() - y.mean()) / np.sqrt((x.var(ddof=1) + y.var(ddof=1)) / 2))
    differences = x - y[:4]
    assert told(t_test(x, y[:4], "paired")).d == pytest.approx(differences.mean() / differences.std(ddof=1))


@pytest.mark.slow
def test_hedges_g_has_no_bias_in_small_groups() -> None:
    generator = np.random.default_rng(2)
    tests = [told(t_test(generator.normal(0.8, 1, 5), generator.normal(0, 1, 6), "student")) for _ in range(6000)]
    assert np.mean([test.g for test in tests]) == pytest.approx(0.8, abs=0.03)
    assert np.mean([test.d for test in tests]) > 0.84


@pytest.mark.slow
@pytest.mark.parametrize(("spread", "sizes"), [(1.0, (15, 15)), (4.0, (8, 30)), (0.25, (8, 30))])
def test_welch_holds_its_level_where_groups_differ(spread: float, sizes: tuple[int, int]) -> None:
    generator = np.random.default_rng(5)
    tests = [told(t_test(generator.normal(0, spread, sizes[0]), generator.normal(0, 1, sizes[1]))) for _ in range(2500)]
    assert 0.037 < np.mean([test.p < 0.05 for test in tests]) < 0.063
    assert all((test.low <= 0 <= test.high) == (test.p >= 0.05) for test in tests)


def test_paired_sees_what_lies_between_pairs() -> None:
    generator = np.random.default_rng(6)
    languages = generator.normal(0.1, 0.05, 30)
    first, second = languages + generator.normal(0.01, 0.004, 30), languages + generator.normal(0, 0.004, 30)
    assert told(t_test(first, second, "paired")).p < 1e-6
    assert told(t_test(first, second)).p > 0.1


def test_what_is_not_defined_is_none() -> None:
    assert t_test([1.0], [1.0, 2.0]) is None
    assert t_test([2.0, 2.0], [1.0, 1.0], "student") is None
    assert t_test([1.5, 2.5, 3.5], [1.0, 2.0, 3.0], "paired") is None
    with pytest.raises(ValueError, match="as many values"):
        t_test([1.0, 2.0], [1.0], "paired")
    with pytest.raises(ValueError, match="NaN"):
        t_test([1.0, float("nan")], [1.0, 2.0])
