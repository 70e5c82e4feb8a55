"""Correlations with rates and between systems: scipy's values, clustered intervals, means over languages."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from veriglot.bench.comparison import associate, correlation_matrix
from veriglot.errors import UnknownNameError
from veriglot.metrics.estimate import Resampling
from veriglot.metrics.measures import Items


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
            found = associate(f"{kind}_{rate}", items, resampling)
            assert found.r == pytest.approx(expected.statistic)
            assert found.p == pytest.approx(expected.pvalue)
            assert found.p_method == "independent"
            assert found.low is not None
            assert found.high is not None
            assert found.low < expected.statistic < found.high
            assert (found.items, found.clusters) == (80, 80)


def test_repeated_texts_are_not_new_evidence() -> None:
    once = items_of(30, 3)
    assert once.support is not None
    repeated = Items(*(np.repeat(part, 20) for part in (once.badness, once.nonfactual, once.support)))
    alone = associate("pearson_support", once, Resampling.of(range(30), resamples=1000))
    many = associate("pearson_support", repeated, Resampling.of([k // 20 for k in range(600)], resamples=1000))
    assert many.r == pytest.approx(alone.r)
    assert (many.low, many.high) == (pytest.approx(alone.low), pytest.approx(alone.high))
    assert many.p_method == "texts"
    assert alone.p is not None
    assert many.p is not None
    naive = pearsonr(-repeated.badness, repeated.support).pvalue
    assert naive < 1e-20 < many.p
    assert abs(np.log10(many.p) - np.log10(alone.p)) < 3


def test_what_has_no_correlation_says_why() -> None:
    items = items_of(10, 1)
    resampling = Resampling.of(range(10), resamples=10)
    flat = Items(np.zeros(10), items.nonfactual, items.support)
    assert associate("pearson_support", flat, resampling).reason is not None
    unknown = associate("pearson_unverified", flat, resampling)
    assert (unknown.r, unknown.p, unknown.items) == (None, None, 0)
    with pytest.raises(UnknownNameError):
        associate("auroc", items, resampling)


def test_a_matrix_is_the_mean_over_cells() -> None:
    generator = np.random.default_rng(5)
    cells: dict[str, dict[str, np.ndarray]] = {}
    for tag in ("de", "tr", "zh"):
        base = generator.normal(size=40)
        cells[tag] = {"a": base, "b": base + generator.normal(size=40), "c": generator.normal(size=40)}
    del cells["zh"]["c"]
    cells["de"]["b"][:5] = np.nan
    found = correlation_matrix(cells)
    assert found.systems == ("a", "b", "c")
    expected = [pearsonr(*(part[~np.isnan(row["b"])] for part in (row["a"], row["b"]))) for row in cells.values()]
    assert found.r[0, 1] == found.r[1, 0] == pytest.approx(np.mean([one.statistic for one in expected]))
    assert found.largest_p[0, 1] == pytest.approx(max(one.pvalue for one in expected))
    assert found.cells.tolist() == [[3, 3, 2], [3, 3, 2], [2, 2, 2]]
    assert np.diag(found.r).tolist() == [1.0, 1.0, 1.0]
    ranked = correlation_matrix(cells, method="spearman", systems=("c", "a"))
    assert ranked.systems == ("c", "a")
    assert ranked.r[0, 1] == pytest.approx(
        np.mean([spearmanr(cells[tag]["a"], cells[tag]["c"]).statistic for tag in ("de", "tr")])
    )


def test_cells_without_a_correlation_count_nowhere() -> None:
    cells = {"de": {"a": np.arange(5.0), "b": np.ones(5)}, "tr": {"a": np.arange(2.0), "b": np.arange(2.0)}}
    found = correlation_matrix(cells)
    assert np.isnan(found.r[0, 1])
    assert found.cells[0, 1] == 0
    assert np.isnan(found.largest_p[0, 1])
    with pytest.raises(ValueError, match="same items"):
        correlation_matrix({"de": {"a": np.arange(5.0), "b": np.arange(4.0)}})
