"""The simulation of the bench's intervals runs, and its intervals over texts are the wider ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.slow
def test_intervals_are_simulated_and_counted() -> None:
    options = ["--json", "--studies", "60", "--texts", "40", "--resamples", "200"]
    command = [sys.executable, str(BENCHMARKS / "figure_intervals.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    table = json.loads(done.stdout)
    assert len(table["rows"]) == 6
    over_texts = [row["covered %"] for row in table["rows"]]
    over_sentences = [row["over sentences %"] for row in table["rows"]]
    assert min(over_texts) > 80  # 60 data sets: 86 to 100 is chance around the 93 that the page states
    assert sum(over_texts) > sum(over_sentences)
    (told,) = [row["equal, told apart %"] for row in table["rows"] if row["equal, told apart %"] != ""]
    assert told < 20
