"""Who leads a bench: nobody where all are equal, several together, and no place for those without a figure."""

from __future__ import annotations

import csv
from io import StringIO
from typing import TYPE_CHECKING

import pytest
from bench_made import bench_of

from veriglot.report.bench import bench_document, findings
from veriglot.report.bench_tables import View

if TYPE_CHECKING:
    from veriglot.bench.results import BenchResults


@pytest.mark.parametrize(
    ("systems", "said"),
    [
        (
            {"a": (0.61, 3), "b": (0.5, 2), "c": (0.4, 0)},
            "a leads, best by mcc in 3 of 5 languages, mean 0.610 (3 systems); c is number 3.",
        ),
        (
            {"g": (1.0, 5), "h": (1.0, 5)},
            "nobody leads: g and h are equal, each best by mcc in 5 of 5 languages, mean 1.000 (2 systems).",
        ),
        (
            {"g": (0.9, 4), "h": (0.9001, 4), "i": (0.9, 4), "k": (0.1, 1)},
            "h, g and i lead together, each best by mcc in 4 of 5 languages, mean 0.900 (4 systems); k is number 4.",
        ),
        (
            {"reader": (0.61, 4), "grounding": (0.62, 4), "k": (0.1, 1)},
            "grounding and reader lead together, each best by mcc in 4 of 5 languages; grounding has the"
            " greatest mean, 0.620 (3 systems); k is number 3.",
        ),
        ({"a": (0.61, 5), "b": (None, 0)}, "only a has figures that count, mean 0.610."),
    ],
)
def test_who_leads(systems: dict[str, tuple[float | None, int]], said: str) -> None:
    assert findings(View(bench_of(systems)))[0] == f"Responses: {said}"


def test_nobody_leads_where_a_system_was_trained_on_all_data() -> None:
    found = bench_of({"a": (0.61, 0), "b": (0.9, 0)}, seen=("b",))
    assert "nobody leads: a system was trained on all data that has figures (sums)" in findings(View(found))[0]
    assert _ranks(found) == {"a": "", "b": ""}


def test_equal_systems_share_a_place_and_those_without_a_figure_have_none() -> None:
    shared = bench_of({"a": (0.9, 4), "b": (0.9, 4), "c": (0.7, 1), "d": (None, 0)})
    assert _ranks(shared) == {"a": "1", "b": "1", "c": "3", "d": ""}
    nothing = bench_of({"a": (None, 0), "b": (None, 0), "c": (None, 0)})
    assert _ranks(nothing) == {"a": "", "b": "", "c": ""}


def _ranks(results: BenchResults) -> dict[str, str]:
    rows = csv.DictReader(StringIO(bench_document(results, "csv", table="leaderboard_response")))
    return {row["system"]: row["rank"] for row in rows}


def test_more_texts_are_no_remedy_where_scores_are_all_alike() -> None:
    why = "no threshold could be tuned: mcc is undefined at every threshold (12 scored items)"
    alike = bench_of({"a": (None, 0), "b": (None, 0)}, reason=why)
    assert findings(View(alike))[0] == f"Responses: no system has a figure of mcc: {why}."
