"""The grounding detector: from text to logits of words to spans that point at the evidence."""

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
from veriglot.detectors.grounding.features import FEATURES_VERSION, Extract, extract
from veriglot.errors import WeightsError
from veriglot.hub.checkpoints import onnx_session
from veriglot.judging.base import (
    DIGITS,
    BaseDetector,
    NotScored,
    ResolvedLanguage,
    SpanLabel,
    admit,
    evidence_language,
    evidence_notes,
    spans_from_words,
    without_words,
    words_from_confidences,
)
from veriglot.judging.contradictions import contradicted_words
from veriglot.judging.phrases import harmless_words, is_refusal
from veriglot.judging.relations import Words
from veriglot.records import Pointer, Prediction, Sample, Span, Status, Word
from veriglot.records.languages import base_tag
from veriglot.records.settings import Record
from veriglot.signatures import digest, file_sha256, signature
from veriglot.text.segmentation import sentences
from veriglot.text.values import COMPUTED, read_values, support

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Self

    from veriglot.arrays import Bools, Float32s, Float64s, Int64s, Numbers

__all__ = [
    "FILES",
    "JUDGING_VERSION",
    "OUTPUTS",
    "QUOTED",
    "Grounding",
    "Line",
    "Manifest",
    "Model",
    "ScriptCalibration",
    "Seen",
    "Weights",
    "WordDetector",
    "pool",
    "response_evidence",
]


# From logits to probabilities that mean what they say, by script, with a default for the rest.
#
# Each script has a slope and an offset fitted on held-out responses (`training/grounding/pipeline.py`). A language
# whose script has none of its own, or that no training text was in, gets the default, and its predictions say so.


_TOP_SHARE = 0.1  # of a response's words: the most suspect ones


class Line(Record):
    """A probability as the logistic function of slope * logit + offset."""

    slope: float
    offset: float


class ScriptCalibration(Record):
    """Calibration by script.

    Attributes:
        scripts: ISO 15924 code to line.
        languages: base tags of the languages that the lines were fitted on.
        default: the line for every other language.
        response: weights of `response_evidence`, in its order, the constant last.
        numbers: what is added to the logit of a number that the evidence lacks, and of one that it has.
    """

    scripts: dict[str, Line]
    languages: tuple[str, ...]
    default: Line
    response: tuple[float, ...]
    numbers: tuple[float, float] = (0.0, 0.0)

    def covers(self, tag: str, script: str | None) -> bool:
        """Whether a language has a calibration of its own."""
        return tag.split("-")[0] in self.languages and script in self.scripts

    def confidences(self, logits: Float32s, tag: str, script: str | None) -> Float64s:
        """Probability that each word is unsupported, shape (n,)."""
        line = self.scripts[script] if script is not None and self.covers(tag, script) else self.default
        return sigmoid(line.slope * logits.astype(np.float64) + line.offset)

    def score(self, logits: Float32s, whole: float | None = None) -> float:
        """Probability that the response holds any unsupported span; `whole` as `response_evidence` takes it."""
        evidence = response_evidence(logits, whole)
        return float(sigmoid(np.array([evidence @ np.array(self.response)]))[0])


def response_evidence(logits: Numbers, whole: float | None = None) -> Float64s:
    """What a response's score is made from, the constant last.

    The highest logit, the mean of the highest tenth, the mean of all, the log of the words; and the logit of the whole
    where a detector gives one.
    """
    ordered = np.sort(logits.astype(np.float64))
    top = max(1, round(len(ordered) * _TOP_SHARE))
    pooled = [ordered[-1], ordered[-top:].mean(), ordered.mean(), np.log(len(ordered))]
    return np.array([*pooled, *([] if whole is None else [whole]), 1.0])


def pool(values: Numbers, sentence: Int64s, how: Literal["mean", "max"]) -> Numbers:
    """The mean or the highest value of each word's sentence, shape (n,); sentences count from 0 without gaps."""
    if how == "mean":
        return (np.bincount(sentence, values) / np.bincount(sentence))[sentence]
    highest = np.full(int(sentence[-1]) + 1, -np.inf)
    np.maximum.at(highest, sentence, values)
    return highest[sentence]


JUDGING_VERSION = 16  # of what follows, of the tables of `judging.phrases` and `text.values`, of `resolve_language`
# Share of numbers that the evidence lacks, by value, which were wrong among rows that trained nothing; of exchanged
# words it was 0.92.
_ABSENT = 0.86
QUOTED = -6.0  # logit of a quoted word at most
_FOREIGN = NotScored(
    Status.UNSUPPORTED_LANGUAGE,
    "the evidence is in another language, of which grounding compares numbers alone; type"
    " pip install 'veriglot[reader]', and take the detector auto",
)
_LEAST_WORDS = 4  # of a sentence that is taken for a quotation
_FREQUENT = 4.0  # of stems that say nothing of what a sentence is about: two in a thousand words


def quoted(extract: Extract, free: Bools, passages: Sequence[str], language: str | None) -> Bools:
    """The words of sentences that stand word for word in one passage, as whole sentences there, shape (n,).

    Args:
        extract: words and sentences.
        free: words that claim nothing, such as a list's numbers, which a quotation may hold, shape (n,).
        passages: the evidence.
        language: BCP 47 tag of the evidence.
    """
    evidence, result = extract.evidence, np.zeros(len(free), bool)
    edge = np.zeros(len(evidence) + 1, bool)  # whether a sentence or a passage begins with a word
    for number, text in enumerate(passages):
        low, high = np.searchsorted(evidence.passage, [number, number + 1])
        words = evidence.bounds[low:high, 0] - int(evidence.offsets[number])
        edge[low + np.searchsorted(words, [start for start, _ in sentences(text, language)])] = True
        edge[[low, high]] = True
    starts = np.flatnonzero(edge[:-1])
    verbatim: dict[bytes, bool] = {}  # a response may repeat itself
    for words in np.split(np.arange(len(extract.sentence)), np.flatnonzero(np.diff(extract.sentence)) + 1):
        chosen = words[~free[words]]
        wanted = extract.response.word[chosen]
        if len(chosen) < _LEAST_WORDS:
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
    """See `Seen.numbers`; of words, half-open code point ranges, shape (n, 2); passages each with their language."""
    result = np.zeros(len(bounds), np.int64)
    values = read_values(text, language)
    if values:
        known = [value for passage, tag in passages for value in read_values(passage, tag)]
        for value, verdict in zip(values, support(values, known), strict=True):
            low, high = np.searchsorted(bounds[:, 1], value.start, "right"), np.searchsorted(bounds[:, 0], value.end)
            result[low:high] = verdict
            if verdict == COMPUTED and high < len(bounds) and not text[value.end : bounds[high, 0]].strip():
                result[high] = verdict  # the word behind it says what was counted: "2.4 cm"
    return result


def refused(sample: Sample, bounds: Int64s, language: str, numbers: Int64s) -> Bools:
    """The words of sentences that say that the evidence does not say, but for numbers that it and the question lack.

    Args:
        sample: has a response.
        bounds: its words, half-open code point ranges in order, shape (n, 2).
        language: BCP 47 tag of the response.
        numbers: as `Seen.numbers`, shape (n,).
    """
    result = np.zeros(len(bounds), bool)
    for start, end in sentences(sample.response, language):
        if is_refusal(sample.response[start:end], language):
            result[np.searchsorted(bounds[:, 0], start) : np.searchsorted(bounds[:, 1], end, "right")] = True
    if (result & (numbers < 0)).any():
        asked = number_support(sample.response, bounds, language, [(sample.question or "", language)])
        result &= (numbers >= 0) | (asked > 0)
    return result


class EvidenceSentences(NamedTuple):
    """The sentences of all passages, in order, where each begins, and which each word is in, shape (n,)."""

    texts: list[str]
    starts: Int64s
    of_words: Int64s


def evidence_sentences(extract: Extract, sample: Sample, language: str) -> EvidenceSentences:
    """The sentences of the evidence, which is in `language`."""
    evidence = extract.evidence
    texts, starts = [], []
    for passage, offset in zip(sample.evidence, evidence.offsets.tolist(), strict=False):
        for start, end in sentences(passage.text, language):
            texts.append(passage.text[start:end])
            starts.append(offset + start)
    begins = np.array(starts, np.int64)
    return EvidenceSentences(texts, begins, np.searchsorted(begins[1:], evidence.bounds[:, 0], side="right"))


_CUT = 0.5  # response scores from there on say that something is unsupported
_SMALLEST = 1e-9  # confidence of a word that claims something


def agreed(confidences: Float64s, score: float, threshold: float) -> Float64s:
    """Confidences that agree with the response's score: one reaches the threshold if and only if the score is 0.5.

    All are moved by the same logit, so that their order stays; a confidence of 0 stays what it is.

    Args:
        confidences: of the words, shape (n,); 0 where one claims nothing.
        score: probability that the response holds any unsupported span.
        threshold: the weights' own.
    """
    top = float(confidences.max(initial=0.0))
    if not top or (round(top, DIGITS) >= threshold) == (score >= _CUT):
        return confidences
    wanted = threshold if score >= _CUT else threshold - 10.0**-DIGITS
    shift = _logit(np.array(wanted)) - _logit(np.array(top))
    moved = np.where(confidences > 0, sigmoid(_logit(confidences) + shift), 0.0)
    return np.where(confidences == top, wanted, np.minimum(moved, wanted))


def extended(confidences: Float64s, sentence: Int64s, threshold: float) -> Float64s:
    """Confidences with marks made whole: "only a few" rather than "only".

    A word beside a mark, in its sentence, reaches the threshold, too, if it is at least half as suspect as the most
    suspect word of the mark; then the word beside it, and so on.

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
    inside = np.clip(values, _SMALLEST, 1 - _SMALLEST)
    return np.asarray(np.log(inside / (1 - inside)))


_PROBABLE = 0.5  # of a type from there on


def mark(
    sample: Sample,
    extract: Extract,
    confidences: Float64s,
    types: Float64s,
    names: tuple[str, ...],
    threshold: float,
    read: EvidenceSentences,
) -> tuple[Span, ...]:
    """The unsupported spans of a response, in order.

    Neighbouring marked words of one sentence make one span; its type is the likeliest on the average of its words, if
    that is probable, its confidence the mean of theirs.
    """

    closest = cache(partial(_closest, sample, extract, read))

    def label(low: int, high: int) -> SpanLabel:
        mean = types[low:high].mean(axis=0)
        against = closest(int(extract.sentence[low]))
        evidence = (_against(sample, extract, against, low, high),) if against is not None else ()
        return SpanLabel(names[int(mean.argmax())] if mean.max() >= _PROBABLE else None, evidence)

    return spans_from_words(sample.response, extract.response.bounds, confidences, threshold, extract.sentence, label)


_INSTEAD = 1  # words more than are marked that may stand in their place in the evidence
_LONG = 300  # words: a longer sentence is not compared, and a window of it is pointed at


class _Closest(NamedTuple):
    """The sentence of the evidence that a sentence of the response is held against.

    Attributes:
        ours: words of the response's sentence.
        compared: words of the evidence's.
        window: words of the evidence's window that holds most of the response's sentence.
        replaced: words of `ours` and those of `compared` in their place, both counted from the first, half-open.
        pointer: the evidence's sentence.
    """

    ours: range
    compared: range
    window: range
    replaced: list[tuple[int, int, int, int]]
    pointer: Pointer


def _closest(sample: Sample, extract: Extract, read: EvidenceSentences, sentence: int) -> _Closest | None:
    """None where the window is of a passage without words."""
    response, evidence = extract.response, extract.evidence
    window = range(*extract.windows.words(extract.sentence_window[sentence]))
    if not window:
        return None
    ours = range(*np.searchsorted(extract.sentence, [sentence, sentence + 1]).tolist())
    stems = set(response.stem[ours.start : ours.stop].tolist())
    shared = [stem in stems for stem in evidence.stem[window.start : window.stop].tolist()]
    candidates = read.of_words[window.start : window.stop]
    best = int(np.bincount(candidates, shared).argmax() if any(shared) else candidates[0])
    compared = range(*np.searchsorted(read.of_words, [best, best + 1]).tolist())
    if max(len(ours), len(compared)) > _LONG:
        return _Closest(ours, window, window, [], _pointer(sample, extract, window[0], window[-1]))
    matcher = SequenceMatcher(
        None,
        response.stem[ours.start : ours.stop].tolist(),
        evidence.stem[compared.start : compared.stop].tolist(),
        autojunk=False,
    )
    replaced = [operation[1:] for operation in matcher.get_opcodes() if operation[0] == "replace"]
    passage = int(evidence.passage[compared.start])
    start = int(read.starts[best] - evidence.offsets[passage])
    pointer = Pointer(str(sample.evidence[passage].id), start, start + len(read.texts[best].rstrip()))
    return _Closest(ours, compared, window, replaced, pointer)


def _against(sample: Sample, extract: Extract, closest: _Closest, low: int, high: int) -> Pointer:
    """What the evidence has in place of the words from `low` to `high`, or else its closest sentence.

    Numbers are held against numbers that the response's sentence lacks, aligned ones or those with as many digits.
    """
    response, evidence, (ours, compared, window, replaced, pointer) = extract.response, extract.evidence, closest
    instead = [
        compared[index]
        for left, right, start, stop in replaced
        if left <= low - ours.start and high - ours.start <= right
        for index in range(start, stop)
    ]
    if len(instead) > high - low + _INSTEAD:
        instead = []
    number = next((word for word in range(low, high) if _has_digit(response, word)), None)
    if number is not None:
        known, length = set(response.word[ours.start : ours.stop].tolist()), response.lengths[number]
        numbers = [
            (index not in instead, bool(evidence.lengths[index] != length), index)
            for index in range(min(compared.start, window.start), max(compared.stop, window.stop))
            if _has_digit(evidence, index) and int(evidence.word[index]) not in known
        ]
        instead = [index for unaligned, unlike, index in sorted(numbers) if not (unaligned and unlike)][:1]
    return _pointer(sample, extract, instead[0], instead[-1]) if instead else pointer


def _has_digit(document: Document, word: int) -> bool:
    return any(map(str.isdigit, map(chr, document.codes[slice(*document.bounds[word])].tolist())))


def word_list(sample: Sample, extract: Extract, confidences: Float64s, threshold: float) -> tuple[Word, ...]:
    """Every word with its confidence; supported words with the place in the evidence that supports them best."""

    def pointers(word: int) -> tuple[Pointer, ...]:
        index = _supporting_word(extract, word)
        return (_pointer(sample, extract, index, index),) if index >= 0 else ()

    return words_from_confidences(extract.response.bounds, confidences, threshold, pointers)


def _pointer(sample: Sample, extract: Extract, first: int, last: int) -> Pointer:
    """The stretch of evidence from its word `first` to its word `last`, both included."""
    evidence = extract.evidence
    passage = int(evidence.passage[first])
    offset = int(evidence.offsets[passage])
    start, end = int(evidence.bounds[first, 0]) - offset, int(evidence.bounds[last, 1]) - offset
    return Pointer(str(sample.evidence[passage].id), start, end)


def _supporting_word(extract: Extract, word: int) -> int:
    """The same word, or else one of its stem, in the evidence window that supports it; -1 where no window holds it."""
    window = extract.word_window[word]
    if window < 0:
        return -1
    first, last = extract.windows.words(window)
    response, evidence = extract.response, extract.evidence
    for hash_, hashes in ((response.word[word], evidence.word), (response.stem[word], evidence.stem)):
        matches = np.flatnonzero(hashes[first:last] == hash_)
        if len(matches):
            return first + int(matches[0])
    return -1


@dataclass(frozen=True)
class Seen:
    """What a detector makes of one response, before thresholds.

    Attributes:
        extract: words, sentences and windows.
        logits: unsupported, then one per type, shape (n, 1 + t).
        calibration: what makes probabilities of the logits.
        types: the span types, in the order of the logits.
        free: words that claim nothing, such as markup, shape (n,).
        quoted: words of sentences that stand word for word in the evidence, shape (n,).
        numbers: of words of numbers and dates what `text.values.support` says of them, else 0, shape (n,).
        opposite: see `contradicted_words`, shape (n,).
        evidence: its sentences.
        whole: a logit that anything in the response is unsupported, where the detector gives one.
        located: the words' logits given that anything is, shape (n,); None where they are the same.
        notes: what a reader of the prediction must know.
    """

    extract: Extract
    logits: Float32s
    calibration: ScriptCalibration
    types: tuple[str, ...]
    free: Bools
    quoted: Bools
    numbers: Int64s
    opposite: Bools
    evidence: EvidenceSentences
    notes: tuple[str, ...] = ()
    whole: float | None = None
    located: Float32s | None = None


class WordDetector(BaseDetector[ResolvedLanguage, Seen]):
    """A detector that gives every word of a response logits, one response at a time."""

    taxonomy = "fava"

    def __init__(self, threshold: float | None, weights: Weights, *, words: bool) -> None:
        super().__init__(weights.threshold if threshold is None else threshold, words=words)
        self._default = weights.threshold
        self.thresholds = weights.thresholds  # by strictness, see `detectors.registry`

    @abstractmethod
    def _see(self, sample: Sample, resolved: ResolvedLanguage) -> Seen | None:
        """Look at a sample that has response, evidence and language; None where one of the two texts has no word."""

    def _plan(self, sample: Sample) -> ResolvedLanguage | NotScored:
        return admit(sample)

    def _run(self, plans: Sequence[tuple[Sample, ResolvedLanguage]]) -> Iterator[Seen | NotScored]:
        return (self._guarded(self._seen, sample, resolved) for sample, resolved in plans)

    def _seen(self, sample: Sample, resolved: ResolvedLanguage) -> Seen | NotScored:
        seen = self._see(sample, resolved)
        if seen is None:
            return without_words(sample)
        if seen.extract.markup.all():
            return NotScored(Status.FAILED, "the response holds nothing but control tokens")
        return seen

    def _scored(self, sample: Sample, plan: ResolvedLanguage, result: Seen) -> Prediction:
        extract, calibration = result.extract, result.calibration
        absent, present = calibration.numbers
        logits, free = result.logits[:, 0], result.free
        logits = logits + absent * (result.numbers < 0) + present * (result.numbers > 0)
        sure = result.quoted | (result.numbers == COMPUTED)
        logits[sure] = np.minimum(logits[sure], QUOTED)
        score = calibration.score(logits[~free], result.whole) if not free.all() else 0.0
        located = logits if result.located is None else np.where(sure, logits, result.located)
        confidences = calibration.confidences(located, plan.tag, plan.script)
        lacked = ((result.numbers < 0) | result.opposite) & ~free & ~result.quoted
        if lacked.any():
            confidences[lacked] = np.maximum(confidences[lacked], _ABSENT)
            score = max(score, _ABSENT)
        score = round(score, DIGITS)
        confidences = np.where(free, 0.0, np.maximum(confidences, _SMALLEST))
        # rounded before marking, so that what is shown and what is marked agree
        confidences = agreed(confidences, score, self._default)
        confidences = extended(confidences, extract.sentence, self._default).round(DIGITS)
        types = sigmoid(result.logits[:, 1:].astype(np.float64))
        uncovered = () if calibration.covers(plan.tag, plan.script) else ("calibration:default",)
        threshold = self._threshold
        return self._prediction(
            sample,
            score=score,
            spans=mark(sample, extract, confidences, types, result.types, threshold, result.evidence),
            words=word_list(sample, extract, confidences, threshold) if self._words else None,
            language=plan.tag,
            notes=(*plan.notes, *result.notes, *uncovered),
        )


# Running the trained network with ONNX Runtime, on one thread, one response at a time.
#
# One at a time, unpadded: so a prediction depends on nothing but its sample, whatever the batch or the number of
# processes. Speed comes from processes, not from threads inside one.


OUTPUTS = 7  # unsupported, then the six FAVA types
_LONGEST = 1200  # words that the network sees at a time
_HALO = 60  # words of context on either side of a part, about three sentences


def sentence_pool(sentence: Int64s) -> Float32s:
    """The matrix that takes words to the means of their sentences, counted from 0 without gaps, shape (1, s, n)."""
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
                f"The network {path} cannot be loaded: {error}.", remedy="Install Veriglot again, or train anew."
            ) from error

    def logits(self, features: Float32s, sentence: Int64s) -> Float32s:
        """Logits of every word, shape (n, 7).

        Args:
            features: shape (n, f).
            sentence: the sentence of each word, counted from 0 without gaps, shape (n,).
        """
        logits, words = [], len(features)
        for low in range(0, words, _LONGEST):
            high = min(low + _LONGEST, words)
            begin, end = max(0, low - _HALO), min(words, high + _HALO)
            part = self._run(features[begin:end], sentence[begin:end] - sentence[begin])
            logits.append(part[low - begin : high - begin])
        return np.concatenate(logits)

    def _run(self, features: Float32s, sentence: Int64s) -> Float32s:
        given = {"features": features[None], "pool": sentence_pool(sentence)}
        return np.asarray(self._session.run(None, given)[0][0], np.float32)


FILES = ("network.onnx", "frequencies.npy", "vector_keys.npy", "vectors.npy", "calibration.json")


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder of weights says of itself (`weights.json`).

    Attributes:
        kind: name of the detector whose weights they are.
        revision: version of the weights.
        types: the span types, in the order of the network's outputs.
        threshold: confidence from which a word is marked by default.
        sha256: hash of each file.
        thresholds: the same for the strictness `low` (above `threshold`) and `high` (below it), where they were fitted.
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
        """What a folder says.

        Raises:
            WeightsError: there is no such file, or it is something else.
        """
        path = folder / "weights.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except FileNotFoundError as error:
            raise WeightsError(
                f"There are no {cls.kind} weights in {folder}.",
                remedy=f"Give a folder that `veriglot train {cls.kind}` made, or install Veriglot again.",
            ) from error
        except msgspec.MsgspecError as error:
            raise WeightsError(f"{path} is not a manifest of {cls.kind} weights: {error}.") from error

    def check(self, folder: Path, names: Iterable[str]) -> None:
        """Compare files of a folder with their hashes, some 20 ms, against results that are wrong in silence.

        Raises:
            WeightsError: one is missing or damaged.
        """
        for name in names:
            path = folder / name
            if not path.is_file() or file_sha256(path) != self.sha256.get(name):
                raise WeightsError(f"{path} is missing or damaged.", remedy="Install Veriglot again, or train anew.")


class Manifest(Weights, frozen=True, kw_only=True):
    """See `Weights`.

    Attributes:
        features_version: the features that they were trained on.
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
                remedy="Train them anew with `veriglot train grounding`.",
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
        """What makes probabilities of the network's logits."""
        return msgspec.json.decode((self._folder / "calibration.json").read_bytes(), type=ScriptCalibration)

    @property
    def network(self) -> Path:
        """The file of the network."""
        return self._folder / "network.onnx"

    def _see(self, sample: Sample, resolved: ResolvedLanguage) -> Seen | None:
        return self.see(sample, resolved)

    def _seen(self, sample: Sample, resolved: ResolvedLanguage) -> Seen | NotScored:
        first = super()._seen(sample, resolved)
        if isinstance(first, NotScored) or not first.notes:
            return first
        seen = self.see(sample, resolved, evidence_language(sample, resolved.tag)[0])
        assert seen is not None
        lacked = (seen.numbers < 0) & ~seen.free
        if lacked.any():
            return replace(seen, free=~lacked)  # other words cannot be compared
        # Without numbers, as many wrong responses as right ones stay unmarked, unless all their words are there; what
        # claims nothing, as a refusal does, need not be compared.
        compared = seen.numbers.any() or (seen.free | (seen.extract.word_window >= 0)).all()
        score = self._scored(sample, resolved, seen).score or 0.0  # which hangs on no threshold, as a status may not
        return seen if compared and score < self._default else _FOREIGN

    def see(self, sample: Sample, resolved: ResolvedLanguage, evidence_language: str | None = None) -> Seen | None:
        """What the network says of a sample, before thresholds; None where one of the two texts has no word.

        Args:
            sample: has response and evidence.
            resolved: the language of the response.
            evidence_language: BCP 47 tag of the evidence where it is in another.
        """
        extracted = extract(
            sample.response, sample.passages, sample.question, resolved.tag, self._lexicon,
            evidence_language=evidence_language,
        )  # fmt: skip
        if extracted is None:
            return None
        logits = self._model.logits(extracted.values, extracted.sentence)
        free = extracted.markup | harmless_words(
            sample.response, extracted.response.bounds, resolved.tag, sample.question
        )
        evidence_tag = evidence_language or resolved.tag
        read_in = [(passage.text, passage.language or evidence_tag) for passage in sample.evidence]
        numbers = number_support(sample.response, extracted.response.bounds, resolved.tag, read_in)
        free |= refused(sample, extracted.response.bounds, resolved.tag, numbers)
        grouped = np.diff(extracted.response.bounds)[:, 0] > extracted.response.lengths
        verbatim = quoted(extracted, free, sample.passages, evidence_tag)
        digits = np.array([sample.response[start].isdecimal() for start in extracted.response.bounds[:, 0]])
        # in English 1.200 is no quotation of 1200
        verbatim &= (numbers > 0) | ~digits | ((numbers == 0) & ~grouped)
        notes = evidence_notes(sample, resolved)
        read = evidence_sentences(extracted, sample, evidence_tag)
        opposite = np.zeros_like(free)
        if base_tag(evidence_tag) == base_tag(resolved.tag):
            opposite = contradicted_words(
                self._words_of(extracted.response, sample.response, extracted.sentence, ~free),
                self._words_of(extracted.evidence, "\n".join(sample.passages), read.of_words),
                resolved.tag,
                sample.question,
            )
        types = self._manifest.types
        return Seen(extracted, logits, self.calibration, types, free, verbatim, numbers, opposite, read, notes)

    def _words_of(self, document: Document, text: str, sentence: Int64s, claims: Bools | bool = True) -> Words:
        """The words of a text for the rules; those are telling that few texts have."""
        rare = self._lexicon.stem_frequency(document.stem) < _FREQUENT
        return Words(text, document.bounds, sentence, document.stem, rare & claims)
