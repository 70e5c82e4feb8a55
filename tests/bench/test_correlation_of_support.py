"""Correlations with rates and between systems: scipy's values, clustered intervals, means over languages."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from small_bench import ran, written

from veriglot.bench.config import load
from veriglot.bench.data import DataSet
from veriglot.bench.figures import correlation_p
from veriglot.bench.leaderboard import correlation_matrix
from veriglot.metrics.estimate import ClusteredEstimate, Resampling
from veriglot.metrics.measures import Items, described, draws
from veriglot.records import Annotation, Evidence, Generator, Kind, Sample
from veriglot.report.bench import bench_document
from veriglot.scorers.pairwise import with_other_responses
from veriglot.scorers.registry import load_scorer

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.bench.results import BenchCorrelations


def associate(name: str, items: Items, resampling: Resampling) -> tuple[ClusteredEstimate, float | None]:
    drawn = draws(name, items, resampling)
    kind, _, rate = name.partition("_")
    truth = getattr(items, rate)
    p = None if truth is None else correlation_p(kind, items.badness, truth, resampling, drawn)
    return described(name, items, resampling, drawn), p


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


_TOWNS = {
    "en": ("Arden", "Brill", "Corby", "Dunstan", "Elland", "Fowey"),
    "de": ("Aalen", "Bebra", "Calw", "Dachau", "Emden", "Fulda"),
    "fr": ("Albi", "Brest", "Cahors", "Dole", "Evreux", "Foix"),
}
_PAIRWISE = """
[bench]
resamples = 200
groups = ["resources"]

[[systems]]
scorer = "rouge-l"

[[systems]]
scorer = "pairwise:rouge-l"

[[systems]]
scorer = "pairwise:rouge-1"

[[data]]
name = "towns"
path = "animals.jsonl"
levels = ["sentence", "response"]
"""


def answers(labelled: bool) -> list[Sample]:
    """Three answers to each of six questions a language, which agree with the evidence and each other as they fall."""
    generator, rows = np.random.default_rng(5), []
    gold = (Annotation("gold", Kind.HUMAN, "hat", spans=()),) if labelled else ()
    for tag, towns in _TOWNS.items():
        for town, seed in product(towns, range(3)):
            text = ". ".join(" ".join(generator.choice(towns, size=size)) for size in (4, 3))
            rows.append(
                Sample(
                    f"{tag}-{town}-{seed}",
                    f"{text}.",
                    language=tag,
                    question=f"{town}?",
                    evidence=(Evidence(f"{town}. {towns[0]}."),),
                    generator=Generator("m", seed=seed),
                    annotations=gold,
                    meta={"group": town},
                )
            )
    return rows


@pytest.mark.parametrize("labelled", [True, False])
def test_scorers_with_evidence_and_pairwise_go_together_as_scipy_says(labelled: bool, tmp_path: Path) -> None:
    rows = answers(labelled)
    results = ran(written(tmp_path, _PAIRWISE, rows), tmp_path / "run")
    judged = rows
    if labelled:  # those that are not for tuning
        config = load(tmp_path / "bench.toml")
        judged = list(DataSet.read(config.data[0], config).test)
    rows_of = [figure for figure in results.figures if figure.measure == "pearson_pairwise"]
    table = {(row.level, row.language): row for row in rows_of}
    assert {row.system for row in rows_of} == {"rouge-l"}, "rouge-1 is there as pairwise: alone"
    assert not any(win.measure == "pearson_pairwise" for win in results.wins)
    with_others = with_other_responses(rows)
    for tag in _TOWNS:
        chosen = [row for row in with_others if row.language == tag and row.id in {one.id for one in judged}]
        first, second = (
            [score.value for score in load_scorer(name).score(chosen)] for name in ("rouge-l", "pairwise:rouge-l")
        )
        row = table["response", tag]
        assert row.value == pytest.approx(pearsonr(first, second).statistic)
        assert row.items == len(chosen)
        assert table["sentence", tag].items == 2 * len(chosen), "a sentence is held against the other responses whole"
    mean = table["response", "mean"]
    both = [table["response", tag].value for tag in ("en", "fr")]
    assert mean.value == pytest.approx(np.mean([table["response", tag].value for tag in _TOWNS]))
    assert mean.items == len(judged)
    scopes = {(c.scope, c.method) for c in results.correlations if c.level == "response"}
    assert {("all", "pearson"), ("high", "pearson"), ("middle", "spearman")} <= scopes
    in_high = next(c for c in results.correlations if (c.level, c.scope, c.method) == ("response", "high", "pearson"))
    assert in_high.r[0][1] == pytest.approx(np.mean(both))
    page = bench_document(results, "markdown")
    assert "correlation of scorers by the evidence with the same ones, pairwise" in page
    assert "averaged over languages of the group high" in page
