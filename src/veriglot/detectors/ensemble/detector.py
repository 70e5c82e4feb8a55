"""The detector `ensemble`: several detectors judge every response, and their confidences are put together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from veriglot.detectors.confidences.calibration import settings_of
from veriglot.detectors.confidences.readings import language_of, read_over
from veriglot.detectors.confidences.respanning import respanned, rewritten, sentence_of_each
from veriglot.detectors.ensemble.combining import Mean, Stack
from veriglot.detectors.ensemble.plan import made, read_members
from veriglot.detectors.ensemble.stacking import read_stacking
from veriglot.detectors.ensemble.voting import Vote, Voter, pointers_of
from veriglot.errors import MissingExtraError, UsageError
from veriglot.provenance import digest, signature
from veriglot.records import Prediction, Status, taxonomy
from veriglot.text import word_bounds
from veriglot.weights import MissingWeightsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.ensemble.combining import Combination
    from veriglot.detectors.ensemble.plan import Member
    from veriglot.records import Detector, Sample

__all__ = ["Ensemble", "Missing"]

Missing = Literal["refuse", "rest"]

_THRESHOLD = 0.5
_GRAVE = (
    Status.FAILED, Status.TOO_LONG, Status.UNSUPPORTED_LANGUAGE, Status.NO_EVIDENCE, Status.NOTHING_TO_COMPARE,
)  # fmt: skip
_VOID = ("calibration:", "words:no confidences")  # notes of members that learned weights overtake
_NO_WORDS = "it gives spans alone, without the confidence of each word; calibrate it first, or learn a stack"


@dataclass(frozen=True)
class _Loaded:
    """A member that is here: its place among all, its detector, and its types as those of the ensemble."""

    place: int
    detector: Detector
    weight: float
    types: Mapping[str, str]


@dataclass(frozen=True)
class _Heard:
    """A member that scored a sample."""

    loaded: _Loaded
    prediction: Prediction


class Ensemble:
    """Puts the confidences of several detectors together, word by word. See `docs/ensembles.md`.

    Without `stacking` the confidence of a word, and the score of the response, is the mean over the members. Spans are
    runs of words from the threshold on; their type is voted on, and they keep the pointers of the members' spans.

    A sample that one member did not score is not scored, with that member's status and reason. With `missing="rest"`
    the others judge it, their weights carrying the whole, and the prediction says who was missing.

    Args:
        members: names joined by `+`, the path of a TOML file, or a list; see `plan.read_members`. None for those of the
            file of weights.
        stacking: a file that `veriglot train stacking` wrote; None for the mean.
        missing: what happens where a member is not installed or did not score a sample.
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
        missing: Missing = "refuse",
        taxonomy: str | None = None,
        threshold: float | None = None,
        words: bool = False,
    ) -> None:
        self._options: dict[str, Any] = {
            "members": members, "stacking": stacking, "missing": missing, "taxonomy": taxonomy,
            "threshold": threshold, "words": words,
        }  # fmt: skip
        if missing not in {"refuse", "rest"}:
            raise UsageError(f"missing is refuse or rest, not {missing!r}.")
        self._missing = missing
        self._words = words
        self._members, self._combination = _combination(members, stacking)
        default = _THRESHOLD if self._combination.threshold is None else self._combination.threshold
        self._threshold = default if threshold is None else threshold
        self._absent: list[str] = []
        found = self._load()
        self._taxonomy = taxonomy or found[0][1].taxonomy
        self._here = [
            _Loaded(place, one, self._members[place].weight, _types(one.taxonomy, self._taxonomy))
            for place, one in found
        ]

    def __reduce__(self) -> tuple[Any, ...]:
        """A detector travels to another process as its options; its members are made there."""
        return _remade, (self._options,)

    @cached_property
    def name(self) -> str:
        """`ensemble@`, the members that are here with their revisions, and a hash of the weights."""
        names = [one.detector.name.replace("@", "-") for one in self._here]
        return "ensemble@" + "+".join([*names, *self._combination.revision])

    @property
    def taxonomy(self) -> str:
        """Taxonomy of the spans' types."""
        return self._taxonomy

    @property
    def threshold(self) -> float:
        """Combined confidence from which a word is marked."""
        return self._threshold

    @cached_property
    def signature(self) -> str:
        """Name, how the members are put together, their settings as hashes, threshold and unit in one line."""
        return signature(
            detector=self.name,
            members=digest([settings_of(one.detector.signature) or "" for one in self._here])[:12],
            combined=self._combination.line,
            absent="+".join(self._absent) or None,
            missing=self._missing,
            taxonomy=self._taxonomy,
            threshold=self._threshold,
            unit="word",
        )

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        """Judge a batch: one prediction per sample, in order."""
        found = [one.detector.predict(samples) for one in self._here]
        for loaded, predictions in zip(self._here, found, strict=True):
            if [one.id for one in predictions] != [sample.id for sample in samples]:
                reason = f"{loaded.detector.name} did not give one prediction for each sample, in order"
                return [self._not_scored(sample, Status.FAILED, reason) for sample in samples]
        return [
            self._judged(sample, [predictions[place] for predictions in found]) for place, sample in enumerate(samples)
        ]

    def _load(self) -> list[tuple[int, Detector]]:
        """The members that are here, each at the threshold that its types are needed from."""
        found: list[tuple[int, Detector]] = []
        last: Exception | None = None
        for place, member in enumerate(self._members):
            try:
                one = made(member, threshold=self._combination.threshold_within(place, self._threshold))
            except (MissingExtraError, MissingWeightsError) as error:
                if self._missing == "refuse":
                    raise
                self._absent.append(member.detector)
                last = error
                continue
            self._combination.check(place, one)
            found.append((place, one))
        if not found:
            assert last is not None
            raise last
        return found

    def _judged(self, sample: Sample, predictions: Sequence[Prediction]) -> Prediction:
        heard, unheard = self._told_apart(predictions)
        if not heard or (unheard and self._missing == "refuse"):
            status = min((status for _, status, _ in unheard), key=_GRAVE.index)
            reason = "; ".join(f"{name}: {reason}" for name, _, reason in unheard)
            return self._not_scored(sample, status, reason)
        void = _VOID if self._combination.learned else ()
        notes = [note for one in heard for note in one.prediction.notes if not note.startswith(void)]
        notes += [f"ensemble:without {name} ({status})" for name, status, _ in unheard]
        notes += [f"ensemble:without {name} (not installed)" for name in self._absent]
        return self._scored(sample, heard, tuple(dict.fromkeys(notes)))

    def _told_apart(self, predictions: Sequence[Prediction]) -> tuple[list[_Heard], list[tuple[str, Status, str]]]:
        """Who can be counted with, and who cannot and why."""
        heard: list[_Heard] = []
        unheard: list[tuple[str, Status, str]] = []
        for loaded, prediction in zip(self._here, predictions, strict=True):
            if prediction.status is not Status.SCORED:
                unheard.append((loaded.detector.name, prediction.status, prediction.reason or ""))
            elif prediction.words is None and not self._combination.learned:
                unheard.append((loaded.detector.name, Status.FAILED, _NO_WORDS))
            else:
                heard.append(_Heard(loaded, prediction))
        return heard, unheard

    def _scored(self, sample: Sample, heard: Sequence[_Heard], notes: tuple[str, ...]) -> Prediction:
        tag, script = language_of(sample, heard[0].prediction)
        bounds = word_bounds(sample.response, tag)
        read = [read_over(sample, one.prediction, bounds) for one in heard]
        there = np.isin(np.arange(len(self._members)), [one.loaded.place for one in heard])
        given = np.stack([one.confidences for one in read], axis=1)
        inside = np.stack([one.marked for one in read], axis=1)
        scores = np.array([[float(one.prediction.score or 0.0) for one in heard]])
        confidences = self._combination.words(given, inside, there, tag, script)
        score = self._combination.score(scores, there, tag, script)
        if confidences is None or score is None:
            return self._not_scored(sample, Status.FAILED, "no member that has a weight in this script scored it")
        voters = [self._voter(one, column) for one, column in zip(heard, given.T, strict=True)]
        notes = (
            notes if self._combination.covers(tag, script) else tuple(dict.fromkeys((*notes, "calibration:default")))
        )
        return Prediction(
            id=sample.id,
            status=Status.SCORED,
            detector=self.name,
            score=score,
            spans=respanned(
                sample, bounds, confidences, self._threshold, sentence_of_each(sample.response, tag, bounds),
                Vote(bounds, voters),
            ),
            words=self._word_list(bounds, confidences, voters) if self._words else None,
            language=tag,
            notes=notes,
            signature=self.signature,
        )  # fmt: skip

    def _voter(self, one: _Heard, confidences: NDArray[np.float64]) -> Voter:
        prediction = one.prediction
        return Voter(prediction.spans or (), prediction.words, confidences, one.loaded.weight, one.loaded.types)

    def _word_list(
        self, bounds: NDArray[np.int32], confidences: NDArray[np.float64], voters: Sequence[Voter]
    ) -> tuple[Any, ...]:
        pointers = pointers_of(voters)
        places = [(start, end) for start, end in bounds.tolist()]
        return rewritten(bounds, confidences, self._threshold, lambda place: pointers.get(places[place], ()))

    def _not_scored(self, sample: Sample, status: Status, reason: str) -> Prediction:
        return Prediction(
            id=sample.id, status=status, detector=self.name, language=sample.language, reason=reason,
            signature=self.signature,
        )  # fmt: skip


def _combination(
    members: str | Sequence[str | Member] | None, stacking: str | None
) -> tuple[tuple[Member, ...], Combination]:
    if stacking is None:
        if members is None:
            raise UsageError("The ensemble has no members.", remedy="Name them as in ensemble:grounding+semantic.")
        found = read_members(members)
        return found, Mean(tuple(member.weight for member in found))
    stack = Stack(read_stacking(stacking), stacking)
    learned = tuple(one.member for one in stack.file.members)
    if members is not None and [one.detector for one in read_members(members)] != [one.detector for one in learned]:
        raise UsageError(
            f"The weights of {stacking} were learned for {'+'.join(one.detector for one in learned)}.",
            remedy="Leave the members out, or learn weights for these.",
        )
    return learned, stack


def _types(own: str, wanted: str) -> Mapping[str, str]:
    """The ensemble's type for each of a member's; none where no mapping leads from its taxonomy."""
    try:
        return taxonomy(own).to(wanted)
    except UsageError:
        return {}


def _remade(options: dict[str, Any]) -> Ensemble:
    return Ensemble(**options)
