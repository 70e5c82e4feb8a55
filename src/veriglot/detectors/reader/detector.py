"""The reader: a cross-encoder that reads question, response and evidence together.

The encoder is multilingual-e5-small with fine-tuned upper layers. It gives a logit for each token of the response, and
one for the response. Linear weights, fitted on texts that trained neither detector, combine them with the logits of
the grounding detector.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

import msgspec
import numpy as np

from veriglot.detectors.grounding.detector import (
    JUDGING_VERSION,
    VERBATIM_LOGIT,
    Grounding,
    RawPrediction,
    ScriptCalibration,
    Weights,
    WordDetector,
    pool,
)
from veriglot.detectors.reader.sequences import InputSequence, input_sequences
from veriglot.encoders.e5 import E5Reader, Tokeniser
from veriglot.errors import WeightsError
from veriglot.hub import registry
from veriglot.judging.base import ResolvedLanguage, evidence_language
from veriglot.records import Sample, Task
from veriglot.records.settings import Record
from veriglot.signatures import digest, file_sha256, signature
from veriglot.text.segmentation import sentences
from veriglot.text.support import COMPUTED
from veriglot.text.values import likeliest_amount, read_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from veriglot.arrays import Float32s, Int64s, Numbers
    from veriglot.encoders.e5 import Pair

__all__ = [
    "ANSWERS_FILE",
    "ENCODER",
    "FILES",
    "GROUNDING_COLUMN",
    "INVERSE_TEMPERATURE",
    "MIN_SHARE",
    "RELATIONS",
    "RESPONSE_COLUMN",
    "FusionWeights",
    "Manifest",
    "Network",
    "Reader",
    "fusion_features",
    "read_network",
    "read_scaled",
    "relation_of",
    "save_network",
]  # fmt: skip

ANSWERS_FILE = "answers.npz"
FILES = ("network.npz", "fusion.json", ANSWERS_FILE)
ENCODER = "e5-multilingual"
RELATIONS = ("same", "same asked", "across", "across asked", "translation")  # of languages; asked: with a question
GROUNDING_COLUMN = 3  # column of `fusion_features` with grounding's logit of the word
RESPONSE_COLUMN = 8  # column of `fusion_features` with the logit of the response
_HEADS = ("tokens", "response")
_EVIDENCE_ROOM = 128  # tokens of evidence beside each sentence of an answer
_ANSWERS_ROOM = 360  # tokens of an input of `AnswerFinder`
_DECIDING, _A_LINE = 2, 24  # lines to read of evidence in another language; one more per so many response tokens
INVERSE_TEMPERATURE = 20.0  # of the soft alignment of tokens
MIN_SHARE = 1e-3  # smaller shares are taken for this one
_ANSWERS_WEIGHT = 0.5  # of `AnswerFinder` in the logit of the response
_SUPPORTED_LOGIT = -2.0  # logit of a typical supported word
_INPUT_VERSION = 8  # raise it when the input of the network changes
_DIGIT = re.compile(r"\d")


class FusionWeights(Record):
    """Linear weights that combine reader and grounding, for one of `RELATIONS`.

    Attributes:
        weights: of `fusion_features`, in its order.
        calibration: of the weighted sum.
        locating: weights that find the wrong words of an unsupported response; None uses `weights`.
    """

    weights: tuple[float, ...]
    calibration: ScriptCalibration
    locating: tuple[float, ...] | None = None


class Manifest(Weights, frozen=True, kw_only=True):
    """See `Weights`.

    Attributes:
        encoder_sha256: the first 16 digits of the hash of the encoder's file.
        grounding: the same of the grounding detector's network.
    """

    kind = "reader"

    encoder_sha256: str
    grounding: str


@dataclass(frozen=True)
class WordLogits:
    """The network's output for the words of one response.

    Attributes:
        unsupported: mean logit of each word's tokens, shape (n,); 0 for a word without a token of its own.
        types: mean probability of each type, given that the word is unsupported, shape (n, 6).
        response: logit of the part of the response that holds each word, shape (n,).
        answers: output of `AnswerFinder` for each word, shape (n, 3); None if it did not run.
    """

    unsupported: Float32s
    types: Float32s
    response: Float32s
    answers: Float32s | None = None


class Network:
    """The fine-tuned encoder and its heads.

    Args:
        folder: that `veriglot train reader` wrote.
        encoder: the file of `e5-multilingual`.

    Raises:
        WeightsError: a file is missing, damaged or not of its kind.
    """

    def __init__(self, folder: Path, encoder: Path) -> None:
        self._learned = read_network(folder / FILES[0])
        self._tokeniser = Tokeniser(encoder)
        missing = [name for head in _HEADS for name in (f"{head}.0.w", f"{head}.1.w") if name not in self._learned]
        if missing:
            raise WeightsError(f"{folder / FILES[0]} lacks {', '.join(missing)}.", remedy="Reinstall Veriglot.")
        self._encoder = E5Reader(
            {name: values for name, values in self._learned.items() if not name.startswith(_HEADS)}, encoder
        )
        self._answers_file, self._file = folder / ANSWERS_FILE, encoder

    @cached_property
    def _answers(self) -> AnswerFinder:
        return AnswerFinder(self._answers_file, self._file)

    def read(
        self, sample: Sample, raw: RawPrediction, relation: str, language: str, evidence: str
    ) -> tuple[str, Float32s, Float32s]:
        """The relation whose `FusionWeights` apply, `fusion_features`, and the probability of each type, shape (n, 6).

        Args:
            sample: has response and evidence.
            raw: output of the grounding detector.
            relation: one of `RELATIONS`; the input depends on it.
            language: BCP 47 tag of the response.
            evidence: BCP 47 tag of the evidence.
        """
        question = sample.question
        passages = unify_numbers(sample.response, language, tuple(sample.passages), evidence)
        bounds = raw.features.response.bounds
        answers = None
        if relation == "across asked":
            lines = tuple(text[slice(*line)] for text in passages for line in sentences(text, evidence))
            sequences = input_sequences(self._tokeniser, sample.response, language, question, lines, _ANSWERS_ROOM)
            relation = "across"
            if len(sequences) == 1:
                by_tokens, passages = self._answers.read(sequences[0].pair, lines, self._tokeniser)
                answers, relation = _means(by_tokens, sequences[0].bounds, bounds), "across asked"
        evidence_room = _EVIDENCE_ROOM if relation == "same asked" else 0
        words = self.words(sample.response, bounds, language, question, passages, evidence_room=evidence_room)
        if answers is not None:
            of_answers = np.float32(_ANSWERS_WEIGHT * (answers[:, 0].max() - answers[:, 2].min()))
            words = replace(words, answers=answers, response=words.response + of_answers)
        return relation, fusion_features(words, raw), words.types

    def words(
        self,
        response: str,
        bounds: Int64s,
        language: str | None,
        question: str | None,
        passages: Sequence[str],
        *,
        evidence_room: int = 0,
    ) -> WordLogits:
        """Logits of a response's words: half-open code point ranges in order, shape (n, 2).

        For `evidence_room` see `input_sequences`.
        """
        sequences = input_sequences(
            self._tokeniser, response, language, question, passages, evidence_room=evidence_room
        )
        logits = [np.zeros((0, 0), np.float32)] * len(sequences)
        of_responses = np.zeros(len(sequences), np.float32)
        for index, _, last in self._encoder.states([sequence.pair for sequence in sequences]):
            inside = last[1:]
            logits[index] = head(self._learned, "tokens", inside)
            pooled = np.concatenate([last[0], inside.mean(axis=0), inside.max(axis=0)])
            of_responses[index] = head(self._learned, "response", pooled[None])[0, 0]
        return _of_words(sequences, logits, of_responses, bounds)


class AnswerFinder:
    """The encoder with low-rank adapters (LoRA) that locate the answer to the question in the evidence.

    A word of the response that aligns with another place is a wrong answer, even if the evidence contains it.

    Args:
        learned: the file of the adapters and the heads; matrices may be in 8 bits, with a scale for each row.
        encoder: the file of `e5-multilingual`.

    Raises:
        WeightsError: a file is missing, damaged or not of its kind.
    """

    def __init__(self, learned: Path, encoder: Path) -> None:
        self._learned = read_scaled(learned)
        self._encoder = E5Reader(self._learned, encoder)

    def read(self, pair: Pair, lines: tuple[str, ...], tokeniser: Tokeniser) -> tuple[Float32s, tuple[str, ...]]:
        """The output for each token of the response, shape (t, 3), and the most relevant lines of the evidence.

        The columns: the logit that the token is unsupported; the logarithm of the probability that the answer stands
        where the token aligns; the logarithm of the mean of that probability over the response, without the
        question's words. The lines hold the likely answer, or align best with response and question; if the input
        does not hold all lines, all are returned.

        Args:
            pair: question, response and lines.
            lines: the sentences of the evidence.
            tokeniser: the reader's.
        """
        ((_, tokens, last),) = self._encoder.states([pair], whole=True)
        question, response, evidence = (slice(*part) for part in (pair.question, pair.response, pair.evidence))
        unit = tokens / np.maximum(np.linalg.norm(tokens, axis=1, keepdims=True), 1e-6)
        further = np.zeros((response.stop - response.start, 5), np.float32)
        counts = [len(tokeniser.tokens(line)[0]) for line in lines]
        alike = unit[response] @ unit[evidence].T
        if alike.size and question.stop > question.start:
            closest, wanted = (
                _softmax(INVERSE_TEMPERATURE * alike),
                _softmax(head(self._learned, "answer", last[evidence])[:, 0]),
            )
            asked = closest @ wanted
            near = (unit[response] @ unit[question].T).max(axis=1)
            new = np.square(np.clip(1.0 - near, 0.01, 1.0))
            whole = np.full(len(near), (new * asked).sum() / new.sum())
            columns = (
                alike.max(axis=1),
                near,
                np.log(asked + MIN_SHARE),
                np.log(whole + MIN_SHARE),
                np.ones(len(near)),
            )
            further = np.stack(columns, axis=1).astype(np.float32)
            if sum(counts) == len(wanted):
                wanted = wanted + closest.mean(axis=0)
                wanted += _softmax(INVERSE_TEMPERATURE * (unit[question] @ unit[evidence].T)).mean(axis=0)
                shares = np.bincount(np.repeat(np.arange(len(lines)), counts), wanted, len(lines))
                most = _DECIDING + (response.stop - response.start) // _A_LINE
                lines = tuple(lines[index] for index in sorted(np.argsort(-shares, kind="stable")[:most]))
        logits = head(self._learned, "unsupported", np.concatenate([last[response], further], axis=1))
        return np.concatenate([logits, further[:, 2:4]], axis=1), lines


def read_scaled(path: Path) -> dict[str, Float32s]:
    """The arrays of a file, matrices in 8 bits multiplied by the scales of their rows; errors of `read_network`."""
    arrays, no_scale = read_network(path), np.float32(1.0)
    return {
        name: values * arrays.get(f"{name}.scales", no_scale)
        for name, values in arrays.items()
        if not name.endswith(".scales")
    }


def head(learned: Mapping[str, Float32s], name: str, values: Float32s) -> Float32s:
    """The output of a head of two layers for vectors, shape (n, outputs)."""
    inner = np.maximum(values @ learned[f"{name}.0.w"].T + learned[f"{name}.0.b"], 0.0)
    output: Float32s = inner @ learned[f"{name}.1.w"].T + learned[f"{name}.1.b"]
    return output


def _softmax(values: Float32s) -> Float32s:
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    shares: Float32s = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def _means(values: Float32s, tokens: Int64s, words: Int64s) -> Float32s:
    """Means over the tokens of each word, both given as half-open code point ranges; 0 for a word without a token."""
    first = np.searchsorted(tokens[:, 1], words[:, 0], side="right")
    after = np.maximum(np.searchsorted(tokens[:, 0], words[:, 1]), first)
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0, dtype=np.float64)])
    means: Float32s = ((sums[after] - sums[first]) / np.maximum(after - first, 1)[:, None]).astype(np.float32)
    return means


def _of_words(
    sequences: Sequence[InputSequence], logits: Sequence[Float32s], whole: Float32s, words: Int64s
) -> WordLogits:
    """Outputs of words: means over their tokens."""
    if not sequences:
        nothing = np.zeros(len(words), np.float32)
        return WordLogits(nothing, np.full((len(words), 6), 1 / 6, np.float32), nothing)
    bounds = np.concatenate([sequence.bounds for sequence in sequences])
    of_tokens = np.concatenate(logits)
    part = np.repeat(np.arange(len(sequences)), [len(sequence.bounds) for sequence in sequences])
    powers = np.exp(of_tokens[:, 1:] - of_tokens[:, 1:].max(axis=1, keepdims=True))
    values = np.concatenate([of_tokens[:, :1], powers / powers.sum(axis=1, keepdims=True)], axis=1)
    mean = _means(values, bounds, words)
    first = np.searchsorted(bounds[:, 1], words[:, 0], side="right")
    return WordLogits(mean[:, 0], mean[:, 1:], whole[part[np.minimum(first, len(part) - 1)]])


def fusion_features(words: WordLogits, raw: RawPrediction) -> Float32s:
    """The features of each word that a `FusionWeights` weighs, shape (n, 18).

    From the reader and from grounding: the word's logit, and the mean and the maximum of its sentence. From the reader
    also the mean and the maximum of the response, and the logit of the response. From `AnswerFinder`, or else 0: the
    word's logit, the mean and the maximum of the response, and both probabilities. Then the logarithm of the number of
    words, whether the word is a number that the evidence lacks or has, and the constant 1.

    No network can compute. Therefore a number that can be computed from the evidence never counts as unsupported, and
    the logit of its response is at most that of the response's most suspect other word.

    Args:
        words: output of the reader.
        raw: output of grounding for the same words.
    """
    computed, sentence, count = raw.numbers == COMPUTED, raw.features.sentence, len(raw.numbers)
    answers = np.zeros((count, 3), np.float32) if words.answers is None else words.answers
    by_reader, by_grounding, by_answers = (
        np.where(computed, np.minimum(logits, _SUPPORTED_LOGIT), logits)
        for logits in (words.unsupported, raw.logits[:, 0], answers[:, 0])
    )
    of_response = np.minimum(words.response, by_reader.max()) if computed.any() else words.response
    columns: list[Numbers] = []
    for logits in (by_reader, by_grounding):
        columns += [logits, pool(logits, sentence, "mean"), pool(logits, sentence, "max")]
    columns += [np.full(count, by_reader.mean()), np.full(count, by_reader.max()), of_response, by_answers]
    columns += [np.full(count, by_answers.mean()), np.full(count, by_answers.max()), *answers[:, 1:].T]
    columns += [np.full(count, np.log(count)), raw.numbers < 0, raw.numbers > 0, np.ones(count)]
    return np.stack(columns, axis=1).astype(np.float32)


def relation_of(language: str | None, evidence: str | None, *, translation: bool, asked: bool) -> str:
    """Which of `RELATIONS` response and evidence have; `asked`: whether there is a question."""
    response_base, evidence_base = ((tag or "").partition("-")[0] for tag in (language, evidence))
    if translation:
        return "translation"
    return ("across" if evidence_base and response_base != evidence_base else "same") + " asked" * asked


def unify_numbers(response: str, language: str, passages: Sequence[str], evidence: str) -> tuple[str, ...]:
    """The passages, with each number in the form in which the response writes the same value.

    So `1.780` becomes `1,780`, `1780`, or words. In most training texts equal values have equal forms, and the network
    takes another form for another value.

    Args:
        response: the response.
        language: its BCP 47 tag.
        passages: the evidence.
        evidence: BCP 47 tag of the evidence.
    """
    ours = {
        (value.kind, likeliest_amount(value, response, language)): response[value.start : value.end]
        for value in read_values(response, language)
        if language == evidence or _DIGIT.search(response, value.start, value.end)
    }
    ours = {key: form for key, form in ours.items() if not any(form in p for p in passages)}
    shown = []
    for text in passages:
        for value in reversed(read_values(text, evidence) if ours else []):
            form = ours.get((value.kind, likeliest_amount(value, text, evidence)))
            if form is not None and _DIGIT.search(text, value.start, value.end):
                text = text[: value.start] + form + text[value.end :]
        shown.append(text)
    return tuple(shown)


class Reader(WordDetector):
    """Marks unsupported words with a cross-encoder that reads question, response and evidence together.

    The evidence may be in another language. A sample of the task `translation` is compared with its source. See
    `docs/reader.md`.

    Args:
        threshold: confidence from which a word is marked, 0 to 1; None takes the weights' own.
        words: whether predictions carry every word.
        weights: a folder of weights made by `veriglot train reader`; None takes those in the package.

    Raises:
        MissingExtraError: the packages of the encoder are not installed.
        WeightsError: the encoder's file is not here (the remedy says what to type), or weights are missing, damaged, or
            made for another encoder or other weights of grounding.
    """

    def __init__(self, *, threshold: float | None = None, words: bool = False, weights: str | None = None) -> None:
        self._folder = Path(weights) if weights is not None else Path(str(files(__package__) / "weights"))
        self._manifest = Manifest.read(self._folder)
        self._manifest.check(self._folder, FILES)
        self._grounding = Grounding()
        super().__init__(threshold, self._manifest, words=words)
        self._encoder = registry.find(ENCODER)
        for name, file, known in (
            ("encoder", self._encoder, self._manifest.encoder_sha256),
            ("grounding network", self._grounding.network, self._manifest.grounding),
        ):
            if file_sha256(file)[:16] != known:
                raise WeightsError(
                    f"The weights in {self._folder} were trained with another {name} than {file}.",
                    remedy="Retrain them with `veriglot train reader`, or reinstall Veriglot.",
                )

    @property
    def name(self) -> str:
        """Name and revision of the weights."""
        return f"reader@{self._manifest.revision}"

    @cached_property
    def signature(self) -> str:
        """Name, weights, encoder, threshold and unit in one line."""
        return signature(
            detector=self.name,
            weights=digest([*(self._manifest.sha256[name] for name in FILES), self._manifest.grounding])[:12],
            encoder=self._manifest.encoder_sha256[:12],
            judging=JUDGING_VERSION,
            input=_INPUT_VERSION,
            threshold=self._threshold,
            unit="word",
        )

    @cached_property
    def _network(self) -> Network:
        return Network(self._folder, self._encoder)

    @cached_property
    def _fusion(self) -> dict[str, FusionWeights]:
        return msgspec.json.decode((self._folder / FILES[1]).read_bytes(), type=dict[str, FusionWeights])

    def _predict_raw(self, sample: Sample, resolved: ResolvedLanguage) -> RawPrediction | None:
        evidence, note = evidence_language(sample, resolved.tag)
        relation = relation_of(
            resolved.tag, evidence, translation=sample.task is Task.TRANSLATION, asked=bool(sample.question)
        )
        raw = self._grounding.predict_raw(sample, resolved, evidence_language=evidence)
        if raw is None:
            return None
        notes = () if note is None else (note,)
        if (raw.harmless | raw.verbatim).all():
            logits = np.minimum(raw.logits, VERBATIM_LOGIT)  # nothing is left for the network
            calibration = self._fusion[relation].calibration
            return replace(raw, logits=logits, calibration=calibration, notes=notes, response_logit=VERBATIM_LOGIT)
        relation, features, probable = self._network.read(sample, raw, relation, resolved.tag, evidence)
        fusion = self._fusion[relation]
        unsupported = features @ np.array(fusion.weights, np.float32)
        located = features @ np.array(fusion.locating or fusion.weights, np.float32)
        by_reading = np.log(np.maximum(probable, 1e-6) / np.maximum(1.0 - probable, 1e-6))
        types = (by_reading + raw.logits[:, 1:]) / 2  # their mean is right more often than either alone
        logits = np.concatenate([unsupported[:, None], types], axis=1).astype(np.float32)
        response_logit = float(features[:, RESPONSE_COLUMN].max())
        return replace(
            raw,
            logits=logits,
            calibration=fusion.calibration,
            notes=notes,
            response_logit=response_logit,
            location_logits=located,
        )


def save_network(path: Path, arrays: Mapping[str, Numbers]) -> None:
    """Write arrays to a file; equal arrays give equal bytes, unlike with `numpy.savez`."""
    with ZipFile(path, "w") as file:
        for name, values in arrays.items():
            entry = ZipInfo(f"{name}.npy")
            entry.compress_type = ZIP_DEFLATED  # entries do not inherit it from the file
            with file.open(entry, "w") as stream:
                np.lib.format.write_array(stream, np.ascontiguousarray(values), allow_pickle=False)


def read_network(path: Path) -> dict[str, Numbers]:
    """The arrays of a file, float16 as float32.

    Raises:
        WeightsError: the file is missing or damaged.
    """
    arrays = {}
    try:
        with ZipFile(path) as file:
            for name in file.namelist():
                with file.open(name) as part:
                    values = np.lib.format.read_array(part, allow_pickle=False)
                half = values.dtype == np.float16
                arrays[name.removesuffix(".npy")] = values.astype(np.float32) if half else values
    except (OSError, ValueError, BadZipFile) as error:
        raise WeightsError(f"{path} is missing or damaged: {error}.", remedy="Reinstall Veriglot.") from error
    return arrays
