"""The detector `ensemble`: combines the confidences of several detectors by their mean or by learned stacking."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from veriglot.detectors.calibration import (
    ByScript,
    Calibrated,
    Measured,
    Source,
    Versioned,
    logit,
    predicted_language,
    read_words,
    settings_of,
    sigmoid,
    span_of_each,
)
from veriglot.errors import InputError, MissingExtraError, UsageError
from veriglot.hub.registry import MissingWeightsError
from veriglot.judging.base import (
    DIGITS,
    BaseDetector,
    NotScored,
    SpanLabel,
    sentence_of_each,
    spans_from_words,
    words_from_confidences,
)
from veriglot.records import DataSource, Detector, Pointer, Prediction, Sample, Status, Word
from veriglot.records.settings import Record, StrictRecord
from veriglot.records.taxonomy import taxonomy
from veriglot.signatures import digest, signature
from veriglot.text.segmentation import word_bounds

if TYPE_CHECKING:
    from veriglot.arrays import Bools, Float64s, Int32s

__all__ = ["Member", "Mix", "StackedMember", "Stacking", "features", "mean_of", "read_members"]


class Member(StrictRecord, omit_defaults=True):
    """One detector of an ensemble.

    Attributes:
        detector: its name for `load_detector`, or `package.module:Class` for a custom class.
        calibration: a file that `veriglot evaluate --calibrate` wrote for it, or None.
        weight: weight of its confidences in the mean, above 0.
        options: further options of the detector.
    """

    detector: str
    calibration: str | None = None
    weight: float = 1.0
    options: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if not 0.0 < self.weight < float("inf"):
            raise ValueError(f"the weight of a member is above 0, but this one is {self.weight}")
        if {"threshold", "words"} & set(self.options):
            raise ValueError("threshold and words are options of the ensemble, not of a member")

    def load(self, threshold: float | None) -> Detector:
        """The detector, calibrated if it has a calibration, with word confidences."""
        from veriglot.detectors.registry import load_named

        make = partial(load_named, self.detector, **self.options)
        if self.calibration is not None:
            return Calibrated(make, calibration=self.calibration, threshold=threshold, words=True)
        return make(threshold=threshold, words=True)


class _Plan(StrictRecord):
    members: tuple[Member, ...]


def read_members(given: str | Sequence[str | Member]) -> tuple[Member, ...]:
    """Parse the members of an ensemble.

    Args:
        given: names joined by `+`, the path of a TOML file with a table `[[members]]` for each, or a list of names and
            members. Paths of calibrations in a file are relative to its folder.

    Raises:
        UsageError: fewer than two members, or a member twice.
        InputError: the file cannot be read.
    """
    if isinstance(given, str):
        members = _of_file(Path(given)) if given.endswith(".toml") else tuple(Member(n) for n in given.split("+") if n)
    else:
        members = tuple(Member(member) if isinstance(member, str) else member for member in given)
    if len(members) < 2:
        raise UsageError("An ensemble has at least two detectors.", remedy="Name them as in ensemble:grounding+reader.")
    repeated = [member for index, member in enumerate(members) if member in members[:index]]
    if repeated:
        raise UsageError(f"The ensemble names {repeated[0].detector!r} twice.")
    return members


def _of_file(path: Path) -> tuple[Member, ...]:
    try:
        plan = msgspec.convert(tomllib.loads(path.read_text("utf-8")), type=_Plan)
    except FileNotFoundError as error:
        raise InputError.of(error, path) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise InputError(f"this is no plan of an ensemble: {error}", path=str(path)) from error
    return tuple(
        member
        if member.calibration is None
        else msgspec.structs.replace(member, calibration=str(path.parent / member.calibration))
        for member in plan.members
    )


_THRESHOLD = 0.5
_BY_PRIORITY = (  # the first of these that occurs becomes the status of the ensemble
    Status.FAILED, Status.TOO_LONG, Status.UNSUPPORTED_LANGUAGE, Status.NO_EVIDENCE, Status.NOTHING_TO_COMPARE,
)  # fmt: skip
_OUTDATED = ("calibration:", "words:no confidences")  # notes of members that no longer hold after stacking
_NO_WORDS = "it gives spans alone, without the confidence of each word; calibrate it first, or learn a stack"
_VERDICT = 2.0  # log odds of a word in a span without a confidence, and minus those of a word in none


def features(given: Float64s, inside: Bools) -> Float64s:
    """Features for stacking: log odds of confidences; for spans without confidence, plus or minus a constant.

    Args:
        given: confidences, NaN if there is none, any shape.
        inside: whether a span overlaps, same shape.
    """
    return np.where(np.isnan(given), np.where(inside, _VERDICT, -_VERDICT), logit(given))


class Mix(Record):
    """A logistic regression on the log odds of the members (stacked generalization, Wolpert 1992).

    Attributes:
        weights: of the members, in order; not negative (Breiman 1996): a higher confidence never lowers the result.
        offset: the intercept.
        languages: base tags of the languages of the fit; empty for the default.
    """

    weights: tuple[float, ...]
    offset: float
    languages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.weights or min(self.weights) < 0 or not sum(self.weights) < float("inf"):
            raise ValueError("the weights of a mix are at least one, and none is negative")

    def probabilities(self, values: Float64s, there: Bools) -> Float64s | None:
        """Combined probabilities, rounded, shape (n,); None if no member with a positive weight is available.

        Args:
            values: `features` of the available members, shape (n, k).
            there: whether each member is available, shape (m,), k of them True. Their weights are scaled up to the
                sum of all weights.
        """
        weights = np.array(self.weights)
        own = weights[there]
        if not own.sum() > 0:
            return None
        combined: Float64s = np.round(sigmoid(values @ (own * (weights.sum() / own.sum())) + self.offset), DIGITS)
        return combined

    def lowest_confidence(self, threshold: float) -> float:
        """If the combined probability reaches the threshold, at least one member reaches this confidence."""
        total = sum(self.weights)
        if threshold <= 0.0 or total == 0.0:
            return 0.0
        target = float(logit(np.array([threshold]))[0])
        return float(sigmoid(np.array([(target - self.offset) / total]))[0])


class StackedMember(Record):
    """A member at the time when the weights were learned.

    Attributes:
        member: name and options.
        name: name and revision of the detector.
        settings: its signature, without the threshold if it gave words.
        source: `words` if it gave word confidences, `spans` if it only gave spans.
    """

    member: Member
    name: str
    settings: str
    source: Source


class Stacking(Versioned, kw_only=True):
    """Learned weights of an ensemble.

    Attributes:
        members: in the order of the weights.
        threshold: combined confidence from which a word is marked by default: the one with the best F1 of words.
        words: weights for words.
        responses: weights for response scores; None if there was nothing to fit: then scores are averaged.
        quality: metrics by cross-fitting, of each member, of their mean and of the stack.
        data: the labels.
        signature: one line with all settings of the fit.
    """

    known = "veriglot-stacking/1"
    what = "file of ensemble weights"
    command = "veriglot train stacking"

    members: tuple[StackedMember, ...]
    threshold: float
    words: ByScript[Mix]
    responses: ByScript[Mix] | None
    quality: tuple[Measured, ...]
    data: DataSource
    signature: str

    def threshold_within(self, index: int, threshold: float) -> float | None:
        """A threshold for a member, low enough for all scripts; None (its own) if it only gave spans in the fit."""
        if self.members[index].source == "spans":
            return None
        mixes = [self.words.default, *self.words.scripts.values()]
        return max(0.0, min(mix.lowest_confidence(threshold) for mix in mixes) - 10.0**-DIGITS)

    def score(self, given: Float64s, there: Bools, tag: str | None, script: str | None) -> float | None:
        """The response score from the members' scores (1, k); their plain mean if no weights were learned."""
        if self.responses is None:
            return round(float(given.mean()), DIGITS)
        mix = self.responses.of(tag, script)
        combined = mix.probabilities(features(given, np.ones_like(given, dtype=bool)), there)
        return None if combined is None else float(combined[0])

    def __post_init__(self) -> None:
        for level in (self.words, self.responses):
            mixes = [level.default, *level.scripts.values()] if level is not None else []
            if any(len(mix.weights) != len(self.members) for mix in mixes):
                raise ValueError("a stack has one weight for each of its members")

    @property
    def revision(self) -> str:
        """A short hash of all that changes a prediction."""
        return digest([msgspec.json.encode([self.words, self.responses, self.threshold])])[:8]


def mean_of(given: Float64s, weights: Float64s) -> Float64s:
    """Weighted mean of the members' confidences (n, k), rounded, shape (n,); some member is at least as high."""
    mean: Float64s = np.round(given @ (weights / weights.sum()), DIGITS)
    return mean


class _Loaded(Record):
    """An available member: its index among all members, and its types mapped to the ensemble's taxonomy."""

    index: int
    detector: Detector
    weight: float
    types: Mapping[str, str]


def _labeller(
    bounds: Int32s, scored: Sequence[tuple[_Loaded, Prediction]], given: Float64s
) -> Callable[[int, int], SpanLabel]:
    """A function that returns type and pointers of a half-open range of words.

    Members vote for the types of their spans: each word adds weight * confidence, or the weight if it has no
    confidence. The type with the highest sum wins; among equal ones, the first.

    Args:
        bounds: the words, shape (n, 2).
        scored: the members with their predictions.
        given: their confidences of the words, NaN if there is none, shape (n, k).
    """
    spans_of_words = [span_of_each(bounds, prediction.spans or ()) for _, prediction in scored]

    def label(low: int, high: int) -> SpanLabel:
        weights = defaultdict[str, float](float)
        evidence: dict[Pointer, None] = {}
        for (member, prediction), of_word, confidences in zip(scored, spans_of_words, given.T, strict=True):
            for word in range(low, high):
                if of_word[word] < 0:
                    continue
                span = (prediction.spans or ())[of_word[word]]
                evidence.update(dict.fromkeys(span.evidence))
                kind = member.types.get(span.type or "")
                if kind is not None:
                    confidence = confidences[word]
                    weights[kind] += member.weight * (1.0 if np.isnan(confidence) else float(confidence))
        return SpanLabel(max(weights, key=weights.__getitem__) if weights else None, tuple(evidence))

    return label


class Ensemble(BaseDetector[None, Sequence[Prediction]]):
    """Combines the word confidences of several detectors. See `docs/ensembles.md`.

    Without `stacking`, word confidences and response scores are means over the members. Spans are runs of words that
    reach the threshold; the members vote on their types, and they get the pointers of the members' spans.

    If a member does not support the language of a sample or of its evidence, the others judge it with scaled weights,
    and a note names the missing member. If a member fails for another reason, the sample is not scored and gets that
    member's status and reason; with `missing="rest"` the others judge it too.

    Args:
        members: names joined by `+`, the path of a TOML file, or a list; see `read_members`. None for those of the
            `stacking` file.
        stacking: a file that `veriglot train stacking` wrote; None for the mean.
        missing: `refuse` or `rest`, for members that are not installed or fail on a sample in a supported language.
        taxonomy: of the spans' types; None for that of the first member. Types without a counterpart do not vote.
        threshold: combined confidence from which a word is marked, 0 to 1; None for that of the file, or 0.5.
        words: whether predictions include every word.

    Raises:
        UsageError: fewer than two members, or weights that were learned with other members.
        InputError: a file cannot be read.
        MissingExtraError, MissingWeightsError: a member is not installed, with `missing="refuse"`.
    """

    def __init__(
        self,
        members: str | Sequence[str | Member] | None = None,
        *,
        stacking: str | None = None,
        missing: Literal["refuse", "rest"] = "refuse",
        taxonomy: str | None = None,
        threshold: float | None = None,
        words: bool = False,
    ) -> None:
        if missing not in {"refuse", "rest"}:
            raise UsageError(f"missing is refuse or rest, not {missing!r}.")
        self._missing = missing
        self._members, self._learned = _combination(members, stacking)
        best = _THRESHOLD if self._learned is None else self._learned.threshold
        super().__init__(best if threshold is None else threshold, words=words)
        self._absent: list[str] = []
        detectors = self._load(stacking)
        self.taxonomy = taxonomy or next(iter(detectors.values())).taxonomy
        self._here = [
            _Loaded(index, detector, self._members[index].weight, _types(detector.taxonomy, self.taxonomy))
            for index, detector in detectors.items()
        ]

    @cached_property
    def name(self) -> str:
        """`ensemble@`, the available members with their revisions, and a hash of the weights."""
        names = [member.detector.name.replace("@", "-") for member in self._here]
        return "ensemble@" + "+".join([*names, self._learned.revision] if self._learned else names)

    @cached_property
    def signature(self) -> str:
        """Name, how members are combined, a hash of their settings, threshold and unit in one line."""
        weights = [member.weight for member in self._members]
        combined = "mean " + " ".join(repr(float(weight)) for weight in weights) if len(set(weights)) > 1 else "mean"
        return signature(
            detector=self.name,
            members=digest([settings_of(member.detector.signature) or "" for member in self._here])[:12],
            combined=combined if self._learned is None else f"stacking {self._learned.revision}",
            absent="+".join(self._absent) or None,
            missing=self._missing,
            taxonomy=self.taxonomy,
            threshold=self._threshold,
            unit="word",
        )

    def _plan(self, sample: Sample) -> None:
        """Nothing: the members prepare the sample themselves."""

    def _run(self, plans: Sequence[tuple[Sample, None]]) -> list[Sequence[Prediction] | NotScored]:
        samples = [sample for sample, _ in plans]
        predictions = [member.detector.predict(samples) for member in self._here]
        for member, own in zip(self._here, predictions, strict=True):
            if [prediction.id for prediction in own] != [sample.id for sample in samples]:
                reason = f"{member.detector.name} did not give one prediction for each sample, in order"
                return [NotScored(Status.FAILED, reason)] * len(samples)
        return [*zip(*predictions, strict=True)]

    def _load(self, stacking: str | None) -> dict[int, Detector]:
        """The available members by index, with thresholds that mark at least the words which the ensemble marks."""
        detectors: dict[int, Detector] = {}
        last: Exception | None = None
        for index, member in enumerate(self._members):
            threshold: float | None = self._threshold  # if the mean reaches it, so does a member
            if self._learned is not None:
                threshold = self._learned.threshold_within(index, self._threshold)
            try:
                detector = member.load(threshold)
            except (MissingExtraError, MissingWeightsError) as error:
                if self._missing == "refuse":
                    raise
                self._absent.append(member.detector)
                last = error
                continue
            if self._learned is not None:
                _check(self._learned.members[index], detector, stacking)
            detectors[index] = detector
        if not detectors:
            assert last is not None
            raise last
        return detectors

    def _scored(self, sample: Sample, plan: None, result: Sequence[Prediction]) -> Prediction | NotScored:  # noqa: ARG002
        scored: list[tuple[_Loaded, Prediction]] = []
        unscored: list[tuple[str, Status, str]] = []
        for member, prediction in zip(self._here, result, strict=True):
            if prediction.status is not Status.SCORED:
                unscored.append((member.detector.name, prediction.status, prediction.reason or ""))
            elif prediction.words is None and self._learned is None:
                unscored.append((member.detector.name, Status.FAILED, _NO_WORDS))
            else:
                scored.append((member, prediction))
        failed = any(status is not Status.UNSUPPORTED_LANGUAGE for _, status, _ in unscored)
        if not scored or (failed and self._missing == "refuse"):
            status = min((status for _, status, _ in unscored), key=_BY_PRIORITY.index)
            return NotScored(status, "; ".join(f"{name}: {reason}" for name, _, reason in unscored))
        outdated = _OUTDATED if self._learned else ()
        notes = [note for _, prediction in scored for note in prediction.notes if not note.startswith(outdated)]
        notes += [f"ensemble:without {name} ({status})" for name, status, _ in unscored]
        notes += [f"ensemble:without {name} (not installed)" for name in self._absent]
        return self._combined(sample, scored, notes)

    def _combined(
        self, sample: Sample, scored: Sequence[tuple[_Loaded, Prediction]], notes: list[str]
    ) -> Prediction | NotScored:
        tag, script = predicted_language(sample, scored[0][1])
        bounds = word_bounds(sample.response, tag)
        readings = [read_words(sample, prediction, bounds) for _, prediction in scored]
        there = np.isin(np.arange(len(self._members)), [member.index for member, _ in scored])
        given = np.stack([reading.confidences for reading in readings], axis=1)
        inside = np.stack([reading.marked for reading in readings], axis=1)
        scores = np.array([[float(prediction.score or 0.0) for _, prediction in scored]])
        confidences: Float64s | None
        score: float | None
        if self._learned is None:
            weights = np.array([member.weight for member, _ in scored])
            confidences, score = mean_of(given, weights), float(mean_of(scores, weights)[0])
        else:
            confidences = self._learned.words.of(tag, script).probabilities(features(given, inside), there)
            score = self._learned.score(scores, there, tag, script)
            if not self._learned.words.covers(tag, script):
                notes.append("calibration:default")
        if confidences is None or score is None:
            return NotScored(Status.FAILED, "no member that has a weight in this script scored it")
        label = _labeller(bounds, scored, given)
        sentences = sentence_of_each(sample.response, tag, bounds)
        return self._prediction(
            sample,
            score=score,
            spans=spans_from_words(sample.response, bounds, confidences, self._threshold, sentences, label),
            words=self._word_list(bounds, confidences, scored) if self._words else None,
            language=tag,
            notes=dict.fromkeys(notes),
        )

    def _word_list(
        self, bounds: Int32s, confidences: Float64s, scored: Sequence[tuple[_Loaded, Prediction]]
    ) -> tuple[Word, ...]:
        """Every word; supported words get the pointers of the first member that has any."""
        pointers: dict[tuple[int, int], tuple[Pointer, ...]] = {}
        for _, prediction in scored:
            for word in prediction.words or ():
                if word.evidence:
                    pointers.setdefault((word.start, word.end), word.evidence)
        ranges = [(start, end) for start, end in bounds.tolist()]
        return words_from_confidences(bounds, confidences, self._threshold, lambda word: pointers.get(ranges[word], ()))


def _combination(
    members: str | Sequence[str | Member] | None, stacking: str | None
) -> tuple[tuple[Member, ...], Stacking | None]:
    if stacking is None:
        if members is None:
            raise UsageError("The ensemble has no members.", remedy="Name them as in ensemble:grounding+reader.")
        return read_members(members), None
    learned = Stacking.read(stacking)
    names = [member.member.detector for member in learned.members]
    if members is not None and [member.detector for member in read_members(members)] != names:
        raise UsageError(
            f"The weights of {stacking} were learned for {'+'.join(names)}.",
            remedy="Leave the members out, or learn weights for these.",
        )
    return tuple(member.member for member in learned.members), learned


def _check(learned: StackedMember, detector: Detector, path: str | None) -> None:
    """Raise an error unless name and settings of a member are those of the fit."""
    own = settings_of(detector.signature) if learned.source == "words" else detector.signature
    if (detector.name, own) != (learned.name, learned.settings):
        raise UsageError(
            f"The weights of {path} were learned with {learned.name} ({learned.settings}), and here it is"
            f" {detector.name} ({own}).",
            remedy="Retrain them with veriglot train stacking.",
        )


def _types(own: str, wanted: str) -> Mapping[str, str]:
    """Mapping from a member's types to the ensemble's; empty if there is no mapping between the taxonomies."""
    try:
        return taxonomy(own).to(wanted)
    except UsageError:
        return {}
