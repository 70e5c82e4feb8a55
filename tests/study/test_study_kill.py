"""A study that is killed, again and again, while its server misbehaves, ends as one that nothing happened to."""

from __future__ import annotations

import os
import random
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest
from misbehaving import Faults, ModelServer
from study_folder import EXAMPLES, outputs, write_queries

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

KILLS = 10
QUERIES, SEEDS, MODELS = 60, 3, 2
CALLS = QUERIES * SEEDS * MODELS
TRIES = 20  # for moments that are over sooner than they are seen
LAST_STEPS = ["plan.json", "rates.json", "results.json", "partial", "tables"]


def write_study(folder: Path, address: str) -> Path:
    """A study of two models over three seeds."""
    folder.mkdir()
    write_queries(folder / "queries.jsonl", QUERIES)
    models = "".join(
        f"""
[[models]]
name = "{name}"
family = "kiln"
parameters = {size}
base_url = "{address}"
prompt = "open"
settings = {{ max_tokens = 20, temperature = {size / 10} }}
options = {{ backoff = 0.02 }}
"""
        for name, size in (("kiln-1b", 1.0), ("kiln-3b", 3.0))
    )
    path = folder / "study.toml"
    path.write_text(
        f"""
[study]
title = "Killed"
pooled = true
draws = 200

[queries]
path = "queries.jsonl"
design = "runs"
seeds = [1, 2, 3]
{models}
[[detectors]]
name = "grounding"
labelled = "{EXAMPLES}"

[limits]
jobs = 4
"""
    )
    return path


def rows_done(folder: Path) -> int:
    """Rows of responses and predictions, as another process sees them."""
    files = [*folder.glob("responses/*.jsonl"), *folder.glob("predictions/*/*.jsonl")]
    return sum(path.read_bytes().count(b"\n") for path in files if path.exists())


def wait_for(running: subprocess.Popen[bytes], folder: Path, moment: int | str) -> bool:
    """Wait until so many rows are done, or until this run has written that file; False where it ended before."""
    begun, since = time.monotonic(), time.time_ns()

    def has_come() -> bool:
        if isinstance(moment, int):
            return rows_done(folder) >= moment
        path = folder / moment
        return path.exists() and path.stat().st_mtime_ns >= since

    while not has_come():
        if running.poll() is not None or time.monotonic() - begun > 120:
            return False
        time.sleep(0.001)
    return running.poll() is None


def finish(running: subprocess.Popen[bytes]) -> None:
    _, err = running.communicate(timeout=300)
    assert b"Traceback" not in err
    assert running.returncode == 0, err.decode()


def killed(running: subprocess.Popen[bytes]) -> bool:
    """Kill it at once; False where it had ended by itself."""
    alive = running.poll() is None
    if alive:
        os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    return running.returncode == -signal.SIGKILL


@pytest.mark.slow
def test_10_kills_and_a_misbehaving_server_change_nothing_and_cost_nothing(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    with ModelServer() as server:
        undisturbed = tmp_path / "undisturbed"
        study = write_study(undisturbed, server.base_url)
        finish(start("study", "run", study, "-o", undisturbed / "run", "--processes", 1))
        assert sum(server.paid.values()) == CALLS
    draw = random.Random(3)
    # Kills are spread over all that a run does: at its start, between its rows, and while it writes what it found.
    moments: list[int | str] = sorted(draw.randrange(2 * CALLS) for _ in range(KILLS - len(LAST_STEPS)))
    moments += LAST_STEPS
    with ModelServer(Faults.many(seed=5), idempotent=True) as server:
        study = write_study(tmp_path / "killed", server.base_url)
        folder = tmp_path / "killed" / "run"
        for moment in moments:
            for _ in range(TRIES):
                running = start("study", "run", study, "-o", folder, "--processes", 1)
                if wait_for(running, folder, moment):
                    time.sleep(draw.uniform(0, 0.15 if isinstance(moment, int) else 0.02))
                if killed(running):
                    break
            else:
                pytest.fail(f"no run was caught at {moment}")
        finish(start("study", "run", study, "-o", folder, "--processes", 1))
        leftovers = [path for path in folder.rglob("*") if "partial" in path.name or path.suffix == ".lock"]
        # Of the cache, which several processes may share.
        assert [path.name for path in leftovers if path.parent.name != "claims"] == ["calls.lock"]
        assert sum(server.faults_seen[fault] for fault in ("busy", "error", "cut", "slow", "broken")) > CALLS // 3
        assert len(server.paid) == CALLS
        assert server.paid_most() == 1
    made, expected = outputs(folder), outputs(undisturbed / "run")
    assert list(made) == list(expected)
    for name, content in expected.items():
        assert made[name] == content, name
