"""Evaluate a detector against labels: takes samples and predictions, gives figures and the error profile.

Samples without labels, and samples that the detector did not score, are in no figure. Both are counted and shown as
coverage; an unscored sample never counts as clean.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from veriglot.bench.items import cluster_of, made_by, same_maker, tag_of, type_mapping
from veriglot.bench.results import BenchConfusion
from veriglot.detectors.registry import as_detector
from veriglot.errors import InputTypeError, UnknownNameError, UsageError
from veriglot.metrics.counts import Builder, Counts, CountsFile, Coverage, JudgedResponse
from veriglot.metrics.measures import RESAMPLES, SEED, figures, reliability_tables
from veriglot.metrics.reference import (
    COMBINED,
    FlagFilter,
    Marks,
    Reference,
    answer,
    at_threshold,
    check_pair,
    majority_type,
    reference,
    require_annotator,
    response_label,
    source_of,
)
from veriglot.metrics.scores import ReliabilityBin, coarse_bin
from veriglot.metrics.spans import ranges, segmenter
from veriglot.records import (
    CONFIDENCE_BINS,
    Confusion,
    DataSource,
    Detector,
    ErrorProfile,
    Kind,
    LanguageProfile,
    Prediction,
    Sample,
    Status,
    encode,
)
from veriglot.records.taxonomy import taxonomies, taxonomy
from veriglot.signatures import __version__, digest, signature

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from veriglot.arrays import Float64s
    from veriglot.metrics.estimate import MetricResult

__all__ = [
    "Evaluation",
    "Evaluator",
    "Settings",
    "evaluate",
    "grain_of_types",
    "measured",
    "response_types",
    "taxonomy_of_types",
    "type_confusions",
]


# Map the types of the data and of the detector to one taxonomy.


@dataclass
class Types:
    """The types of a taxonomy that mark text as unsupported, and how the detector's types map to them.

    Attributes:
        taxonomy: its name; None if types are not compared.
        names: its types.
        detector: type of the detector to type of `taxonomy`.
        why: why types are not compared, or how they were mapped.
    """

    taxonomy: str | None
    names: tuple[str, ...]
    detector: dict[str, str]
    why: str = ""

    def of_detector(self, types: Sequence[str | None]) -> tuple[str | None, ...]:
        """Map the detector's types to `taxonomy`; None for a type without a counterpart."""
        return tuple(self.detector.get(name) if name is not None else None for name in types)

    def of_reference(self, source: str | None, types: Sequence[str | None]) -> tuple[str | None, ...]:
        """Map the types of reference spans to `taxonomy`; None for a type without a counterpart."""
        if self.taxonomy is None or source is None:
            return (None,) * len(types)
        mapping = type_mapping(source, self.taxonomy) or {}
        return tuple(mapping.get(name) if name is not None else None for name in types)


def taxonomy_of_types(types: Collection[str], preferred: str | None = None) -> str | None:
    """The taxonomy that has all of these types: the preferred one if it does, else the first."""
    if not types:
        return None
    order = ([preferred] if preferred in taxonomies() else []) + list(taxonomies())
    return next((name for name in order if name and set(types) <= set(taxonomy(name).types)), None)


def compare_types(data: str | None, detector: str | None, asked: str | None, given: Collection[str]) -> Types:
    """Choose the taxonomy in which types are compared.

    That is `asked`, or else the data's own if the detector's types map to it, or else the detector's if the data's
    types map to it. If neither maps to the other, types are not compared and there are only binary figures.

    `given` are the types in the predictions, used if the detector's taxonomy is not known.

    Raises:
        UnknownNameError: `asked` or `detector` is no taxonomy.
        UsageError: types of the data or of the detector do not map to the taxonomy that was asked for.
    """
    for name in (asked, detector):
        if name is not None:
            taxonomy(name)
    detector = detector or taxonomy_of_types(given, data)
    if detector is None or data is None:
        side = "predictions" if detector is None else "labels"
        return Types(None, (), {}, f"types are not compared: the {side} are not of one known taxonomy")
    for target in [asked] if asked else [data, detector]:
        if target not in taxonomies():
            continue
        of_detector, of_data = type_mapping(detector, target), type_mapping(data, target)
        if of_detector is not None and of_data is not None:
            names = _types(target)
            mapped = {name for name in (detector, data) if name != target}
            several = mapped and len(names) > 1  # a single type means only "unsupported"
            why = f"types of {' and '.join(sorted(mapped))} are compared as those of {target}" if several else ""
            return Types(target, names, of_detector, why)
    if asked:
        raise UsageError(
            f"The types of the data ({data}) and of the detector ({detector}) do not both map to {asked!r}.",
            "Leave --taxonomy out to see the available figures.",
        )
    return Types(None, (), {}, f"types are not compared: none of {data} and {detector} maps to the other")


# Counts of units, and figures from them.


def language_profile(counts: Counts, language: str | None = None) -> LanguageProfile:
    """Error rates at the level of units in one language, or in all."""
    indices = np.flatnonzero([language is None or tag == language for tag in counts.languages])
    names: dict[str, int] = {}
    clusters = [names.setdefault(counts.clusters[index], len(names)) for index in indices]
    return LanguageProfile.of(
        (Confusion(*map(int, row)) for row in counts.blocks["unit"][indices]),
        clusters=clusters if len(names) < len(clusters) else (),
        histograms=_histograms(counts, indices),
    )


def _histograms(counts: Counts, places: NDArray[np.intp]) -> list[list[tuple[int, int, int]]]:
    """Units of each response by confidence; empty unless every scored response has confidences."""
    histogram = counts.histograms["unit"]
    with_units = places[counts.blocks["unit"][places].sum(axis=1) > 0]
    if not len(with_units) or not np.isin(with_units, histogram.response).all():
        return []
    order = np.full(len(counts), -1, np.int64)
    order[places] = np.arange(len(places))
    home = order[histogram.response]
    inside = home >= 0
    flat = home[inside] * CONFIDENCE_BINS + coarse_bin(histogram.bin[inside], CONFIDENCE_BINS)
    units = [np.bincount(flat, weights=histogram.values[inside, column]).round().astype(int) for column in (0, 1)]
    cells: list[list[tuple[int, int, int]]] = [[] for _ in places]
    for index in np.flatnonzero(units[0] + units[1]).tolist():
        response, bin_ = divmod(index, CONFIDENCE_BINS)
        cells[response].append((bin_, int(units[0][index]), int(units[1][index])))
    return cells


_BATCH = 64


@dataclass(frozen=True)
class Settings:
    """What is measured, and against which labels.

    Attributes:
        detector: name and revision of the detector.
        detector_signature: its own signature, or None.
        detector_taxonomy: taxonomy of its types; None to find one that has all `detector_types`.
        detector_types: the types in its predictions, if its taxonomy is not known.
        threshold: confidence from which its units count as marked; None where it is not known.
        unit: `char`, `word` or `hf:<tokenizer>`.
        annotator: see `metrics.reference`.
        taxonomy: the taxonomy to compare types in; None for the data's own.
        drop_flags: flags whose samples were dropped; see `metrics.reference.FlagFilter`.
        refilter: whether to threshold the predictions' confidences anew at `threshold` (see `metrics.reference`).
    """

    detector: str
    detector_signature: str | None = None
    detector_taxonomy: str | None = None
    detector_types: frozenset[str] = frozenset()
    threshold: float | None = None
    unit: str = "word"
    annotator: str | None = None
    taxonomy: str | None = None
    drop_flags: tuple[str, ...] = ()
    refilter: bool = False


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The result of an evaluation.

    Attributes:
        stored: counts, coverage and their sources.
        figures: every figure, in a fixed order.
        signature: one line that says how all figures were computed.
        notes: what a reader of the figures must know.
    """

    stored: CountsFile
    figures: list[MetricResult]
    signature: str
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> Counts:
        """The counts per response."""
        return self.stored.counts

    @property
    def coverage(self) -> dict[str, Coverage]:
        """Language to the status counts of its samples."""
        return self.stored.coverage

    def __repr__(self) -> str:
        shown = [f for f in self.figures if (f.level, f.name) == ("unit", "f1") and f.value is not None]
        texts = ", ".join(f"{f.language} {f.value:.3f}" for f in shown) or "none"
        return f"<Evaluation of {self.stored.about['detector']}: {self.counts.unit} F1 {texts}; see figures, notes>"

    def figure(self, level: str, name: str, language: str) -> MetricResult:
        """One figure, such as `("unit", "f1", "mean")`.

        Raises:
            UnknownNameError: there is no such figure.
        """
        known = {f"{f.level}.{f.name}.{f.language}": f for f in self.figures}
        wanted = f"{level}.{name}.{language}"
        if wanted not in known:
            raise UnknownNameError("figure", wanted, known)
        return known[wanted]

    def reliability(self, level: str = "unit") -> dict[str, list[ReliabilityBin]]:
        """Language (and `pooled`) to its reliability table; `level` is `unit`, `sentence` or `response`."""
        return reliability_tables(self.counts, level)

    def profile(self) -> ErrorProfile:
        """The error profile, at the level of units.

        Raises:
            UsageError: the threshold is not known, or no unit was labelled and scored.
        """
        about = self.stored.about
        threshold = about.get("threshold")
        if not isinstance(threshold, float):
            raise UsageError(
                "An error profile is for one threshold, and these predictions do not state theirs.",
                "Give it with --threshold.",
            )
        if not self.counts.blocks["unit"].any():
            raise UsageError(
                f"There is no error profile: it counts units ({self.counts.unit}), and no response with labelled spans"
                " was scored.",
                "Labels of whole responses give the figures of responses, not which words are wrong: make a profile of"
                " responses (--unit response), mark spans, or estimate without it (veriglot estimate --estimator raw).",
            )
        languages = {tag: language_profile(self.counts, tag) for tag in sorted(set(self.counts.languages))}
        return ErrorProfile(
            unit=self.counts.unit,
            threshold=threshold,
            detector=str(about["detector"]),
            languages=languages,
            pooled=language_profile(self.counts),
            data=DataSource(sha256=str(about["data"]), kind=str(about["kind"])),
            signature=self.signature,
        )


def measured(
    stored: CountsFile,
    *,
    seed: int = SEED,
    resamples: int = RESAMPLES,
    levels: Sequence[str] | None = None,
    notes: tuple[str, ...] = (),
) -> Evaluation:
    """Figures from counts, whether new or read from a file; runs no detector.

    Args:
        stored: the counts.
        seed: of the bootstrap.
        resamples: how many; 0 for no intervals.
        levels: the levels to give (`type` for all types), or None for all.
        notes: passed on.
    """
    about = {key: value for key, value in stored.about.items() if key != "version"}
    about["data"] = str(about["data"])[:16]
    line = signature(
        **about, unit=stored.counts.unit, seed=seed, resamples=resamples, version=stored.about.get("version")
    )
    results = figures(
        stored.counts, signature=line, coverage=stored.coverage, seed=seed, resamples=resamples, levels=levels
    )
    return Evaluation(stored, results, line, notes)


class Evaluator:
    """Adds up samples with their predictions, one by one; memory grows with the counts, not with the texts."""

    def __init__(self, settings: Settings, flags: FlagFilter | None = None) -> None:
        self.settings = settings
        self._flags = flags or FlagFilter(settings.drop_flags, settings.annotator)
        self._segment = segmenter(settings.unit)
        self._types: Types | None = None
        self._builder: Builder | None = None
        self._coverage: dict[str, Coverage] = {}
        self._hashes: list[str] = []
        self._kinds = set[Kind]()
        self._annotators, self._models, self._seen, self._without_rules = (set[str]() for _ in range(4))
        self._strange = Counter[str]()
        self._own = self._whole = self._unplaced = 0

    def add(self, sample: Sample, prediction: Prediction | None) -> None:
        """Count one sample; `prediction` is None if there is none.

        Raises:
            InputError: the prediction belongs to another sample or marks beyond the end of the response.
            UsageError: several annotators and none is named, or the threshold cannot be applied.
        """
        if prediction is not None:
            check_pair(sample, prediction)
        tag = tag_of(sample.language or (prediction.language if prediction else None))
        status = prediction.status if prediction is not None else "missing"
        labels, label_of_response = reference(sample, self.settings.annotator), None
        people = "union" if labels is not None and labels.annotator in COMBINED else self.settings.annotator
        if (rated := response_label(sample, people)) is not None:
            by, unsupported = rated
            self._unplaced += labels is not None and unsupported and not labels.marks.types
            if labels is None:
                label_of_response = unsupported
                labels = Reference(by.annotator, by.kind, by.taxonomy, Marks(ranges(()), ()), None)
                self._whole += 1
        self._hashes.append(digest([encode(sample)]))
        self._seen.update(a.annotator for a in sample.annotations)
        self._coverage[tag] = self._coverage.get(tag, Coverage()).with_sample(
            labelled=labels is not None, status=status
        )
        if labels is None:
            return
        self._kinds.add(labels.kind)
        self._annotators.add(labels.annotator)
        asked = self.settings
        if labels.kind is Kind.MODEL:
            self._models.add(labels.annotator)
            makers = made_by([sample], None if labels.annotator in COMBINED else labels.annotator)
            answered = {prediction.detector, prediction.asked} if prediction is not None else set()
            self._own += same_maker(makers, {asked.detector, *answered})
        if self._types is None:
            self._types = compare_types(labels.taxonomy, asked.detector_taxonomy, asked.taxonomy, asked.detector_types)
            self._builder = Builder(asked.unit, self._types.names)
        if prediction is not None and prediction.status is Status.SCORED:
            assert self._builder is not None
            self._builder.add(
                replace(self._judged(sample, prediction, labels, tag, self._types), unsupported=label_of_response)
            )

    def _judged(
        self, sample: Sample, prediction: Prediction, labels: Reference, tag: str, types: Types
    ) -> JudgedResponse:
        from veriglot.text.facts import fact_languages, facts
        from veriglot.text.segmentation import sentences

        length = len(sample.response)
        parts = np.array(sentences(sample.response, tag), np.int32).reshape(-1, 2)
        if self.settings.refilter and self.settings.threshold is not None:
            prediction = at_threshold(prediction, self.settings.threshold, parts)
        if tag.partition("-")[0] not in fact_languages():
            self._without_rules.add(tag)
        got = answer(prediction, length)
        gold_types = types.of_reference(labels.taxonomy, labels.marks.types)
        mapped = zip(labels.marks.types, gold_types, strict=True)
        lost = (before for before, after in mapped if before is not None and after is None)
        self._strange.update(f"{labels.taxonomy}:{name}" for name in lost)
        return JudgedResponse(
            id=sample.id,
            language=tag,
            cluster=cluster_of(sample),
            length=length,
            bounds=self._segment(sample.response, tag),
            sentences=parts,
            gold=Marks(labels.marks.spans, gold_types),
            predicted=Marks(got.marks.spans, types.of_detector(got.marks.types)),
            probability=got.probability,
            soft=labels.soft,
            predicted_soft=got.soft,
            score=prediction.score,
            facts=facts(sample.response, tag),
            threshold=self.settings.threshold,
        )

    def stored(self) -> CountsFile:
        """The counts so far.

        Raises:
            UnknownNameError: no sample has labels of the annotator that was asked for.
        """
        asked, data = self.settings.annotator, source_of(self._hashes, self._kinds)
        require_annotator(asked, self._seen)
        builder = self._builder or Builder(self.settings.unit)
        about = {
            "data": data.sha256,
            "detector": self.settings.detector,
            "made": self.settings.detector_signature,
            "threshold": self.settings.threshold,
            "annotator": "+".join(sorted(self._annotators)) or asked,
            "kind": data.kind,
            "taxonomy": self._types.taxonomy if self._types else None,
            "version": __version__,
        }
        if self.settings.drop_flags:
            about["dropped"] = "+".join(self.settings.drop_flags)
        return CountsFile(builder.counts(), self._coverage, about)

    def notes(self) -> tuple[str, ...]:
        """What a reader of the figures must know."""
        notes = []
        if self._types is not None and self._types.why:
            notes.append(self._types.why)
        if self._types is not None and self._types.names:
            notes += [f"{n} spans of type {name} have no counterpart" for name, n in sorted(self._strange.items())]
        if self._models:
            notes.append(
                f"labels by a model, not by people: {', '.join(sorted(self._models))}; figures say how far the"
                " detector agrees with it, not how often it is right"
            )
        if self._whole and self.settings.unit != "response":
            notes.append(
                f"{self._whole} samples are labelled as a whole: only figures of responses include them (--unit"
                " response)"
            )
        if self._unplaced:
            notes.append(
                f"{self._unplaced} samples count as right, as no span is marked, though a label says unsupported"
            )
        if self._own:
            notes.append(f"{self._own} samples are compared with the detector's own marks: their figures mean nothing")
        notes += self._flags.notes()
        total = Coverage.total(self._coverage.values())
        if total.labelled < total.samples:
            notes.append(f"{total.samples - total.labelled} of {total.samples} samples have no labels to compare with")
        if total.scored < total.labelled:
            reasons = ", ".join(f"{status} {count}" for status, count in sorted(total.unscored.items()))
            notes.append(f"{total.labelled - total.scored} of {total.labelled} labelled samples not scored: {reasons}")
        return tuple(notes)

    def result(
        self, *, seed: int = SEED, resamples: int = RESAMPLES, levels: Sequence[str] | None = None
    ) -> Evaluation:
        """The figures of the counts so far; see `measured`."""
        notes = self.notes()
        if self._without_rules and (levels is None or "fact" in levels):
            tags = ", ".join(sorted(self._without_rules))
            notes = (*notes, f"each sentence is counted as one fact, as there are no rules for it, in: {tags}")
        return measured(self.stored(), seed=seed, resamples=resamples, levels=levels, notes=notes)


def evaluate(
    samples: Iterable[Sample],
    detector: str | Detector = "auto",
    *,
    unit: str = "word",
    annotator: str | None = None,
    taxonomy: str | None = None,
    drop_flags: Sequence[str] = (),
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> Evaluation:
    """Run a detector on labelled samples and evaluate its predictions.

    Args:
        samples: with annotations, as `veriglot.read` gives them; read once.
        detector: a name, or a detector that was loaded before; ranking and calibration figures need its `words`.
        unit: `char`, `word` or `hf:<tokenizer>`.
        annotator: whose labels; see `metrics.reference`.
        taxonomy: the taxonomy to compare types in; None for the data's own.
        drop_flags: flags of annotators whose samples are dropped; `source` for all flags of a faulty source.
        seed: of the bootstrap.
        resamples: of the bootstrap.

    Raises:
        UnknownNameError: no such detector, unit, taxonomy or annotator.
        InputTypeError: something is no sample.
        InputError: a prediction does not belong to its sample.
    """
    detector = as_detector(detector, words=True)
    settings = Settings(
        detector=detector.name,
        detector_signature=detector.signature,
        detector_taxonomy=detector.taxonomy,
        threshold=float(detector.threshold),
        unit=unit,
        annotator=annotator,
        taxonomy=taxonomy,
        drop_flags=tuple(drop_flags),
    )
    flags, source = FlagFilter(settings.drop_flags, annotator), iter(samples)
    evaluator = Evaluator(settings, flags)
    while batch := list(islice(source, _BATCH)):
        for row in batch:
            if not isinstance(row, Sample):
                raise InputTypeError(f"this is no Sample, but {type(row).__name__}", "Use veriglot.read(FILE).")
        batch = [row for row in batch if flags.admits(row)]
        for sample, prediction in zip(batch, detector.predict(batch), strict=True):
            evaluator.add(sample, prediction)
    return evaluator.result(seed=seed, resamples=resamples)


# Confusion of types: which type a detector predicts for each type of the labels.
#
# Counted by response if each has one label, as in HalluVerse25 (its Figure 4, Tables 3 and 4), or by mark if responses
# have several, as in mFAVA. Types of the detector are mapped to those of the data; if they do not map, the data's types
# are mapped to the detector's.

UNMARKED = "none"  # the class of clean responses, and the answer if a detector marks nothing
UNTYPED = "other type"  # an answer: marked, with a type that the data has no class for
NO_ANSWER = "no answer"  # the column of items that the detector did not score

Pair = tuple[str | None, str | None]
Grain = Literal["response", "mark"]


def confusion_matrix(
    pairs: Iterable[tuple[str, str | None]], classes: Sequence[str]
) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
    """Columns and counts of a confusion matrix (rows: classes), from pairs of the true class and the answer."""
    counted = Counter((gold, NO_ANSWER if answer is None else answer) for gold, answer in pairs)
    strange = sorted({gold for gold, _ in counted} - set(classes))
    if strange:
        raise UsageError(
            f"Items are of classes that the matrix does not have: {', '.join(strange)}.",
            f"Its classes are {', '.join(classes)}.",
        )
    extra = {answer for _, answer in counted} - {*classes, UNMARKED}
    answers = (*dict.fromkeys((*classes, UNMARKED)), *sorted(extra, key=lambda name: (name == NO_ANSWER, name)))
    return answers, tuple(tuple(counted[gold, answer] for answer in answers) for gold in classes)


def type_confusion(
    blank: BenchConfusion, judged: Iterable[tuple[Sample, Prediction]], annotator: str | None, detector: str | None
) -> BenchConfusion:
    """Count the answers for each type, from samples with one prediction each, in order.

    At level `response`, the response's one type is compared with the type of most of the detector's marked characters;
    at `mark`, the type of each reference mark with the type of most of its characters that the detector marks.
    """
    types, _, pairs = _paired(judged, annotator, detector, blank.of)
    known = [(gold, answer) for gold, answer in pairs if gold is not None]
    classes = types.names + ((UNMARKED,) if any(gold == UNMARKED for gold, _ in known) else ())
    answers, counts = confusion_matrix(known, classes)
    return msgspec.structs.replace(
        blank, taxonomy=types.taxonomy, classes=classes, answers=answers, counts=counts,
        left_out=len(pairs) - len(known), reason=types.why or None,
    )  # fmt: skip


def response_types(
    samples: Sequence[Sample], predictions: Sequence[Prediction], annotator: str | None, detector: str | None
) -> tuple[NDArray[np.str_], Float64s]:
    """Types of responses (empty unless there is exactly one), and whether a detector names each: 1, 0, or NaN.

    Raises:
        UsageError: the detector's types do not map to those of the data.
    """
    types, name, pairs = _paired(zip(samples, predictions, strict=True), annotator, detector, "response")
    if types.taxonomy != name:
        raise UsageError(f"The detector does not tell the types of {name} apart.")
    right = [np.nan if None in pair else float(pair[0] == pair[1]) for pair in pairs]
    return np.array([gold or "" for gold, _ in pairs], np.str_), np.array(right, np.float64)


def _paired(
    judged: Iterable[tuple[Sample, Prediction]], annotator: str | None, detector: str | None, of: Grain
) -> tuple[Types, str, list[Pair]]:
    """How types are compared, the taxonomy of the labels, and the true type and answer of each response or mark."""
    rows: list[tuple[Sample, Prediction, Reference | None]] = []
    for sample, prediction in judged:
        check_pair(sample, prediction)
        rows.append((sample, prediction, reference(sample, annotator)))
    name = next((labels.taxonomy for *_, labels in rows if labels is not None and labels.taxonomy), None)
    if name is None:
        raise UsageError("Types cannot be compared: there are no labels of a known taxonomy.")
    predicted = {span.type for _, prediction, _ in rows for span in prediction.spans or () if span.type is not None}
    types = compare_types(name, detector or (None if predicted else name), None, predicted)
    if types.taxonomy is None:
        raise UsageError(f"The detector's types cannot be compared with the data's: {types.why}.")
    ask = _of_response if of == "response" else _of_marks
    return types, name, [pair for row in rows for pair in ask(*row, types)]


def _of_response(sample: Sample, prediction: Prediction, labels: Reference | None, types: Types) -> Iterator[Pair]:
    """The one type of a response; HalluVerse25's label `0` is read from `meta`, since it is not a type."""
    gold = {UNMARKED if labels is not None or sample.meta.get("label") == "0" else None}
    if labels is not None and labels.marks.types:
        gold = set(types.of_reference(labels.taxonomy, labels.marks.types))
    single = next(iter(gold)) if len(gold) == 1 else None
    yield single, _answer(prediction, types, 0, len(sample.response))


def _of_marks(_: Sample, prediction: Prediction, labels: Reference | None, types: Types) -> Iterator[Pair]:
    if labels is None:
        yield None, None
        return
    mapped = types.of_reference(labels.taxonomy, labels.marks.types)
    for (start, end), gold in zip(labels.marks.spans.tolist(), mapped, strict=True):
        yield gold, _answer(prediction, types, start, end)


def _answer(prediction: Prediction, types: Types, start: int, end: int) -> str | None:
    """The type of most marked characters of a range."""
    if prediction.status is not Status.SCORED:
        return None
    spans = prediction.spans or ()
    mapped = types.of_detector([span.type for span in spans])
    marks = ((span.start, span.end, type_ or UNTYPED) for span, type_ in zip(spans, mapped, strict=True))
    return majority_type(start, end, marks) or UNMARKED


# Confusion matrices in the results: of one detector on one data set, for each language and for all together.


EVERY = "all"
"""The language of a matrix of all languages together: counts are summed, as in HalluVerse25's Figure 4."""


def grain_of_types(samples: Sequence[Sample], annotator: str | None = None) -> Grain | None:
    """What has one type in labelled data: `response` if each has at most one, else `mark`.

    None if labels do not distinguish types: no taxonomy, or one with a single type (`hat`, `critical`).
    """
    references = [labels for labels in (reference(sample, annotator) for sample in samples) if labels is not None]
    if not any(len(_types(labels.taxonomy)) > 1 and any(labels.marks.types) for labels in references):
        return None
    return "response" if all(len(set(labels.marks.types)) <= 1 for labels in references) else "mark"


def _types(name: str | None) -> tuple[str, ...]:
    """The types of a taxonomy that mark text as unsupported."""
    known = taxonomies().get(name or "")
    return tuple(type_ for type_ in known.types if type_ not in known.clean) if known else ()


def type_confusions(
    system: str,
    data: str,
    samples: Sequence[Sample],
    predictions: Sequence[Prediction],
    *,
    detector_taxonomy: str | None,
    annotator: str | None,
    seen: bool,
    suffix: str,
) -> Iterator[BenchConfusion]:
    """The matrices of one detector on one data set: for all languages, then for each if there are several.

    Nothing if the labels have no types. If the types of data and detector do not map to each other, one record without
    counts says so.

    Args:
        system, data: names.
        samples: test samples, with labels.
        predictions: of these, in order.
        detector_taxonomy: taxonomy of the detector's types; None to find one that has them all.
        annotator: whose labels; see `metrics.reference`.
        seen: whether the data was in the system's training data.
        suffix: what signatures end with.
    """
    grain = grain_of_types(samples, annotator)
    if grain is None:
        return
    parts = {EVERY: list(zip(samples, predictions, strict=True))}
    tags = sorted({tag_of(sample.language) for sample in samples})
    if len(tags) > 1:
        parts |= {tag: [row for row in parts[EVERY] if tag_of(row[0].language) == tag] for tag in tags}
    for language, rows in parts.items():
        signed = f"types:{grain}|language:{language}|{suffix}"
        empty = BenchConfusion(system=system, data=data, language=language, of=grain, seen=seen, signature=signed)
        try:
            yield type_confusion(empty, rows, annotator, detector_taxonomy)
        except UsageError as error:
            if language == EVERY:
                yield msgspec.structs.replace(empty, reason=error.message)
                return  # a language alone may have labels without types
