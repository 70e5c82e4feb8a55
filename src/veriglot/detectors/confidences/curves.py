"""Curves from what a detector says to how often it is right: Platt's line, and a monotone step-free map.

A curve never falls, so that calibrating changes no ranking inside one script.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from veriglot.detectors.grounding.calibration import sigmoid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["DIGITS", "Curve", "Isotonic", "Platt", "curved", "logit", "lowest"]

DIGITS = 4  # of a confidence, before a curve and after it
_EDGE = 0.5 * 10.0**-DIGITS  # confidences of 0 and 1, which have no logit, count as half a step from there


class Platt(msgspec.Struct, frozen=True, tag_field="kind", tag="platt"):
    """A probability as the logistic function of `slope * logit + offset` (Platt 1999); the slope is not negative."""

    slope: float
    offset: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.slope < float("inf"):
            raise ValueError(f"a calibration never falls, but the slope of this one is {self.slope}")


class Isotonic(msgspec.Struct, frozen=True, tag_field="kind", tag="isotonic"):
    """A probability by straight lines between points (Zadrozny and Elkan 2002); flat before and after them.

    Attributes:
        logits: where the points lie, rising.
        values: the probability at each, never falling.
    """

    logits: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.logits or len(self.logits) != len(self.values):
            raise ValueError("an isotonic calibration has one value for each of its points, and at least one point")
        if list(self.logits) != sorted(set(self.logits)) or list(self.values) != sorted(self.values):
            raise ValueError("the points of an isotonic calibration rise, and its values never fall")
        if not 0.0 <= self.values[0] <= self.values[-1] <= 1.0:
            raise ValueError("the values of a calibration lie between 0 and 1")


Curve = Platt | Isotonic


def logit(confidences: Array) -> Array:
    """The log odds of confidences from 0 to 1, rounded to `DIGITS` and kept from the ends; NaN stays NaN."""
    kept = np.clip(np.round(confidences, DIGITS), _EDGE, 1.0 - _EDGE)
    odds: Array = np.log(kept / (1.0 - kept))
    return odds


def curved(curve: Curve, confidences: Array) -> Array:
    """Calibrated probabilities, rounded to `DIGITS`, of the same shape; NaN stays NaN."""
    found = logit(confidences)
    if isinstance(curve, Platt):
        return np.round(sigmoid(curve.slope * found + curve.offset), DIGITS)
    values: Array = np.interp(found, curve.logits, curve.values)
    values[np.isnan(found)] = np.nan
    return np.round(values, DIGITS)


def lowest(curve: Curve, threshold: float) -> float:
    """The lowest confidence, of `DIGITS` digits, that a curve takes to a threshold or above; 1.0 where none is."""
    grid = np.linspace(0.0, 1.0, 10**DIGITS + 1)
    reached = np.flatnonzero(curved(curve, grid) >= threshold)
    return float(np.round(grid[reached[0]], DIGITS)) if len(reached) else 1.0
