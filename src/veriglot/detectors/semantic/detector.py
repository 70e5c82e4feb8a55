"""The semantic detector: the grounding detector's view of a response, and what its words and sentences mean."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from veriglot.detectors.grounding.language import evidence_notes
from veriglot.detectors.grounding.lexicon import Lexicon
from veriglot.detectors.semantic.folder import (
    FILES,
    READER,
    Calibrations,
    check_encoder,
    check_weights,
    packaged_folder,
    reading_encoder,
    shared_folder,
    words_network,
)
from veriglot.detectors.semantic.inference import Head
from veriglot.detectors.semantic.reading import Held, base_of, read_sample
from veriglot.detectors.semantic.vectors import EncoderVectors
from veriglot.detectors.word_detector import Seen, WordDetector
from veriglot.encoders import load_encoder
from veriglot.encoders.quality import strength_among
from veriglot.errors import UnknownNameError, WeightsError
from veriglot.provenance import digest, signature
from veriglot.records import Task
from veriglot.records.languages import language
from veriglot.text import identify, script_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.detectors.grounding.inference import Model
    from veriglot.detectors.grounding.language import Spoken
    from veriglot.detectors.semantic.reader import Reader
    from veriglot.encoders import Encoder
    from veriglot.records import Sample

__all__ = ["NO_READER", "UNSURE", "Semantic", "joined", "read_too"]

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
        self._options: dict[str, Any] = {
            "threshold": threshold, "words": words, "weights": weights, "encoder": encoder, "reader": reader
        }  # fmt: skip
        self._folder = packaged_folder() if weights is None else Path(weights)
        self._manifest = check_weights(self._folder)
        super().__init__(self._manifest.threshold if threshold is None else threshold, words=words)
        self._encoder = load_encoder(self._manifest.encoder) if encoder is None else encoder
        check_encoder(self._folder, self._manifest, self._encoder)
        self._vectors = EncoderVectors(self._encoder)
        self._reads_with = reading_encoder(self._folder, self._manifest) if reader else None

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
        found = msgspec.json.decode((self._folder / "calibration.json").read_bytes(), type=Calibrations)
        if self._manifest.reads_with and found.read_across is None:
            raise WeightsError(f"{self._folder} has a reader but does not say how it counts.", remedy="Train it anew.")
        return found

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
        elif held.across and self._reader is not None and calibrations.read_across is not None:
            together = calibrations.read_across
            logits = read_too(together.head, together.reader, logits, *self._reader.logits(held, reading))
            calibration = together.calibration
        return Seen(reading.extract, logits, calibration, self._manifest.types, notes, places)

    def knows(self, sample: Sample, spoken: Spoken) -> bool:
        """Whether the encoder was measured to be good in the language of a response and in that of its evidence.

        Across languages it will do as well that the reader has learned both.
        """
        theirs, _ = _evidence_language(sample, spoken.tag)
        return self._at_home(sample, spoken.tag, theirs)

    def in_one_language(self, sample: Sample, spoken: Spoken) -> bool:
        """Whether all evidence, as far as it can be told, is in the response's language; never so for translations."""
        if sample.task is Task.TRANSLATION or evidence_notes(sample, spoken):
            return False
        given = {_tag(passage.language) for passage in sample.evidence if passage.language is not None}
        theirs, _ = _evidence_language(sample, spoken.tag)
        return {base_of(tag) for tag in (*given, theirs)} == {base_of(spoken.tag)}

    def _at_home(self, sample: Sample, ours: str, theirs: str) -> bool:
        if all(self._strong(ours, theirs)):
            return True
        if self._reads_with is None or base_of(ours) == base_of(theirs) or sample.task is Task.TRANSLATION:
            return False
        return all(strength_among(self._manifest.reads, tag) == "measured" for tag in (ours, theirs))

    def _strong(self, *tags: str) -> list[bool]:
        return [self._encoder.strength(tag) == "measured" for tag in tags]

    def _held(self, sample: Sample, spoken: Spoken) -> tuple[Held, tuple[str, ...]]:
        notes = evidence_notes(sample, spoken)
        theirs, found = _evidence_language(sample, spoken.tag)
        strong = self._strong(spoken.tag, theirs)
        if found:
            notes = (*notes, found)
        if not self._at_home(sample, spoken.tag, theirs):
            notes = (*notes, "encoder:weak")
        held = Held(
            response=sample.response,
            passages=[passage.text for passage in sample.evidence],
            question=sample.question,
            language=spoken.tag,
            evidence_language=theirs,
            translation=sample.task is Task.TRANSLATION,
            strong=(strong[0], strong[1]),
        )
        lacking = self._options["reader"] and self._manifest.reads_with and self._reads_with is None
        if held.across and not held.translation and lacking:
            notes = (*notes, NO_READER)
        return held, notes


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


def read_too(
    head: float, reader: float, by_head: NDArray[np.float32], by_reader: NDArray[np.float32], seen: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """The head's logits, shape (n, 7), with the reader's added to the first column, of the words that it saw.

    Args:
        head, reader: what each counts for.
        by_head: shape (n, 7).
        by_reader: shape (n,).
        seen: which words the reader saw, shape (n,).
    """
    found = by_head.copy()
    found[:, 0] = head * by_head[:, 0] + reader * np.where(seen, by_reader, 0.0)
    return found
