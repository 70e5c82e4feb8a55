"""The grounding detector: a sample's way from text to prediction."""

from __future__ import annotations

from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from veriglot.detectors.base import Seen, WordDetector
from veriglot.detectors.calibration import ScriptCalibration as Calibration
from veriglot.detectors.grounding.features import FEATURES_VERSION, extract
from veriglot.detectors.grounding.lexicon import Lexicon
from veriglot.errors import WeightsError
from veriglot.hub.checkpoints import onnx_session
from veriglot.judging.language import evidence_notes
from veriglot.signatures import digest, file_sha256, signature

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.judging.language import ResolvedLanguage
    from veriglot.records import Sample

__all__ = ["OUTPUTS", "Grounding", "Manifest", "Model", "session_of"]


# Running the trained network with ONNX Runtime, on one thread, one response at a time.
#
# One at a time, unpadded: so a prediction depends on nothing but its sample, whatever the batch or the number of
# processes. Speed comes from processes, not from threads inside one.


OUTPUTS = 7  # unsupported, then the six FAVA types
_LONGEST = 1200  # words that the network sees at a time
_HALO = 60  # words of context on either side of a part, about three sentences


def session_of(path: Path) -> Any:
    """An ONNX Runtime session of a file of weights, on one thread.

    Raises:
        WeightsError: the file is missing or is no network.
    """
    try:
        return onnx_session(str(path))
    except Exception as error:  # ONNX Runtime's errors share no base
        raise WeightsError(
            f"The network {path} cannot be loaded: {error}.", remedy="Install Veriglot again, or train anew."
        ) from error


class Model:
    """The network.

    Args:
        path: its ONNX file: `features` (1, n, f) and `pool` (1, s, n) in, `logits` (1, n, 7) out.

    Raises:
        WeightsError: the file is missing or is not such a network.
    """

    def __init__(self, path: Path) -> None:
        self._session = session_of(path)

    def logits(self, features: NDArray[np.float32], sentence: NDArray[np.int64]) -> NDArray[np.float32]:
        """Logits of every word, shape (n, 7).

        Args:
            features: shape (n, f).
            sentence: the sentence of each word, counted from 0 without gaps, shape (n,).
        """
        words = len(features)
        if words <= _LONGEST:
            return self._run(features, sentence)
        parts = []
        for low in range(0, words, _LONGEST):
            high = min(low + _LONGEST, words)
            begin, end = max(0, low - _HALO), min(words, high + _HALO)
            part = self._run(features[begin:end], sentence[begin:end] - sentence[begin])
            parts.append(part[low - begin : high - begin])
        return np.concatenate(parts)

    def _run(self, features: NDArray[np.float32], sentence: NDArray[np.int64]) -> NDArray[np.float32]:
        counts = np.bincount(sentence)
        pool = np.zeros((1, len(counts), len(features)), np.float32)
        pool[0, sentence, np.arange(len(features))] = 1.0 / counts[sentence]
        logits: NDArray[np.float32] = self._session.run(None, {"features": features[None], "pool": pool})[0][0]
        return logits


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
        self._folder = Path(weights) if weights is not None else Path(str(files(__package__) / "weights"))
        self._manifest = check_weights(self._folder)
        super().__init__(self._manifest.threshold if threshold is None else threshold, words=words)

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

    def _see(self, sample: Sample, resolved: ResolvedLanguage) -> Seen | None:
        passages = [passage.text for passage in sample.evidence]
        extracted = extract(sample.response, passages, sample.question, resolved.tag, self._lexicon)
        if extracted is None:
            return None
        logits = self._model.logits(extracted.values, extracted.sentence)
        return Seen(extracted, logits, self._calibration, self._manifest.types, evidence_notes(sample, resolved))


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
