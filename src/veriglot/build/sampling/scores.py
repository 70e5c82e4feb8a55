"""The scores of all clean lines, a stage on disk for each scorer."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from veriglot.build.sampling.choosing import Scored
from veriglot.build.sampling.scoring import ScorerWorker
from veriglot.build.sampling.shards import Shards
from veriglot.provenance import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.build.sampling.scoring import GivenScores, KnownScorer, ScorerSource
    from veriglot.build.sampling.shards import Worker
    from veriglot.build.sampling.stages import Stages
    from veriglot.build.sampling.store import LineStore
    from veriglot.records import Direction
    from veriglot.run.watch import Watch

__all__ = ["Scores"]

_SHARD = 10_000
_BLOCK = 1 << 18


class Scores:
    """Scores clean lines, or finds the scores of an earlier run.

    Args:
        stages: with the stage `near` done.
        store: the lines.
        languages: tags of sources and of targets.
        jobs: how many processes score.
        watch: told of every range of lines.
    """

    def __init__(self, stages: Stages, store: LineStore, languages: tuple[str, str], jobs: int, watch: Watch) -> None:
        self._store = store
        self._stages, self._languages, self._jobs, self._watch = stages, languages, jobs, watch
        self._places = stages.path("read"), stages.path("near") / "kept.npy"

    def given(self, number: int, given: GivenScores) -> Scored:
        """Those of column `number`, which the data hold."""
        store, kept = self._store, np.load(self._places[1], mmap_mode="r")

        def values() -> Iterator[tuple[int, NDArray[np.float64]]]:
            for start in range(0, len(kept), _BLOCK):
                yield start, store.given(np.array(kept[start : start + _BLOCK]))[:, number]

        missing = sum(int(np.isnan(block).sum()) for _, block in values())
        reasons = {"the data hold no number": missing} if missing else {}
        return Scored(given.label, given.direction, values, reasons)

    def scored(self, known: KnownScorer) -> Scored:
        """Those of a scorer, which is made again only where lines are left."""
        make = partial(_worker, known.source, self._places, self._languages)
        settings = {"scorer": known.signature, "languages": self._languages}
        return self._kept(known.source.label, known.direction, settings, make)

    def _kept(self, label: str, direction: Direction, settings: dict[str, Any], make: Callable[[], Worker]) -> Scored:
        name = f"scores-{re.sub(r'[^A-Za-z0-9.-]+', '_', label)[:40]}-{digest([label])[:8]}"
        kept = len(np.load(self._places[1], mmap_mode="r"))
        shards = Shards(self._stages.path(name) / "shards", kept, _SHARD)

        def work(_folder: Path) -> bool:
            self._watch.begin(f"scoring by {label}, {_SHARD:,} lines at a time", len(shards))
            shards.run(make, jobs=self._jobs, watch=self._watch)
            return True

        self._stages.do(name, settings, work, bool, after="near")
        return Scored(label, direction, partial(shards.arrays, "values"), shards.notes())


def _worker(source: ScorerSource, places: tuple[Path, Path], languages: tuple[str, str]) -> Worker:
    return ScorerWorker(*places, source.make(), languages)
