"""The simulation of a cluster: what can be known without it, it says."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import scale_plan

IDEAL = scale_plan.Costs(
    judge=0.005, command=0.0, row_bytes=5_000, prediction_bytes=200, part_rows=1_000, part_bytes=8_000_000, cores=4,
    slow=0.0, slowness=3.0, deaths=0.0, return_after=600.0,
)  # fmt: skip


def run(nodes: int = 5, rows: int = 2_000_000, **changes: Any) -> dict[str, float]:
    return scale_plan.simulate(rows, nodes, replace(IDEAL, **changes))


def test_an_ideal_cluster_takes_the_work_over_its_cores() -> None:
    ideal = run()
    assert ideal["seconds"] == pytest.approx(2_000_000 * 0.005 / 20, rel=0.1)  # blocks differ by chance
    assert ideal["parts"] == 2_000
    assert run(part_bytes=500_000)["parts"] == 20_000


def test_a_command_that_cannot_feed_its_cores_is_the_bound() -> None:
    assert run(command=0.001)["seconds"] == pytest.approx(2_000_000 * 0.001, rel=0.05)


def test_stragglers_and_deaths_cost_time_and_lose_no_block() -> None:
    assert run(slow=0.5)["seconds"] > run()["seconds"] * 1.1
    often = run(deaths=200.0)
    assert often["again"] > 0
    assert often["seconds"] > run()["seconds"]
    assert often["parts"] == 2_000
    assert often["use"] < run()["use"]


def test_a_plan_keeps_its_time_with_as_many_commands_as_it_needs() -> None:
    plan = scale_plan.plan(20_000_000, 600.0, replace(IDEAL, command=0.000_2))
    assert plan["hours"] <= 600 / 3600
    assert plan["commands"] > 1
    assert plan["nodes"] * 4 * 600 >= 20_000_000 * 0.005
