"""Agreement on a kind of thing that texts name (entities, numbers, names): which of them both sides have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.errors import UsageError
from veriglot.records import Status
from veriglot.scorers.against_evidence import Measured, Unmeasured

if TYPE_CHECKING:
    from veriglot.scorers.overlap import Overlap, Value

__all__ = ["agreement", "checked_empty"]


def checked_empty(empty: float | None) -> float | None:
    """The number for a response that names nothing of the kind, if it is one.

    Raises:
        UsageError: it is not between 0 and 1.
    """
    if empty is not None and not 0 <= empty <= 1:
        raise UsageError(f"empty is the value where there is nothing to compare, between 0 and 1, not {empty}.")
    return empty


def agreement(
    found: Overlap, which: Value, empty: float | None, kind: str, language: str | None
) -> Measured | Unmeasured:
    """Precision, recall or F1 of what was found, with its parts; what is a share of nothing has no number.

    Args:
        found: how many things both sides have.
        which: the value.
        empty: the number where there is nothing to take a share of; None for a sample that is not scored.
        kind: what was looked for, for the reason.
        language: that it was looked for in.
    """
    sides = {"precision": found.response, "recall": found.evidence, "f1": found.response + found.evidence}
    if sides[which]:
        return Measured(found.value(which), found.parts(), language)
    if empty is not None:
        return Measured(empty, found.parts(), language)
    where = {"precision": "the response", "recall": "the evidence", "f1": "either text"}[which]
    reason = f"no {kind} in {where}, so there is nothing to compare (empty= sets a value)"
    return Unmeasured(Status.NOTHING_TO_COMPARE, reason)
