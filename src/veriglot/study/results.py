"""The results of a study: everything that its report shows, from counts and rates.

The record has no time stamp and no path, so the same study gives the same bytes.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import chain, combinations
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import asdict, replace

from veriglot.datasets.quality import Quality, QualityTally
from veriglot.errors import MissingExtraError
from veriglot.metrics.spans import ranges, segmenter
from veriglot.rates.comparison import Difference, adjust, average, compare, correlate, rank_intervals, t_test
from veriglot.rates.estimators import ESTIMATORS
from veriglot.records import Interval, Prediction, Rate, Reliability, Sample, Status, encode
from veriglot.records.settings import Record
from veriglot.signatures import __version__, digest, file_sha256, signature
from veriglot.study.rates import ProfileComparison, RatedCell, StudyRates, language_of
from veriglot.study.responses import Plan, all_files, pairs, respondent_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from veriglot.pipeline.progress import ProgressReporter
    from veriglot.study.config import Config, Folder, ModelEntry

    Cells = dict[tuple[str, str], RatedCell]

__all__ = [
    "BY_COMPARED",
    "Average",
    "Cell",
    "Comparison",
    "Example",
    "Model",
    "RankInterval",
    "Reference",
    "StudyResults",
    "assemble",
]


class Model(Record, omit_defaults=True):
    """One model of the study with its data in the study file.

    Attributes:
        name: the name in every table.
        family: models of one maker and generation.
        parameters: billions of parameters.
        languages: number of languages that its makers declare.
        settings: of its generation (preset, temperature, prompt, server's model name ...).
    """

    name: str
    family: str | None = None
    parameters: float | None = None
    languages: int | None = None
    settings: dict[str, str | int | float | bool | None] = {}


class Coverage(Record):
    """Outcome of the planned responses. Counts; `statuses` adds up to `answered`.

    Attributes:
        planned: responses of the design.
        answered: responses that exist.
        failed: calls without a response, after every retry.
        statuses: predictions of the first detector by status (`scored`, `unsupported_language` ...).
    """

    planned: int
    answered: int
    failed: int
    statuses: dict[str, int]


class Cell(Record):
    """One model in one language.

    Attributes:
        rates: the estimate by each estimator, over all seeds and detectors; the study's own estimator first.
        replicates: one rate per detector and seed, by the study's estimator (mFAVA: 3 x 5); raw if that is `ppi`.
        mean: mean of the reliable replicates' rates; None if there is none.
        sd: their sample standard deviation (ddof 1); None for fewer than two.
        types: marked units by span type (raw counts of the first detector).
        length: mean units per scored response.
    """

    model: str
    language: str
    rates: tuple[Rate, ...]
    replicates: tuple[Rate, ...]
    mean: float | None
    sd: float | None
    coverage: Coverage
    quality: Quality
    types: dict[str, int]
    length: float


class Average(Interval):
    """Mean over the cells of one model or language: unweighted, with its sample standard deviation (mFAVA, Figure 4).

    Attributes:
        name: the model or the language tag.
        mean, sd: of the reliable cells' rates by the study's estimator; None if there are too few.
        cells: number of cells in the mean.
        unreliable: number of cells left out because their rate is unreliable.
    """

    name: str
    mean: float | None
    sd: float | None
    cells: int
    unreliable: int


class RankInterval(Record):
    """Rank of a model among all (1 hallucinates least), with the ranks that the data cannot exclude."""

    model: str
    language: str
    rank: int
    low: int
    high: int


class Comparison(Interval):
    """Comparison of two models in one language, or over all (`*`).

    Attributes:
        first, second: names of the models; `difference` is first minus second.
        difference: of the rates, as a share.
        p: two-sided p-value.
        p_adjusted: after correction for all comparisons of the study.
        effect: standardised difference (paired: mean over standard deviation of the differences).
        paired: whether both answered the same queries.
        queries: number of queries compared.
        method: test and correction, in words.
    """

    first: str
    second: str
    language: str
    difference: float
    p: float
    p_adjusted: float
    effect: float | None
    paired: bool
    queries: int
    method: str


class Correlation(Interval):
    """A relation of rates with something else: size, declared languages, response length, resourcedness.

    Attributes:
        name: what was compared with the rate, in words.
        of: the points (`models`, `languages`, `cells`).
        r: the coefficient, or the standardised difference of a t-test.
        p: two-sided p-value.
        points: number of points.
        method: `pearson`, `spearman`, `welch` ...
    """

    name: str
    of: str
    r: float
    p: float
    points: int
    method: str


class Example(Record):
    """A response to show, with its marks."""

    sample: Sample
    prediction: Prediction


class Reference(Record):
    """A paper that the methods cite: as a line for a list of references, and as a BibTeX entry."""

    text: str
    bibtex: str


class StudyResults(Record):
    """All of a study's results.

    Attributes:
        title: of the study.
        unit, estimator, confidence: what is counted, the estimator of the rates, the level of intervals (0.95).
        detectors: name and revision of each.
        models, languages: in the order of the study file.
        cells: every model in every language of the study.
        by_model, by_language: averages, ascending.
        overall: average of the reliable cells of every model that has any, over the languages in which all of these
            models have one; without a mean if there is no such language.
        ranks, comparisons, correlations: see their records.
        examples: the most confident marks, some per language.
        methods, assumptions, warnings: paragraphs in words, for the reader of the report.
        references: what the methods cite.
        signature: one line that says how all results were made.
        profiles: rates by two profiles of a detector, if the study file has a `compare_profile`.
    """

    title: str
    unit: str
    estimator: str
    confidence: float
    detectors: tuple[str, ...]
    models: tuple[Model, ...]
    languages: tuple[str, ...]
    cells: tuple[Cell, ...]
    by_model: tuple[Average, ...]
    by_language: tuple[Average, ...]
    overall: Average
    ranks: tuple[RankInterval, ...]
    comparisons: tuple[Comparison, ...]
    correlations: tuple[Correlation, ...]
    examples: tuple[Example, ...]
    methods: tuple[str, ...]
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    signature: str
    profiles: tuple[ProfileComparison, ...] = ()
    references: tuple[Reference, ...] = ()


# Statistics from a pass over responses and predictions, in addition to unit counts: status, quality, types, examples.


_UNTYPED = "unsupported"
NOTHING = Quality(0, 0.0, 0.0, 0.0, None, None, 0.0, 0.0, None, 0.0, 0)
_EXAMPLES = 3  # of a language


@dataclass
class _CellStatistics:
    """One model in one language: statuses, marked units by type, quality, and the most confident mark."""

    statuses: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    quality: QualityTally = field(default_factory=QualityTally)
    best: tuple[float, Example] | None = None


class _ResponseStatistics:
    """Statistics of responses with the first detector's predictions; memory grows with models and languages."""

    def __init__(self, unit: str) -> None:
        self._segment = segmenter(unit)
        self._by_words = unit == "word"
        self.cells: dict[tuple[str, str], _CellStatistics] = {}

    def add(self, model: str, sample: Sample, prediction: Prediction) -> None:
        """Count one response."""
        tag = language_of(sample, prediction)
        cell = self.cells.setdefault((model, tag), _CellStatistics())
        cell.statuses[prediction.status] += 1
        cell.quality.add(sample)
        spans = prediction.spans
        if prediction.status is not Status.SCORED or not spans:
            return
        if self._by_words and prediction.words is not None:
            bounds = ranges(prediction.words)
        else:
            bounds = self._segment(sample.response, tag)
        marks = ranges(spans)
        first = np.searchsorted(bounds[:, 1], marks[:, 0], "right")
        last = np.searchsorted(bounds[:, 0], marks[:, 1], "left")
        for span, count in zip(spans, (last - first).tolist(), strict=True):
            cell.types[span.type or _UNTYPED] += max(0, count)
        most = max(span.confidence or 0.0 for span in spans)
        if cell.best is None or (-most, sample.id) < (-cell.best[0], cell.best[1].sample.id):
            cell.best = (most, Example(sample, replace(prediction, words=None)))

    def examples(self, languages: Iterable[str]) -> tuple[Example, ...]:
        """The most confident marks of each language, of different models."""
        chosen = []
        for tag in languages:
            best = [cell.best for (_, language), cell in self.cells.items() if language == tag and cell.best]
            best.sort(key=lambda pair: (-pair[0], pair[1].sample.id))
            chosen += [example for _, example in best[:_EXAMPLES]]
        return tuple(chosen)


# Comparisons of models, and correlations of rates with size, languages and length (mFAVA, section 4.2).


EVERYWHERE = "*"
BY_COMPARED = "rate by compare_profile"


def _reliable(rated: RatedCell) -> bool:
    """Whether the study's own estimate of a cell is reliable."""
    return rated.estimates[0].rate.status is Reliability.OK


def ranks(cells: Cells, models: Sequence[str], languages: Sequence[str], confidence: float) -> list[RankInterval]:
    """The models ordered in each language, and over the languages in which all of them can be ranked."""
    results = []
    for tag in languages:
        there = [model for model in models if _reliable(cells[model, tag])]
        results += _ranked(cells, there, [tag], tag, confidence)
    candidates, shared = _complete(cells, models, languages)
    return _ranked(cells, candidates, shared, EVERYWHERE, confidence) + results


def _complete(cells: Cells, models: Sequence[str], languages: Sequence[str]) -> tuple[list[str], list[str]]:
    """The models that have a reliable rate, and the languages in which all of these have one."""
    candidates = [model for model in models if any(_reliable(cells[model, tag]) for tag in languages)]
    return candidates, [tag for tag in languages if all(_reliable(cells[model, tag]) for model in candidates)]


def _ranked(
    cells: Cells, models: Sequence[str], languages: Sequence[str], name: str, confidence: float
) -> list[RankInterval]:
    if len(models) < 2 or not languages:
        return []
    means = [float(np.mean([cells[model, tag].estimates[0].value for tag in languages])) for model in models]
    draws = np.array([np.mean([cells[model, tag].estimates[0].draws for tag in languages], axis=0) for model in models])
    return [
        RankInterval(model, name, rank.rank, rank.best, rank.worst)
        for model, rank in zip(models, rank_intervals(means, draws, confidence=confidence), strict=True)
        if rank is not None
    ]


def comparisons(config: Config, cells: Cells, models: Sequence[str], languages: Sequence[str]) -> list[Comparison]:
    """Every two models in every language in which both are reliable, and over these; corrected for all (Holm)."""
    rows: list[tuple[str, str, str, Difference]] = []
    for first, second in combinations(models, 2):
        by_language = [
            (tag, difference)
            for tag in languages
            if _reliable(cells[first, tag]) and _reliable(cells[second, tag])
            if (difference := _difference(config, cells[first, tag], cells[second, tag], tag)) is not None
        ]
        over = Difference.over([difference for _, difference in by_language], confidence=config.study.confidence)
        if over is not None and len(by_language) > 1:
            rows.append((first, second, EVERYWHERE, over))
        rows += [(first, second, tag, difference) for tag, difference in by_language]
    corrected = adjust([difference.p for *_, difference in rows], "holm").tolist()
    return [
        Comparison(
            first, second, tag, row.difference, row.p, p, row.effect, row.paired, row.queries,
            f"{row.method}{_left_out(row)}; Holm's correction for {len(rows):,} comparison{'s'[: len(rows) - 1]}",
            low=row.low, high=row.high,
        )
        for (first, second, tag, row), p in zip(rows, corrected, strict=True)
        if not any(number is None or math.isnan(number) for number in (row.difference, row.low, row.high, row.p))
    ]  # fmt: skip


def _left_out(difference: Difference) -> str:
    """What a paired comparison leaves out, in words."""
    first, second = difference.left_out
    text = f" ({first:,} and {second:,} responses to queries that only one answered left out)"
    return text if first or second else ""


def _difference(config: Config, first: RatedCell, second: RatedCell, tag: str) -> Difference | None:
    """Paired by query for a single detector and a linear estimator; otherwise from the draws."""
    study = config.study
    if len(first.counted) == 1 and ESTIMATORS[study.estimator].factor is not None:
        profile, _ = first.counted[0].detector.of(tag)
        return compare(
            first.counted[0].joined, second.counted[0].joined, profile,
            estimator=study.estimator, confidence=study.confidence, seed=study.seed, draws=study.draws,
            drifts=(first.estimates[0].drift, second.estimates[0].drift),
        )  # fmt: skip
    estimate, other = first.estimates[0], second.estimates[0]
    queries = len(np.union1d(first.counted[0].joined.cluster, second.counted[0].joined.cluster))
    return Difference.of_draws(
        (estimate.value, other.value), (estimate.draws, other.draws), queries=queries, confidence=study.confidence
    )


def correlations(
    config: Config,
    models: Sequence[Model],
    by_model: dict[str, Average],
    by_language: dict[str, Average],
    cells: Sequence[Cell],
    rated: Cells,
) -> list[Correlation]:
    """Correlations of the rates with data in the study file and response length: never a cause, only a relation."""
    level = config.study.confidence
    means = {name: average.mean for name, average in by_model.items()}
    rates = {tag: average.mean for tag, average in by_language.items()}
    sizes = {model.name: model.parameters for model in models}
    declared = {model.name: model.languages for model in models}
    sound = [cell for cell in cells if cell.rates[0].status is Reliability.OK]
    length, unit = f"length of the response, in units ({config.study.unit})", config.study.unit
    results = [
        _related("parameters of the model, in billions", "models", sizes, means, level),
        _related("languages that the model's makers declare", "models", declared, means, level),
        _related(length, "languages", _by_language(sound, lambda cell: cell.length), rates, level),
        *(_related(name, "languages", config.by_tag(table), rates, level) for name, table in config.resources.items()),
        *(_amounts(name, sound, unit, level) for name in (EVERYWHERE, *means)),
        *_by_profiles(rated, level),
    ]
    return [result for result in results if result is not None] + _sizes(models, rated, level)


def _related(
    name: str, of: str, values: Mapping[Any, float | None], rates: Mapping[Any, float | None], level: float
) -> Correlation | None:
    pairs = [(x, y) for key, x in values.items() if x is not None and (y := rates.get(key)) is not None]
    tested = correlate([float(x) for x, _ in pairs], [y for _, y in pairs], confidence=level)
    return None if tested is None else Correlation(name, of, **asdict(tested))


def _by_language(cells: Sequence[Cell], value: Callable[[Cell], float]) -> dict[str, float]:
    """The mean of something over the cells of each language."""
    values = defaultdict[str, list[float]](list)
    for cell in cells:
        values[cell.language].append(value(cell))
    return {tag: fmean(each) for tag, each in values.items()}


def _amounts(model: str, cells: Sequence[Cell], unit: str, level: float) -> Correlation | None:
    """The amount (not the rate) against the length, for the mean of all models or for one (mFAVA, Figures 5c and 7)."""
    cells = [cell for cell in cells if model in {EVERYWHERE, cell.model}]
    lengths = _by_language(cells, lambda cell: cell.length)
    amounts = _by_language(cells, lambda cell: cell.length * (cell.rates[0].rate or 0.0))
    name = f"length of the response, against its unsupported units ({unit}), not the rate"
    return _related(name + f", {model}" * (model != EVERYWHERE), "languages", lengths, amounts, level)


def _by_profiles(cells: Cells, level: float) -> Iterator[Correlation | None]:
    """The rates by the two profiles of each detector, in the cells in which both are reliable (mFAVA, Figure 3)."""
    both = [each for rated in cells.values() for each in rated.profiles if each.difference is not None]
    for detector in dict.fromkeys(each.rate.detector for each in both):
        own = [each for each in both if each.rate.detector == detector]
        compared, rates = ({n: getattr(x, side).rate for n, x in enumerate(own)} for side in ("compared", "rate"))
        yield _related(f"{BY_COMPARED} of {detector}", "cells", compared, rates, level)


def _sizes(models: Sequence[Model], cells: Cells, level: float) -> list[Correlation]:
    """The largest against the smallest model of each family, and of all families, over replicates (mFAVA, Figure 5a).

    Means are over the languages in which every replicate of the compared models is reliable, so that both are over the
    same languages. Replicates share the model's texts, so a further test takes one mean of each model, paired within a
    family.
    """
    families: dict[str, list[Model]] = {}
    for model in models:
        if model.family is not None and model.parameters is not None:
            families.setdefault(model.family, []).append(model)
    pairs: dict[str, tuple[str, str]] = {}
    for family, members in families.items():
        members.sort(key=lambda model: model.parameters or 0.0)
        small, large = members[0], members[-1]
        if small.parameters != large.parameters:
            pairs[f"{family}: {large.name} against {small.name}"] = large.name, small.name
    results = [*chain.from_iterable(_size_tests(name, [pair], cells, level) for name, pair in pairs.items())]
    if len(pairs) > 1:
        name = f"the largest against the smallest model of {len(pairs)} families"
        results += _size_tests(name, list(pairs.values()), cells, level)
    return results


def _size_tests(name: str, pairs: Sequence[tuple[str, str]], cells: Cells, level: float) -> Iterator[Correlation]:
    """For (large, small) models: over the replicates of all, as in the paper, then over the means of each family."""
    shared = sorted(set.intersection(*(_reliable_in(cells, model) for pair in pairs for model in pair)))
    large, small = ([_replicate_means(cells, pair[side], shared) for pair in pairs] for side in (0, 1))
    name += f" in {len(shared)} language{'s' * (len(shared) != 1)} (standardised difference, Hedges' g)"
    test = t_test([*chain.from_iterable(large)], [*chain.from_iterable(small)], "student", confidence=level)
    if test is not None:
        method = "student t-test over detectors and seeds"
        yield Correlation(name, "replicates", test.g, test.p, sum(test.counts), method)
    if len(pairs) > 1 and all([*large, *small]):
        test = t_test([*map(fmean, large)], [*map(fmean, small)], "paired", confidence=level)
        if test is not None:
            yield Correlation(name, "families", test.g, test.p, len(pairs), "paired t-test over families")


def _reliable_in(cells: Cells, model: str) -> set[str]:
    """The languages in which every replicate of a model is reliable."""
    return {
        tag
        for (name, tag), rated in cells.items()
        if name == model and rated.replicates and all(rate.status is Reliability.OK for rate in rated.replicates)
    }


def _replicate_means(cells: Cells, model: str, languages: Sequence[str]) -> list[float]:
    """The mean rate over `languages` for each detector and seed that all of them have."""
    rates = defaultdict[tuple[str | None, int | None], list[float]](list)
    for rate in (rate for tag in languages for rate in cells[model, tag].replicates):
        if rate.rate is not None:
            rates[rate.detector, rate.seed].append(rate.rate)
    return [sum(rates[key]) / len(languages) for key in sorted(rates, key=str) if len(rates[key]) == len(languages)]


# The results of a study from its rates: cells, averages, ranks, comparisons, correlations, examples, text.


_PLAIN = (str, int, float, bool)


def assemble(
    config: Config, folder: Folder, plan: Plan, estimated: StudyRates, progress: ProgressReporter
) -> StudyResults:
    """All figures of the report; the same rates give the same record. `study.methods` adds the text.

    `progress` counts every response with the first detector's prediction.
    """
    study, survey, names = config.study, _ResponseStatistics(config.study.unit), list(plan.models)
    for name in names:
        detected = folder.predictions(estimated.detectors[0].label, name)
        for sample, prediction in pairs(folder.responses(name), detected):
            survey.add(name, sample, prediction)
            progress.advance()
    declared = {entry.name: entry for entry in config.models}
    models = tuple(_model(config, declared.get(name), name) for name in names)
    languages = estimated.languages
    cells = tuple(_cell(plan, estimated, survey, name, tag) for name in names for tag in languages)
    level = study.confidence
    by_model = {name: _average(name, [(name, tag) for tag in languages], estimated, level) for name in names}
    by_language = {tag: _average(tag, [(name, tag) for name in names], estimated, level) for tag in languages}
    compared, related, missing = [], [], []
    try:
        compared = comparisons(config, estimated.cells, names, languages)
        related = correlations(config, models, by_model, by_language, cells, estimated.cells)
    except MissingExtraError as error:
        missing = [f"Models are not compared and relations are not tested: {error}"]
    return StudyResults(
        title=config.title,
        unit=study.unit,
        estimator=study.estimator,
        confidence=level,
        detectors=tuple(detector.description.name for detector in estimated.detectors),
        models=models,
        languages=languages,
        cells=cells,
        by_model=_ascending(by_model.values()),
        by_language=_ascending(by_language.values()),
        overall=_overall(estimated, names, level),
        ranks=tuple(ranks(estimated.cells, names, languages, level)),
        comparisons=tuple(compared),
        correlations=tuple(related),
        examples=survey.examples(languages),
        methods=(),
        assumptions=(),
        warnings=tuple(missing),
        signature=_signature(config, estimated),
        profiles=tuple(each for rated in estimated.cells.values() for each in rated.profiles),
    )


def _model(config: Config, entry: ModelEntry | None, name: str) -> Model:
    if entry is None:
        return Model(name)
    settings: dict[str, str | int | float | bool | None] = {}
    if config.queries is not None:
        respondent = respondent_of(config, entry)
        settings = {"model": entry.model or entry.name, "prompt": respondent.prompt, "preset": entry.preset}
        given = respondent.settings.given() | respondent.settings.extra
        settings |= {key: value if isinstance(value, _PLAIN) else str(value) for key, value in given.items()}
    settings = {key: value for key, value in settings.items() if value is not None}
    return Model(name, entry.family, entry.parameters, entry.languages, settings)


def _cell(plan: Plan, estimated: StudyRates, survey: _ResponseStatistics, model: str, tag: str) -> Cell:
    rated = estimated.cells[model, tag]
    seen = survey.cells.get((model, tag), _CellStatistics())
    answered = seen.statuses.total()
    planned = sum(plan.models[model].get(tag, {}).values()) if plan.asked else answered
    sound = [rate.rate for rate in rated.replicates if rate.status is Reliability.OK and rate.rate is not None]
    own = rated.estimates[0].rate
    first = rated.counted[0].joined if rated.counted else None
    return Cell(
        model=model,
        language=tag,
        rates=tuple(estimate.rate for estimate in rated.estimates),
        replicates=rated.replicates,
        mean=fmean(sound) if sound else None,
        sd=stdev(sound) if len(sound) > 1 else None,
        coverage=Coverage(planned, answered, max(0, planned - answered), dict(sorted(seen.statuses.items()))),
        quality=seen.quality.quality() or NOTHING,
        types=dict(sorted(seen.types.items())),
        length=float(first.units.mean()) if first is not None and own.responses else 0.0,
    )


def _average(name: str, places: Sequence[tuple[str, str]], estimated: StudyRates, level: float) -> Average:
    every = [estimated.cells[cell] for cell in places]
    rated = [each for each in every if any(each.counted[0].given.values())] or every
    values = [cell_rates.estimates[0].value if _reliable(cell_rates) else math.nan for cell_rates in rated]
    over = average(values, np.array([cell_rates.estimates[0].draws for cell_rates in rated]), confidence=level)
    # Clip to [0, 1] at the end: the mean of clipped rates is too high near 0.
    mean, low, high = (None if x is None else min(max(x, 0.0), 1.0) for x in (over.mean, over.low, over.high))
    return Average(name, mean, over.sd, over.cells, over.left_out, low=low, high=high)


def _overall(estimated: StudyRates, names: Sequence[str], level: float) -> Average:
    """Over the models and languages of the ranks; the other cells with responses are left out."""
    candidates, shared = _complete(estimated.cells, names, estimated.languages)
    every = [cell for cell, rated in estimated.cells.items() if any(rated.counted[0].given.values())]
    inside = [(name, tag) for name in candidates for tag in shared]
    return replace(_average(EVERYWHERE, inside, estimated, level), unreliable=len(every) - len(inside))


def _ascending(averages: Iterable[Average]) -> tuple[Average, ...]:
    return tuple(sorted(averages, key=lambda mean: (mean.mean is None, mean.mean or 0.0, mean.name)))


def _signature(config: Config, estimated: StudyRates) -> str:
    """The models, detectors and methods; without paths of files or addresses of servers."""
    study = config.study
    rates = [encode(estimate.rate) for rated in estimated.cells.values() for estimate in rated.estimates]
    rates += [encode(each) for rated in estimated.cells.values() for each in rated.profiles]
    asked = config.queries
    files = all_files(config.resolve_all((config.responses or config.asked).path))
    models = [encode(respondent_of(config, entry)) for entry in config.models] if asked is not None else []
    return signature(
        data=digest(list(map(file_sha256, files)))[:16],
        models=digest(models)[:16] if models else None,
        design=asked.design if asked is not None else None,
        seeds="+".join(map(str, asked.seeds)) if asked is not None else None,
        rates=digest(rates)[:16],
        unit=study.unit,
        estimator=study.estimator,
        detectors="+".join(detector.description.signature for detector in estimated.detectors),
        confidence=study.confidence,
        seed=study.seed,
        draws=study.draws,
        version=__version__,
    )
