"""A study in words for a paper: its methods with their references, its assumptions, its warnings.

Sentences are made from the study's own record: they mention only what was done, and cite only what was used.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from veriglot.plugins import read_package_data
from veriglot.rates.estimators import ESTIMATORS
from veriglot.records import Estimator, Kind, Reliability
from veriglot.records.languages import language_name
from veriglot.signatures import __version__
from veriglot.study.results import Cell, Reference, StudyResults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from veriglot.datasets.quality import Quality
    from veriglot.study.config import Config
    from veriglot.study.rates import ProfiledDetector, StudyRates
    from veriglot.study.responses import Plan

__all__ = ["bibtex", "described", "methods_document"]


def described(results: StudyResults, config: Config, plan: Plan, estimated: StudyRates, lost: int) -> StudyResults:
    """The same results with `methods`, `references`, `assumptions` and `warnings`; `lost` rows failed."""
    cite = _Citations()
    used = any(ESTIMATORS[estimator].needs_profile for estimator in config.estimators)
    methods = (
        " ".join(_responses(results, config, plan)),
        " ".join(text for each in estimated.detectors for text in _detection(results, each, estimated, used=used)),
        " ".join(_estimation(results, config, estimated, cite)),
        " ".join(_comparison(results, cite)),
        f"All figures were made with Veriglot {__version__}. Their signature is {results.signature}.",
    )
    raw = config.study.estimator is Estimator.RAW
    return replace(
        results,
        methods=tuple(filter(None, methods)),
        references=cite.references,
        assumptions=assumptions_in_words(config, estimated, results.languages),
        warnings=(
            *results.warnings,
            *_uncovered(results.cells),
            *_outside_cells(results.cells, estimated, lost),
            *_odd_answers(results.cells),
            *["The rates are raw: they hold the detector's false alarms and miss what it misses."] * raw,
        ),
    )


def methods_document(results: StudyResults) -> str:
    """Methods, assumptions and references as Markdown, followed by the references as BibTeX."""
    references = tuple(reference.text for reference in results.references)
    parts = [("Methods", "", results.methods), ("Assumptions", "- ", results.assumptions)]
    parts += [("References", "- ", references)] if references else []
    lines = [f"# {results.title}"]
    for head, mark, texts in parts:
        between = "\n" if mark else "\n\n"
        lines += [f"## {head}", between.join(mark + text for text in texts) or "None is stated."]
    lines += ["```bibtex\n" + bibtex(results) + "```"] if references else []
    return "\n\n".join(lines) + "\n"


def bibtex(results: StudyResults) -> str:
    """The references as entries of a BibTeX file."""
    return "\n".join(reference.bibtex for reference in results.references)


@cache
def _known_references() -> dict[str, dict[str, str]]:
    return read_package_data(__package__, "references.toml", dict[str, dict[str, str]])


class _Citations:
    """Cites papers by the keys of what was used, and remembers them."""

    def __init__(self) -> None:
        self._keys: dict[str, None] = {}

    def __call__(self, *keys: str) -> str:
        """`(Holm, 1979)`."""
        self._keys |= dict.fromkeys(keys)
        return f"({'; '.join(dict.fromkeys(_known_references()[key]['cited'] for key in keys))})"

    @property
    def references(self) -> tuple[Reference, ...]:
        """The papers that were cited, in the order of their names."""
        entries = sorted((_known_references()[key] for key in self._keys), key=lambda entry: entry["cited"].casefold())
        return tuple(Reference(entry["text"], entry["bibtex"]) for entry in entries)


# Methods, step by step.


def _responses(results: StudyResults, config: Config, plan: Plan) -> Iterator[str]:
    models, languages = [model.name for model in results.models], [*map(language_name, results.languages)]
    yield (
        f"{_count(len(models), 'model')} ({_and(models)}) {'was' if len(models) == 1 else 'were'} studied in"
        f" {_count(len(languages), 'language')} ({_and(languages)})."
    )
    covers = [cell.coverage for cell in results.cells]
    planned, answered = (sum(getattr(each, name) for each in covers) for name in ("planned", "answered"))
    judged = sum(each.statuses.get("scored", 0) for each in covers)
    if plan.asked:
        entry = config.asked
        once = "Each language's queries were split into disjoint subsets, one for each seed, and each was asked once"
        how = once if entry.design == "subsets" else "Every query was asked with every seed"
        yield f"{how} ({'seeds' if len(entry.seeds) > 1 else 'seed'} {_and([*map(str, entry.seeds)])})."
        yield f"Of {_count(planned, 'planned response')}, {answered:,} exist and {judged:,} were judged."
    else:
        yield f"The responses were given, not made by this run: {answered:,}, of which {judged:,} were judged."


def _detection(
    results: StudyResults, detector: ProfiledDetector, estimated: StudyRates, *, used: bool
) -> Iterator[str]:
    name, profile = detector.description.name, detector.profile
    yield (
        f"The detector {name} compared each response with its evidence and marked the {_units(results)} that it"
        f" classified as unsupported, from a confidence of {detector.description.threshold:g}."
    )
    if profile is None or not used:
        return
    count = sum(len(language.responses) for language in profile.languages.values())
    yield (
        f"Its error rates were measured on {count:,} responses in {_count(len(profile.languages), 'language')} with"
        f" {profile.data.kind} labels (SHA-256 of the data {profile.data.sha256[:12]})."
    )
    pooled = [language_name(tag) for tag in results.languages if detector.of(tag)[1] == "pooled"]
    if pooled:
        yield f"In {_and(pooled)}, where these are too few, its error rates over all of these languages were used."
    if detector is estimated.detectors[-1] and len(estimated.detectors) > 1:
        yield f"A rate is the mean over the {len(estimated.detectors)} detectors, and so is the width of its interval."


def _estimation(results: StudyResults, config: Config, estimated: StudyRates, cite: _Citations) -> Iterator[str]:
    study, own, others = config.study, config.estimators[0], config.estimators[1:]
    yield f"A rate is the share of {_units(results)} that the evidence does not support, by the estimator {own}."
    yield _estimator(own, results, estimated, cite)
    if others:
        yield f"For comparison the report shows {_and(others)}."
        yield from (_estimator(each, results, estimated, cite) for each in others)
    sources = ["responses"]
    sources += ["error rates"] if any(ESTIMATORS[each].needs_profile for each in config.estimators) else []
    sources += ["labels"] if Estimator.PPI in config.estimators else []
    yield (
        f"Intervals are at the level {study.confidence:g} and carry the uncertainty of the {_and(sources)}; responses"
        f" to one query count as one. They come from {study.draws:,} draws with the seed {study.seed}."
    )
    cells = [cell for cell in results.cells if cell.coverage.planned]
    bad = sum(cell.rates[0].status is not Reliability.OK for cell in cells)
    if bad:
        yield f"{bad} of {_count(len(cells), 'rate')} {'is' if bad == 1 else 'are'} unreliable, and in no mean or test."
    if len(cells) > 1:
        yield (
            "Means are unweighted, over reliable rates before these are cut to shares from 0 to 1; ± is the sample"
            " standard deviation, not an error."
        )
    most = max((len(rated.replicates) for rated in estimated.cells.values()), default=0)
    if most > 1:
        yield (
            f"Up to {most} replicates of a rate (detectors × seeds) show how much the choice of seed and detector moves"
            f" it {cite('paper')}."
        )
        if own is Estimator.PPI:
            yield "Labels are too few to split by seed: the replicates are raw shares, not comparable with ppi."


def _estimator(estimator: Estimator, results: StudyResults, estimated: StudyRates, cite: _Citations) -> str:
    """What an estimator does, its paper, and for `ppi` who made the labels."""
    text = ESTIMATORS[estimator].description.replace("`", "")
    if estimator is not Estimator.PPI:
        papers = cite(estimator.value) if estimator.value in _known_references() else ""
        return f"{text[:-1]} {papers}.".replace(" .", ".")
    rates = [rate.signature for cell in results.cells for rate in cell.rates if rate.estimator is estimator]
    weighted = any(float(weight) for line in rates for weight in re.findall(r"\bppi:(\d\.\d+)", line))
    papers = cite("ppi", "ppi factor") if weighted else cite("ppi")
    labelled = sum(
        len(rated.counted[0].labels.response)
        for rated in estimated.cells.values()
        if rated.counted[0].labels is not None
    )
    makers = [{Kind.HUMAN: "people", Kind.MODEL: "a model"}[kind] for kind in sorted(estimated.labelled_by)]
    by = f", by {_and(makers)}" if makers else ""
    return f"{text[:-1]} {papers}. {_count(labelled, 'judged response')} carried labels{by}."


def _comparison(results: StudyResults, cite: _Citations) -> Iterator[str]:
    methods = " ".join(each.method for each in results.comparisons)
    tests = [
        (name, f"a {name} over queries {cite(name)}") for name in ("paired t-test", "Welch t-test") if name in methods
    ]
    words = [text for _, text in tests] + ["a normal test of draws"] * ("normal test of draws" in methods)
    if words:
        over = ", and over these languages" if any(each.language == "*" for each in results.comparisons) else ""
        tested = max(int(number.replace(",", "")) for number in re.findall(r"for ([\d,]+) comparisons?", methods))
        yield (
            f"Every two models were compared in each language in which both have a reliable rate{over}, by"
            f" {' or '.join(words)}. p-values were corrected for {_count(tested, 'comparison')} by Holm's method"
            f" {cite('holm')}; a difference counts where the corrected p is below {1 - results.confidence:.2g}."
        )
    if len(tests) == 2:
        yield "The test is paired where each model answered at least half of the other's queries."
    if results.ranks:
        yield (
            "The interval of a rank holds the ranks that simultaneous intervals of all differences do not exclude"
            f" {cite('ranks')}."
        )
    related = " ".join(each.method for each in results.correlations)
    if "pearson" in related:
        yield (
            f"Relations are Pearson's correlations with Fisher's intervals {cite('pearson')}, not corrected for their"
            " number."
        )
    if "t-test" in related:
        yield (
            "The largest and the smallest model of a family were compared by t-tests over detectors and seeds"
            f"{' and over families' if 'over families' in related else ''}, with Hedges' g"
            f" {cite('paired t-test', 'effect')}, as in mFAVA's Figure 5a {cite('paper')}."
        )
    if results.profiles:
        yield f"Rates by two profiles of a detector were compared, as in mFAVA's Figure 3 {cite('paper')}."


def _units(results: StudyResults) -> str:
    return {"word": "words", "char": "characters"}.get(results.unit) or f"tokens of {results.unit.removeprefix('hf:')}"


def _and(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


# Assumptions and warnings.


_MODELS = 5  # maximum number of models that a warning names
_ODDITIES: tuple[tuple[float, Callable[[Quality], float | None], str], ...] = (
    (0.1, lambda quality: quality.refused, "decline to answer"),
    (0.1, lambda quality: None if quality.right_language is None else 1 - quality.right_language,
     "are in another language than the one that was asked for"),
    (0.1, lambda quality: quality.repetitive, "repeat themselves"),
    (0.1, lambda quality: quality.truncated, "were cut at the token limit"),
)  # fmt: skip


def assumptions_in_words(config: Config, estimated: StudyRates, languages: Sequence[str]) -> tuple[str, ...]:
    """The assumptions of the rates."""
    lines = ["A unit that the evidence does not support counts as hallucinated, even where it is true."]
    if any(ESTIMATORS[estimator].needs_profile for estimator in config.estimators):
        lines.append(
            "The detector errs on these responses as often as on the labelled data of its profile: it finds the same"
            " share of the unsupported units and marks the same share of the supported ones."
        )
    for each in estimated.detectors:
        pooled = [tag for tag in languages if each.of(tag)[1] == "pooled"]
        if pooled:
            lines.append(
                f"{each.description.name} was measured on too little or nothing in {_named(pooled)}: there its error"
                " rates over all languages are used, as the study file asks, as if it erred there as in these together."
            )
        if each.profile is not None and each.profile.data.kind != "gold":
            lines.append(
                f"The profile of {each.description.name} rests on {each.profile.data.kind} labels, which are"
                " assumed right."
            )
    if Estimator.PPI in config.estimators:
        lines.append("The labelled responses were drawn from the study's responses at random.")
        if Kind.MODEL in estimated.labelled_by:
            lines.append("Labels of the study's responses were made by a model (silver), and are assumed right.")
    return tuple(lines)


def _uncovered(cells: Sequence[Cell]) -> Iterator[str]:
    cells = [cell for cell in cells if cell.coverage.planned]
    bad = sum(cell.rates[0].status is not Reliability.OK for cell in cells)
    if bad:
        yield f"Unreliable, and in no mean, rank or comparison: {bad} of {_count(len(cells), 'rate')}. Each says why."
    planned, answered = (sum(getattr(cell.coverage, name) for cell in cells) for name in ("planned", "answered"))
    if answered < planned:
        yield f"Never made, as the calls failed: {planned - answered:,} of {_count(planned, 'planned response')}."
    scored = sum(cell.coverage.statuses.get("scored", 0) for cell in cells)
    if scored < answered:
        yield f"Not judged, and in no rate: {answered - scored:,} of {_count(answered, 'response')}."


def _outside_cells(cells: Sequence[Cell], estimated: StudyRates, lost: int) -> Iterator[str]:
    """What is in no cell."""
    unread = lost - sum(cell.coverage.failed for cell in cells)
    if unread > 0:
        yield f"Not read or not asked, and in no coverage: {_count(unread, 'row')} of the input."
    if estimated.unused_labels:
        yield f"Labelled but not judged, and in no rate: {_count(estimated.unused_labels, 'response')}."
    if estimated.outside:
        yield (
            "Of no stated language, and found to be in one that the study does not ask for, so in no coverage:"
            f" {_count(estimated.outside, 'response')}."
        )


def _odd_answers(cells: Sequence[Cell]) -> Iterator[str]:
    """Frequent flaws of answers that affect rates: one line for each, with the models that have it."""
    for bound, share, what in _ODDITIES:
        shares = [
            (value, cell) for cell in cells if cell.coverage.answered and (value := share(cell.quality)) is not None
        ]
        by_model: dict[str, list[tuple[float, str]]] = {}
        for value, cell in shares:
            if value > bound:
                by_model.setdefault(cell.model, []).append((value, cell.language))
        texts = []
        for model, own in sorted(by_model.items(), key=lambda pair: -max(pair[1])[0]):
            most, tag = max(own)
            where = _named([tag]) if len(own) == 1 else f"{len(own)} languages, most in {_named([tag])}"
            texts.append(f"{model} ({where}: {most:.0%})")
        if texts:
            more = f" and {_count(len(texts) - _MODELS, 'more model')}" if len(texts) > _MODELS else ""
            yield f"Many responses {what}: of {', '.join(texts[:_MODELS])}{more}."


def _named(tags: Sequence[str]) -> str:
    return ", ".join(map(language_name, tags))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
