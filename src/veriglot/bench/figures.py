"""The figures of all systems on one data set, from the same items and resamples; also for unlabelled data.

Thresholds are tuned on the dev part alone, as HAT does (section 4.2): a score is binarized at the threshold that is
best on the development set for this system and measure. Precision and recall use the threshold of F1, since each alone
would be best by marking next to nothing, or everything. Verdicts, such as those of HAT's language models, need no
threshold. A figure of several languages is the mean of theirs, in each draw.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec.structs import asdict, replace

from veriglot.bench.evaluation import Evaluator, Settings
from veriglot.bench.evaluation import measured as evaluated
from veriglot.bench.items import WITHOUT_CONFIDENCES, ItemTable, SystemScores
from veriglot.bench.results import At, BenchAnswers, BenchError, BenchFigure, BenchThreshold
from veriglot.errors import MissingExtraError, UnknownNameError
from veriglot.metrics.estimate import (
    MEAN,
    POOLED,
    ClusteredEstimate,
    Resampling,
    estimated,
    mean_of_draws,
    percentile,
    too_few,
)
from veriglot.metrics.measures import (
    AT_THRESHOLD,
    CORRELATIONS,
    ITEM_MEASURES,
    SPAN_MEASURES,
    TYPES,
    Items,
    described,
    draws,
)
from veriglot.metrics.reference import reference
from veriglot.metrics.scores import COUNT_SCORES, Ranked
from veriglot.rates.comparison import correlate
from veriglot.records import Direction, Estimate, Prediction
from veriglot.records.languages import language_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from veriglot.arrays import Bools, Float64s

    Array = Float64s
    Mask = Bools

__all__ = ["RELIABLE_TEXTS", "UNTUNED", "WITH_PAIRWISE", "Measurement", "ScoredSystem", "bench_draws"]


# Tuning thresholds on scores.

UNTUNED = "no threshold could be tuned"
"""Start of the reason of a figure without a threshold."""

_TUNED = ("f1", "mcc", "accuracy")
_DIGITS = 12  # decimals in which figures of different thresholds must differ


class Threshold(NamedTuple):
    """A threshold: the badness (greater is worse) from which items are marked, or why none could be tuned.

    `reached` is the measure's value on the development split; `items` are its scored items, `positives` the non-factual
    ones among them.
    """

    cut: float | None
    reached: float | None
    items: int
    positives: int
    reason: str | None = None


def tune(badness: Array, nonfactual: Mask, measure: str = "f1") -> Threshold:
    """The threshold that is best on a development split.

    It lies halfway between two scores that occur, so that a slightly different score has the same result. Of several
    equally good ones, the one that marks the fewest items is chosen.

    Args:
        badness: the system's score of each item, greater is worse, NaN if it gave none, shape `(n,)`.
        nonfactual: the labels, shape `(n,)`.
        measure: one of `AT_THRESHOLD`; precision, recall and FPR take the threshold of F1.

    Raises:
        UnknownNameError: the measure needs no threshold.
    """
    if measure not in AT_THRESHOLD:
        raise UnknownNameError("measure that takes a threshold", measure, AT_THRESHOLD)
    aim = measure if measure in _TUNED else "f1"
    known = ~np.isnan(badness)
    badness, labels = badness[known], nonfactual[known]
    nowhere = Threshold(None, None, len(labels), int(np.count_nonzero(labels)))
    if not len(labels):
        return nowhere._replace(reason="the development split has no scored and labelled items")
    if not labels.any() or labels.all():
        which = "factual" if labels.all() else "non-factual"
        return nowhere._replace(reason=f"the development split has no {which} items")
    cuts, reached = _candidates(badness, labels, aim)
    if np.isnan(reached).all():
        return nowhere._replace(reason=f"{aim} is undefined at every threshold")
    best = int(np.nanargmax(reached.round(_DIGITS)))  # the first of equal figures, ignoring the last digits
    return nowhere._replace(cut=float(cuts[best]), reached=float(reached[best]))


def _candidates(badness: Array, labels: Mask, aim: str) -> tuple[Array, Array]:
    """Thresholds from the one that marks nothing to the one that marks everything, and the measure at each."""
    ranked = Ranked.of(badness, labels)
    positives, negatives = (
        np.concatenate([[0.0], np.cumsum(part[0])]) for part in ranked.steps(np.ones((1, len(labels))))
    )
    counts = np.stack([positives, negatives, positives[-1] - positives, negatives[-1] - negatives], axis=1)
    upper, lower = ranked.cuts[:-1], ranked.cuts[1:]
    middle = lower + (upper - lower) / 2.0
    middle = np.where(middle > lower, middle, upper)  # adjacent floating-point numbers have no middle
    nothing = np.nextafter(ranked.cuts[0], np.inf)
    return np.concatenate([[nothing], middle, [ranked.cuts[-1]]]), COUNT_SCORES[aim](counts)


# The draws of a measure: one rule for figures, win rates and comparisons.
#
# If a threshold marks everything or nothing while there are items of both classes, Matthews' coefficient is 0 (as in
# scikit-learn) and not undefined: a system must not be averaged or compared over only the languages in which its
# threshold separates items. The rule holds in each resample separately; in a resample with items of one class, the
# coefficient stays undefined. `metrics.measures` and `veriglot evaluate` keep to the definition: undefined in both
# cases.

_LONGEST_SOURCE = 2000  # maximum code points of the evidence that an error shows
_ALIKE = "all items are marked, or none: marks that go with nothing count as 0"


def bench_draws(name: str, items: Items, resampling: Resampling, *, cut: float | Array | None) -> tuple[Array, bool]:
    """The draws of a measure, and whether the rule above gave the value on the data itself.

    Arguments and errors are those of `metrics.measures.draws`; the draws have shape `(1 + resamples,)`.
    """
    drawn = draws(name, items, resampling, cut=cut)
    undefined = np.isnan(drawn)
    if name != "mcc" or not undefined.any():
        return drawn, False
    recall, fpr = (draws(other, items, resampling, cut=cut) for other in ("recall", "fpr"))
    alike = undefined & ~np.isnan(recall) & ~np.isnan(fpr)  # these are undefined if a class has no item
    return np.where(alike, 0.0, drawn), bool(alike[0])


def correlation_p(kind: str, first: Array, second: Array, resampling: Resampling, drawn: Array) -> float | None:
    """The two-sided p-value of a correlation over items (null hypothesis: no relation); None if there is none.

    As in Kang et al. (section 5.1) if every item is a text of its own. Their test assumes independent items; if texts
    have several items, it is a normal test of atanh r with the standard error from resampled texts.

    Args:
        kind: `pearson` or `spearman`.
        first, second: the correlated values, NaN if an item has none, shape `(n,)`.
        resampling: of the same items.
        drawn: the draws of the correlation.

    Raises:
        MissingExtraError: the extra `stats` is not installed.
    """
    known = ~np.isnan(first) & ~np.isnan(second)
    if np.isnan(drawn[0]) or np.count_nonzero(known) < 3:
        return None
    if resampling.select(known).clusters() < np.count_nonzero(known):
        return _bootstrap_p(drawn)
    tested = correlate(first[known], second[known], method=kind)
    return tested.p if tested is not None else None


def _bootstrap_p(drawn: Array) -> float | None:
    """A normal test of atanh r, with its standard error from resampled texts."""
    spread = np.arctanh(np.clip(drawn[1:][~np.isnan(drawn[1:])], -1 + 1e-12, 1 - 1e-12))
    if len(spread) < 2:
        return None
    error = float(spread.std(ddof=1))
    if error <= 0:
        return None
    z = abs(math.atanh(min(max(float(drawn[0]), -1 + 1e-12), 1 - 1e-12))) / error
    return math.erfc(z / math.sqrt(2))


# Number of texts for an interval: none with fewer than 5; with fewer than 30 it is less reliable than it looks.
#
# `benchmarks/figure_intervals.py` measured the coverage of intervals on 30 texts and more, see
# benchmarks/figure_intervals.md; the minimum is that of the agreement of annotators.

RELIABLE_TEXTS = 30
"""With so many texts, the coverage of intervals and the error rates of tests are about nominal."""


def without_unreliable_interval(estimate: ClusteredEstimate) -> ClusteredEstimate:
    """Without an interval if there are too few texts."""
    why = too_few(estimate.clusters)
    if why is None or estimate.low is None:
        return estimate
    return replace(estimate, low=None, high=None, reason=_joined(estimate.reason, why))


def _joined(*reasons: str | None) -> str | None:
    return "; ".join(filter(None, reasons)) or None


# Figures of items.

WITH_PAIRWISE = "pearson_pairwise"
"""Correlation of a scorer with itself if other responses replace the evidence (Kang et al., section 4.2)."""


@dataclass(frozen=True)
class ScoredSystem:
    """The scores of one system on the items of a data set.

    Attributes:
        name: its name.
        direction: of its own scores, for thresholds.
        test: for the test items.
        dev: for the dev items.
        seen: whether the data was in its training data.
        cell: key of the cell, for signatures.
        predictions: a detector's predictions of the test samples.
    """

    name: str
    direction: str
    test: SystemScores
    dev: SystemScores
    seen: bool
    cell: str
    predictions: Sequence[Prediction] = ()

    @property
    def sign(self) -> float:
        """Factor between its own scores and badness: 1 or -1."""
        return 1.0 if Direction(self.direction) is Direction.HIGHER_IS_WORSE else -1.0

    @property
    def verdicts_alone(self) -> bool:
        """Whether all its scores are 0 or 1: a threshold could only add marking nothing or everything."""
        numbers = self.test.badness[~np.isnan(self.test.badness)]
        return WITHOUT_CONFIDENCES in self.test.notes and bool(np.isin(numbers, (0.0, 1.0)).all())


@dataclass(frozen=True)
class Measurement:
    """The systems on one data set at one level: their scores and figures.

    Attributes:
        data: name of the data set.
        test, dev: its items.
        resampling: of the test items.
        suffix: end of the signature of every figure.
        partners: scorer to the same scorer as `pairwise:`, if both are in the bench.
        systems: their scores.
        figures, thresholds: see `BenchFigure` and `BenchThreshold`.
        drawn: measure and threshold to language to system to its draws (the data in draw 0), for win rates.
        cuts: system and measure to the badness from which items are marked in each language, as tuned.
    """

    data: str
    test: ItemTable
    dev: ItemTable
    resampling: Resampling
    suffix: str
    partners: Mapping[str, str]
    systems: list[ScoredSystem] = field(default_factory=list)
    figures: list[BenchFigure] = field(default_factory=list)
    thresholds: list[BenchThreshold] = field(default_factory=list)
    drawn: dict[tuple[str, At | None], dict[str, dict[str, Array]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(dict))
    )
    cuts: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)

    def measure(self, measures: Sequence[str], *, by_language: bool) -> None:
        """Compute these measures of `ITEM_MEASURES`; `by_language` tunes a threshold for each language, not for all.

        Also `WITH_PAIRWISE`, which needs no labels, for every scorer that has a partner.
        """
        for system in self.systems:
            items = self.test.items(system.test.badness)
            for name in dict.fromkeys((*measures, *([WITH_PAIRWISE] if system.name in self.partners else []))):
                if name == TYPES:
                    self._measure_types(system)
                    continue
                if name not in AT_THRESHOLD:
                    self._add(system, name, None, items, {}, {})
                    continue
                cuts, without = self._tuned(system, name, by_language=by_language)
                self._add(system, name, "tuned", items, cuts, without)
                self.cuts[system.name, name] = cuts
                if system.test.verdict is not None:
                    verdicts = self.test.items(system.test.verdict)
                    self._add(system, name, "own", verdicts, dict.fromkeys(self.test.tags(), 0.5), {})

    def _measure_types(self, system: ScoredSystem) -> None:
        """Share of responses whose type is named: all, and those of each type (HalluVerse25, Tables 3 and 4)."""
        scores = system.test
        if scores.types is None or scores.right is None:
            if scores.untyped:
                nothing = ClusteredEstimate(0, 0, 0, None, scores.untyped, value=None)
                self._add_figure(system, TYPES, None, MEAN, nothing)
            return
        self._add(system, TYPES, None, self.test.items(scores.badness, scores.right), {}, {})
        for name in sorted({*scores.types.tolist()} - {""}):
            right = np.where(scores.types == name, scores.right, np.nan)
            self._add(system, f"{TYPES}:{name}", None, self.test.items(scores.badness, right), {}, {})

    def _tuned(
        self, system: ScoredSystem, measure: str, *, by_language: bool
    ) -> tuple[dict[str, float], dict[str, str]]:
        """Language to its threshold, and language to why none can be tuned."""
        dev, tags = self.dev, self.test.tags()
        cuts: dict[str, float] = {}
        without: dict[str, str] = {}
        for tag in tags if by_language else [MEAN]:
            chosen = dev.languages == tag if by_language else np.ones(len(dev), bool)
            cut, reached, items, positives, reason = tune(system.dev.badness[chosen], dev.nonfactual[chosen], measure)
            if system.verdicts_alone:
                cut, reached, reason = 0.5, None, "the system gives only verdicts, which count as they are"
            elif not len(dev):
                marked = self.test.nonfactual
                one_kind = f"{'every' if marked.all() else 'no'} item is unsupported"
                reason = one_kind if marked.all() or not marked.any() else "no sample is set aside for tuning"
            value = None if cut is None else system.sign * cut
            self.thresholds.append(
                BenchThreshold(
                    system.name, self.data, dev.level, measure, tag, value, system.direction, reached,
                    items, positives, reason,
                )
            )  # fmt: skip
            meant = [tag] if by_language else tags
            if cut is not None:
                cuts |= dict.fromkeys(meant, cut)
            else:
                scored = f" ({items:,} scored item{'' if items == 1 else 's'})" if items else ""
                without |= dict.fromkeys(meant, f"{UNTUNED}: {reason}{scored}")
        return cuts, without

    def _add(
        self,
        system: ScoredSystem,
        name: str,
        at: At | None,
        items: Items,
        cuts: Mapping[str, float],
        without: Mapping[str, str],
    ) -> None:
        """The figures of one measure: for each language, then the mean over them; `MEASURE:TYPE` is for one type."""
        parts: dict[str, tuple[Array, ClusteredEstimate]] = {}
        by_system = {each.name: each.test.badness for each in self.systems}
        items = dataclasses.replace(items, pairwise=by_system.get(self.partners.get(system.name, "")))
        measure = name.partition(":")[0]
        for tag in self.test.tags():
            mask = self.test.languages == tag
            part, drawing = items.select(mask), self.resampling.select(mask)
            if name in AT_THRESHOLD and tag not in cuts:
                scored = int(np.count_nonzero(part.scored))
                nothing = ClusteredEstimate(scored, 0, 0, None, without[tag], value=None)
                self._add_figure(system, name, "tuned", tag, nothing)
                continue
            values, alike = bench_draws(measure, part, drawing, cut=cuts.get(tag))
            estimate = described(measure, part, drawing, values)
            if alike:
                estimate = replace(estimate, reason=_joined(_ALIKE, estimate.reason))
            p = None
            kind, _, truth = name.partition("_")
            rate = getattr(part, truth) if name in CORRELATIONS else None
            if rate is not None:
                with suppress(MissingExtraError):
                    p = correlation_p(kind, part.badness, rate, drawing, values)
            parts[tag] = values, estimate
            self.drawn[name, at][tag][system.name] = values
            self._add_figure(system, name, at, tag, estimate, p)
        mean = self._mean(measure, parts, "; ".join(dict.fromkeys(without.values())))
        self._add_figure(system, name, at, MEAN, mean)

    def _add_figure(
        self,
        system: ScoredSystem,
        name: str,
        at: At | None,
        tag: str,
        estimate: ClusteredEstimate,
        p: float | None = None,
    ) -> None:
        scored = ~np.isnan(system.test.badness)[(self.test.languages == tag) | (tag == MEAN)]
        coverage = float(np.count_nonzero(scored)) / max(len(scored), 1)
        where = f"figure:{self.test.level}.{name}|at:{at or 'none'}|language:{tag}"
        signature = f"{where}|cell:{system.cell[:16]}|{self.suffix}"
        self._append(system, tag, name, at, estimate, coverage, signature, p)

    def _append(
        self,
        system: ScoredSystem,
        language: str,
        measure: str,
        at: At | None,
        estimate: ClusteredEstimate,
        coverage: float,
        signature: str,
        p: float | None = None,
    ) -> None:
        self.figures.append(
            BenchFigure(
                system=system.name,
                data=self.data,
                level=self.test.level,
                language=language,
                measure=measure,
                at=at,
                coverage=coverage,
                p=p if too_few(estimate.clusters) is None else None,
                seen=system.seen,
                signature=signature,
                **asdict(without_unreliable_interval(estimate)),
            )
        )

    def _mean(self, name: str, parts: Mapping[str, tuple[Array, ClusteredEstimate]], untuned: str) -> ClusteredEstimate:
        """Over the languages in which the measure is defined; `untuned` says why there are no parts."""
        every = self.test.tags()
        defined = [tag for tag, (values, _) in parts.items() if not np.isnan(values[0])]
        behind = [parts[tag][1] for tag in defined or parts]
        chances = [estimate.chance for estimate in behind if estimate.chance is not None]
        mean = estimated(
            mean_of_draws([values for values, _ in parts.values()]),
            items=sum(estimate.items for estimate in behind),
            positives=sum(estimate.positives for estimate in behind),
            clusters=sum(estimate.clusters for estimate in behind),
            why=ITEM_MEASURES[name].why if parts else untuned or UNTUNED,
            chance=float(np.mean(chances)) if chances else None,
        )
        missing = [tag for tag in every if tag not in defined]
        if missing and defined:
            gap = f"over {len(defined)} of {len(every)} languages, without {', '.join(map(language_name, missing))}"
            mean = replace(mean, reason=_joined(gap, mean.reason))
        return mean

    def measure_spans(self, settings: Mapping[str, Settings], *, seed: int, resamples: int) -> None:
        """Figures of detectors' spans and confidences that item scores cannot give, by language and as their mean.

        As in `veriglot evaluate` (`metrics.measures`), at the detector's own threshold: the character IoU and the
        correlation with soft labels of the Mu-SHROOM shared task, and the expected calibration error of words.

        Args:
            settings: system to its settings of the evaluation.
            settings: system to what is measured, against which labels.
            seed, resamples: of the bootstrap, which draws texts as `veriglot evaluate` does.
        """
        levels = sorted(set(SPAN_MEASURES.values()))
        for system in self.systems:
            if system.name not in settings:
                continue
            evaluator = Evaluator(settings[system.name])
            for sample, prediction in zip(self.test.samples, system.predictions, strict=True):
                evaluator.add(sample, prediction)
            for result in evaluated(evaluator.stored(), seed=seed, resamples=resamples, levels=levels).figures:
                if SPAN_MEASURES.get(result.name) != result.level or result.language == POOLED:
                    continue
                estimate = ClusteredEstimate(
                    result.n_units,
                    round((result.prevalence or 0.0) * result.n_units),
                    result.n_clusters,
                    reason=result.reason,
                    value=result.value,
                    low=result.low,
                    high=result.high,
                )
                signature = f"{result.signature}|{self.suffix}"
                coverage = result.coverage or 0.0
                self._append(system, result.language, result.name, "own", estimate, coverage, signature)

    def errors(self, measure: str, most: int, annotator: str | None) -> Iterator[BenchError]:
        """The false positives and false negatives of every system, at the threshold tuned for a measure.

        Without such a threshold, or if the scores are only verdicts (HAT tunes none for language models), the verdict
        counts.

        Args:
            measure: of `AT_THRESHOLD`, and computed before.
            most: maximum number of errors of each kind in each language, the most confident first.
            annotator: whose labels; see `metrics.reference`.
        """
        for system in self.systems:
            cuts, scores = self.cuts.get((system.name, measure), {}), system.test
            for tag in self.test.tags():
                cut = None if system.verdicts_alone else cuts.get(tag)
                if cut is None and scores.verdict is None:
                    continue
                here = (self.test.languages == tag) & ~np.isnan(scores.badness)
                marked = scores.badness >= cut if cut is not None else scores.verdict == 1.0
                wrong = here & (self.test.nonfactual != marked)
                for kind, mask, sure in (("false_positive", marked, -1.0), ("false_negative", ~marked, 1.0)):
                    places = np.flatnonzero(wrong & mask)
                    order = places[np.argsort(sure * scores.badness[places], kind="stable")]
                    for number, item in enumerate(order[:most].tolist(), 1):
                        yield self._error(
                            system, item, annotator, kind=kind, number=number, count=len(places), language=tag,
                            threshold=None if cut is None else system.sign * cut,
                        )  # fmt: skip

    def _error(self, system: ScoredSystem, item: int, annotator: str | None, **cell: Any) -> BenchError:
        owner, (start, end) = int(self.test.owner[item]), self.test.bounds[item].tolist()
        sample = self.test.samples[owner]
        labels = reference(sample, annotator)
        prediction = system.predictions[owner] if system.predictions else None

        def texts(spans: Iterable[tuple[int, int]]) -> tuple[str, ...]:
            """The marks that touch the item, whole."""
            return tuple(sample.response[low:high] for low, high in spans if low < end and start < high)

        return BenchError(
            system=system.name,
            data=self.data,
            level=self.test.level,
            id=sample.id,
            score=system.sign * float(system.test.badness[item]),
            source=sample.evidence_text[:_LONGEST_SOURCE],
            question=sample.question,
            response=sample.response[start:end],
            labelled=texts(labels.marks.spans.tolist()) if labels else (),
            marked=texts((span.start, span.end) for span in prediction.spans or ()) if prediction else (),
            notes=prediction.notes if prediction else (),
            **cell,
        )

    def answers(self) -> Iterator[BenchAnswers]:
        """Every system's answers on data without labels, for each language and in the mean over languages.

        How much a system marks and how high its scores are does not measure its quality: one that marks more is not
            better.
        Without labels, a bench also gives the agreement of systems, the status of samples, and costs.
        """
        for system in self.systems:
            scores = system.test
            numbers = system.sign * scores.badness
            verdicts = np.full(len(self.test), np.nan) if scores.verdict is None else scores.verdict
            drawn: list[tuple[Array, ...]] = []
            for tag in self.test.tags():
                mask = self.test.languages == tag
                drawn.append(tuple(_means(values, mask, self.resampling) for values in (verdicts, numbers)))
                yield self._answers(system, tag, mask, drawn[-1])
            if drawn:
                means = tuple(mean_of_draws(parts) for parts in zip(*drawn, strict=True))
                yield self._answers(system, MEAN, np.ones(len(self.test), bool), means)

    def _answers(self, system: ScoredSystem, tag: str, mask: Mask, drawn: tuple[Array, ...]) -> BenchAnswers:
        scored = mask & ~np.isnan(system.test.badness)
        items, clusters = int(np.count_nonzero(scored)), self.resampling.select(scored).clusters()
        flagged, mean = (_estimate_of(values, sure=too_few(clusters) is None) for values in drawn)
        return BenchAnswers(
            system=system.name,
            data=self.data,
            level=self.test.level,
            language=tag,
            items=items,
            clusters=clusters,
            coverage=items / max(int(np.count_nonzero(mask)), 1),
            flagged=flagged.value,
            flagged_low=flagged.low,
            flagged_high=flagged.high,
            mean=mean.value,
            mean_low=mean.low,
            mean_high=mean.high,
            signature=f"answers:{self.test.level}|language:{tag}|cell:{system.cell[:16]}|{self.suffix}",
        )


def _means(values: Array, mask: Mask, resampling: Resampling) -> Array:
    """The mean of the known values in the data and in every resample, shape `(1 + resamples,)`; NaN if none are."""
    known = mask & ~np.isnan(values)
    parts = [np.stack([weights @ values[known], weights.sum(axis=1)]) for weights in resampling.select(known).blocks()]
    total, count = np.concatenate(parts, axis=1)
    means: Array = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
    return means


def _estimate_of(drawn: Array, *, sure: bool) -> Estimate:
    if np.isnan(drawn[0]):
        return Estimate(value=None)
    low, high, _ = percentile(drawn[1:]) if sure else (None, None, 0)
    return Estimate(value=float(drawn[0]), low=low, high=high)
