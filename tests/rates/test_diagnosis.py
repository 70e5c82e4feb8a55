"""What the data cannot support is said, in words, and beside the number."""

from __future__ import annotations

import numpy as np
import pytest
from clustered_texts import texts

from veriglot.rates.estimators import coverage_findings, drift_findings, estimate, label_findings, range_findings
from veriglot.rates.proportion import FEWEST_CLUSTERS, Tallies
from veriglot.records import Confusion, LanguageProfile, Reliability

DRAW = np.random.default_rng(11)
PROFILE = texts(DRAW, 200, 0.3).profile
STUDY = texts(DRAW, 300, 0.1).tallies


def reasons(tallies: Tallies, profile: LanguageProfile | None = PROFILE, **options: object) -> str:
    found = estimate(tallies, profile, **options)  # type: ignore[arg-type]
    assert (found.status is Reliability.UNRELIABLE) == bool(found.reasons)
    return "; ".join(found.reasons)


def flat(share: float, count: int = 100) -> Tallies:
    return Tallies(np.full(count, round(1000 * share)), np.full(count, 1000), np.arange(count))


def test_a_plain_study_has_no_findings() -> None:
    assert reasons(STUDY) == ""


def test_a_detector_that_cannot_tell_is_no_ground_for_a_rate() -> None:
    blind = texts(np.random.default_rng(1), 300, 0.3, tpr=0.3, fpr=0.28).profile
    found = estimate(STUDY, blind)
    assert any("hardly tells unsupported" in reason for reason in found.reasons)
    assert found.status is Reliability.UNRELIABLE
    assert found.low is None or (found.low, found.high) == (pytest.approx(0, abs=0.05), pytest.approx(1, abs=0.05))


def test_a_detector_that_is_wrong_more_often_than_not_gives_no_number() -> None:
    upside_down = texts(np.random.default_rng(2), 300, 0.3, tpr=0.1, fpr=0.6).profile
    found = estimate(STUDY, upside_down)
    assert found.value is None
    assert found.status is Reliability.UNRELIABLE


def test_fewer_marks_than_false_alarms_alone_would_give() -> None:
    assert "fewer units were marked" in reasons(flat(0.005))
    found = estimate(flat(0.005), PROFILE)
    assert (found.value, found.low) == (0.0, 0.0), "the number is kept, inside the range that a share has"


def test_more_marks_than_hits_alone_would_give() -> None:
    assert "more units were marked" in reasons(flat(0.95))
    assert estimate(flat(0.95), PROFILE).value == 1.0


def test_zero_within_noise_is_no_finding() -> None:
    draw = np.random.default_rng(3)
    alarms = 0
    for number in range(200):
        study = texts(draw, 100, 1e-6).tallies
        found = estimate(study, texts(draw, 100, 0.3).profile, draws=400, seed=number)
        alarms += bool(found.reasons)
        assert found.low == 0.0 or found.reasons or found.low < 0.02
    assert alarms <= 16, "the one-sided level is 2.5%"


@pytest.mark.parametrize("count", [1, FEWEST_CLUSTERS - 1])
def test_too_few_texts_in_the_study(count: int) -> None:
    few = texts(np.random.default_rng(4), count, 0.2).tallies
    said = f"independent texts or queries, and the study has {count}"
    assert said in reasons(few)
    again = Tallies.join([few] * 20)
    assert said in reasons(again), "twenty responses to a query are one query"


def test_too_few_texts_in_the_profile() -> None:
    few = texts(np.random.default_rng(5), FEWEST_CLUSTERS - 1, 0.3).profile
    assert f" in {FEWEST_CLUSTERS - 1}" in reasons(STUDY, few)


def test_a_profile_without_unsupported_units() -> None:
    clean = LanguageProfile.of([Confusion(0, 1, 0, 99)] * 50)
    found = estimate(STUDY, clean)
    assert found.value is None
    assert any("0 unsupported units" in reason for reason in found.reasons)


def test_no_units() -> None:
    nothing = Tallies.join([])
    found = estimate(nothing, PROFILE)
    assert (found.value, found.low, found.high, found.reasons) == (None, None, None, ("no unit was judged",))
    assert np.isnan(found.draws).all()


def test_what_was_not_judged_is_a_finding_and_the_number_is_kept() -> None:
    whole, part = estimate(STUDY, PROFILE), estimate(STUDY, PROFILE, coverage=0.5)
    assert part.value == whole.value
    assert part.status is Reliability.UNRELIABLE
    assert "only 50% of the responses were judged" in part.reasons[0]
    assert coverage_findings(0.8) == []


def test_several_findings_stand_side_by_side() -> None:
    few = texts(np.random.default_rng(6), 3, 0.2).tallies
    assert len(estimate(few, PROFILE, coverage=0.1).reasons) == 2


def test_raw_shares_need_nothing_of_the_profile() -> None:
    blind = texts(np.random.default_rng(1), 300, 0.3, tpr=0.3, fpr=0.28).profile
    assert reasons(STUDY, blind, estimator="raw") == ""


def test_the_bounds_themselves() -> None:
    assert drift_findings(0.3, 0.25) == []
    assert "by 26 points to either side" in drift_findings(0.3, 0.26)[0]
    assert len(drift_findings(0.31, 0.05)) == 1
    assert label_findings(8, 8, 8) == []
    assert len(label_findings(20, 3, 20)) == 1
    assert "has 3 (of 20)" in label_findings(20, 3, 20)[0]
    assert range_findings(-0.1, np.full(10, np.nan)) == []
    assert range_findings(0.5, np.full(10, 0.5)) == []
