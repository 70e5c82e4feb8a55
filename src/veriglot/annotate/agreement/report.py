"""How far the annotators of a file agree: people with each other, and people with the model that made silver labels.

Mfava reports both (its Figure 2), and takes each shared text's gold labels from the person who agrees most with silver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from veriglot.annotate.agreement.texts import Repeat, join, person_and_model
from veriglot.errors import InputError
from veriglot.metrics import segmenter
from veriglot.metrics.agreement import ALL, SAMPLES, agreement_figures
from veriglot.provenance import signature

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from veriglot.annotate.agreement.texts import Texts
    from veriglot.metrics.agreement import AgreementFigure
    from veriglot.metrics.estimate import Estimate
    from veriglot.records import Sample

__all__ = ["AgreementReport", "AgreementRow", "agreement"]

Among = Literal["people", "silver", "models"]


class AgreementRow(msgspec.Struct, frozen=True):
    """One figure.

    Attributes:
        among: `people` with each other, people with models (`silver`), or `models` with each other.
        measure: kappa, pi, alpha, span_f1 (intersection over union of at least 0.5), span_f1_exact, or gamma.
        scope: binary (marked or not) or typed.
        language: BCP 47 tag (empty where none is stated), or `all`.
        between: the two annotators, a person first; `all` and `all` for the mean over pairs, or of all at once.
        pairs: pairs of annotators behind it.
        value, low, high: the figure and its 95% interval over texts; None where it is undefined.
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
    value: float | None
    low: float | None
    high: float | None
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
            rows += [_row("people", one) for one in figures]
        if silver:
            figures = agreement_figures(
                silver, names, resamples=resamples, seed=seed, wanted=lambda pair: person_and_model(pair) is not None
            )
            rows += [_row("silver", one) for one in figures]
        if models:
            figures = agreement_figures(models, names, resamples=resamples, seed=seed, gamma=gamma)
            rows += [_row("models", one) for one in figures]
    made = signature(
        agreement=texts.digest()[:16],
        unit=unit,
        resamples=resamples,
        seed=seed,
        gamma=gamma if shared or models else None,
    )
    best = {} if texts.anonymous else _best(rows)
    notes = tuple(_notes(texts))
    return AgreementReport(
        unit,
        len(texts.found),
        shared,
        texts.annotators(),
        texts.anonymous,
        best,
        tuple(rows),
        notes,
        made,
        texts.repeated,
    )


def _row(among: Among, figure: AgreementFigure) -> AgreementRow:
    found: Estimate = figure.estimate
    between = figure.between
    if among == "silver" and between != (ALL, ALL):
        between = person_and_model(between) or between
    return AgreementRow(
        among, figure.measure, figure.scope, figure.language, between, figure.pairs,
        found.value, found.low, found.high, found.items, found.positives, found.clusters, found.reason,
    )  # fmt: skip


def _best(rows: Iterable[AgreementRow]) -> dict[str, str]:
    """Language to the person with the greatest kappa with a model; with types where there are any."""
    rated = [
        row
        for row in rows
        if row.among == "silver" and row.measure == "kappa" and ALL not in row.between and row.value is not None
    ]
    scope = "typed" if any(row.scope == "typed" for row in rated) else "binary"
    found: dict[str, AgreementRow] = {}
    for row in rated:
        if row.scope == scope and row.language != ALL:
            before = found.get(row.language)
            if before is None or (row.value or 0.0) > (before.value or 0.0):
                found[row.language] = row
    return {language: row.between[0] for language, row in sorted(found.items())}


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
