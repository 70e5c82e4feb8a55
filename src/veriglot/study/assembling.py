"""The results of a study from its rates: cells, averages, ranks, comparisons, relations, examples, words."""

from __future__ import annotations

import math
from statistics import fmean, stdev
from typing import TYPE_CHECKING

import numpy as np

from veriglot import __version__
from veriglot.errors import MissingExtraError
from veriglot.provenance import digest, signature
from veriglot.rates import average
from veriglot.records import Reliability, encode
from veriglot.study.asking import data_hashes, respondent_of
from veriglot.study.comparing import comparisons, correlations, ranks, reliable
from veriglot.study.results import Average, Cell, Coverage, Model, StudyResults
from veriglot.study.words import assumptions_in_words, methods_in_words, warnings_in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from veriglot.rates import Mean
    from veriglot.study.config import Config
    from veriglot.study.entries import ModelEntry
    from veriglot.study.estimating import Estimated
    from veriglot.study.results import Comparison, Correlation
    from veriglot.study.status import Plan
    from veriglot.study.survey import Survey

__all__ = ["assemble"]

_PLAIN = (str, int, float, bool)


def assemble(config: Config, plan: Plan, found: Estimated, survey: Survey, lost: int) -> StudyResults:
    """Everything that the report shows; the same rates give the same record. `lost` rows came to nothing."""
    models = _models(config, plan)
    names = [model.name for model in models]
    languages = found.languages
    cells = tuple(_cell(plan, found, survey, name, tag) for name in names for tag in languages)
    level = config.study.confidence
    by_model = {name: _average(name, [(name, tag) for tag in languages], found, level) for name in names}
    by_language = {tag: _average(tag, [(name, tag) for name in names], found, level) for tag in languages}
    compared, related, missing = _tests(config, found, models, languages, by_model, by_language, cells)
    study = config.study
    return StudyResults(
        title=config.title,
        unit=study.unit,
        estimator=study.estimator,
        confidence=level,
        detectors=tuple(judging.description.name for judging in found.judgings),
        models=models,
        languages=languages,
        cells=cells,
        by_model=_ascending(by_model.values()),
        by_language=_ascending(by_language.values()),
        overall=_average("*", [(name, tag) for name in names for tag in languages], found, level),
        ranks=tuple(ranks(found.cells, names, languages, level)),
        comparisons=tuple(compared),
        correlations=tuple(related),
        examples=survey.examples(languages),
        methods=methods_in_words(config, plan, found),
        assumptions=assumptions_in_words(config, found, languages),
        warnings=(*missing, *warnings_in_words(config, cells, found, lost)),
        signature=_signature(config, found),
    )


def _models(config: Config, plan: Plan) -> tuple[Model, ...]:
    declared = {entry.name: entry for entry in config.models}
    return tuple(_model(config, declared.get(name), name) for name in plan.models)


def _model(config: Config, entry: ModelEntry | None, name: str) -> Model:
    if entry is None:
        return Model(name)
    settings: dict[str, str | int | float | bool | None] = {}
    if config.entries.queries is not None:
        respondent = respondent_of(config, entry)
        settings = {"model": entry.model or entry.name, "prompt": respondent.prompt, "preset": entry.preset}
        given = {**respondent.settings.given(), **respondent.settings.extra}
        settings |= {key: value if isinstance(value, _PLAIN) else str(value) for key, value in given.items()}
    settings = {key: value for key, value in settings.items() if value is not None}
    return Model(name, entry.family, entry.parameters, entry.languages, settings)


def _cell(plan: Plan, found: Estimated, survey: Survey, model: str, tag: str) -> Cell:
    rated = found.cells[model, tag]
    seen = survey.cells.get((model, tag))
    answered = seen.statuses.total() if seen is not None else 0
    planned = sum(plan.models[model].get(tag, {}).values()) if plan.asked else answered
    sound = [rate.rate for rate in rated.replicates if rate.status is Reliability.OK and rate.rate is not None]
    own = rated.made[0].rate
    first = rated.counted[0].joined if rated.counted else None
    return Cell(
        model=model,
        language=tag,
        rates=tuple(made.rate for made in rated.made),
        replicates=rated.replicates,
        mean=fmean(sound) if sound else None,
        sd=stdev(sound) if len(sound) > 1 else None,
        coverage=Coverage(
            planned, answered, max(0, planned - answered), dict(sorted(seen.statuses.items())) if seen else {}
        ),
        quality=survey.quality(model, tag),
        types=dict(sorted(seen.types.items())) if seen is not None else {},
        length=float(first.units.mean()) if first is not None and own.responses else 0.0,
    )


def _average(name: str, places: Sequence[tuple[str, str]], found: Estimated, level: float) -> Average:
    rated = [found.cells[place] for place in places]
    values = [one.made[0].value if reliable(one) else math.nan for one in rated]
    draws = np.array([one.made[0].draws for one in rated])
    found_mean = average(values, draws, confidence=level)
    # Cut to shares at the end: the mean of rates that are cut each is too high near 0.
    mean, low, high = (None if x is None else min(max(x, 0.0), 1.0) for x in _ends(found_mean))
    return Average(name, mean, found_mean.sd, low, high, found_mean.cells, found_mean.left_out)


def _ends(mean: Mean) -> tuple[float | None, float | None, float | None]:
    return mean.mean, mean.low, mean.high


def _ascending(averages: Iterable[Average]) -> tuple[Average, ...]:
    return tuple(sorted(averages, key=lambda one: (one.mean is None, one.mean or 0.0, one.name)))


def _tests(
    config: Config,
    found: Estimated,
    models: tuple[Model, ...],
    languages: tuple[str, ...],
    by_model: dict[str, Average],
    by_language: dict[str, Average],
    cells: tuple[Cell, ...],
) -> tuple[list[Comparison], list[Correlation], list[str]]:
    """Comparisons and relations, or the warning that they need packages which are not installed."""
    names = [model.name for model in models]
    try:
        return (
            comparisons(config, found.cells, names, languages),
            correlations(config, models, by_model, by_language, cells, found.cells),
            [],
        )
    except MissingExtraError as error:
        return [], [], [f"Models are not compared and relations are not tested: {error}"]


def _signature(config: Config, found: Estimated) -> str:
    """What was asked and judged, and how: not where the files lie, nor at what address a model was reached."""
    study, entries = config.study, config.entries
    rates = [encode(made.rate) for rated in found.cells.values() for made in rated.made]
    asked = entries.queries
    models = [encode(respondent_of(config, entry)) for entry in config.models] if asked is not None else []
    return signature(
        data=digest(data_hashes(config))[:16],
        models=digest(models)[:16] if models else None,
        design=asked.design if asked is not None else None,
        seeds="+".join(map(str, asked.seeds)) if asked is not None else None,
        rates=digest(rates)[:16],
        unit=study.unit,
        estimator=study.estimator,
        detectors="+".join(judging.description.signature for judging in found.judgings),
        confidence=study.confidence,
        seed=study.seed,
        draws=study.draws,
        version=__version__,
    )
