"""The benchmark of a study's size runs, and its figures are what they say they are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "study_scaling.py"


@pytest.mark.slow
def test_study_scaling_times_every_step() -> None:
    command = [sys.executable, BENCHMARK, "--rows", "40", "80", "--bare-rows", "32", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    table = json.loads(done.stdout)
    figures = {row.pop("what"): row for row in table["rows"]}
    for size in ("40 responses", "80 responses"):
        steps = [figures[f"{step} responses, CPU ms"][size] for step in ("reading", "judging")]
        steps.append(figures["estimating rates, CPU ms"][size])
        share = figures["throughput through rates, against bare"][size]
        assert share == pytest.approx(figures["bare detector, CPU ms"][size] / sum(steps))
        assert figures["peak memory, MB"][size] > 50
    assert "peak memory grows by" in table["notes"][0]
