"""A plan for many rows on a Ray cluster: a simulation, from costs a row that were measured on one machine.

One command reads the rows and hands blocks to idle cores, each block once; a core takes as long as its node is slow and
its luck is bad; nodes die, lose what they hold, and come back. Above what one command can feed, several commands share
the input files. Nothing here was run on a cluster.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import random
from dataclasses import asdict, dataclass
from typing import Any

DAY = 86_400.0


@dataclass(frozen=True)
class Costs:
    """What a row takes and a cluster is like: times in CPU seconds, sizes in bytes."""

    judge: float  # a row, on a core
    command: float  # a row, in the command: reading, handing over
    row_bytes: int
    prediction_bytes: int
    part_rows: int  # most rows of a part
    part_bytes: int  # most bytes of text of a part
    cores: int  # of a node
    slow: float  # share of nodes that are stragglers
    slowness: float  # how many times slower they are
    deaths: float  # of a node, a day
    return_after: float  # seconds until a dead node is back


def simulate(rows: int, nodes: int, costs: Costs, seed: int = 0) -> dict[str, float]:
    """One command: seconds to the end, share of the cores' time that judged, blocks that were done again."""
    draw = random.Random(seed)
    size = max(1, min(costs.part_rows, costs.part_bytes // costs.row_bytes))
    blocks = math.ceil(rows / size)
    slow = [draw.random() < costs.slow for _ in range(nodes)]
    dies = [draw.expovariate(costs.deaths / DAY) if costs.deaths else math.inf for _ in range(nodes)]
    idle = [(0.0, core) for core in range(nodes * costs.cores)]
    reader = end = judged = 0.0
    again, left = 0, blocks
    while left:
        free, core = heapq.heappop(idle)
        node = core % nodes
        if free >= dies[node] + costs.return_after:
            dies[node] = free + draw.expovariate(costs.deaths / DAY)
        elif free >= dies[node]:
            heapq.heappush(idle, (dies[node] + costs.return_after, core))
            continue
        begin = max(free, reader)
        reader = begin + costs.command * size
        seconds = costs.judge * size * draw.lognormvariate(0, 0.2) * (costs.slowness if slow[node] else 1)
        if begin < dies[node] <= reader + seconds:  # lost; it is handed out anew
            again += 1
            heapq.heappush(idle, (dies[node] + costs.return_after, core))
            continue
        left -= 1
        judged += costs.judge * size
        end = max(end, reader + seconds)
        heapq.heappush(idle, (reader + seconds, core))
    return {"seconds": end, "use": judged / (end * nodes * costs.cores), "again": again, "parts": blocks}


def plan(rows: int, limit: float, costs: Costs) -> dict[str, Any]:
    """The fewest nodes that finish within `limit` seconds, with as many commands as are needed to feed them."""
    nodes = math.ceil(rows * costs.judge / limit / costs.cores)
    while True:
        commands = math.ceil(nodes * costs.cores * costs.command / costs.judge / 0.8)  # each at 80% of what it can do
        each = math.ceil(nodes / commands)
        run = simulate(math.ceil(rows / commands), each, costs)
        if run["seconds"] <= limit:
            break
        nodes = max(nodes + 1, math.ceil(nodes * min(1.5, run["seconds"] / limit)))
    size = rows / (run["parts"] * commands)
    return {
        "rows": rows,
        "nodes": each * commands,
        "commands": commands,
        "hours": run["seconds"] / 3600,
        "core_hours": run["seconds"] / 3600 * each * commands * costs.cores,
        "use": run["use"],
        "blocks_again": run["again"] * commands,
        "parts": run["parts"] * commands,
        "part_kb": size * costs.prediction_bytes / 1e3,
        "network_mb_s": rows * (costs.row_bytes + costs.prediction_bytes) / run["seconds"] / 1e6,
    }


def main() -> None:
    """Parse the options, simulate, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--rows", type=int, nargs="+", default=[10_000_000, 100_000_000, 1_000_000_000])
    add("--hours", type=float, default=24.0, help="time to finish in (24)")
    add("--judge-ms", type=float, default=22.0, help="CPU a row of judging (22)")
    add("--command-ms", type=float, default=0.12, help="CPU a row of the command (0.12)")
    add("--row-bytes", type=int, default=9_800, help="text of a row (9,800)")
    add("--prediction-bytes", type=int, default=180, help="a prediction in Parquet (180)")
    add("--part-rows", type=int, default=2_000)
    add("--part-mb", type=float, default=8.4)
    add("--cores", type=int, default=16, help="of a node (16)")
    add("--slow", type=float, default=0.05, help="share of nodes that are stragglers (0.05)")
    add("--slowness", type=float, default=3.0, help="how many times slower (3)")
    add("--deaths", type=float, default=0.1, help="of a node, a day (0.1)")
    add("--return-minutes", type=float, default=10.0, help="until a dead node is back (10)")
    add("--price", type=float, default=0.0, help="of a core-hour; 0 says none (0)")
    add("--json", action="store_true")
    options = parser.parse_args()
    costs = Costs(
        options.judge_ms / 1e3, options.command_ms / 1e3, options.row_bytes, options.prediction_bytes,
        options.part_rows, int(options.part_mb * 1e6), options.cores, options.slow, options.slowness,
        options.deaths, options.return_minutes * 60,
    )  # fmt: skip
    plans = [plan(rows, options.hours * 3600, costs) for rows in options.rows]
    for each in plans:
        each["price"] = each["core_hours"] * options.price
    if options.json:
        print(json.dumps({"costs": asdict(costs), "plans": plans}, indent=1))
        return
    for name in plans[0]:
        print(f"{name:>14}", *(f"{each[name]:>16,.2f}" for each in plans))


if __name__ == "__main__":
    main()
