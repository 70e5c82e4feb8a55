"""How many texts an interval takes: under five there is none, under thirty it says less than it seems to.

`benchmarks/figure_intervals.py` measured how often intervals hold the truth on 30 texts and more, see
docs/bench_figures.md; the least number is the one that the agreement of annotators has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.metrics.agreement import FEWEST_TEXTS

if TYPE_CHECKING:
    from veriglot.metrics.estimate import Estimate

__all__ = ["FEWEST_TEXTS", "SURE_TEXTS", "few", "honest", "too_few"]

SURE_TEXTS = 30
"""From here on intervals and tests hold about as often as they say."""


def few(texts: int) -> bool:
    """Whether there is an interval that is not to be believed."""
    return FEWEST_TEXTS <= texts < SURE_TEXTS


def too_few(texts: int, wanted: str = "an interval") -> str | None:
    """Why there is no interval of so many texts; None where there may be one."""
    if texts >= FEWEST_TEXTS:
        return None
    return f"too few texts for {wanted}: {texts} text{'' if texts == 1 else 's'}, and {FEWEST_TEXTS} are the fewest"


def honest(estimate: Estimate) -> Estimate:
    """Without an interval where too few texts were drawn from."""
    why = too_few(estimate.clusters)
    if why is None or estimate.low is None:
        return estimate
    reason = f"{estimate.reason}; {why}" if estimate.reason else why
    return estimate._replace(low=None, high=None, reason=reason)
