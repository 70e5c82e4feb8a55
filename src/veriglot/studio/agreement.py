"""Inter-annotator agreement in a file: people with each other, and people with the model that made silver labels.

mFAVA reports both (its Figure 2), and takes the gold labels of each shared text from the person who agrees most with
silver. HalluVerse25 reports kappa over the labels of pairs (section 3.3), with `0` (no hallucination) as a label.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.metrics.agreement import ALL, SAMPLES, AgreementFigure, AnnotatedText, agreement_figures
from veriglot.metrics.estimate import FEWEST_TEXTS
from veriglot.metrics.reference import Marks, labelled, majority_type, reference
from veriglot.metrics.spans import segmenter
from veriglot.records import Annotation, Estimate, Kind, Sample, Span
from veriglot.records.settings import Record
from veriglot.signatures import digest, signature

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from veriglot.arrays import Int32s

    Range = tuple[int, int]


__all__ = ["AgreementReport", "AgreementRow", "agreement", "agreement_rows", "best_with_silver", "merge_with_models"]


# Samples of several annotators, grouped into texts: who marked what in which response.


_MODEL, _PERSON = "model ", "person "  # a person and a model may have the same name
_ANYBODY = "people"
_GOLD = "gold"  # annotator name of labels that were merged from several people, or whose annotator is unknown


_M = TypeVar("_M", bound=Marks)
_WHOLE = ("response", "fact")  # units that have one label each


class Repeat(Record):
    """A text that one annotator has twice: its `first` and its `second` position."""

    annotator: str
    first: str
    second: str = msgspec.field(name="again")


@dataclass(frozen=True)
class _Labels(Marks):
    """Marks, their annotation, and the labelled ranges, clean ones too; `units` is None if spans were marked."""

    annotation: Annotation
    units: frozenset[Range] | None = None

    def text(self) -> str:
        """All labels as a text; equal for equal labels."""
        units = "" if self.units is None else f" {sorted(self.units)}"
        return f"{self.spans.tolist()} {self.types}{units}"


@dataclass
class _Text:
    sample: Sample
    people: list[tuple[str, _Labels]] = field(default_factory=list)
    models: dict[str, _Labels] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)  # of `people`

    def marks(self) -> Iterator[tuple[str, _Labels]]:
        yield from ((_PERSON + name, marks) for name, marks in self.people)
        yield from merge_with_models({}, self.models).items()


@dataclass(frozen=True)
class _Texts:
    """Texts with the labels of all their annotators."""

    by_digest: dict[str, _Text]  # by the digests of response, evidence and question, sorted
    changed: int  # texts where a model's annotations differ between rows; the first counts
    repeated: tuple[Repeat, ...]  # texts that one annotator has more than once, in the order of the samples
    by_file: bool  # whether files stand for annotators, because all labels are called `gold`
    settled: int  # texts with a layer `gold` beside the people's layers it was merged from; it is ignored

    @property
    def anonymous(self) -> bool:
        """Whether one name stands for several people, because it has a text more than once."""
        return bool(self.repeated)

    def annotators(self) -> dict[str, int]:
        """Person to number of annotated texts, sorted; empty if `anonymous`."""
        if self.anonymous:
            return {}
        return dict(sorted(Counter(name for text in self.by_digest.values() for name, _ in text.people).items()))

    def layers_of_people(self) -> Iterator[tuple[str, dict[str, _Labels]]]:
        """Texts with people's layers; if `anonymous`, people are numbered, differently in each text."""
        for key, text in self.by_digest.items():
            if self.anonymous:
                yield key, {str(number): marks for number, (_, marks) in enumerate(text.people, 1)}
            else:
                yield key, dict(text.people)

    def layers_against_models(self) -> Iterator[tuple[str, dict[str, _Labels]]]:
        """Texts that people and models annotated, with the layers of both (`_person_and_model` separates them).

        If `anonymous`, each person of a text has a row of their own, all with the same name.
        """
        for key, text in self.by_digest.items():
            if text.people and text.models:
                rows = [{_ANYBODY: marks} for _, marks in text.people] if self.anonymous else [dict(text.people)]
                yield from ((key, merge_with_models(row, text.models)) for row in rows)

    def layered(self, rows: Iterable[tuple[str, dict[str, _Labels]]], unit: str) -> list[AnnotatedText]:
        """Texts and layers for `agreement_figures`, without texts that nobody annotated."""
        segment = None if unit in _WHOLE else segmenter(unit)
        result = []
        for key, labels in rows:
            row, layers = self.by_digest[key].sample, dict[str, Marks](labels)
            if not layers:
                continue
            if segment is not None:
                bounds = segment(row.response, row.language)
            else:
                units = _units(row, unit, labels)
                bounds, layers = _bounds(units), {name: _to_units(units, each) for name, each in labels.items()}
            result.append(AnnotatedText(key, row.language or "", len(row.response), bounds, layers))
        return result

    def digest(self) -> str:
        """Digest of all labels, independent of their order."""
        return digest(
            part
            for key, text in sorted(self.by_digest.items())
            for part in (key, *sorted(f"{name} {labels.text()}" for name, labels in text.marks()))
        )


def merge_with_models(people: Mapping[str, _M], models: Mapping[str, _M]) -> dict[str, _M]:
    """Layers of people and models in one mapping; prefixes keep people and models with the same name apart."""
    layers = {_PERSON + name: marks for name, marks in people.items()}
    return layers | {_MODEL + name: marks for name, marks in models.items()}


def _person_and_model(pair: tuple[str, str]) -> tuple[str, str] | None:
    """The person and the model of a pair; None if it is not one of each."""
    model, person = pair  # pairs are sorted by name
    if not (model.startswith(_MODEL) and person.startswith(_PERSON)):
        return None
    return person.removeprefix(_PERSON), model.removeprefix(_MODEL)


def _units(sample: Sample, unit: str, layers: Mapping[str, _Labels]) -> list[tuple[Range, ...]]:
    """The word ranges of each response or fact; facts are those labelled by all who label facts, or `text.facts`."""
    if unit == "response":
        return [((0, len(sample.response)),)]
    ranges = [labels.units for labels in layers.values() if labels.units is not None]
    if ranges:
        return [(bounds,) for bounds in sorted(frozenset.intersection(*ranges))]
    from veriglot.text.facts import facts

    return list({(fact.start, fact.end): fact.parts for fact in facts(sample.response, sample.language)}.values())


def _bounds(units: Sequence[tuple[Range, ...]]) -> Int32s:
    return np.array([(parts[0][0], parts[-1][1]) for parts in units], np.int32).reshape(-1, 2)


def _to_units(units: Sequence[tuple[Range, ...]], labels: _Labels) -> Marks:
    """Labels as marks of whole units, each with the type of most of its marked characters.

    If facts were labelled, a label counts only for the fact with exactly its range, because facts can be nested.
    """
    marks = [(start, end, type_) for (start, end), type_ in zip(labels.spans.tolist(), labels.types, strict=True)]
    result: list[tuple[tuple[Range, ...], str | None]] = []
    for parts in units:
        if labels.units is not None:
            inside = [mark for mark in marks if mark[:2] == parts[0]]
        else:
            cut = ((max(start, low), min(end, high), type_) for low, high in parts for start, end, type_ in marks)
            inside = [(start, end, type_) for start, end, type_ in cut if start < end]
        if inside:
            result.append((parts, majority_type(parts[0][0], parts[-1][1], inside)))
    return Marks(_bounds([parts for parts, _ in result]), tuple(type_ for _, type_ in result))


def _annotations(sample: Sample, unit: str) -> list[Annotation]:
    """The annotations of a sample. For responses, label `0` in the data of HalluVerse25 means no hallucination."""
    rows = [annotation for annotation in labelled(sample) if "computed" not in annotation.flags]
    if unit == "response" and not rows and sample.meta.get("label") == "0":
        return [Annotation(_GOLD, Kind.HUMAN, "halluverse", units=())]
    rows += [
        replace(each, spans=(Span(0, len(sample.response)),) * (each.ratings["unsupported"] == 1))
        for each in sample.annotations
        if unit == "response" and each not in rows and each.ratings.get("unsupported") in (0, 1)
    ]
    return rows


def _labels_of(sample: Sample, annotation: Annotation, unit: str) -> _Labels:
    alone = reference(replace(sample, annotations=(annotation,)))
    assert alone is not None  # `_annotations` leaves out annotators without labels
    units = annotation.units if unit == "fact" and annotation.spans is None else None
    ranges = None if units is None else frozenset((each.start, each.end) for each in units)
    return _Labels(alone.marks.spans, alone.marks.types, annotation, ranges)


def _join(
    samples: Iterable[Sample], unit: str, where: Callable[[int], str] | None, file: Callable[[int], str] | None
) -> _Texts:
    """Group samples into texts: same response, evidence, question and language."""
    texts: dict[str, _Text] = {}
    changed = set()
    repeated = []
    for number, sample in enumerate(samples):
        beside = filter(None, (sample.evidence_text, sample.question))  # short answers recur with other evidence
        key = digest([sample.language or "", sample.response])[:16] + digest([*beside])[:16]
        for annotation in _annotations(sample, unit):
            labels = _labels_of(sample, annotation, unit)
            text, name = texts.setdefault(key, _Text(sample)), annotation.annotator
            if annotation.kind is Kind.HUMAN:
                location = f"id {sample.id!r}" if where is None else where(number)
                if name in text.places:
                    repeated.append(Repeat(name, text.places[name], location))
                text.places.setdefault(name, location)
                text.people.append((name, labels))
                text.files.append("" if file is None else file(number))
            elif text.models.setdefault(name, labels).text() != labels.text():
                changed.add(key)
    by_file = bool(repeated) and _named_by_file(texts.values())
    settled = sum(_without_gold(text) for text in texts.values())
    # Sorted, so that the order of the samples does not matter.
    return _Texts(dict(sorted(texts.items())), len(changed), () if by_file else tuple(repeated), by_file, settled)


def joined(samples: Iterable[Sample], file: Callable[[], str]) -> Iterable[Sample]:
    """Group samples with one annotator each into texts with the labels of all annotators; other samples are unchanged.

    Args:
        samples: of several files.
        file: returns the file of the last sample; it stands for an annotator as in `agreement`.

    Raises:
        UsageError: an annotator has a text twice, or no text has two annotators.
    """
    rows = [(sample, file()) for sample in samples]
    alone = [sample for sample, _ in rows]
    if any(sum(each.kind is Kind.HUMAN for each in labelled(sample)) > 1 for sample in alone):
        return alone
    texts = _join(alone, "response", None, lambda number: rows[number][1])
    layers = [(text.sample, [*text.people, *text.models.items()]) for text in texts.by_digest.values()]
    if texts.repeated or all(len(own) < 2 for _, own in layers):
        message = "No text is marked by two annotators, or one stands twice under one name."
        raise UsageError(message, "veriglot studio agreement shows which. Or leave out --annotator.")
    layers += [(sample, []) for sample in alone if not _annotations(sample, "response")]
    return [
        replace(row, annotations=tuple(replace(a.annotation, annotator=name) for name, a in own) or row.annotations)
        for row, own in layers
    ]


def _named_by_file(texts: Collection[_Text]) -> bool:
    """Name people by their files if all labels are called `gold` and no file has a text twice; whether it did."""
    files = {name for text in texts for name in text.files}
    named = any(name != _GOLD for text in texts for name, _ in text.people)
    if named or any(len(set(text.files)) < len(text.files) for text in texts):
        return False
    stems = {path: Path(path).stem for path in files}
    names = stems if len(set(stems.values())) == len(files) else dict(zip(files, files, strict=True))
    for text in texts:
        text.people = [(names[path], labels) for path, (_, labels) in zip(text.files, text.people, strict=True)]
    return True


def _without_gold(text: _Text) -> bool:
    """Drop a gold layer beside the layers it was merged from, as in an export of the studio; returns whether it did."""
    others = [(name, marks) for name, marks in text.people if name != _GOLD]
    if not others or len(others) == len(text.people):
        return False
    text.people = others
    return True


Among = Literal["people", "silver", "models"]


class AgreementRow(Estimate, frozen=True):
    """One result.

    Attributes:
        among: `people` with each other, people with models (`silver`), or `models` with each other.
        measure: kappa, pi, alpha, span_f1 (intersection over union of at least 0.5), span_f1_exact, or gamma.
        scope: binary (marked or not) or typed.
        language: BCP 47 tag (empty if unknown), or `all`.
        between: the two annotators, a person first; `all` and `all` for the mean over pairs, or over all at once.
        pairs: number of annotator pairs.
        items: number of units; for measures of spans, of spans.
        marked: number of items marked by anybody.
        texts: number of texts.
        reason: why the value is missing.
    """

    among: Among
    measure: str
    scope: str
    language: str
    between: tuple[str, str]
    pairs: int
    items: int
    marked: int
    texts: int
    reason: str | None = None


class AgreementReport(Record):
    """Agreement of the annotators of some samples.

    Attributes:
        unit: what is counted; see `agreement`.
        texts: texts with any annotation.
        shared: texts annotated by two or more people.
        annotators: person to number of texts; empty if `anonymous`.
        anonymous: whether one name stands for several people, so that people cannot be distinguished.
        best: language to the person who agrees most with silver, see `best_with_silver`.
        rows: all results.
        notes: remarks on the results.
        repeated: texts that one annotator has twice; these make the annotators `anonymous`.
        signature: settings of the computation.
    """

    unit: str
    texts: int
    shared: int
    annotators: dict[str, int]
    anonymous: bool
    best: dict[str, str]
    rows: tuple[AgreementRow, ...]
    notes: tuple[str, ...]
    signature: str
    repeated: tuple[Repeat, ...] = ()


def agreement(
    samples: Iterable[Sample],
    *,
    unit: str = "word",
    resamples: int = 1000,
    seed: int = 0,
    gamma: int = SAMPLES,
    where: Callable[[int], str] | None = None,
    file: Callable[[int], str] | None = None,
) -> AgreementReport:
    """Measure inter-annotator agreement.

    Samples with the same response, evidence, question and language are one text, so annotators may have separate files
    or rows. If one name annotated a text several times (as `gold` does in data sets without names), pairs of people are
    pooled, and Scott's pi replaces Cohen's kappa.

    Args:
        samples: with annotations.
        unit: what is counted: `word`, `char`, `hf:TOKENIZER`; `response` for one label per response (together with its
            evidence), `fact` for labelled facts, or else the facts of `text.facts` that spans overlap.
        resamples: number of bootstrap samples of whole texts; 0 for no intervals.
        seed: for the bootstrap and for gamma.
        gamma: random annotations per text for gamma; 0 skips gamma, which takes most of the time.
        where: maps the number of a sample (from 0) to its name in `repeated`; None uses its id.
        file: maps the number of a sample to its file: if all labels are called `gold` and no file has a text twice,
            files stand for annotators.

    Raises:
        InputError: no text has two annotators.
        UnknownNameError: no such unit.
        MissingExtraError: gamma is requested, and scipy is not installed.
    """
    unit = "response" if unit == "pair" else unit  # the old name
    if unit not in {*_WHOLE, "char", "word"} and not unit.startswith("hf:"):
        raise UnknownNameError("unit", unit, (*_WHOLE, "char", "word", "hf:<tokenizer>"))
    texts = _join(samples, unit, where, file)
    people = texts.layered(texts.layers_of_people(), unit)
    silver = texts.layered(texts.layers_against_models(), unit)
    several = ((key, text.models) for key, text in texts.by_digest.items() if len(text.models) > 1)
    models = texts.layered(several, unit)
    shared = sum(len(text.layers) > 1 for text in people)
    if not (shared or silver or models):
        raise InputError(
            "no text has two annotators, so that there is nothing to compare",
            "Give the files of all annotators together: rows with one response, evidence and question are one text."
            " Labels of whole responses need --unit response; a column of names, --map annotator=COLUMN.",
            field="annotations",
        )
    spans = unit not in _WHOLE  # gamma and F1 compare positions, which are fixed for labelled units
    rows = agreement_rows(
        [text for text in people if len(text.layers) > 1],
        silver,
        models,
        by_single_type=not spans,
        anonymous=texts.anonymous,
        gamma=gamma if spans else 0,
        spans=spans,
        resamples=resamples,
        seed=seed,
    )
    made = signature(
        agreement=texts.digest()[:16],
        unit=unit,
        resamples=resamples,
        seed=seed,
        gamma=gamma if spans and (shared or models) else None,
    )
    best = {} if texts.anonymous else {language: row.between[0] for language, row in best_with_silver(rows).items()}
    unnamed = sorted({text.language or "?" for text in silver} - best.keys()) if not texts.anonymous else []
    notes = _notes(texts)
    if unnamed:
        notes.append(f"nobody is named best with silver in {', '.join(unnamed)}: {FEWEST_TEXTS} texts are the fewest")
    return AgreementReport(
        unit,
        len(texts.by_digest),
        shared,
        texts.annotators(),
        texts.anonymous,
        best,
        tuple(rows),
        tuple(notes),
        made,
        texts.repeated,
    )


def agreement_rows(
    people: Sequence[AnnotatedText],
    silver: Sequence[AnnotatedText],
    models: Sequence[AnnotatedText] = (),
    *,
    by_single_type: bool,
    anonymous: bool = False,
    gamma: int = 0,
    spans: bool = True,
    resamples: int,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
    memory: dict[Any, Any] | None = None,
) -> list[AgreementRow]:
    """All results for texts of several people, of people and models (`merge_with_models`), and of several models.

    They are binary, and also typed if marks have several types, or a single one and `by_single_type` is set. `progress`
    gets the finished share of people's texts, from 0 to 1. Results in `memory`, from an earlier call with the same
    arguments, are not computed again.
    """
    texts = (*people, *silver, *models)
    types = sorted({type_ or "" for text in texts for marks in text.layers.values() for type_ in marks.types})
    typed = any(types) and (by_single_type or len(types) > 1)
    rows: list[AgreementRow] = []
    scopes = (None, types) if typed else (None,)
    memories: dict[Any, Any] = {} if memory is None else memory
    for turn, names in enumerate(scopes):
        every = partial(agreement_figures, names=names, resamples=resamples, seed=seed, spans=spans)
        if people:
            step = None if progress is None else _part_of(progress, turn, len(scopes))
            rows += _rows(
                "people",
                every(people, gamma=gamma, anonymous=anonymous, progress=step, memory=memories.setdefault(turn, {})),
            )
        if silver:
            rows += _rows(
                "silver",
                every(
                    silver,
                    wanted=lambda pair: _person_and_model(pair) is not None,
                    memory=memories.setdefault(("silver", turn), {}),
                ),
            )
        if models:
            rows += _rows("models", every(models, gamma=gamma))
    return rows


def _part_of(progress: Callable[[float], None], turn: int, turns: int) -> Callable[[float], None]:
    return lambda share: progress((turn + share) / turns)


def _rows(among: Among, figures: Iterable[AgreementFigure]) -> Iterator[AgreementRow]:
    for figure in figures:
        estimate, between = figure.estimate, figure.between
        if among == "silver":
            between = _person_and_model(between) or between
        what = figure.measure, figure.scope, figure.language, between, figure.pairs
        counts = estimate.items, estimate.positives, estimate.clusters, estimate.reason
        yield AgreementRow(among, *what, *counts, value=estimate.value, low=estimate.low, high=estimate.high)


def best_with_silver(rows: Iterable[AgreementRow]) -> dict[str, AgreementRow]:
    """By language, the kappa of the person who agrees most with silver, named in `between`; ties go to the first.

    Typed if there are types. At least `FEWEST_TEXTS` texts are needed.
    """
    rated = [
        row
        for row in rows
        if (row.among, row.measure) == ("silver", "kappa") and ALL not in row.between and row.value is not None
    ]
    scope = "typed" if any(row.scope == "typed" for row in rated) else "binary"
    best: dict[str, AgreementRow] = {}
    for row in rated:
        if row.scope == scope and row.language != ALL and row.texts >= FEWEST_TEXTS:
            before = best.get(row.language)
            if before is None or (row.value or 0.0) > (before.value or 0.0):
                best[row.language] = row
    return dict(sorted(best.items()))


def _notes(texts: _Texts) -> list[str]:
    notes = []
    if texts.repeated:
        first = texts.repeated[0]
        notes.append(
            "one name annotated a text more than once, so that it stands for several people: pairs are pooled, and"
            f" Scott's pi stands in for Cohen's kappa; the first is {first.annotator!r}: {first.first}, and"
            f" {first.second}"
        )
    sets = [
        [labels.units for _, labels in text.marks() if labels.units is not None] for text in texts.by_digest.values()
    ]
    left_out = sum(len(frozenset.union(*each) - frozenset.intersection(*each)) for each in sets if each)
    if left_out:
        notes.append(f"{left_out:,} facts that not all annotators of their text labelled are in no figure")
    if texts.by_file:
        notes.append("all labels are called `gold`: each file stands for one annotator, under its name")
    if texts.settled:
        notes.append(
            f"in {texts.settled:,} texts a layer `gold` stands beside people's own: it was made of theirs, and is left"
            " out"
        )
    if texts.changed:
        notes.append(f"in {texts.changed:,} texts a model's labels differ from row to row; the first count")
    return notes
