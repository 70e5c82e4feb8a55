"""The scores of all clean lines, a stage on disk for each scorer."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from veriglot.build.sampling.choosing import Scored
from veriglot.build.sampling.scoring import GivenWorker, ScorerSource, ScorerWorker
from veriglot.build.sampling.shards import Shards
from veriglot.provenance import digest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from veriglot.build.sampling.scoring import GivenScores
    from veriglot.build.sampling.shards import Worker
    from veriglot.build.sampling.stages import Stages
    from veriglot.records import Direction, Scorer
    from veriglot.run.watch import Watch

__all__ = ["Scores"]

_SHARD = 10_000


class Scores:
    """Scores clean lines, or finds the scores of an earlier run.

    Args:
        stages: with the stage `near` done.
        languages: tags of sources and of targets.
        jobs: how many processes score.
        watch: told of every range of lines.
    """

    def __init__(self, stages: Stages, languages: tuple[str, str], jobs: int, watch: Watch) -> None:
        self._stages, self._languages, self._jobs, self._watch = stages, languages, jobs, watch
        self._places = stages.path("read"), stages.path("near") / "kept.npy"

    def given(self, number: int, given: GivenScores) -> Scored:
        """Those of column `number`."""
        make = partial(GivenWorker, *self._places, number)
        return self._kept(given.label, given.direction, {"column": number}, make, jobs=1)

    def scored(self, source: ScorerSource) -> Scored:
        """Those of a scorer."""
        here = source.make()
        make = partial(_worker, here if self._jobs == 1 else source, self._places, self._languages)
        settings = {"scorer": here.signature, "languages": self._languages}
        return self._kept(source.label, here.direction, settings, make, jobs=self._jobs)

    def _kept(
        self, label: str, direction: Direction, settings: dict[str, Any], make: Callable[[], Worker], *, jobs: int
    ) -> Scored:
        name = f"scores-{re.sub(r'[^A-Za-z0-9.-]+', '_', label)[:40]}-{digest([label])[:8]}"
        kept = len(np.load(self._places[1], mmap_mode="r"))
        shards = Shards(self._stages.path(name) / "shards", kept, _SHARD)

        def work(_folder: Path) -> bool:
            self._watch.begin(f"scoring by {label}, {_SHARD:,} lines at a time", len(shards))
            shards.run(make, jobs=jobs, watch=self._watch)
            return True

        self._stages.do(name, settings, work, bool, after="near")
        return Scored(label, direction, partial(shards.arrays, "values"), shards.notes())


def _worker(scorer: Scorer | ScorerSource, places: tuple[Path, Path], languages: tuple[str, str]) -> Worker:
    return ScorerWorker(*places, scorer.make() if isinstance(scorer, ScorerSource) else scorer, languages)
