"""How sure a share of units is, where units come in clusters: draws that stay right near 0 and 1.

A share with standard error `s` is worth as much as one of `p (1 - p) / s^2` independent units, its effective number
(Kish 1965; Korn and Graubard 1998 for small shares). Draws come from the Beta distribution of so many units, with
Jeffreys' half a unit on either side. The standard error is itself estimated, from few clusters badly: each draw scales
it by a chi-square variable of its degrees of freedom, which gives tails like Student's t.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.rates.clustered import clustered_share, freedom_of
from veriglot.rates.tallies import Tallies

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Share", "share_of"]

_ASSUMED_CORRELATION = 0.2
"""Of units of one cluster, where the data hold no variation to estimate it from (no unit marked, or all)."""


@dataclass(frozen=True)
class Share:
    """A share of units.

    Attributes:
        value: between 0 and 1.
        units: number of units.
        clusters: number of clusters with units.
        effective: the number of independent units that would be as sure.
        freedom: degrees of freedom of its standard error, at least 1.
    """

    value: float
    units: int
    clusters: int
    effective: float
    freedom: float

    def draws(self, number: int, generator: Generator) -> Array:
        """Draws of the share, shape `(number,)`, between 0 and 1."""
        scale = generator.chisquare(self.freedom, number) / self.freedom
        worth = np.clip(self.effective * scale, 1.0, self.units)
        drawn: Array = generator.beta(self.value * worth + 0.5, (1.0 - self.value) * worth + 0.5)
        return drawn


def share_of(marked: NDArray[np.int64], units: NDArray[np.int64], cluster: NDArray[np.int64]) -> Share | None:
    """The share of marked units; arguments as in `Tallies`. None where there is no unit."""
    with_units = units > 0
    if not with_units.any():
        return None
    tallies = Tallies(marked[with_units], units[with_units], cluster[with_units])
    found = clustered_share(tallies)
    assert found is not None
    total, clusters = int(tallies.units.sum()), len(found.clusters)
    variance = found.error**2 if clusters > 1 else 0.0
    if variance > 0:
        effective = min(found.share * (1.0 - found.share) / variance, float(total))
    else:
        effective = clusters / (_ASSUMED_CORRELATION + (1.0 - _ASSUMED_CORRELATION) * clusters / total)
    return Share(found.share, total, clusters, effective, freedom_of(found.influences))
