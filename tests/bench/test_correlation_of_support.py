"""Correlations with rates and between systems: scipy's values, clustered intervals, means over languages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from veriglot.bench.figures import correlation_p
from veriglot.bench.leaderboard import correlation_matrix
from veriglot.metrics.estimate import ClusteredEstimate, Resampling
from veriglot.metrics.measures import Items, described, draws

if TYPE_CHECKING:
    from veriglot.bench.results import BenchCorrelations


def associate(name: str, items: Items, resampling: Resampling) -> tuple[ClusteredEstimate, float | None]:
    drawn = draws(name, items, resampling)
    return described(name, items, resampling, drawn), correlation_p(name, items, resampling, drawn)


def matrix(cells: dict[str, dict[str, np.ndarray]], method: str = "pearson") -> BenchCorrelations:
    made = correlation_matrix(cells, method)
    assert made is not None
    return made


def items_of(size: int, seed: int) -> Items:
    generator = np.random.default_rng(seed)
    support = generator.random(size)
    badness = -support + generator.normal(0, 0.5, size)
    return Items(badness, support < 0.5, support, 1 - support)


def test_values_and_p_are_scipy_s_where_every_item_is_a_text() -> None:
    items = items_of(80, 1)
    resampling = Resampling.of(range(80), resamples=300)
    assert items.support is not None
    for kind, reference in (("pearson", pearsonr), ("spearman", spearmanr)):
        expected = reference(-items.badness, items.support)
        for rate in ("support", "unverified"):
            found, p = associate(f"{kind}_{rate}", items, resampling)
            assert found.value == pytest.approx(expected.statistic)
            assert p == pytest.approx(expected.pvalue)
            assert found.low is not None
            assert found.high is not None
            assert found.low < expected.statistic < found.high
            assert (found.items, found.clusters) == (80, 80)


def test_repeated_texts_are_not_new_evidence() -> None:
    once = items_of(30, 3)
    assert once.support is not None
    repeated = Items(*(np.repeat(part, 20) for part in (once.badness, once.nonfactual, once.support)))
    alone, p_alone = associate("pearson_support", once, Resampling.of(range(30), resamples=1000))
    many, p_many = associate("pearson_support", repeated, Resampling.of([k // 20 for k in range(600)], resamples=1000))
    assert many.value == pytest.approx(alone.value)
    assert (many.low, many.high) == (pytest.approx(alone.low), pytest.approx(alone.high))
    assert p_alone is not None
    assert p_many is not None
    naive = pearsonr(-repeated.badness, repeated.support).pvalue
    assert naive < 1e-20 < p_many
    assert abs(np.log10(p_many) - np.log10(p_alone)) < 3


def test_what_has_no_correlation_says_why() -> None:
    items = items_of(10, 1)
    resampling = Resampling.of(range(10), resamples=10)
    flat = Items(np.zeros(10), items.nonfactual, items.support)
    assert associate("pearson_support", flat, resampling)[0].reason is not None
    unknown, p = associate("pearson_unverified", flat, resampling)
    assert (unknown.value, p, unknown.items) == (None, None, 0)


def test_a_matrix_is_the_mean_over_cells() -> None:
    generator = np.random.default_rng(5)
    cells: dict[str, dict[str, np.ndarray]] = {}
    for tag in ("de", "tr", "zh"):
        base = generator.normal(size=40)
        cells[tag] = {"a": base, "b": base + generator.normal(size=40), "c": generator.normal(size=40)}
    del cells["zh"]["c"]
    cells["de"]["b"][:5] = np.nan
    found = matrix(cells)
    assert found.systems == ("a", "b", "c")
    expected = [pearsonr(*(part[~np.isnan(row["b"])] for part in (row["a"], row["b"]))) for row in cells.values()]
    assert found.r[0][1] == found.r[1][0] == pytest.approx(np.mean([one.statistic for one in expected]))
    assert found.largest_p[0][1] == pytest.approx(max(one.pvalue for one in expected))
    assert found.cells == ((3, 3, 2), (3, 3, 2), (2, 2, 2))
    assert [found.r[k][k] for k in range(3)] == [1.0, 1.0, 1.0]
    ranked = matrix(cells, "spearman")
    assert ranked.r[2][0] == pytest.approx(
        np.mean([spearmanr(cells[tag]["a"], cells[tag]["c"]).statistic for tag in ("de", "tr")])
    )


def test_cells_without_a_correlation_count_nowhere() -> None:
    cells = {"de": {"a": np.arange(5.0), "b": np.ones(5)}, "tr": {"a": np.arange(2.0), "b": np.arange(2.0)}}
    found = matrix(cells)
    assert (found.r[0][1], found.cells[0][1], found.largest_p[0][1]) == (None, 0, None)
