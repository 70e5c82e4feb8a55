"""The engine with scorers: the same order, the same failures and the same processes as with detectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from letters import Forgetful, Fragile, Letters, Mortal
from rows import samples

from veriglot.pipeline.engine import Engine
from veriglot.records import Sample, Score

if TYPE_CHECKING:
    from collections.abc import Iterable


def scored(rows: Iterable[Sample], factory: Any = Letters, **settings: Any) -> list[Score]:
    with Engine(factory, **settings) as engine:
        assert engine.description.kind == "scorer"
        return list(engine.scores(rows))


@pytest.mark.parametrize(("jobs", "batch_size"), [(1, 1), (1, 1000), (2, 7), (3, 32)])
def test_any_split_gives_the_same_scores_in_order(jobs: int, batch_size: int) -> None:
    rows = list(samples(150))
    assert scored(rows, jobs=jobs, batch_size=batch_size) == [Letters().one(row) for row in rows]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_scorer_that_raises_loses_that_sample_alone(jobs: int) -> None:
    rows = [Sample(str(number), "raise" if number == 2 else "text") for number in range(5)]
    found = scored(rows, Fragile, jobs=jobs, batch_size=3)
    assert [one.id for one in found] == [row.id for row in rows]
    assert [one.status for one in found] == ["scored", "scored", "failed", "scored", "scored"]
    assert found[2].reason == "the scorer raised RuntimeError: too much"


def test_scores_that_are_missing_are_asked_for_one_by_one() -> None:
    rows = list(samples(9))
    assert scored(rows, Forgetful, batch_size=4) == [Letters().one(row) for row in rows]


def test_a_sample_that_kills_its_process_twice_has_failed() -> None:
    rows = [Sample(str(number), "die" if number == 4 else "text") for number in range(8)]
    found = scored(rows, Mortal, jobs=2, batch_size=8)
    assert [one.status == "failed" for one in found] == [number == 4 for number in range(8)]
    assert isinstance(found[4], Score)
    assert "died twice" in (found[4].reason or "")
