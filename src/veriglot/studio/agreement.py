"""How far the annotators of a file agree: people with each other, and people with the model that made silver labels.

mFAVA reports both (its Figure 2), and takes each shared text's gold labels from the person who agrees most with silver.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import msgspec

from veriglot.errors import InputError
from veriglot.metrics.agreement import ALL, SAMPLES, Layered, agreement_figures
from veriglot.metrics.reference import Marks, labelled, reference
from veriglot.metrics.spans import segmenter
from veriglot.records import Estimate, Kind
from veriglot.signatures import digest, signature

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from veriglot.metrics.agreement import AgreementFigure
    from veriglot.metrics.spans import Segmenter
    from veriglot.records import Sample

__all__ = ["AgreementReport", "AgreementRow", "agreement", "agreement_rows", "best_with_silver"]


# Samples of several annotators, joined into texts: who marked what in which response.


_MODEL, _PERSON = "model ", "person "  # a person and a model may have the same name
_ANYBODY = "people"
_GOLD = "gold"  # who labels are called after that were made of several people's, or of which nobody says whose they are


class Repeat(msgspec.Struct, frozen=True):
    """A text that stands twice under one name.

    Attributes:
        annotator: the name.
        first: where it stands first.
        again: where it stands again.
    """

    annotator: str
    first: str
    again: str


@dataclass
class _Text:
    sample: Sample
    people: list[tuple[str, Marks]] = field(default_factory=list)
    models: dict[str, Marks] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    def marks(self) -> Iterator[tuple[str, Marks]]:
        yield from ((_PERSON + name, marks) for name, marks in self.people)
        yield from ((_MODEL + name, marks) for name, marks in self.models.items())


@dataclass(frozen=True)
class Texts:
    """What annotators said of texts.

    Attributes:
        by_digest: texts by the digest of language and response, in its order.
        changed: texts of which a model's annotations differ from row to row; the first counts.
        repeated: every text that a name annotated again, in the order of the samples.
        settled: texts with a layer `gold` beside people's own, which was made of theirs and counts as nobody's.
    """

    by_digest: dict[str, _Text]
    changed: int
    repeated: tuple[Repeat, ...]
    settled: int

    @property
    def anonymous(self) -> bool:
        """Whether one name stands for several people: it annotated a text more than once."""
        return bool(self.repeated)

    def annotators(self) -> dict[str, int]:
        """Person to how many texts they annotated, sorted; empty where `anonymous`."""
        if self.anonymous:
            return {}
        return dict(sorted(Counter(name for text in self.by_digest.values() for name, _ in text.people).items()))

    def types(self) -> list[str]:
        """All types that occur, sorted; an empty one where a span has none."""
        return sorted(
            {type_ or "" for text in self.by_digest.values() for _, marks in text.marks() for type_ in marks.types}
        )

    def of_people(self, bounds: Segmenter) -> list[Layered]:
        """The texts with people's layers; where `anonymous` they are numbered, which says nothing across texts."""
        return [
            self._layered(key, text, bounds, [
                (str(number) if self.anonymous else name, marks)
                for number, (name, marks) in enumerate(text.people, start=1)
            ])
            for key, text in self.by_digest.items()
            if text.people
        ]  # fmt: skip

    def of_models(self, bounds: Segmenter) -> list[Layered]:
        """The texts that two models or more annotated, with their layers alone."""
        return [
            self._layered(key, text, bounds, list(text.models.items()))
            for key, text in self.by_digest.items()
            if len(text.models) > 1
        ]

    def against_models(self, bounds: Segmenter) -> list[Layered]:
        """The texts that models annotated, with people's layers and theirs (`parted` tells them apart).

        Where `anonymous`, each person of a text stands in a row of their own, all under one name.
        """
        layered = []
        for key, text in self.by_digest.items():
            models = [(_MODEL + name, marks) for name, marks in text.models.items()]
            if not models or not text.people:
                continue
            if self.anonymous:
                rows = [[(_PERSON + _ANYBODY, marks)] for _, marks in text.people]
            else:
                rows = [[(_PERSON + name, marks) for name, marks in text.people]]
            layered += [self._layered(key, text, bounds, [*row, *models]) for row in rows]
        return layered

    def _layered(self, key: str, text: _Text, bounds: Segmenter, layers: list[tuple[str, Marks]]) -> Layered:
        sample = text.sample
        units = bounds(sample.response, sample.language)
        return Layered(key, sample.language or "", len(sample.response), units, dict(layers))

    def digest(self) -> str:
        """Of all that was said, whatever the order."""
        return digest(
            part
            for key, text in sorted(self.by_digest.items())
            for part in (key, *sorted(f"{name} {marks.spans.tolist()} {marks.types}" for name, marks in text.marks()))
        )


def person_and_model(pair: tuple[str, str]) -> tuple[str, str] | None:
    """Who the two of a pair of `Texts.against_models` are; None where they are not a person and a model."""
    model, person = pair  # pairs are in the order of their names
    if not (model.startswith(_MODEL) and person.startswith(_PERSON)):
        return None
    return person.removeprefix(_PERSON), model.removeprefix(_MODEL)


def join(samples: Iterable[Sample], *, where: Callable[[int], str] | None = None) -> Texts:
    """Samples with the same response in the same language are one text, wherever they stand.

    Args:
        samples: with annotations.
        where: what the place of a sample is called, by its number from 0; its id where nothing is given.
    """
    texts: dict[str, _Text] = {}
    changed = set()
    repeated = []
    for number, sample in enumerate(samples):
        key = digest([sample.language or "", sample.response])[:16]
        for annotation in labelled(sample):
            labels = reference(sample, annotation.annotator)
            if labels is None:
                continue
            text = texts.setdefault(key, _Text(sample))
            if annotation.kind is Kind.HUMAN:
                name = annotation.annotator
                text.people.append((name, labels.marks))
                location = f"id {sample.id!r}" if where is None else where(number)
                first = text.places.setdefault(name, location)
                if sum(person == name for person, _ in text.people) > 1:
                    repeated.append(Repeat(name, first, location))
            elif not _same(text.models.setdefault(annotation.annotator, labels.marks), labels.marks):
                changed.add(key)
    settled = sum(_without_gold(text) for text in texts.values())
    # Texts whatever the order of the samples.
    return Texts(dict(sorted(texts.items())), len(changed), tuple(repeated), settled)


def _without_gold(text: _Text) -> bool:
    """Leave out gold that stands beside what it was made of, as in an export of the studio; whether there was such."""
    others = [(name, marks) for name, marks in text.people if name != _GOLD]
    if not others or len(others) == len(text.people):
        return False
    text.people = others
    return True


def _same(first: Marks, second: Marks) -> bool:
    return first.types == second.types and first.spans.tolist() == second.spans.tolist()


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


class AgreementReport(msgspec.Struct, frozen=True):
    """Agreement of the annotators of some samples.

    Attributes:
        unit: what is counted: `char`, `word` or `hf:TOKENIZER`.
        texts: texts that somebody annotated.
        shared: texts that two people or more annotated.
        annotators: person to how many texts; empty where `anonymous`.
        anonymous: whether one name stands for several people, so that nobody can be told from anybody.
        best: language to the person who agrees most with silver: by kappa, with types where there are any.
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
    seed: int = 1,
    gamma: int = SAMPLES,
    where: Callable[[int], str] | None = None,
) -> AgreementReport:
    """Measure agreement.

    Samples with the same response in the same language are one text, so that annotators may stand in files or rows of
    their own. Where one name annotated a text several times (as `gold` does in data sets that leave names out), pairs
    of people are pooled, and Scott's pi stands in for Cohen's kappa.

    Args:
        samples: with annotations.
        unit: what is counted.
        resamples: of whole texts; 0 for no intervals.
        seed: of the resamples and of chance in gamma.
        gamma: random annotations a text for gamma; 0 leaves it out, which is most of the work.
        where: what the place of a sample is called, by its number from 0, in `repeated`; its id where nothing is given.

    Raises:
        InputError: no text has two annotators.
        UnknownNameError: no such unit.
        MissingExtraError: gamma is asked for, and scipy is not installed.
    """
    texts, bounds = join(samples, where=where), segmenter(unit)
    people, silver, models = texts.of_people(bounds), texts.against_models(bounds), texts.of_models(bounds)
    shared = sum(len(text.layers) > 1 for text in people)
    if not (shared or silver or models):
        raise InputError(
            "no text has two annotators, so that there is nothing to compare",
            field="annotations",
            remedy="Give the files of all annotators together: rows with the same response are one text.",
        )
    types = texts.types()
    scopes: list[Sequence[str] | None] = [None, types] if any(types) else [None]
    rows: list[AgreementRow] = []
    for names in scopes:
        if shared:
            figures = agreement_figures(
                people, names, resamples=resamples, seed=seed, gamma=gamma, anonymous=texts.anonymous
            )
            rows += agreement_rows("people", figures)
        if silver:
            figures = agreement_figures(
                silver, names, resamples=resamples, seed=seed, wanted=lambda pair: person_and_model(pair) is not None
            )
            rows += agreement_rows("silver", figures)
        if models:
            figures = agreement_figures(models, names, resamples=resamples, seed=seed, gamma=gamma)
            rows += agreement_rows("models", figures)
    made = signature(
        agreement=texts.digest()[:16],
        unit=unit,
        resamples=resamples,
        seed=seed,
        gamma=gamma if shared or models else None,
    )
    best = {} if texts.anonymous else best_with_silver(rows)
    notes = tuple(_notes(texts))
    return AgreementReport(
        unit,
        len(texts.by_digest),
        shared,
        texts.annotators(),
        texts.anonymous,
        best,
        tuple(rows),
        notes,
        made,
        texts.repeated,
    )


def agreement_rows(among: Among, figures: Iterable[AgreementFigure]) -> list[AgreementRow]:
    """Figures as rows, a person before the model."""
    return [_row(among, figure) for figure in figures]


def _row(among: Among, figure: AgreementFigure) -> AgreementRow:
    estimate, between = figure.estimate, figure.between
    if among == "silver":
        between = person_and_model(between) or between
    return AgreementRow(
        among, figure.measure, figure.scope, figure.language, between, figure.pairs, estimate.items,
        estimate.positives, estimate.clusters, estimate.reason, value=estimate.value, low=estimate.low,
        high=estimate.high,
    )  # fmt: skip


def best_with_silver(rows: Iterable[AgreementRow]) -> dict[str, str]:
    """Language to the person with the greatest kappa with silver, with types where there are any; ties to the first."""
    rated = [
        row
        for row in rows
        if (row.among, row.measure) == ("silver", "kappa") and ALL not in row.between and row.value is not None
    ]
    scope = "typed" if any(row.scope == "typed" for row in rated) else "binary"
    best: dict[str, AgreementRow] = {}
    for row in rated:
        if row.scope == scope and row.language != ALL:
            before = best.get(row.language)
            if before is None or (row.value or 0.0) > (before.value or 0.0):
                best[row.language] = row
    return {language: row.between[0] for language, row in sorted(best.items())}


def _notes(texts: Texts) -> list[str]:
    notes = []
    if texts.repeated:
        first = texts.repeated[0]
        notes.append(
            "one name annotated a text more than once, so that it stands for several people: pairs are pooled, and"
            f" Scott's pi stands in for Cohen's kappa; the first is {first.annotator!r}: {first.first}, and"
            f" {first.again}"
        )
    if texts.settled:
        notes.append(
            f"in {texts.settled:,} texts a layer `gold` stands beside people's own: it was made of theirs, and is left"
            " out"
        )
    if texts.changed:
        notes.append(f"in {texts.changed:,} texts a model's labels differ from row to row; the first count")
    return notes
