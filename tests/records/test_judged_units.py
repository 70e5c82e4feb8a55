"""Judged units check themselves, and only what was scored has any."""

from __future__ import annotations

from typing import Any

import pytest

from veriglot.errors import InputError
from veriglot.records import JudgedUnit, Prediction, Status, from_mapping

UNIT = {"start": 2, "end": 9, "kind": "clause", "score": 0.4}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"end": 2}, "half-open and never empty"),
        ({"score": 1.2}, "between 0 and 1"),
        ({"parts": [[2, 4], [3, 9]]}, "in order"),
        ({"parts": [[0, 4]]}, "in order"),
        ({"parts": [[2, 10]]}, "in order"),
        ({"parts": [[4, 4]]}, "half-open and never empty"),
    ],
)
def test_a_wrong_unit_is_named(change: dict[str, Any], said: str) -> None:
    row = {"id": "a", "status": "scored", "detector": "d@1", "score": 0.5, "spans": [], "units": [{**UNIT, **change}]}
    with pytest.raises(InputError, match=said) as caught:
        from_mapping(row, Prediction)
    assert "units[0]" in str(caught.value)


def test_parts_lie_in_their_unit() -> None:
    row = {"id": "a", "status": "scored", "detector": "d@1", "score": 0.5, "spans": [], "units": [
        {**UNIT, "parts": [[2, 4], [6, 9]]}
    ]}  # fmt: skip
    assert from_mapping(row, Prediction).units == (JudgedUnit(2, 9, "clause", 0.4, ((2, 4), (6, 9))),)


def test_what_was_not_scored_has_no_units() -> None:
    with pytest.raises(ValueError, match="no `spans`, `words`, `units` or `score`"):
        Prediction("a", Status.FAILED, "d@1", units=(JudgedUnit(0, 1, "clause", 0.1),), reason="r")
