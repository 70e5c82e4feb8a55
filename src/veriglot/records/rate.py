"""A number is never alone: an estimate with its interval, and a rate with what it stands on."""

from __future__ import annotations

from enum import StrEnum

import msgspec

__all__ = ["Estimate", "Estimator", "Interval", "Rate", "Reliability"]


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """The two ends of an interval, of level 0.95 unless its maker was asked for another; None where there is none.

    What inherits it states the number that the interval is of, by the name that its readers know (`r`, `difference`).
    """

    low: float | None = None
    high: float | None = None


class Estimate(Interval, frozen=True, kw_only=True):
    """A number with its interval; `value` is None where it is undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None


class Estimator(StrEnum):
    """How a rate is made from what a detector marked.

    `raw`: the share that was marked. `paper`: raw x precision / recall (mFAVA, equation 1). `label-shift`: from TPR
    and FPR, which stay when prevalence changes. `em`: the mixture of the profile's confidence distributions that
    explains the study's best. `ppi`: the marked share, rectified by labels from the study itself.
    """

    RAW = "raw"
    PAPER = "paper"
    LABEL_SHIFT = "label-shift"
    EM = "em"
    PPI = "ppi"


class Reliability(StrEnum):
    """Whether the data support the number."""

    OK = "ok"
    UNRELIABLE = "unreliable"


class Rate(msgspec.Struct, frozen=True):
    """One estimate. Shares lie between 0 and 1.

    Attributes:
        model: name of the generator; None where the samples name none.
        language: BCP 47 tag, or `*` for all together.
        rate: the estimate; None where there is nothing to estimate from.
        low: lower end of the interval; None without one.
        high: upper end of the interval; None without one.
        estimator: how it was made.
        unit: `char`, `word` or `hf:<tokenizer>`.
        units: number of units judged.
        responses: number of responses judged.
        coverage: responses judged over responses given or, in a study, asked for, between 0 and 1.
        status: `ok`, or `unreliable` with a reason.
        reason: what the data do not support, one sentence for each finding; None where `status` is `ok`.
        signature: one line that says how the figure was made.
        detector: name and revision of the detector.
        seed: seed of the responses, where the rate is of one seed; None where it is of all.

    Raises:
        ValueError: `unreliable` without a reason, or `ok` without a rate or with a reason.
    """

    model: str | None
    language: str
    rate: float | None
    low: float | None
    high: float | None
    estimator: Estimator
    unit: str
    units: int
    responses: int
    coverage: float
    status: Reliability
    reason: str | None
    signature: str
    detector: str | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.status is Reliability.UNRELIABLE and not self.reason:
            raise ValueError("an unreliable rate has a `reason`")
        if self.status is Reliability.OK and (self.reason or self.rate is None):
            raise ValueError("a rate with status ok has a `rate` and no `reason`")
