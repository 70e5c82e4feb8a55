"""Gamma against pygamma-agreement, the reference implementation, and on cases whose answer is plain."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from veriglot.metrics.agreement import AnnotatorSpans, disorder, expected_disorder

if TYPE_CHECKING:
    from pygamma_agreement import Continuum

# pygamma_agreement compiles itself for half a minute: imported where it is used, and not by every process of a run.


def placed(*spans: tuple[int, int, int]) -> AnnotatorSpans:
    table = np.array(spans, np.int64).reshape(-1, 3)
    return AnnotatorSpans(table[:, :2], table[:, 2])


def drawn(generator: np.random.Generator, length: int = 200) -> AnnotatorSpans:
    starts = generator.choice(length - 20, size=int(generator.integers(0, 6)), replace=False)
    return placed(*[(s, s + int(generator.integers(1, 20)), int(generator.integers(3))) for s in map(int, starts)])


def continuum(annotators: list[AnnotatorSpans], length: int) -> Continuum:
    from pyannote.core import Segment
    from pygamma_agreement import Continuum

    found = Continuum()
    for number, one in enumerate(annotators):
        found.add_annotator(f"a{number}")
        for (start, end), kind in zip(one.spans.tolist(), one.types.tolist(), strict=True):
            found.add(f"a{number}", Segment(start, end), str(kind))
    found.bound_inf, found.bound_sup = 0.0, float(length)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 3, 4, 5])
def test_observed_disorder_is_that_of_pygamma(number: int) -> None:
    from pygamma_agreement import CombinedCategoricalDissimilarity

    logging.disable(logging.WARNING)
    compared = 0
    for seed in range(6):
        generator = np.random.default_rng([number, seed])
        annotators = [drawn(generator) for _ in range(number)]
        if not any(len(one.spans) for one in annotators):
            continue
        theirs = continuum(annotators, 200).get_best_alignment(CombinedCategoricalDissimilarity()).disorder
        assert disorder(annotators) == pytest.approx(float(theirs), rel=1e-4)
        compared += 1
    assert compared >= 4


@pytest.mark.slow
def test_expected_disorder_is_that_of_pygamma_but_for_chance() -> None:
    from pygamma_agreement import CombinedCategoricalDissimilarity, ShuffleContinuumSampler

    logging.disable(logging.WARNING)
    annotators = [placed((5, 15, 0), (40, 60, 1), (100, 104, 0)), placed((6, 15, 0), (90, 104, 2)), placed((44, 50, 1))]
    np.random.seed(3)
    sampler = ShuffleContinuumSampler()
    sampler.init_sampling(continuum(annotators, 200))
    theirs = [
        float(sampler.sample_from_continuum.get_best_alignment(CombinedCategoricalDissimilarity()).disorder)
        for _ in range(60)
    ]
    ours = expected_disorder(annotators, 200, np.random.default_rng(3), 3000)
    error = np.std(theirs) / math.sqrt(60)
    assert abs(ours - np.mean(theirs)) < 2.2 * error  # theirs takes half a second a draw


def test_agreement_without_a_difference_has_no_disorder() -> None:
    one = placed((3, 9, 0), (20, 25, 1))
    assert disorder([one, one]) == disorder([one, one, one]) == 0


def test_a_span_of_one_annotator_alone_costs_as_much_as_no_span() -> None:
    assert disorder([placed((3, 9, 0)), placed()]) == pytest.approx(2.0)  # cost 1, half a span an annotator
    far = [placed((3, 9, 0)), placed((100, 130, 0))]
    assert disorder(far) == pytest.approx(2.0)  # two spans alone, one span an annotator


def test_type_counts_as_much_as_place() -> None:
    same, other = placed((10, 20, 0)), placed((10, 20, 1))
    assert disorder([same, other]) == pytest.approx(1.0)
    shifted = placed((10, 30, 0))
    assert disorder([same, shifted]) == pytest.approx((10 / 30) ** 2)


def test_chance_is_the_same_for_the_same_seed() -> None:
    annotators = [placed((5, 15, 0), (40, 60, 1)), placed((6, 15, 0))]
    first, again, other = (expected_disorder(annotators, 99, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == again != other
