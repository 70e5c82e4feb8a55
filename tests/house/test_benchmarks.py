"""The benchmarks run, and their figures are what they say they are; how good these are is theirs to print."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def run(script: str, *options: str) -> list[dict[str, Any]]:
    command = [sys.executable, BENCHMARKS / script, "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_speed_is_held_against_segmentation() -> None:
    (table,) = run(
        "detector_speed.py", "--no-transformers", "--examples", "8", "--repeats", "1", "--detector", "grounding"
    )
    names = [row["what"] for row in table["rows"]]
    assert names == ["grounding, batches of 32", "grounding, one at a time", "word segmentation alone"]
    for row in table["rows"]:
        assert row["CPU ms an example"] * row["examples a CPU s"] == pytest.approx(1000)
    assert "statuses: ['scored']" in table["notes"][0]


@pytest.mark.slow
def test_files_are_held_against_the_detector_alone() -> None:
    (table,) = run("detector_speed.py", "--files", "--examples", "4", "--repeats", "1")
    assert [(row["words"], row["processes"]) for row in table["rows"]] == [("no", 1), ("no", 2), ("yes", 1), ("yes", 2)]
    for row in table["rows"]:
        whole = row["ratio with start"] * row["detector ms"]
        assert whole == pytest.approx(row["from file to file ms"] + 1000 * row["start s"] / 4)
        assert min(row["detector ms"], row["from file to file ms"], row["start s"]) > 0


@pytest.mark.slow
def test_scaling_counts_every_row() -> None:
    by_evidence, by_rows = run("scaling.py", "--sizes", "10000", "30000", "--rows", "50", "100")
    assert [row["status"] for row in by_evidence["rows"]] == ["scored", "scored"]
    assert [row["predictions"] for row in by_rows["rows"]] == [50, 100]


@pytest.mark.slow
def test_start_up_is_within_its_bounds() -> None:
    (table,) = run("startup.py", "--repeats", "1")
    measured = {row["what"]: row["measured"] for row in table["rows"]}
    assert measured["heavy modules that the import loads"] == 0
    assert 100 < measured["core install, MB"] < 270


@pytest.mark.slow
def test_rates_are_simulated_and_counted() -> None:
    main, *others, drifts, flagged = run("rates.py", "--studies", "20")
    assert [row["estimator"] for row in main["rows"][:4]] == ["label-shift", "paper", "raw", "em"]
    assert {row["true rate"] for row in main["rows"]} >= {"0.5%", "3.0%", "50.0%"}
    for row in main["rows"]:
        truth = float(row["true rate"].rstrip("%")) / 100
        assert row["bias %"] == pytest.approx(100 * (row["mean"] / truth - 1), abs=0.06 + 0.006 / truth)
        assert 0 <= row["covered %"] <= 100
    by_name = {(row["estimator"], row["true rate"]): row for row in main["rows"]}
    assert by_name["paper", "3.0%"]["bias %"] > 100 > abs(by_name["label-shift", "3.0%"]["bias %"])
    assert [row["estimator"] for row in others[-1]["rows"][:2]] == ["label-shift", "ppi, 50 labels"]
    assert {"unreliable %", "covered %", "of the reliable %"} <= drifts["rows"][0].keys()
    cases = {row["case"]: row for row in flagged["rows"]}
    assert {row["to flag"] for row in cases.values()} == {"yes", "no", "unseen"}
    assert cases["a profile of 5 texts"]["flagged %"] == 100
    assert "flagged without need" in flagged["notes"][0]
