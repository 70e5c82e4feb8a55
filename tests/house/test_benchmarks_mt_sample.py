"""The benchmark of sampling for translation runs, and its check of parts finds what it looks for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from json_lines import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def beside_the_benchmarks() -> Iterator[None]:
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


@pytest.mark.slow
def test_what_is_generated_is_found_again(tmp_path: Path) -> None:
    options = ["--json", "--twice", "--lines", "20000", "--jobs", "2", "--folder", str(tmp_path)]
    command = [sys.executable, BENCHMARKS / "mt_sample.py", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    fates, scorers, _, held, once_more = (json.loads(line) for line in done.stdout.splitlines())
    assert sum(row["count"] for row in fates["rows"]) == 20_000
    assert [(row["worst"], row["drawn"]) for row in scorers["rows"]] == [(4, 4)] * 6
    assert {row["holds"] for row in held["rows"]} == {"yes"}
    assert once_more["rows"][0]["the same"] == "yes"


@pytest.mark.usefixtures("beside_the_benchmarks")
def test_a_near_duplicate_in_another_part_is_seen(tmp_path: Path) -> None:
    import mt_sample
    import mt_sample_lines

    texts = ["Die Mühle am Fluss steht still.", "Der Markt ist leer.", "Die Mühle am Fluss steht still!", "Ja"]
    assert mt_sample.most_similar(texts, ["train", "train", "test", "dev"]) == (1.0, 0)
    assert mt_sample.most_similar(texts, ["train", "dev", "train", "dev"]) == (pytest.approx(0.0, abs=0.1), 1)
    kinds = mt_sample_lines.generate(tmp_path / "lines.jsonl", 500, seed=1)
    rows: list[dict[str, Any]] = read_lines(tmp_path / "lines.jsonl")
    assert sum(count for kind, count in kinds.items() if kind != "detached") == len(rows) == 500
    assert sum(row["source"].startswith("The old house") for row in rows) == kinds["English"]
