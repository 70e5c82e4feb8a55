"""A sample that was killed resumes, repeats no finished work, and gives the same result as without the kill."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from veriglot.cli import main
from veriglot.datasets.sampling.filters import Cleaning, Shards
from veriglot.datasets.sampling.sample import MtSample, Sampling, mt_sample
from veriglot.pipeline.progress import ProgressReporter
from veriglot.records import Direction, Score, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.records import Sample

NOUNS = "Müller Wald Fluss Markt Turm Garten Bäcker Lehrer Hund Winter Bruder Kaiser Bauer Brücke Schule".split()  # noqa: SIM905
CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_sample_resume import sample
sample(Path(sys.argv[2]), Path(sys.argv[3]), lethal=10_200)
"""


class Counting:
    """Scores lines by their number; kills this process at `lethal`."""

    name = "counting@1"
    direction = Direction.HIGHER_IS_BETTER
    signature = "scorer:counting@1"

    def __init__(self, lethal: int | None) -> None:
        self.lethal, self.seen = lethal, 0

    def score(self, samples: Sequence[Sample]) -> list[Score]:
        found = []
        for sample in samples:
            number = int(sample.response.split()[1])
            if number == self.lethal:
                os.kill(os.getpid(), signal.SIGKILL)
            self.seen += 1
            found.append(Score(sample.id, Status.SCORED, self.name, value=float(number * 7919 % 10_007)))
        return found


def sample(path: Path, folder: Path, lethal: int | None = None) -> Counting:
    scorer = Counting(lethal)
    order = MtSample(
        (str(path),),
        "en",
        Cleaning("de", skip=True),
        Sampling(worst=30, drawn=20, most=40),
        scorers=(("counting", lambda: scorer),),
    )
    mt_sample(order, folder)
    return scorer


def outputs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def test_scores_from_before_a_kill_are_not_asked_for_again(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    rows = [{"source": f"Zeile {number} von vielen", "target": f"Line {number} of many"} for number in range(10_500)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    command = [sys.executable, "-c", CHILD, str(Path(__file__).parent), str(path), str(tmp_path / "killed")]
    assert subprocess.run(command, capture_output=True).returncode == -signal.SIGKILL
    assert outputs(tmp_path / "killed").keys() <= {"report.json.lock"}
    assert sample(path, tmp_path / "whole").seen == 10_500
    assert sample(path, tmp_path / "killed").seen == 500  # the range of 10,000 lines before was done
    found, expected = outputs(tmp_path / "killed"), outputs(tmp_path / "whole")
    assert {name: found[name] for name in expected} == expected


@pytest.mark.slow
def test_a_command_that_was_killed_goes_on(tmp_path: Path) -> None:
    from settings_file import with_settings  # a killed child imports this module, and finds none

    path, draw = tmp_path / "lines.jsonl", random.Random(3)
    with path.open("w", encoding="utf-8") as stream:
        for number in range(1_000):
            source = f"Der {' '.join(draw.sample(NOUNS, k=9))} ist {number} nicht im Haus."
            stream.write(json.dumps({"source": source, "target": f"They {'are ' * (number % 9)}not in."}) + "\n")
    words = ["dataset", "sample", str(path), "-s", "de", "-t", "en", "--scorer", "top-ngram graded=true", "-j", "1"]
    words += ["--worst", "50", "--drawn", "20", "--percentile", "10", "--quiet"]
    command = with_settings([*words, "-o", str(tmp_path / "killed")])
    process = subprocess.Popen([Path(sys.executable).with_name("veriglot"), *command])
    begun = tmp_path / "killed" / "work" / "lines" / "stage.json"
    while not begun.exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    read = (tmp_path / "killed" / "work" / "read" / "lines.bin").stat().st_mtime_ns
    for folder in ("killed", "whole"):
        assert main(with_settings([*words, "-o", str(tmp_path / folder)])) == 0
    assert (tmp_path / "killed" / "work" / "read" / "lines.bin").stat().st_mtime_ns == read
    found, expected = outputs(tmp_path / "killed"), outputs(tmp_path / "whole")
    assert {name: found[name] for name in expected} == expected


class Squares:
    """Squares numbers; fails at one of them."""

    def __init__(self, fatal: int | None) -> None:
        self.fatal, self.seen = fatal, [0]

    def __call__(self, start: int, stop: int) -> tuple[dict[str, Any], dict[str, int]]:
        if self.fatal is not None and start <= self.fatal < stop:
            raise ValueError("too much")
        self.seen[0] += stop - start
        return {"values": np.arange(start, stop) ** 2}, {"even": sum(n % 2 == 0 for n in range(start, stop))}


def test_ranges_are_whole_or_not_there(tmp_path: Path) -> None:
    shards = Shards(tmp_path / "shards", 25, 10)
    with pytest.raises(ValueError, match="too much"):
        shards.run(lambda: Squares(17), jobs=1, progress=ProgressReporter())
    (tmp_path / "shards" / "000001.partial").mkdir()  # as after a kill during the write
    (tmp_path / "shards" / "000001.partial" / "values.npy").write_bytes(b"\x93NUM")
    rest = Squares(None)
    shards.run(lambda: rest, jobs=1, progress=ProgressReporter())
    assert rest.seen == [15]
    assert shards.joined("values").tolist() == [number**2 for number in range(25)]
    assert shards.notes() == {"even": 13}
