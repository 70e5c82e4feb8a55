"""Is one model better than another: the difference of their rates, and whether it could be chance.

Where both answered the same queries, a hard query is hard for both, and only what remains within queries is noise:
the comparison is paired. Both rates are corrected by one profile, whose error then mostly cancels: a detector that
tells supported from unsupported units at all gives the difference its sign, so whether the rates differ is tested on
the marked shares, and how much they differ carries the profile's uncertainty as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from veriglot.errors import UsageError
from veriglot.rates.clustered import clustered_share, error_of, freedom_of
from veriglot.rates.detector_rates import detector_rates
from veriglot.rates.estimate import CONFIDENCE, DRAWS, SEED
from veriglot.rates.scientific import statistics
from veriglot.rates.shares import share_of
from veriglot.records import Estimator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.rates.clustered import ClusteredShare
    from veriglot.rates.tallies import Tallies
    from veriglot.records import LanguageProfile

    Array = NDArray[np.float64]

__all__ = ["Difference", "compare", "compare_draws", "compare_over"]

_PAIRED_FROM = 0.5  # share of each model's queries that the other one answered as well


@dataclass(frozen=True)
class Difference:
    """Two rates held against each other. Differences are first minus second, as shares.

    Attributes:
        difference, low, high: of the rates, with its interval, which carries the profile's uncertainty.
        p: two-sided p-value for equal rates, with the profile as it is.
        effect: standardised difference: of the marked shares of queries, weighted by their units, over the standard
            deviation of their differences (paired) or over the root of the mean of both variances (unpaired). None
            where the comparison is not of queries, or they do not vary.
        paired: whether it is of the same queries.
        queries: clusters that were compared: those of both (paired), or all of the two (unpaired).
        left_out: responses of the first and of the second to queries that only one of them answered (paired).
        error, freedom: standard error of the difference, with the profile as it is, and its degrees of freedom.
        draws: of the difference, shape `(draws,)`; NaN where a draw gives none.
        moved: what the profile's draws alone make of the difference, shape `(draws,)`.
        method: the test in words.
    """

    difference: float
    low: float
    high: float
    p: float
    effect: float | None
    paired: bool
    queries: int
    left_out: tuple[int, int]
    error: float
    freedom: float
    draws: Array = field(repr=False)
    moved: Array = field(repr=False)
    method: str = ""


def compare(
    first: Tallies,
    second: Tallies,
    profile: LanguageProfile | None,
    *,
    estimator: Estimator | str = Estimator.LABEL_SHIFT,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
    draws: int = DRAWS,
) -> Difference | None:
    """The difference of two models' rates in one language, by a t-test over queries.

    Paired where each answered at least half of the queries of the other: then over the queries of both, so that
    neither is judged on queries that the other was spared. Otherwise all queries of both count, as independent.
    Degrees of freedom fall where few queries make the difference (`freedom_of`), as they do where rates are low.

    Args:
        first, second: with cluster numbers of the same study.
        profile: of the language; None for `raw`.
        estimator: `raw`, `paper` or `label-shift`. For `em` and `ppi`, whose rates are no multiples of a marked share,
            `compare_draws` compares the estimates.
        confidence: of the interval, between 0 and 1.
        seed: of the draws.
        draws: their number.

    Returns:
        None where there is nothing to compare (no units, fewer than two queries), or where the profile does not support
        it: a detector that may mark supported units as often as unsupported ones.

    Raises:
        UsageError: an estimator that is not a multiple of a marked share, or no profile where one is needed.
        MissingExtraError: the extra `stats` is not installed.
    """
    factor = _factor(profile, Estimator(estimator), seed, draws, confidence)
    shared = _shared(first, second)
    kept = (
        (first, second)
        if shared is None
        else tuple(each.select(np.isin(each.cluster, shared)) for each in (first, second))
    )
    shares = [clustered_share(tallies) for tallies in kept]
    if factor is None or shares[0] is None or shares[1] is None or min(len(one.clusters) for one in shares if one) < 2:
        return None
    marked = shares[0].share - shares[1].share
    error, freedom, spread = _error(shares[0], shares[1], paired=shared is not None)
    error = math.hypot(error, *(_unseen(tallies) for tallies in kept))
    value, factors = factor
    drawn = (marked + error * _student_draws(freedom, draws, _generator(seed, *kept))) * factors
    queries = len(shared) if shared is not None else len(shares[0].clusters) + len(shares[1].clusters)
    return Difference(
        marked * value, *_interval(drawn, confidence), _p(marked, error, freedom),
        effect=marked / spread if spread > 0 else None,
        paired=shared is not None,
        queries=queries,
        left_out=(len(first) - len(kept[0]), len(second) - len(kept[1])),
        error=error * value,
        freedom=freedom,
        draws=drawn,
        moved=marked * factors,
        method=f"{'paired' if shared is not None else 'Welch'} t-test over queries",
    )  # fmt: skip


def compare_draws(
    rates: tuple[float, float], draws: tuple[Array, Array], *, queries: int, confidence: float = CONFIDENCE
) -> Difference | None:
    """The difference of two estimates that have draws, by any estimator, by a normal test.

    Args:
        rates: the two estimates.
        draws: of each, of equal shape `(draws,)`. What the two share must be shared draw by draw; what is drawn apart
            counts as independent, which is cautious where the same queries were answered.
        queries: clusters behind the two.
        confidence: of the interval, between 0 and 1.

    Returns:
        None where fewer than two draws have a value.
    """
    drawn = draws[0] - draws[1]
    defined = drawn[np.isfinite(drawn)]
    if len(defined) < 2:
        return None
    difference, error = rates[0] - rates[1], float(defined.std(ddof=1))
    moved = np.full(len(drawn), difference)
    p = math.erfc(abs(difference) / error / math.sqrt(2)) if error > 0 else 1.0
    return Difference(
        difference, *_interval(drawn, confidence), p, effect=None, paired=False, queries=queries, left_out=(0, 0),
        error=error, freedom=math.inf, draws=drawn, moved=moved, method="normal test of draws",
    )  # fmt: skip


def compare_over(differences: Sequence[Difference], *, confidence: float = CONFIDENCE) -> Difference | None:
    """The mean difference of two models over several languages, each of which counts the same.

    Args:
        differences: one of each language, made with the same seed and number of draws: what two languages share (a
            pooled profile) is then shared draw by draw.
        confidence: of the interval, between 0 and 1.

    Returns:
        None for no languages. `error` holds the languages' own errors and how far the profiles move the mean, which
        matters where differences have both signs; `freedom` is Satterthwaite's; `effect` is the mean of theirs.
    """
    if not differences:
        return None
    n = len(differences)
    mean = sum(one.difference for one in differences) / n
    drawn = np.mean([one.draws for one in differences], axis=0)
    moved = np.mean([one.moved for one in differences], axis=0)
    own = [(one.error / n) ** 2 for one in differences]
    # A draw of a profile whose rates nearly meet lies far out: quantiles, where a variance would be made by that one.
    low, high = np.nanquantile(moved, [0.1587, 0.8413])
    error = math.sqrt(sum(own) + ((high - low) / 2) ** 2)
    freedom = _satterthwaite(own, [one.freedom for one in differences])
    effects = [one.effect for one in differences if one.effect is not None]
    return Difference(
        mean, *_interval(drawn, confidence), _p(mean, error, freedom),
        effect=sum(effects) / n if len(effects) == n else None,
        paired=all(one.paired for one in differences),
        queries=sum(one.queries for one in differences),
        left_out=(sum(one.left_out[0] for one in differences), sum(one.left_out[1] for one in differences)),
        error=error,
        freedom=freedom,
        draws=drawn,
        moved=moved,
        method=f"{differences[0].method}, mean of {n} languages",
    )  # fmt: skip


def _shared(first: Tallies, second: Tallies) -> NDArray[np.int64] | None:
    """The queries of both, where there are enough of them to pair."""
    ours, theirs = np.unique(first.cluster), np.unique(second.cluster)
    both = np.intersect1d(ours, theirs)
    enough = len(both) >= 2 and len(both) >= _PAIRED_FROM * max(len(ours), len(theirs))
    return both if enough else None


def _factor(
    profile: LanguageProfile | None, estimator: Estimator, seed: int, draws: int, confidence: float
) -> tuple[float, Array] | None:
    """What a difference of marked shares is multiplied by, and draws of it; None where its sign is in doubt."""
    if estimator is Estimator.RAW:
        return 1.0, np.ones(draws)
    if estimator not in (Estimator.PAPER, Estimator.LABEL_SHIFT):
        raise UsageError(
            f"A rate by `{estimator}` is no multiple of a marked share.", remedy="Compare its draws (`compare_draws`)."
        )
    if profile is None:
        raise UsageError(f"The estimator `{estimator}` needs an error profile.", remedy="Give one, or compare `raw`.")
    rates = detector_rates(profile, seed=seed, draws=draws)
    if rates.tpr is None or rates.fpr is None or rates.prevalence is None:
        return None
    gap = rates.tpr_draws - rates.fpr_draws
    told = gap > 0
    if rates.tpr.value <= rates.fpr.value or (~told).mean() > (1 - confidence) / 2:
        return None
    if estimator is Estimator.PAPER:
        return (
            _over_recall(rates.prevalence.value, rates.tpr.value, rates.fpr.value),
            _over_recall(rates.prevalence_draws, rates.tpr_draws, rates.fpr_draws),
        )
    return 1 / (rates.tpr.value - rates.fpr.value), np.divide(1.0, gap, out=np.full(draws, np.nan), where=told)


def _over_recall(prevalence: Any, tpr: Any, fpr: Any) -> Any:
    """Precision over recall: unsupported units over marked ones, in the profile's data (mfava, equation 1)."""
    return prevalence / (prevalence * tpr + (1 - prevalence) * fpr)


def _error(first: ClusteredShare, second: ClusteredShare, *, paired: bool) -> tuple[float, float, float]:
    """Standard error of the difference of marked shares, its degrees of freedom, and what standardises it."""
    if paired:
        influences = first.influences - second.influences
        return error_of(influences), freedom_of(influences), error_of(influences) * math.sqrt(len(influences))
    squares = [first.error**2, second.error**2]
    freedom = _satterthwaite(squares, [freedom_of(first.influences), freedom_of(second.influences)])
    spread = math.sqrt((squares[0] * len(first.clusters) + squares[1] * len(second.clusters)) / 2)
    return math.sqrt(sum(squares)), freedom, spread


def _unseen(tallies: Tallies) -> float:
    """Standard error of a share that the data show no variation of: no unit is marked, or all are.

    Nothing marked in few queries does not mean that nothing ever is; the error is that of the Beta distribution that
    `shares` draws from.
    """
    share = share_of(tallies.marked, tallies.units, tallies.cluster)
    if share is None or 0 < share.value < 1:
        return 0.0
    a, b = share.value * share.effective + 0.5, (1 - share.value) * share.effective + 0.5
    return math.sqrt(a * b / (a + b + 1)) / (a + b)


def _satterthwaite(squares: Sequence[float], freedoms: Sequence[float]) -> float:
    total = sum(squares)
    if total <= 0:
        return float(min(freedoms))
    uncertain = sum(square**2 / freedom for square, freedom in zip(squares, freedoms, strict=True))
    return total**2 / uncertain if uncertain > 0 else math.inf  # draws have a known error


def _generator(seed: int, first: Tallies, second: Tallies) -> np.random.Generator:
    """Draws that depend on the counts: two languages share no noise of their responses."""
    sums = [int(part.sum()) for each in (first, second) for part in (each.marked, each.units)]
    return np.random.default_rng([seed, 5, *sums, len(first), len(second)])


def _student_draws(freedom: float, draws: int, generator: np.random.Generator) -> Array:
    """Student's t, evenly spread over its quantiles: the interval then agrees with the p-value."""
    quantiles = statistics("A comparison").t.ppf((np.arange(draws) + 0.5) / draws, freedom)
    drawn: Array = generator.permutation(quantiles)
    return drawn


def _p(difference: float, error: float, freedom: float) -> float:
    if error <= 0:  # every query gives the same difference: there is nothing to measure chance by
        return 1.0
    return float(2 * statistics("A comparison").t.sf(abs(difference) / error, freedom))


def _interval(draws: Array, confidence: float) -> tuple[float, float]:
    """Quantiles of draws; one without a value may be anything, so it widens both ends. Cut to [-1, 1]."""
    tail = (1 - confidence) / 2
    low = float(np.quantile(np.where(np.isnan(draws), -1.0, draws), tail))
    high = float(np.quantile(np.where(np.isnan(draws), 1.0, draws), 1 - tail))
    return max(low, -1.0), min(high, 1.0)
