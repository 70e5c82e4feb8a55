"""The benchmark of the server's load, small: killed twice, it loses and doubles nothing, on both databases."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "studio_load.py"


@pytest.mark.slow
def test_a_killed_server_loses_and_doubles_nothing(database: str) -> None:
    options = ["--annotators", "5", "--seconds", "5", "--every", "0.1", "--kills", "2", "--length", "300"]
    command = [sys.executable, str(BENCHMARK), *options, "--database", database]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "killed 2 times" in done.stdout
    assert "every acknowledged save is there, none twice, none that was not sent" in done.stdout
