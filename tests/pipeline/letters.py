"""Scorers for the tests of the engine; in a module of their own, so that worker processes find them."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from veriglot.records import Direction, Score, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.records import Sample


class Letters:
    """The number of code points of the response."""

    name = "letters@1"
    direction = Direction.HIGHER_IS_WORSE
    signature = "scorer:letters@1"

    def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [self.one(sample) for sample in samples]

    def one(self, sample: Sample) -> Score:
        length = float(len(sample.response))
        return Score(sample.id, Status.SCORED, self.name, length, {"process": 0.0}, signature=self.signature)


class Fragile(Letters):
    """Raises over the responses that say so."""

    def one(self, sample: Sample) -> Score:
        if "raise" in sample.response:
            raise RuntimeError("too much")
        return super().one(sample)


class Forgetful(Letters):
    """Gives a score too few where there are several samples."""

    def score(self, samples: Sequence[Sample]) -> list[Score]:
        return super().score(samples)[: max(1, len(samples) - 1)]


class Mortal(Letters):
    """Its process is killed over the responses that say so."""

    def one(self, sample: Sample) -> Score:
        if "die" in sample.response:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().one(sample)
