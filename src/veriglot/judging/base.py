"""Shared by detectors and scorers: language of a sample, reasons for no score, `BaseDetector`, words to spans."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from veriglot.errors import InputTypeError, UsageError
from veriglot.judging.phrases import refusal_length
from veriglot.plugins import PickledByArguments
from veriglot.records import JudgedUnit, Pointer, Prediction, Sample, Span, Status, Task, Word
from veriglot.records.languages import UNDETERMINED, base_tag, find_language, tag_of
from veriglot.text.facts import fact_languages
from veriglot.text.identification import Identified, identify
from veriglot.text.segmentation import sentences
from veriglot.text.unicode import main_script, script_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from veriglot.arrays import Bools, Bounds, Float64s, Int64s

__all__ = [
    "DIGITS",
    "UNKNOWN_LANGUAGE",
    "BaseDetector",
    "NotScored",
    "ResolvedLanguage",
    "SpanLabel",
    "TooLongError",
    "check_sample",
    "evidence_language",
    "evidence_notes",
    "has_evidence",
    "has_fact_rules",
    "no_words",
    "resolve_language",
    "runs",
    "sentence_of_each",
    "spans_from_words",
    "text_language",
    "words_from_confidences",
]


_TAG = re.compile(r"[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*|[A-Za-z ()]+")
_EAST_ASIAN = frozenset({"Hani", "Hira", "Kana", "Hang", "Bopo"})  # parts of Hans, Hant, Jpan and Kore


@dataclass(frozen=True)
class ResolvedLanguage:
    """The language of a response.

    Attributes:
        tag: BCP 47 tag.
        script: ISO 15924 code, or None if the text has no letters.
        notes: how the language was identified, if it was not given.
    """

    tag: str
    script: str | None
    notes: tuple[str, ...] = ()


# A text's own language counts only if confidence + letters / 100 reaches this. Names, numbers and loanwords look alike
# in all languages.
_MIN_PROOF = 1.1
_MIN_PROOF_QUESTION = 0.8  # lower: a question has words such as "who"


def resolve_language(sample: Sample) -> ResolvedLanguage | None:
    """The language of a sample's response; None if it is neither given nor identified.

    A short response gets the language of its question, or else of its evidence, unless its own words prove another
    language or it is a refusal in another. If the evidence states a closely related language and the identification is
    unsure, the response gets that one. A given tag that is not in the language table stays as it is; the script is
    then that of the text.
    """
    if sample.language is not None:
        return _given_language(sample.language, sample.response)
    own, script = identify(sample.response), script_of(sample.response)
    if own and own.confidence < _SURE_OF_RELATED and sample.task is not Task.TRANSLATION:
        ours, question = base_tag(own.tag), identify(sample.question or "")
        stated = {base_tag(tag): tag for tag in _stated(sample)}
        related = [tag for base, tag in stated.items() if any({ours, base} <= each for each in _RELATED)]
        if related and ours not in {*stated, question and base_tag(question.tag)}:
            known = _given_language(related[0], sample.response)
            return known and replace(known, notes=("language:from_evidence",))
    sure = sample.task is Task.TRANSLATION or _proves(own, sample.response, _MIN_PROOF)
    around = () if sure else tuple(_around(sample, script))
    source, language = next((pair for pair in around if script in {None, pair[1].script}), ("response", own))
    if source == "response" and (own is None or script == "Latn"):  # it may be a name in Latin letters
        fit = (pair for pair in around if script == "Latn" or {script, pair[1].script} <= _EAST_ASIAN)
        source, language = next((pair for pair in fit if own is None or pair[0] == "question"), (source, own))
    if language is None:
        return None
    same = own is not None and base_tag(own.tag) == base_tag(language.tag)
    own = own or Identified("en", 0.0, "Latn")  # the most frequent language of refusals
    if same or _declines(sample.response, own, language):
        source, language = "response", own
    return ResolvedLanguage(language.tag, language.script, (f"language:from_{source}",))


def _declines(response: str, own: Identified, around: Identified) -> bool:
    """Whether a response is a refusal in its own language, but not in that of question or evidence."""
    whole = len(response)
    return refusal_length(response, own.tag) == whole > refusal_length(response, around.tag)


def _proves(language: Identified | None, text: str, needed: float) -> bool:
    if language is None:
        return False
    letters = sum(map(str.isalpha, text)) * (1 + (language.script in _EAST_ASIAN))
    return language.confidence + letters / 100 >= needed


def _around(sample: Sample, script: str | None) -> Iterator[tuple[str, Identified]]:
    """Languages of question, then evidence; an unsure question only if the evidence has another script."""
    question = identify(sample.question or "")
    sure = _proves(question, sample.question or "", _MIN_PROOF_QUESTION)
    if question and sure:
        yield "question", question
        if script in {None, question.script}:
            return
    evidence = identify(next(filter(str.strip, sample.passages), ""))
    if question and not sure and not (evidence and evidence.script == question.script):
        yield "question", question
    if evidence:
        yield "evidence", evidence


def _given_language(tag: str, response: str) -> ResolvedLanguage | None:
    """A given language in the script of the response, with a note if the language is not normally written in it."""
    if not _TAG.fullmatch(tag):
        return None
    known = find_language(tag)
    if known is None:
        return ResolvedLanguage(tag, script_of(response), ("language:unknown_tag",))
    script = main_script(response)
    if script is None or script in _EAST_ASIAN or script == known.script:
        return ResolvedLanguage(known.tag, known.script)
    return ResolvedLanguage(known.tag, script, ("language:other_script",))


def text_language(text: str, given: str | None = None) -> str | None:
    """The BCP 47 tag of a text: `given` if there is one, else identified; None if that fails."""
    if given:
        return given
    identified = identify(text)
    return identified.tag if identified else None


def has_fact_rules(tag: str | None) -> bool:
    """Whether there are rules that split sentences of a language into facts."""
    return tag is not None and tag.partition("-")[0].lower() in fact_languages()


def evidence_notes(sample: Sample, resolved: ResolvedLanguage) -> tuple[str, ...]:
    """A note if the evidence is in another language: then only names, numbers and similar words can be compared.

    The evidence's language is the given one; else its script decides, else its text.
    """
    given = {base_tag(tag).lower() for tag in _stated(sample)}
    if given and base_tag(resolved.tag).lower() not in given:
        return ("evidence:other_language",)
    response_script = _mixed_script(sample.response)
    evidence_script = _mixed_script(*sample.passages)
    if not given and None not in {response_script, evidence_script} and response_script != evidence_script:
        return ("evidence:other_script",)
    identified = resolved.tag if given else evidence_language(sample, resolved.tag)[0]
    return ("evidence:other_language",) if base_tag(identified) != base_tag(resolved.tag) else ()


def _stated(sample: Sample) -> Counter[str]:
    """The languages given with the passages, each with the total length of its texts."""
    sizes = Counter[str]()
    for passage in sample.evidence:
        tag = tag_of(passage.language)
        if tag not in {None, UNDETERMINED, "mul"}:
            sizes[str(tag)] += len(passage.text)
    return sizes


def _mixed_script(*texts: str) -> str | None:
    """The script of texts; kana counts as Han, since Japanese mixes them."""
    script = main_script(*texts)
    return "Hani" if script in {"Hira", "Kana"} else script


LANGUAGE_FROM_TEXT = "evidence:language_from_text"
LANGUAGE_UNSURE = "evidence:language_unsure"
_WINDOW = 250  # code points of running text for one vote
_WINDOWS = 7
_SURE = 0.85  # least confidence of a vote
_SURE_OF_RELATED = 0.95
_SURE_IN_SCRIPT = 0.5
_MAJORITY = 0.75  # share of windows that must agree
_EVIDENCE_READ = 12_000  # code points of the evidence
_MIN_LETTERS = 12
_MIN_WORDS = 4
_MIN_RUNNING = 0.3  # share of running sentences in the text
_MIN_LOWER = 0.5  # share of lower-case words in a sentence; not higher, for German capitalises its nouns
_UNSPACED = 12  # from so many letters per space on, a script does not separate words
_RELATED = (  # languages that look alike in short texts, names and loanwords; two votes prove one of them
    *({"id", "ms"}, {"hr", "sr", "bs", "sl"}, {"da", "no", "nb", "nn", "sv"}, {"es", "gl", "pt", "ca", "ast", "oc"}),
    *({"cs", "sk"}, {"bg", "mk"}, {"uk", "be", "ru"}, {"zh", "yue"}, {"af", "nl"}, {"az", "tr"}, {"hi", "mr", "ne"}),
    *({"fa", "ur", "sd", "ar"}, {"it", "la", "ro"}, {"et", "fi"}),
)


def evidence_language(sample: Sample, language: str) -> tuple[str, str | None]:
    """The language of most of the evidence, and a note if it was identified from the text or the result was unsure.

    It is the language given with the passages; else the response's, unless the text proves another. Another script is
    proof. In the same script only running sentences count, since names, numbers, headings and the fields of an infobox
    look alike in all languages: several windows of them are identified, and nearly all have to agree. If the response
    itself is identified as that other language, the agreement proves nothing. A translation's source needs no proof.

    Args:
        sample: a sample with evidence.
        language: BCP 47 tag of its response.
    """
    if sizes := _stated(sample):
        return sizes.most_common(1)[0][0], None
    text = "\n".join(sample.passages)[:_EVIDENCE_READ]
    windows, running = _windows(text)
    votes = [identified for window in windows or [text] if (identified := identify(window))]
    if not votes:
        return language, None
    tag, count = Counter(vote.tag for vote in votes).most_common(1)[0]
    ours, other = base_tag(language), base_tag(tag)
    if other == ours:
        return (tag if count == len(votes) else language), None
    response, script = identify(sample.response), _mixed_script(sample.response)
    other_script = script is not None and all(vote.script != script for vote in votes) and script != "Hang"
    related = any({ours, other} <= languages for languages in _RELATED) and not other_script
    sure = _SURE_IN_SCRIPT if other_script else _SURE_OF_RELATED if related else _SURE
    count = sum(vote.tag == tag and vote.confidence >= sure for vote in votes)
    proven = other_script or (running >= _MIN_RUNNING and (response is None or base_tag(response.tag) != other))
    proven = proven and count >= max(1 + related, _MAJORITY * len(votes))
    if not proven and sample.task is not Task.TRANSLATION:
        return language, LANGUAGE_UNSURE
    return tag, LANGUAGE_FROM_TEXT


def _windows(text: str) -> tuple[list[str], float]:
    """Windows of running sentences, evenly spread over a text, and the share of the text that these make up."""
    windows: list[str] = []
    for start, end in sentences(text):
        if not _is_running(text[start:end]):
            continue
        if windows and len(windows[-1]) < _WINDOW:
            windows[-1] += f" {text[start:end]}"
        else:
            windows.append(text[start:end])
    if len(windows) > 1 and len(windows[-1]) < _WINDOW // 2:
        windows[-2:] = [f"{windows[-2]} {windows[-1]}"]
    count = min(_WINDOWS, len(windows))
    share = sum(map(len, windows)) / max(1, len(text))
    return [windows[index * len(windows) // count] for index in range(count)], share


def _is_running(sentence: str) -> bool:
    """Whether most words of a sentence begin in lower case; in scripts without spaces, whether it is long."""
    words = sentence.split()
    letters = sum(char.isalpha() for char in sentence)
    if letters > _UNSPACED * len(words):
        return letters >= _MIN_LETTERS
    begins = [word.lstrip("([{«„“\"'¿¡")[:1] for word in words]
    small = sum(begin.isalpha() and not begin.isupper() for begin in begins)
    return small >= max(_MIN_WORDS, _MIN_LOWER * len(words))


PlanT = TypeVar("PlanT")
ResultT = TypeVar("ResultT")
T = TypeVar("T")


class NotScored(NamedTuple):
    """Status and reason of a prediction without a score."""

    status: Status
    reason: str

    @classmethod
    def failed(cls, error: Exception) -> NotScored:
        """From an exception: `too_long` or `failed`."""
        if isinstance(error, TooLongError):
            return cls(Status.TOO_LONG, str(error))
        return cls(Status.FAILED, f"{type(error).__name__}: {error}")


class TooLongError(Exception):
    """The sample does not fit into the model; its status becomes `too_long`."""


_NO_EVIDENCE = NotScored(Status.NO_EVIDENCE, "there is no evidence to compare the response with")
UNKNOWN_LANGUAGE = NotScored(
    Status.UNSUPPORTED_LANGUAGE, "the language of the response was not recognised; give it as `language`"
)


def has_evidence(sample: Sample) -> bool:
    """Whether any passage of a sample has more than white space."""
    return any(map(str.strip, sample.passages))


def check_sample(sample: Sample) -> ResolvedLanguage | NotScored:
    """The language of a sample, or why the sample cannot be judged."""
    if not sample.response.strip():
        return NotScored(Status.FAILED, "the response is empty")
    try:
        sample.response.encode()
    except UnicodeEncodeError:
        return NotScored(Status.FAILED, "the response holds half of a surrogate pair")
    if not has_evidence(sample):
        return _NO_EVIDENCE
    named = f"{sample.language!r} is no language; write a tag such as de or zh-Hant, or leave `language` out"
    return resolve_language(sample) or (
        NotScored(Status.UNSUPPORTED_LANGUAGE, named) if sample.language else UNKNOWN_LANGUAGE
    )


def no_words(sample: Sample) -> NotScored:
    """The reason for a sample whose response or evidence has no word."""
    if any(map(str.isalnum, "".join(sample.passages))):
        return NotScored(Status.FAILED, "the response holds no word, only marks or symbols")
    return NotScored(Status.NO_EVIDENCE, "the evidence holds no word, only marks or symbols")


class BaseDetector(PickledByArguments, ABC, Generic[PlanT, ResultT]):
    """A detector in three steps: `_plan` prepares a sample, `_run` judges a batch, `_scored` makes a prediction.

    Each may return `NotScored` for a sample. An exception in `_plan` or `_scored` fails its own sample only. A detector
    is pickled as its options and loads its model in the other process.

    Args:
        threshold: confidence from which a word is marked, 0 to 1.
        words: whether predictions include every word.

    Raises:
        UsageError: the threshold is not between 0 and 1.
    """

    taxonomy: str

    def __init__(self, threshold: float, *, words: bool) -> None:
        if not 0.0 <= threshold <= 1.0:
            raise UsageError(f"A threshold is a probability between 0 and 1, but {threshold} was given.")
        self._threshold = threshold
        self._words = words

    @property
    @abstractmethod
    def name(self) -> str:
        """Name and revision."""

    @property
    @abstractmethod
    def signature(self) -> str:
        """Name and all settings that change a prediction, in one line."""

    @property
    def threshold(self) -> float:
        """Confidence from which a word is marked."""
        return self._threshold

    @abstractmethod
    def _plan(self, sample: Sample) -> PlanT | NotScored:
        """The prepared input of a sample, or why it cannot be judged."""

    @abstractmethod
    def _run(self, plans: Sequence[tuple[Sample, PlanT]]) -> Iterable[ResultT | NotScored]:
        """One result per plan, in order; may be a generator, since each result is used before the next is computed."""

    @abstractmethod
    def _scored(self, sample: Sample, plan: PlanT, result: ResultT) -> Prediction | NotScored:
        """The prediction of a sample."""

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        """Judge a batch: one prediction per sample, in order. A bad sample never raises an error."""
        if not all(isinstance(sample, Sample) for sample in samples):
            raise InputTypeError("predict takes only Samples", "veriglot.detect_many takes dictionaries and tables.")
        plans = [self._guarded(self._plan, sample) for sample in samples]
        planned = [
            (sample, plan) for sample, plan in zip(samples, plans, strict=True) if not isinstance(plan, NotScored)
        ]
        results = iter(self._run(planned))
        return [self._answer(sample, plan, results) for sample, plan in zip(samples, plans, strict=True)]

    def _answer(self, sample: Sample, plan: PlanT | NotScored, results: Any) -> Prediction:
        result = plan if isinstance(plan, NotScored) else next(results)
        judged = result if isinstance(result, NotScored) else self._guarded(self._scored, sample, plan, result)
        if not isinstance(judged, NotScored):
            return judged
        return Prediction(
            id=sample.id, status=judged.status, detector=self.name, reason=judged.reason, signature=self.signature,
            language=sample.language,
        )  # fmt: skip

    def _guarded(self, function: Callable[..., T], *arguments: Any) -> T | NotScored:
        """The function's result, or `NotScored` if it raises: one sample must not fail the batch."""
        try:
            return function(*arguments)
        except Exception as error:
            return self._failure(error)

    def _failure(self, error: Exception) -> NotScored:
        return NotScored.failed(error)

    def _prediction(
        self,
        sample: Sample,
        *,
        score: float,
        spans: tuple[Span, ...],
        words: tuple[Word, ...] | None,
        language: str | None,
        notes: Iterable[str],
        units: tuple[JudgedUnit, ...] | None = None,
    ) -> Prediction:
        return Prediction(
            id=sample.id,
            status=Status.SCORED,
            detector=self.name,
            score=score,
            spans=spans,
            words=words,
            language=language,
            notes=tuple(notes),
            signature=self.signature,
            units=units,
        )


DIGITS = 4  # decimals of a confidence


class SpanLabel(NamedTuple):
    """The type of a span, and pointers to the evidence that it was compared with."""

    type: str | None
    evidence: tuple[Pointer, ...] = ()


def runs(marked: Bools, parts: Int64s) -> Iterator[tuple[int, int]]:
    """Runs of marked words within one part, as half-open word ranges, in order."""
    padded = np.concatenate([[False], marked, [False]])
    for low, high in np.flatnonzero(padded[1:] != padded[:-1]).reshape(-1, 2).tolist():
        cuts = (np.flatnonzero(np.diff(parts[low:high])) + 1 + low).tolist()
        yield from zip([low, *cuts], [*cuts, high], strict=True)


def sentence_of_each(text: str, language: str | None, bounds: Bounds) -> Int64s:
    """The sentence that each word begins in, counted from 1; shape (n,)."""
    starts = np.array([start for start, _ in sentences(text, language)], dtype=np.int64)
    numbers: Int64s = np.searchsorted(starts, bounds[:, 0], side="right")
    return numbers


def spans_from_words(
    text: str,
    bounds: Bounds,
    confidences: Float64s,
    threshold: float,
    parts: Int64s,
    label: Callable[[int, int], SpanLabel],
    *,
    digits: int = DIGITS,
) -> tuple[Span, ...]:
    """Spans from runs of words that reach the threshold, in order.

    Args:
        text: the response.
        bounds: its words, half-open code point ranges in order, shape (n, 2).
        confidences: probability that each word is unsupported, shape (n,).
        threshold: words are marked from this confidence on.
        parts: number of each word's part, such as its sentence; a span never crosses parts, shape (n,).
        label: gives type and pointers of a half-open range of words.
        digits: decimals of a span's confidence, which is the mean over its words.
    """
    spans = []
    for low, high in runs(confidences >= threshold, parts):
        start, end = int(bounds[low, 0]), int(bounds[high - 1, 1])
        type_, evidence = label(low, high)
        mean = round(float(confidences[low:high].mean()), digits)
        spans.append(Span(start, end, type_, mean, text[start:end], evidence))
    return tuple(spans)


def words_from_confidences(
    bounds: Bounds,
    confidences: Float64s | Sequence[float],
    threshold: float,
    pointers: Callable[[int], tuple[Pointer, ...]],
) -> tuple[Word, ...]:
    """Every word with its confidence; words below the threshold also point to the evidence that supports them."""
    pairs = zip(bounds.tolist(), np.asarray(confidences).tolist(), strict=True)
    return tuple(
        Word(start, end, confidence, pointers(index) if confidence < threshold else ())
        for index, ((start, end), confidence) in enumerate(pairs)
    )
