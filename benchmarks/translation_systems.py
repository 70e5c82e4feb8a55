"""What is held against the labels of translations: detectors, scorers and chance, in one shape.

A system gives numbers a translation, by the name of how they are read; higher is worse, NaN is not scored. A detector
is read in three ways: its score, the confidence of its most suspect word, and the mean confidence of its words.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.registry import load_detector
from veriglot.records import Direction, Status
from veriglot.scorers.registry import load_scorer
from veriglot.training.grounding.examples import share_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.records import Detector, Prediction, Sample, Score, Scorer

    Array = NDArray[np.float64]

CHANCE, LENGTH = "chance", "length-ratio"


class LengthTuned:
    """The length ratio, with the median of the development half as what is usual between two languages.

    Our table of usual ratios is of one kind of text; a data set is of another, and this is the stronger baseline.
    """

    name = "length-ratio@1, usual ratio of the development half"
    direction = Direction.HIGHER_IS_WORSE
    signature = name

    def __init__(self, development: Sequence[Sample]) -> None:
        ratios: dict[tuple[str | None, str | None], list[float]] = defaultdict(list)
        for sample, score in zip(development, load_scorer(LENGTH, usual=1.0).score(development), strict=True):
            ratios[self._pair(sample)].append(score.parts["ratio"])
        self._scorers = {pair: load_scorer(LENGTH, usual=float(np.median(values))) for pair, values in ratios.items()}

    def score(self, samples: Sequence[Sample]) -> list[Score]:
        """One score a sample."""
        return [self._scorers[self._pair(sample)].score([sample])[0] for sample in samples]

    def _pair(self, sample: Sample) -> tuple[str | None, str | None]:
        return sample.evidence[0].language, sample.language


@dataclass
class Said:
    """What a system said of some translations.

    Attributes:
        values: how it is read to one number each, shape (n,).
        words: its words with their confidence, or None where it has none.
        statuses: how many were scored, or why not.
    """

    values: dict[str, Array]
    words: list[list[tuple[int, int, float]] | None]
    statuses: Counter[str] = field(default_factory=Counter)


@dataclass
class System:
    """A detector, a scorer, or chance.

    Attributes:
        name: as it is asked for.
        source: what judges; a seed for chance.
        judged: translations that it was given.
        seconds: of CPU that it took.
        unscored: how many of them were not scored, by status.
    """

    name: str
    source: Detector | Scorer | int
    judged: int = 0
    seconds: float = 0.0
    unscored: Counter[str] = field(default_factory=Counter)

    def tuned(self, development: Sequence[Sample]) -> System:
        """The system as it is used on a set: of the length ratio, what is usual is taken from the development half."""
        if self.name != LENGTH:
            return System(self.name, self.source)
        return System(self.name, LengthTuned(development))

    def count(self, other: System) -> None:
        """Add what another one did."""
        self.judged, self.seconds = self.judged + other.judged, self.seconds + other.seconds

    def say(self, samples: Sequence[Sample]) -> Said:
        """Judge translations."""
        start = time.process_time()
        if isinstance(self.source, int):
            said = by_chance(samples, self.source)
        elif hasattr(self.source, "predict"):
            said = by_detector(self.source.predict(samples))
        else:
            said = by_scorer(self.source, samples)
        self.seconds += time.process_time() - start
        self.judged += len(samples)
        self.unscored.update({status: n for status, n in said.statuses.items() if status != Status.SCORED})
        return said


def systems(detectors: Sequence[str], seed: int) -> list[System]:
    """The detectors of those names, then what they are held against.

    TopNGram is there as the papers have it (1 or 0) and as a ranking (how much is repeated more often than in the
    source).
    """
    made = []
    for name in detectors:
        made.append(System(name, load_detector(name, words=True)))
        print(f"{made[-1].name} is here", file=sys.stderr, flush=True)
    return [
        *made,
        System("top-ngram", load_scorer("top-ngram")),
        System("top-ngram, graded", load_scorer("top-ngram", graded=True)),
        System(LENGTH, load_scorer(LENGTH)),
        System(CHANCE, seed),
    ]


def by_detector(predictions: Sequence[Prediction]) -> Said:
    """Three readings of predictions."""
    words = [None if p.words is None else [(w.start, w.end, w.confidence) for w in p.words] for p in predictions]
    score = [np.nan if p.score is None else p.score for p in predictions]
    best = [np.nan if w is None else max((c for *_, c in w), default=0.0) for w in words]
    mean = [np.nan if w is None else float(np.mean([c for *_, c in w])) if w else 0.0 for w in words]
    return Said(
        {"score": np.array(score), "best word": np.array(best), "mean word": np.array(mean)},
        words,
        Counter(str(p.status) for p in predictions),
    )


def by_scorer(scorer: Scorer, samples: Sequence[Sample]) -> Said:
    """A scorer's numbers, turned so that higher is worse."""
    sign = 1.0 if scorer.direction is Direction.HIGHER_IS_WORSE else -1.0
    scores = scorer.score(samples)
    values = np.array([np.nan if s.value is None else sign * s.value for s in scores])
    return Said({"": values}, [None] * len(samples), Counter(str(s.status) for s in scores))


def by_chance(samples: Sequence[Sample], seed: int) -> Said:
    """A number that depends on the identifier alone, for each translation and each of its tokens."""
    values = np.array([share_of(f"{seed}:{sample.id}") for sample in samples])
    words: list[list[tuple[int, int, float]] | None] = []
    for sample in samples:
        found, place = [], 0
        for index, token in enumerate(sample.response.split()):
            place = sample.response.index(token, place)
            found.append((place, place + len(token), share_of(f"{seed}:{sample.id}:{index}")))
            place += len(token)
        words.append(found)
    return Said({"": values}, words, Counter({str(Status.SCORED): len(samples)}))
