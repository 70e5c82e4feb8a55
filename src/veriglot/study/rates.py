"""Counts of a study, of units and gold labels, and its rates: by every estimator, and of each detector and seed."""

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
    from veriglot.pipeline.progress import Watch
    from veriglot.study.config import Config, Folder, StudyEntry

    Array = Float64s

__all__ = [
    "Counted",
    "Estimated",
    "Gold",
    "Judging",
    "ProfileComparison",
    "Rated",
    "Tallying",
    "cell_rates",
    "contradictions",
    "estimate_all",
    "language_of",
    "query_of",
    "replicates",
]


_BIN = coarse_bin(
    np.arange(BINS), CONFIDENCE_BINS
)  # by way of an evaluation's grid: 0.15 must lie where a profile has it


class Key(NamedTuple):
    """What is estimated apart: model, language tag, and the seed of the responses (None where none is stated)."""

    model: str | None
    language: str
    seed: int | None


@dataclass
class Group:
    """The responses of one key.

    Attributes:
        statuses: predictions by status.
        ids: id of each judged response, in order; empty unless they were asked for.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    ids: list[str] = field(default_factory=list)
    _counts: array[int] = field(default_factory=lambda: array("q"))  # three numbers a response: a study has many
    _histograms: array[int] = field(default_factory=lambda: array("i"))  # 20 numbers a response

    @property
    def tallies(self) -> Tallies:
        """The counts of the judged responses."""
        counts = np.array(self._counts, np.int64).reshape(-1, 3)
        all_have = len(self._histograms) == CONFIDENCE_BINS * len(counts)  # a seed without a response lacks none
        confidences = np.array(self._histograms, np.int64).reshape(-1, CONFIDENCE_BINS) if all_have else None
        return Tallies(counts[:, 0], counts[:, 1], counts[:, 2], confidences)

    def add(self, marked: int, units: int, cluster: int, histogram: Int32s | None) -> None:
        """Count one judged response."""
        self._counts.extend((marked, units, cluster))
        if histogram is not None:
            self._histograms.frombytes(histogram.tobytes())


class Tallying:
    """Takes each response with its prediction, in any order.

    Args:
        unit: `char`, `word` or `hf:<tokenizer>`.
        ids: keep the ids of the judged responses, so that labels can be held against them.

    Raises:
        UnknownNameError: no such unit.
    """

    def __init__(self, unit: str, *, ids: bool = False) -> None:
        self.unit = unit
        self.groups: dict[Key, Group] = {}
        self._segment = segmenter(unit)
        self._ids = ids

    def add(self, sample: Sample, prediction: Prediction | None) -> None:
        """Count one response, with what was said of it; None counts as `missing`.

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
        """Which units are marked, and how confident the detector was of each."""
        marks, by_character, _ = answer(prediction, len(sample.response))
        words = prediction.words
        if self.unit == "word" and words is not None:  # the same words, already taken apart
            return marked(ranges(words), marks.spans), np.array([word.confidence for word in words])
        bounds = self._segment(sample.response, sample.language or prediction.language)
        confidences = None if by_character is None else unit_probabilities(bounds, by_character)
        return marked(bounds, marks.spans), confidences


def histogram_of(confidences: Float64s) -> Int32s:
    """Units by confidence, shape `(20,)`."""
    return np.bincount(_BIN[bin_of(confidences)], minlength=CONFIDENCE_BINS).astype(np.int32)


def language_of(sample: Sample, prediction: Prediction | None) -> str:
    """The tag that a response is counted under: what was asked for, or else what the detector found."""
    return tag_of(sample.language) or (tag_of(prediction.language) if prediction else None) or UNDETERMINED


def query_of(sample: Sample) -> int:
    """The number of the query that a response answers, the same in every file, model and run.

    That is `meta.query`, or else `meta.group`, or else question and evidence together, or else the response itself.
    """
    for name in ("query", "group"):
        value = sample.meta.get(name)
        if isinstance(value, str | int):
            return _number(name, str(value))
    if sample.question or sample.evidence:
        return _number("asked", sample.question or "", *(passage.text for passage in sample.evidence))
    return _number("said", sample.response)


def _number(*parts: str) -> int:
    return int(digest(parts)[:15], 16)  # 60 bits: fits an int64, and no two queries of a study meet


def together(groups: Iterable[Group]) -> Group:
    """The responses of several groups as one."""
    joined = Group()
    for group in groups:
        joined.statuses.update(group.statuses)
        joined.ids += group.ids
        joined._counts += group._counts
        joined._histograms += group._histograms
    return joined


@dataclass(frozen=True)
class Gold:
    """Labels of responses, as counts; false where there are none.

    Attributes:
        counts: unsupported units and units of each labelled response, by its id.
        kinds: who labelled: people, models or both.
    """

    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    kinds: frozenset[Kind] = frozenset()

    @classmethod
    def of(
        cls, rows: Iterable[Sample | FailedRow], *, unit: str, annotator: str | None = None, path: str | None = None
    ) -> Gold:
        """The labels of samples; none where there are no samples.

        Raises:
            InputError: a row could not be read, or none has labelled spans.
            UnknownNameError: nobody of the annotators is called that.
            UsageError: several annotators labelled, and nobody says whose labels count.
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
        """Labelled responses that are none of the judged ones in `groups`: no estimate uses them."""
        return len(self.counts.keys() - {id_ for group in groups for id_ in group.ids})


def labels_of(ids: Sequence[str], units: Sequence[int], gold: Gold) -> Labels | None:
    """The labels of the judged responses with these ids and units, in order; None where none is labelled.

    Raises:
        InputError: a labelled response has other units than the one that was judged, so it is another text.
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
class Judging:
    """A detector with its profile, and what the study asks of rates.

    Attributes:
        description: of the detector.
        profile: its error profile, or None.
        study: `[study]`.
        label: its name in the run's folder.
        compared: a second profile, by which rates are made to compare, or None.
    """

    description: Description
    profile: ErrorProfile | None
    study: StudyEntry
    label: str = ""
    compared: ErrorProfile | None = None

    @cached_property
    def profile_hash(self) -> str | None:
        """What names the profile in signatures; None without one."""
        return None if self.profile is None else digest([encode(self.profile)])[:16]

    def of(self, language: str) -> tuple[LanguageProfile | None, str | None]:
        """The error rates to use in a language, and which these are (its tag, or `pooled`); None where there are none.

        Pooled ones are used where the study asks for them, and the profile holds the language not at all, or too few
        texts of it for any interval to hold.
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
class Counted:
    """What one detector marked in the responses of one model in one language.

    Attributes:
        model, language: whose responses.
        judging: the detector.
        seeds: tallies by seed of the responses (None where they state none).
        labels: of people, with places in the joined tallies; None where there are none.
        given: responses that the design asks for or that were given, judged or not, by seed.
    """

    model: str | None
    language: str
    judging: Judging
    seeds: dict[int | None, Tallies]
    labels: Labels | None
    given: dict[int | None, int]

    @classmethod
    def of_groups(
        cls,
        model: str | None,
        language: str,
        judging: Judging,
        groups: dict[int | None, Group],
        gold: Gold,
        asked: dict[int | None, int] | None = None,
    ) -> Counted:
        """From groups by seed, where the design asks for so many; calls that gave no response count as not judged."""
        given = {seed: group.statuses.total() for seed, group in groups.items()}
        asked = asked or {}
        whole = together(groups.values())
        labels = labels_of(whole.ids, whole.tallies.units.tolist(), gold) if gold else None
        seeds = {seed: group.tallies for seed, group in groups.items()}
        expected = {seed: max(given.get(seed, 0), asked.get(seed, 0)) for seed in given | asked}
        return cls(model, language, judging, seeds, labels, expected)

    @property
    def joined(self) -> Tallies:
        """All seeds."""
        return Tallies.join(list(self.seeds.values()))

    @property
    def coverage(self) -> float:
        """Judged responses over those that were asked for or given; 0 where there is none."""
        given = sum(self.given.values())
        return sum(map(len, self.seeds.values())) / given if given else 0.0

    def of(self, seed: int | None) -> Counted:
        """One seed alone; labels are too few to part."""
        return replace(self, seeds={seed: self.seeds[seed]}, labels=None, given={seed: self.given.get(seed, 0)})


class Made(NamedTuple):
    """A rate as it is shown, with its draws, shape `(draws,)`, and its value (or NaN) before they are cut to [0, 1].

    `drift` is the part of its standard error that is the detector's other errors here (`RateEstimate.drift`).
    """

    rate: Rate
    draws: Array
    value: float
    drift: float = 0.0


def cell_rates(counted: Sequence[Counted], estimators: Sequence[Estimator]) -> tuple[Made, ...]:
    """The rates of one model in one language by each estimator, over all seeds and detectors.

    Of several detectors it is the mean. All of them judged the same responses, so the noise of these does not average
    out: the interval is as wide as theirs are on average.

    Two rates whose intervals exclude each other are not both reliable, nor is one that excludes what people's labels
    of the cell say: the one that assumes more gives way, and both where they assume as much.
    """
    made = []
    for estimator in estimators:
        each = [_of_detector(cell, estimator) for cell in counted]
        made.append(each[0] if len(each) == 1 else _mean(each))
    return _without_contradictions(made, counted)


def replicates(counted: Sequence[Counted], estimator: Estimator, made: Sequence[Made] = ()) -> tuple[Rate, ...]:
    """One rate for each detector and seed (mFAVA: 3 x 5); raw for `ppi`, as labels are too few to part by seed.

    Where the rate of all seeds in `made` contradicts another, so do theirs.
    """
    estimator = Estimator.RAW if estimator is Estimator.PPI else estimator
    rates = [
        _of_detector(each.of(seed), estimator, seed).rate
        for each in counted
        for seed in sorted(each.seeds, key=lambda seed: (seed is None, seed or 0))
    ]
    reasons = contradictions(next((each.rate for each in made if each.rate.estimator is estimator), None))
    return tuple(_doubted(rate, reasons) for rate in rates) if reasons else tuple(rates)


# Rates that exclude each other.


CONTRADICTS = "its interval excludes"
"""How a reason starts that another rate, or labels, of the same responses give."""

_ASSUMES = {Estimator.PPI: 1, Estimator.LABEL_SHIFT: 2, Estimator.EM: 2, Estimator.PAPER: 3, Estimator.RAW: 4}
_HALF_WIDTH = 0.05  # of the interval that the labels to add are counted for


def contradictions(rate: Rate | None) -> list[str]:
    """The reasons of a rate that another rate, or labels, of the same responses give."""
    reasons = (rate.reason or "").split("; ") if rate is not None else []
    return [reason for reason in reasons if reason.startswith(CONTRADICTS)]


def _without_contradictions(made: Sequence[Made], counted: Sequence[Counted]) -> tuple[Made, ...]:
    reasons: dict[int, str] = {}
    cell = next((each for each in counted if each.labels is not None), None)
    if cell is not None:  # what its labels alone say
        labelled = estimate(_labelled(cell), estimator=Estimator.RAW, confidence=cell.judging.study.confidence)
        reasons = {
            index: _contradiction(each.rate, labelled, "the labels of these responses", counted)
            for index, each in enumerate(made)
            if _disjoint(each.rate, labelled)
        }
    order = sorted(range(len(made)), key=lambda index: _ASSUMES[made[index].rate.estimator])
    sound = [index for index in order if made[index].rate.status is Reliability.OK and index not in reasons]
    for second in sound:
        for first in sound:
            pair = made[first].rate, made[second].rate
            ranks = [_ASSUMES[rate.estimator] for rate in pair]
            # What is itself contradicted by a better one says nothing of others; of two alike, both give way.
            valid = first not in reasons or ranks[0] == ranks[1]
            if first != second and ranks[0] <= ranks[1] and second not in reasons and valid and _disjoint(*pair):
                reasons[second] = _contradiction(pair[1], pair[0], pair[0].estimator, counted)
    return tuple(
        each._replace(rate=_doubted(each.rate, [reasons[index]])) if index in reasons else each
        for index, each in enumerate(made)
    )


def _labelled(cell: Counted) -> Tallies:
    assert cell.labels is not None
    chosen = cell.joined.select(cell.labels.response)
    return Tallies(cell.labels.unsupported, chosen.units, chosen.cluster)


def _disjoint(first: Rate | RateEstimate, second: Rate | RateEstimate) -> bool:
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return False
    return first.high < second.low or second.high < first.low


def _contradiction(rate: Rate, other: Rate | RateEstimate, name: str, counted: Sequence[Counted]) -> str:
    """One sentence: what a rate excludes, what that means and what to do."""
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
        return start + f"the detector errs otherwise here than in its profile, so quote {name} ({to_label})"
    if isinstance(other, Rate):
        return start + f"the detector errs otherwise here than in its profile, so label some and quote ppi ({to_label})"
    if rate.estimator is Estimator.PPI:
        return start + f"the labels may not be drawn at random ({to_label})"
    return start + f"the detector errs otherwise here than was assumed, so quote ppi ({to_label})"


def _labels_needed(counted: Sequence[Counted], rate: float) -> int:
    """Labelled texts or queries for the half-width, if labels vary between them as these, or else as marks, do."""
    cell = next((each for each in counted if each.labels is not None), counted[0])
    share = Share.of(cell.joined if cell.labels is None else _labelled(cell))
    if share is None:
        return FEWEST_CLUSTERS
    quantile = NormalDist().inv_cdf((1.0 + cell.judging.study.confidence) / 2.0)
    units = rate * (1.0 - rate) * (quantile / _HALF_WIDTH) ** 2
    needed = max(FEWEST_CLUSTERS / max(rate, 0.01), units * share.clusters / share.effective)
    return math.ceil(needed / 10) * 10


def _doubted(rate: Rate, reasons: Sequence[str]) -> Rate:
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
        """The rate by `profile` minus that by `compare_profile`; None where one of them is unreliable."""
        first, second = (_sound(rate) for rate in (self.rate, self.compared))
        return None if first is None or second is None else first - second


def _sound(rate: Rate) -> float | None:
    return rate.rate if rate.status is Reliability.OK else None


def _by_both_profiles(counted: Sequence[Counted], estimator: Estimator) -> Iterator[ProfileComparison]:
    """The rates of each detector that has two profiles, in a language that the second one holds."""
    for each in counted:
        second = each.judging.compared
        if second is None or each.language not in second.languages:
            continue
        judging = replace(each.judging, profile=second, study=msgspec.structs.replace(each.judging.study, pooled=False))
        pair = (each, replace(each, judging=judging))
        rate, compared = (cell_rates((cell,), (estimator,))[0].rate for cell in pair)
        sd, compared_sd = (_sd(replicates((cell,), estimator)) for cell in pair)
        yield ProfileComparison(rate, compared, sd, compared_sd)


def _sd(rates: Iterable[Rate]) -> float | None:
    sound = [value for rate in rates if (value := _sound(rate)) is not None]
    return stdev(sound) if len(sound) > 1 else None


def _of_detector(counted: Counted, estimator: Estimator, seed: int | None = None) -> Made:
    judging, tallies = counted.judging, counted.joined
    profile, used = judging.of(counted.language)
    study = judging.study
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
        signature=_signature(judging, estimator, used, result.notes),
        detector=judging.description.name,
        seed=seed,
    )
    return Made(rate, result.draws, result.uncut, result.drift)


def _missing(counted: Counted, profile: LanguageProfile | None, estimator: Estimator) -> str | None:
    """What an estimator needs and a cell lacks."""
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


def _signature(judging: Judging, estimator: Estimator, used: str | None, notes: tuple[str, ...]) -> str:
    study = judging.study
    needs = judging.profile is not None and ESTIMATORS[estimator].needs_profile
    return signature(
        estimator=estimator,
        notes=",".join(notes) or None,
        unit=study.unit,
        detector=judging.description.name,
        threshold=judging.description.threshold,
        profile=judging.profile_hash if needs else None,
        rates=used if needs else None,
        confidence=study.confidence,
        seed=study.seed,
        draws=study.draws,
        version=__version__,
    )


def _mean(made: Sequence[Made]) -> Made:
    rates = [each.rate for each in made]
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
    return Made(mean, _mean_draws([each.draws for each in made]), float(np.mean([each.value for each in made])))


def _mean_signature(lines: Sequence[str]) -> str:
    """What all of them state, once; where they differ (detector, threshold, profile), each."""
    stated = [dict(part.split(":", 1) for part in line.split("|")) for line in lines]
    merged = {}
    for key in dict.fromkeys(key for parts in stated for key in parts):
        values = [parts.get(key, "none") for parts in stated]
        merged[key] = values[0] if len(set(values)) == 1 else "+".join(values)
    return signature(mean_of=len(lines), **merged)


def _mean_draws(draws: Sequence[Array]) -> Array:
    """The mean of draws, spread as widely as each of them is on average."""
    mean: Array = np.mean(draws, axis=0)
    if np.isnan(mean).all():  # a detector gives no rate
        return mean
    centre, spread = np.nanmean(mean), np.nanstd(mean)
    wanted = float(np.mean([np.nanstd(each) for each in draws]))
    if not spread > 0:
        return mean
    wide: Array = centre + (mean - centre) * (wanted / spread)
    return wide


class Rated(Record):
    """One model in one language.

    Attributes:
        counted: what each detector marked.
        made: the rates over all, with their draws; the study's own estimator first.
        replicates: one rate for each detector and seed.
        profiles: the rates of each detector by two profiles, where the study names two.
    """

    counted: tuple[Counted, ...]
    made: tuple[Made, ...]
    replicates: tuple[Rate, ...]
    profiles: tuple[ProfileComparison, ...] = ()


class Estimated(Record):
    """All rates of a study.

    Attributes:
        languages: in the order of the study file, or else sorted.
        cells: (model, language) -> its rates.
        judgings: the detectors.
        outside: responses that are in none of them, as the first detector found.
        labelled_by: who made the labels of the study's own responses; empty where it has none.
        unused_labels: labelled responses that are none of those that the first detector judged.
    """

    languages: tuple[str, ...]
    cells: dict[tuple[str, str], Rated]
    judgings: tuple[Judging, ...]
    outside: int
    labelled_by: frozenset[Kind]
    unused_labels: int


def estimate_all(config: Config, folder: Folder, plan: Plan, judgings: Sequence[Judging], watch: Watch) -> Estimated:
    """Estimate every rate of a study, and write `rates.json`.

    Args:
        config: the study.
        folder: of the run, with responses and predictions.
        plan: models and languages.
        judgings: the detectors, as they were used.
        watch: is told of every response that is read.

    Raises:
        InputError: a file was changed after it was made, or labels do not fit.
    """
    entry, unit = config.labels, config.study.unit
    gold = Gold()
    if entry is not None:
        paths = config.places(entry.path)
        rows = rows_of(paths, format_name=entry.format, language=None, columns=entry.columns)
        gold = Gold.of(rows, unit=unit, annotator=entry.annotator, path=", ".join(map(str, paths)))
    passes = []
    for judging in judgings:
        tallying = Tallying(unit, ids=bool(gold))
        for model in plan.models:
            for sample, prediction in pairs(folder.responses(model), folder.predictions(judging.label, model)):
                tallying.add(sample, prediction)
                watch.advance()
        passes.append(tallying)
    planned = {tag for tags in plan.models.values() for tag in tags} if plan.asked else set()
    seen = {key.language for tallying in passes for key in tallying.groups}
    languages = config.languages or tuple(sorted(planned | seen))
    cells = {
        (model, language): _rated(config, plan, (model, language), passes, judgings, gold)
        for model in plan.models
        for language in languages
    }
    rates = [made.rate for rated in cells.values() for made in rated.made]
    rates += [rate for rated in cells.values() for rate in rated.replicates]
    # As `veriglot estimate --json` prints them, then those of single detectors and seeds.
    write_whole(folder.rates, b"[\n" + b",\n".join(msgspec.json.encode(rate) for rate in rates) + b"\n]\n")
    groups = passes[0].groups
    lost = sum(group.statuses.total() for key, group in groups.items() if key.language not in languages)
    return Estimated(languages, cells, tuple(judgings), lost, gold.kinds, gold.unused(groups.values()))


def _rated(
    config: Config,
    plan: Plan,
    cell: tuple[str, str],
    passes: Sequence[Tallying],
    judgings: Sequence[Judging],
    gold: Gold,
) -> Rated:
    model, language = cell
    planned = plan.models[model].get(language, {}) if plan.asked else {}
    asked = {None if seed == "-" else int(seed): count for seed, count in planned.items()}
    counted = tuple(
        Counted.of_groups(
            model,
            language,
            judging,
            {key.seed: group for key, group in tallying.groups.items() if (key.model, key.language) == cell},
            gold,
            asked,
        )
        for judging, tallying in zip(judgings, passes, strict=True)
    )
    made, estimator = cell_rates(counted, config.estimators), config.study.estimator
    return Rated(counted, made, replicates(counted, estimator, made), tuple(_by_both_profiles(counted, estimator)))
