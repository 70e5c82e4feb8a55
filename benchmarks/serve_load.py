"""How `veriglot serve` holds at twice what it can do: nothing lost, refused calls told so, accepted ones quick.

    python benchmarks/serve_load.py --seconds 120

It starts a server of its own and measures three times: one caller alone (unloaded), as many callers as keep it busy
(what it can do), and then many callers who together send twice that, whether or not they are answered. Callers,
server and processes share the machine's cores, so a ratio says more than a time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, "-c", "import sys; from veriglot.cli import main; sys.exit(main())", "serve"]
SAMPLES = ROOT / "examples" / "samples.jsonl"


def requests_of(samples: Path) -> list[tuple[str, bytes]]:
    """Each sample as a request with its id, written once: the callers are to cost little."""
    requests = []
    for line in samples.read_text("utf-8").splitlines():
        row = json.loads(line)
        keys = ("id", "response", "evidence", "question", "language")
        body = json.dumps({key: row[key] for key in keys if key in row}, ensure_ascii=False).encode()
        head = "POST /v1/detect HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        requests.append((row["id"], f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body))
    return requests


@dataclass
class Outcome:
    """What became of the calls of one phase."""

    sent: int = 0
    accepted: list[float] = field(default_factory=list)  # seconds
    refused: int = 0
    untold: int = 0  # refused without a time to wait
    wrong: list[str] = field(default_factory=list)

    def quantile(self, part: float) -> float:
        """Milliseconds of the accepted calls."""
        values = sorted(self.accepted)
        return 1000 * values[min(len(values) - 1, int(part * len(values)))] if values else float("nan")


class Caller:
    """One connection that asks one call at a time."""

    def __init__(self, port: int, requests: list[tuple[str, bytes]], outcome: Outcome) -> None:
        self.port, self.requests, self.outcome = port, requests, outcome
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self) -> None:
        """Ask once, and note what came back."""
        outcome = self.outcome
        name, request = random.choice(self.requests)
        began = time.monotonic()
        outcome.sent += 1
        try:
            if self.streams is None:
                self.streams = await asyncio.open_connection("127.0.0.1", self.port)
            reader, writer = self.streams
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            body = await reader.readexactly(int(head.partition("content-length:")[2].split("\r\n")[0]))
        except (OSError, asyncio.IncompleteReadError) as error:
            outcome.wrong.append(f"no answer: {type(error).__name__}")
            self.streams = None
            return
        status = int(head.split(" ", 2)[1])
        if status == 429:
            outcome.refused += 1
            outcome.untold += "\r\nretry-after: " not in head
        elif status != 200:
            outcome.wrong.append(f"{status} {body[:200]!r}")
        elif json.loads(body)["id"] != name or b'"verdict":' not in body:
            outcome.wrong.append(f"an answer to something else: {body[:200]!r}")
        else:
            outcome.accepted.append(time.monotonic() - began)

    async def again_and_again(self, until: float) -> None:
        """Ask as soon as the last call is answered."""
        while time.monotonic() < until:
            await self.call()
        self.close()

    async def at_a_rate(self, until: float, every: float) -> None:
        """Ask at fixed times, whatever is answered."""
        due = time.monotonic() + random.uniform(0, every)
        while due < until:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await self.call()
            due = max(due + every, time.monotonic() - every)  # what was missed is not made up for all at once
        self.close()

    def close(self) -> None:
        """Hang up."""
        if self.streams is not None:
            self.streams[1].close()


class Server:
    """`veriglot serve` as people start it."""

    def __init__(self, processes: int, more: list[str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        command = [*COMMAND, "-p", str(self.port), "--processes", str(processes), *more]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    async def ready(self) -> None:
        """Wait until it answers."""
        for _ in range(1200):
            with suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.write(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                answer = await reader.read()
                writer.close()
                if answer.startswith(b"HTTP/1.1 200"):
                    return
            if self.process.poll() is not None:
                raise SystemExit("the server did not begin")
            await asyncio.sleep(0.1)
        raise SystemExit("the server does not get ready")

    def memory(self) -> float:
        """Megabytes of the server and its processes, counted as their own."""
        total = 0
        for process in [self.process.pid, *children(self.process.pid)]:
            with suppress(OSError):
                lines = Path(f"/proc/{process}/smaps_rollup").read_text("ascii").splitlines()
                total += sum(int(line.split()[1]) for line in lines if line.startswith(("Pss:", "SwapPss:")))
        return total / 1024

    def stop(self) -> int:
        """Tell it to stop; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


def children(parent: int) -> list[int]:
    """The processes that a process started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text("ascii", "replace").rpartition(")")[2].split()
            if int(fields[1]) == parent:
                found.append(int(path.parent.name))
    return found


async def phase(server: Server, callers: int, seconds: float, rate: float | None) -> Outcome:
    """Let callers call for a time: as fast as they are answered, or at a rate of calls a second in all."""
    outcome, requests = Outcome(), requests_of(SAMPLES)
    until = time.monotonic() + seconds
    calling = [Caller(server.port, requests, outcome) for _ in range(callers)]
    if rate is None:
        await asyncio.gather(*(caller.again_and_again(until) for caller in calling))
    else:
        await asyncio.gather(*(caller.at_a_rate(until, callers / rate) for caller in calling))
    return outcome


async def measure(given: argparse.Namespace) -> bool:
    """Do it all; whether everything held."""
    processes = given.processes or os.cpu_count() or 1
    server = Server(processes, given.serve.split())
    try:
        await server.ready()
        short = min(15.0, given.seconds / 3)
        await phase(server, processes, 1.0, None)
        alone = await phase(server, 1, short, None)
        busy = await phase(server, 2 * processes, short, None)
        capacity = len(busy.accepted) / short
        await phase(server, given.callers, 1.0, 2 * capacity)  # connections are opened, memory is taken
        before = server.memory()
        loaded = await phase(server, given.callers, given.seconds, 2 * capacity)
        after = server.memory()
    finally:
        code = server.stop()
    return report(given, processes, alone, capacity, loaded, (before, after), code)


def report(
    given: argparse.Namespace,
    processes: int,
    alone: Outcome,
    capacity: float,
    loaded: Outcome,
    memory: tuple[float, float],
    code: int,
) -> bool:
    """Print the figures; whether they are as they should be."""
    ratio = loaded.quantile(0.95) / alone.quantile(0.95)
    growth = memory[1] / memory[0] - 1
    lost = loaded.sent - len(loaded.accepted) - loaded.refused
    print(f"{given.callers} callers, {given.seconds:g} s, {processes} processes, load average {os.getloadavg()[0]:.1f}")
    print(f"unloaded: p50 {alone.quantile(0.5):.1f} ms, p95 {alone.quantile(0.95):.1f} ms; it can do {capacity:.0f}/s")
    print(
        f"sent {loaded.sent:,} ({loaded.sent / given.seconds:.0f}/s): accepted {len(loaded.accepted):,}, refused"
        f" {loaded.refused:,} ({loaded.untold} without Retry-After), lost {lost}"
    )
    print(
        f"accepted: p50 {loaded.quantile(0.5):.1f} ms, p95 {loaded.quantile(0.95):.1f} ms, p99"
        f" {loaded.quantile(0.99):.1f} ms; p95 is {ratio:.2f} times the unloaded one"
    )
    print(f"memory: {memory[0]:.0f} MB, then {memory[1]:.0f} MB ({growth:+.1%}); it left with {code}")
    wrong = [*alone.wrong[:3], *loaded.wrong[:5]]
    wrong += [f"{lost} calls lost"] * (lost > 0) + [f"{loaded.untold} refused without a time"] * (loaded.untold > 0)
    wrong += ["nothing was refused: the load was too small"] * (loaded.refused == 0)
    wrong += [f"p95 is {ratio:.2f} times the unloaded one"] * (ratio > given.ratio)
    wrong += [f"memory grew by {growth:.1%}"] * (growth > given.growth) + [f"it left with {code}"] * (code != 0)
    print("\n".join(wrong) if wrong else "nothing lost, refused calls told so")
    return not wrong


def main(arguments: list[str] | None = None) -> Any:
    """Read the command line, and do it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--callers", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--processes", type=int, default=0, help="of the server; default: one a core")
    parser.add_argument("--serve", default="", help="further options of veriglot serve")
    parser.add_argument("--ratio", type=float, default=3.0, help="most that p95 may be of the unloaded one")
    parser.add_argument("--growth", type=float, default=0.1, help="most that memory may grow, as a share")
    return asyncio.run(measure(parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
