"""How time grows with the evidence, and memory with the number of rows.

Time: one response against evidence of 1 kB to 1 MB. An exponent of 1 is linear. Memory: peak resident memory of
`veriglot detect` on files of 1,000 rows and more; constant if rows are streamed. No sentence of the evidence is there
twice, nor in two runs, since detectors may keep what they read last.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything that starts threads

import numpy as np

import figures
import inputs
import veriglot
from veriglot.records import Evidence, Sample, encode
from veriglot.text.segmentation import sentences

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
ROWS = (1_000, 10_000, 100_000)
MEGABYTE = 1e6
RUNS = 3
LINEAR_FROM = 10_000  # below, what every call costs hides the slope


def evidence_of(size: int, pool: list[str], seed: int) -> str:
    """About `size` bytes of sentences in shuffled order, each with a number in it."""
    shuffler = random.Random(seed)
    parts: list[str] = []
    total = 0
    while total < size:
        part = f"{shuffler.choice(pool).rstrip(' .')} {shuffler.randrange(10**9)}."
        parts.append(part)
        total += len(part.encode()) + 1
    return " ".join(parts).encode()[:size].decode("utf-8", "ignore")


def time_by_evidence(name: str, sizes: list[int]) -> tuple[list[dict[str, Any]], list[str]]:
    """CPU seconds of one response against evidence of each size, and the fitted exponent."""
    samples = [sample for sample in veriglot.read(inputs.EXAMPLES) if sample.language == "en"]
    passages = [passage.text for sample in samples for passage in sample.evidence]
    pool = [text[start:end] for text in passages for start, end in sentences(text, "en")]
    detector = veriglot.load_detector(name)
    detector.predict(samples)  # loads the weights
    rows: list[dict[str, Any]] = []
    for size in sizes:
        taken = []
        for run in range(RUNS):
            text = evidence_of(size, pool, size + run)
            sample = Sample(id="s", response=samples[0].response, language="en", evidence=(Evidence(text=text),))
            start = process_time()
            (prediction,) = detector.predict([sample])
            taken.append(process_time() - start)
        seconds = min(taken)
        rows.append(
            {
                "evidence bytes": size,
                "status": str(prediction.status),
                "CPU seconds": seconds,
                "CPU seconds a MB": seconds / size * MEGABYTE,
            }
        )
    large = [row for row in rows if row["evidence bytes"] >= LINEAR_FROM]
    slope = np.polyfit(
        np.log([row["evidence bytes"] for row in large]), np.log([row["CPU seconds"] for row in large]), 1
    )[0]
    return rows, [f"exponent fitted from {LINEAR_FROM:,} bytes on: {slope:.2f} (1 is linear)"]


def synthetic_rows(count: int) -> Iterator[Sample]:
    """`count` rows with ids of their own, from the examples in turn."""
    samples = list(veriglot.read(inputs.EXAMPLES))
    for number in range(count):
        sample = samples[number % len(samples)]
        yield Sample(
            id=f"row-{number}",
            response=sample.response,
            language=sample.language,
            question=sample.question,
            evidence=sample.evidence,
        )


def memory_by_rows(name: str, counts: list[int]) -> tuple[list[dict[str, Any]], list[str]]:
    """Peak resident memory of `veriglot detect` by number of rows."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for count in counts:
            source, target = Path(folder) / f"{count}.jsonl", Path(folder) / f"{count}.predictions.jsonl"
            with source.open("wb") as file:
                file.writelines(encode(sample) + b"\n" for sample in synthetic_rows(count))
            seconds, peak = run_detect(name, source, target)
            with target.open("rb") as file:
                done = sum(1 for _ in islice(file, count + 1))
            rows.append(
                {
                    "rows": count,
                    "predictions": done,
                    "input MB": source.stat().st_size / MEGABYTE,
                    "peak MB": peak / MEGABYTE,
                    "seconds": seconds,
                    "rows a second": count / seconds,
                }
            )
    growth = (rows[-1]["peak MB"] - rows[0]["peak MB"]) / rows[0]["peak MB"]
    return rows, [f"from {counts[0]:,} to {counts[-1]:,} rows the peak grows by {growth:.1%}"]


def run_detect(name: str, source: Path, target: Path) -> tuple[float, float]:
    """Seconds and peak bytes of one `veriglot detect` in one process."""
    program = Path(sys.executable).with_name("veriglot")
    command = [str(program), "detect", str(source), "-o", str(target), "--processes", "1", "--detector", name]
    start = perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} left with {process.returncode}")
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux kibibytes
    return perf_counter() - start, usage.ru_maxrss * unit


def main() -> None:
    """Read the options, measure, show."""
    parser = figures.command_line(__doc__)
    parser.add_argument("--detector", default="grounding", help="name (default: grounding)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="bytes of evidence")
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS, help="numbers of rows")
    options = parser.parse_args()
    rows, notes = time_by_evidence(options.detector, list(options.sizes))
    figures.show(f"Time of {options.detector} by length of the evidence", rows, as_json=options.json, notes=notes)
    rows, notes = memory_by_rows(options.detector, list(options.rows))
    figures.show(f"Memory of {options.detector} by number of rows", rows, as_json=options.json, notes=notes)


if __name__ == "__main__":
    main()
