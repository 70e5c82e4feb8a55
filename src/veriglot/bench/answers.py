"""What systems said of data without labels, as a record of a bench's results."""

from __future__ import annotations

import msgspec

__all__ = ["BenchAnswers"]


class BenchAnswers(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a system said of data without labels, which tells how much it marks and not whether it is right.

    Attributes:
        system, data, level: the cell.
        language: BCP 47 tag of the responses, or `mean` over the data set's languages.
        items, clusters: scored items, and texts among them.
        coverage: share of the items that were scored.
        flagged: share of the scored items that it marks at its own threshold; None where it has none.
        flagged_low, flagged_high: 95% interval over resampled texts.
        mean: of its numbers, in its own range and direction.
        mean_low, mean_high: 95% interval over resampled texts.
        signature: one line that says how it was made.
    """

    system: str
    data: str
    level: str
    language: str
    items: int = 0
    clusters: int = 0
    coverage: float = 0.0
    flagged: float | None = None
    flagged_low: float | None = None
    flagged_high: float | None = None
    mean: float | None = None
    mean_low: float | None = None
    mean_high: float | None = None
    signature: str = ""
