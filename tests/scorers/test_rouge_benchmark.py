"""The benchmark of ROUGE by language runs, and shows what it is there to show."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "rouge_scripts.py"


@pytest.mark.slow
def test_zeros_become_figures(shared_data: Path) -> None:
    options = ["--data", shared_data, "--json", "--texts", "20", "--languages", "en", "th", "fa"]
    command = [sys.executable, SCRIPT, *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    english, thai, persian = json.loads(done.stdout)["rows"]
    assert english["ASCII words %"] > 95
    assert english["paper 1"] == pytest.approx(english["unicode 1"], abs=3)
    for row in (thai, persian):
        assert row["texts"] == 20
        assert row["paper zeros %"] > 25
        assert row["unicode zeros %"] == 0
        assert row["unicode 1"] > 2 * row["paper 1"]
