"""The figures of all systems on one data set, from the same items and the same resamples; unlabelled data too.

Thresholds are tuned on the dev part alone, as HAT does (section 4.2): scores become labels at the threshold that is
best on the development set for each pair of system and measure; precision and recall take that of F1, for each alone
would be best by marking next to nothing, or everything. Verdicts, as of HAT's language models, are labels already. A
figure of several languages is the mean of theirs, draw by draw.
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
from veriglot.bench.items import HARD, ItemTable, Opinion
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

__all__ = ["SURE_TEXTS", "UNTUNED", "WITH_PAIRWISE", "Judgement", "Measurement", "bench_draws"]


# Thresholds at which scores become verdicts.

UNTUNED = "no threshold could be tuned"
"""What the reason of a figure begins with that has no threshold."""

_TUNED = ("f1", "mcc", "accuracy")
_DIGITS = 12  # in which figures of different thresholds have to differ


class Threshold(NamedTuple):
    """A threshold: the badness (greater is worse) from which items are marked, or why none could be tuned.

    `reached` is the measure's value on the development split, which has so many scored items, `positives` of them
    non-factual.
    """

    cut: float | None
    reached: float | None
    items: int
    positives: int
    reason: str | None = None


def tune(badness: Array, nonfactual: Mask, measure: str = "f1") -> Threshold:
    """The threshold that is best on a development split.

    It lies halfway between two scores that occur, so that it means the same to a score that lies a little off. Of
    several that are equally good, the one that marks the fewest items is taken.

    Args:
        badness: the system's opinion of each item, greater is worse, NaN where it gave none, shape `(n,)`.
        nonfactual: the labels, shape `(n,)`.
        measure: one of `AT_THRESHOLD`; precision, recall and FPR take the threshold of F1.

    Raises:
        UnknownNameError: the measure takes no threshold.
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
    best = int(np.nanargmax(reached.round(_DIGITS)))  # of equal figures the first, whatever their last digits
    return nowhere._replace(cut=float(cuts[best]), reached=float(reached[best]))


def _candidates(badness: Array, labels: Mask, aim: str) -> tuple[Array, Array]:
    """Cuts from the one that marks nothing to the one that marks everything, and the measure at each."""
    ranked = Ranked.of(badness, labels)
    positives, negatives = (
        np.concatenate([[0.0], np.cumsum(part[0])]) for part in ranked.steps(np.ones((1, len(labels))))
    )
    counts = np.stack([positives, negatives, positives[-1] - positives, negatives[-1] - negatives], axis=1)
    upper, lower = ranked.cuts[:-1], ranked.cuts[1:]
    middle = lower + (upper - lower) / 2.0
    middle = np.where(middle > lower, middle, upper)  # neighbours among floating-point numbers have no middle
    nothing = np.nextafter(ranked.cuts[0], np.inf)
    return np.concatenate([[nothing], middle, [ranked.cuts[-1]]]), COUNT_SCORES[aim](counts)


# The draws of a measure as the bench takes them: one rule for figures, win rates and comparisons.
#
# Where a threshold marks everything or nothing while items of both classes are there, Matthews' coefficient is 0 (as
# scikit-learn has it) and not undefined: a system must not be averaged, or compared, over the languages alone in which
# its threshold parts anything. The rule holds in each resample by itself; where a resample holds one class of items
# alone, the coefficient stays undefined. `metrics.measures` and `veriglot evaluate` keep to the definition and
# call both undefined.

_LONGEST_SOURCE = 2000  # code points of the evidence that an error shows
_ALIKE = "all items are marked, or none: marks that go with nothing count as 0"


def bench_draws(name: str, items: Items, resampling: Resampling, *, cut: float | Array | None) -> tuple[Array, bool]:
    """The draws of a measure, and whether the rule above made the value of the data itself.

    Arguments and errors are those of `metrics.measures.draws`; the draws have shape `(1 + resamples,)`.
    """
    drawn = draws(name, items, resampling, cut=cut)
    undefined = np.isnan(drawn)
    if name != "mcc" or not undefined.any():
        return drawn, False
    recall, fpr = (draws(other, items, resampling, cut=cut) for other in ("recall", "fpr"))
    alike = undefined & ~np.isnan(recall) & ~np.isnan(fpr)  # these are undefined where a class has no item
    return np.where(alike, 0.0, drawn), bool(alike[0])


def correlation_p(kind: str, first: Array, second: Array, resampling: Resampling, drawn: Array) -> float | None:
    """The two-sided p-value of a correlation over items, for no relation; None where there is none.

    As Kang et al.'s (section 5.1) where every item is a text of its own. Where texts hold several items, which that
    would take for independent, a normal test of atanh r, whose error comes from the resampled texts.

    Args:
        kind: `pearson` or `spearman`.
        first, second: what is correlated, NaN where an item has none, shape `(n,)`.
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
    """A normal test of atanh r, with the standard error that resampled texts give it."""
    spread = np.arctanh(np.clip(drawn[1:][~np.isnan(drawn[1:])], -1 + 1e-12, 1 - 1e-12))
    if len(spread) < 2:
        return None
    error = float(spread.std(ddof=1))
    if error <= 0:
        return None
    z = abs(math.atanh(min(max(float(drawn[0]), -1 + 1e-12), 1 - 1e-12))) / error
    return math.erfc(z / math.sqrt(2))


# How many texts an interval takes: under five there is none, under thirty it says less than it seems to.
#
# `benchmarks/figure_intervals.py` measured how often intervals hold the truth on 30 texts and more, see
# benchmarks/figure_intervals.md; the least number is the one that the agreement of annotators has.

SURE_TEXTS = 30
"""From here on intervals and tests hold about as often as they say."""


def without_unsure_interval(estimate: ClusteredEstimate) -> ClusteredEstimate:
    """Without an interval where too few texts were drawn from."""
    why = too_few(estimate.clusters)
    if why is None or estimate.low is None:
        return estimate
    return replace(estimate, low=None, high=None, reason=_joined(estimate.reason, why))


def _joined(*reasons: str | None) -> str | None:
    return "; ".join(filter(None, reasons)) or None


# Figures of items.

WITH_PAIRWISE = "pearson_pairwise"
"""How a scorer goes with itself where other responses stand for the evidence (Kang et al., section 4.2)."""


@dataclass(frozen=True)
class Judgement:
    """What one system said of the items of a data set.

    Attributes:
        system: its name.
        direction: of its own numbers, for thresholds.
        test: of the test items.
        dev: of the dev items.
        seen: whether its own training held the data.
        cell: key of the cell, which signs what was said.
        predictions: of the test samples, by a detector.
    """

    system: str
    direction: str
    test: Opinion
    dev: Opinion
    seen: bool
    cell: str
    predictions: Sequence[Prediction] = ()

    @property
    def sign(self) -> float:
        """What its own numbers are times their badness."""
        return 1.0 if Direction(self.direction) is Direction.HIGHER_IS_WORSE else -1.0

    @property
    def verdicts_alone(self) -> bool:
        """Whether all that it says is 0 or 1: a threshold could only mark nothing more, or everything."""
        numbers = self.test.badness[~np.isnan(self.test.badness)]
        return HARD in self.test.notes and bool(np.isin(numbers, (0.0, 1.0)).all())


@dataclass(frozen=True)
class Measurement:
    """The systems on one data set at one level: what they said of it, and their figures.

    Attributes:
        data: name of the data set.
        test, dev: its items.
        resampling: of the test items.
        suffix: what the signature of every figure ends with.
        partners: scorer to the same one as `pairwise:`, where both are in the bench.
        judgements: what systems said.
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
    judgements: list[Judgement] = field(default_factory=list)
    figures: list[BenchFigure] = field(default_factory=list)
    thresholds: list[BenchThreshold] = field(default_factory=list)
    drawn: dict[tuple[str, At | None], dict[str, dict[str, Array]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(dict))
    )
    cuts: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)

    def measure(self, measures: Sequence[str], *, by_language: bool) -> None:
        """Take these measures of `ITEM_MEASURES`; `by_language` tunes a threshold for each language, not for all.

        Beside these `WITH_PAIRWISE`, which needs no labels, of every scorer that has a partner.
        """
        for judgement in self.judgements:
            items = self.test.items(judgement.test.badness)
            for name in dict.fromkeys((*measures, *([WITH_PAIRWISE] if judgement.system in self.partners else []))):
                if name == TYPES:
                    self._measure_types(judgement)
                    continue
                if name not in AT_THRESHOLD:
                    self._add(judgement, name, None, items, {}, {})
                    continue
                cuts, without = self._tuned(judgement, name, by_language=by_language)
                self._add(judgement, name, "tuned", items, cuts, without)
                self.cuts[judgement.system, name] = cuts
                if judgement.test.verdict is not None:
                    verdicts = self.test.items(judgement.test.verdict)
                    self._add(judgement, name, "own", verdicts, dict.fromkeys(self.test.tags(), 0.5), {})

    def _measure_types(self, judgement: Judgement) -> None:
        """How many responses are called by their type: all, and those of each type (HalluVerse25, Tables 3 and 4)."""
        opinion = judgement.test
        if opinion.types is None or opinion.right is None:
            if opinion.untyped:
                nothing = ClusteredEstimate(0, 0, 0, None, opinion.untyped, value=None)
                self._add_figure(judgement, TYPES, None, MEAN, nothing)
            return
        self._add(judgement, TYPES, None, self.test.items(opinion.badness, opinion.right), {}, {})
        for name in sorted({*opinion.types.tolist()} - {""}):
            right = np.where(opinion.types == name, opinion.right, np.nan)
            self._add(judgement, f"{TYPES}:{name}", None, self.test.items(opinion.badness, right), {}, {})

    def _tuned(
        self, judgement: Judgement, measure: str, *, by_language: bool
    ) -> tuple[dict[str, float], dict[str, str]]:
        """Language to its cut, and to why it has none where none can be tuned."""
        dev, tags = self.dev, self.test.tags()
        cuts: dict[str, float] = {}
        without: dict[str, str] = {}
        for tag in tags if by_language else [MEAN]:
            chosen = dev.languages == tag if by_language else np.ones(len(dev), bool)
            cut, reached, items, positives, reason = tune(
                judgement.dev.badness[chosen], dev.nonfactual[chosen], measure
            )
            if judgement.verdicts_alone:
                cut, reached, reason = 0.5, None, "verdicts alone, which count as they are"
            elif not len(dev):
                marked = self.test.nonfactual
                one_kind = f"{'every' if marked.all() else 'no'} item is unsupported"
                reason = one_kind if marked.all() or not marked.any() else "no sample is set aside for tuning"
            value = None if cut is None else judgement.sign * cut
            self.thresholds.append(
                BenchThreshold(
                    judgement.system, self.data, dev.level, measure, tag, value, judgement.direction, reached,
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
        judgement: Judgement,
        name: str,
        at: At | None,
        items: Items,
        cuts: Mapping[str, float],
        without: Mapping[str, str],
    ) -> None:
        """The figures of one measure: of each language, then the mean over them; `MEASURE:TYPE` is of one type."""
        parts: dict[str, tuple[Array, ClusteredEstimate]] = {}
        by_system = {each.system: each.test.badness for each in self.judgements}
        items = dataclasses.replace(items, pairwise=by_system.get(self.partners.get(judgement.system, "")))
        measure = name.partition(":")[0]
        for tag in self.test.tags():
            mask = self.test.languages == tag
            part, drawing = items.select(mask), self.resampling.select(mask)
            if name in AT_THRESHOLD and tag not in cuts:
                scored = int(np.count_nonzero(part.scored))
                nothing = ClusteredEstimate(scored, 0, 0, None, without[tag], value=None)
                self._add_figure(judgement, name, "tuned", tag, nothing)
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
            self.drawn[name, at][tag][judgement.system] = values
            self._add_figure(judgement, name, at, tag, estimate, p)
        mean = self._mean(measure, parts, "; ".join(dict.fromkeys(without.values())))
        self._add_figure(judgement, name, at, MEAN, mean)

    def _add_figure(
        self,
        judgement: Judgement,
        name: str,
        at: At | None,
        tag: str,
        estimate: ClusteredEstimate,
        p: float | None = None,
    ) -> None:
        scored = ~np.isnan(judgement.test.badness)[(self.test.languages == tag) | (tag == MEAN)]
        coverage = float(np.count_nonzero(scored)) / max(len(scored), 1)
        where = f"figure:{self.test.level}.{name}|at:{at or 'none'}|language:{tag}"
        signature = f"{where}|cell:{judgement.cell[:16]}|{self.suffix}"
        self._append(judgement, tag, name, at, estimate, coverage, signature, p)

    def _append(
        self,
        judgement: Judgement,
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
                system=judgement.system,
                data=self.data,
                level=self.test.level,
                language=language,
                measure=measure,
                at=at,
                coverage=coverage,
                p=p if too_few(estimate.clusters) is None else None,
                seen=judgement.seen,
                signature=signature,
                **asdict(without_unsure_interval(estimate)),
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
        """Figures of detectors' spans and confidences that no score of an item gives, by language and as their mean.

        They are those of `veriglot evaluate` (`metrics.measures`), at the detector's own threshold: the character IoU
        and the correlation with soft labels of the Mu-SHROOM shared task, and the expected calibration error of words.

        Args:
            settings: system to what is measured, against which labels.
            seed, resamples: of the bootstrap, which draws texts as `veriglot evaluate` does.
        """
        levels = sorted(set(SPAN_MEASURES.values()))
        for judgement in self.judgements:
            if judgement.system not in settings:
                continue
            evaluator = Evaluator(settings[judgement.system])
            for sample, prediction in zip(self.test.samples, judgement.predictions, strict=True):
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
                self._append(judgement, result.language, result.name, "own", estimate, coverage, signature)

    def errors(self, measure: str, most: int, annotator: str | None) -> Iterator[BenchError]:
        """What every system took for what it is not, at the threshold tuned for a measure.

        Where there is none, or the numbers are only verdicts (HAT tunes none for language models), the verdict counts.

        Args:
            measure: that was measured, of `AT_THRESHOLD`.
            most: errors of each kind in each language, those first of which the system is surest.
            annotator: whose labels; see `metrics.reference`.
        """
        for judgement in self.judgements:
            cuts, opinion = self.cuts.get((judgement.system, measure), {}), judgement.test
            for tag in self.test.tags():
                cut = None if judgement.verdicts_alone else cuts.get(tag)
                if cut is None and opinion.verdict is None:
                    continue
                here = (self.test.languages == tag) & ~np.isnan(opinion.badness)
                marked = opinion.badness >= cut if cut is not None else opinion.verdict == 1.0
                wrong = here & (self.test.nonfactual != marked)
                for kind, mask, sure in (("false_positive", marked, -1.0), ("false_negative", ~marked, 1.0)):
                    places = np.flatnonzero(wrong & mask)
                    order = places[np.argsort(sure * opinion.badness[places], kind="stable")]
                    for number, item in enumerate(order[:most].tolist(), 1):
                        yield self._error(
                            judgement, item, annotator, kind=kind, number=number, count=len(places), language=tag,
                            threshold=None if cut is None else judgement.sign * cut,
                        )  # fmt: skip

    def _error(self, judgement: Judgement, item: int, annotator: str | None, **cell: Any) -> BenchError:
        owner, (start, end) = int(self.test.owner[item]), self.test.places[item].tolist()
        sample = self.test.samples[owner]
        labels = reference(sample, annotator)
        prediction = judgement.predictions[owner] if judgement.predictions else None

        def texts(spans: Iterable[tuple[int, int]]) -> tuple[str, ...]:
            """The marks that touch the item, whole."""
            return tuple(sample.response[low:high] for low, high in spans if low < end and start < high)

        return BenchError(
            system=judgement.system,
            data=self.data,
            level=self.test.level,
            id=sample.id,
            score=judgement.sign * float(judgement.test.badness[item]),
            source=sample.evidence_text[:_LONGEST_SOURCE],
            question=sample.question,
            response=sample.response[start:end],
            labelled=texts(labels.marks.spans.tolist()) if labels else (),
            marked=texts((span.start, span.end) for span in prediction.spans or ()) if prediction else (),
            notes=prediction.notes if prediction else (),
            **cell,
        )

    def answers(self) -> Iterator[BenchAnswers]:
        """What every system said of data without labels, in each language and in the mean over languages.

        How much a system marks and how high its numbers are is no figure of merit: one that marks more is not better.
        What can be had without labels besides is how far systems agree, what became of the samples, and what they cost.
        """
        for judgement in self.judgements:
            opinion = judgement.test
            numbers = judgement.sign * opinion.badness
            verdicts = np.full(len(self.test), np.nan) if opinion.verdict is None else opinion.verdict
            drawn: list[tuple[Array, ...]] = []
            for tag in self.test.tags():
                mask = self.test.languages == tag
                drawn.append(tuple(_means(values, mask, self.resampling) for values in (verdicts, numbers)))
                yield self._answers(judgement, tag, mask, drawn[-1])
            if drawn:
                means = tuple(mean_of_draws(parts) for parts in zip(*drawn, strict=True))
                yield self._answers(judgement, MEAN, np.ones(len(self.test), bool), means)

    def _answers(self, judgement: Judgement, tag: str, mask: Mask, drawn: tuple[Array, ...]) -> BenchAnswers:
        scored = mask & ~np.isnan(judgement.test.badness)
        items, clusters = int(np.count_nonzero(scored)), self.resampling.select(scored).clusters()
        flagged, mean = (_estimate_of(values, sure=too_few(clusters) is None) for values in drawn)
        return BenchAnswers(
            system=judgement.system,
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
            signature=f"answers:{self.test.level}|language:{tag}|cell:{judgement.cell[:16]}|{self.suffix}",
        )


def _means(values: Array, mask: Mask, resampling: Resampling) -> Array:
    """The mean of the known values in the data and in every resample, shape `(1 + resamples,)`; NaN of nothing."""
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
