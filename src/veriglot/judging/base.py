"""What detectors and scorers share: the language of a sample, why it is not scored, and spans from words."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from veriglot.errors import InputTypeError, UsageError
from veriglot.judging.phrases import is_refusal
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
    "admit",
    "evidence_language",
    "evidence_notes",
    "has_evidence",
    "has_fact_rules",
    "resolve_language",
    "runs",
    "sentence_of_each",
    "spans_from_words",
    "text_language",
    "without_words",
    "words_from_confidences",
]


_TAG = re.compile(r"[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*|[A-Za-z ()]+")
_EAST_ASIAN = frozenset({"Hani", "Hira", "Kana", "Hang", "Bopo"})  # parts of Hans, Hant, Jpan and Kore


@dataclass(frozen=True)
class ResolvedLanguage:
    """The language of a response.

    Attributes:
        tag: BCP 47 tag.
        script: ISO 15924 code, or None where the text has no letters.
        notes: how the language was identified, where it was not given.
    """

    tag: str
    script: str | None
    notes: tuple[str, ...] = ()


# What a text's own words need against what surrounds it: confidence, and a hundredth for every letter. Names, numbers
# and loanwords look like any language's.
_PROVEN = 1.1
_PROVEN_QUESTION = 0.8  # which has words such as "who"


def resolve_language(sample: Sample) -> ResolvedLanguage | None:
    """The language of a sample's response; None where it is neither given nor identified.

    A short response that proves no other language, and is no refusal in one, is in that of its question, or else of its
    evidence; one that looks like a sister of the language that the evidence states, and not surely so, is in that. A
    tag that the language table does not hold is kept as it is: the script of the text is what counts.
    """
    if sample.language is not None:
        return _given_language(sample.language, sample.response)
    own, script = identify(sample.response), script_of(sample.response)
    if own and own.confidence < _SURE_OF_KIN and sample.task is not Task.TRANSLATION:
        ours, question = base_tag(own.tag), identify(sample.question or "")
        stated = {base_tag(tag): tag for tag in _stated(sample)}
        kin = [tag for base, tag in stated.items() if any({ours, base} <= each for each in _KIN)]
        if kin and ours not in {*stated, question and base_tag(question.tag)}:
            known = _given_language(kin[0], sample.response)
            return known and replace(known, notes=("language:from_evidence",))
    sure = sample.task is Task.TRANSLATION or _proves(own, sample.response, _PROVEN)  # else the source's language
    around = () if sure else tuple(_around(sample, script))
    source, language = next((pair for pair in around if script in {None, pair[1].script}), ("response", own))
    if source == "response" and (own is None or script == "Latn"):  # a name may stand in Latin letters
        fit = (pair for pair in around if script == "Latn" or {script, pair[1].script} <= _EAST_ASIAN)
        source, language = next((pair for pair in fit if own is None or pair[0] == "question"), (source, own))
    if language is None:
        return None
    same = own is not None and base_tag(own.tag) == base_tag(language.tag)
    own = own or Identified("en", 0.0, "Latn")  # what models most often refuse in
    if same or _declines(sample.response, own, language):
        source, language = "response", own
    return ResolvedLanguage(language.tag, language.script, (f"language:from_{source}",))


def _declines(response: str, own: Identified, around: Identified) -> bool:
    """Whether a response is a refusal in its own language, and none in the language around it."""
    return is_refusal(response, own.tag) and not is_refusal(response, around.tag)


def _proves(language: Identified | None, text: str, needed: float) -> bool:
    if language is None:
        return False
    letters = sum(map(str.isalpha, text)) * (1 + (language.script in _EAST_ASIAN))
    return language.confidence + letters / 100 >= needed


def _around(sample: Sample, script: str | None) -> Iterator[tuple[str, Identified]]:
    """What question and evidence are in, as far as they must be asked; not a question too short to prove another."""
    question = identify(sample.question or "")
    sure = _proves(question, sample.question or "", _PROVEN_QUESTION)
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
    """A given language in the script of the response, with a note where that is not the language's own."""
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
    """The BCP 47 tag of a text: `given` if there is one, else identified; None where it cannot be identified."""
    if given:
        return given
    identified = identify(text)
    return identified.tag if identified else None


def has_fact_rules(tag: str | None) -> bool:
    """Whether there are rules that part sentences of a language into facts."""
    return tag is not None and tag.partition("-")[0].lower() in fact_languages()


def evidence_notes(sample: Sample, resolved: ResolvedLanguage) -> tuple[str, ...]:
    """The note that evidence in another language gets: only names, numbers and similar words can be compared then.

    The evidence's language counts where it is given, else its script, else what its text proves.
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
    """The languages that the evidence states, by the length of its text."""
    sizes = Counter[str]()
    for passage in sample.evidence:
        tag = tag_of(passage.language)
        if tag not in {None, UNDETERMINED, "mul"}:
            sizes[str(tag)] += len(passage.text)
    return sizes


def _mixed_script(*texts: str) -> str | None:
    """The script of texts; those of Chinese and Japanese, which mix, as one."""
    script = main_script(*texts)
    return "Hani" if script in {"Hira", "Kana"} else script


LANGUAGE_FROM_TEXT = "evidence:language_from_text"
LANGUAGE_UNSURE = "evidence:language_unsure"
_WINDOW = 250  # code points of running text by which one vote is given
_WINDOWS = 7
_SURE = 0.85  # below it a window has no vote
_SURE_OF_KIN = 0.95
_SURE_IN_SCRIPT = 0.5
_MOST = 0.75  # of the windows
_LOOKED_AT = 12_000  # code points of the evidence
_FEWEST_LETTERS = 12
_FEWEST_WORDS = 4
_RUNNING = 0.3  # of the text
_SMALL = 0.5  # of a sentence's words; German writes its nouns with capitals
_DENSE = 12  # letters between two spaces, on average
_KIN = (  # languages that short texts, names and loanwords make look alike; two votes prove one of them
    *({"id", "ms"}, {"hr", "sr", "bs", "sl"}, {"da", "no", "nb", "nn", "sv"}, {"es", "gl", "pt", "ca", "ast", "oc"}),
    *({"cs", "sk"}, {"bg", "mk"}, {"uk", "be", "ru"}, {"zh", "yue"}, {"af", "nl"}, {"az", "tr"}, {"hi", "mr", "ne"}),
    *({"fa", "ur", "sd", "ar"}, {"it", "la", "ro"}, {"et", "fi"}),
)


def evidence_language(sample: Sample, language: str) -> tuple[str, str | None]:
    """The language of most of the evidence, and a note where it was told by its text or not believed.

    As the passages give it; else the response's, unless the text proves another. Another script is proof. In the same
    one only running sentences count, since names, numbers, headings and the fields of an infobox look like any
    language's: several windows of them are identified, and nearly all have to agree. What the response itself is
    taken for proves nothing either. A translation's source needs no proof.

    Args:
        sample: a sample with evidence.
        language: BCP 47 tag of its response.
    """
    if sizes := _stated(sample):
        return sizes.most_common(1)[0][0], None
    text = "\n".join(sample.passages)[:_LOOKED_AT]
    windows, running = _windows(text)
    votes = [identified for window in windows or [text] if (identified := identify(window))]
    if not votes:
        return language, None
    tag, count = Counter(vote.tag for vote in votes).most_common(1)[0]
    ours, other, response = base_tag(language), base_tag(tag), identify(sample.response)
    if other == ours:
        return (tag if count == len(votes) else language), None
    script = _mixed_script(sample.response)
    other_script = script is not None and all(vote.script != script for vote in votes) and script != "Hang"
    kin = any({ours, other} <= languages for languages in _KIN) and not other_script
    sure = _SURE_IN_SCRIPT if other_script else _SURE_OF_KIN if kin else _SURE
    count = sum(vote.tag == tag and vote.confidence >= sure for vote in votes)
    proven = other_script or (running >= _RUNNING and (response is None or base_tag(response.tag) != other))
    proven = proven and count >= max(1 + kin, _MOST * len(votes))
    if not proven and sample.task is not Task.TRANSLATION:
        return language, LANGUAGE_UNSURE
    return tag, LANGUAGE_FROM_TEXT


def _windows(text: str) -> tuple[list[str], float]:
    """Windows of running sentences, evenly drawn from a text, and the share of the text that is running."""
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
    """Whether most of a sentence's words begin with a small letter; where words are not parted, whether it is long."""
    words = sentence.split()
    letters = sum(char.isalpha() for char in sentence)
    if letters > _DENSE * len(words):
        return letters >= _FEWEST_LETTERS
    begins = [word.lstrip("([{«„“\"'¿¡")[:1] for word in words]
    small = sum(begin.isalpha() and not begin.isupper() for begin in begins)
    return small >= max(_FEWEST_WORDS, _SMALL * len(words))


PlanT = TypeVar("PlanT")
ResultT = TypeVar("ResultT")
T = TypeVar("T")


class NotScored(NamedTuple):
    """Why a sample has no score: the status and the reason of its prediction."""

    status: Status
    reason: str

    @classmethod
    def failed(cls, error: Exception) -> NotScored:
        """What an exception makes of a sample."""
        if isinstance(error, TooLongError):
            return cls(Status.TOO_LONG, str(error))
        return cls(Status.FAILED, f"{type(error).__name__}: {error}")


class TooLongError(Exception):
    """A sample that does not fit into the model: its status is `too_long`."""


_NO_EVIDENCE = NotScored(Status.NO_EVIDENCE, "there is no evidence to hold the response against")
UNKNOWN_LANGUAGE = NotScored(
    Status.UNSUPPORTED_LANGUAGE, "the language of the response was not recognised; give it as `language`"
)


def has_evidence(sample: Sample) -> bool:
    """Whether a passage of a sample holds more than white space."""
    return any(map(str.strip, sample.passages))


def admit(sample: Sample) -> ResolvedLanguage | NotScored:
    """The language of a sample that can be judged, or why it cannot be."""
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


def without_words(sample: Sample) -> NotScored:
    """Why a sample cannot be judged in which one of the two texts has no word."""
    if any(map(str.isalnum, "".join(sample.passages))):
        return NotScored(Status.FAILED, "the response holds no word, only marks or symbols")
    return NotScored(Status.NO_EVIDENCE, "the evidence holds no word, only marks or symbols")


class BaseDetector(PickledByArguments, ABC, Generic[PlanT, ResultT]):
    """A detector: `_plan` reads a sample, `_run` judges what was read, `_scored` makes the prediction.

    Each may answer `NotScored`, and an exception in `_plan` or `_scored` costs its own sample only. A detector travels
    to another process as its options, and loads its model there.

    Args:
        threshold: confidence from which a word is marked, 0 to 1.
        words: whether predictions carry every word.

    Raises:
        UsageError: the threshold is no probability.
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
        """What is judged of a sample, or why it cannot be."""

    @abstractmethod
    def _run(self, plans: Sequence[tuple[Sample, PlanT]]) -> Iterable[ResultT | NotScored]:
        """One result per plan, in order. It may be a generator: each result is used before the next is asked for."""

    @abstractmethod
    def _scored(self, sample: Sample, plan: PlanT, result: ResultT) -> Prediction | NotScored:
        """The prediction of a sample."""

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        """Judge a batch: one prediction per sample, in order. No sample makes it raise."""
        if not all(isinstance(sample, Sample) for sample in samples):
            raise InputTypeError("predict takes Samples alone", "veriglot.detect_many takes dictionaries and tables.")
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
        """What a function returns, or what its exception makes of the sample: no sample may lose the batch."""
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


DIGITS = 4  # of a confidence


class SpanLabel(NamedTuple):
    """The type of a span, and where in the evidence it was held against."""

    type: str | None
    evidence: tuple[Pointer, ...] = ()


def runs(marked: Bools, parts: Int64s) -> Iterator[tuple[int, int]]:
    """Runs of marked words that lie in one part, as half-open word ranges, in order."""
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
    """Runs of words from a confidence on as spans, in order.

    Args:
        text: the response.
        bounds: its words, half-open code point ranges in order, shape (n, 2).
        confidences: probability that each word is unsupported, shape (n,).
        threshold: a word is marked from it on.
        parts: what a span may not cross the border of, such as sentences, shape (n,).
        label: type and pointers of the words from one to another, half-open.
        digits: of a span's confidence, the mean of its words'.
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
    """Every word with its confidence; those below the threshold with the places that support them."""
    pairs = zip(bounds.tolist(), np.asarray(confidences).tolist(), strict=True)
    return tuple(
        Word(start, end, confidence, pointers(index) if confidence < threshold else ())
        for index, ((start, end), confidence) in enumerate(pairs)
    )
