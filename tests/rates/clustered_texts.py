"""Texts whose truth is known, as a detector of known errors would judge them: what estimators are tested on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.rates.proportion import Labels, Tallies
from veriglot.records import CONFIDENCE_BINS, Confusion, LanguageProfile

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]


def shares(draw: Generator, mean: float, alike: float, count: int) -> NDArray[np.float64]:
    """Shares of `count` texts around `mean`; `alike` is the correlation of units of one text."""
    size = (1.0 - alike) / alike
    return draw.beta(mean * size, (1.0 - mean) * size, count)


@dataclass(frozen=True)
class Texts:
    """Counts of units of each text, each of shape `(n,)`."""

    tp: Counts
    fp: Counts
    fn: Counts
    tn: Counts

    @property
    def tallies(self) -> Tallies:
        return Tallies(self.tp + self.fp, self.tp + self.fp + self.fn + self.tn, np.arange(len(self.tp)))

    @property
    def profile(self) -> LanguageProfile:
        rows = np.stack([self.tp, self.fp, self.fn, self.tn], axis=1)
        return LanguageProfile.of(Confusion(*map(int, row)) for row in rows)

    def labels(self, places: Counts) -> Labels:
        return Labels((self.tp + self.fn)[places], places)


def texts(
    draw: Generator, count: int, rate: float, *, tpr: float = 0.7, fpr: float = 0.05, alike: float = 0.15,
    hard: float = 0.05, words: int = 80,
) -> Texts:  # fmt: skip
    """`count` texts in which a share `rate` of units is unsupported; `hard` is how much detection differs by text."""
    units = np.maximum(5, draw.lognormal(np.log(words), 0.5, count).astype(np.int64))
    unsupported = draw.binomial(units, shares(draw, rate, alike, count))
    tp = draw.binomial(unsupported, shares(draw, tpr, hard, count))
    fp = draw.binomial(units - unsupported, shares(draw, fpr, hard, count))
    return Texts(tp, fp, unsupported - tp, units - unsupported - fp)


def with_confidences(
    draw: Generator, count: int, rate: float, *, alike: float = 0.15, hard: float = 0.7, off: float = 0.0
) -> tuple[Texts, Counts]:
    """Texts with units by confidence and kind, shape `(n, 20, 2)`; a unit is marked from 0.5.

    The logit of a confidence is normal around 1 for unsupported units and -3 for supported ones; texts move all of
    theirs by `hard` standard deviations, and `off` moves every one: a detector that is not the profile's any more.
    """
    units = np.maximum(5, draw.lognormal(np.log(60), 0.5, count).astype(np.int64))
    unsupported = draw.binomial(units, shares(draw, rate, alike, count))
    table = np.zeros((count, CONFIDENCE_BINS, 2), dtype=np.int64)
    for place, shift in enumerate(draw.normal(off, hard, count)):
        for kind, (size, middle) in enumerate(((unsupported[place], 1.0), (units[place] - unsupported[place], -3.0))):
            confidence = 1.0 / (1.0 + np.exp(-(middle + shift + 1.5 * draw.standard_normal(size))))
            bins = np.minimum((confidence * CONFIDENCE_BINS).astype(np.int64), CONFIDENCE_BINS - 1)
            table[place, :, kind] = np.bincount(bins, minlength=CONFIDENCE_BINS)
    marked, left = table[:, CONFIDENCE_BINS // 2 :].sum(axis=1), table[:, : CONFIDENCE_BINS // 2].sum(axis=1)
    return Texts(marked[:, 0], marked[:, 1], left[:, 0], left[:, 1]), table


def profile_with_histograms(found: Texts, table: Counts) -> LanguageProfile:
    """The profile that labels of these texts give."""
    rows = np.stack([found.tp, found.fp, found.fn, found.tn], axis=1)
    return LanguageProfile.of(
        (Confusion(*map(int, row)) for row in rows),
        histograms=[
            [(place, int(cell[0]), int(cell[1])) for place, cell in enumerate(text) if cell.any()] for text in table
        ],
    )
