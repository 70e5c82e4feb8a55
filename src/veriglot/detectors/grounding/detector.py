"""The grounding detector: a sample's way from text to prediction."""

from __future__ import annotations

from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from veriglot.detectors.grounding.calibration import Calibration, sigmoid
from veriglot.detectors.grounding.features import FEATURES_VERSION, Extract, extract
from veriglot.detectors.grounding.inference import Model
from veriglot.detectors.grounding.language import Spoken, evidence_notes, spoken_in
from veriglot.detectors.grounding.lexicon import Lexicon
from veriglot.detectors.grounding.marking import DIGITS, mark, word_list
from veriglot.errors import WeightsError
from veriglot.provenance import digest, file_sha256, signature
from veriglot.records import Prediction, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.records import Sample

__all__ = ["Grounding", "Manifest", "check_weights"]

FILES = ("network.onnx", "frequencies.npy", "vector_keys.npy", "vectors.npy", "calibration.json")


class Manifest(msgspec.Struct, frozen=True):
    """What a folder of weights says of itself (`weights.json`).

    Attributes:
        revision: version of the weights.
        features_version: the features that they were trained on.
        features: names of the features, in order; the word vector follows.
        types: the span types, in the order of the network's outputs.
        threshold: confidence from which a word is marked by default.
        sha256: hash of each file.
    """

    revision: str
    features_version: int
    features: tuple[str, ...]
    types: tuple[str, ...]
    threshold: float
    sha256: dict[str, str]


class Grounding:
    """Marks the words of a response that its evidence does not support. See `docs/grounding.md`.

    Args:
        threshold: confidence from which a word is marked, 0 to 1; None takes the weights' own.
        words: whether predictions carry every word.
        weights: a folder of weights made by `veriglot train grounding`; None takes those in the package.

    Raises:
        WeightsError: weights are missing, damaged, or made for other features.
    """

    taxonomy = "fava"

    def __init__(self, *, threshold: float | None = None, words: bool = False, weights: str | None = None) -> None:
        self._options: dict[str, Any] = {"threshold": threshold, "words": words, "weights": weights}
        self._folder = Path(weights) if weights is not None else Path(str(files(__package__) / "weights"))
        self._manifest = check_weights(self._folder)
        self._threshold = self._manifest.threshold if threshold is None else threshold
        self._words = words

    def __reduce__(self) -> tuple[Any, ...]:
        """A detector travels to another process as its options; the weights are loaded there."""
        return _remade, (self._options,)

    @property
    def name(self) -> str:
        """Name and revision of the weights."""
        return f"grounding@{self._manifest.revision}"

    @property
    def threshold(self) -> float:
        """Confidence from which a word is marked."""
        return self._threshold

    @cached_property
    def signature(self) -> str:
        """Name, weights, threshold and unit in one line."""
        hashes = (self._manifest.sha256[name] for name in FILES)
        return signature(
            detector=self.name,
            weights=digest(hashes)[:12],
            features=self._manifest.features_version,
            threshold=self._threshold,
            unit="word",
        )

    @cached_property
    def _model(self) -> Model:
        return Model(self._folder / "network.onnx")

    @cached_property
    def _lexicon(self) -> Lexicon:
        return Lexicon.load(self._folder)

    @cached_property
    def _calibration(self) -> Calibration:
        return msgspec.json.decode((self._folder / "calibration.json").read_bytes(), type=Calibration)

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        """Judge a batch: one prediction per sample, in order. No sample makes it raise."""
        return [self._judge(sample) for sample in samples]

    def _judge(self, sample: Sample) -> Prediction:
        try:
            return self._judged(sample)
        except Exception as error:  # one sample's failure must not lose the batch; it is said, not hidden
            return self._not_scored(sample, Status.FAILED, f"{type(error).__name__}: {error}")

    def _not_scored(self, sample: Sample, status: Status, reason: str) -> Prediction:
        return Prediction(
            id=sample.id, status=status, detector=self.name, reason=reason, signature=self.signature,
            language=sample.language,
        )  # fmt: skip

    def _judged(self, sample: Sample) -> Prediction:
        if not sample.response.strip():
            return self._not_scored(sample, Status.FAILED, "the response is empty")
        if not _is_unicode(sample.response):
            return self._not_scored(sample, Status.FAILED, "the response holds half of a surrogate pair")
        if not any(passage.text.strip() for passage in sample.evidence):
            return self._not_scored(sample, Status.NO_EVIDENCE, "there is no evidence to hold the response against")
        spoken = spoken_in(sample)
        if spoken is None:
            reason = "the language of the response was not recognised; give it as `language`"
            return self._not_scored(sample, Status.UNSUPPORTED_LANGUAGE, reason)
        passages = [passage.text for passage in sample.evidence]
        found = extract(sample.response, passages, sample.question, spoken.tag, self._lexicon)
        if found is None:
            status, what = self._wordless(sample)
            return self._not_scored(sample, status, what)
        if found.markup.all():
            return self._not_scored(sample, Status.FAILED, "the response holds nothing but control tokens")
        return self._scored(sample, found, spoken)

    def _wordless(self, sample: Sample) -> tuple[Status, str]:
        if any(any(c.isalnum() for c in passage.text) for passage in sample.evidence):
            return Status.FAILED, "the response holds no word, only marks or symbols"
        return Status.NO_EVIDENCE, "the evidence holds no word, only marks or symbols"

    def _scored(self, sample: Sample, found: Extract, spoken: Spoken) -> Prediction:
        logits = self._model.logits(found.values, found.sentence)
        calibration = self._calibration
        confidences = calibration.confidences(logits[:, 0], spoken.tag, spoken.script)
        confidences[found.markup] = 0.0
        confidences = confidences.round(DIGITS)  # first, so that what is shown and what is marked agree
        types = sigmoid(logits[:, 1:].astype(np.float64))
        notes = (*spoken.notes, *evidence_notes(sample, spoken))
        if not calibration.covers(spoken.tag, spoken.script):
            notes = (*notes, "calibration:default")
        threshold = self._threshold
        return Prediction(
            id=sample.id,
            status=Status.SCORED,
            detector=self.name,
            score=round(calibration.score(logits[~found.markup, 0]), DIGITS),
            spans=mark(sample, found, confidences, types, self._manifest.types, threshold),
            words=word_list(sample, found, confidences, threshold) if self._words else None,
            language=spoken.tag,
            notes=notes,
            signature=self.signature,
        )


def _is_unicode(text: str) -> bool:
    """Whether a text can be written; Python lets half of a surrogate pair stand in one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _remade(options: dict[str, Any]) -> Grounding:
    return Grounding(**options)


def _manifest(folder: Path) -> Manifest:
    path = folder / "weights.json"
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError as error:
        raise WeightsError(
            f"There are no grounding weights in {folder}.",
            remedy="Give a folder that `veriglot train grounding` made, or install Veriglot again.",
        ) from error
    except msgspec.MsgspecError as error:
        raise WeightsError(f"{path} is not a manifest of grounding weights: {error}.") from error
    if manifest.features_version != FEATURES_VERSION:
        raise WeightsError(
            f"The weights in {folder} are for features {manifest.features_version}, not for {FEATURES_VERSION}.",
            remedy="Train them anew with `veriglot train grounding`.",
        )
    return manifest


def check_weights(folder: Path) -> Manifest:
    """Compare every file of a folder of weights with its hash, some 20 ms, against results that are wrong in silence.

    Returns:
        What the folder says of itself.

    Raises:
        WeightsError: a file is missing or damaged, or the weights are for other features.
    """
    manifest = _manifest(folder)
    for name, expected in manifest.sha256.items():
        path = folder / name
        if not path.is_file() or file_sha256(path) != expected:
            raise WeightsError(f"{path} is missing or damaged.", remedy="Install Veriglot again, or train anew.")
    return manifest
