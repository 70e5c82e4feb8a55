"""The grounding detector: a sample's way from text to prediction."""

from __future__ import annotations

from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.detectors.grounding.calibration import Calibration
from veriglot.detectors.grounding.features import FEATURES_VERSION, extract
from veriglot.detectors.grounding.inference import Model
from veriglot.detectors.grounding.language import evidence_notes
from veriglot.detectors.grounding.lexicon import Lexicon
from veriglot.detectors.word_detector import Seen, WordDetector
from veriglot.errors import WeightsError
from veriglot.provenance import digest, file_sha256, signature

if TYPE_CHECKING:
    from veriglot.detectors.grounding.language import Spoken
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


class Grounding(WordDetector):
    """Marks the words of a response that its evidence does not support. See `docs/grounding.md`.

    Args:
        threshold: confidence from which a word is marked, 0 to 1; None takes the weights' own.
        words: whether predictions carry every word.
        weights: a folder of weights made by `veriglot train grounding`; None takes those in the package.

    Raises:
        WeightsError: weights are missing, damaged, or made for other features.
    """

    def __init__(self, *, threshold: float | None = None, words: bool = False, weights: str | None = None) -> None:
        self._options: dict[str, Any] = {"threshold": threshold, "words": words, "weights": weights}
        self._folder = Path(weights) if weights is not None else Path(str(files(__package__) / "weights"))
        self._manifest = check_weights(self._folder)
        super().__init__(self._manifest.threshold if threshold is None else threshold, words=words)

    def __reduce__(self) -> tuple[Any, ...]:
        """A detector travels to another process as its options; the weights are loaded there."""
        return _remade, (self._options,)

    @property
    def name(self) -> str:
        """Name and revision of the weights."""
        return f"grounding@{self._manifest.revision}"

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

    def _see(self, sample: Sample, spoken: Spoken) -> Seen | None:
        passages = [passage.text for passage in sample.evidence]
        found = extract(sample.response, passages, sample.question, spoken.tag, self._lexicon)
        if found is None:
            return None
        logits = self._model.logits(found.values, found.sentence)
        return Seen(found, logits, self._calibration, self._manifest.types, evidence_notes(sample, spoken))


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
