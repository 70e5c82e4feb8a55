"""A data set with unreliable servers and repeated kills ends the same as one without interruptions."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from misbehaving import Faults
from small_wikis import World

from settings_file import with_settings

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = [sys.executable, "-c", "import sys; from veriglot.cli import main; sys.exit(main())"]
SETS = (
    "people.jsonl",
    "articles.jsonl",
    "prompts.jsonl",
    "reference.jsonl",
    "en.jsonl",
    "pairs.jsonl",
    "rejected.jsonl",
)
KILLS = 5


def start(words: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, *with_settings(words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_and_pays_for_nothing_twice(tmp_path: Path) -> None:
    calm, rough = tmp_path / "calm", tmp_path / "rough"
    with World() as world:
        running = start(world.words(calm))
        _, err = running.communicate(timeout=120)
        assert running.returncode == 0, err.decode()
        requests = world.asked
    moments = random.Random(4)
    faults = Faults(seed=6, busy=0.06, error=0.02, cut=0.04, broken=0.02)
    with World(faults, lagged=1) as world:
        words = world.words(rough)
        kills = 0
        for nth in range(KILLS):
            running = start(words)
            # Between two requests to Wikidata, between two answers of the model, or while the sets are written.
            bound = world.asked + moments.randrange(1, requests // 3) if nth < KILLS - 1 else 10**9
            while running.poll() is None and world.asked < bound and not (rough / "pairs.jsonl.partial").exists():
                time.sleep(0.001)
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
                kills += 1
            _, err = running.communicate()
            assert b"Traceback" not in err
        assert kills >= KILLS // 2
        running = start(words)
        out, err = running.communicate(timeout=120)
        assert running.returncode == 0, err.decode()
        assert world.model.paid_most() == 1
        assert sum(world.model.paid.values()) == 3 * 3 * 5
        assert sum(world.wikidata.faults_seen.values()) > 0
    assert b"all" in out
    for name in SETS:
        assert (rough / name).read_bytes() == (calm / name).read_bytes(), name
    assert not list(rough.glob("*.partial"))


@pytest.mark.slow
def test_a_server_that_is_gone_stops_the_command_and_says_so(tmp_path: Path) -> None:
    root = tmp_path / "set"
    with World() as world:
        words = world.words(root)
        gone = [word.replace(world.wikis["de"].base_url, "http://127.0.0.1:9") for word in words]
        running = start([*gone, "--rate", "50"])
        limit = time.monotonic() + 60
        while not (root / "candidates.jsonl").exists() and time.monotonic() < limit:
            time.sleep(0.01)
        time.sleep(0.5)
        os.killpg(running.pid, signal.SIGINT)  # it would wait for the server for minutes
        _, err = running.communicate(timeout=60)
        assert running.returncode != 0
        assert b"Traceback" not in err
        assert not (root / "articles.jsonl").exists()
        refused = start(words)  # other servers give other articles, and no data set was made from them yet
        _, err = refused.communicate(timeout=120)
        assert refused.returncode == 0, err.decode()
