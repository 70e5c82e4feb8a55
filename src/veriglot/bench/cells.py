"""One cell of a bench: a system judges a data set, row by row, into a file that a kill leaves whole.

A cell is known by what it is made from: the samples, the system's signature and the version. What was judged once is
not judged again, in whatever bench of the folder it occurs; anything else is another cell.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Literal

import msgspec

from veriglot import __version__
from veriglot.bench.results import Cost
from veriglot.provenance import digest, signature
from veriglot.records import Prediction, Score, encode
from veriglot.run import Engine, Recipe, Stage
from veriglot.run.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from veriglot.bench.folder import Folder
    from veriglot.bench.systems import System
    from veriglot.records import Detector, Sample, Scorer

__all__ = ["Grain", "Said", "cell_key", "judged"]

Grain = Literal["response", "sentence"]
"""What a scorer is asked about; a detector is always asked about responses, and marks parts of them."""


@dataclass(frozen=True)
class Said:
    """What a system said of the rows of a cell, in their order.

    Attributes:
        answers: predictions of a detector or scores of a scorer.
        cost: what they took, over all calls.
        key: what the cell depends on, as a digest.
        signature: one line that says how the cell was made.
    """

    answers: tuple[Prediction, ...] | tuple[Score, ...]
    cost: Cost
    key: str
    signature: str


def cell_key(system: System, data_hash: str, grain: Grain) -> str:
    """What a cell depends on, as a digest."""
    return digest([data_hash, system.about.signature or "", system.about.kind, grain, __version__])


def judged(
    system: System,
    data: str,
    samples: Sequence[Sample],
    folder: Folder,
    *,
    data_hash: str,
    grain: Grain = "response",
    jobs: int = 1,
    batch_size: int = 32,
    restart: bool = False,
    retry: bool = False,
    seen: Callable[[], None] | None = None,
) -> Said:
    """Have a system judge all samples, or those that it has not judged yet.

    Args:
        system: one that is available.
        data: name of the data set.
        samples: what it judges, in order: responses, or for a scorer at grain `sentence` their sentences.
        folder: of the run.
        data_hash: of the data set.
        grain: what the samples are.
        jobs: processes of the system; 0 for one a core.
        batch_size: most samples at a time.
        restart: judge everything anew.
        retry: judge anew where an earlier call left samples that failed.
        seen: called for each sample that this call judges.

    Raises:
        VeriglotError: the system broke off. What it had judged is kept.
    """
    key = cell_key(system, data_hash, grain)
    place = folder.cell(data, system.name, key)
    output = place / "answers.jsonl"
    again = restart or (retry and _any_failed(output, system))
    place.mkdir(parents=True, exist_ok=True)
    made = signature(
        cell=key[:16],
        data=data_hash[:16],
        grain=grain,
        system=(system.about.signature or "").replace("|", ";"),
        version=__version__,
    )
    stage: Stage[Sample] = Stage(output, signature=made, restart=again, maker="system")
    clock = _Clock(place / "costs.jsonl", system)
    if again:
        clock.forget()

    def work(rows: Iterator[Sample]) -> Iterable[Prediction | Score]:
        return clock.timed(_answers(system, rows, jobs, batch_size))

    def tell(_: object) -> None:
        if seen is not None:
            seen()

    try:
        stage.run(samples, work, seen=tell)
    finally:
        clock.write()
    (place / "cell.json").write_bytes(
        msgspec.json.format(encode(_Card(data, system.name, grain, len(samples), made)), indent=1) + b"\n"
    )
    return Said(_read(output, system), clock.total(), key, made)


class _Card(msgspec.Struct, frozen=True):
    """What the folder of a cell holds, for people who look into it."""

    data: str
    system: str
    grain: str
    rows: int
    signature: str


def _answers(system: System, rows: Iterator[Sample], jobs: int, batch_size: int) -> Iterator[Prediction | Score]:
    first = next(rows, None)
    if first is None:
        return  # nothing is left to judge: no process is started
    recipe = system.recipe if jobs != 1 and system.recipe is not None else Recipe(_itself, (system.maker,))
    with Engine(recipe, jobs=jobs if recipe is system.recipe else 1, batch_size=batch_size) as engine:
        if system.scorer is not None:
            yield from engine.scores(chain([first], rows))
            return
        for _, prediction in engine.run(chain([first], rows)):
            assert prediction is not None
            yield prediction


def _itself(maker: Detector | Scorer) -> Detector | Scorer:
    """The detector or scorer that was made before: models are loaded once."""
    return maker


def _any_failed(output: Path, system: System) -> bool:
    return output.exists() and any(answer.status == "failed" for answer in _read(output, system))


def _read(output: Path, system: System) -> tuple[Prediction, ...] | tuple[Score, ...]:
    if system.scorer is not None:
        scores = msgspec.json.Decoder(Score)
        return tuple(scores.decode(line) for line in Journal(output).lines())
    predictions = msgspec.json.Decoder(Prediction)
    return tuple(predictions.decode(line) for line in Journal(output).lines())


class _Clock:
    """Times the calls that make a cell; each call adds a line, so that a resumed cell knows what all of it took."""

    def __init__(self, path: Path, system: System) -> None:
        self._journal = Journal(path)
        self._system = system
        self._rows = 0
        self._began: tuple[float, float] | None = None
        self._spent = _spent(system)

    def forget(self) -> None:
        self._journal.path.unlink(missing_ok=True)

    def timed(self, answers: Iterator[Prediction | Score]) -> Iterator[Prediction | Score]:
        self._began = time.perf_counter(), _cpu()
        for answer in answers:
            self._rows += 1
            yield answer

    def write(self) -> None:
        if self._began is not None and self._rows:
            wall, cpu = self._began
            calls, tokens_in, tokens_out = (
                now - then for now, then in zip(_spent(self._system), self._spent, strict=True)
            )
            cost = Cost(self._rows, time.perf_counter() - wall, _cpu() - cpu, calls, tokens_in, tokens_out)
            self._journal.append(encode(cost))
        self._journal.close()

    def total(self) -> Cost:
        self._journal.repair()
        costs = [msgspec.json.decode(line, type=Cost) for line in self._journal.lines()]
        entry = self._system.entry
        tokens_in, tokens_out = sum(one.tokens_in for one in costs), sum(one.tokens_out for one in costs)
        priced = entry.price_in is not None or entry.price_out is not None
        money = (tokens_in * (entry.price_in or 0.0) + tokens_out * (entry.price_out or 0.0)) / 1e6
        return Cost(
            sum(one.rows for one in costs),
            sum(one.wall for one in costs),
            sum(one.cpu for one in costs),
            sum(one.calls for one in costs),
            tokens_in,
            tokens_out,
            money if priced else None,
        )


def _cpu() -> float:
    """Seconds of processor time of this process and of those that it waited for."""
    return sum(os.times()[:4])


def _spent(system: System) -> tuple[int, int, int]:
    """Calls, tokens of prompts and of replies so far, where a system keeps count in an attribute `spent`."""
    found = getattr(system.maker, "spent", None)
    return (found.calls, found.tokens_in, found.tokens_out) if found is not None else (0, 0, 0)
