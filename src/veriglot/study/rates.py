"""Counts of a study (units and gold labels), and its rates: by every estimator, and for each detector and seed."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist, stdev
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from veriglot.errors import InputError
from veriglot.metrics.reference import answer, check_pair, reference, require_annotator, response_label
from veriglot.metrics.scores import BINS, bin_of, coarse_bin
from veriglot.metrics.spans import marked, ranges, segmenter, unit_probabilities
from veriglot.rates.estimators import ESTIMATORS, RateEstimate, estimate
from veriglot.rates.proportion import FEWEST_CLUSTERS, Labels, Share, Tallies, detector_rates
from veriglot.records import (
    CONFIDENCE_BINS,
    ErrorProfile,
    Estimator,
    Kind,
    LanguageProfile,
    Prediction,
    Rate,
    Reliability,
    Sample,
    Status,
    encode,
)
from veriglot.records.languages import UNDETERMINED, language_name, tag_of
from veriglot.records.settings import Record
from veriglot.signatures import __version__, digest, signature
from veriglot.storage.checkpoint import FailedRow
from veriglot.storage.files import write_whole
from veriglot.study.responses import Plan, pairs, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from veriglot.arrays import Bools, Float64s, Int32s
    from veriglot.pipeline.engine import Description
    from veriglot.pipeline.progress import ProgressReporter
    from veriglot.study.config import Config, Folder, StudyEntry

    Array = Float64s

__all__ = [
    "CellCounts",
    "Gold",
    "ProfileComparison",
    "ProfiledDetector",
    "RatedCell",
    "ResponseCounter",
    "StudyRates",
    "cell_rates",
    "contradictions",
    "estimate_all",
    "language_of",
    "query_of",
    "replicates",
]


_BIN = coarse_bin(
    np.arange(BINS), CONFIDENCE_BINS
)  # through the bins of an evaluation: 0.15 must fall into the same bin as in a profile


class Key(NamedTuple):
    """A group to estimate: model, language tag, and the seed of the responses (None if none is stated)."""

    model: str | None
    language: str
    seed: int | None


@dataclass
class Group:
    """The responses of one key.

    Attributes:
        statuses: predictions by status.
        ids: id of each scored response, in order; empty unless requested.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    ids: list[str] = field(default_factory=list)
    _counts: array[int] = field(default_factory=lambda: array("q"))  # three numbers per response: compact, for many
    _histograms: array[int] = field(default_factory=lambda: array("i"))  # 20 numbers per response

    @property
    def tallies(self) -> Tallies:
        """The counts of the scored responses."""
        counts = np.array(self._counts, np.int64).reshape(-1, 3)
        all_have = len(self._histograms) == CONFIDENCE_BINS * len(counts)  # true for a seed without responses
        confidences = np.array(self._histograms, np.int64).reshape(-1, CONFIDENCE_BINS) if all_have else None
        return Tallies(counts[:, 0], counts[:, 1], counts[:, 2], confidences)

    def add(self, marked: int, units: int, cluster: int, histogram: Int32s | None) -> None:
        """Count one scored response."""
        self._counts.extend((marked, units, cluster))
        if histogram is not None:
            self._histograms.frombytes(histogram.tobytes())


class ResponseCounter:
    """Counts responses with their predictions, in any order.

    Args:
        unit: `char`, `word` or `hf:<tokenizer>`.
        ids: keep the ids of the scored responses, to join labels with them.

    Raises:
        UnknownNameError: no such unit.
    """

    def __init__(self, unit: str, *, ids: bool = False) -> None:
        self.unit = unit
        self.groups: dict[Key, Group] = {}
        self._segment = segmenter(unit)
        self._ids = ids

    def add(self, sample: Sample, prediction: Prediction | None) -> None:
        """Count one response with its prediction; None counts as `missing`.

        Raises:
            InputError: the prediction belongs to another response, or marks beyond its end.
        """
        if prediction is not None:
            check_pair(sample, prediction)
        judged = self._units(sample, prediction) if prediction and prediction.status is Status.SCORED else None
        generator = sample.generator
        name, seed = (generator.name, generator.seed) if generator is not None else (None, None)
        group = self.groups.setdefault(Key(name, language_of(sample, prediction), seed), Group())
        group.statuses["missing" if prediction is None else prediction.status] += 1
        if judged is None:
            return
        touched, confidences = judged
        histogram = None if confidences is None else histogram_of(confidences)
        group.add(int(np.count_nonzero(touched)), len(touched), query_of(sample), histogram)
        if self._ids:
            group.ids.append(sample.id)

    def _units(self, sample: Sample, prediction: Prediction) -> tuple[Bools, Float64s | None]:
        """Which units are marked, and the detector's confidence for each."""
        marks, by_character, _ = answer(prediction, len(sample.response))
        words = prediction.words
        if self.unit == "word" and words is not None:  # the same words, already segmented
            return marked(ranges(words), marks.spans), np.array([word.confidence for word in words])
        bounds = self._segment(sample.response, sample.language or prediction.language)
        confidences = None if by_character is None else unit_probabilities(bounds, by_character)
        return marked(bounds, marks.spans), confidences


def histogram_of(confidences: Float64s) -> Int32s:
    """Units by confidence, shape `(20,)`."""
    return np.bincount(_BIN[bin_of(confidences)], minlength=CONFIDENCE_BINS).astype(np.int32)


def language_of(sample: Sample, prediction: Prediction | None) -> str:
    """The tag under which a response is counted: as requested, or else as the detector identified it."""
    return tag_of(sample.language) or (tag_of(prediction.language) if prediction else None) or UNDETERMINED


def query_of(sample: Sample) -> int:
    """The number of the query that a response answers, the same in every file, model and run.

    `meta.query`, or else `meta.group`, or else question and evidence together, or else the response itself.
    """
    for name in ("query", "group"):
        value = sample.meta.get(name)
        if isinstance(value, str | int):
            return _number(name, str(value))
    if sample.question or sample.evidence:
        return _number("asked", sample.question or "", *(passage.text for passage in sample.evidence))
    return _number("said", sample.response)


def _number(*parts: str) -> int:
    return int(digest(parts)[:15], 16)  # 60 bits: fits an int64, and queries of a study do not collide


def merge_groups(groups: Iterable[Group]) -> Group:
    """Merge the responses of several groups into one."""
    joined = Group()
    for group in groups:
        joined.statuses.update(group.statuses)
        joined.ids += group.ids
        joined._counts += group._counts
        joined._histograms += group._histograms
    return joined


@dataclass(frozen=True)
class Gold:
    """Labels of responses, as counts; false if there are none.

    Attributes:
        counts: unsupported units and all units of each labelled response, by its id.
        kinds: the annotators: people, models or both.
    """

    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    kinds: frozenset[Kind] = frozenset()

    @classmethod
    def of(
        cls, rows: Iterable[Sample | FailedRow], *, unit: str, annotator: str | None = None, path: str | None = None
    ) -> Gold:
        """The labels of samples; empty if there are no samples.

        Raises:
            InputError: a row could not be read, or none has labelled spans.
            UnknownNameError: no annotator has that name.
            UsageError: several annotators labelled, and none is named.
        """
        segment = segmenter(unit)
        counts: dict[str, tuple[int, int]] = {}
        kinds = set[Kind]()
        people = set[str]()
        row: Sample | FailedRow | None = None
        for row in rows:
            if isinstance(row, FailedRow):
                raise row.as_error()
            people |= {each.annotator for each in row.annotations}
            labels = reference(row, annotator)
            whole = labels is None and unit == "response" and response_label(row, annotator)
            bounds = segment(row.response, row.language)
            if whole:
                kinds.add(whole[0].kind)
                counts[row.id] = (whole[1] * len(bounds), len(bounds))
            elif labels is not None:
                kinds.add(labels.kind)
                counts[row.id] = (int(np.count_nonzero(marked(bounds, labels.marks.spans))), len(bounds))
        if row is not None and not counts:
            require_annotator(annotator, people)
            if unit == "response":
                raise InputError("no row has labels", "Check the columns of the file.", path=path, field="annotations")
            what = "no row has labelled spans, and labels of whole responses do not say which words are wrong"
            remedy = "Add --unit response, for the share of responses; or mark their unsupported parts."
            raise InputError(what, remedy, path=path, field="annotations")
        return cls(counts, frozenset(kinds))

    def __bool__(self) -> bool:
        return bool(self.counts)

    def unused(self, groups: Iterable[Group]) -> int:
        """Number of labelled responses that are not among those scored in `groups`: no estimate uses them."""
        return len(self.counts.keys() - {id_ for group in groups for id_ in group.ids})


def labels_of(ids: Sequence[str], units: Sequence[int], gold: Gold) -> Labels | None:
    """The labels of the scored responses with these ids and units, in order; None if none is labelled.

    Raises:
        InputError: a labelled response has other units than the scored one, so it is another text.
    """
    indices = [index for index, id_ in enumerate(ids) if id_ in gold.counts]
    for index in indices:
        if (number := gold.counts[ids[index]][1]) != units[index]:
            raise InputError(
                f"the labelled response {ids[index]!r} is not the one that was judged: it has {number} units, and that"
                f" one {units[index]}",
                field="labels",
            )
    unsupported = np.array([gold.counts[ids[index]][0] for index in indices], np.int64)
    return Labels(unsupported, np.array(indices, np.int64)) if indices else None


# Rates.


@dataclass(frozen=True)
class ProfiledDetector:
    """A detector with its profile, and the study's settings of rates.

    Attributes:
        description: of the detector.
        profile: its error profile, or None.
        study: `[study]`.
        label: its name in the run's folder.
        compared: a second profile, for the comparison of rates, or None.
    """

    description: Description
    profile: ErrorProfile | None
    study: StudyEntry
    label: str = ""
    compared: ErrorProfile | None = None

    @cached_property
    def profile_hash(self) -> str | None:
        """Hash of the profile for signatures; None without one."""
        return None if self.profile is None else digest([encode(self.profile)])[:16]

    def of(self, language: str) -> tuple[LanguageProfile | None, str | None]:
        """The error rates for a language, and which they are (its tag, or `pooled`); None if there are none.

        Pooled ones are used if the study allows it, and the profile lacks the language or has too few texts of it for a
        valid interval.
        """
        if self.profile is None:
            return None, None
        profile = self.profile.languages.get(language)
        if self.study.pooled and (profile is None or _too_small(profile)):
            return self.profile.pooled, "pooled"
        return profile, None if profile is None else language


def _too_small(profile: LanguageProfile) -> bool:
    rates = detector_rates(profile, seed=0, draws=1)
    return any(share is None or share.clusters < FEWEST_CLUSTERS for share in (rates.tpr, rates.fpr))


@dataclass(frozen=True)
class CellCounts:
    """Counts of what one detector marked in the responses of one model in one language.

    Attributes:
        model, language: of the responses.
        detector: the detector.
        seeds: tallies by seed of the responses (None if they state none).
        labels: of people, with indices into the joined tallies; None if there are none.
        given: number of responses planned or given, scored or not, by seed.
    """

    model: str | None
    language: str
    detector: ProfiledDetector
    seeds: dict[int | None, Tallies]
    labels: Labels | None
    given: dict[int | None, int]

    @classmethod
    def of_groups(
        cls,
        model: str | None,
        language: str,
        detector: ProfiledDetector,
        groups: dict[int | None, Group],
        gold: Gold,
        asked: dict[int | None, int] | None = None,
    ) -> CellCounts:
        """From groups by seed; `asked` are the planned numbers, so calls without a response count as not scored."""
        given = {seed: group.statuses.total() for seed, group in groups.items()}
        asked = asked or {}
        whole = merge_groups(groups.values())
        labels = labels_of(whole.ids, whole.tallies.units.tolist(), gold) if gold else None
        seeds = {seed: group.tallies for seed, group in groups.items()}
        expected = {seed: max(given.get(seed, 0), asked.get(seed, 0)) for seed in given | asked}
        return cls(model, language, detector, seeds, labels, expected)

    @property
    def joined(self) -> Tallies:
        """All seeds."""
        return Tallies.join(list(self.seeds.values()))

    @property
    def coverage(self) -> float:
        """Scored responses over planned or given ones; 0 if there are none."""
        given = sum(self.given.values())
        return sum(map(len, self.seeds.values())) / given if given else 0.0

    def of(self, seed: int | None) -> CellCounts:
        """One seed alone, without labels: they are too few to split."""
        return replace(self, seeds={seed: self.seeds[seed]}, labels=None, given={seed: self.given.get(seed, 0)})


class RateWithDraws(NamedTuple):
    """A rate in the report, with its draws, shape `(draws,)`, and its value (or NaN) before clipping to [0, 1].

    `drift` is the part of its standard error from the detector's different errors here (`RateEstimate.drift`).
    """

    rate: Rate
    draws: Array
    value: float
    drift: float = 0.0


def cell_rates(counted: Sequence[CellCounts], estimators: Sequence[Estimator]) -> tuple[RateWithDraws, ...]:
    """The rates of one model in one language by each estimator, over all seeds and detectors.

    For several detectors it is the mean. All scored the same responses, so the noise of these does not average out: the
    interval is as wide as the detectors' are on average.

    Two rates with disjoint intervals are not both reliable, nor is a rate whose interval excludes that of the people's
    labels in the cell: the one with stronger assumptions becomes unreliable, or both if their assumptions are equal.
    """
    estimates = []
    for estimator in estimators:
        each = [_of_detector(cell, estimator) for cell in counted]
        estimates.append(each[0] if len(each) == 1 else _mean(each))
    return _without_contradictions(estimates, counted)


def replicates(
    counted: Sequence[CellCounts], estimator: Estimator, estimates: Sequence[RateWithDraws] = ()
) -> tuple[Rate, ...]:
    """One rate for each detector and seed (mFAVA: 3 x 5); raw for `ppi`, since labels are too few to split by seed.

    If the rate of all seeds in `estimates` contradicts another, so do these.
    """
    estimator = Estimator.RAW if estimator is Estimator.PPI else estimator
    rates = [
        _of_detector(each.of(seed), estimator, seed).rate
        for each in counted
        for seed in sorted(each.seeds, key=lambda seed: (seed is None, seed or 0))
    ]
    reasons = contradictions(next((each.rate for each in estimates if each.rate.estimator is estimator), None))
    return tuple(_as_unreliable(rate, reasons) for rate in rates) if reasons else tuple(rates)


# Rates with disjoint intervals.


CONTRADICTS = "its interval excludes"
"""Start of a reason that is a contradiction with another rate, or labels, of the same responses."""

_ASSUMES = {Estimator.PPI: 1, Estimator.LABEL_SHIFT: 2, Estimator.EM: 2, Estimator.PAPER: 3, Estimator.RAW: 4}
_HALF_WIDTH = 0.05  # of the interval for which the number of labels needed is computed


def contradictions(rate: Rate | None) -> list[str]:
    """The reasons of a rate that are contradictions with another rate, or with labels, of the same responses."""
    reasons = (rate.reason or "").split("; ") if rate is not None else []
    return [reason for reason in reasons if reason.startswith(CONTRADICTS)]


def _without_contradictions(
    estimates: Sequence[RateWithDraws], counted: Sequence[CellCounts]
) -> tuple[RateWithDraws, ...]:
    reasons: dict[int, str] = {}
    cell = next((each for each in counted if each.labels is not None), None)
    if cell is not None:  # the rate from its labels alone
        labelled = estimate(_labelled(cell), estimator=Estimator.RAW, confidence=cell.detector.study.confidence)
        reasons = {
            index: _contradiction(each.rate, labelled, "the labels of these responses", counted)
            for index, each in enumerate(estimates)
            if _disjoint(each.rate, labelled)
        }
    order = sorted(range(len(estimates)), key=lambda index: _ASSUMES[estimates[index].rate.estimator])
    sound = [index for index in order if estimates[index].rate.status is Reliability.OK and index not in reasons]
    for second in sound:
        for first in sound:
            pair = estimates[first].rate, estimates[second].rate
            ranks = [_ASSUMES[rate.estimator] for rate in pair]
            # A rate contradicted by a better one does not count against others; of two equal ones, both are unreliable.
            valid = first not in reasons or ranks[0] == ranks[1]
            if first != second and ranks[0] <= ranks[1] and second not in reasons and valid and _disjoint(*pair):
                reasons[second] = _contradiction(pair[1], pair[0], pair[0].estimator, counted)
    return tuple(
        each._replace(rate=_as_unreliable(each.rate, [reasons[index]])) if index in reasons else each
        for index, each in enumerate(estimates)
    )


def _labelled(cell: CellCounts) -> Tallies:
    assert cell.labels is not None
    chosen = cell.joined.select(cell.labels.response)
    return Tallies(cell.labels.unsupported, chosen.units, chosen.cluster)


def _disjoint(first: Rate | RateEstimate, second: Rate | RateEstimate) -> bool:
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return False
    return first.high < second.low or second.high < first.low


def _contradiction(rate: Rate, other: Rate | RateEstimate, name: str, counted: Sequence[CellCounts]) -> str:
    """One sentence: what a rate's interval excludes, what that means and what to do."""
    value = other.rate if isinstance(other, Rate) else other.value
    assert value is not None
    assert other.low is not None
    assert other.high is not None
    start = f"{CONTRADICTS} {name}, {value:.1%} [{100 * other.low:.1f}, {100 * other.high:.1f}]: "
    number, language = _labels_needed(counted, value), language_name(rate.language)
    width = f"{100 * _HALF_WIDTH:.0f} points to either side"
    to_label = f"about {number:,} labels in {language}, drawn at random, give {width}"
    if isinstance(other, Rate) and _ASSUMES[other.estimator] < _ASSUMES[rate.estimator]:
        if rate.estimator is Estimator.RAW:
            return start + f"the marked share holds false alarms and lacks what was missed, so quote {name}"
        if rate.estimator is Estimator.PAPER:
            return start + f"precision or recall here is not that of the profile, so quote {name}"
        return start + f"the detector errs differently here than in its profile, so quote {name} ({to_label})"
    if isinstance(other, Rate):
        return (
            start + f"the detector errs differently here than in its profile, so label some and quote ppi ({to_label})"
        )
    if rate.estimator is Estimator.PPI:
        return start + f"the labels may not be drawn at random ({to_label})"
    return start + f"the detector errs differently here than was assumed, so quote ppi ({to_label})"


def _labels_needed(counted: Sequence[CellCounts], rate: float) -> int:
    """Labelled texts or queries for the half-width, if labels vary between them as these do, or else as marks do."""
    cell = next((each for each in counted if each.labels is not None), counted[0])
    share = Share.of(cell.joined if cell.labels is None else _labelled(cell))
    if share is None:
        return FEWEST_CLUSTERS
    quantile = NormalDist().inv_cdf((1.0 + cell.detector.study.confidence) / 2.0)
    units = rate * (1.0 - rate) * (quantile / _HALF_WIDTH) ** 2
    needed = max(FEWEST_CLUSTERS / max(rate, 0.01), units * share.clusters / share.effective)
    return math.ceil(needed / 10) * 10


def _as_unreliable(rate: Rate, reasons: Sequence[str]) -> Rate:
    reason = "; ".join([*reasons, *([rate.reason] if rate.reason else [])])
    return msgspec.structs.replace(rate, status=Reliability.UNRELIABLE, reason=reason)


class ProfileComparison(Record):
    """A rate of one model in one language by a detector's profile and by its `compare_profile` (mFAVA, Figure 3).

    Attributes:
        rate, compared: over all seeds, by the study's estimator, from the same marks.
        sd, compared_sd: sample standard deviation of the reliable rates of each seed; None for fewer than two.
    """

    rate: Rate
    compared: Rate
    sd: float | None
    compared_sd: float | None

    @property
    def difference(self) -> float | None:
        """The rate by `profile` minus that by `compare_profile`; None if one of them is unreliable."""
        first, second = (_reliable_rate(rate) for rate in (self.rate, self.compared))
        return None if first is None or second is None else first - second


def _reliable_rate(rate: Rate) -> float | None:
    return rate.rate if rate.status is Reliability.OK else None


def _by_both_profiles(counted: Sequence[CellCounts], estimator: Estimator) -> Iterator[ProfileComparison]:
    """The rates of each detector that has two profiles, if the second one has the language."""
    for each in counted:
        second = each.detector.compared
        if second is None or each.language not in second.languages:
            continue
        detector = replace(
            each.detector, profile=second, study=msgspec.structs.replace(each.detector.study, pooled=False)
        )
        pair = (each, replace(each, detector=detector))
        rate, compared = (cell_rates((cell,), (estimator,))[0].rate for cell in pair)
        sd, compared_sd = (_sd(replicates((cell,), estimator)) for cell in pair)
        yield ProfileComparison(rate, compared, sd, compared_sd)


def _sd(rates: Iterable[Rate]) -> float | None:
    sound = [value for rate in rates if (value := _reliable_rate(rate)) is not None]
    return stdev(sound) if len(sound) > 1 else None


def _of_detector(counted: CellCounts, estimator: Estimator, seed: int | None = None) -> RateWithDraws:
    detector, tallies = counted.detector, counted.joined
    profile, used = detector.of(counted.language)
    study = detector.study
    missing = _missing(counted, profile, estimator)
    if missing is None:
        result = estimate(
            tallies, profile, estimator=estimator, confidence=study.confidence, seed=study.seed, draws=study.draws,
            labels=counted.labels, coverage=counted.coverage,
        )  # fmt: skip
    else:
        result = RateEstimate((missing,), np.full(study.draws, np.nan), value=None)
    rate = Rate(
        model=counted.model,
        language=counted.language,
        rate=result.value,
        low=result.low,
        high=result.high,
        estimator=estimator,
        unit=study.unit,
        units=int(tallies.units.sum()),
        responses=len(tallies),
        coverage=counted.coverage,
        status=result.status,
        reason="; ".join(result.reasons) or None,
        signature=_signature(detector, estimator, used, result.notes),
        detector=detector.description.name,
        seed=seed,
    )
    return RateWithDraws(rate, result.draws, result.uncut, result.drift)


def _missing(counted: CellCounts, profile: LanguageProfile | None, estimator: Estimator) -> str | None:
    """What an estimator needs that a cell lacks."""
    method = ESTIMATORS[estimator]
    if not any(counted.given.values()):
        return "no response was asked for or given in this language"
    if profile is None and method.needs_profile:
        return "the error profile does not hold this language"
    if method.needs_labels and (counted.labels is None or not len(counted.labels.response)):
        return "no response is labelled"
    if method.needs_confidences and counted.joined.confidences is None and counted.joined.units.any():
        return "the predictions have no confidence of every word"
    return None


def _signature(detector: ProfiledDetector, estimator: Estimator, used: str | None, notes: tuple[str, ...]) -> str:
    study = detector.study
    needs = detector.profile is not None and ESTIMATORS[estimator].needs_profile
    return signature(
        estimator=estimator,
        notes=",".join(notes) or None,
        unit=study.unit,
        detector=detector.description.name,
        threshold=detector.description.threshold,
        profile=detector.profile_hash if needs else None,
        rates=used if needs else None,
        confidence=study.confidence,
        seed=study.seed,
        draws=study.draws,
        version=__version__,
    )


def _mean(estimates: Sequence[RateWithDraws]) -> RateWithDraws:
    rates = [each.rate for each in estimates]
    reasons = tuple(dict.fromkeys(f"{rate.detector}: {rate.reason}" for rate in rates if rate.reason))
    columns = [[getattr(rate, name) for rate in rates] for name in ("rate", "low", "high")]
    whole = all(None not in column for column in columns)
    means = [float(np.mean(column)) if whole else None for column in columns]
    mean = msgspec.structs.replace(
        rates[0],
        rate=means[0],
        low=means[1],
        high=means[2],
        responses=min(rate.responses for rate in rates),
        coverage=min(rate.coverage for rate in rates),
        status=Reliability.UNRELIABLE if reasons or not whole else Reliability.OK,
        reason="; ".join(reasons) or None,
        signature=_mean_signature([rate.signature for rate in rates]),
        detector="+".join(rate.detector or "" for rate in rates),
    )
    return RateWithDraws(
        mean, _mean_draws([each.draws for each in estimates]), float(np.mean([each.value for each in estimates]))
    )


def _mean_signature(lines: Sequence[str]) -> str:
    """The parts that all signatures share, once; the parts that differ (detector, threshold, profile), each."""
    stated = [dict(part.split(":", 1) for part in line.split("|")) for line in lines]
    merged = {}
    for key in dict.fromkeys(key for parts in stated for key in parts):
        values = [parts.get(key, "none") for parts in stated]
        merged[key] = values[0] if len(set(values)) == 1 else "+".join(values)
    return signature(mean_of=len(lines), **merged)


def _mean_draws(draws: Sequence[Array]) -> Array:
    """The mean of draws, scaled to the average spread of each."""
    mean: Array = np.mean(draws, axis=0)
    if np.isnan(mean).all():  # a detector gives no rate
        return mean
    centre, spread = np.nanmean(mean), np.nanstd(mean)
    wanted = float(np.mean([np.nanstd(each) for each in draws]))
    if not spread > 0:
        return mean
    wide: Array = centre + (mean - centre) * (wanted / spread)
    return wide


class RatedCell(Record):
    """One model in one language.

    Attributes:
        counted: counts of each detector's marks.
        estimates: the rates over all, with their draws; the study's own estimator first.
        replicates: one rate for each detector and seed.
        profiles: the rates of each detector by two profiles, if the study names two.
    """

    counted: tuple[CellCounts, ...]
    estimates: tuple[RateWithDraws, ...]
    replicates: tuple[Rate, ...]
    profiles: tuple[ProfileComparison, ...] = ()


class StudyRates(Record):
    """All rates of a study.

    Attributes:
        languages: in the order of the study file, or else sorted.
        cells: (model, language) -> its rates.
        detectors: the detectors.
        outside: number of responses in none of them, by the first detector's identification.
        labelled_by: who made the labels of the study's own responses; empty if it has none.
        unused_labels: number of labelled responses that the first detector did not score.
    """

    languages: tuple[str, ...]
    cells: dict[tuple[str, str], RatedCell]
    detectors: tuple[ProfiledDetector, ...]
    outside: int
    labelled_by: frozenset[Kind]
    unused_labels: int


def estimate_all(
    config: Config, folder: Folder, plan: Plan, detectors: Sequence[ProfiledDetector], progress: ProgressReporter
) -> StudyRates:
    """Estimate every rate of a study, and write `rates.json`.

    Args:
        config: the study.
        folder: of the run, with responses and predictions.
        plan: models and languages.
        detectors: the detectors, with their settings.
        progress: counts the responses.

    Raises:
        InputError: a file was changed after it was made, or labels do not fit.
    """
    entry, unit = config.labels, config.study.unit
    gold = Gold()
    if entry is not None:
        paths = config.resolve_all(entry.path)
        rows = rows_of(paths, format_name=entry.format, language=None, columns=entry.columns)
        gold = Gold.of(rows, unit=unit, annotator=entry.annotator, path=", ".join(map(str, paths)))
    passes = []
    for detector in detectors:
        tallying = ResponseCounter(unit, ids=bool(gold))
        for model in plan.models:
            for sample, prediction in pairs(folder.responses(model), folder.predictions(detector.label, model)):
                tallying.add(sample, prediction)
                progress.advance()
        passes.append(tallying)
    planned = {tag for tags in plan.models.values() for tag in tags} if plan.asked else set()
    seen = {key.language for tallying in passes for key in tallying.groups}
    languages = config.languages or tuple(sorted(planned | seen))
    cells = {
        (model, language): _rated(config, plan, (model, language), passes, detectors, gold)
        for model in plan.models
        for language in languages
    }
    rates = [estimate.rate for rated in cells.values() for estimate in rated.estimates]
    rates += [rate for rated in cells.values() for rate in rated.replicates]
    # As `veriglot estimate --json` prints them, then those for each detector and seed.
    write_whole(folder.rates, b"[\n" + b",\n".join(msgspec.json.encode(rate) for rate in rates) + b"\n]\n")
    groups = passes[0].groups
    lost = sum(group.statuses.total() for key, group in groups.items() if key.language not in languages)
    return StudyRates(languages, cells, tuple(detectors), lost, gold.kinds, gold.unused(groups.values()))


def _rated(
    config: Config,
    plan: Plan,
    cell: tuple[str, str],
    passes: Sequence[ResponseCounter],
    detectors: Sequence[ProfiledDetector],
    gold: Gold,
) -> RatedCell:
    model, language = cell
    planned = plan.models[model].get(language, {}) if plan.asked else {}
    asked = {None if seed == "-" else int(seed): count for seed, count in planned.items()}
    counted = tuple(
        CellCounts.of_groups(
            model,
            language,
            detector,
            {key.seed: group for key, group in tallying.groups.items() if (key.model, key.language) == cell},
            gold,
            asked,
        )
        for detector, tallying in zip(detectors, passes, strict=True)
    )
    estimates, estimator = cell_rates(counted, config.estimators), config.study.estimator
    return RatedCell(
        counted, estimates, replicates(counted, estimator, estimates), tuple(_by_both_profiles(counted, estimator))
    )
