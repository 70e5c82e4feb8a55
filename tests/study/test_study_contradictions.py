"""Rates of one cell that exclude each other, or its labels, are never both reliable."""

from __future__ import annotations

from itertools import combinations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veriglot.pipeline.engine import Description
from veriglot.rates.estimators import estimate
from veriglot.rates.proportion import Labels, Tallies
from veriglot.records import Confusion, DataSource, ErrorProfile, Estimator, LanguageProfile, Rate, Reliability
from veriglot.study.config import StudyEntry
from veriglot.study.rates import (
    CONTRADICTS,
    CellCounts,
    ProfiledDetector,
    _labels_needed,
    _without_contradictions,
    cell_rates,
    contradictions,
    replicates,
)

BINS = 20


def profile(draw: np.random.Generator, tpr: float, fpr: float) -> ErrorProfile:
    texts = [
        Confusion(int(tp), int(fp), int(20 - tp), int(40 - fp))
        for tp, fp in zip(draw.binomial(20, tpr, 60), draw.binomial(40, fpr, 60), strict=True)
    ]
    histograms = [[(15, row.tp, row.fp), (3, row.fn, row.tn)] for row in texts]
    language = LanguageProfile.of(texts, histograms=histograms)
    return ErrorProfile("word", 0.5, "d@1", {"es": language}, language, DataSource("0" * 64, "gold"), "x")


def cell(seed: int, marked: float, unsupported: float, labelled: int, tpr: float = 0.7, fpr: float = 0.1) -> CellCounts:
    draw = np.random.default_rng(seed)
    n, size = 80, 40
    marks = draw.binomial(size, draw.beta(4 * marked, 4 * (1 - marked), n))
    table = np.zeros((n, BINS), dtype=np.int64)
    table[:, 15], table[:, 3] = marks, size - marks
    tallies = Tallies(marks, np.full(n, size), np.arange(n), table)
    labels = Labels(draw.binomial(size, unsupported, labelled), np.arange(labelled)) if labelled else None
    judging = ProfiledDetector(Description("d@1", "", 0.5, "d@1"), profile(draw, tpr, fpr), StudyEntry(draws=400))
    return CellCounts("m", "es", judging, {None: tallies}, labels, {None: n})


def disjoint(first: tuple[float | None, float | None], second: tuple[float | None, float | None]) -> bool:
    ends = [*first, *second]
    assert None not in ends
    return ends[1] < ends[2] or ends[3] < ends[0]  # type: ignore[operator]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10_000),
    st.floats(0.05, 0.95),
    st.floats(0.05, 0.95),
    st.sampled_from([0, 10, 40]),
    st.floats(0.4, 0.95),
    st.floats(0.01, 0.2),
)
def test_no_two_reliable_rates_are_disjoint(
    seed: int, marked: float, unsupported: float, labelled: int, tpr: float, fpr: float
) -> None:
    counted = cell(seed, marked, unsupported, labelled, tpr, fpr)
    estimators = [each for each in Estimator if labelled or each is not Estimator.PPI]
    rates = [made.rate for made in cell_rates([counted], estimators)]
    reliable = [rate for rate in rates if rate.status is Reliability.OK]
    for first, second in combinations(reliable, 2):
        assert not disjoint((first.low, first.high), (second.low, second.high))
    if counted.labels is not None:
        gold = Tallies(counted.labels.unsupported, np.full(labelled, 40), np.arange(labelled))
        by_labels = estimate(gold, estimator="raw")
        for rate in reliable:
            assert not disjoint((rate.low, rate.high), (by_labels.low, by_labels.high))


def by_name(counted: CellCounts, *estimators: Estimator) -> dict[Estimator, Rate]:
    return {made.rate.estimator: made.rate for made in cell_rates([counted], estimators)}


def test_a_rate_that_its_labels_exclude_says_what_to_do() -> None:
    rates = by_name(cell(1, 0.15, 0.45, 40), Estimator.LABEL_SHIFT, Estimator.PPI)
    shift, ppi = rates[Estimator.LABEL_SHIFT], rates[Estimator.PPI]
    assert (shift.status, ppi.status) == (Reliability.UNRELIABLE, Reliability.OK)
    (reason,) = contradictions(shift)
    assert reason.startswith(f"{CONTRADICTS} the labels of these responses, 4")
    assert "so quote ppi (about " in reason
    assert "labels in Spanish, drawn at random" in reason


def test_the_rate_that_assumes_more_gives_way() -> None:
    rates = by_name(cell(2, 0.45, 0.4, 0), Estimator.LABEL_SHIFT, Estimator.RAW)
    assert rates[Estimator.LABEL_SHIFT].status is Reliability.OK
    low = by_name(cell(3, 0.12, 0.4, 0), Estimator.LABEL_SHIFT, Estimator.RAW, Estimator.PAPER)
    assert low[Estimator.LABEL_SHIFT].status is Reliability.OK
    assert "so quote label-shift" in (low[Estimator.RAW].reason or "")


def test_of_two_rates_that_assume_as_much_both_give_way() -> None:
    counted = cell(4, 0.31, 0.35, 0)
    shift, mixture = cell_rates([counted], [Estimator.LABEL_SHIFT, Estimator.EM])
    far = mixture._replace(rate=msgspec.structs.replace(mixture.rate, rate=0.9, low=0.85, high=0.95))
    (first,), (second,) = (contradictions(made.rate) for made in _without_contradictions([shift, far], [counted]))
    end = "the detector errs differently here than in its profile, so label some and quote ppi (about"
    end += f" {_labels_needed([counted], 0.9):,} labels in Spanish, drawn at random, give 5 points to either side)"
    assert first.startswith(f"{CONTRADICTS} em, 90.0% [85.0, 95.0]: {end}")
    assert second.startswith(f"{CONTRADICTS} label-shift, ")
    assert "so label some and quote ppi (about " in second


def test_replicates_follow_the_rate_of_all_seeds() -> None:
    counted = cell(1, 0.15, 0.45, 40)
    made = cell_rates([counted], [Estimator.LABEL_SHIFT])
    assert all(contradictions(rate) for rate in replicates([counted], Estimator.LABEL_SHIFT, made))
    assert not any(contradictions(rate) for rate in replicates([counted], Estimator.LABEL_SHIFT))


@pytest.mark.parametrize("labelled", [0, 40])
def test_rates_that_agree_have_no_contradiction(labelled: int) -> None:
    rates = by_name(cell(4, 0.31, 0.35, labelled), Estimator.LABEL_SHIFT, Estimator.EM)
    assert not any(contradictions(rate) for rate in rates.values())
