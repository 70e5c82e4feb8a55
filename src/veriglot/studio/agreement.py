"""How far the annotators of a file agree: people with each other, and people with the model that made silver labels.

mFAVA reports both (its Figure 2), and takes each shared text's gold labels from the person who agrees most with silver.
HalluVerse25 reports kappa of the labels of pairs (section 3.3), among which no hallucination (`0`) is one.
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


__all__ = ["AgreementReport", "AgreementRow", "agreement", "agreement_rows", "beside_models", "best_with_silver"]


# Samples of several annotators, joined into texts: who marked what in which response.


_MODEL, _PERSON = "model ", "person "  # a person and a model may have the same name
_ANYBODY = "people"
_GOLD = "gold"  # who labels are called after that were made of several people's, or of which nobody says whose they are


_M = TypeVar("_M", bound=Marks)
_WHOLE = ("response", "fact")  # units that are labelled one by one


class Repeat(Record):
    """A text that stands twice under one name: where it stands first, and where a `second` time."""

    annotator: str
    first: str
    second: str = msgspec.field(name="again")


@dataclass(frozen=True)
class _Labels(Marks):
    """Marks, the annotation they are of, and the ranges labelled one by one, clean ones too; None where spans were."""

    annotation: Annotation
    units: frozenset[Range] | None = None

    def text(self) -> str:
        """Everything that it says; the same for equal labels."""
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
        yield from beside_models({}, self.models).items()


@dataclass(frozen=True)
class _Texts:
    """What annotators said of texts."""

    by_digest: dict[str, _Text]  # by the digests of response and of what is beside it, in their order
    changed: int  # texts of which a model's annotations differ from row to row; the first counts
    repeated: tuple[Repeat, ...]  # every text that a name annotated again, in the order of the samples
    by_file: bool  # whether files stand for annotators, since all labels are called `gold`
    settled: int  # texts with a layer `gold` beside people's own, which was made of theirs and counts as nobody's

    @property
    def anonymous(self) -> bool:
        """Whether one name stands for several people: it annotated a text more than once."""
        return bool(self.repeated)

    def annotators(self) -> dict[str, int]:
        """Person to how many texts they annotated, sorted; empty where `anonymous`."""
        if self.anonymous:
            return {}
        return dict(sorted(Counter(name for text in self.by_digest.values() for name, _ in text.people).items()))

    def layers_of_people(self) -> Iterator[tuple[str, dict[str, _Labels]]]:
        """Texts with people's layers; where `anonymous` they are numbered, which says nothing across texts."""
        for key, text in self.by_digest.items():
            if self.anonymous:
                yield key, {str(number): marks for number, (_, marks) in enumerate(text.people, 1)}
            else:
                yield key, dict(text.people)

    def layers_against_models(self) -> Iterator[tuple[str, dict[str, _Labels]]]:
        """The texts that people and models annotated, with the layers of both (`_person_and_model` tells them apart).

        Where `anonymous`, each person of a text stands in a row of their own, all under one name.
        """
        for key, text in self.by_digest.items():
            if text.people and text.models:
                rows = [{_ANYBODY: marks} for _, marks in text.people] if self.anonymous else [dict(text.people)]
                yield from ((key, beside_models(row, text.models)) for row in rows)

    def layered(self, rows: Iterable[tuple[str, dict[str, _Labels]]], unit: str) -> list[AnnotatedText]:
        """Texts and layers as `agreement_figures` takes them; without those that nobody annotated."""
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
                bounds, layers = _bounds(units), {name: _over(units, each) for name, each in labels.items()}
            result.append(AnnotatedText(key, row.language or "", len(row.response), bounds, layers))
        return result

    def digest(self) -> str:
        """Of all that was said, whatever the order."""
        return digest(
            part
            for key, text in sorted(self.by_digest.items())
            for part in (key, *sorted(f"{name} {labels.text()}" for name, labels in text.marks()))
        )


def beside_models(people: Mapping[str, _M], models: Mapping[str, _M]) -> dict[str, _M]:
    """Layers of people and of models as those of one text, who are told apart even where they have the same name."""
    layers = {_PERSON + name: marks for name, marks in people.items()}
    return layers | {_MODEL + name: marks for name, marks in models.items()}


def _person_and_model(pair: tuple[str, str]) -> tuple[str, str] | None:
    """Who the two of a pair are; None where they are not a person and a model."""
    model, person = pair  # pairs are in the order of their names
    if not (model.startswith(_MODEL) and person.startswith(_PERSON)):
        return None
    return person.removeprefix(_PERSON), model.removeprefix(_MODEL)


def _units(sample: Sample, unit: str, layers: Mapping[str, _Labels]) -> list[tuple[Range, ...]]:
    """Each response or fact as its words' places; facts are those that all who label facts did, or `text.facts`."""
    if unit == "response":
        return [((0, len(sample.response)),)]
    ranges = [labels.units for labels in layers.values() if labels.units is not None]
    if ranges:
        return [(bounds,) for bounds in sorted(frozenset.intersection(*ranges))]
    from veriglot.text.facts import facts

    return list({(fact.start, fact.end): fact.parts for fact in facts(sample.response, sample.language)}.values())


def _bounds(units: Sequence[tuple[Range, ...]]) -> Int32s:
    return np.array([(parts[0][0], parts[-1][1]) for parts in units], np.int32).reshape(-1, 2)


def _over(units: Sequence[tuple[Range, ...]], labels: _Labels) -> Marks:
    """Labels as marks of whole units, each of the type that most of its marked characters have.

    Where facts were labelled, a label is of the fact with its range alone, for facts lie inside facts.
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
    """What annotators said. Of a response, `0` in the data of HalluVerse25 says that there is no hallucination."""
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
    assert alone is not None  # who labelled nothing is not among `_annotations`
    units = annotation.units if unit == "fact" and annotation.spans is None else None
    ranges = None if units is None else frozenset((each.start, each.end) for each in units)
    return _Labels(alone.marks.spans, alone.marks.types, annotation, ranges)


def _join(
    samples: Iterable[Sample], unit: str, where: Callable[[int], str] | None, file: Callable[[int], str] | None
) -> _Texts:
    """Samples with one response, evidence and question in one language are one text."""
    texts: dict[str, _Text] = {}
    changed = set()
    repeated = []
    for number, sample in enumerate(samples):
        beside = filter(None, (sample.evidence_text, sample.question))  # a short answer may be right beside another
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
    # Texts whatever the order of the samples.
    return _Texts(dict(sorted(texts.items())), len(changed), () if by_file else tuple(repeated), by_file, settled)


def joined(samples: Iterable[Sample], file: Callable[[], str]) -> Iterable[Sample]:
    """Texts with the labels of all annotators, of samples with those of one each; other samples as they are.

    Args:
        samples: of several files.
        file: the file of the sample that came last; it stands for an annotator as in `agreement`.

    Raises:
        UsageError: a text stands twice under one name, or none has the labels of two.
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
    """Call people by their files where all are called `gold`, and no file has a text twice; whether it is so."""
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
    """Leave out gold that stands beside what it was made of, as in an export of the studio; whether there was such."""
    others = [(name, marks) for name, marks in text.people if name != _GOLD]
    if not others or len(others) == len(text.people):
        return False
    text.people = others
    return True


Among = Literal["people", "silver", "models"]


class AgreementRow(Estimate, frozen=True):
    """One figure.

    Attributes:
        among: `people` with each other, people with models (`silver`), or `models` with each other.
        measure: kappa, pi, alpha, span_f1 (intersection over union of at least 0.5), span_f1_exact, or gamma.
        scope: binary (marked or not) or typed.
        language: BCP 47 tag (empty where none is stated), or `all`.
        between: the two annotators, a person first; `all` and `all` for the mean over pairs, or of all at once.
        pairs: pairs of annotators behind it.
        items: units; for measures of spans, spans.
        marked: how many of them somebody marked.
        texts: how many.
        reason: why a number is missing.
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
        texts: texts that somebody annotated.
        shared: texts that two people or more annotated.
        annotators: person to how many texts; empty where `anonymous`.
        anonymous: whether one name stands for several people, so that nobody can be told from anybody.
        best: language to the person who agrees most with silver, see `best_with_silver`.
        rows: all figures.
        notes: what to know about them.
        repeated: texts that stand twice under one name, which is what makes the annotators `anonymous`.
        signature: how they were made.
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
    """Measure agreement.

    Samples with the same response, evidence and question in the same language are one text, so that annotators may
    stand in files or rows of their own. Where one name annotated a text several times (as `gold` does in data sets that
    leave names out), pairs of people are pooled, and Scott's pi stands in for Cohen's kappa.

    Args:
        samples: with annotations.
        unit: what is counted: `word`, `char`, `hf:TOKENIZER`; `response` for responses as wholes (labels of each,
            with evidence), `fact` for facts that annotators labelled, or else those of `text.facts` that spans touch.
        resamples: of whole texts; 0 for no intervals.
        seed: of the resamples and of chance in gamma.
        gamma: random annotations a text for gamma; 0 leaves it out, which is most of the work.
        where: what the place of a sample is called, by its number from 0, in `repeated`; its id where nothing is given.
        file: the file of a sample, by its number: where all labels are called `gold`, and no file has a text twice,
            files stand for annotators.

    Raises:
        InputError: no text has two annotators.
        UnknownNameError: no such unit.
        MissingExtraError: gamma is asked for, and scipy is not installed.
    """
    unit = "response" if unit == "pair" else unit  # what it was called
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
    spans = unit not in _WHOLE  # gamma and F1 ask where marks are, and here they are where units are
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
    """All figures of texts of several people, of people `beside_models`, and of several models.

    They are binary, and typed as well where marks have several types, or a single one and `by_single_type` asks for it.
    `progress` is told how much of people's texts is done, from 0 to 1. What `memory` holds of the same texts, from the
    call before with the same arguments, is not computed again.
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
    """Language to the kappa of the person who agrees most with silver; `between` names them, ties go to the first.

    With types where there are any. Nobody is best by fewer than `FEWEST_TEXTS` texts.
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
