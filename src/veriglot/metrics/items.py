"""Judged items: scores of responses or sentences beside their labels, and the measures taken of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.errors import UnknownNameError, UsageError
from veriglot.metrics import classification as scores
from veriglot.metrics import ranking as weighted_correlation
from veriglot.metrics.estimate import ClusteredEstimate, estimated
from veriglot.metrics.ranking import Ranked
from veriglot.records import Direction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from veriglot.metrics.bootstrap import Resampling

__all__ = [
    "AT_THRESHOLD",
    "CORRELATIONS",
    "ITEM_MEASURES",
    "ItemMeasure",
    "Items",
    "badness_of",
    "described",
    "draws",
    "measure",
]


if TYPE_CHECKING:
    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]


def badness_of(values: Sequence[float | None] | Array, direction: Direction | str) -> Array:
    """Scores turned so that greater is worse; NaN where there is none.

    Args:
        values: a system's own numbers, shape `(n,)`; None or NaN where it gave none.
        direction: which way they go.
    """
    numbers = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return numbers if Direction(direction) is Direction.HIGHER_IS_WORSE else -numbers


@dataclass(frozen=True)
class Items:
    """The items of a data set, in an order that all systems share.

    Attributes:
        badness: the system's score, greater is worse, of any range; NaN where it gave none. Shape `(n,)`.
        nonfactual: whether the labels call anything in the item unsupported, shape `(n,)`.
        support: share of the item's facts that the evidence supports (Kang et al.'s N_vs / N_t), NaN where it has no
            facts; None where it is not known.
        unverified: share that the evidence neither supports nor contradicts (Kang et al.'s N_nv / N_t), NaN where it
            has no facts or the labels do not tell; None where it is not known.

    Raises:
        ValueError: arrays of different lengths.
    """

    badness: Array
    nonfactual: Mask
    support: Array | None = None
    unverified: Array | None = None

    def __post_init__(self) -> None:
        given = [self.badness, self.nonfactual, self.support, self.unverified]
        sizes = {len(part) for part in given if part is not None}
        if len(sizes) > 1:
            raise ValueError(f"items have as many scores as labels, not {sorted(sizes)}")

    def __len__(self) -> int:
        return len(self.badness)

    @property
    def scored(self) -> Mask:
        """Which items the system scored, shape `(n,)`; figures stand on these alone."""
        scored: Mask = ~np.isnan(self.badness)
        return scored

    def select(self, mask: Mask) -> Items:
        """Some of the items; `mask` has shape `(n,)`."""
        return Items(
            self.badness[mask],
            self.nonfactual[mask],
            None if self.support is None else self.support[mask],
            None if self.unverified is None else self.unverified[mask],
        )


# The table of measures of judged items: from scores and labels to a value for the data and each resample.
#
# Every measure but `fpr` is the better the greater. In the papers, `auc_pr_factual` and `auc_pr_nonfactual` are
# AUC_F and AUC_NF (Kang et al., Table 6), `auc_pr_verified` and `auc_pr_unverified` AUC_V and AUC_UNV (their Table 7);
# precision, recall, F1 and MCC are HAT's (section 4.1), of the positive class, which is hallucination.
#
# Correlations are taken with the sign that makes a good system positive: the system's opinion of how good an item is
# with the support rate, of how bad it is with the unverified rate. Kang et al. correlate the numbers as they are, so
# their CON has the other sign (Table 6).


if TYPE_CHECKING:
    Cut = float | Array


@dataclass(frozen=True)
class ItemMeasure:
    """One measure of judged items.

    Attributes:
        name: the measure's name.
        kind: `threshold` (needs one), `ranking` or `correlation`.
        summary: what it is, in a line.
        why: the reason that stands beside an undefined value.
        truth: which part of `Items` it is held against: `nonfactual`, `support` or `unverified`.
        value: scores, truth, weights of shape `(draws, n)` and the cut of each item to one value per draw.
        positive: which items count as positive, from the truth.
        chance: what a system that knows nothing gets, from the share of positives; None where there is no such value.
        greater_is_better: False for `fpr` alone.
    """

    name: str
    kind: str
    summary: str
    why: str
    truth: str
    value: Callable[[Array, Array, Array, Array], Array]
    positive: Callable[[Array], Mask]
    chance: Callable[[float], float] | None
    greater_is_better: bool = True


def counts_at(badness: Array, nonfactual: Mask, cut: Cut) -> Array:
    """Which of true and false positives and negatives each item is, shape `(n, 4)`, when marked from `cut` up."""
    marked, bad = badness >= cut, nonfactual
    return np.stack([marked & bad, marked & ~bad, ~marked & bad, ~marked & ~bad], axis=1).astype(np.float64)


def _is(truth: Array) -> Mask:
    positive: Mask = truth > 0
    return positive


def _is_not(truth: Array) -> Mask:
    positive: Mask = truth <= 0
    return positive


def _below_one(truth: Array) -> Mask:
    positive: Mask = truth < 1
    return positive


def _at(score: Callable[[Array], Array]) -> Callable[[Array, Array, Array, Array], Array]:
    return lambda bad, truth, weights, cut: score(weights @ counts_at(bad, _is(truth), cut))


def _precise(bad: Array, truth: Array, weights: Array, cut: Array) -> Array:  # noqa: ARG001
    return Ranked.of(bad, _is(truth)).average_precision(weights)


def _precise_of_good(bad: Array, truth: Array, weights: Array, cut: Array) -> Array:  # noqa: ARG001
    return Ranked.of(-bad, _is_not(truth)).average_precision(weights)


def _auroc(bad: Array, truth: Array, weights: Array, cut: Array) -> Array:  # noqa: ARG001
    return Ranked.of(bad, _is(truth)).auroc(weights)


def _correlated(
    of: Callable[[Array, Array, Array], Array], sign: float
) -> Callable[[Array, Array, Array, Array], Array]:
    return lambda bad, truth, weights, _: of(sign * bad, truth, weights)


_ONE_CLASS = "all labels are the same"
_FLAT = "the labels or the marks are all the same"
_ALIKE = "all scores or all rates are the same, or the rates are not known"
_NO_RATES = "the labels do not tell what is unverified, or all items are the same in it"


def _threshold_measures() -> Iterator[ItemMeasure]:
    for name, summary, score, why in (
        ("precision", "share of marked items that are non-factual", scores.precision, "nothing is marked"),
        ("recall", "share of non-factual items that are marked", scores.recall, "no item is non-factual"),
        ("f1", "harmonic mean of precision and recall", scores.f1, "nothing is non-factual and nothing marked"),
        ("mcc", "Matthews correlation coefficient", scores.mcc, _FLAT),
        ("accuracy", "share of items judged as labelled", scores.accuracy, "there are no items"),
        ("fpr", "share of factual items that are marked", scores.fpr, "no item is factual"),
    ):
        yield ItemMeasure(name, "threshold", summary, why, "nonfactual", _at(score), _is, None, name != "fpr")


def _ranking_measures() -> Iterator[ItemMeasure]:
    for truth, good, bad, why in (
        ("nonfactual", "factual", "nonfactual", _ONE_CLASS),
        ("unverified", "verified", "unverified", _NO_RATES),
    ):
        for name, value, positive in ((good, _precise_of_good, _is_not), (bad, _precise, _is)):
            summary = f"area under precision and recall, positives are {name}"
            yield ItemMeasure(f"auc_pr_{name}", "ranking", summary, why, truth, value, positive, lambda share: share)
    summary = "chance that a non-factual item has the worse score than a factual one"
    yield ItemMeasure("auroc", "ranking", summary, _ONE_CLASS, "nonfactual", _auroc, _is, lambda _: 0.5)


def _correlation_measures() -> Iterator[ItemMeasure]:
    for truth, sign, positive, why in (("support", -1.0, _below_one, _ALIKE), ("unverified", 1.0, _is, _NO_RATES)):
        for kind, of in (("pearson", weighted_correlation.pearson), ("spearman", weighted_correlation.spearman)):
            summary = f"{kind.title()} correlation with the {truth} rate"
            value = _correlated(of, sign)
            yield ItemMeasure(f"{kind}_{truth}", "correlation", summary, why, truth, value, positive, lambda _: 0.0)


ITEM_MEASURES: dict[str, ItemMeasure] = {
    entry.name: entry for entry in (*_threshold_measures(), *_ranking_measures(), *_correlation_measures())
}
AT_THRESHOLD = tuple(name for name, entry in ITEM_MEASURES.items() if entry.kind == "threshold")
RANKING = tuple(name for name, entry in ITEM_MEASURES.items() if entry.kind == "ranking")
CORRELATIONS = tuple(name for name, entry in ITEM_MEASURES.items() if entry.kind == "correlation")


def _entry(name: str) -> ItemMeasure:
    if name not in ITEM_MEASURES:
        raise UnknownNameError("measure", name, ITEM_MEASURES)
    return ITEM_MEASURES[name]


def _truth(entry: ItemMeasure, items: Items) -> Array:
    values = getattr(items, entry.truth)
    return np.full(len(items), np.nan) if values is None else np.asarray(values, dtype=np.float64)


def draws(name: str, items: Items, resampling: Resampling, *, cut: Cut | None = None) -> Array:
    """A measure of the data (draw 0) and of every resample, shape `(1 + resamples,)`; NaN where undefined.

    Args:
        name: one of `ITEM_MEASURES`.
        items: of one system.
        resampling: of the same items.
        cut: badness from which an item counts as marked, one for all or one for each, shape `(n,)`; for the measures of
            `AT_THRESHOLD`.

    Raises:
        UnknownNameError: no such measure.
        UsageError: a measure at a threshold without one.
        ValueError: items, resampling and cuts are not of the same length, or a cut is NaN.
    """
    entry = _entry(name)
    if entry.kind == "threshold" and cut is None:
        raise UsageError(f"The measure {name!r} needs a threshold.", remedy="Tune one on a dev split, or give one.")
    if len(items) != len(resampling.cluster):
        raise ValueError(f"{len(items)} items, but resamples of {len(resampling.cluster)}")
    truth = _truth(entry, items)
    known = items.scored & ~np.isnan(truth)
    bad, labels = items.badness[known], truth[known]
    if not len(bad):
        return np.full(len(resampling.table), np.nan)
    cuts = np.broadcast_to(np.asarray(0.0 if cut is None else cut, dtype=np.float64), known.shape)[known]
    if np.isnan(cuts).any():
        raise ValueError("a cut is a number: leave out the items for which there is none")
    return np.concatenate([entry.value(bad, labels, weights, cuts) for weights in resampling.select(known).blocks()])


def measure(name: str, items: Items, resampling: Resampling, *, cut: Cut | None = None) -> ClusteredEstimate:
    """A measure with its interval; the arguments and errors are those of `draws`."""
    drawn = draws(name, items, resampling, cut=cut)
    return described(name, items, resampling, drawn)


def described(name: str, items: Items, resampling: Resampling, drawn: Array) -> ClusteredEstimate:
    """The estimate that draws of a measure make, with what stands behind it."""
    entry = _entry(name)
    truth = _truth(entry, items)
    known = items.scored & ~np.isnan(truth)
    positives = int(np.count_nonzero(entry.positive(truth[known])))
    total = int(np.count_nonzero(known))
    return estimated(
        drawn,
        items=total,
        positives=positives,
        clusters=resampling.select(known).clusters(),
        why=_why(entry, items) if not total else entry.why,
        chance=entry.chance(positives / total) if entry.chance is not None and total else None,
    )


def _why(entry: ItemMeasure, items: Items) -> str:
    """Why no item stands behind a measure."""
    if not items.scored.any():
        return "no labelled item was scored"
    return f"the labels do not tell the {entry.truth} rate of any scored item"
