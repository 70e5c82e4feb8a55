"""`veriglot dataset silver` with a server, killed at random moments: nothing is lost, and no call is paid twice."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from misbehaving import Faults, ModelServer
from misbehaviour import CASES, seeds

from json_lines import write_lines
from settings_file import with_settings
from veriglot.datasets.generation import account_path, rejected_path
from veriglot.datasets.silver.job import load_account

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = "import sys; from veriglot.cli import main; sys.exit(main())"


def answer(body: dict[str, Any]) -> str:
    """The replies of the scripted model of the other tests, over HTTP."""
    found = re.search(r"Mill (\d\d) was", body["messages"][-1]["content"])
    assert found is not None
    return CASES[int(found[1])].reply.replace("%", found[1])


@pytest.mark.slow
def test_kill_9_loses_nothing_and_pays_each_call_once(tmp_path: Path) -> None:
    given = tmp_path / "seeds.jsonl"
    write_lines(given, seeds())
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    words = [
        "dataset",
        "silver",
        str(given),
        "-m",
        "m",
        "--order",
        "entity",
        "--attempts",
        "2",
        "--concurrency",
        "3",
        "-q",
    ]
    draw = random.Random(5)
    # a slow server with some errors; it must be slow, or the run ends before the kill
    faults = Faults(seed=5, busy=0.05, error=0.05, slow=0.5, slow_seconds=0.08)
    with ModelServer(faults, answer=answer, idempotent=True) as server:
        command = [sys.executable, "-c", COMMAND, *with_settings(words), "--base-url", server.base_url]
        kills = 0
        while kills < 4:
            before = len(server.paid)
            running = subprocess.Popen([*command, "-o", str(cut)], stderr=subprocess.PIPE)
            while len(server.paid) == before and running.poll() is None:
                time.sleep(0.005)
            time.sleep(draw.uniform(0, 0.2))
            if running.poll() is not None:
                break
            os.kill(running.pid, signal.SIGKILL)
            running.communicate()
            kills += 1
            assert not cut.exists()
        assert kills >= 2
        ended = subprocess.run([*command, "-o", str(cut)], capture_output=True, check=False)
        assert ended.returncode == 0, ended.stderr
        assert server.paid_most() == 1
        paid = len(server.paid)
    with ModelServer(answer=answer) as server:
        subprocess.run([*command[:-1], server.base_url, "-o", str(whole)], check=True)
        assert len(server.paid) == paid
    assert cut.read_bytes() == whole.read_bytes()
    assert rejected_path(cut).read_bytes() == rejected_path(whole).read_bytes()
    assert account_path(cut).read_bytes() == account_path(whole).read_bytes()
    assert load_account(cut).total.calls == paid
