"""The grounding detector: features of words, a small network, calibration, and spans with pointers to the evidence."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cache, cached_property, partial
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import msgspec
import numpy as np

from veriglot.detectors.calibration import sigmoid
from veriglot.detectors.grounding.document import Document, Lexicon
from veriglot.detectors.grounding.features import FEATURES_VERSION, SampleFeatures, extract_features
from veriglot.errors import WeightsError
from veriglot.hub.checkpoints import onnx_session
from veriglot.judging.base import (
    DIGITS,
    BaseDetector,
    NotScored,
    ResolvedLanguage,
    SpanLabel,
    check_sample,
    evidence_language,
    evidence_notes,
    no_words,
    spans_from_words,
    words_from_confidences,
)
from veriglot.judging.contradictions import contradicted_words
from veriglot.judging.phrases import harmless_words, refusal_length, words_within
from veriglot.judging.relations import Words
from veriglot.records import Pointer, Prediction, Sample, Span, Status, Word
from veriglot.records.languages import base_tag
from veriglot.records.settings import Record
from veriglot.signatures import digest, file_sha256, signature
from veriglot.text.segmentation import sentences
from veriglot.text.support import COMPUTED, support
from veriglot.text.values import read_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Self

    from veriglot.arrays import Bools, Float32s, Float64s, Int64s, Numbers

__all__ = [
    "FILES",
    "JUDGING_VERSION",
    "OUTPUTS",
    "VERBATIM_LOGIT",
    "Grounding",
    "Manifest",
    "Model",
    "PlattScaling",
    "RawPrediction",
    "ScriptCalibration",
    "Weights",
    "WordDetector",
    "pool",
    "response_features",
]


# Calibration: Platt scaling by script.
#
# Slope and offset of each script are fitted on held-out responses (`training/grounding/pipeline.py`). A language
# without training texts, or whose script has no fit, uses the default, and its predictions have a note.


_TOP_SHARE = 0.1  # of a response's words


class PlattScaling(Record):
    """A probability as the logistic function of slope * logit + offset."""

    slope: float
    offset: float


class ScriptCalibration(Record):
    """Calibration by script.

    Attributes:
        scripts: scaling for each ISO 15924 code.
        languages: base tags of the languages of the fit.
        default: scaling for every other language.
        response: weights of `response_features`, in its order, the constant last.
        numbers: added to the logit of a number that the evidence lacks, and of one that it has.
    """

    scripts: dict[str, PlattScaling]
    languages: tuple[str, ...]
    default: PlattScaling
    response: tuple[float, ...]
    numbers: tuple[float, float] = (0.0, 0.0)

    def covers(self, tag: str, script: str | None) -> bool:
        """Whether a language has a calibration of its own."""
        return tag.split("-")[0] in self.languages and script in self.scripts

    def confidences(self, logits: Float32s, tag: str, script: str | None) -> Float64s:
        """Probability that each word is unsupported, shape (n,)."""
        line = self.scripts[script] if script is not None and self.covers(tag, script) else self.default
        return sigmoid(line.slope * logits.astype(np.float64) + line.offset)

    def score(self, logits: Float32s, response_logit: float | None = None, refused: int = 0) -> float:
        """Probability that the response has any unsupported span; arguments as for `response_features`."""
        evidence = response_features(logits, response_logit, refused)
        return float(sigmoid(np.array([evidence @ np.array(self.response)]))[0])


def response_features(logits: Numbers, response_logit: float | None = None, refused: int = 0) -> Float64s:
    """Features of the response score: of the words' logits the maximum, the mean of the highest tenth, and the mean.

    Then the log of the number of words (`refused` more than there are logits), the logit of the response if the
    detector gives one, and the constant 1.
    """
    ordered = np.sort(logits.astype(np.float64))
    top = max(1, round(len(ordered) * _TOP_SHARE))
    pooled = [ordered[-1], ordered[-top:].mean(), ordered.mean(), np.log(len(ordered) + refused)]
    return np.array([*pooled, *([] if response_logit is None else [response_logit]), 1.0])


def pool(values: Numbers, sentence: Int64s, how: Literal["mean", "max"]) -> Numbers:
    """Mean or maximum over each word's sentence, shape (n,); sentences are numbered from 0 without gaps."""
    if how == "mean":
        return (np.bincount(sentence, values) / np.bincount(sentence))[sentence]
    highest = np.full(int(sentence[-1]) + 1, -np.inf)
    np.maximum.at(highest, sentence, values)
    return highest[sentence]


# Raise it when the code below, the tables of `judging.phrases`, `text.values`, `text.support` or the language of a text
# (`resolve_language`) change.
JUDGING_VERSION = 18
# Least confidence of numbers that the evidence lacks: so many of them were wrong in held-out rows (of contradicted
# words, 0.92).
_LACKED_NUMBER = 0.86
VERBATIM_LOGIT = -6.0  # highest logit of a word of a verbatim sentence
_OTHER_LANGUAGE = NotScored(
    Status.UNSUPPORTED_LANGUAGE,
    "the evidence is in another language, of which grounding compares numbers alone; type"
    " pip install 'veriglot[reader]', and take the detector auto",
)
_MIN_WORDS = 4  # shorter sentences do not count as verbatim
_COMMON_STEM = 4.0  # frequency of stems that say nothing about the topic: 2 of 1,000 words


def find_verbatim(features: SampleFeatures, harmless: Bools, passages: Sequence[str], language: str | None) -> Bools:
    """Words of sentences that one passage contains verbatim, as whole sentences, shape (n,).

    Args:
        features: words and sentences.
        harmless: words that claim nothing, such as a list's numbers; they are skipped, shape (n,).
        passages: the evidence.
        language: BCP 47 tag of the evidence.
    """
    evidence, result = features.evidence, np.zeros(len(harmless), bool)
    edge = np.zeros(len(evidence) + 1, bool)  # whether a sentence or a passage begins with a word
    for number, text in enumerate(passages):
        low, high = np.searchsorted(evidence.passage, [number, number + 1])
        words = evidence.bounds[low:high, 0] - int(evidence.offsets[number])
        edge[low + np.searchsorted(words, [start for start, _ in sentences(text, language)])] = True
        edge[[low, high]] = True
    starts = np.flatnonzero(edge[:-1])
    verbatim: dict[bytes, bool] = {}  # a response may repeat itself
    for words in np.split(np.arange(len(features.sentence)), np.flatnonzero(np.diff(features.sentence)) + 1):
        chosen = words[~harmless[words]]
        wanted = features.response.word[chosen]
        if len(chosen) < _MIN_WORDS:
            continue
        if wanted.tobytes() not in verbatim:
            first = starts[starts + len(wanted) <= len(evidence)]
            for ahead, word in enumerate(wanted):
                if not len(first):
                    break
                first = first[evidence.word[first + ahead] == word]
            within = evidence.passage[first] == evidence.passage[first + len(wanted) - 1]
            verbatim[wanted.tobytes()] = bool((within & edge[first + len(wanted)]).any())
        result[chosen] = verbatim[wanted.tobytes()]
    return result


def number_support(text: str, bounds: Int64s, language: str, passages: Iterable[tuple[str, str]]) -> Int64s:
    """`RawPrediction.numbers` of words: half-open code point ranges, shape (n, 2); passages are (text, language)."""
    result = np.zeros(len(bounds), np.int64)
    values = read_values(text, language)
    if values:
        known = [value for passage, tag in passages for value in read_values(passage, tag)]
        for value, verdict in zip(values, support(values, known), strict=True):
            low, high = np.searchsorted(bounds[:, 1], value.start, "right"), np.searchsorted(bounds[:, 0], value.end)
            result[low:high] = verdict
            if verdict == COMPUTED and high < len(bounds) and not text[value.end : bounds[high, 0]].strip():
                result[high] = verdict  # the unit behind it: "2.4 cm"
    return result


def find_refusals(sample: Sample, bounds: Int64s, language: str, numbers: Int64s) -> Bools:
    """Words that say that the evidence has no answer; not numbers that evidence and question lack.

    Args:
        sample: has a response.
        bounds: its words, half-open code point ranges in order, shape (n, 2).
        language: BCP 47 tag of the response.
        numbers: as `RawPrediction.numbers`, shape (n,).
    """
    response = sample.response
    spans = sentences(response, language)
    result = words_within(
        bounds, ((start, start + refusal_length(response[start:end], language)) for start, end in spans)
    )
    if (result & (numbers < 0)).any():
        asked = number_support(response, bounds, language, [(sample.question or "", language)])
        result &= (numbers >= 0) | (asked > 0)
    return result


class EvidenceSentences(NamedTuple):
    """Sentences of all passages in order, the start of each, and the sentence of each word, shape (n,)."""

    texts: list[str]
    starts: Int64s
    of_words: Int64s


def evidence_sentences(features: SampleFeatures, sample: Sample, language: str) -> EvidenceSentences:
    """The sentences of the evidence, split by the rules of `language`."""
    evidence = features.evidence
    texts, starts = [], []
    for passage, offset in zip(sample.evidence, evidence.offsets.tolist(), strict=False):
        for start, end in sentences(passage.text, language):
            texts.append(passage.text[start:end])
            starts.append(offset + start)
    begins = np.array(starts, np.int64)
    return EvidenceSentences(texts, begins, np.searchsorted(begins[1:], evidence.bounds[:, 0], side="right"))


_SCORE_THRESHOLD = 0.5  # from this response score on, something is marked
_MIN_CONFIDENCE = 1e-9  # of a word that claims something


def align_with_score(confidences: Float64s, score: float, threshold: float) -> Float64s:
    """Confidences that agree with the response's score: any reaches the threshold if and only if the score reaches 0.5.

    All logits move by the same amount, so the order stays. A confidence of 0 stays 0.

    Args:
        confidences: of the words, shape (n,); 0 where one claims nothing.
        score: probability that the response holds any unsupported span.
        threshold: the weights' own.
    """
    top = float(confidences.max(initial=0.0))
    if not top or (round(top, DIGITS) >= threshold) == (score >= _SCORE_THRESHOLD):
        return confidences
    wanted = threshold if score >= _SCORE_THRESHOLD else threshold - 10.0**-DIGITS
    shift = _logit(np.array(wanted)) - _logit(np.array(top))
    moved = np.where(confidences > 0, sigmoid(_logit(confidences) + shift), 0.0)
    return np.where(confidences == top, wanted, np.minimum(moved, wanted))


def extend_marks(confidences: Float64s, sentence: Int64s, threshold: float) -> Float64s:
    """Confidences with extended marks: "only a few" rather than "only".

    A neighbour of a mark in the same sentence is marked too if its confidence is at least half of the mark's maximum;
    then the next neighbour, and so on.

    Args:
        confidences: of the words, shape (n,).
        sentence: the sentence of each word, ascending, shape (n,).
        threshold: the weights' own.
    """
    result = confidences.copy()
    index = 0
    for (number, is_marked), words in groupby(zip(sentence.tolist(), (confidences >= threshold).tolist(), strict=True)):
        start, index = index, index + len(list(words))
        if is_marked:
            half = confidences[start:index].max() / 2
            for step, word in ((-1, start - 1), (1, index)):
                while 0 <= word < len(result) and sentence[word] == number and half <= result[word] < threshold:
                    result[word] = threshold
                    word += step
    return result


def _logit(values: Float64s) -> Float64s:
    inside = np.clip(values, _MIN_CONFIDENCE, 1 - _MIN_CONFIDENCE)
    return np.asarray(np.log(inside / (1 - inside)))


_MIN_TYPE_PROBABILITY = 0.5  # less likely types are not named


def make_spans(
    sample: Sample,
    features: SampleFeatures,
    confidences: Float64s,
    types: Float64s,
    names: tuple[str, ...],
    threshold: float,
    read: EvidenceSentences,
) -> tuple[Span, ...]:
    """The unsupported spans of a response, in order.

    Adjacent marked words of a sentence form a span. Its confidence is the mean of theirs; its type has the highest mean
    probability, or is None if that is below 0.5.
    """

    closest = cache(partial(_closest, sample, features, read))

    def label(low: int, high: int) -> SpanLabel:
        mean = types[low:high].mean(axis=0)
        against = closest(int(features.sentence[low]))
        evidence = (_against(sample, features, against, low, high),) if against is not None else ()
        return SpanLabel(names[int(mean.argmax())] if mean.max() >= _MIN_TYPE_PROBABILITY else None, evidence)

    return spans_from_words(sample.response, features.response.bounds, confidences, threshold, features.sentence, label)


_EXTRA_WORDS = 1  # by which the evidence's wording may be longer than the marked one
_MAX_COMPARED = 300  # words; for a longer sentence, pointers show a window of it


class _Closest(NamedTuple):
    """The sentence of the evidence that is closest to a sentence of the response.

    Attributes:
        response_words: words of the response's sentence.
        evidence_words: words of the evidence's.
        window: words of the evidence's window that holds most of the response's sentence.
        replaced: ranges of `response_words`, and of the `evidence_words` in their place, both counted from the first,
            half-open.
        pointer: the evidence's sentence.
    """

    response_words: range
    evidence_words: range
    window: range
    replaced: list[tuple[int, int, int, int]]
    pointer: Pointer


def _closest(sample: Sample, features: SampleFeatures, read: EvidenceSentences, sentence: int) -> _Closest | None:
    """None where the window is of a passage without words."""
    response, evidence = features.response, features.evidence
    window = range(*features.windows.words(features.sentence_window[sentence]))
    if not window:
        return None
    words = range(*np.searchsorted(features.sentence, [sentence, sentence + 1]).tolist())
    stems = set(response.stem[words.start : words.stop].tolist())
    shared = [stem in stems for stem in evidence.stem[window.start : window.stop].tolist()]
    candidates = read.of_words[window.start : window.stop]
    best = int(np.bincount(candidates, shared).argmax() if any(shared) else candidates[0])
    compared = range(*np.searchsorted(read.of_words, [best, best + 1]).tolist())
    if max(len(words), len(compared)) > _MAX_COMPARED:
        return _Closest(words, window, window, [], _pointer(sample, features, window[0], window[-1]))
    matcher = SequenceMatcher(
        None,
        response.stem[words.start : words.stop].tolist(),
        evidence.stem[compared.start : compared.stop].tolist(),
        autojunk=False,
    )
    replaced = [operation[1:] for operation in matcher.get_opcodes() if operation[0] == "replace"]
    passage = int(evidence.passage[compared.start])
    start = int(read.starts[best] - evidence.offsets[passage])
    pointer = Pointer(str(sample.evidence[passage].id), start, start + len(read.texts[best].rstrip()))
    return _Closest(words, compared, window, replaced, pointer)


def _against(sample: Sample, features: SampleFeatures, closest: _Closest, low: int, high: int) -> Pointer:
    """What the evidence says in place of the words from `low` to `high`, or else its closest sentence.

    For a number it is a number that the response's sentence lacks: the aligned one, or one with as many digits.
    """
    response, evidence, (words, compared, window, replaced, pointer) = features.response, features.evidence, closest
    instead = [
        compared[index]
        for left, right, start, stop in replaced
        if left <= low - words.start and high - words.start <= right
        for index in range(start, stop)
    ]
    if len(instead) > high - low + _EXTRA_WORDS:
        instead = []
    number = next((word for word in range(low, high) if _has_digit(response, word)), None)
    if number is not None:
        known, length = set(response.word[words.start : words.stop].tolist()), response.lengths[number]
        numbers = [
            (index not in instead, bool(evidence.lengths[index] != length), index)
            for index in range(min(compared.start, window.start), max(compared.stop, window.stop))
            if _has_digit(evidence, index) and int(evidence.word[index]) not in known
        ]
        instead = [index for unaligned, unlike, index in sorted(numbers) if not (unaligned and unlike)][:1]
    return _pointer(sample, features, instead[0], instead[-1]) if instead else pointer


def _has_digit(document: Document, word: int) -> bool:
    return any(map(str.isdigit, map(chr, document.codes[slice(*document.bounds[word])].tolist())))


def word_list(sample: Sample, features: SampleFeatures, confidences: Float64s, threshold: float) -> tuple[Word, ...]:
    """Every word with its confidence; supported words point at the evidence that supports them best."""

    def pointers(word: int) -> tuple[Pointer, ...]:
        index = _supporting_word(features, word)
        return (_pointer(sample, features, index, index),) if index >= 0 else ()

    return words_from_confidences(features.response.bounds, confidences, threshold, pointers)


def _pointer(sample: Sample, features: SampleFeatures, first: int, last: int) -> Pointer:
    """A pointer to the evidence from word `first` to word `last`, both included."""
    evidence = features.evidence
    passage = int(evidence.passage[first])
    offset = int(evidence.offsets[passage])
    start, end = int(evidence.bounds[first, 0]) - offset, int(evidence.bounds[last, 1]) - offset
    return Pointer(str(sample.evidence[passage].id), start, end)


def _supporting_word(features: SampleFeatures, word: int) -> int:
    """The same word, or one with its stem, in the evidence window that supports it; -1 if there is none."""
    window = features.word_window[word]
    if window < 0:
        return -1
    first, last = features.windows.words(window)
    response, evidence = features.response, features.evidence
    for hash_, hashes in ((response.word[word], evidence.word), (response.stem[word], evidence.stem)):
        matches = np.flatnonzero(hashes[first:last] == hash_)
        if len(matches):
            return first + int(matches[0])
    return -1


@dataclass(frozen=True)
class RawPrediction:
    """A detector's output for one response, before calibration and thresholds.

    Attributes:
        features: words, sentences and windows.
        logits: unsupported, then one per type, shape (n, 1 + t).
        calibration: turns logits into probabilities.
        types: the span types, in the order of the logits.
        harmless: words that claim nothing, such as markup, shape (n,).
        verbatim: words of sentences that the evidence contains verbatim, shape (n,).
        refused: number of harmless words that refuse in sentences with a claim; without them a wrong claim after "The
            text does not say" would score as low as a short answer.
        numbers: result of `text.support.support` for words of numbers and dates, else 0, shape (n,).
        contradicted: see `contradicted_words`, shape (n,).
        evidence: the sentences of the evidence.
        response_logit: logit that anything in the response is unsupported; None if the detector has none.
        location_logits: logits of words given that something is unsupported, shape (n,); None uses `logits`.
        notes: see `Prediction.notes`.
    """

    features: SampleFeatures
    logits: Float32s
    calibration: ScriptCalibration
    types: tuple[str, ...]
    harmless: Bools
    verbatim: Bools
    numbers: Int64s
    contradicted: Bools
    evidence: EvidenceSentences
    notes: tuple[str, ...] = ()
    response_logit: float | None = None
    location_logits: Float32s | None = None
    refused: int = 0


class WordDetector(BaseDetector[ResolvedLanguage, RawPrediction]):
    """A detector that computes logits for every word, one response at a time."""

    taxonomy = "fava"

    def __init__(self, threshold: float | None, weights: Weights, *, words: bool) -> None:
        super().__init__(weights.threshold if threshold is None else threshold, words=words)
        self._default = weights.threshold
        self.thresholds = weights.thresholds  # by strictness, see `detectors.registry`

    @abstractmethod
    def _predict_raw(self, sample: Sample, resolved: ResolvedLanguage) -> RawPrediction | None:
        """The output for a sample with response, evidence and language; None if response or evidence has no word."""

    def _plan(self, sample: Sample) -> ResolvedLanguage | NotScored:
        return check_sample(sample)

    def _run(self, plans: Sequence[tuple[Sample, ResolvedLanguage]]) -> Iterator[RawPrediction | NotScored]:
        return (self._guarded(self._checked_raw, sample, resolved) for sample, resolved in plans)

    def _checked_raw(self, sample: Sample, resolved: ResolvedLanguage) -> RawPrediction | NotScored:
        raw = self._predict_raw(sample, resolved)
        if raw is None:
            return no_words(sample)
        if raw.features.markup.all():
            return NotScored(Status.FAILED, "the response holds nothing but control tokens")
        return raw

    def _scored(self, sample: Sample, plan: ResolvedLanguage, result: RawPrediction) -> Prediction:
        features, calibration = result.features, result.calibration
        absent, present = calibration.numbers
        logits, harmless = result.logits[:, 0], result.harmless
        logits = logits + absent * (result.numbers < 0) + present * (result.numbers > 0)
        sure = result.verbatim | (result.numbers == COMPUTED)
        logits[sure] = np.minimum(logits[sure], VERBATIM_LOGIT)
        score = (
            calibration.score(logits[~harmless], result.response_logit, result.refused) if not harmless.all() else 0.0
        )
        located = logits if result.location_logits is None else np.where(sure, logits, result.location_logits)
        confidences = calibration.confidences(located, plan.tag, plan.script)
        lacked = ((result.numbers < 0) | result.contradicted) & ~harmless & ~result.verbatim
        if lacked.any():
            confidences[lacked] = np.maximum(confidences[lacked], _LACKED_NUMBER)
            score = max(score, _LACKED_NUMBER)
        score = round(score, DIGITS)
        confidences = np.where(harmless, 0.0, np.maximum(confidences, _MIN_CONFIDENCE))
        # rounded before marking, so that what is shown and what is marked agree
        confidences = align_with_score(confidences, score, self._default)
        confidences = extend_marks(confidences, features.sentence, self._default).round(DIGITS)
        types = sigmoid(result.logits[:, 1:].astype(np.float64))
        uncovered = () if calibration.covers(plan.tag, plan.script) else ("calibration:default",)
        threshold = self._threshold
        return self._prediction(
            sample,
            score=score,
            spans=make_spans(sample, features, confidences, types, result.types, threshold, result.evidence),
            words=word_list(sample, features, confidences, threshold) if self._words else None,
            language=plan.tag,
            notes=(*plan.notes, *result.notes, *uncovered),
        )


# The network runs in ONNX Runtime, on one thread, one response at a time, without padding. So a prediction depends on
# its sample alone, not on the batch or the number of processes; speed comes from processes.


OUTPUTS = 7  # unsupported, then the six FAVA types
_MAX_WORDS = 1200  # most words of one run of the network
_HALO = 60  # words of context on either side of a part, about three sentences


def sentence_pool(sentence: Int64s) -> Float32s:
    """The matrix that averages words by sentence, numbered from 0 without gaps, shape (1, s, n)."""
    counts = np.bincount(sentence)
    pool = np.zeros((1, len(counts), len(sentence)), np.float32)
    pool[0, sentence, np.arange(len(sentence))] = 1.0 / counts[sentence]
    return pool


class Model:
    """The network.

    Args:
        path: its ONNX file: `features` (1, n, f) and `pool` (1, s, n) in, `logits` (1, n, 7) out.

    Raises:
        WeightsError: the file is missing or is not such a network.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._session = onnx_session(str(path))
        except Exception as error:  # ONNX Runtime's errors share no base
            raise WeightsError(
                f"The network {path} cannot be loaded: {error}.", remedy="Reinstall Veriglot, or retrain."
            ) from error

    def logits(self, features: Float32s, sentence: Int64s) -> Float32s:
        """Logits of every word, shape (n, 7).

        Args:
            features: shape (n, f).
            sentence: the sentence of each word, counted from 0 without gaps, shape (n,).
        """
        logits, words = [], len(features)
        for low in range(0, words, _MAX_WORDS):
            high = min(low + _MAX_WORDS, words)
            begin, end = max(0, low - _HALO), min(words, high + _HALO)
            part = self._run(features[begin:end], sentence[begin:end] - sentence[begin])
            logits.append(part[low - begin : high - begin])
        return np.concatenate(logits)

    def _run(self, features: Float32s, sentence: Int64s) -> Float32s:
        given = {"features": features[None], "pool": sentence_pool(sentence)}
        return np.asarray(self._session.run(None, given)[0][0], np.float32)


FILES = ("network.onnx", "frequencies.npy", "vector_keys.npy", "vectors.npy", "calibration.json")


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """The manifest of a folder of weights (`weights.json`).

    Attributes:
        kind: name of the detector.
        revision: version of the weights.
        types: the span types, in the order of the network's outputs.
        threshold: confidence from which a word is marked by default.
        sha256: hash of each file.
        thresholds: for the strictness `low` (above `threshold`) and `high` (below it), if fitted.
    """

    kind: ClassVar[str]

    revision: str
    types: tuple[str, ...]
    threshold: float
    sha256: dict[str, str]
    thresholds: dict[Literal["low", "high"], float] = {}

    def __post_init__(self) -> None:
        low, high = self.thresholds.get("low", 1.0), self.thresholds.get("high", 0.0)
        if not 1.0 >= low >= self.threshold >= high >= 0.0:
            raise ValueError(f"thresholds go down from low to high, but these are {low}, {self.threshold}, {high}")

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the manifest of a folder.

        Raises:
            WeightsError: there is no such file, or it is something else.
        """
        path = folder / "weights.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except FileNotFoundError as error:
            raise WeightsError(
                f"There are no {cls.kind} weights in {folder}.",
                remedy=f"Give a folder that `veriglot train {cls.kind}` made, or reinstall Veriglot.",
            ) from error
        except msgspec.MsgspecError as error:
            raise WeightsError(f"{path} is not a manifest of {cls.kind} weights: {error}.") from error

    def check(self, folder: Path, names: Iterable[str]) -> None:
        """Compare files with their hashes (about 20 ms), so that damaged weights never give silently wrong results.

        Raises:
            WeightsError: one is missing or damaged.
        """
        for name in names:
            path = folder / name
            if not path.is_file() or file_sha256(path) != self.sha256.get(name):
                raise WeightsError(f"{path} is missing or damaged.", remedy="Reinstall Veriglot, or retrain.")


class Manifest(Weights, frozen=True, kw_only=True):
    """See `Weights`.

    Attributes:
        features_version: version of the features in training.
        features: names of the features, in order; the word vector follows.
    """

    kind = "grounding"

    features_version: int
    features: tuple[str, ...]


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
        self._manifest = Manifest.read(self._folder)
        if self._manifest.features_version != FEATURES_VERSION:
            raise WeightsError(
                f"The weights in {self._folder} are for features {self._manifest.features_version}, not for"
                f" {FEATURES_VERSION}.",
                remedy="Retrain them with `veriglot train grounding`.",
            )
        self._manifest.check(self._folder, self._manifest.sha256)
        super().__init__(threshold, self._manifest, words=words)

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
            judging=JUDGING_VERSION,
            threshold=self._threshold,
            unit="word",
        )

    @cached_property
    def _model(self) -> Model:
        return Model(self.network)

    @cached_property
    def _lexicon(self) -> Lexicon:
        return Lexicon.load(self._folder)

    @cached_property
    def calibration(self) -> ScriptCalibration:
        """Turns the network's logits into probabilities."""
        return msgspec.json.decode((self._folder / "calibration.json").read_bytes(), type=ScriptCalibration)

    @property
    def network(self) -> Path:
        """The file of the network."""
        return self._folder / "network.onnx"

    def _predict_raw(self, sample: Sample, resolved: ResolvedLanguage) -> RawPrediction | None:
        return self.predict_raw(sample, resolved)

    def _checked_raw(self, sample: Sample, resolved: ResolvedLanguage) -> RawPrediction | NotScored:
        first = super()._checked_raw(sample, resolved)
        if isinstance(first, NotScored) or not first.notes:
            return first
        raw = self.predict_raw(sample, resolved, evidence_language(sample, resolved.tag)[0])
        assert raw is not None
        lacked = (raw.numbers < 0) & ~raw.harmless
        if lacked.any():
            return replace(raw, harmless=~lacked)  # other words cannot be compared
        # Without numbers, wrong responses go unmarked as often as right ones, unless the evidence has all their words.
        # Harmless words, as of a refusal, need no comparison.
        compared = raw.numbers.any() or (raw.harmless | (raw.features.word_window >= 0)).all()
        score = self._scored(sample, resolved, raw).score or 0.0  # independent of the threshold, as a status must be
        return raw if compared and score < self._default else _OTHER_LANGUAGE

    def predict_raw(
        self, sample: Sample, resolved: ResolvedLanguage, evidence_language: str | None = None
    ) -> RawPrediction | None:
        """The network's output for a sample; None if response or evidence has no word.

        Args:
            sample: has response and evidence.
            resolved: the language of the response.
            evidence_language: BCP 47 tag of the evidence; None if it is the response's.
        """
        features = extract_features(
            sample.response, sample.passages, sample.question, resolved.tag, self._lexicon,
            evidence_language=evidence_language,
        )  # fmt: skip
        if features is None:
            return None
        logits = self._model.logits(features.values, features.sentence)
        harmless = features.markup | harmless_words(
            sample.response, features.response.bounds, resolved.tag, sample.question
        )
        evidence_tag = evidence_language or resolved.tag
        read_in = [(passage.text, passage.language or evidence_tag) for passage in sample.evidence]
        numbers = number_support(sample.response, features.response.bounds, resolved.tag, read_in)
        refused = find_refusals(sample, features.response.bounds, resolved.tag, numbers)
        harmless |= refused
        refused &= np.isin(features.sentence, features.sentence[~harmless])
        grouped = np.diff(features.response.bounds)[:, 0] > features.response.lengths
        verbatim = find_verbatim(features, harmless, sample.passages, evidence_tag)
        digits = np.array([sample.response[start].isdecimal() for start in features.response.bounds[:, 0]])
        # in English 1.200 is no quotation of 1200
        verbatim &= (numbers > 0) | ~digits | ((numbers == 0) & ~grouped)
        notes = evidence_notes(sample, resolved)
        read = evidence_sentences(features, sample, evidence_tag)
        contradicted = np.zeros_like(harmless)
        if base_tag(evidence_tag) == base_tag(resolved.tag):
            contradicted = contradicted_words(
                self._words_of(features.response, sample.response, features.sentence, ~harmless),
                self._words_of(features.evidence, "\n".join(sample.passages), read.of_words),
                resolved.tag,
                sample.question,
            )
        types = self._manifest.types
        return RawPrediction(
            features,
            logits,
            self.calibration,
            types,
            harmless,
            verbatim,
            numbers,
            contradicted,
            read,
            notes,
            refused=int(refused.sum()),
        )

    def _words_of(self, document: Document, text: str, sentence: Int64s, claims: Bools | bool = True) -> Words:
        """The words of a text as the rules need them; rare words count as content words."""
        rare = self._lexicon.stem_frequency(document.stem) < _COMMON_STEM
        return Words(text, document.bounds, sentence, document.stem, rare & claims)
