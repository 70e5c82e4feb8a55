"""TPR and FPR of a profile with their uncertainty."""

from __future__ import annotations

import numpy as np
import pytest
from clustered_texts import texts

from veriglot.rates.proportion import detector_rates
from veriglot.records import Confusion, LanguageProfile


def test_rates_are_the_ratios_of_the_sums() -> None:
    profile = LanguageProfile.of([Confusion(8, 1, 2, 9), Confusion(0, 3, 10, 47)])
    found = detector_rates(profile, seed=0, draws=50)
    assert found.tpr is not None
    assert found.fpr is not None
    assert found.prevalence is not None
    assert (found.tpr.value, found.fpr.value, found.prevalence.value) == (profile.tpr, profile.fpr, profile.prevalence)
    assert found.tpr_draws.shape == found.fpr_draws.shape == found.prevalence_draws.shape == (50,)


@pytest.mark.parametrize(("hits", "alarms", "sign"), [((2, 8), (1, 9), 1), ((2, 8), (9, 1), -1)])
def test_what_varies_together_is_drawn_together(hits: tuple[int, int], alarms: tuple[int, int], sign: int) -> None:
    rows = [Confusion(hit, alarm, 10 - hit, 40 - alarm) for hit, alarm in zip(hits, alarms, strict=True)] * 20
    found = detector_rates(LanguageProfile.of(rows), seed=0, draws=4000)
    assert sign * np.corrcoef(found.tpr_draws, found.fpr_draws)[0, 1] > 0.9


def test_what_varies_apart_is_drawn_apart() -> None:
    rows = [Confusion(hit, alarm, 10 - hit, 40 - alarm) for hit in (2, 8) for alarm in (1, 9)] * 10
    found = detector_rates(LanguageProfile.of(rows), seed=0, draws=4000)
    assert abs(np.corrcoef(found.tpr_draws, found.fpr_draws)[0, 1]) < 0.06


def test_draws_are_as_wide_as_profiles_differ() -> None:
    draw = np.random.default_rng(1)
    profiles = [texts(draw, 60, 0.3, hard=0.15).profile for _ in range(300)]
    found = [detector_rates(profile, seed=0, draws=400) for profile in profiles]
    for name in ("tpr", "fpr"):
        between = np.std([getattr(each, name).value for each in found])
        within = np.mean([getattr(each, f"{name}_draws").std() for each in found])
        assert 0.95 < within / between < 1.25, "a little wider: the error is itself estimated"


def test_responses_of_one_text_are_one() -> None:
    draw = np.random.default_rng(2)
    once = texts(draw, 40, 0.3).profile
    again = LanguageProfile.of([row for row in once.responses for _ in range(4)],
                               clusters=[place for place in range(40) for _ in range(4)])  # fmt: skip
    apart = LanguageProfile.of([row for row in once.responses for _ in range(4)])
    spreads = [detector_rates(each, seed=0, draws=4000).tpr_draws.std() for each in (once, again, apart)]
    assert spreads[1] == pytest.approx(spreads[0], rel=0.1)
    assert spreads[2] < 0.7 * spreads[0]


def test_draws_depend_on_the_counts_and_the_seed_alone() -> None:
    draw = np.random.default_rng(3)
    profile = texts(draw, 30, 0.3).profile
    same = LanguageProfile.of(profile.responses)
    first, second = (detector_rates(each, seed=1, draws=100) for each in (profile, same))
    assert first.tpr_draws.tobytes() == second.tpr_draws.tobytes()
    other = detector_rates(profile, seed=2, draws=100)
    assert first.tpr_draws.tobytes() != other.tpr_draws.tobytes()


def test_a_kind_that_the_profile_lacks_has_no_rate() -> None:
    found = detector_rates(LanguageProfile.of([Confusion(0, 1, 0, 9)] * 10), seed=0, draws=20)
    assert found.tpr is None
    assert found.tpr_draws.shape == (0,)
    assert found.fpr is not None
    assert found.fpr_draws.shape == (20,)
    nothing = detector_rates(LanguageProfile.of([]), seed=0, draws=20)
    assert (nothing.tpr, nothing.fpr, nothing.prevalence) == (None, None, None)
