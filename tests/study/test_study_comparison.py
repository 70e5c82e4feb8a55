"""What is compared, and over which languages: those in which the data support a rate of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from scipy import stats

from veriglot.pipeline.engine import Description
from veriglot.rates.proportion import Tallies
from veriglot.records import Estimator, Reliability
from veriglot.study.config import Config, StudyEntry
from veriglot.study.rates import CellCounts, ProfileComparison, ProfiledDetector, RatedCell, cell_rates, replicates
from veriglot.study.results import Model, comparisons, correlations, ranks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LANGUAGES = ("de", "fr", "sw")
STUDY = StudyEntry(estimator=Estimator.RAW, estimators=(), draws=400)
MODELS = [Model("small", "Finch", 1.0), Model("large", "Finch", 9.0)]


def rated(model: str, language: str, share: float, queries: range = range(40), seeds: int = 4) -> RatedCell:
    draw = np.random.default_rng([len(model), ord(language[0]), len(queries)])
    tallies = {}
    for seed in range(seeds):
        units = draw.integers(30, 60, len(queries))
        tallies[seed] = Tallies(draw.binomial(units, share), units, np.array(queries))
    judging = ProfiledDetector(Description("marker@1", "", 0.5, "marker"), None, STUDY)
    counted = (CellCounts(model, language, judging, dict(tallies), None, dict.fromkeys(tallies, len(queries))),)
    made = cell_rates(counted, [Estimator.RAW])
    return RatedCell(counted, made, replicates(counted, Estimator.RAW))


@pytest.fixture
def study(tmp_path: Path) -> Config:
    return Config(path=tmp_path / "study.toml", study=STUDY)


def cells(share: Callable[[str, str], float]) -> dict[tuple[str, str], RatedCell]:
    return {(model.name, tag): rated(model.name, tag, share(model.name, tag)) for model in MODELS for tag in LANGUAGES}


def doubtful(cell: RatedCell) -> RatedCell:
    """The same, in which the data support nothing."""
    change = {"status": Reliability.UNRELIABLE, "reason": "it cannot be told"}
    made = tuple(type(one)(msgspec.structs.replace(one.rate, **change), one.draws, one.value) for one in cell.estimates)
    return RatedCell(cell.counted, made, tuple(msgspec.structs.replace(rate, **change) for rate in cell.replicates))


def test_a_language_without_a_rate_of_both_leaves_the_test_of_size_to_the_others(study: Config) -> None:
    """In Swahili the small model is good and unsupported: counted, it would turn the sign."""
    found = cells(lambda model, tag: 0.01 if (model, tag) == ("small", "sw") else {"small": 0.2, "large": 0.1}[model])
    found["small", "sw"] = doubtful(found["small", "sw"])
    (size,) = correlations(study, MODELS, {}, {}, [], found)
    assert size.name.startswith("Finch: large against small in 2 languages")
    assert size.r < -2
    assert (size.points, size.of) == (8, "replicates")
    none = {place: doubtful(cell) for place, cell in found.items()}
    assert correlations(study, MODELS, {}, {}, [], none) == []


def test_the_test_of_all_families_pools_replicates_and_pairs_families(study: Config) -> None:
    families = ("Finch", "Lark", "Warbler")
    models = [Model(f"{family}-{size}", family, size) for family in families for size in (2.0, 1.0, 9.0)]
    shares = {1.0: 0.2, 2.0: 0.5, 9.0: 0.15}
    both = {(m.name, tag): rated(m.name, tag, shares[m.parameters or 0]) for m in models for tag in LANGUAGES}
    both["Warbler-9.0", "sw"] = doubtful(both["Warbler-9.0", "sw"])
    *single, pooled, paired = correlations(study, models, {}, {}, [], both)
    assert [size.name.partition(":")[0] for size in single] == [*families]

    def means(size: str) -> list[list[float]]:
        return [
            [np.mean([both[f"{family}-{size}", tag].replicates[n].rate for tag in ("de", "fr")]) for n in range(4)]
            for family in families
        ]

    large, small = means("9.0"), means("1.0")
    assert pooled.p == pytest.approx(stats.ttest_ind(np.ravel(large), np.ravel(small)).pvalue)
    assert paired.p == pytest.approx(stats.ttest_rel(np.mean(large, axis=1), np.mean(small, axis=1)).pvalue)
    assert (pooled.points, pooled.of, paired.points, paired.of) == (24, "replicates", 3, "families")
    assert pooled.name.startswith("the largest against the smallest model of 3 families in 2 languages")
    assert pooled.r < 0


def test_rates_by_two_profiles_are_correlated_over_the_cells_that_have_both(study: Config) -> None:
    values = {
        ("small", "de"): (0.1, 0.12),
        ("small", "fr"): (0.2, 0.17),
        ("large", "de"): (0.15, 0.2),
        ("large", "fr"): (0, 0.9),
    }
    both = {}
    for cell, pair in values.items():
        whole = rated(*cell, 0.2)
        rates = [msgspec.structs.replace(whole.estimates[0].rate, rate=value) for value in pair]
        if cell == ("large", "fr"):
            rates[1] = msgspec.structs.replace(rates[1], status=Reliability.UNRELIABLE, reason="doubt")
        both[cell] = RatedCell(
            whole.counted, whole.estimates, whole.replicates, (ProfileComparison(*rates, None, None),)
        )
    (row,) = (row for row in correlations(study, [], {}, {}, [], both) if row.of == "cells")
    assert row.r == pytest.approx(stats.pearsonr([0.12, 0.17, 0.2], [0.1, 0.2, 0.15]).statistic)
    assert (row.points, row.name) == (3, "rate by compare_profile of marker@1")


def test_ranks_over_all_are_over_the_languages_that_all_models_have(study: Config) -> None:
    found = cells(lambda model, tag: 0.01 if (model, tag) == ("small", "sw") else {"small": 0.12, "large": 0.1}[model])
    overall = [one.model for one in ranks(found, ["small", "large"], LANGUAGES, 0.95) if one.language == "*"]
    first = {one.model: one.rank for one in ranks(found, ["small", "large"], LANGUAGES, 0.95) if one.language == "*"}
    assert sorted(overall) == ["large", "small"]
    assert first["small"] == 1, "with Swahili, where it has nearly none"
    found["large", "sw"] = doubtful(found["large", "sw"])
    ranked = ranks(found, ["small", "large"], LANGUAGES, 0.95)
    assert {one.model: one.rank for one in ranked if one.language == "*"} == {"large": 1, "small": 2}
    assert not [one for one in ranked if one.language == "sw"]


def test_a_paired_comparison_says_what_it_leaves_out(study: Config) -> None:
    found = {
        ("small", "de"): rated("small", "de", 0.2, range(40)),
        ("large", "de"): rated("large", "de", 0.1, range(10, 50)),
    }
    (one,) = comparisons(study, found, ["small", "large"], ["de"])
    assert (one.paired, one.queries) == (True, 30)
    assert "(40 and 40 responses to queries that only one answered left out)" in one.method
    same = {place: rated(*place, 0.2) for place in found}
    assert "left out" not in comparisons(study, same, ["small", "large"], ["de"])[0].method
