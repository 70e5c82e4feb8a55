"""The semantic detector: the grounding detector's view of a response, and what its words and sentences mean."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from veriglot.detectors.grounding.calibration import Calibration
from veriglot.detectors.grounding.inference import Model
from veriglot.detectors.grounding.language import evidence_notes
from veriglot.detectors.grounding.lexicon import Lexicon
from veriglot.detectors.semantic.inference import Head
from veriglot.detectors.semantic.reading import READING_VERSION, Held, read_sample
from veriglot.detectors.semantic.vectors import EncoderVectors
from veriglot.detectors.word_detector import Seen, WordDetector
from veriglot.encoders import load_encoder
from veriglot.errors import UnknownNameError, WeightsError
from veriglot.provenance import digest, file_sha256, signature
from veriglot.records import Task
from veriglot.records.languages import language
from veriglot.text import identify, script_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.detectors.grounding.language import Spoken
    from veriglot.encoders import Encoder
    from veriglot.records import Sample

__all__ = [
    "FILES",
    "SHARED",
    "UNSURE",
    "Calibrations",
    "Manifest",
    "Semantic",
    "check_weights",
    "joined",
    "shared_folder",
    "shared_hash",
    "vectors_of",
    "words_network",
]

UNSURE = "evidence:language_unsure"
FILES = ("head.onnx", "calibration.json")
SHARED = ("network.onnx", "frequencies.npy", "vector_keys.npy", "vectors.npy")  # of the grounding detector


class Calibrations(msgspec.Struct, frozen=True):
    """A calibration for each relation of response and evidence: how sure the head is differs between them."""

    same: Calibration
    across: Calibration
    translation: Calibration


class Manifest(msgspec.Struct, frozen=True):
    """What a folder of weights says of itself (`weights.json`).

    Attributes:
        revision: version of the weights.
        reading_version: the features that they were trained on.
        encoder: name of the encoder whose vectors they take.
        vectors: hash of that encoder's signature; empty where any encoder of the name will do.
        shared: hash of what is the grounding detector's: the lexicon that the features were taken with, and the network
            that has a say where response and evidence are in one language.
        types: the span types, in the order of the head's outputs.
        threshold: confidence from which a word is marked by default.
        sha256: hash of each file.
    """

    revision: str
    reading_version: int
    encoder: str
    shared: str
    types: tuple[str, ...]
    threshold: float
    sha256: dict[str, str]
    vectors: str = ""


class Semantic(WordDetector):
    """Marks the words of a response that its evidence does not support, by form and by meaning.

    Evidence may be in another language; a sample whose task is `translation` is held against its source. See
    `docs/semantic.md`.

    Args:
        threshold: confidence from which a word is marked, 0 to 1; None takes the weights' own.
        words: whether predictions carry every word.
        weights: a folder of weights made by `veriglot train semantic`; None takes those in the package.
        encoder: an encoder to take instead of loading the one that the weights name.

    Raises:
        MissingExtraError: the packages of the encoder are not installed.
        WeightsError: the encoder's model is not here (the remedy says what to type), or weights are missing, damaged,
            or made for other features or for another encoder.
    """

    def __init__(
        self,
        *,
        threshold: float | None = None,
        words: bool = False,
        weights: str | None = None,
        encoder: Encoder | None = None,
    ) -> None:
        self._options: dict[str, Any] = {
            "threshold": threshold, "words": words, "weights": weights, "encoder": encoder
        }  # fmt: skip
        self._folder = Path(weights) if weights is not None else Path(str(files(__package__) / "weights"))
        self._manifest = check_weights(self._folder)
        super().__init__(self._manifest.threshold if threshold is None else threshold, words=words)
        self._encoder = load_encoder(self._manifest.encoder) if encoder is None else encoder
        _check_encoder(self._folder, self._manifest, self._encoder)
        self._vectors = EncoderVectors(self._encoder)

    def __reduce__(self) -> tuple[Any, ...]:
        """A detector travels to another process as its options; weights and encoder are loaded there."""
        return _remade, (self._options,)

    @property
    def name(self) -> str:
        """Name and revision of the weights."""
        return f"semantic@{self._manifest.revision}"

    @cached_property
    def signature(self) -> str:
        """Name, weights, encoder, threshold and unit in one line."""
        return signature(
            detector=self.name,
            weights=digest([*(self._manifest.sha256[name] for name in FILES), self._manifest.shared])[:12],
            reading=self._manifest.reading_version,
            encoder=digest([self._encoder.signature])[:12],
            threshold=self._threshold,
            unit="word",
        )

    @cached_property
    def _head(self) -> Head:
        return Head(self._folder / "head.onnx")

    @cached_property
    def _by_words(self) -> Model:
        return words_network()

    @cached_property
    def _lexicon(self) -> Lexicon:
        return Lexicon.load(shared_folder())

    @cached_property
    def _calibrations(self) -> Calibrations:
        return msgspec.json.decode((self._folder / "calibration.json").read_bytes(), type=Calibrations)

    def _see(self, sample: Sample, spoken: Spoken) -> Seen | None:
        held, notes = self._held(sample, spoken)
        reading = read_sample(held, self._lexicon, self._vectors)
        if reading is None:
            return None
        logits, places = self._head.judged(reading)
        if not held.across and not held.translation:
            logits = joined(logits, self._by_words.logits(reading.extract.values, reading.extract.sentence))
        calibrations = self._calibrations
        calibration = calibrations.across if held.across else calibrations.same
        if held.translation:
            calibration = calibrations.translation
        return Seen(reading.extract, logits, calibration, self._manifest.types, notes, places)

    def knows(self, sample: Sample, spoken: Spoken) -> bool:
        """Whether the encoder was measured to be good in the language of a response and in that of its evidence."""
        theirs, _ = _evidence_language(sample, spoken.tag)
        return all(self._strong(spoken.tag, theirs))

    def _strong(self, *tags: str) -> list[bool]:
        return [self._encoder.strength(tag) == "measured" for tag in tags]

    def _held(self, sample: Sample, spoken: Spoken) -> tuple[Held, tuple[str, ...]]:
        notes = evidence_notes(sample, spoken)
        theirs, found = _evidence_language(sample, spoken.tag)
        strong = self._strong(spoken.tag, theirs)
        if found:
            notes = (*notes, found)
        if not all(strong):
            notes = (*notes, "encoder:weak")
        return Held(
            response=sample.response,
            passages=[passage.text for passage in sample.evidence],
            question=sample.question,
            language=spoken.tag,
            evidence_language=theirs,
            translation=sample.task is Task.TRANSLATION,
            strong=(strong[0], strong[1]),
        ), notes


def _evidence_language(sample: Sample, spoken: str) -> tuple[str, str | None]:
    """The language of most of the evidence: as given, or told from its text, or else the response's; and a note.

    The note says so where the text's own language was taken, or was told but not believed.
    """
    sizes: Counter[str] = Counter()
    for passage in sample.evidence:
        if passage.language is not None:
            sizes[_tag(passage.language)] += len(passage.text)
    if sizes:
        return sizes.most_common(1)[0][0], None
    text = " ".join(passage.text for passage in sample.evidence if passage.text.strip())
    told = identify(text)
    if told is None:
        return spoken, None
    ours = told.tag.split("-")[0] == spoken.split("-")[0]
    same_script = script_of(text) == script_of(sample.response)
    if told.confidence < (_SURE_OF_SHORT if len(text) < _SHORT and same_script else _SURE):
        return spoken, None if ours else UNSURE
    return told.tag, None if ours else "evidence:language_from_text"


_SHORT = 80  # code points: a name or two can make such a text look like another language's
_SURE_OF_SHORT = 0.9
_SURE = 0.6  # below it evidence that says nothing of its language counts as being in the response's


def _tag(given: str) -> str:
    """A language's own tag for any of its names; what the language table does not hold is kept as it is."""
    try:
        return language(given).tag
    except UnknownNameError:
        return given


def _remade(options: dict[str, Any]) -> Semantic:
    return Semantic(**options)


def joined(by_meaning: NDArray[np.float32], by_words: NDArray[np.float32]) -> NDArray[np.float32]:
    """What the head and the grounding detector's network say together of a response in its evidence's language.

    Two networks that were trained apart err apart: their mean is better than either (`docs/semantic.md`).
    """
    mean: NDArray[np.float32] = (by_meaning + by_words) * np.float32(0.5)
    return mean


def words_network() -> Model:
    """The grounding detector's network."""
    return Model(shared_folder() / "network.onnx")


def shared_folder() -> Path:
    """Where the grounding detector's weights lie."""
    return Path(str(files("veriglot.detectors.grounding") / "weights"))


def check_weights(folder: Path) -> Manifest:
    """Compare every file of a folder of weights, and the lexicon beside them, with its hash.

    Returns:
        What the folder says of itself.

    Raises:
        WeightsError: a file is missing or damaged, or the weights are for other features or another lexicon.
    """
    path = folder / "weights.json"
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError as error:
        raise WeightsError(
            f"There are no semantic weights in {folder}.",
            remedy="Give a folder that `veriglot train semantic` made, or install Veriglot again.",
        ) from error
    except msgspec.MsgspecError as error:
        raise WeightsError(f"{path} is not a manifest of semantic weights: {error}.") from error
    if manifest.reading_version != READING_VERSION or manifest.shared != shared_hash():
        raise WeightsError(
            f"The weights in {folder} are for other features than this version of Veriglot takes.",
            remedy="Train them anew with `veriglot train semantic`.",
        )
    for name in FILES:
        file = folder / name
        if not file.is_file() or file_sha256(file) != manifest.sha256.get(name):
            raise WeightsError(f"{file} is missing or damaged.", remedy="Install Veriglot again, or train anew.")
    return manifest


def vectors_of(encoder: Encoder) -> str:
    """A hash of what makes an encoder's vectors: another file of the same name has another."""
    return digest([encoder.signature])[:16]


def _check_encoder(folder: Path, manifest: Manifest, encoder: Encoder) -> None:
    """Another encoder's vectors would be read without an error, and wrongly."""
    if manifest.vectors and manifest.vectors != vectors_of(encoder):
        raise WeightsError(
            f"The weights in {folder} were trained on another encoder than {encoder.signature}.",
            remedy=f"Give the {manifest.encoder} of their training, or train anew with `veriglot train semantic`.",
        )


def shared_hash() -> str:
    """One hash of what is the grounding detector's."""
    return digest([file_sha256(shared_folder() / name) for name in SHARED])[:16]
