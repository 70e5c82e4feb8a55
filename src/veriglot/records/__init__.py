"""The data model: samples, evidence, spans, annotations, predictions, rates, profiles, and their JSON.

Readers keep keys they do not know in `meta`; writers leave out null. What was not checked is never reported as clean.
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
    """Base of records: what derives from it is frozen."""


def _check_range(start: int, end: int, what: str) -> None:
    if start < 0 or end <= start:
        raise ValueError(f"a {what} is half-open and never empty, but this one is [{start}, {end})")


def _check_share(value: float | None, what: str) -> None:
    if value is not None and not 0.0 <= value <= 1.0:
        raise ValueError(f"a {what} lies between 0 and 1, but this one is {value}")


class Pointer(Record, omit_defaults=True):
    """A place in the evidence: which passage, and `[start, end)` in code points of its text."""

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
        type: a type of the taxonomy that the span belongs to, or None where spans carry no type.
        confidence: probability between 0 and 1 that the span is what it says, or None where none is known.
        text: the marked text, for readers; offsets are what counts.
        evidence: the places in the evidence that the span was held against.
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
        probability: the share of annotators who gave the label, where that is what the source holds (soft labels).
        evidence: the places in the evidence that the label rests on.
        counts: how many facts of the unit have which label, where they were counted (Kang et al., Table 5).
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
        evidence: for a supported word, the places in the evidence that support it.
    """

    start: int
    end: int
    confidence: float
    evidence: tuple[Pointer, ...] = ()

    def __post_init__(self) -> None:
        _check_range(self.start, self.end, "word")
        _check_share(self.confidence, "confidence")


class JudgedUnit(Record, omit_defaults=True):
    """One sentence or atomic fact of a response with the probability (0 to 1) that it holds anything unsupported.

    Attributes:
        start, end: half-open and never empty, in code points, counted from 0.
        kind: `sentence`, or what kind of fact it is: `clause`, `aside`, `date`, `number`, `name`.
        score: probability that the evidence does not support all of it.
        parts: the places that it is made of, half-open and in order, where other units lie between them; empty where
            it is all of `[start, end)`.
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
    """What the response was asked to do."""

    QA = "qa"
    SUMMARIZATION = "summarization"
    TRANSLATION = "translation"
    BIOGRAPHY = "biography"
    DIALOGUE = "dialogue"
    OPEN = "open"


class Kind(StrEnum):
    """Who made a label: a person (gold) or a model (silver)."""

    HUMAN = "human"
    MODEL = "model"


class Evidence(Record, omit_defaults=True):
    """One passage that the response is held against; in a translation, the source text.

    Attributes:
        text: the passage.
        id: its name inside the sample; `Sample` fills in `p0`, `p1` ... where it is None.
        title: its heading, if any.
        language: BCP 47 tag of the passage, if it is known; it may differ from the response's.
        url: where it stands.
    """

    text: str
    id: str | None = None
    title: str | None = None
    language: str | None = None
    url: str | None = None


class Generator(Record, omit_defaults=True):
    """The model that gave a response, with what is needed to ask it again."""

    name: str
    revision: str | None = None
    seed: int | None = None
    settings: dict[str, Any] = {}


class Annotation(Record, omit_defaults=True):
    """What one annotator said of one sample.

    Attributes:
        annotator: who, by a chosen name ("gold", "annotator_1", "gpt-4").
        kind: a person or a model.
        taxonomy: the name of the taxonomy that types and labels belong to.
        spans: the marked spans; `()` where the annotator looked and found nothing, None where spans were not asked for.
        units: labelled units (sentences, facts, tokens), or None where units were not asked for.
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
    """One response to judge.

    Attributes:
        id: unique inside a file.
        response: the text to judge; offsets of spans are code points of this text.
        task: what was asked for.
        language: BCP 47 tag of the response, or None where it has to be detected.
        question: the question or prompt, if there was one.
        evidence: the passages, in order; each has an id once the sample exists.
        generator: the model that gave the response.
        annotations: one per annotator.
        meta: everything else that the source held.

    Raises:
        TypeError: a passage is no `Evidence`.
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
        """The passages as one text, an empty line between them."""
        return "\n\n".join(self.passages)


_CHOOSER = "chooser:"


class Status(StrEnum):
    """Whether the sample was checked, or why not.

    `nothing_to_compare` is what scorers say of a share of nothing: a text without names has none that agree.
    """

    SCORED = "scored"
    UNSUPPORTED_LANGUAGE = "unsupported_language"
    NO_EVIDENCE = "no_evidence"
    TOO_LONG = "too_long"
    NOTHING_TO_COMPARE = "nothing_to_compare"
    FAILED = "failed"


class Verdict(StrEnum):
    """Whether anything in a response is unsupported. Without status `scored` it is `not_checked`."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    NOT_CHECKED = "not_checked"


class Prediction(Record, omit_defaults=True):
    """One detector's answer for one sample, as plug-ins give and files hold it; `veriglot.Prediction` wraps it.

    Attributes:
        id: the sample's id.
        status: `scored`, or why not.
        detector: name and revision of the detector that judged the sample, such as `grounding@1.0`.
        score: probability between 0 and 1 that the response holds any unsupported span; None unless scored.
        spans: the unsupported spans, in order; None unless scored.
        words: every word with its confidence, where they were asked for.
        language: BCP 47 tag that the detector worked in (given or detected).
        notes: what a reader of this prediction must know, such as `calibration:default`.
        reason: why the sample was not scored.
        signature: one line that says how the prediction was made.
        units: the sentences or atomic facts of the response, each with its score, where they were asked for.
        verdict: the prediction in one word, from the rest; one that is given does not count.

    Raises:
        ValueError: a scored prediction without spans, or spans or no reason on one that was not scored.
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
        """Name and revision of the detector that was asked; it may have handed the sample on to `detector`."""
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
    """Which way a scorer's numbers go."""

    HIGHER_IS_WORSE = "higher_is_worse"
    HIGHER_IS_BETTER = "higher_is_better"


class Score(Record, omit_defaults=True):
    """One scorer's number for one sample.

    Attributes:
        id: the sample's id.
        status: `scored`, or why not.
        scorer: name and revision, such as `top-ngram@1`.
        value: the number; None unless scored. Its range is the scorer's own, and no probability.
        parts: the numbers that it was made from, by name.
        language: BCP 47 tag of the response that the scorer worked with (given or identified).
        reason: why the sample was not scored.
        signature: one line that says how the score was made.

    Raises:
        ValueError: a scored one without a finite value, or a value or no reason on one that was not scored.
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
    """Samples in, predictions out: batch first, no state between calls.

    `predict` gives one prediction per sample, in order. It never raises because of a sample: what it cannot
    judge comes back with a status other than `scored` and a reason. The result for a sample does not depend
    on the rest of its batch.

    A detector that hands samples on to others names those in its predictions, and itself in their signature, as
    `chooser:name`; `Prediction.asked` finds it there.
    """

    @property
    def name(self) -> str:
        """Name and revision, such as `grounding@1.0`."""

    @property
    def taxonomy(self) -> str:
        """Name of the taxonomy that its span types belong to."""

    @property
    def threshold(self) -> float:
        """Confidence from which a word counts as marked."""

    @property
    def signature(self) -> str:
        """One line that says how its predictions are made."""

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        """Judge a batch."""


@runtime_checkable
class Scorer(Protocol):
    """Samples in, numbers out: like a detector, but with one number a sample, no spans, and no calibration.

    `score` gives one score per sample, in order. It never raises because of a sample: what it cannot score comes back
    with a status other than `scored` and a reason. The score of a sample does not depend on the rest of its batch.
    """

    @property
    def name(self) -> str:
        """Name and revision, such as `top-ngram@1`."""

    @property
    def direction(self) -> Direction:
        """Whether a higher number speaks against a response or for it."""

    @property
    def signature(self) -> str:
        """One line that says how its scores are made."""

    def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Score a batch."""


class Interval(Record, kw_only=True):
    """The two ends of an interval, of level 0.95 unless its maker was asked for another; None where there is none.

    What inherits it states the number that the interval is of, by the name that its readers know (`r`, `difference`).
    """

    low: float | None = None
    high: float | None = None


class Estimate(Interval, kw_only=True):
    """A number with its interval; `value` is None where it is undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None


class Estimator(StrEnum):
    """How a rate is made from what a detector marked.

    `raw`: the share that was marked. `paper`: raw x precision / recall (mFAVA, equation 1). `label-shift`: from TPR
    and FPR, which stay when prevalence changes. `em`: the mixture of the profile's confidence distributions that
    explains the study's best. `ppi`: the marked share, rectified by labels from the study itself.
    """

    RAW = "raw"
    PAPER = "paper"
    LABEL_SHIFT = "label-shift"
    EM = "em"
    PPI = "ppi"


class Reliability(StrEnum):
    """Whether the data support the number."""

    OK = "ok"
    UNRELIABLE = "unreliable"


class Rate(Record):
    """One estimate. Shares lie between 0 and 1.

    Attributes:
        model: name of the generator; None where the samples name none.
        language: BCP 47 tag, or `*` for all together.
        rate: the estimate; None where there is nothing to estimate from.
        low: lower end of the interval; None without one.
        high: upper end of the interval; None without one.
        estimator: how it was made.
        unit: `char`, `word` or `hf:<tokenizer>`.
        units: number of units judged.
        responses: number of responses judged.
        coverage: responses judged over responses given or, in a study, asked for, between 0 and 1.
        status: `ok`, or `unreliable` with a reason.
        reason: what the data do not support, one sentence for each finding; None where `status` is `ok`.
        signature: one line that says how the figure was made.
        detector: name and revision of the detector.
        seed: seed of the responses, where the rate is of one seed; None where it is of all.

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
"""Equal bins on [0, 1] of a profile's confidences: bin k holds k/20 <= c < (k + 1)/20, the last one 1.0 as well."""


class Confusion(NamedTuple):
    """Counts of units in one response: true and false positives, false and true negatives."""

    tp: int
    fp: int
    fn: int
    tn: int


class LanguageProfile(Record, omit_defaults=True):
    """Error rates over the responses of one language (or of all).

    A rate whose denominator is zero is None: it was not measured.

    Attributes:
        tp: unsupported units that were marked.
        fp: supported units that were marked.
        fn: unsupported units that were not marked.
        tn: supported units that were not marked.
        tpr: tp / (tp + fn).
        fpr: fp / (fp + tn).
        precision: tp / (tp + fp).
        recall: the same figure as `tpr`, under the name that the field uses beside precision.
        prevalence: (tp + fn) / all units.
        responses: the counts of each response, so that it can be resampled without inference.
        clusters: what each response belongs to, as numbers: responses to one text share one. Empty where each is
            its own.
        confidences: units by confidence, in 20 equal bins on [0, 1], each `[unsupported, supported]`. Empty where the
            detector gave no confidence of every word.
        histograms: the same of each response, without its empty bins, each `[bin, unsupported, supported]`, so that
            they can be resampled. Empty like `confidences`.
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
        """Sum the counts of responses into rates; the rest as the attributes.

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
    """Units of all responses by confidence; empty where there are none."""
    sums = [[0, 0] for _ in range(CONFIDENCE_BINS)]
    for index, unsupported, supported in (cell for cells in histograms for cell in cells):
        sums[index][0] += unsupported
        sums[index][1] += supported
    return tuple((unsupported, supported) for unsupported, supported in sums) if any(map(any, sums)) else ()


class DataSource(Record, omit_defaults=True):
    """Which data a profile was measured on: SHA-256, whose labels (`gold`, `silver`, `mixed`), and its name."""

    sha256: str
    kind: str
    name: str | None = None


class ErrorProfile(Record, omit_defaults=True):
    """A detector's error rates at one unit and one threshold.

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
_NAMED_PLACE = re.compile(r" at `([^`]*)`")
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
    """The text of UTF-8.

    Raises:
        InputError: it is not valid UTF-8; the message says where.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = f"byte {error.start} is 0x{data[error.start]:02x}"
        raise InputError(f"this is not valid UTF-8: {byte}", "Convert the file to UTF-8 first.") from error


def decode_json(line: bytes | str) -> Any:
    """Parse one JSON text. Python's `json` writes more than JSON: NaN is read as null, a lone surrogate as U+FFFD.

    Raises:
        InputError: it is not valid JSON, or not valid UTF-8; the message says where it broke off.
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
    """Check plain Python data against a record type.

    Raises:
        InputError: it does not fit; `field` names the place.
    """
    try:
        return msgspec.convert(data, type_)
    except msgspec.ValidationError as error:
        detail, _, path = str(error).partition(" - at `$")
        field = path.removesuffix("`").removeprefix(".")
        if missing := _MISSING.search(detail):
            field, detail = f"{field}.{missing[1]}" if field else missing[1], "it is missing"
        if named := _NAMED_PLACE.search(detail):  # a check that spans several fields names its own place
            field, detail = named[1], detail.replace(named[0], "")
        if wrong := _WRONG_KIND.match(detail):  # in the words of JSON; `str | null` names more than one
            wanted, got = (" or ".join(_KINDS.get(name, name) for name in text.split(" | ")) for text in wrong.groups())
            detail = f"{wanted} is expected, and this is {got}"
        remedy = _REMEDIES.get(re.sub(r"\[\d+\]$", "", field), "")
        raise (InputTypeError if wrong else InputError)(detail, remedy, field=field or None) from error


def sample_from(data: Any) -> Sample:
    """A sample from a decoded JSON object; unknown keys go to `meta`.

    Those inside an object of the sample go there under their path, such as `evidence[0].score`.

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
    """The unknown keys of an object or a list of them, and of the objects in it, by path."""
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
