"""How long a row takes through `veriglot detect -`, and how fast `detect_many` is beside the engine alone.

python benchmarks/stream_latency.py [--rows 500]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from statistics import median, quantiles

import veriglot
from veriglot.pipeline.engine import Engine

EVIDENCE = "The bridge over the Lenna was opened in 1897 by the mayor, after nine years of work."


def rows(count: int) -> list[dict[str, str]]:
    """Short English answers, every one with its own year."""
    return [
        {"id": str(number), "evidence": EVIDENCE, "response": f"It was opened in {1880 + number % 40} by the mayor."}
        for number in range(count)
    ]


def latency(count: int) -> list[float]:
    """Seconds from a row written to its result read, one row at a time; the first, which loads, left out."""
    command = [sys.executable, "-c", "import sys; from veriglot.cli import main; sys.exit(main())", "detect", "-"]
    seconds = []
    with subprocess.Popen([*command, "--quiet"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for row in rows(count + 1):
            line = json.dumps({**row, "evidence": [{"text": row["evidence"]}]}).encode() + b"\n"
            began = time.perf_counter()
            running.stdin.write(line)
            running.stdin.flush()
            result = json.loads(running.stdout.readline())
            seconds.append(time.perf_counter() - began)
            assert result["id"] == row["id"]
        running.stdin.close()
    return seconds[1:]


def ratio(count: int) -> float:
    """Seconds of `detect_many` over those of the engine on samples that are there; both in turns, the best of three."""
    detector = veriglot.load_detector()
    data = rows(count)
    samples = [
        veriglot.Sample(row["id"], row["response"], evidence=(veriglot.Evidence(row["evidence"]),)) for row in data
    ]
    best = {"engine": float("inf"), "many": float("inf")}
    for _ in range(3):
        for name in best:
            began = time.perf_counter()
            if name == "engine":
                done = sum(1 for _ in Engine(lambda: detector).run(samples))
            else:
                done = sum(1 for _ in veriglot.detect_many(data, detector=detector))
            assert done == count
            best[name] = min(best[name], time.perf_counter() - began)
    return best["many"] / best["engine"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500)
    count = parser.parse_args().rows
    seconds = latency(count)
    p95 = quantiles(seconds, n=20)[-1]
    print(f"{count} rows, one at a time: p50 {1000 * median(seconds):.1f} ms, p95 {1000 * p95:.1f} ms")
    print(f"detect_many takes {ratio(count):.3f} of the engine's own time on {count} rows")


if __name__ == "__main__":
    main()
