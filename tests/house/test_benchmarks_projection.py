"""The benchmark of projection: its marks are where it says, and its figures add up; how good they are is its to say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_every_aligner_has_figures_per_language_and_means(shared_data: Path, use_multilingual: Path) -> None:
    for package in ("sentencepiece", "onnx", "rapidfuzz", "anyascii"):
        pytest.importorskip(package, reason="needs the extra reader")
    assert use_multilingual.exists()
    command = [sys.executable, BENCHMARKS / "projection.py", "--json", "--data", shared_data / "xquad"]
    done = subprocess.run([*command, "--languages", "de", "el", "--limit", "4"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [row["language"] for row in rows] == ["de", "el", "measured", "weak"] * 3
    for row in rows:
        assert 0 <= row["exact"] <= row["F1"] <= 1
        assert row["lost"] <= row["under"]
    by_name = {(row["aligner"], row["language"]): row for row in rows}
    assert by_name["vectors", "de"]["F1"] > by_name["lexical", "de"]["F1"]
    assert by_name["vectors", "measured"]["F1"] == by_name["vectors", "de"]["F1"]
