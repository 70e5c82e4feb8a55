"""The data model: samples, evidence, spans, annotations, predictions, rates, profiles, and their JSON.

Readers store unknown keys in `meta`; writers leave out null. A text that was not checked is never reported as clean.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, dataclass_transform, runtime_checkable

import msgspec

from veriglot.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = [
    "CONFIDENCE_BINS",
    "Annotation",
    "Confusion",
    "DataSource",
    "Detector",
    "Direction",
    "ErrorProfile",
    "Estimate",
    "Estimator",
    "Evidence",
    "Generator",
    "Interval",
    "JudgedUnit",
    "Kind",
    "LanguageProfile",
    "Pointer",
    "Prediction",
    "Rate",
    "Reliability",
    "Sample",
    "Score",
    "Scorer",
    "Span",
    "Status",
    "Task",
    "Unit",
    "Verdict",
    "Word",
    "decode_json",
    "decode_text",
    "encode",
    "from_mapping",
    "sample_from",
]

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Record(msgspec.Struct, frozen=True):
    """Base of records; subclasses are frozen."""


def _check_range(start: int, end: int, what: str) -> None:
    if start < 0 or end <= start:
        raise ValueError(f"a {what} is half-open and never empty, but this one is [{start}, {end})")


def _check_share(value: float | None, what: str) -> None:
    if value is not None and not 0.0 <= value <= 1.0:
        raise ValueError(f"a {what} lies between 0 and 1, but this one is {value}")


class Pointer(Record, omit_defaults=True):
    """A passage of the evidence: its id, and the range `[start, end)` in code points of its text."""

    id: str
    start: int
    end: int

    def __post_init__(self) -> None:
        _check_range(self.start, self.end, "pointer")


class Span(Record, omit_defaults=True):
    """A marked part of a response.

    Attributes:
        start: first code point, counted from 0.
        end: one past the last code point; always greater than `start`.
        type: a type of the span's taxonomy, or None if spans have no type.
        confidence: probability between 0 and 1 that the span is right, or None if it is not known.
        text: the marked text, for readers only; the offsets are authoritative.
        evidence: the passages of the evidence that the span was compared with.
    """

    start: int
    end: int
    type: str | None = None
    confidence: float | None = None
    text: str | None = None
    evidence: tuple[Pointer, ...] = ()

    def __post_init__(self) -> None:
        _check_range(self.start, self.end, "span")
        _check_share(self.confidence, "confidence")


class Unit(Record, omit_defaults=True):
    """A labelled unit of a response: a sentence, an atomic fact, a token.

    Attributes:
        start, end: half-open and never empty, in code points, counted from 0.
        label: a label of the annotation's taxonomy, such as `supported`.
        probability: the share of annotators who gave the label, if the source has soft labels.
        evidence: the passages of the evidence behind the label.
        counts: number of the unit's facts with each label, if they were counted (Kang et al., Table 5).
    """

    start: int
    end: int
    label: str
    probability: float | None = None
    evidence: tuple[Pointer, ...] = ()
    counts: dict[str, int] = {}

    def __post_init__(self) -> None:
        _check_range(self.start, self.end, "unit")
        _check_share(self.probability, "probability")


class Word(Record, omit_defaults=True):
    """One word of a response with the probability (0 to 1) that the evidence does not support it.

    Attributes:
        start, end: half-open and never empty, in code points, counted from 0.
        confidence: probability that the word is unsupported.
        evidence: for a supported word, the passages of the evidence that support it.
    """

    start: int
    end: int
    confidence: float
    evidence: tuple[Pointer, ...] = ()

    def __post_init__(self) -> None:
        _check_range(self.start, self.end, "word")
        _check_share(self.confidence, "confidence")


class JudgedUnit(Record, omit_defaults=True):
    """One sentence or atomic fact of a response with the probability (0 to 1) that anything in it is unsupported.

    Attributes:
        start, end: half-open and never empty, in code points, counted from 0.
        kind: `sentence`, or the kind of fact: `clause`, `aside`, `date`, `number`, `name`.
        score: probability that the evidence does not support all of it.
        parts: its ranges, half-open and in order, if other units are between them; empty if it is all of
            `[start, end)`.
    """

    start: int
    end: int
    kind: str
    score: float
    parts: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        _check_range(self.start, self.end, "unit")
        _check_share(self.score, "score")
        reached = self.start
        for start, end in self.parts:
            _check_range(start, end, "part of a unit")
            if start < reached or end > self.end:
                raise ValueError(f"the parts of a unit lie in it, in order, but [{start}, {end}) does not")
            reached = end


class Task(StrEnum):
    """The task of the response."""

    QA = "qa"
    SUMMARIZATION = "summarization"
    TRANSLATION = "translation"
    BIOGRAPHY = "biography"
    DIALOGUE = "dialogue"
    OPEN = "open"


class Kind(StrEnum):
    """The annotator's kind: a person (gold) or a model (silver)."""

    HUMAN = "human"
    MODEL = "model"


class Evidence(Record, omit_defaults=True):
    """One passage that the response is compared with; for a translation, the source text.

    Attributes:
        text: the passage.
        id: its name in the sample; `Sample` fills in `p0`, `p1` ... if it is None.
        title: its heading, if any.
        language: BCP 47 tag of the passage, if known; it may differ from the response's.
        url: its address.
    """

    text: str
    id: str | None = None
    title: str | None = None
    language: str | None = None
    url: str | None = None


class Generator(Record, omit_defaults=True):
    """The model that gave a response, with the settings needed to reproduce it."""

    name: str
    revision: str | None = None
    seed: int | None = None
    settings: dict[str, Any] = {}


class Annotation(Record, omit_defaults=True):
    """One annotator's labels of one sample.

    Attributes:
        annotator: the annotator's name, chosen freely ("gold", "annotator_1", "gpt-4").
        kind: a person or a model.
        taxonomy: the name of the taxonomy of types and labels.
        spans: the marked spans; `()` if the annotator found nothing, None if spans were not annotated.
        units: labelled units (sentences, facts, tokens), or None if units were not annotated.
        ratings: named ratings, such as `{"fools_reader": 4}`.
        flags: named flags, such as `context_conflict`.
    """

    annotator: str
    kind: Kind
    taxonomy: str
    spans: tuple[Span, ...] | None = None
    units: tuple[Unit, ...] | None = None
    ratings: dict[str, float | str] = {}
    flags: tuple[str, ...] = ()


class Sample(Record, omit_defaults=True):
    """One response to check.

    Attributes:
        id: unique in a file.
        response: the text to check; offsets of spans are code points of this text.
        task: of the response.
        language: BCP 47 tag of the response, or None to identify it.
        question: the question or prompt, if there was one.
        evidence: the passages, in order; each has an id once the sample exists.
        generator: the model that gave the response.
        annotations: one per annotator.
        meta: everything else in the source.

    Raises:
        TypeError: a passage is not an `Evidence`.
        ValueError: two passages share an id, or a span or unit ends beyond the response. Decoding reports it as an
            `InputError` with file, line and field.
    """

    id: str
    response: str
    task: Task = Task.OPEN
    language: str | None = None
    question: str | None = None
    evidence: tuple[Evidence, ...] = ()
    generator: Generator | None = None
    annotations: tuple[Annotation, ...] = ()
    meta: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if not all(isinstance(passage, Evidence) for passage in self.evidence):
            raise TypeError("`evidence` of a Sample is a list of Evidence: evidence=[Evidence(text)]")
        numbered = enumerate(self.evidence)
        named = tuple(p if p.id is not None else msgspec.structs.replace(p, id=f"p{i}") for i, p in numbered)
        msgspec.structs.force_setattr(self, "evidence", named)
        if len({passage.id for passage in self.evidence}) < len(self.evidence):
            raise ValueError("two passages share an id at `evidence`")
        for index, annotation in enumerate(self.annotations):
            for name in ("spans", "units"):
                for position, mark in enumerate(getattr(annotation, name) or ()):
                    if mark.end > len(self.response):
                        beyond = f"[{mark.start}, {mark.end}) ends beyond the response of {len(self.response)}"
                        raise ValueError(f"{beyond} code points at `annotations[{index}].{name}[{position}]`")

    @property
    def passages(self) -> list[str]:
        """The texts of the evidence."""
        return [passage.text for passage in self.evidence]

    @property
    def evidence_text(self) -> str:
        """The passages as one text, separated by empty lines."""
        return "\n\n".join(self.passages)


_CHOOSER = "chooser:"


class Status(StrEnum):
    """Whether the sample was checked, or why not.

    `nothing_to_compare` is for scorers whose share has denominator 0: a text without names has no agreement of names.
    """

    SCORED = "scored"
    UNSUPPORTED_LANGUAGE = "unsupported_language"
    NO_EVIDENCE = "no_evidence"
    TOO_LONG = "too_long"
    NOTHING_TO_COMPARE = "nothing_to_compare"
    FAILED = "failed"


class Verdict(StrEnum):
    """Whether anything in a response is unsupported. `not_checked` unless the status is `scored`."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    NOT_CHECKED = "not_checked"


class Prediction(Record, omit_defaults=True):
    """One detector's prediction for one sample, from plug-ins and in files; `veriglot.Prediction` wraps it.

    Attributes:
        id: the sample's id.
        status: `scored`, or why not.
        detector: name and revision of the detector that made it, such as `grounding@1.0`.
        score: probability between 0 and 1 that the response has any unsupported span; None unless scored.
        spans: the unsupported spans, in order; None unless scored.
        words: every word with its confidence, if requested.
        language: BCP 47 tag that the detector used (given or identified).
        notes: what a reader of this prediction must know, such as `calibration:default`.
        reason: why the sample was not scored.
        signature: one line that says how the prediction was made.
        units: the sentences or atomic facts of the response, each with its score, if requested.
        verdict: the prediction in one word, computed from the rest; a given one is ignored.

    Raises:
        ValueError: a scored prediction without spans, or an unscored one with spans or without a reason.
    """

    id: str
    status: Status
    detector: str
    score: float | None = None
    spans: tuple[Span, ...] | None = None
    words: tuple[Word, ...] | None = None
    language: str | None = None
    notes: tuple[str, ...] = ()
    reason: str | None = None
    signature: str | None = None
    units: tuple[JudgedUnit, ...] | None = None
    verdict: Verdict = msgspec.field(default_factory=lambda: Verdict.NOT_CHECKED)  # a plain default is not written

    @property
    def asked(self) -> str:
        """Name and revision of the detector that was called; it may have passed the sample on to `detector`."""
        parts = (self.signature or "").split("|")
        return next((part.removeprefix(_CHOOSER) for part in parts if part.startswith(_CHOOSER)), self.detector)

    def __post_init__(self) -> None:
        marked = Verdict.UNSUPPORTED if self.spans else Verdict.SUPPORTED
        msgspec.structs.force_setattr(self, "verdict", Verdict.NOT_CHECKED if self.spans is None else marked)
        if self.status is Status.SCORED:
            if self.spans is None or self.score is None:
                raise ValueError("a scored prediction has `spans` (possibly empty) and a `score`")
            _check_share(self.score, "`score`")
        elif any(given is not None for given in (self.spans, self.score, self.words, self.units)):
            raise ValueError(f"a prediction with status {self.status} has no `spans`, `words`, `units` or `score`")
        elif not self.reason:
            raise ValueError(f"a prediction with status {self.status} has a `reason`")


class Direction(StrEnum):
    """Whether a scorer's higher scores are better or worse."""

    HIGHER_IS_WORSE = "higher_is_worse"
    HIGHER_IS_BETTER = "higher_is_better"


class Score(Record, omit_defaults=True):
    """One scorer's score for one sample.

    Attributes:
        id: the sample's id.
        status: `scored`, or why not.
        scorer: name and revision, such as `top-ngram@1`.
        value: the score; None unless scored. Its range is the scorer's own; it is not a probability.
        parts: the numbers that it was computed from, by name.
        language: BCP 47 tag of the response that the scorer used (given or identified).
        reason: why the sample was not scored.
        signature: one line that says how the score was made.

    Raises:
        ValueError: a scored one without a finite value, or an unscored one with a value or without a reason.
    """

    id: str
    status: Status
    scorer: str
    value: float | None = None
    parts: dict[str, float] = {}
    language: str | None = None
    reason: str | None = None
    signature: str | None = None

    def __post_init__(self) -> None:
        if self.status is Status.SCORED:
            if self.value is None or not abs(self.value) < float("inf"):
                raise ValueError(f"a score with status scored has a finite `value`, not {self.value}")
        elif self.value is not None:
            raise ValueError(f"a score with status {self.status} has no `value`")
        elif not self.reason:
            raise ValueError(f"a score with status {self.status} has a `reason`")


@runtime_checkable
class Detector(Protocol):
    """Interface of detectors: samples in, predictions out; in batches, without state between calls.

    `predict` gives one prediction per sample, in order. It never raises because of a sample: one that it cannot
    check has a status other than `scored` and a reason. The prediction for a sample does not depend
    on the rest of its batch.

    A detector that passes samples on to others names those in its predictions, and itself in their signature, as
    `chooser:name`; `Prediction.asked` reads it from there.
    """

    @property
    def name(self) -> str:
        """Name and revision, such as `grounding@1.0`."""

    @property
    def taxonomy(self) -> str:
        """Name of the taxonomy of its span types."""

    @property
    def threshold(self) -> float:
        """Confidence from which a word counts as marked."""

    @property
    def signature(self) -> str:
        """One line that says how it makes predictions."""

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        """Predict a batch."""


@runtime_checkable
class Scorer(Protocol):
    """Interface of scorers: samples in, scores out; like a detector, but with one number per sample, uncalibrated.

    `score` gives one score per sample, in order. It never raises because of a sample: one that it cannot score has
    a status other than `scored` and a reason. The score of a sample does not depend on the rest of its batch.
    """

    @property
    def name(self) -> str:
        """Name and revision, such as `top-ngram@1`."""

    @property
    def direction(self) -> Direction:
        """Whether a higher score is better or worse."""

    @property
    def signature(self) -> str:
        """One line that says how it makes scores."""

    def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Score a batch."""


class Interval(Record, kw_only=True):
    """The two ends of an interval, of level 0.95 unless another was requested; None if there is none.

    Subclasses have the value of the interval, under its usual name (`r`, `difference`).
    """

    low: float | None = None
    high: float | None = None


class Estimate(Interval, kw_only=True):
    """A number with its interval; `value` is None if it is undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None


class Estimator(StrEnum):
    """How a rate is computed from a detector's marks.

    `raw`: the marked share. `paper`: raw x precision / recall (mFAVA, equation 1). `label-shift`: from TPR
    and FPR, which do not change with prevalence. `em`: the mixture of the profile's confidence distributions that
    fits the study's best. `ppi`: the marked share, corrected by labels from the study itself.
    """

    RAW = "raw"
    PAPER = "paper"
    LABEL_SHIFT = "label-shift"
    EM = "em"
    PPI = "ppi"


class Reliability(StrEnum):
    """Whether a number is reliable."""

    OK = "ok"
    UNRELIABLE = "unreliable"


class Rate(Record):
    """One estimate. Shares are between 0 and 1.

    Attributes:
        model: name of the generator; None if the samples name none.
        language: BCP 47 tag, or `*` for all together.
        rate: the estimate; None if there are no data for it.
        low: lower end of the interval; None without one.
        high: upper end of the interval; None without one.
        estimator: its estimator.
        unit: `char`, `word` or `hf:<tokenizer>`.
        units: number of units scored.
        responses: number of responses scored.
        coverage: responses scored over responses given or, in a study, planned, between 0 and 1.
        status: `ok`, or `unreliable` with a reason.
        reason: why the rate is unreliable, one sentence for each finding; None if `status` is `ok`.
        signature: one line that says how the figure was computed.
        detector: name and revision of the detector.
        seed: seed of the responses; None if the rate is over all.

    Raises:
        ValueError: `unreliable` without a reason, or `ok` without a rate or with a reason.
    """

    model: str | None
    language: str
    rate: float | None
    low: float | None
    high: float | None
    estimator: Estimator
    unit: str
    units: int
    responses: int
    coverage: float
    status: Reliability
    reason: str | None
    signature: str
    detector: str | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.status is Reliability.UNRELIABLE and not self.reason:
            raise ValueError("an unreliable rate has a `reason`")
        if self.status is Reliability.OK and (self.reason or self.rate is None):
            raise ValueError("a rate with status ok has a `rate` and no `reason`")


CONFIDENCE_BINS = 20
"""Number of equal bins of a profile's confidences on [0, 1]: bin k is k/20 <= c < (k + 1)/20, the last includes 1.0."""


class Confusion(NamedTuple):
    """Counts of units in one response: true and false positives, false and true negatives."""

    tp: int
    fp: int
    fn: int
    tn: int


class LanguageProfile(Record, omit_defaults=True):
    """Error rates over the responses of one language (or of all).

    A rate with denominator 0 is None, since it was not measured.

    Attributes:
        tp: unsupported units that were marked.
        fp: supported units that were marked.
        fn: unsupported units that were not marked.
        tn: supported units that were not marked.
        tpr: tp / (tp + fn).
        fpr: fp / (fp + tn).
        precision: tp / (tp + fp).
        recall: equal to `tpr`; the name used together with precision.
        prevalence: (tp + fn) / all units.
        responses: the counts of each response, so that it can be resampled without inference.
        clusters: cluster number of each response: responses to one text have the same. Empty if each is a cluster of
            its own.
        confidences: units by confidence, in 20 equal bins on [0, 1], each `[unsupported, supported]`. Empty if the
            detector did not give a confidence for every word.
        histograms: the same for each response, without empty bins, each `[bin, unsupported, supported]`, for
            resampling. Empty like `confidences`.
    """

    tp: int
    fp: int
    fn: int
    tn: int
    tpr: float | None
    fpr: float | None
    precision: float | None
    recall: float | None
    prevalence: float | None
    responses: tuple[Confusion, ...]
    clusters: tuple[int, ...] = ()
    confidences: tuple[tuple[int, int], ...] = ()
    histograms: tuple[tuple[tuple[int, int, int], ...], ...] = ()

    def __post_init__(self) -> None:
        if self.clusters and len(self.clusters) != len(self.responses):
            raise ValueError(f"{len(self.clusters)} `clusters` for {len(self.responses)} `responses`")
        if self.confidences and len(self.confidences) != CONFIDENCE_BINS:
            raise ValueError(f"`confidences` has {CONFIDENCE_BINS} bins, not {len(self.confidences)}")
        if self.histograms and len(self.histograms) != len(self.responses):
            raise ValueError(f"{len(self.histograms)} `histograms` for {len(self.responses)} `responses`")
        if any(not 0 <= cell[0] < CONFIDENCE_BINS for cells in self.histograms for cell in cells):
            raise ValueError(f"`histograms` names a bin outside 0 to {CONFIDENCE_BINS - 1}")

    @classmethod
    def of(
        cls,
        responses: Iterable[Confusion],
        *,
        clusters: Sequence[int] = (),
        confidences: Iterable[tuple[int, int]] = (),
        histograms: Iterable[Iterable[tuple[int, int, int]]] = (),
    ) -> LanguageProfile:
        """Sum the counts of responses into rates; for the other arguments see the attributes.

        Without `confidences`, those are summed from `histograms`.
        """
        counts = tuple(Confusion(*row) for row in responses)
        cells = tuple(tuple(part) for part in histograms)
        tp, fp, fn, tn = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0, 0, 0)
        tpr = tp / (tp + fn) if tp + fn else None
        return cls(
            tp, fp, fn, tn,
            tpr=tpr,
            fpr=fp / (fp + tn) if fp + tn else None,
            precision=tp / (tp + fp) if tp + fp else None,
            recall=tpr,
            prevalence=(tp + fn) / sum((tp, fp, fn, tn)) if any((tp, fp, fn, tn)) else None,
            responses=counts,
            clusters=tuple(clusters),
            confidences=tuple(confidences) or _summed(cells),
            histograms=cells,
        )  # fmt: skip


def _summed(histograms: Iterable[Iterable[tuple[int, int, int]]]) -> tuple[tuple[int, int], ...]:
    """Units of all responses by confidence; empty if there are none."""
    sums = [[0, 0] for _ in range(CONFIDENCE_BINS)]
    for index, unsupported, supported in (cell for cells in histograms for cell in cells):
        sums[index][0] += unsupported
        sums[index][1] += supported
    return tuple((unsupported, supported) for unsupported, supported in sums) if any(map(any, sums)) else ()


class DataSource(Record, omit_defaults=True):
    """The data of a profile: its SHA-256, the kind of its labels (`gold`, `silver`, `mixed`), and its name."""

    sha256: str
    kind: str
    name: str | None = None


class ErrorProfile(Record, omit_defaults=True):
    """A detector's error rates for one unit and one threshold.

    Attributes:
        unit: `char`, `word` or `hf:<tokenizer>`.
        threshold: confidence from which a unit counts as marked.
        languages: BCP 47 tag to rates; `pooled` are those over all languages.
        signature: one line that says how it was measured.
    """

    unit: str
    threshold: float
    detector: str
    languages: dict[str, LanguageProfile]
    pooled: LanguageProfile
    data: DataSource
    signature: str


_PARTS: dict[type[msgspec.Struct], dict[str, type[msgspec.Struct]]] = {
    Sample: {"generator": Generator, "evidence": Evidence, "annotations": Annotation},
    Annotation: {"spans": Span, "units": Unit},
}
_MISSING = re.compile(r"missing required field `([^`]*)`")
_PATH_IN_DETAIL = re.compile(r" at `([^`]*)`")
_WRONG_KIND = re.compile(r"^Expected `([^`]*)`, got `([^`]*)`$")
_KINDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": "an object",
    "str": "a string",
}
_REMEDIES = {
    "evidence": 'Write evidence as a list of objects: [{"text": "..."}].',
    "id": "Every row needs an id of its own, a string.",
}
_decoder = msgspec.json.Decoder()


def decode_text(data: bytes) -> str:
    """Decode UTF-8.

    Raises:
        InputError: it is not valid UTF-8; the message says where.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = f"byte {error.start} is 0x{data[error.start]:02x}"
        remedy = "Save the file as UTF-8; if only some lines are not, convert these."
        raise InputError(f"this is not valid UTF-8: {byte}", remedy) from error


def decode_json(line: bytes | str) -> Any:
    """Parse one JSON text. NaN, which Python's `json` writes, is read as null, a lone surrogate as U+FFFD.

    Raises:
        InputError: it is not valid JSON, or not valid UTF-8; the message has the position.
    """
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        with suppress(ValueError, RecursionError):
            text = decode_text(line) if isinstance(line, bytes) else line
            plain = json.dumps(json.loads(text, parse_constant=lambda _: None), ensure_ascii=False)
            return _decoder.decode(plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
        raise InputError(f"this is not valid JSON: {error}", "Check that the line is complete.") from error


def from_mapping(data: Any, type_: type[T]) -> T:
    """Convert plain Python data to a record type.

    Raises:
        InputError: it does not fit; `field` is its path.
    """
    try:
        return msgspec.convert(data, type_)
    except msgspec.ValidationError as error:
        detail, _, path = str(error).partition(" - at `$")
        field = path.removesuffix("`").removeprefix(".")
        if missing := _MISSING.search(detail):
            field, detail = f"{field}.{missing[1]}" if field else missing[1], "it is missing"
        if named := _PATH_IN_DETAIL.search(detail):  # a check over several fields names its own path
            field, detail = named[1], detail.replace(named[0], "")
        if wrong := _WRONG_KIND.match(detail):  # in JSON's terms; `str | null` has more than one
            wanted, got = (" or ".join(_KINDS.get(name, name) for name in text.split(" | ")) for text in wrong.groups())
            detail = f"{wanted} is expected, and this is {got}"
        remedy = _REMEDIES.get(re.sub(r"\[\d+\]$", "", field), "")
        raise (InputTypeError if wrong else InputError)(detail, remedy, field=field or None) from error


def sample_from(data: Any) -> Sample:
    """A sample from a decoded JSON object; unknown keys go to `meta`.

    Unknown keys of nested objects go there under their path, such as `evidence[0].score`.

    Raises:
        InputError: a field is missing, of the wrong type, or out of range.
    """
    if isinstance(data, dict):
        if unknown := dict(_unknown_in(data, Sample, "")):
            data = {key: value for key, value in data.items() if key in Sample.__struct_fields__}
            data["meta"] = unknown | meta if isinstance(meta := data.get("meta"), dict) else unknown
        data = {key: value for key, value in data.items() if value is not None}
    return from_mapping(data, Sample)


def _unknown_in(data: Any, kind: type[msgspec.Struct], path: str) -> Iterator[tuple[str, Any]]:
    """The unknown keys of an object or a list of them, and of nested objects, by path."""
    if isinstance(data, list):
        for index, item in enumerate(data):
            yield from _unknown_in(item, kind, f"{path}[{index}]")
    elif isinstance(data, dict):
        prefix = f"{path}." if path else ""
        yield from ((prefix + key, value) for key, value in data.items() if key not in kind.__struct_fields__)
        for key, part in _PARTS.get(kind, {}).items():
            yield from _unknown_in(data.get(key), part, prefix + key)


def encode(record: msgspec.Struct) -> bytes:
    """One record as one line of JSON, without the line break; null fields are left out."""
    return msgspec.json.encode(record)
