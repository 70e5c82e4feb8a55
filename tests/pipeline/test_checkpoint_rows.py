"""Stages: one record a row, in order, of any kind; continued, never redone, never lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from veriglot.errors import UsageError, VeriglotError
from veriglot.storage.checkpoint import Checkpoint, FailedRow, Progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Number(msgspec.Struct, frozen=True):
    id: str
    value: int


class Square(msgspec.Struct, frozen=True):
    id: str
    square: int


def numbers(count: int) -> Iterator[Number | FailedRow]:
    """Every fifth row cannot be read."""
    for value in range(count):
        yield FailedRow("broken", line=value + 1) if value % 5 == 4 else Number(f"n{value}", value)


class Squaring:
    """Squares; every seventh number cannot be squared. Reads `ahead` rows before it answers the first."""

    def __init__(self, ahead: int = 0, until: int | None = None, healed: bool = False) -> None:
        self.ahead, self.until, self.healed = ahead, until, healed
        self.asked: list[str] = []

    def __call__(self, rows: Iterable[Number]) -> Iterator[Square | FailedRow]:
        held: list[Number] = []
        for row in rows:
            held.append(row)
            if len(held) > self.ahead:
                yield self.answer(held.pop(0))
        for row in held:
            yield self.answer(row)

    def answer(self, row: Number) -> Square | FailedRow:
        if self.until is not None and len(self.asked) >= self.until:
            raise KeyboardInterrupt
        self.asked.append(row.id)
        if row.value % 7 == 3 and not self.healed:
            return FailedRow("no square")
        return Square(row.id, row.value**2)


def stage(path: Path, **settings: Any) -> Checkpoint:
    return Checkpoint(path, **{"signature": "squares@1", **settings})


def contents(path: Path) -> tuple[bytes, bytes]:
    return path.read_bytes(), path.with_name(path.name + ".failed.jsonl").read_bytes()


@pytest.mark.parametrize("ahead", [0, 1, 6, 100])
def test_every_row_is_in_one_of_the_two_files_in_order(tmp_path: Path, ahead: int) -> None:
    path = tmp_path / "out.jsonl"
    tally = stage(path).run(numbers(40), Squaring(ahead))
    done = [json.loads(line) for line in path.read_text().splitlines()]
    assert done == [{"id": f"n{v}", "square": v * v} for v in range(40) if v % 5 != 4 and v % 7 != 3]
    failed = [json.loads(line) for line in contents(path)[1].splitlines()]
    assert [row["row"] for row in failed] == [v for v in range(40) if v % 5 == 4 or v % 7 == 3]
    assert [row.get("id") for row in failed] == [
        f"n{r['row']}" if r["message"] == "no square" else None for r in failed
    ]
    assert (tally.rows, tally.failed, tally.reused, tally.statuses) == (40, len(failed), 0, {"done": len(done)})
    assert Progress.of(path) == Progress(len(done), len(failed), finished=True)


def test_an_interrupted_stage_goes_on_where_it_stopped(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    stage(whole).run(numbers(60), Squaring())
    asked: list[str] = []
    for until in (1, 5, 9, 14):
        work = Squaring(ahead=3, until=until)
        with pytest.raises(KeyboardInterrupt):
            stage(path).run(numbers(60), work)
        asked += work.asked
        progress = Progress.of(path)
        assert not progress.finished
        assert progress.done + progress.failed >= len(asked)
    work = Squaring()
    tally = stage(path).run(numbers(60), work)
    assert contents(path) == contents(whole)
    assert len(set(asked + work.asked)) == len(asked + work.asked) == 48  # each once
    assert 0 < tally.reused < tally.rows == 60


def test_a_finished_stage_reads_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    first = stage(path).run(numbers(20), Squaring())

    def untouched() -> Iterator[Number]:
        raise AssertionError("rows were read")
        yield

    again = stage(path).run(untouched(), Squaring())
    assert (again.statuses, again.failed, again.reused) == (first.statuses, first.failed, first.rows)


def test_retry_takes_up_at_the_first_failed_row(tmp_path: Path) -> None:
    path, healed = tmp_path / "out.jsonl", tmp_path / "healed.jsonl"
    stage(path).run(numbers(40), Squaring())
    work = Squaring(healed=True)
    tally = stage(path, retry=True).run(numbers(40), work)
    stage(healed).run(numbers(40), Squaring(healed=True))
    assert contents(path) == contents(healed)
    assert work.asked[0] == "n3"
    assert tally.reused == 3
    assert tally.failed == 8  # those that cannot be read


@pytest.mark.parametrize("until", [2, 3, 4, 11])
def test_retry_takes_up_an_interrupted_stage_too(tmp_path: Path, until: int) -> None:
    path, healed = tmp_path / "out.jsonl", tmp_path / "healed.jsonl"
    with pytest.raises(KeyboardInterrupt):
        stage(path).run(numbers(30), Squaring(until=until))
    stage(path, retry=True).run(numbers(30), Squaring(healed=True))
    stage(healed).run(numbers(30), Squaring(healed=True))
    assert contents(path) == contents(healed)


RETRIED = """
import os, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_checkpoint_rows import Squaring, numbers, stage

cuts = 0

def hook(event, arguments):
    global cuts
    cuts += event == "os.truncate"
    if cuts == {cut}:
        os._exit(9)

sys.addaudithook(hook)
stage(Path({path!r}), retry=True).run(numbers(40), Squaring(healed=True))
"""


@pytest.mark.parametrize("again", [True, False], ids=["retried again", "only continued"])
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_retry_that_is_killed_while_it_cuts_goes_on(tmp_path: Path, cut: int, again: bool) -> None:
    path, whole = tmp_path / "out.jsonl", tmp_path / "whole.jsonl"
    stage(path).run(numbers(40), Squaring())
    code = RETRIED.format(tests=str(Path(__file__).parent), path=str(path), cut=cut)
    assert subprocess.run([sys.executable, "-c", code]).returncode == 9
    tally = stage(path, retry=again).run(numbers(40), Squaring(healed=True))
    stage(whole).run(numbers(40), Squaring(healed=True))
    assert tally.rows == 40
    if again:
        assert contents(path) == contents(whole)


def test_retry_leaves_a_stage_without_failures_alone(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    rows = [Number("a", 1), Number("b", 2)]
    stage(path).run(rows, Squaring())
    work = Squaring()
    assert stage(path, retry=True).run(rows, work).reused == 2
    assert not work.asked


def test_another_signature_or_option_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    stage(path, options={"base": 10}).run(numbers(5), Squaring())
    with pytest.raises(UsageError, match=r"the prompt was 'squares@1' and is now 'cubes@1'"):
        stage(path, options={"base": 10}, signature="cubes@1", maker="prompt").check()
    with pytest.raises(UsageError, match=r"base was 10 and is now 2"):
        stage(path, options={"base": 2}).run(numbers(5), Squaring())


def test_other_rows_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt):
        stage(path).run(numbers(20), Squaring(until=4))
    with pytest.raises(UsageError, match="is not the one that"):
        stage(path).run((Number(f"m{v}", v) for v in range(20)), Squaring())


def wrong_id(rows: Iterable[Number]) -> Iterator[Square]:
    return (Square("other", row.value) for row in rows)


def too_few(rows: Iterable[Number]) -> Iterator[Square]:
    for row in list(rows)[:-1]:
        yield Square(row.id, 0)


def lazy(rows: Iterable[Number]) -> Iterator[Square]:
    yield Square(next(iter(rows)).id, 0)


def too_many(rows: Iterable[Number]) -> Iterator[Square]:
    for row in rows:
        yield Square(row.id, 0)
    yield Square("more", 0)


@pytest.mark.parametrize("work", [wrong_id, too_few, lazy, too_many])
def test_work_that_breaks_the_order_is_found_out(tmp_path: Path, work: Any) -> None:
    with pytest.raises(VeriglotError, match="A stage "):
        stage(tmp_path / "out.jsonl").run([Number("a", 1), Number("b", 2), Number("c", 3)], work)
    assert not Progress.of(tmp_path / "out.jsonl").finished


def test_the_work_is_closed_when_the_stage_is_interrupted(tmp_path: Path) -> None:
    closed = []

    def work(rows: Iterable[Number]) -> Iterator[Square]:
        try:
            for row in rows:
                yield Square(row.id, row.value)
        finally:
            closed.append(True)

    def seen(record: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        stage(tmp_path / "out.jsonl").run(numbers(10), work, seen=seen)
    assert closed, caught  # while the traceback, which holds the frames, is alive


def test_a_finishing_step_makes_the_output_and_a_retry_makes_it_anew(tmp_path: Path) -> None:
    path = tmp_path / "sum.txt"

    def add(rows: Path, target: Path) -> None:
        target.write_text(str(sum(json.loads(line)["square"] for line in rows.read_bytes().splitlines())))

    tally = stage(path, finish=add).run(numbers(20), Squaring())
    assert path.read_text() == str(sum(v * v for v in range(20) if v % 5 != 4 and v % 7 != 3))
    assert Progress.of(path) == Progress(tally.rows - tally.failed, tally.failed, finished=True)
    stage(path, finish=add, retry=True).run(numbers(20), Squaring(healed=True))
    assert path.read_text() == str(sum(v * v for v in range(20) if v % 5 != 4))


KILLED = """
import sys, time
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_checkpoint_rows import Number, Square, Squaring, numbers, stage

class Slow(Squaring):
    def answer(self, row):
        time.sleep(0.002)
        with open({log!r}, "a") as file:
            file.write(row.id + "\\n")
        return super().answer(row)

stage(Path({path!r})).run(numbers(400), Slow(ahead=4))
"""


@pytest.mark.slow
def test_kill_9_at_random_moments_loses_and_repeats_nothing(tmp_path: Path) -> None:
    whole, path, log = tmp_path / "whole.jsonl", tmp_path / "out.jsonl", tmp_path / "log"
    stage(whole).run(numbers(400), Squaring())
    code = KILLED.format(tests=str(Path(__file__).parent), log=str(log), path=str(path))
    draw = random.Random(5)
    kills = 0
    while kills < 3:
        before = Progress.of(path).done
        running = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while Progress.of(path).done == before and running.poll() is None:
            time.sleep(0.005)
        time.sleep(draw.uniform(0, 0.1))
        if running.poll() is not None:
            break
        os.kill(running.pid, signal.SIGKILL)
        running.communicate()
        kills += 1
    assert kills >= 2
    subprocess.run([sys.executable, "-c", code], check=True)
    assert contents(path) == contents(whole)
    asked = log.read_text().split()
    assert len(asked) - len(set(asked)) <= kills  # at most the row that was in hand at each kill
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("out")) == [
        "out.jsonl",
        "out.jsonl.failed.jsonl",
        "out.jsonl.progress",
    ]
