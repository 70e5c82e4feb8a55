"""Ray beside the local engine, its memory, and what it makes of deaths and faults.

A cluster of two nodes of one core is started on this machine. Each measurement is a word on the command line:

- speed: rows from Parquet by the local engine on two processes and by Ray, by turns.
- memory: of the command, the workers and Ray's own processes, every few seconds of one run by Ray.
- deaths: workers, the second node and the command itself, killed at random while rows are judged.
- faults: a disk that is full, a part that was damaged, a row that kills its worker.
- study: `veriglot study run` over given responses, by the local engine and by Ray.

All but memory compare the outcome with the local engine's, byte for byte. --data takes other rows than our examples at
the length of mFAVA's gold rows, and --cut shortens them.
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
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import msgspec
import psutil

import inputs
import veriglot
from veriglot.formats.reader import read_predictions
from veriglot.records import Generator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.records import Sample

PORT = 6391
STORE = 200 << 20  # bytes of Ray's memory on each node
PATIENCE = 240.0  # seconds for anything to happen
LONGEST = 1800.0  # seconds of any run
DEADLY = re.compile("die|once")  # over such a response the tests' detector is killed
EVERY = 3.0  # seconds between two looks at the memory
FLAT = 1.05, 20.0  # how much larger, or by how many MB, the last third's median may be than the middle third's
ENOUGH = 0.85  # of the local engine's speed
RAY = "--engine", "ray", "--processes", "2"
TESTS = Path(__file__).resolve().parents[1] / "tests" / "pipeline"


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

    def processes(self) -> list[psutil.Process]:
        """All that run on the nodes."""
        return [child for node in self._nodes for child in children(node)]

    def judges(self) -> list[psutil.Process]:
        """The workers that judge."""
        return [process for process in self.processes() if is_judge(process)]

    def stop(self) -> None:
        """Kill all."""
        for node in reversed(self._nodes):
            kill_tree(node)


def children(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """A process's children, theirs included; none where it has ended."""
    try:
        found: list[psutil.Process] = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return found


def is_judge(process: psutil.Process) -> bool:
    """Whether it is a worker that judges, by its title."""
    with suppress(psutil.Error, IndexError):
        return bool(process.cmdline()[0].startswith("ray::_Judge"))
    return False


def megabytes(processes: list[psutil.Process]) -> float:
    """Resident memory of processes without what they share: Ray's store, and code."""
    total = 0
    for process in processes:
        with suppress(psutil.Error):
            memory = process.memory_info()
            total += memory.rss - memory.shared
    return total / 1e6


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its children at once."""
    for each in [*children(process), process]:
        with suppress(psutil.Error, OSError):
            each.kill()
    process.wait()


def detect(source: Path, output: str, *words: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    """Start `veriglot detect`, with the detector of the variable DETECTOR."""
    words = (*words, "--detector", environment.get("DETECTOR", "grounding"))
    return veriglot_command("detect", source, "-o", output, *words, environment=environment)


def veriglot_command(*words: object, environment: dict[str, str]) -> subprocess.Popen[str]:
    """Start a command of Veriglot."""
    command = [sys.executable, "-m", "veriglot", *map(str, words)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def timed(source: Path, output: str, *words: str, environment: dict[str, str]) -> dict[str, Any]:
    """Run it to its end: wall seconds, CPU seconds of the command and the processes that it started, and its words."""
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    _, told = detect(source, output, *words, environment=environment).communicate(timeout=LONGEST)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": time.monotonic() - began, "cpu": cpu, "told": told}


def parts_of(folder: Path) -> list[dict[str, Any]]:
    """The list of parts."""
    return [json.loads(line) for line in (folder / "parts.jsonl").read_text("utf-8").splitlines()]


def merged_is_equal(folder: Path, local: Path) -> bool:
    """Whether the merged parts are the local output, byte for byte."""
    merged = local.with_name("merged.jsonl")
    command = [sys.executable, "-m", "veriglot", "merge", str(folder), "-o", str(merged), "--overwrite", "--quiet"]
    return subprocess.run(command).returncode == 0 and merged.read_bytes() == local.read_bytes()


def speed(source: Path, folder: Path, nodes: Nodes, options: argparse.Namespace) -> dict[str, Any]:
    """The local engine with two processes and Ray with two nodes of one core, by turns; the best run of each."""
    local, ray, rows = [], [], options.rows
    output, parts = folder / "local.jsonl", folder / "ray"
    for _ in range(options.repeats):
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
        "ray over local": (ratio := best["seconds"] / of_ray["seconds"]),
        "enough": ratio >= ENOUGH,
        "local CPU ms a row": best["cpu"] / rows * 1e3,
        "ray CPU ms a row": (of_ray["cpu"] + of_ray["workers"]) / rows * 1e3,
        "of them in the command": of_ray["cpu"] / rows * 1e3,
        "local seconds": best["seconds"],
        "ray seconds": of_ray["seconds"],
    }


def memory(source: Path, folder: Path, nodes: Nodes, options: argparse.Namespace) -> dict[str, Any]:
    """One run by Ray and the memory of all that takes part, from when the first part is there to the end."""
    seen: dict[str, list[float]] = {"command": [], "workers": [], "raylets and the rest": []}
    began = time.monotonic()
    running = detect(source, f"{folder}/ray/", *RAY, "--quiet", environment=nodes.environment)
    wait_for(running, partial(has_more_than, folder / "ray", 0))
    while running.poll() is None and time.monotonic() - began < LONGEST:
        workers = nodes.judges()
        rest = [process for process in nodes.processes() if process not in workers]
        groups = [psutil.Process(running.pid)], workers, rest
        for samples, group in zip(seen.values(), groups, strict=True):
            samples.append(megabytes(group))
        time.sleep(EVERY)
    _, told = running.communicate(timeout=EVERY)
    result: dict[str, Any] = {"rows": options.rows, "rows in parts": rows_in(folder / "ray")}
    result |= {"exit code": running.returncode, "seconds": time.monotonic() - began, "told": told.strip()[-500:]}
    for name, samples in seen.items():
        third = max(1, len(samples) // 3)
        first, middle, last = (
            statistics.median(part) for part in (samples[:third], samples[third:-third] or samples, samples[-third:])
        )
        flat = last <= max(middle * FLAT[0], middle + FLAT[1])
        result[name] = {"MB in thirds": [round(each, 1) for each in (first, middle, last)], "looks": len(samples)}
        result[name] |= {"MB at most": round(max(samples), 1), "flat": flat}
    return result


def rows_in(folder: Path) -> int:
    """Rows of all parts that are listed."""
    return sum(part["end"] - part["start"] for part in parts_of(folder))


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


def deaths(source: Path, folder: Path, nodes: Nodes, options: argparse.Namespace) -> dict[str, Any]:
    """Kill workers, the second node and the command, each when a random share of the rows is done, and a moment later.

    The last comes before 85% of the rows are done, so that none finds the run finished.
    """
    draw = random.Random(options.seed)
    undisturbed = timed(source, f"{folder}/calm/", *RAY, "--quiet", environment=nodes.environment)["seconds"]
    local = folder / "local.jsonl"
    timed(source, str(local), "--processes", "2", environment=dict(os.environ))
    parts, began = folder / "deaths", time.monotonic()
    count = len(parts_of(folder / "calm"))
    kinds = [("worker", "node", "command")[number % 3] for number in range(options.deaths)]
    draw.shuffle(kinds)
    killed: dict[str, int] = {}
    written: dict[str, int] = {}
    made_twice = 0
    running = detect(source, f"{parts}/", *RAY, environment=nodes.environment)
    for kind, share in zip(kinds, sorted(draw.uniform(0, 0.85) for _ in kinds), strict=True):
        wait_for(running, nodes.judges)
        wait_for(running, partial(has_more_than, parts, int(share * count) - 1))
        time.sleep(draw.uniform(0.2, 2))
        if running.poll() is not None:
            break
        now = stamps(parts)
        made_twice += sum(now.get(name) != stamp for name, stamp in written.items())
        written = now
        if kind == "worker" and (judges := nodes.judges()):
            draw.choice(judges).kill()
        elif kind == "node":
            nodes.kill_second()
            time.sleep(draw.uniform(0, 3))
            nodes.add()
        elif kind == "command":
            os.kill(running.pid, signal.SIGKILL)
            running.communicate()
            running = detect(source, f"{parts}/", *RAY, environment=nodes.environment)
        killed[kind] = killed.get(kind, 0) + 1
    _, told = running.communicate(timeout=LONGEST)
    seconds, now = time.monotonic() - began, stamps(parts)
    made_twice += sum(now.get(name) != stamp for name, stamp in written.items())
    return {
        "rows": options.rows,
        "deaths": killed,
        "exit code": running.returncode,
        "parts": len(parts_of(parts)),
        "rows in parts": rows_in(parts),
        "finished parts that were made twice": made_twice,
        "equal": merged_is_equal(parts, local),
        "seconds": seconds,
        "seconds undisturbed": undisturbed,
        "overhead": seconds / undisturbed - 1,
        "told by the last command": told.strip()[-500:],
    }


def faults(source: Path, folder: Path, nodes: Nodes, options: argparse.Namespace) -> dict[str, Any]:
    """A full disk, a damaged part and a row that kills, each on its way to the output of an undisturbed run."""
    local, parts = folder / "local.jsonl", folder / "small" / "ray"
    timed(source, str(local), "--processes", "2", environment=dict(os.environ))
    whole = timed(source, f"{folder}/calm/", *RAY, environment=nodes.environment)
    size = sum(part["size"] for part in parts_of(folder / "calm"))
    parts.parent.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size // 2}", "tmpfs", str(parts.parent)]
    result: dict[str, Any] = {"rows": options.rows, "undisturbed, s": whole["seconds"]}
    if subprocess.run(mount).returncode:
        raise SystemExit("The full disk is a small tmpfs: run this as root.")
    try:
        result["full disk"] = _ended(detect(source, f"{parts}/", *RAY, "--quiet", environment=nodes.environment))
        before = stamps(parts)
        subprocess.run([*mount[:3], "-o", f"remount,size={size * 4}", *mount[-1:]], check=True)
        result["with room again"] = _ended(detect(source, f"{parts}/", *RAY, "--quiet", environment=nodes.environment))
        now = stamps(parts)
        result["with room again"]["parts that were there"] = len(before)
        result["with room again"]["of them made twice"] = sum(now[name] != stamp for name, stamp in before.items())
        result["with room again"]["equal"] = merged_is_equal(parts, local)
        damaged = min(parts.glob("part-*.parquet"))
        damaged.write_bytes(damaged.read_bytes()[:-100])
        result["damaged part"] = _ended(detect(source, f"{parts}/", *RAY, "--quiet", environment=nodes.environment))
        again = stamps(parts)
        result["damaged part"]["parts made anew"] = sum(again[name] != stamp for name, stamp in now.items())
        result["damaged part"]["equal"] = merged_is_equal(parts, local)
    finally:
        subprocess.run(["umount", str(parts.parent)], check=True)
    rows = [row for row in islice(veriglot.read(source), 2_000) if not DEADLY.search(row.response)]
    rows[len(rows) // 2] = msgspec.structs.replace(rows[len(rows) // 2], id="poison", response="die")
    poisoned = folder / "poisoned.parquet"
    veriglot.write(rows, poisoned)
    environment = {**nodes.environment, "DETECTOR": "word_absence:Dies"}
    result["row that kills"] = _ended(detect(poisoned, f"{folder}/dies/", *RAY, "--quiet", environment=environment))
    made = [*read_predictions(folder / "dies")]
    result["row that kills"]["failed"] = [each.id for each in made if each.status == "failed"]
    result["row that kills"]["in order, each once"] = [each.id for each in made] == [row.id for row in rows]
    return result


def _ended(running: subprocess.Popen[str]) -> dict[str, Any]:
    """How a command ended."""
    began = time.monotonic()
    _, told = running.communicate(timeout=LONGEST)
    return {"exit code": running.returncode, "seconds": time.monotonic() - began, "told": told.strip()[-300:]}


def study(source: Path, folder: Path, nodes: Nodes, options: argparse.Namespace) -> dict[str, Any]:
    """A study over the rows as responses of two models, by the local engine and by Ray; its files, byte for byte."""
    responses = folder / "responses.parquet"
    models = [Generator("model-a"), Generator("model-b")]
    rows = enumerate(veriglot.read(source))
    veriglot.write((msgspec.structs.replace(row, generator=models[n % 2]) for n, row in rows), responses)
    result: dict[str, Any] = {"rows": options.rows}
    environments = {"local": dict(os.environ), "ray": nodes.environment}
    for engine, environment in environments.items():
        table = folder / "study.toml"
        table.write_text(
            f'[study]\ntitle = "Ray"\n[responses]\npath = "{responses.name}"\n[[detectors]]\n'
            f'name = "{options.detector}"\nlabelled = "{inputs.EXAMPLES}"\n[limits]\nengine = "{engine}"\n'
        )
        words = ("study", "run", table, "-o", folder / engine, "--processes", 2, "--quiet", "--json")
        result[engine] = _ended(veriglot_command(*words, environment=environment))
    files = [path.relative_to(folder / "local") for path in (folder / "local").rglob("*.json*")]
    names = [path for path in files if path.suffix != ".progress"]
    result["files that differ"] = [
        str(name) for name in names if not same(folder / "local" / name, folder / "ray" / name)
    ]
    rates = json.loads((folder / "ray" / "rates.json").read_bytes())
    result |= {"files": len(names), "equal rates": same(folder / "local/rates.json", folder / "ray/rates.json")}
    return result | {"rates": len(rates) if isinstance(rates, list) else list(rates)}


def same(first: Path, second: Path) -> bool:
    """Whether two files hold the same bytes."""
    return second.exists() and first.read_bytes() == second.read_bytes()


@contextmanager
def cluster(folder: Path) -> Iterator[Nodes]:
    """Two nodes, which end with the context."""
    nodes = Nodes(folder)
    try:
        yield nodes
    finally:
        nodes.stop()


def shortened(row: Sample, number: int, cut: int | None) -> Sample:
    """The row under its number; its first passage of `cut` code points, and a fourth of that of the response."""
    evidence, response = row.evidence, row.response
    if cut is not None:
        evidence = tuple(msgspec.structs.replace(each, text=each.text[:cut]) for each in row.evidence[:1])
        response = response[: cut // 4]
    return msgspec.structs.replace(row, id=f"r{number}", annotations=(), evidence=evidence, response=response)


def main() -> None:
    """Parse the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    measurements = {each.__name__: each for each in (speed, memory, deaths, faults, study)}
    parser.add_argument("measurement", choices=measurements)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=1, help="runs of each engine for speed (1)")
    parser.add_argument("--deaths", type=int, default=20, help="how many, a third each of worker, node, command (20)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", help="a file or folder in any readable format, instead of our examples")
    parser.add_argument("--distinct", type=int, default=2_000, help="different rows of it; they recur (2,000)")
    parser.add_argument("--cut", type=int, help="code points of evidence; a fourth of that of the response (all)")
    parser.add_argument("--detector", default="grounding", help="or a class of tests/pipeline (grounding)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ["DETECTOR"] = options.detector
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["WORD_ABSENCE_MARKS"] = name  # where word_absence:Dies counts deaths
        source = folder / "in.parquet"
        distinct = inputs.read_rows(options.data, min(options.rows, options.distinct))
        rows = (shortened(row, n, options.cut) for n, row in enumerate(islice(cycle(distinct), options.rows)))
        veriglot.write(rows, source)
        with cluster(folder / "r") as nodes:
            result = {"measurement": options.measurement, "load of the machine": os.getloadavg()[0]}
            result |= {"code points a row": inputs.code_points([shortened(row, 0, options.cut) for row in distinct])}
            result |= measurements[options.measurement](source, folder, nodes, options)
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for label, value in result.items():
        print(f"{label}: {value:,.3f}" if isinstance(value, float) else f"{label}: {value}")


if __name__ == "__main__":
    main()
