"""Ray beside the local engine, and Ray with deaths.

A cluster of two nodes of one core is started on this machine. `speed` judges rows at the length of mFAVA's gold rows,
from Parquet, with the local engine on two processes and with Ray, by turns. `deaths` kills workers, the second node and
the command itself at random. Both merge the parts and compare them, byte for byte, with the local engine's output.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import msgspec
import psutil

import inputs
import veriglot

if TYPE_CHECKING:
    from collections.abc import Iterator

PORT = 6391
STORE = 200 << 20  # bytes of Ray's memory on each node
PATIENCE = 240.0  # seconds for anything to happen


class Nodes:
    """A head and a second node, each of one core; tokens keep others out, as Ray listens on all interfaces."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
        }
        self._nodes = [self._start("--head", f"--port={PORT}", "--include-dashboard=false", f"--temp-dir={folder}")]
        time.sleep(5)
        self.address = f"{self._own_address()}:{PORT}"
        self.add()
        self.environment["RAY_ADDRESS"] = self.address

    def _own_address(self) -> str:
        return subprocess.run(
            [sys.executable, "-c", "import ray; print(ray.util.get_node_ip_address())"],
            env=self.environment, capture_output=True, text=True, check=True,
        ).stdout.split()[-1]  # fmt: skip

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [str(Path(sys.executable).parent / "ray"), "start", *words, "--num-cpus=1", "--block"]
        command += [f"--object-store-memory={STORE}", "--disable-usage-stats"]
        return subprocess.Popen(
            command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def add(self) -> None:
        """Start the second node."""
        self._nodes.append(self._start(f"--address={self.address}"))

    def kill_second(self) -> None:
        """Kill the second node and all that runs on it, at once."""
        kill_tree(self._nodes.pop())

    def judges(self) -> list[psutil.Process]:
        """The workers that judge."""
        tree = [child for node in self._nodes for child in children(node)]
        return [process for process in tree if name_of(process).startswith("ray::_Judge")]

    def stop(self) -> None:
        """Kill all."""
        for node in reversed(self._nodes):
            kill_tree(node)


def children(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """A process's children, theirs included; none where it has ended."""
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def name_of(process: psutil.Process) -> str:
    """The title of a process; empty where it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its children at once."""
    for each in [*children(process), process]:
        with suppress(psutil.Error, OSError):
            each.kill()
    process.wait()


def detect(source: Path, output: str, *words: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    """Start `veriglot detect`, with the detector of the variable DETECTOR."""
    words = (*words, "--detector", environment.get("DETECTOR", "grounding"))
    command = [sys.executable, "-m", "veriglot", "detect", str(source), "-o", output, *words]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def timed(source: Path, output: str, *words: str, environment: dict[str, str]) -> dict[str, Any]:
    """Run it to its end: wall seconds, CPU seconds of the command and the processes that it started, and its words."""
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    _, told = detect(source, output, *words, environment=environment).communicate(timeout=3600)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": time.monotonic() - began, "cpu": cpu, "told": told}


def parts_of(folder: Path) -> list[dict[str, Any]]:
    """The list of parts."""
    return [json.loads(line) for line in (folder / "parts.jsonl").read_text("utf-8").splitlines()]


def merged_is_equal(folder: Path, local: Path) -> bool:
    """Whether the merged parts are the local output, byte for byte."""
    merged = folder.with_suffix(".jsonl")
    command = [sys.executable, "-m", "veriglot", "merge", str(folder), "-o", str(merged), "--overwrite", "--quiet"]
    return subprocess.run(command).returncode == 0 and merged.read_bytes() == local.read_bytes()


def speed(source: Path, folder: Path, nodes: Nodes, rows: int, repeats: int) -> dict[str, Any]:
    """The local engine with two processes and Ray with two nodes of one core, by turns; the best run of each."""
    local, ray = [], []
    output, parts = folder / "local.jsonl", folder / "ray"
    for _ in range(repeats):
        local.append(timed(source, str(output), "--processes", "2", "--overwrite", environment=dict(os.environ)))
        run = timed(source, f"{parts}/", "--engine", "ray", "--overwrite", environment=nodes.environment)
        told = re.search(r"rows in ([\d,.]+) s on (\d+) processes", run["told"])
        assert told is not None, run["told"]
        run["judging"], run["processes"] = float(told[1].replace(",", "")), int(told[2])
        run["workers"] = sum(part["seconds"] for part in parts_of(parts))
        ray.append(run)
    best, of_ray = (min(runs, key=lambda run: run["seconds"]) for runs in (local, ray))
    return {
        "rows": rows,
        "parts": len(parts_of(parts)),
        "equal": merged_is_equal(parts, output),
        "local rows/s": rows / best["seconds"],
        "ray rows/s": rows / of_ray["seconds"],
        "ray rows/s once workers are ready": rows / of_ray["judging"],
        "local CPU ms a row": best["cpu"] / rows * 1e3,
        "ray CPU ms a row": (of_ray["cpu"] + of_ray["workers"]) / rows * 1e3,
        "of them in the command": of_ray["cpu"] / rows * 1e3,
        "seconds undisturbed": of_ray["seconds"],
    }


def stamps(folder: Path) -> dict[str, int]:
    """When each part was written."""
    result = {}
    for path in folder.glob("part-*.parquet"):
        with suppress(FileNotFoundError):
            result[path.name] = path.stat().st_mtime_ns
    return result


def has_more_than(folder: Path, count: int) -> bool:
    """Whether more parts are written."""
    return len(stamps(folder)) > count


def wait_for(running: subprocess.Popen[str], condition: Any) -> None:
    """Wait until it is true, the command has ended, or that takes too long."""
    end = time.monotonic() + PATIENCE
    while running.poll() is None and time.monotonic() < end and not condition():
        time.sleep(0.05)


def deaths(source: Path, folder: Path, nodes: Nodes, rows: int, count: int, seed: int) -> dict[str, Any]:
    """Kill by turns a worker, the second node and the command, each at a random moment while rows are judged."""
    draw = random.Random(seed)
    parts, began = folder / "deaths", time.monotonic()
    killed: dict[str, int] = {}
    written: dict[str, int] = {}
    made_twice = 0
    words = ("--engine", "ray", "--processes", "2")
    running = detect(source, f"{parts}/", *words, environment=nodes.environment)
    for number in range(count):
        wait_for(running, nodes.judges)
        time.sleep(draw.uniform(0.5, 6))
        if running.poll() is not None:
            break
        now = stamps(parts)
        made_twice += sum(now.get(name) != stamp for name, stamp in written.items())
        written = now
        kind = ("worker", "node", "command")[number % 3]
        if kind == "worker" and (judges := nodes.judges()):
            draw.choice(judges).kill()
        elif kind == "node":
            nodes.kill_second()
            time.sleep(draw.uniform(0, 3))
            nodes.add()
        elif kind == "command":
            os.kill(running.pid, signal.SIGKILL)
            running.communicate()
            running = detect(source, f"{parts}/", *words, environment=nodes.environment)
        killed[kind] = killed.get(kind, 0) + 1
        wait_for(running, partial(has_more_than, parts, len(written)))
    running.communicate(timeout=3600)
    now = stamps(parts)
    made_twice += sum(now.get(name) != stamp for name, stamp in written.items())
    listed = parts_of(parts)
    return {
        "rows": rows,
        "deaths": killed,
        "parts": len(listed),
        "rows in parts": sum(part["end"] - part["start"] for part in listed),
        "finished parts that were made twice": made_twice,
        "equal": merged_is_equal(parts, folder / "local.jsonl"),
        "seconds": time.monotonic() - began,
    }


@contextmanager
def cluster(folder: Path) -> Iterator[Nodes]:
    """Two nodes, which end with the context."""
    nodes = Nodes(folder)
    try:
        yield nodes
    finally:
        nodes.stop()


def main() -> None:
    """Parse the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=2, help="runs of each engine (2)")
    parser.add_argument("--deaths", type=int, default=20, help="how many, by turns: worker, node, command (20)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--short", action="store_true", help="our examples as they are, not at the length of gold rows")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--detector", default="grounding")
    options = parser.parse_args()
    os.environ["DETECTOR"] = options.detector
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "in.parquet"
        rows = inputs.read_rows(str(inputs.EXAMPLES) if options.short else None, options.rows)
        veriglot.write((msgspec.structs.replace(row, id=f"r{n}") for n, row in enumerate(rows)), source)
        with cluster(folder / "r") as nodes:
            result = {"load of the machine": os.getloadavg()[0]}
            result["speed"] = speed(source, folder, nodes, options.rows, options.repeats)
            result["deaths"] = deaths(source, folder, nodes, options.rows, options.deaths, options.seed)
    result["overhead of the deaths"] = result["deaths"]["seconds"] / result["speed"]["seconds undisturbed"] - 1
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for title, table in result.items():
        print(f"\n{title}" if isinstance(table, dict) else f"{title}: {table:,.2f}")
        for label, value in table.items() if isinstance(table, dict) else ():
            print(f"  {label}: {value:,.3f}" if isinstance(value, float) else f"  {label}: {value}")


if __name__ == "__main__":
    main()
