"""Models held against each other, and rates held against size, languages and length (mFAVA, section 4.2)."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from veriglot.rates.comparison import Difference, compare, compare_draws, compare_over, rank_intervals
from veriglot.rates.estimators import ESTIMATORS
from veriglot.rates.significance import adjust, correlate, t_test
from veriglot.records import Reliability
from veriglot.study.results import Comparison, Correlation, RankInterval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.study.config import Config
    from veriglot.study.rates import Rated
    from veriglot.study.results import Average, Cell, Model

    Array = NDArray[np.float64]
    Cells = dict[tuple[str, str], Rated]

__all__ = ["comparisons", "correlations", "ranks", "reliable"]

EVERYWHERE = "*"
_SPREAD = "student t-test over detectors and seeds"


def reliable(rated: Rated | None) -> bool:
    """Whether the study's own estimate of a cell may be counted on."""
    return rated is not None and rated.made[0].rate.status is Reliability.OK


def ranks(cells: Cells, models: Sequence[str], languages: Sequence[str], confidence: float) -> list[RankInterval]:
    """The models ordered in each language, and over the languages in which all of them can be ranked."""
    results = []
    for language in languages:
        there = [model for model in models if reliable(cells.get((model, language)))]
        results += _ranked(cells, there, [language], language, confidence)
    candidates = [model for model in models if any(reliable(cells.get((model, tag))) for tag in languages)]
    shared = [tag for tag in languages if all(reliable(cells.get((model, tag))) for model in candidates)]
    return _ranked(cells, candidates, shared, EVERYWHERE, confidence) + results


def _ranked(
    cells: Cells, models: Sequence[str], languages: Sequence[str], name: str, confidence: float
) -> list[RankInterval]:
    if len(models) < 2 or not languages:
        return []
    means = [float(np.mean([cells[model, tag].made[0].value for tag in languages])) for model in models]
    draws = np.array([np.mean([cells[model, tag].made[0].draws for tag in languages], axis=0) for model in models])
    places = rank_intervals(means, draws, confidence=confidence)
    return [
        RankInterval(model, name, rank.rank, rank.best, rank.worst)
        for model, rank in zip(models, places, strict=True)
        if rank is not None
    ]


def comparisons(config: Config, cells: Cells, models: Sequence[str], languages: Sequence[str]) -> list[Comparison]:
    """Every two models in every language in which both are reliable, and over these; corrected for all (Holm)."""
    rows: list[tuple[str, str, str, Difference]] = []
    for first, second in combinations(models, 2):
        by_language = []
        for tag in languages:
            pair = cells.get((first, tag)), cells.get((second, tag))
            if pair[0] is not None and pair[1] is not None and reliable(pair[0]) and reliable(pair[1]):
                difference = _difference(config, pair[0], pair[1], tag)
                if difference is not None:
                    by_language.append((tag, difference))
        over = compare_over([difference for _, difference in by_language], confidence=config.study.confidence)
        if over is not None and len(by_language) > 1:
            rows.append((first, second, EVERYWHERE, over))
        rows += [(first, second, tag, difference) for tag, difference in by_language]
    corrected = adjust([difference.p for *_, difference in rows], "holm").tolist()
    return [
        Comparison(
            first, second, tag, row.difference, row.p, p, row.effect, row.paired, row.queries,
            f"{row.method}{_left_out(row)}; Holm's correction for {len(rows)} comparisons", low=row.low, high=row.high,
        )
        for (first, second, tag, row), p in zip(rows, corrected, strict=True)
        if not any(number is None or math.isnan(number) for number in (row.difference, row.low, row.high, row.p))
    ]  # fmt: skip


def _left_out(difference: Difference) -> str:
    """What a paired comparison does not look at, in words."""
    if not any(difference.left_out):
        return ""
    first, second = difference.left_out
    return f" ({first:,} and {second:,} responses to queries that only one answered left out)"


def _difference(config: Config, first: Rated, second: Rated, tag: str) -> Difference | None:
    """Paired by query where one detector and a linear estimator allow it; from the draws otherwise."""
    study = config.study
    if len(first.counted) == 1 and ESTIMATORS[study.estimator].factor is not None:
        profile, _ = first.counted[0].judging.of(tag)
        return compare(
            first.counted[0].joined, second.counted[0].joined, profile,
            estimator=study.estimator, confidence=study.confidence, seed=study.seed, draws=study.draws,
        )  # fmt: skip
    estimate, other = first.made[0], second.made[0]
    queries = len(np.union1d(first.counted[0].joined.cluster, second.counted[0].joined.cluster))
    return compare_draws(
        (estimate.value, other.value), (estimate.draws, other.draws), queries=queries, confidence=study.confidence
    )


def correlations(
    config: Config,
    models: Sequence[Model],
    by_model: dict[str, Average],
    by_language: dict[str, Average],
    cells: Sequence[Cell],
    rated: Cells,
) -> list[Correlation]:
    """What goes with the rates, as far as the study file and the responses tell: never a cause, only a relation."""
    level = config.study.confidence
    results: list[Correlation | None] = []
    means = {name: average.mean for name, average in by_model.items()}
    sizes = {model.name: model.parameters for model in models}
    declared = {model.name: None if model.languages is None else float(model.languages) for model in models}
    results.append(_related("parameters of the model, in billions", "models", sizes, means, level))
    results.append(_related("languages that the model's makers declare", "models", declared, means, level))
    lengths = {tag: _mean_length(cells, tag) for tag in by_language}
    rates = {tag: average.mean for tag, average in by_language.items()}
    results.append(
        _related(f"length of the response, in units ({config.study.unit})", "languages", lengths, rates, level)
    )
    for name, table in config.entries.resources.items():
        results.append(_related(name, "languages", config.by_tag(table), rates, level))
    results += _sizes(models, rated, level)
    return [result for result in results if result is not None]


def _related(
    name: str, of: str, values: dict[str, float | None], rates: dict[str, float | None], level: float
) -> Correlation | None:
    pairs = [(x, rates[key]) for key, x in values.items() if x is not None and rates.get(key) is not None]
    tested = correlate([float(x) for x, _ in pairs], [float(y or 0) for _, y in pairs], confidence=level)
    if tested is None:
        return None
    return Correlation(name, of, tested.r, tested.p, tested.points, tested.method, low=tested.low, high=tested.high)


def _mean_length(cells: Sequence[Cell], tag: str) -> float | None:
    lengths = [cell.length for cell in cells if cell.language == tag and cell.length]
    return sum(lengths) / len(lengths) if lengths else None


def _sizes(models: Sequence[Model], cells: Cells, level: float) -> list[Correlation | None]:
    """The largest against the smallest model of each family (mFAVA, Figure 5a), over its replicates.

    Their means are over the languages in which every replicate of both is reliable, so that they are of the same ones.
    """
    results: list[Correlation | None] = []
    families: dict[str, list[Model]] = {}
    for model in models:
        if model.family is not None and model.parameters is not None:
            families.setdefault(model.family, []).append(model)
    for family, members in families.items():
        members.sort(key=lambda model: model.parameters or 0.0)
        small, large = members[0], members[-1]
        if small.parameters == large.parameters:
            continue
        shared = sorted(_sound_in(cells, small.name) & _sound_in(cells, large.name))
        first, second = (_replicate_means(cells, model.name, shared) for model in (large, small))
        test = t_test(first, second, "student", confidence=level)
        if test is not None:
            where = f"{len(shared)} language{'' if len(shared) == 1 else 's'}"
            name = f"{family}: {large.name} against {small.name} in {where} (standardised difference, Hedges' g)"
            results.append(Correlation(name, "replicates", test.g, test.p, sum(test.counts), _SPREAD))
    return results


def _sound_in(cells: Cells, model: str) -> set[str]:
    """The languages in which every replicate of a model is reliable."""
    return {
        tag
        for (name, tag), rated in cells.items()
        if name == model and rated.replicates and all(rate.status is Reliability.OK for rate in rated.replicates)
    }


def _replicate_means(cells: Cells, model: str, languages: Sequence[str]) -> list[float]:
    """The mean rate over `languages` of each detector and seed that all of them have."""
    rows = [cells[model, tag].replicates for tag in languages]
    keys = {(rate.detector, rate.seed) for row in rows for rate in row}
    means = []
    for key in sorted(keys, key=str):
        values = [
            rate.rate for row in rows for rate in row if (rate.detector, rate.seed) == key and rate.rate is not None
        ]
        if values and len(values) == len(languages):
            means.append(sum(values) / len(values))
    return means
