"""A run that is killed, again and again, ends as one that was not."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from rows import samples

from veriglot.records import encode

SLOW = ("--detector", "word_absence:Slow", "--quiet")


def write_input(path: Path, count: int) -> None:
    """Rows, every 40th of them broken."""
    lines = [encode(row) if number % 40 else b'{"id": ' for number, row in enumerate(samples(count))]
    path.write_bytes(b"\n".join(lines) + b"\n")


def finish(running: Any) -> int:
    _, err = running.communicate(timeout=120)
    assert b"Traceback" not in err
    return int(running.returncode)


def rows_done(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "jobs"), [("out.jsonl", 1), ("out.jsonl", 2), ("out.parquet", 2)])
def test_kill_9_at_random_moments_loses_and_redoes_nothing(process: Any, tmp_path: Path, name: str, jobs: int) -> None:
    source = tmp_path / "in.jsonl"
    write_input(source, 1000)
    undisturbed, output = tmp_path / "undisturbed" / name, tmp_path / "killed" / name
    words = ("detect", source, *SLOW, "--processes", jobs)
    assert finish(process(*words, "-o", undisturbed)) == 3
    rows = output if name.endswith(".jsonl") else output.with_name(name + ".rows.jsonl")
    draw = random.Random(name + str(jobs))
    kept: list[bytes] = []
    kills = 0
    while kills < 4:
        running = process(*words, "-o", output, start_new_session=True)
        begun, before = time.monotonic(), rows_done(rows)
        while rows_done(rows) == before and running.poll() is None and time.monotonic() - begun < 60:
            time.sleep(0.002)  # until it is at work
        time.sleep(draw.uniform(0, 0.2))
        if running.poll() is not None:
            break
        os.kill(running.pid, signal.SIGKILL)
        running.communicate()
        kills += 1
        if output.exists() and not rows.exists():
            break  # it had made the last step, from rows to output, and was killed on its way out
        whole = rows.read_bytes().splitlines(keepends=True) if rows.exists() else []
        assert whole[: len(kept)] == kept  # what was finished stays, as it is
        kept = [line for line in whole if line.endswith(b"\n")]
    assert kills >= 2
    assert finish(process(*words, "-o", output)) == 3
    assert output.read_bytes() == undisturbed.read_bytes()
    failed = name + ".failed.jsonl"
    assert (tmp_path / "killed" / failed).read_bytes() == (tmp_path / "undisturbed" / failed).read_bytes()
    assert sorted(path.name for path in output.parent.iterdir()) == sorted([name, failed, name + ".progress"])


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_keeps_what_is_done_and_leaves_with_130(process: Any, tmp_path: Path, jobs: int) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    write_input(source, 900)
    words = ("detect", source, "-o", output, "--detector", "word_absence:Slow", "--processes", jobs)
    running = process(*words, start_new_session=True)
    while rows_done(output) < 20 and running.poll() is None:
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGINT)  # as the terminal does: the whole group
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert b"Rerun the command to resume." in err
    assert b"Traceback" not in err
    done = rows_done(output)
    assert done >= 20
    manifest = json.loads((tmp_path / "out.jsonl.progress").read_text())
    assert (manifest["rows"], manifest["finished"]) == (done, False)
    _, err = process(*words).communicate(timeout=120)
    assert b"900 rows: " in err
    assert f"{done + manifest['failed']} of them had been done by an earlier run".encode() in err


def has_children(pid: int) -> bool:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    if children.exists():
        return bool(children.read_text())
    time.sleep(0.3)  # a system that does not tell
    return True


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.04 * step for step in range(7)], ids="{:.2f}s".format)
def test_ctrl_c_while_the_workers_start_is_quiet_too(process: Any, tmp_path: Path, delay: float) -> None:
    source = tmp_path / "in.jsonl"
    write_input(source, 900)
    running = process("detect", source, "-o", tmp_path / "out.jsonl", *SLOW, "--processes", 3, start_new_session=True)
    while not has_children(running.pid) and running.poll() is None:
        time.sleep(0.001)
    time.sleep(delay)
    os.killpg(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert (running.returncode, err.strip()) == (130, b"")


@pytest.mark.slow
def test_workers_end_when_their_parent_is_killed(process: Any, tmp_path: Path) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    write_input(source, 900)
    running = process("detect", source, "-o", output, *SLOW, "--processes", 2, start_new_session=True)
    while rows_done(output) < 5 and running.poll() is None:
        time.sleep(0.01)
    os.kill(running.pid, signal.SIGKILL)
    running.communicate(timeout=60)  # returns once every process that holds its pipes is gone, workers included
    for _ in range(200):
        try:
            os.killpg(running.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("worker processes outlive their parent")
