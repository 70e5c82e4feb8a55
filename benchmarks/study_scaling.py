"""A study of many responses: memory by their number, and throughput beside the bare detector's, in one run.

Each size is a process of its own that makes a study of given responses: reading them in, detection, rates, results.
Before and after, the same process has the bare detector judge responses of the same kind, without any file, so that a
machine that gets slower or faster in between favours neither. Times are CPU milliseconds a response, of one process.
`through rates` holds the reading of the responses, detection and the rates; the rest describes the responses (quality,
types, examples) and writes the report.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything that starts threads

import msgspec

import figures
import inputs
from veriglot import load_detector
from veriglot.cli.detectors import detector_recipe
from veriglot.cli.study import measure, render
from veriglot.pipeline.progress import ProgressReporter
from veriglot.records import Generator, Sample, encode
from veriglot.study.config import Folder, load
from veriglot.study.run import Tools, run

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = (10_000, 100_000)
MODELS = ("lark", "wren")
BATCH = 32
STUDY = """
[study]
title = "Scaling"
pooled = true
[responses]
path = "responses.jsonl"
[[detectors]]
name = "grounding"
labelled = "{examples}"
"""


def responses(count: int) -> Iterator[Sample]:
    """`count` responses of two models over five seeds, at the length of gold rows."""
    rows = inputs.gold_length_rows()
    for number, row in enumerate(islice(cycle(rows), count)):
        model = MODELS[number // len(rows) % len(MODELS)]
        yield msgspec.structs.replace(
            row,
            id=f"r{number}",
            generator=Generator(model, seed=number % 5),
            meta={"query": f"q{number // (5 * len(MODELS))}", "finish": "stop"},
        )


class Clock(ProgressReporter):
    """CPU seconds of each step of a study."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: dict[str, float] = {}
        self._step, self._since = "", process_time()

    def begin(self, step: str, total: int | None) -> None:  # noqa: ARG002
        """A step begins, and the one before it ends."""
        now = process_time()
        if self._step:
            self.steps[self._step] = self.steps.get(self._step, 0.0) + now - self._since
        self._step, self._since = step, now


def bare(count: int) -> float:
    """CPU seconds of the detector alone, for `count` rows; making these is not timed."""
    detector = load_detector("grounding", words=True)
    rows = responses(count)
    spent = 0.0
    while batch := list(islice(rows, BATCH)):
        start = process_time()
        detector.predict(batch)
        spent += process_time() - start
    return spent


def one_size(count: int, bare_rows: int) -> dict[str, Any]:
    """Figures of one study, made in this process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "responses.jsonl").open("wb") as file:
            file.writelines(encode(row) + b"\n" for row in responses(count))
        (folder / "study.toml").write_text(STUDY.format(examples=inputs.EXAMPLES))
        before = bare(bare_rows) / bare_rows
        clock, wall = Clock(), perf_counter()
        run(
            load(folder / "study.toml"), Folder(folder / "run"), Tools(detector_recipe, measure, render), progress=clock
        )
        clock.begin("", None)
        wall = perf_counter() - wall
        after = bare(bare_rows) / bare_rows
        rates = len(json.loads((folder / "run" / "rates.json").read_bytes()))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {
        "rows": count,
        "bare": (before + after) / 2,
        "steps": clock.steps,
        "wall": wall,
        "peak": peak,
        "rates": rates,
    }


def main() -> None:
    """Read the options, measure, show."""
    parser = figures.command_line(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS, help="numbers of responses")
    parser.add_argument("--bare-rows", type=int, default=2000, help="rows for the bare detector, before and after")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(one_size(options.child, options.bare_rows)))
        return
    rows = []
    for count in options.rows:
        command = [sys.executable, __file__, "--child", str(count), "--bare-rows", str(options.bare_rows)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        rows.append(json.loads(done.stdout))
    show(rows, as_json=options.json)


def show(rows: list[dict[str, Any]], *, as_json: bool) -> None:
    """One line a quantity, one column a size."""
    columns = [quantities(row) for row in rows]
    table = [
        {
            "what": name,
            **{f"{row['rows']:,} responses": column[name] for row, column in zip(rows, columns, strict=True)},
        }
        for name in columns[0]
    ]
    growth = rows[-1]["peak"] / rows[0]["peak"] - 1
    note = f"from {rows[0]['rows']:,} to {rows[-1]['rows']:,} responses the peak memory grows by {growth:.1%}"
    figures.show("A study by number of responses", table, as_json=as_json, notes=[note])


def quantities(row: dict[str, Any]) -> dict[str, float]:
    """The figures of one size, by name."""
    each = {step: 1000 * seconds / row["rows"] for step, seconds in row["steps"].items()}
    through = sum(each[step] for step in ("reading responses", "judging responses", "estimating rates"))
    return {
        "bare detector, CPU ms": 1000 * row["bare"],
        **{f"{step}, CPU ms": value for step, value in each.items()},
        "throughput through rates, against bare": 1000 * row["bare"] / through,
        "throughput with report, against bare": 1000 * row["bare"] / sum(each.values()),
        "peak memory, MB": row["peak"] / 1e6,
        "wall seconds": row["wall"],
        "rates": row["rates"],
    }


if __name__ == "__main__":
    main()
