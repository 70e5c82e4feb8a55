"""The semantic detector: manifest and weights, the head on ONNX Runtime, and samples read by the encoder."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from veriglot.detectors.grounding.detector import (
    Model,
    ScriptCalibration,
    Seen,
    Weights,
    WordDetector,
    parts,
    sentence_pool,
    session_of,
)
from veriglot.detectors.grounding.document import Lexicon
from veriglot.detectors.semantic.features import READING_VERSION, Case, EncoderVectors, base_of, read_sample
from veriglot.encoders.base import load_encoder, strength_among
from veriglot.errors import UnknownNameError, WeightsError
from veriglot.hub import registry
from veriglot.judging.base import evidence_notes
from veriglot.records import Task
from veriglot.records.languages import get_language
from veriglot.signatures import digest, file_sha256, signature
from veriglot.text.identification import identify
from veriglot.text.unicode import script_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.detectors.semantic.features import Reading
    from veriglot.detectors.semantic.reader import Reader
    from veriglot.encoders.base import Encoder
    from veriglot.judging.base import ResolvedLanguage
    from veriglot.records import Sample

    Float32s = NDArray[np.float32]

__all__ = [
    "FILES",
    "READER",
    "READS_WITH",
    "Calibrations",
    "Head",
    "Manifest",
    "Semantic",
    "Together",
    "check_encoder",
    "check_weights",
    "joined",
    "packaged_folder",
    "read_too",
    "shared_folder",
    "shared_hash",
    "vectors_of",
    "words_network",
]


# The folder of weights of the semantic detector: what it holds, and whether that is whole.


FILES = ("head.onnx", "calibration.json")
READER = "reader.npz"  # only where `veriglot train reader` was run
READS_WITH = "e5-multilingual"
SHARED = ("network.onnx", "frequencies.npy", "vector_keys.npy", "vectors.npy")  # of the grounding detector


class Together(msgspec.Struct, frozen=True):
    """How head and reader are put together, where both have judged.

    Attributes:
        head, reader: what the logit of each is multiplied by before they are added.
        calibration: of the sum.
    """

    head: float
    reader: float
    calibration: ScriptCalibration


class Calibrations(msgspec.Struct, frozen=True):
    """A calibration for each relation of response and evidence: how sure the head is differs between them.

    `read_across` is for evidence in another language where the reader has judged too.
    """

    same: ScriptCalibration
    across: ScriptCalibration
    translation: ScriptCalibration
    read_across: Together | None = None


class Manifest(Weights, frozen=True, kw_only=True):
    """See `Weights`.

    Attributes:
        reading_version: the features that they were trained on.
        encoder: name of the encoder whose vectors they take.
        vectors: hash of that encoder's signature; empty where any encoder of the name will do.
        shared: hash of what is the grounding detector's: the lexicon that the features were taken with, and the network
            that has a say where response and evidence are in one language.
        reads_with: hash of the encoder's file that the reader's additions are for; empty where there is no reader.
        reads: BCP 47 tags of the languages that the reader has learned to read across.
    """

    kind = "semantic"

    reading_version: int
    encoder: str
    shared: str
    vectors: str = ""
    reads_with: str = ""
    reads: tuple[str, ...] = ()


def words_network() -> Model:
    """The grounding detector's network."""
    return Model(shared_folder() / "network.onnx")


def packaged_folder() -> Path:
    """Where the weights in the package lie."""
    return Path(str(files("veriglot.detectors.semantic") / "weights"))


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
    manifest = Manifest.read(folder)
    if manifest.reading_version != READING_VERSION or manifest.shared != shared_hash():
        raise WeightsError(
            f"The weights in {folder} are for other features than this version of Veriglot takes.",
            remedy="Train them anew with `veriglot train semantic`.",
        )
    manifest.check(folder, (*FILES, *([READER] if manifest.reads_with else [])))
    return manifest


def reading_encoder(folder: Path, manifest: Manifest) -> Path | None:
    """The file of the encoder that the reader reads with; None where the weights have no reader, or it is not here."""
    if not manifest.reads_with:
        return None
    try:
        path = registry.find(READS_WITH)
    except registry.MissingWeightsError:
        return None
    if file_sha256(path)[:16] != manifest.reads_with:
        raise WeightsError(
            f"The reader in {folder} was trained with another file than {path}.",
            remedy="Train it anew with `veriglot train reader`, or load the detector with reader=False.",
        )
    return path


def vectors_of(encoder: Encoder) -> str:
    """A hash of what makes an encoder's vectors: another file of the same name has another."""
    return digest([encoder.signature])[:16]


def check_encoder(folder: Path, manifest: Manifest, encoder: Encoder) -> None:
    """Another encoder's vectors would be read without an error, and wrongly."""
    if manifest.vectors and manifest.vectors != vectors_of(encoder):
        raise WeightsError(
            f"The weights in {folder} were trained on another encoder than {encoder.signature}.",
            remedy=f"Give the {manifest.encoder} of their training, or train anew with `veriglot train semantic`.",
        )


def shared_hash() -> str:
    """One hash of what is the grounding detector's."""
    return digest([file_sha256(shared_folder() / name) for name in SHARED])[:16]


# Running the trained head with ONNX Runtime, on one thread, one response at a time, in parts where it is long.


_LONGEST = 500  # words of a response that are held against the evidence at a time: bounds the memory
_SHORTEST = 40  # where the evidence takes very many slots: thousands of passages of a word or two
_CELLS = 1_000_000  # words times slots at a time, but for that


def inputs_of(reading: Reading, low: int = 0, high: int | None = None) -> dict[str, Float32s]:
    """The head's inputs for the words `low` to `high` of a response, each with a first axis of one."""
    features, end = reading.extract, len(reading.words) if high is None else high
    sentence = features.sentence[low:end] - features.sentence[low]
    matched = np.zeros((1, end - low, len(reading.slots)), np.float32)
    inside = (reading.ours >= low) & (reading.ours < end)
    np.maximum.at(matched[0], (reading.ours[inside] - low, reading.others[inside]), reading.value[inside])
    question, asked = reading.question, np.ones((1, max(1, len(reading.question))), np.float32)
    if not len(question):
        question, asked = np.zeros((1, reading.words.shape[1]), np.float32), np.zeros((1, 1), np.float32)
    return {
        "features": features.values[None, low:end],
        "columns": reading.columns[None, low:end],
        "words": reading.words[None, low:end],
        "evidence": reading.evidence[None],
        "matched": matched,
        "filled": (reading.slots >= 0).astype(np.float32)[None],
        "pool": sentence_pool(sentence),
        "question": question[None].astype(np.float32),
        "asked": asked,
    }


def words_at_once(slots: int) -> int:
    """How many words of a response are held against so many slots of evidence."""
    return max(_SHORTEST, min(_LONGEST, _CELLS // slots))


class Head:
    """The head.

    Args:
        path: its ONNX file: the arrays of `inputs_of` in; `logits` (1, n, 7) and `place` (1, n), the slot that supports
            each word best, out.

    Raises:
        WeightsError: the file is missing or is not such a network.
    """

    def __init__(self, path: Path) -> None:
        self._session = session_of(path)

    def judged(self, reading: Reading) -> tuple[Float32s, NDArray[np.int64]]:
        """Logits of every word, shape (n, 7), and the evidence word that supports it best, or -1, shape (n,)."""
        logits, places = [], []
        for begin, end, low, high in parts(len(reading.words), words_at_once(len(reading.slots))):
            outputs = self._session.run(None, inputs_of(reading, begin, end))
            logits.append(outputs[0][0, low - begin : high - begin])
            places.append(outputs[1][0, low - begin : high - begin])
        return np.concatenate(logits), reading.slots[np.concatenate(places)]


UNSURE = "evidence:language_unsure"
NO_READER = "reader:absent"


class Semantic(WordDetector):
    """Marks the words of a response that its evidence does not support, by form and by meaning.

    Evidence may be in another language; a sample whose task is `translation` is held against its source. See
    `docs/semantic.md`. Where it is in another, and the encoder `e5-multilingual` is here too, question, response and
    evidence are also read together by that (`reader`); where it is not, a prediction's notes say `reader:absent`.

    Args:
        threshold: confidence from which a word is marked, 0 to 1; None takes the weights' own.
        words: whether predictions carry every word.
        weights: a folder of weights made by `veriglot train semantic`; None takes those in the package.
        encoder: an encoder to take instead of loading the one that the weights name.
        reader: whether to read with `e5-multilingual` across languages, where it is here.

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
        reader: bool = True,
    ) -> None:
        self._wants_reader = reader
        self._folder = packaged_folder() if weights is None else Path(weights)
        self._manifest = check_weights(self._folder)
        super().__init__(self._manifest.threshold if threshold is None else threshold, words=words)
        self._encoder = load_encoder(self._manifest.encoder) if encoder is None else encoder
        check_encoder(self._folder, self._manifest, self._encoder)
        self._vectors = EncoderVectors(self._encoder)
        self._reads_with = reading_encoder(self._folder, self._manifest) if reader else None

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
            reader=self._manifest.sha256[READER][:12] if self._reads_with else None,
            threshold=self._threshold,
            unit="word",
        )

    @cached_property
    def _head(self) -> Head:
        return Head(self._folder / "head.onnx")

    @cached_property
    def _reader(self) -> Reader | None:
        if self._reads_with is None:
            return None
        from veriglot.detectors.semantic.reader import Reader

        return Reader(self._folder / READER, self._reads_with)

    @cached_property
    def _by_words(self) -> Model:
        return words_network()

    @cached_property
    def _lexicon(self) -> Lexicon:
        return Lexicon.load(shared_folder())

    @cached_property
    def _calibrations(self) -> Calibrations:
        calibrations = msgspec.json.decode((self._folder / "calibration.json").read_bytes(), type=Calibrations)
        if self._manifest.reads_with and calibrations.read_across is None:
            raise WeightsError(f"{self._folder} has a reader but does not say how it counts.", remedy="Train it anew.")
        return calibrations

    def _see(self, sample: Sample, language: ResolvedLanguage) -> Seen | None:
        example, notes = self._case(sample, language)
        reading = read_sample(example, self._lexicon, self._vectors)
        if reading is None:
            return None
        logits, places = self._head.judged(reading)
        if not example.across and not example.translation:
            logits = joined(logits, self._by_words.logits(reading.extract.values, reading.extract.sentence))
        calibrations = self._calibrations
        calibration = calibrations.across if example.across else calibrations.same
        if example.translation:
            calibration = calibrations.translation
        elif example.across and self._reader is not None and calibrations.read_across is not None:
            together = calibrations.read_across
            logits = read_too(together.head, together.reader, logits, *self._reader.logits(example, reading))
            calibration = together.calibration
        return Seen(reading.extract, logits, calibration, self._manifest.types, notes, places)

    def knows(self, sample: Sample, language: ResolvedLanguage) -> bool:
        """Whether the encoder was measured to be good in the language of a response and in that of its evidence.

        Across languages it will do as well that the reader has learned both.
        """
        evidence_language, _ = _evidence_language(sample, language.tag)
        return self._at_home(sample, language.tag, evidence_language)

    def in_one_language(self, sample: Sample, language: ResolvedLanguage) -> bool:
        """Whether all evidence, as far as it can be told, is in the response's language; never so for translations."""
        if sample.task is Task.TRANSLATION or evidence_notes(sample, language):
            return False
        given = {_tag(passage.language) for passage in sample.evidence if passage.language is not None}
        evidence_language, _ = _evidence_language(sample, language.tag)
        return {base_of(tag) for tag in (*given, evidence_language)} == {base_of(language.tag)}

    def _at_home(self, sample: Sample, ours: str, others: str) -> bool:
        if all(self._strong(ours, others)):
            return True
        if self._reads_with is None or base_of(ours) == base_of(others) or sample.task is Task.TRANSLATION:
            return False
        return all(strength_among(self._manifest.reads, tag) == "measured" for tag in (ours, others))

    def _strong(self, *tags: str) -> list[bool]:
        return [self._encoder.strength(tag) == "measured" for tag in tags]

    def _case(self, sample: Sample, language: ResolvedLanguage) -> tuple[Case, tuple[str, ...]]:
        notes = evidence_notes(sample, language)
        evidence_language, identified = _evidence_language(sample, language.tag)
        strong = self._strong(language.tag, evidence_language)
        if identified:
            notes = (*notes, identified)
        if not self._at_home(sample, language.tag, evidence_language):
            notes = (*notes, "encoder:weak")
        example = Case(
            response=sample.response,
            passages=[passage.text for passage in sample.evidence],
            question=sample.question,
            language=language.tag,
            evidence_language=evidence_language,
            translation=sample.task is Task.TRANSLATION,
            strong=(strong[0], strong[1]),
        )
        lacking = self._wants_reader and self._manifest.reads_with and self._reads_with is None
        if example.across and not example.translation and lacking:
            notes = (*notes, NO_READER)
        return example, notes


def _evidence_language(sample: Sample, language: str) -> tuple[str, str | None]:
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
    detected = identify(text)
    if detected is None:
        return language, None
    ours = detected.tag.split("-")[0] == language.split("-")[0]
    same_script = script_of(text) == script_of(sample.response)
    if detected.confidence < (_SURE_OF_SHORT if len(text) < _SHORT and same_script else _SURE):
        return language, None if ours else UNSURE
    return detected.tag, None if ours else "evidence:language_from_text"


_SHORT = 80  # code points: a name or two can make such a text look like another language's
_SURE_OF_SHORT = 0.9
_SURE = 0.6  # below it evidence that says nothing of its language counts as being in the response's


def _tag(given: str) -> str:
    """A language's own tag for any of its names; what the language table does not hold is kept as it is."""
    try:
        return get_language(given).tag
    except UnknownNameError:
        return given


def joined(by_meaning: Float32s, by_words: Float32s) -> Float32s:
    """What the head and the grounding detector's network say together of a response in its evidence's language.

    Two networks that were trained apart err apart: their mean is better than either (`docs/semantic.md`).
    """
    mean: Float32s = (by_meaning + by_words) * np.float32(0.5)
    return mean


def read_too(head: float, reader: float, by_head: Float32s, by_reader: Float32s, seen: NDArray[np.bool_]) -> Float32s:
    """The head's logits, shape (n, 7), with the reader's added to the first column, of the words that it saw.

    Args:
        head, reader: what each counts for.
        by_head: shape (n, 7).
        by_reader: shape (n,).
        seen: which words the reader saw, shape (n,).
    """
    logits = by_head.copy()
    logits[:, 0] = head * by_head[:, 0] + reader * np.where(seen, by_reader, 0.0)
    return logits
