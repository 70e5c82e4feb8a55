"""The detector `auto`: `semantic` where its encoder is here and good in the language, `grounding` for the rest."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.detectors.grounding import Grounding
from veriglot.detectors.grounding.language import spoken_in
from veriglot.errors import MissingExtraError
from veriglot.provenance import digest, signature
from veriglot.records import Status
from veriglot.weights import MissingWeightsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.detectors.semantic import Semantic
    from veriglot.detectors.word_detector import WordDetector
    from veriglot.encoders import Encoder
    from veriglot.records import Prediction, Sample

__all__ = ["Auto"]

NO_ENCODER = "auto:no encoder"
WEAK = "auto:weak language"
UNDECIDED = "auto:no choice"


class Auto:
    """Chooses between two detectors, sample by sample. Fetches nothing.

    A sample is `semantic`'s where the packages and the model of its encoder are here, and the encoder was measured to
    be good in the language of the response and in that of the evidence. A prediction names the detector that made it
    as `detector`, and this one in its signature; it carries the note `auto:no encoder`, `auto:weak language` or, where
    asking about the languages failed, `auto:no choice` and why, where `grounding` had to step in.

    Args:
        threshold: confidence from which a word is marked, 0 to 1, by either detector; None takes that of the weights
            of `semantic`, or of `grounding` where that is alone.
        words: whether predictions carry every word.
        semantic_weights, grounding_weights: folders of weights; None takes those in the package.
        encoder: an encoder to take instead of loading the one that the weights of `semantic` name.

    Raises:
        WeightsError: weights or the encoder's model are damaged, or made for other features. That the encoder's model
            is missing is no error.
    """

    taxonomy = Grounding.taxonomy

    def __init__(
        self,
        *,
        threshold: float | None = None,
        words: bool = False,
        semantic_weights: str | None = None,
        grounding_weights: str | None = None,
        encoder: Encoder | None = None,
    ) -> None:
        self._options: dict[str, Any] = {
            "threshold": threshold, "words": words, "semantic_weights": semantic_weights,
            "grounding_weights": grounding_weights, "encoder": encoder,
        }  # fmt: skip
        self._semantic = _semantic(threshold=threshold, words=words, weights=semantic_weights, encoder=encoder)
        if threshold is None and self._semantic is not None:
            threshold = self._semantic.threshold
        self._grounding = Grounding(threshold=threshold, words=words, weights=grounding_weights)

    def __reduce__(self) -> tuple[Any, ...]:
        """A detector travels to another process as its options; what there is to choose from is found out there."""
        return _remade, (self._options,)

    @cached_property
    def name(self) -> str:
        """`auto@`, and the names and revisions of the detectors that it has to choose from."""
        return "auto@" + "+".join(detector.name.replace("@", "-") for detector in self._detectors)

    @property
    def threshold(self) -> float:
        """Confidence from which a word is marked, by either detector."""
        return self._grounding.threshold

    @cached_property
    def signature(self) -> str:
        """Name, the signatures of both detectors as hashes, threshold and unit in one line."""
        made = {detector.name.partition("@")[0]: digest([detector.signature])[:12] for detector in self._detectors}
        return signature(chooser=self.name, **made, threshold=self.threshold, unit="word")

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        """Judge a batch: one prediction per sample, in order. No sample makes it raise."""
        return [self._judged(sample) for sample in samples]

    @property
    def _detectors(self) -> list[WordDetector]:
        return [self._grounding] if self._semantic is None else [self._semantic, self._grounding]

    def _judged(self, sample: Sample) -> Prediction:
        detector, note = self._choice(sample)
        (found,) = detector.predict([sample])
        notes = (*found.notes, note) if note and found.status is Status.SCORED else found.notes
        return msgspec.structs.replace(found, notes=notes, signature=self.signature)

    def _choice(self, sample: Sample) -> tuple[WordDetector, str | None]:
        """Who is to judge a sample, and the note that goes with it."""
        if self._semantic is None:
            return self._grounding, NO_ENCODER
        try:
            spoken = spoken_in(sample)
            known = spoken is not None and self._semantic.knows(sample, spoken)
        except Exception as error:  # one sample's failure must not lose the batch; it is said, not hidden
            return self._grounding, f"{UNDECIDED} ({type(error).__name__}: {error})"
        return (self._semantic, None) if known else (self._grounding, WEAK)


def _remade(options: dict[str, Any]) -> Auto:
    return Auto(**options)


def _semantic(**options: Any) -> Semantic | None:
    """The semantic detector; None where the packages or the model of its encoder are not here."""
    from veriglot.detectors.table import DETECTORS

    try:
        found: Semantic = DETECTORS.load("semantic")(**options)
    except (MissingExtraError, MissingWeightsError):
        return None
    return found
