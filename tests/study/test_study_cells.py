"""Rates of one model in one language: of several detectors together, and of one whose calls failed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from veriglot.pipeline.engine import Description
from veriglot.rates.proportion import Tallies
from veriglot.records import Confusion, DataSource, ErrorProfile, Estimator, LanguageProfile, Reliability
from veriglot.study.config import StudyEntry
from veriglot.study.rates import CellCounts, ProfiledDetector, cell_rates, replicates

DRAW = np.random.default_rng(3)
STUDY = StudyEntry(draws=400)


def profile(detector: str, threshold: float, language: str = "de") -> ErrorProfile:
    rows = [Confusion(8 + number % 3, 2 + number % 2, 3, 40) for number in range(40)]
    measured = LanguageProfile.of(rows)
    return ErrorProfile("word", threshold, detector, {language: measured}, measured, DataSource("0", "gold"), "made")


def counted(detector: str, threshold: float, given: dict[int | None, int], language: str = "de") -> CellCounts:
    seeds: dict[int | None, Tallies] = {}
    for seed in (1, 2):
        units = DRAW.integers(30, 60, 40)
        seeds[seed] = Tallies(DRAW.binomial(units, 0.2), units, np.arange(40))
    judging = ProfiledDetector(
        Description(detector, "", threshold, detector), profile(detector, threshold, language), STUDY
    )
    return CellCounts("kiln", "de", judging, seeds, None, given)


BOTH: dict[int | None, int] = {1: 40, 2: 40}


def test_the_signature_of_a_mean_names_every_detector_threshold_and_profile() -> None:
    parts = [counted("first@1", 0.5, BOTH), counted("second@2", 0.3, BOTH)]
    line = cell_rates(parts, [Estimator.LABEL_SHIFT])[0].rate.signature
    stated = dict(part.split(":", 1) for part in line.split("|"))
    assert (stated["mean_of"], stated["detector"], stated["threshold"]) == ("2", "first@1+second@2", "0.5+0.3")
    assert stated["profile"] == "+".join(str(part.detector.profile_hash) for part in parts)
    assert (stated["estimator"], stated["draws"]) == ("label-shift", "400")


def test_a_mean_of_which_one_detector_gives_no_rate_is_none_and_says_so() -> None:
    parts = [counted("first@1", 0.5, BOTH), counted("second@2", 0.3, BOTH, language="fr")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = cell_rates(parts, [Estimator.LABEL_SHIFT])[0]
    assert (made.rate.rate, made.rate.status) == (None, Reliability.UNRELIABLE)
    assert made.rate.reason == "second@2: the error profile does not hold this language"
    assert np.isnan(made.draws).all()


def test_an_estimator_that_lacks_confidences_says_so() -> None:
    made = cell_rates([counted("first@1", 0.5, BOTH)], [Estimator.EM])[0]
    assert (made.rate.rate, made.rate.reason) == (None, "the predictions have no confidence of every word")


def test_coverage_is_of_what_was_asked_for_by_seed() -> None:
    one = counted("first@1", 0.5, {1: 40, 2: 60, 3: 20})
    assert cell_rates([one], [Estimator.RAW])[0].rate.coverage == pytest.approx(80 / 120)
    found = replicates([one], Estimator.RAW)
    assert [(rate.seed, rate.coverage) for rate in found] == [(1, 1.0), (2, pytest.approx(40 / 60))]
    assert [rate.status for rate in found] == [Reliability.OK, Reliability.UNRELIABLE]
    assert "only 67% of the responses were judged" in str(found[1].reason)
