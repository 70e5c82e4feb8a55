"""The engine: order, equality over processes and batches, bounded reading, bad detectors, workers that die."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest
from rows import samples
from word_absence import Dies, DiesAtStart, Forgets, Raises, Slow, Unwritable, WordAbsence

from veriglot.errors import UsageError, VeriglotError
from veriglot.pipeline.engine import Description, Engine
from veriglot.records import Evidence, Prediction, Sample, Status
from veriglot.storage.checkpoint import FailedRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


def judged(rows: Iterable[Any], factory: Any = WordAbsence, **settings: Any) -> list[tuple[Any, Prediction | None]]:
    with Engine(factory, **settings) as engine:
        return list(engine.run(rows))


def sample(name: str, response: str) -> Sample:
    return Sample(name, response, evidence=(Evidence("the old mill"),))


@pytest.mark.parametrize(("jobs", "batch_size"), [(1, 1), (1, 1000), (2, 1), (2, 7), (2, 1000), (3, 32)])
def test_any_split_gives_the_same_predictions_in_order(jobs: int, batch_size: int) -> None:
    rows = list(samples(150))
    detector = WordAbsence()
    found = judged(rows, jobs=jobs, batch_size=batch_size)
    assert found == [(row, detector.judge(row)) for row in rows]


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_is_not_a_sample_passes_through_in_its_place(jobs: int) -> None:
    rows: list[Any] = []
    for number, row in enumerate(samples(50)):
        rows += [FailedRow(f"broken {number}")] * (number % 3) + [row]
    found = judged(rows, jobs=jobs, batch_size=4)
    assert [row for row, _ in found] == rows
    assert [prediction is None for _, prediction in found] == [isinstance(row, FailedRow) for row in rows]


@pytest.mark.parametrize("jobs", [1, 2])
def test_no_rows_give_no_rows(jobs: int) -> None:
    assert judged([], jobs=jobs) == []


@pytest.mark.parametrize(("jobs", "ahead"), [(1, 5), (2, 2 * 4 * 5)])
def test_reading_never_runs_further_ahead_than_the_bound(jobs: int, ahead: int) -> None:
    taken = 0
    furthest = 0

    def source() -> Iterator[Sample]:
        nonlocal furthest
        for number, row in enumerate(samples(400)):
            furthest = max(furthest, number + 1 - taken)
            yield row

    with Engine(WordAbsence, jobs=jobs, batch_size=5) as engine:
        for _ in engine.run(source()):
            taken += 1
            if taken % 50 == 0:
                time.sleep(0.02)  # a slow consumer: the engine may not read on meanwhile
    assert taken == 400
    assert furthest <= ahead


def test_an_endless_input_is_read_only_as_far_as_it_is_used() -> None:
    def endless() -> Iterator[Sample]:
        number = 0
        while True:
            yield sample(f"s{number}", "the mill")
            number += 1

    with Engine(WordAbsence, jobs=2, batch_size=3) as engine:
        found = engine.run(endless())
        assert [next(found)[0].id for _ in range(20)] == [f"s{number}" for number in range(20)]


def test_batches_are_bounded_by_their_text_too() -> None:
    sizes: list[int] = []

    class Watched(WordAbsence):
        def predict(self, samples: Any) -> list[Prediction]:
            sizes.append(len(samples))
            return super().predict(samples)

    long = "mill " * 300_000
    judged([sample(f"s{number}", long) for number in range(5)], Watched, batch_size=1000)
    assert sizes == [2, 2, 1]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_detector_that_raises_loses_only_the_sample_it_raises_over(jobs: int) -> None:
    rows = [sample(f"s{number}", "raise" if number in {3, 17} else "the new mill") for number in range(20)]
    found = judged(rows, Raises, jobs=jobs, batch_size=8)
    failed = [prediction for _, prediction in found if prediction and prediction.status is Status.FAILED]
    assert [prediction.id for prediction in failed] == ["s3", "s17"]
    assert failed[0].reason == "the detector raised ArithmeticError: no number fits s3"
    assert failed[0].spans is None
    assert [row.id for row, _ in found] == [row.id for row in rows]


@pytest.mark.slow
def test_predictions_that_json_cannot_hold_come_from_a_process_all_the_same() -> None:
    rows = [sample("a", "the old mill"), sample("b", "half of it"), sample("c", "a new mill")]
    detector = Unwritable()
    assert judged(rows, Unwritable, jobs=2) == [(row, detector.judge(row)) for row in rows]


@pytest.mark.parametrize("becomes", [None, SystemError("returned a result with an exception set")])
def test_an_interrupt_that_a_library_swallows_ends_the_run(becomes: Exception | None) -> None:
    class Swallows(WordAbsence):
        def predict(self, samples: Any) -> Any:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                if becomes is not None:
                    raise becomes from None
            return super().predict(samples)

    before = signal.getsignal(signal.SIGINT)
    with Engine(Swallows, jobs=1) as engine, pytest.raises(KeyboardInterrupt):
        list(engine.run(samples(3)))
    assert signal.getsignal(signal.SIGINT) is before


def test_a_detector_that_breaks_its_protocol_is_asked_one_by_one() -> None:
    rows = list(samples(20))
    assert [prediction and prediction.id for _, prediction in judged(rows, Forgets)] == [row.id for row in rows]


def test_a_killed_worker_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORD_ABSENCE_MARKS", str(tmp_path))
    rows = [sample(f"s{number}", "once" if number in {5, 30} else "the new mill") for number in range(40)]
    found = judged(rows, Dies, jobs=2, batch_size=8)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s30", "s5"]  # both deaths took place
    assert found == [(row, WordAbsence().judge(row)) for row in rows]


def test_a_sample_that_kills_is_reported_and_the_rest_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORD_ABSENCE_MARKS", str(tmp_path))
    rows = [sample(f"s{number}", "die" if number == 5 else "the new mill") for number in range(12)]
    found = judged(rows, Dies, jobs=2, batch_size=4)
    assert [row.id for row, _ in found] == [row.id for row in rows]
    for row, prediction in found:
        assert prediction is not None
        if row.id == "s5":
            assert prediction.status is Status.FAILED
            assert prediction.reason == "the worker process died twice over this sample (signal 9)"
        else:
            assert prediction == WordAbsence().judge(row)


def test_workers_killed_from_outside_at_random_lose_nothing() -> None:
    rows = list(samples(600))
    with Engine(Slow, jobs=2, batch_size=10) as engine:
        found = []
        for number, answer in enumerate(engine.run(rows)):
            found.append(answer)
            if number in {50, 200, 350}:
                workers = engine._pool._workers  # type: ignore[union-attr]
                victim = next(worker for worker in workers if worker.ready).process  # deaths while loading end the run
                os.kill(victim.pid, signal.SIGKILL)  # type: ignore[arg-type]
    assert found == [(row, WordAbsence().judge(row)) for row in rows]


def test_workers_that_die_before_they_are_ready_end_the_run() -> None:
    with pytest.raises(VeriglotError, match=r"die while they load the detector \(signal 9\)"):
        Engine(DiesAtStart, jobs=2)


def no_such_detector() -> Any:
    raise UsageError("There is no such detector.", remedy="Name another.")


def test_a_detector_that_cannot_be_made_says_so_from_its_process() -> None:
    with pytest.raises(VeriglotError) as caught:
        Engine(no_such_detector, jobs=2)
    assert (caught.value.message, caught.value.remedy, caught.value.exit_code) == (
        "There is no such detector.",
        "Name another.",
        2,
    )


@pytest.mark.parametrize("settings", [{"jobs": -1}, {"batch_size": 0}])
def test_settings_out_of_range(settings: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        Engine(WordAbsence, **settings)


def test_leaving_the_engine_ends_its_processes() -> None:
    with Engine(WordAbsence, jobs=2) as engine:
        next(engine.run(samples(100)))
        processes = [worker.process for worker in engine._pool._workers]  # type: ignore[union-attr]
        numbers = [process.pid for process in processes]
    for number in numbers:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)  # type: ignore[arg-type]


def test_few_rows_reach_every_worker_of_a_cluster() -> None:
    sizes = list[int]()

    class Pool:
        description = Description.of(WordAbsence())

        def answers(self, queue: Any, *_: object) -> Any:
            for batch in queue:
                sizes.append(len(batch.rows))
                yield from ((row, None) for row in batch.rows)

        def close(self) -> None:
            pass

    for count, most in ((320, 32), (50_000, 256)):
        sizes.clear()
        with Engine(WordAbsence, jobs=10, pool=Pool()) as engine:
            assert sum(1 for _ in engine.run(samples(count))) == sum(sizes) == count
        assert max(sizes) == most
