"""What a scorer said of one sample: a number whose direction the scorer states, or why there is none."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from veriglot.records.prediction import Status

__all__ = ["Direction", "Score"]


class Direction(StrEnum):
    """Which way a scorer's numbers go."""

    HIGHER_IS_WORSE = "higher_is_worse"
    HIGHER_IS_BETTER = "higher_is_better"


class Score(msgspec.Struct, frozen=True, omit_defaults=True):
    """One scorer's number for one sample.

    Attributes:
        id: the sample's id.
        status: `scored`, or why not.
        scorer: name and revision, such as `top-ngram@1`.
        value: the number; None unless scored. Its range is the scorer's own, and no probability.
        parts: the numbers that it was made from, by name.
        language: BCP 47 tag of the response that the scorer worked with (given or identified).
        reason: why the sample was not scored.
        signature: one line that says how the score was made.

    Raises:
        ValueError: a scored one without a finite value, or a value or no reason on one that was not scored.
    """

    id: str
    status: Status
    scorer: str
    value: float | None = None
    parts: dict[str, float] = {}
    language: str | None = None
    reason: str | None = None
    signature: str | None = None

    def __post_init__(self) -> None:
        if self.status is Status.SCORED:
            if self.value is None or not abs(self.value) < float("inf"):
                raise ValueError(f"a score with status scored has a finite `value`, not {self.value}")
        elif self.value is not None:
            raise ValueError(f"a score with status {self.status} has no `value`")
        elif not self.reason:
            raise ValueError(f"a score with status {self.status} has a `reason`")
