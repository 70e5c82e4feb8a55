"""Win rates by hand, and those that hat prints from its own tables."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np
import pytest

from veriglot.bench import leaderboard
from veriglot.bench.config import scopes

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from veriglot.bench.results import BenchWin

METRICS = {"f1": 3, "precision": 4, "recall": 5, "mcc": 6}
Cells = dict[str, dict[str, float | None]]


def win_rates(
    values: Cells,
    groups: Mapping[str, Collection[str]] | None = None,
    draws: dict[str, dict[str, np.ndarray]] | None = None,
    measure: str = "mcc",
) -> list[BenchWin]:
    """Win rates of values alone, or with their draws after them."""
    cells = {
        cell: {
            name: np.array([np.nan if value is None else value, *(draws[cell][name] if draws else ())])
            for name, value in row.items()
        }
        for cell, row in values.items()
    }
    chosen = groups or {"all": tuple(values)}
    return list(leaderboard.win_rates(cells, chosen, level="response", measure=measure, at="tuned"))


def read_rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text("utf-8").splitlines()))


def hat_table(facts: Path, metric: str) -> tuple[Cells, dict[str, tuple[str, ...]]]:
    """Values by language pair, and the pairs by script."""
    values: Cells = {}
    languages: dict[str, tuple[str, str]] = {}
    for row in read_rows(facts / f"hat_table{METRICS[metric]}_{metric}.csv"):
        if row["kind"] != "language":
            continue
        cell = f"{row['direction']} {row['language']}"
        name = row["language"].replace("Simplified Chinese", "zh-Hans").replace("Traditional Chinese", "zh-Hant")
        values.setdefault(cell, {})[row["system"]] = float(row["value"])
        languages[cell] = ("English", name)
    return values, scopes(languages, ("latin",))


def test_ties_are_credited_to_all_and_said() -> None:
    values: Cells = {
        "a": {"x": 0.5, "y": 0.5, "z": 0.1},
        "b": {"x": 0.2, "y": 0.3, "z": None},
        "c": {"x": None, "y": float("nan"), "z": 0.0},
        "d": {"x": None, "y": None, "z": None},
    }
    found = {rate.system: rate for rate in win_rates(values)}
    assert {name: (r.wins, r.ties, r.played, r.cells) for name, r in found.items()} == {
        "x": (1, 1, 2, 3),
        "y": (2, 1, 2, 3),
        "z": (1, 0, 2, 3),
    }
    assert found["y"].rate == pytest.approx(2 / 3)
    assert sum(rate.rate or 0 for rate in found.values()) > 1


def test_values_are_compared_as_printed() -> None:
    assert [rate.wins for rate in win_rates({"a": {"x": 0.612, "y": 0.608}})] == [1, 1]
    assert [rate.wins for rate in win_rates({"a": {"x": 0.63, "y": 0.608}})] == [1, 0]
    assert [rate.wins for rate in win_rates({"a": {"x": 0.63, "y": 0.608}}, measure="fpr")] == [0, 1]


def test_an_empty_scope_has_no_rate() -> None:
    (found,) = win_rates({"a": {"x": 0.5}}, {"none": ()})
    assert (found.rate, found.cells) == (None, 0)


def test_intervals_come_from_the_draws() -> None:
    generator = np.random.default_rng(1)
    values: Cells = {cell: {"x": 0.6, "y": 0.5} for cell in "abcd"}
    close = {cell: {"x": generator.normal(0.6, 0.1, 500), "y": generator.normal(0.5, 0.1, 500)} for cell in "abcd"}
    sure = {cell: {"x": np.full(500, 0.6), "y": np.full(500, 0.5)} for cell in "abcd"}
    doubtful, certain = win_rates(values, draws=close)[0], win_rates(values, draws=sure)[0]
    assert doubtful.rate == certain.rate == 1.0
    assert doubtful.low is not None
    assert doubtful.low < 1.0
    assert (certain.low, certain.high) == (1.0, 1.0)


@pytest.mark.parametrize("metric", METRICS)
def test_hat_s_win_rates(metric: str, shared_facts: Path) -> None:
    values, groups = hat_table(shared_facts, metric)
    assert {name: len(cells) for name, cells in groups.items()} == {"all": 38, "latin": 20, "non_latin": 18}
    found = {(rate.scope, rate.system): rate for rate in win_rates(values, groups)}
    derived = [row for row in read_rows(shared_facts / "hat_derived_win_rates.csv") if row["metric"] == metric]
    assert len(derived) == len(found) == 30
    for row in derived:
        rate = found[row["scope"], row["system"]]
        assert (rate.wins, rate.cells) == (int(row["wins"]), int(row["pairs"])), row
    printed = [row for row in read_rows(shared_facts / "hat_text_win_rates.csv") if row["metric"] == metric]
    assert printed
    for row in printed:
        rate = found[row["scope"], row["system"]]
        assert rate.rate is not None
        assert round(100 * rate.rate) == int(row["printed_pct"]), row


def test_where_hat_s_text_contradicts_its_tables(shared_facts: Path) -> None:
    """CHECKS.md: H14 (who leads on MCC), H15 (precision outside Latin), H28 (means by group)."""
    values, groups = hat_table(shared_facts, "mcc")
    mcc = {rate.system: rate.wins for rate in win_rates(values, {"all": groups["all"]})}
    assert (mcc["Gemini-2.5-Flash"], mcc["Gemini-2.5-Pro"]) == (22, 21)
    means = {(mean.scope, mean.system): mean.mean for mean in win_rates(values, groups)}
    assert best(means, "latin") == "Gemini-2.5-Flash"
    assert best(means, "non_latin") == "Gemini-2.5-Pro"

    values, groups = hat_table(shared_facts, "precision")
    wins = {rate.system: rate.wins for rate in win_rates(values, groups) if rate.scope == "non_latin"}
    assert sorted(wins.values())[-2:] == [wins["BLASER-2.0-QE"], wins["Gemini-2.5-Pro"]] == [5, 12]
    means = {(mean.scope, mean.system): mean.mean for mean in win_rates(values, groups)}
    ordered = sorted((value for (scope, _), value in means.items() if scope == "non_latin" and value), reverse=True)
    assert ordered.index(means["non_latin", "BLASER-2.0-QE"]) == 2


def best(means: dict[tuple[str, str], float | None], scope: str) -> str:
    return max((value or 0.0, system) for (name, system), value in means.items() if name == scope)[1]


def test_hat_s_average_rows(shared_facts: Path) -> None:
    for metric, number in METRICS.items():
        values, _ = hat_table(shared_facts, metric)
        directions = {d: [cell for cell in values if cell.startswith(d)] for d in ("en-x", "x-en")}
        means = {(mean.scope, mean.system): mean for mean in win_rates(values, directions)}
        rows = read_rows(shared_facts / f"hat_table{number}_{metric}.csv")
        printed = [row for row in rows if row["kind"] != "language"]
        assert len(printed) == 20
        for row in printed:
            mean = means[row["direction"], row["system"]]
            assert mean.played == 19
            assert mean.mean == pytest.approx(float(row["value"]), abs=0.005 + 1e-9), row


def test_a_mean_leaves_out_what_has_no_value() -> None:
    values: Cells = {"a": {"x": 0.2}, "b": {"x": None}, "c": {"x": 0.4, "y": 1.0}}
    found = {mean.system: mean for mean in win_rates(values)}
    assert (found["x"].mean, found["x"].played) == (pytest.approx(0.3), 2)
    assert (found["y"].mean, found["y"].played) == (1.0, 1)
    assert win_rates({"a": {"x": None}})[0].mean is None
