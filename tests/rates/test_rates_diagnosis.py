"""Studies that should be flagged are, and studies that should not are not: counted over many of each."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np
import pytest
from clustered_texts import profile_with_histograms, with_confidences

from veriglot.rates.estimators import estimate
from veriglot.rates.proportion import Tallies


@dataclass(frozen=True)
class Flagged:
    """Of so many studies, how many were flagged, and for what."""

    studies: int
    count: int
    reasons: str


def flagged(studies: int, *, rate: float = 0.1, texts: int = 100, queries: int = 100, **study: float) -> Flagged:
    """Studies of another world than their profiles': `study` says how its texts differ."""
    draw = np.random.default_rng([int(1000 * rate), texts, queries])
    count, reasons = 0, set()
    for number in range(studies):
        profile = profile_with_histograms(*with_confidences(draw, texts, 0.3))
        found, table = with_confidences(draw, queries, rate, **study)
        given = Tallies(found.tallies.marked, found.tallies.units, np.arange(queries), table.sum(axis=2))
        result = estimate(given, profile, draws=400, seed=number)
        count += bool(result.reasons)
        reasons.update(result.reasons)
    return Flagged(studies, count, "\n".join(sorted(reasons)))


@pytest.mark.parametrize(
    ("rate", "texts", "queries"), [(0.005, 100, 100), (0.1, 100, 100), (0.5, 60, 100), (0.1, 40, 30)]
)
def test_nothing_is_flagged_without_need(rate: float, texts: int, queries: int) -> None:
    found = flagged(40, rate=rate, texts=texts, queries=queries)
    assert found.count <= 2, found.reasons


def test_texts_that_are_very_unlike_each_other_are_no_reason() -> None:
    found = flagged(30, alike=0.5)
    assert found.count <= 2, found.reasons


def test_a_profile_without_confidences_gives_no_mixture() -> None:
    found, table = with_confidences(np.random.default_rng(1), 40, 0.3)
    study = Tallies(found.tallies.marked, found.tallies.units, np.arange(40), table.sum(axis=2))
    bare = msgspec.structs.replace(found.profile, prevalence=None)
    result = estimate(study, bare, estimator="em")
    assert (result.value, result.reasons) == (None, ("the profile has no confidences",))


@pytest.mark.parametrize(("off", "said"), [(-1.5, "fewer units were marked"), (1.5, "distributed unlike")])
def test_a_detector_that_drifted_is_found_out(off: float, said: str) -> None:
    found = flagged(10, rate=0.02, off=off)
    assert found.count == found.studies
    assert said in found.reasons


@pytest.mark.parametrize(
    ("size", "said"),
    [({"texts": 5}, "the profile needs"), ({"queries": 6}, "independent texts or queries, and the study has 6")],
)
def test_too_little_is_always_flagged(size: dict[str, int], said: str) -> None:
    found = flagged(8, **size)
    assert found.count == found.studies
    assert said in found.reasons
