"""The judged sentences or facts of a response as rows that views show."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from veriglot.records import Prediction, Sample

__all__ = ["UnitRow", "unit_rows"]


class UnitRow(NamedTuple):
    """One unit: its kind, its score, and its own words with `…` for what lies between them."""

    kind: str
    score: float
    text: str


def unit_rows(sample: Sample, prediction: Prediction) -> list[UnitRow]:
    """The units of a prediction in order; none where it carries none."""
    response = sample.response
    return [
        UnitRow(
            unit.kind,
            unit.score,
            " … ".join(response[start:end] for start, end in unit.parts or ((unit.start, unit.end),)),
        )
        for unit in prediction.units or ()
    ]
