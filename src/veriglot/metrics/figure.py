"""A figure: one number that says what it was measured on, how sure it is, and how it was made."""

from __future__ import annotations

import msgspec

__all__ = ["MEAN", "POOLED", "Figure"]

POOLED = "pooled"
MEAN = "mean"


class Figure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One measured number.

    Attributes:
        level: what is judged: `unit`, `category` (units with their type), `type:<type>`, `span`, `char`, `sentence` or
            `response`.
        name: the measure, such as `f1`.
        language: BCP 47 tag, `pooled` (the counts of all languages added) or `mean` (the mean over languages).
        value: the number; None where it is undefined.
        low: lower end of the 95% percentile interval; None where there is none.
        high: its upper end.
        reason: why the value or the interval is missing, or what to know about it.
        unit: `char`, `word` or `hf:<tokenizer>`.
        n_responses: responses that were scored and labelled.
        n_clusters: texts among them; the bootstrap draws these.
        n_units: how many things of the level stand behind the figure (units, reference spans, sentences ...).
        coverage: share of the labelled responses that the detector scored; the figure stands on these alone.
        prevalence: share of these (for `span`, of the units) that the reference calls unsupported.
        signature: one line that says how the figure was made.
    """

    level: str
    name: str
    language: str
    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str | None = None
    unit: str
    n_responses: int
    n_clusters: int
    n_units: int
    coverage: float | None
    prevalence: float | None
    signature: str
