"""The detector `ensemble`: several detectors judge each response; the mean, a learned stack or a vote combines them."""

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

__all__ = ["Member", "Mix", "Stacked", "Stacking", "features", "mean_of", "read_members"]


class Member(StrictRecord, omit_defaults=True):
    """One detector of an ensemble.

    Attributes:
        detector: its name, as `load_detector` takes it, or `package.module:Class` of a class of one's own.
        calibration: a file that `veriglot evaluate --calibrate` wrote for it, or None.
        weight: of its confidences in the mean; above 0.
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
        """Its detector, calibrated where it has a calibration, with the confidences of words."""
        from veriglot.detectors.registry import load_named

        make = partial(load_named, self.detector, **self.options)
        if self.calibration is not None:
            return Calibrated(make, calibration=self.calibration, threshold=threshold, words=True)
        return make(threshold=threshold, words=True)


class _Plan(StrictRecord):
    members: tuple[Member, ...]


def read_members(given: str | Sequence[str | Member]) -> tuple[Member, ...]:
    """The members that are meant.

    Args:
        given: names joined by `+`, the path of a TOML file with a table `[[members]]` for each, or a list of names and
            members. Calibrations in a file are found from its folder.

    Raises:
        UsageError: fewer than two, or one twice.
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
_GRAVE = (
    Status.FAILED, Status.TOO_LONG, Status.UNSUPPORTED_LANGUAGE, Status.NO_EVIDENCE, Status.NOTHING_TO_COMPARE,
)  # fmt: skip
_VOID = ("calibration:", "words:no confidences")  # notes of members that learned weights overtake
_NO_WORDS = "it gives spans alone, without the confidence of each word; calibrate it first, or learn a stack"
_VERDICT = 2.0  # log odds of a word in a span without a confidence, and minus those of a word in none


def features(given: Float64s, inside: Bools) -> Float64s:
    """What is weighed: the log odds of confidences, and a fixed step either way where there are only spans.

    Args:
        given: confidences, NaN where there is none, any shape.
        inside: whether a span is there, of the same shape.
    """
    return np.where(np.isnan(given), np.where(inside, _VERDICT, -_VERDICT), logit(given))


class Mix(Record):
    """A logistic regression on the log odds of the members (stacked generalization, Wolpert 1992).

    Attributes:
        weights: of the members, in order; none negative (Breiman 1996), so that more suspicion is never less.
        offset: the constant.
        languages: base tags of the languages that it was fitted on; empty for the default.
    """

    weights: tuple[float, ...]
    offset: float
    languages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.weights or min(self.weights) < 0 or not sum(self.weights) < float("inf"):
            raise ValueError("the weights of a mix are at least one, and none is negative")

    def probabilities(self, values: Float64s, there: Bools) -> Float64s | None:
        """Combined probabilities, rounded, shape (n,); None where no member with a weight is there.

        Args:
            values: `features` of the members that are there, shape (n, k).
            there: which members these are, shape (m,), k of them True. The weights of the rest are made to carry the
                whole.
        """
        weights = np.array(self.weights)
        own = weights[there]
        if not own.sum() > 0:
            return None
        combined: Float64s = np.round(sigmoid(values @ (own * (weights.sum() / own.sum())) + self.offset), DIGITS)
        return combined

    def lowest(self, threshold: float) -> float:
        """A confidence that at least one member reaches wherever the mix reaches a threshold."""
        total = sum(self.weights)
        if threshold <= 0.0 or total == 0.0:
            return 0.0
        target = float(logit(np.array([threshold]))[0])
        return float(sigmoid(np.array([(target - self.offset) / total]))[0])


class Stacked(Record):
    """A member as it was when the weights were learned.

    Attributes:
        member: how it is made.
        name: its name and revision.
        settings: its signature, without the threshold where it gave words.
        source: whether it gave confidences of words, or spans alone.
    """

    member: Member
    name: str
    settings: str
    source: Source


class Stacking(Versioned, kw_only=True):
    """Learned weights of an ensemble.

    Attributes:
        members: in the order of the weights.
        threshold: combined confidence from which a word is marked by default: where F1 of words was best.
        words: for words.
        responses: for the score of a response; None where the labels had nothing to fit, and then scores are averaged.
        quality: what was measured by cross-fitting, of each member, of their mean and of the stack.
        data: the labels.
        signature: one line that says how it was made.
    """

    known = "veriglot-stacking/1"
    what = "file of ensemble weights"
    command = "veriglot train stacking"

    members: tuple[Stacked, ...]
    threshold: float
    words: ByScript[Mix]
    responses: ByScript[Mix] | None
    quality: tuple[Measured, ...]
    data: DataSource
    signature: str

    def threshold_within(self, index: int, threshold: float) -> float | None:
        """Low enough for all scripts; None, its own, for a member that gave spans alone when weights were learned."""
        if self.members[index].source == "spans":
            return None
        mixes = [self.words.default, *self.words.scripts.values()]
        return max(0.0, min(mix.lowest(threshold) for mix in mixes) - 10.0**-DIGITS)

    def score(self, given: Float64s, there: Bools, tag: str | None, script: str | None) -> float | None:
        """That of a response from the members' (1, k): the plain mean where no weights could be learned."""
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
    """The weighted mean of the members' confidences (n, k), rounded, shape (n,): where it marks, one of them does."""
    mean: Float64s = np.round(given @ (weights / weights.sum()), DIGITS)
    return mean


class _Loaded(Record):
    """A member that is here: its index among all, its detector, and its types as those of the ensemble."""

    index: int
    detector: Detector
    weight: float
    types: Mapping[str, str]


def _labeller(
    bounds: Int32s, scored: Sequence[tuple[_Loaded, Prediction]], given: Float64s
) -> Callable[[int, int], SpanLabel]:
    """Types and pointers of the words from one to another.

    Each member gives each word's type its weight times its confidence in the word; one without a confidence gives its
    weight. The type with most wins, and of several equal ones that which was met first.

    Args:
        bounds: the words, shape (n, 2).
        scored: the members with their predictions.
        given: their confidences of the words, NaN where there is none, shape (n, k).
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
    """Puts the confidences of several detectors together, word by word. See `docs/ensembles.md`.

    Without `stacking` the confidence of a word, and the score of the response, is the mean over the members. Spans are
    runs of words from the threshold on; their type is voted on, and they keep the pointers of the members' spans.

    Where a member cannot judge the language of a sample, or evidence in another one, the others judge it, their weights
    carrying the whole, and the prediction says who was missing. What a member did not score for another reason is not
    scored, with that member's status and reason; with `missing="rest"` the others judge that too.

    Args:
        members: names joined by `+`, the path of a TOML file, or a list; see `read_members`. None for those of the
            file of weights.
        stacking: a file that `veriglot train stacking` wrote; None for the mean.
        missing: what happens where a member is not installed, or did not score a sample in a language that it judges.
        taxonomy: of the spans' types; None for that of the first member. Types without a counterpart do not vote.
        threshold: combined confidence from which a word is marked, 0 to 1; None takes that of the file, or 0.5.
        words: whether predictions carry every word.

    Raises:
        UsageError: fewer than two members, or weights that were learned with other members.
        InputError: a file cannot be read.
        MissingExtraError, MissingWeightsError: a member is not here, and `missing` does not say to go on without.
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
        """`ensemble@`, the members that are here with their revisions, and a hash of the weights."""
        names = [member.detector.name.replace("@", "-") for member in self._here]
        return "ensemble@" + "+".join([*names, self._learned.revision] if self._learned else names)

    @cached_property
    def signature(self) -> str:
        """Name, how the members are put together, their settings as hashes, threshold and unit in one line."""
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
        """The members decide."""

    def _run(self, plans: Sequence[tuple[Sample, None]]) -> list[Sequence[Prediction] | NotScored]:
        samples = [sample for sample, _ in plans]
        predictions = [member.detector.predict(samples) for member in self._here]
        for member, own in zip(self._here, predictions, strict=True):
            if [prediction.id for prediction in own] != [sample.id for sample in samples]:
                reason = f"{member.detector.name} did not give one prediction for each sample, in order"
                return [NotScored(Status.FAILED, reason)] * len(samples)
        return [*zip(*predictions, strict=True)]

    def _load(self, stacking: str | None) -> dict[int, Detector]:
        """The members that are here by their index, each at the threshold that its types are needed from."""
        detectors: dict[int, Detector] = {}
        last: Exception | None = None
        for index, member in enumerate(self._members):
            threshold: float | None = self._threshold  # a mean that reaches it has a part that does
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
        others: list[tuple[str, Status, str]] = []
        for member, prediction in zip(self._here, result, strict=True):
            if prediction.status is not Status.SCORED:
                others.append((member.detector.name, prediction.status, prediction.reason or ""))
            elif prediction.words is None and self._learned is None:
                others.append((member.detector.name, Status.FAILED, _NO_WORDS))
            else:
                scored.append((member, prediction))
        failed = any(status is not Status.UNSUPPORTED_LANGUAGE for _, status, _ in others)
        if not scored or (failed and self._missing == "refuse"):
            status = min((status for _, status, _ in others), key=_GRAVE.index)
            return NotScored(status, "; ".join(f"{name}: {reason}" for name, _, reason in others))
        void = _VOID if self._learned else ()
        notes = [note for _, prediction in scored for note in prediction.notes if not note.startswith(void)]
        notes += [f"ensemble:without {name} ({status})" for name, status, _ in others]
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
        """Every word; a supported one with what the first member points at that points anywhere."""
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


def _check(learned: Stacked, detector: Detector, path: str | None) -> None:
    """Whether name and settings of a member are those that the weights were learned with."""
    own = settings_of(detector.signature) if learned.source == "words" else detector.signature
    if (detector.name, own) != (learned.name, learned.settings):
        raise UsageError(
            f"The weights of {path} were learned with {learned.name} ({learned.settings}), and here it is"
            f" {detector.name} ({own}).",
            remedy="Learn them anew with veriglot train stacking.",
        )


def _types(own: str, wanted: str) -> Mapping[str, str]:
    """The ensemble's type for each of a member's; none where no mapping leads from its taxonomy."""
    try:
        return taxonomy(own).to(wanted)
    except UsageError:
        return {}
