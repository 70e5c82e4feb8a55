"""Texts whose truth is known: what a detector of known errors says of the words of clustered responses.

Every query has its own share of unsupported words (a Beta distribution around the true rate) and its own difficulty:
the detector's confidence of a word is a logistic function of a normal variable, part of which is the same for all words
of a kind in the responses to one query. The rates at which words are marked, averaged over queries, are then exactly
`tpr` and `fpr` whatever the difficulty does, and the confidences have the distributions that a calibration would meet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from veriglot.rates.proportion import Tallies
from veriglot.records import CONFIDENCE_BINS, Confusion, LanguageProfile

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Counts = NDArray[np.int64]

MARKED_FROM = CONFIDENCE_BINS // 2  # bin of the confidence 0.5
_GRID = np.linspace(-9.0, 9.0, 18_001)
_BELOW = np.array([NormalDist().cdf(value) for value in _GRID])
_STEEPNESS = 2.0  # confidence = 1 / (1 + exp(-_STEEPNESS x normal variable))
_SHARES = np.arange(1, CONFIDENCE_BINS) / CONFIDENCE_BINS
_EDGES = np.concatenate([[-np.inf], np.log(_SHARES / (1.0 - _SHARES)) / _STEEPNESS, [np.inf]])


@dataclass(frozen=True)
class World:
    """What is true.

    Attributes:
        rate: share of unsupported words, in expectation.
        tpr, fpr: share of unsupported and of supported words that the detector marks.
        alike: correlation of words of one query in being unsupported, between 0 and 1.
        difficulty: correlation of the detector's confidences of like words of one query, between 0 and 1.
        words: mean words of a response, whose lengths vary by `spread` (coefficient of variation).
        spread_of_confidence: of the normal variable, around a middle that keeps `tpr` and `fpr`: more makes the
            confidences bolder.
        lookalike: share of supported words whose confidences are those of unsupported ones, on top of `fpr`.
        hard: share of words of either kind that the detector takes for the other kind two times in five.
        rough: standard deviation of what moves the log share of each bin of confidence, from a seed of its own.
        tail: degrees of freedom of the variable where it is Student's t and not normal; 0 where it is normal.
    """

    rate: float
    tpr: float = 0.75
    fpr: float = 0.06
    alike: float = 0.15
    difficulty: float = 0.15
    words: int = 60
    spread: float = 0.4
    spread_of_confidence: float = 1.0
    lookalike: float = 0.0
    hard: float = 0.0
    rough: tuple[float, int] = (0.0, 0)
    tail: int = 0

    def apart(self, by: float, generator: Generator) -> World:
        """A detector whose errors differ from this one's by so many standard deviations of the variable."""

        def moved(share: float) -> float:
            return NormalDist().cdf(NormalDist().inv_cdf(share) + generator.normal(0.0, by))

        spread = self.spread_of_confidence * math.exp(generator.normal(0.0, by))
        hard = min(0.6, self.hard * math.exp(generator.normal(0.0, 4.0 * by)))
        tpr, fpr, rough = moved(self.tpr), moved(self.fpr), self.rough
        if rough[0]:  # only bin by bin
            tpr, fpr, spread, rough = self.tpr, self.fpr, self.spread_of_confidence, (2.0 * by, rough[1])
        rough = (rough[0], int(generator.integers(2**31)))
        return replace(self, tpr=tpr, fpr=fpr, spread_of_confidence=spread, hard=hard, rough=rough)

    def measured(self, texts: int, generator: Generator, *, rate: float = 0.3) -> LanguageProfile:
        """The profile that labels of people give, of so many texts of another rate."""
        told = replace(self, rate=rate).told(texts, 1, generator)
        marked = (told.unsupported[:, MARKED_FROM:].sum(axis=1), told.supported[:, MARKED_FROM:].sum(axis=1))
        missed = (told.unsupported.sum(axis=1) - marked[0], told.supported.sum(axis=1) - marked[1])
        return LanguageProfile.of(
            (Confusion(*map(int, row)) for row in np.stack([*marked, *missed], axis=1)),
            histograms=[
                [(place, *pair) for place, pair in enumerate(zip(*rows, strict=True)) if any(pair)]
                for rows in zip(told.unsupported.tolist(), told.supported.tolist(), strict=True)
            ],
        )

    def told(self, queries: int, responses: int, generator: Generator) -> Told:
        """What the detector says of `responses` responses to each of `queries` queries."""
        cluster = np.repeat(np.arange(queries), responses)
        units = 1 + generator.poisson(generator.gamma(self.spread**-2, self.words * self.spread**2, len(cluster)))
        shape = (1.0 - self.alike) / self.alike
        rates = generator.beta(self.rate * shape, (1.0 - self.rate) * shape, queries)[cluster]
        unsupported = generator.binomial(units, rates)
        bins = self._bins(self.tpr, queries, generator)[cluster]
        others = self._bins(self.fpr, queries, generator)[cluster] * (1.0 - self.lookalike) + bins * self.lookalike
        return Told(
            cluster, generator.multinomial(unsupported, bins), generator.multinomial(units - unsupported, others)
        )

    def _bins(self, marked: float, queries: int, generator: Generator) -> Array:
        """For each query, the distribution over confidences of words of which a share `marked` is, shape `(q, 20)`."""
        distribution = _BELOW if not self.tail else _student(self.tail)
        if self.hard and marked not in {0.4, 0.6}:
            hard = replace(self, hard=0.0)
            share = 0.6 if marked == self.tpr else 0.4
            return (1.0 - self.hard) * hard._bins(marked, queries, generator) + self.hard * hard._bins(
                share, queries, generator
            )
        middle = float(np.interp(marked, distribution, _GRID)) * self.spread_of_confidence
        shared = generator.standard_normal((queries, 1)) * self.spread_of_confidence * self.difficulty**0.5
        own = self.spread_of_confidence * (1.0 - self.difficulty) ** 0.5
        below: Array = np.interp((_EDGES - middle - shared) / own, _GRID, distribution)
        found: Array = np.diff(below, axis=1)
        if self.rough[0]:
            seed = [self.rough[1], int(marked * 1e6)]
            found *= np.exp(np.random.default_rng(seed).normal(0.0, self.rough[0], CONFIDENCE_BINS))
        found /= found.sum(axis=1, keepdims=True)
        return found


@lru_cache
def _student(freedom: int) -> Array:
    """Student's t at the grid, by its density; 9 standard deviations hold nearly all of it."""
    density = (1.0 + _GRID**2 / freedom) ** (-(freedom + 1) / 2)
    below: Array = (np.cumsum(density) - density / 2.0) / density.sum()
    return below


@dataclass(frozen=True)
class Told:
    """Words of each response by confidence, each of shape `(n, 20)`; `cluster` is the query, shape `(n,)`."""

    cluster: Counts
    unsupported: Counts
    supported: Counts

    @property
    def tallies(self) -> Tallies:
        """All that an estimator may see."""
        both = self.unsupported + self.supported
        return Tallies(both[:, MARKED_FROM:].sum(axis=1), both.sum(axis=1), self.cluster, both)
