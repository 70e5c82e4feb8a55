"""Curves from confidences to probabilities: what they give, that they never fall, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.detectors.calibration import Isotonic, Platt, apply_curve, logit, lowest_confidence

curves = st.one_of(
    st.builds(Platt, st.floats(0, 5), st.floats(-5, 5)),
    st.lists(st.tuples(st.floats(-9, 9), st.floats(0, 1)), min_size=1, max_size=8, unique_by=lambda one: one[0]).map(
        lambda points: Isotonic(tuple(sorted(at for at, _ in points)), tuple(sorted(value for _, value in points)))
    ),
)


def test_the_identity_is_slope_one_and_offset_nought() -> None:
    confidences = np.array([0.01, 0.3, 0.5, 0.99])
    assert apply_curve(Platt(1.0, 0.0), confidences).tolist() == confidences.tolist()


def test_a_line_by_hand() -> None:
    # logit(0.8) = ln 4, and 0.5 ln 4 + ln 3 = ln 6, of which the probability is 6/7
    assert apply_curve(Platt(0.5, float(np.log(3.0))), np.array([0.8])).tolist() == [0.8571]


def test_a_map_goes_straight_between_its_points_and_flat_beyond() -> None:
    curve = Isotonic((float(logit(np.array([0.2]))[0]), 0.0), (0.1, 0.3))
    halfway = 1.0 / (1.0 + np.exp(-0.5 * logit(np.array([0.2]))[0]))
    assert apply_curve(curve, np.array([0.0, 0.2, halfway, 0.5, 1.0])) == pytest.approx(
        [0.1, 0.1, 0.2, 0.3, 0.3], abs=1e-4
    )


@given(curves, st.floats(0, 1), st.floats(0, 1))
def test_no_curve_falls(curve: Platt | Isotonic, one: float, other: float) -> None:
    low, high = apply_curve(curve, np.array(sorted([one, other]))).tolist()
    assert 0.0 <= low <= high <= 1.0


@given(curves, st.integers(0, 10_000))
def test_the_lowest_confidence_reaches_the_threshold_and_none_below_does(curve: Platt | Isotonic, step: int) -> None:
    threshold = step / 10_000
    found = lowest_confidence(curve, threshold)
    reached = apply_curve(curve, np.array([found, max(0.0, found - 1e-4)])).tolist()
    if reached[0] >= threshold:
        assert found == 0.0 or reached[1] < threshold
    else:
        assert found == 1.0


def test_what_has_no_confidence_stays_without() -> None:
    for curve in (Platt(1.0, 0.0), Isotonic((0.0,), (0.5,))):
        assert np.isnan(apply_curve(curve, np.array([np.nan]))).all()


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        (Platt, (-0.1, 0.0)),
        (Platt, (float("nan"), 0.0)),
        (Isotonic, ((), ())),
        (Isotonic, ((0.0, 0.0), (0.1, 0.2))),
        (Isotonic, ((0.0, 1.0), (0.2, 0.1))),
        (Isotonic, ((0.0,), (1.1,))),
    ],
)
def test_a_curve_that_falls_or_leaves_the_scale_is_refused(kind: type, parts: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match="calibration"):
        kind(*parts)
