"""The draws of a measure as the bench takes them: one rule for figures, win rates and comparisons.

Where a threshold marks everything or nothing while items of both classes are there, Matthews' coefficient is 0 (as
scikit-learn has it) and not undefined: a system must not be averaged, or compared, over the languages alone in which
its threshold parts anything. The rule holds in each resample by itself; where a resample holds one class of items
alone, the coefficient stays undefined. `metrics.item_measures` and `veriglot evaluate` keep to the definition and call
both undefined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from veriglot.metrics.item_measures import draws

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.metrics.items import Items
    from veriglot.metrics.resampling import Resampling

    Array = NDArray[np.float64]

__all__ = ["bench_draws"]


def bench_draws(
    name: str, items: Items, resampling: Resampling, *, cut: float | Array | None = None
) -> tuple[Array, bool]:
    """The draws of a measure, and whether the rule above made the value of the data itself.

    Arguments and errors are those of `metrics.item_measures.draws`; the draws have shape `(1 + resamples,)`.
    """
    found = draws(name, items, resampling, cut=cut)
    undefined = np.isnan(found)
    if name != "mcc" or not undefined.any():
        return found, False
    recall, fpr = (draws(other, items, resampling, cut=cut) for other in ("recall", "fpr"))
    alike = undefined & ~np.isnan(recall) & ~np.isnan(fpr)  # these are undefined where a class has no item
    return np.where(alike, 0.0, found), bool(alike[0])
