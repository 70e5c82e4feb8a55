"""A study's results as `study run` writes them, of invented models, with numbers drawn from a seed.

Everything that a report must cope with is in it: rates that are unreliable with and without a number, missing coverage,
nearly equal models, marks in Arabic and Chinese, and answers that were not judged.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from judged_samples import arabic, chinese, crossing, english, hebrew, hindi, thai

from veriglot.datasets.quality import Quality
from veriglot.records import Estimator, Generator, Rate, Reliability
from veriglot.study.rates import ProfileComparison
from veriglot.study.results import (
    Average,
    Cell,
    Comparison,
    Correlation,
    Coverage,
    Example,
    Model,
    RankInterval,
    StudyResults,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LANGUAGES = ("en", "de", "fr", "es", "it", "tr", "ar", "ru", "zh-Hans", "hi", "ja", "sw")
MODELS = (
    Model("lark-2b", "lark", 2.1, 12, {"temperature": 0.6, "prompt": "closed"}),
    Model("lark-9b", "lark", 9.2, 12, {"temperature": 0.6, "prompt": "closed"}),
    Model("heron-3b-instruct", "heron", 3.0, 29, {"temperature": 0.7, "prompt": "closed", "top_p": 0.9}),
    Model("heron-7b-instruct", "heron", 7.6, 29, {"temperature": 0.7, "prompt": "closed", "top_p": 0.9}),
    Model("wren-1.7b", "wren", 1.7, 35),
    Model("oriole-8b", None, 8.0, 8, {"temperature": None, "prompt": "open"}),
)
ESTIMATORS = (Estimator.LABEL_SHIFT, Estimator.PAPER, Estimator.RAW, Estimator.EM)
TYPES = ("entity", "relation", "contradictory", "invented", "subjective", "unverifiable")
TPR, FPR, PRECISION, RECALL = 0.71, 0.035, 0.78, 0.71
NO_PROFILE = "The profile has no language {}: the pooled rates were used, on the assumption that they hold there."
CLOSE = "TPR (0.12) and FPR (0.10) of the profile lie so close that marks say next to nothing about the rate."


class _Place(NamedTuple):
    model: Model
    language: str
    true: float
    responses: int


def study_figures(
    models: Sequence[Model] = MODELS, languages: Sequence[str] = LANGUAGES, *, seed: int = 7, unit: str = "word"
) -> StudyResults:
    """Results of every model in every language."""
    draw = random.Random(seed)
    level = {model.name: draw.uniform(0.035, 0.13) for model in models}
    hard = {tag: draw.uniform(0.7, 1.6) for tag in languages}
    cells = tuple(
        _cell(_Place(model, tag, level[model.name] * hard[tag], draw.randrange(180, 400)), draw, unit)
        for model in models
        for tag in languages
    )
    names = [model.name for model in models]
    by_model = _averages([(name, [c for c in cells if c.model == name]) for name in names])
    by_language = _averages([(tag, [c for c in cells if c.language == tag]) for tag in languages])
    return StudyResults(
        title="Six small models on questions about articles",
        unit=unit,
        estimator="label-shift",
        confidence=0.95,
        detectors=("grounding@1.0", "encoder@0.3"),
        models=tuple(models),
        languages=tuple(languages),
        cells=cells,
        by_model=by_model,
        by_language=by_language,
        overall=_average("*", cells),
        ranks=_ranks(by_model, languages),
        comparisons=_comparisons(by_model, languages, draw),
        correlations=(
            Correlation("billions of parameters", "models", -0.52, 0.29, len(models), "pearson", low=-0.93, high=0.44),
            Correlation(
                "declared number of languages", "models", 0.61, 0.2, len(models), "spearman", low=-0.37, high=0.95
            ),
            Correlation(
                "small (under 5B) against large models", "cells", 0.48, 0.028, len(cells), "welch", low=0.05, high=0.9
            ),
            Correlation(
                "mean response length", "languages", -0.05, 0.87, len(languages), "pearson", low=-0.61, high=0.54
            ),
        ),
        examples=tuple(_examples(models)),
        methods=(
            "Each model answered 60 questions in each language with five seeds. Two detectors marked the words that the"
            " article does not support; a third of the answers was judged by both.",
            "Rates are corrected by label shift: (marked share - FPR) / (TPR - FPR), with TPR and FPR of the detector"
            " in the language, measured on gold labels.",
        ),
        assumptions=(
            "The detector finds and misses as often in these answers as in the texts that its profile was measured on.",
            "Questions are a random sample of the articles that passed the filters.",
        ),
        warnings=(
            "No profile exists for Swahili: the pooled profile was used.",
            "oriole-8b refused 31% of the questions in Hindi; its rate there is of the answers that it gave.",
        ),
        signature="veriglot:0.3.0|study:9d1f0c77|unit:word|estimator:label-shift|profile:5be2a1|detectors:grounding@1.0,"
        "encoder@0.3|threshold:0.5|seeds:1-5|bootstrap:2000|seed:0",
    )


def two_profiles() -> StudyResults:
    """As if the rates by `paper` were those by a second profile; two differ by whole points, one is unreliable."""
    results = study_figures(MODELS[:2], ("de", "ar"))
    cells = {(cell.model, cell.language): cell.rates[:2] for cell in results.cells}

    def pair(model: str, tag: str, first: float, second: float) -> ProfileComparison:
        rate, compared = cells[model, tag]
        replace = msgspec.structs.replace
        return ProfileComparison(replace(rate, rate=first), replace(compared, rate=second), 0.013, None)

    pairs = pair("lark-2b", "de", 0.08, 0.05), pair("lark-9b", "de", 0.07, 0.08), pair("lark-2b", "ar", 0.7, 0.77)
    related = Correlation("rate by compare_profile of x", "cells", 0.83, 1.26e-4, 15, "pearson")
    return msgspec.structs.replace(results, profiles=pairs, correlations=(related,))


def _cell(place: _Place, draw: random.Random, unit: str) -> Cell:
    model, tag, _, responses = place
    answered = responses + draw.randrange(0, 12)
    planned = answered + draw.choice((0, 0, 0, 3))
    missed = draw.choice((0, 0, 2, 9)) if tag != "sw" else answered // 3
    if (model.name, tag) == ("wren-1.7b", "ja"):
        missed = answered
    judged = answered - missed
    length = draw.uniform(35, 130)
    rates = tuple(_rate(place, estimator, judged, answered, length, draw, unit) for estimator in ESTIMATORS)
    sound = rates[0].status is Reliability.OK
    replicates = tuple(
        _rate(place, Estimator.LABEL_SHIFT, judged // 5, answered // 5, length, draw, unit, detector, seed)
        for detector in ("grounding@1.0", "encoder@0.3")
        for seed in range(1, 6)
    )
    return Cell(
        model=model.name,
        language=tag,
        rates=rates,
        replicates=replicates,
        mean=rates[0].rate if sound else None,
        sd=draw.uniform(0.002, 0.012) if sound else None,
        coverage=Coverage(
            planned, answered, planned - answered,
            {"scored": judged, **({"unsupported_language": missed} if missed else {})},
        ),
        quality=_quality(place, draw, length),
        types={name: draw.randrange(3, 160) for name in TYPES},
        length=length,
    )  # fmt: skip


def _rate(
    place: _Place, estimator: Estimator, judged: int, answered: int, length: float, draw: random.Random, unit: str,
    detector: str | None = None, seed: int | None = None,
) -> Rate:  # fmt: skip
    marked = place.true * TPR + (1 - place.true) * FPR + draw.gauss(0, 0.002)
    value = {
        Estimator.RAW: marked,
        Estimator.PAPER: marked * PRECISION / RECALL,
        Estimator.LABEL_SHIFT: max((marked - FPR) / (TPR - FPR), 0.0),
        Estimator.EM: max(place.true + draw.gauss(0, 0.006), 0.0),
    }[estimator]
    half = 1.96 * (max(value, 0.001) / max(judged * length, 1)) ** 0.5 * 3.2 + 0.004
    reason = _reason(place, estimator)
    made = reason is None or "no answer" not in reason
    return Rate(
        model=place.model.name, language=place.language, rate=value if made else None,
        low=max(value - half, 0.0) if made else None, high=min(value + half * 1.1, 1.0) if made else None,
        estimator=estimator, unit=unit, units=round(judged * length), responses=judged, coverage=judged / answered,
        status=Reliability.UNRELIABLE if reason else Reliability.OK, reason=reason,
        signature=f"veriglot:0.3.0|estimator:{estimator.value}|unit:{unit}|language:{place.language}",
        detector=detector, seed=seed,
    )  # fmt: skip


def _reason(place: _Place, estimator: Estimator) -> str | None:
    if place.model.name == "wren-1.7b" and place.language == "ja":
        return "There is no answer to estimate from: none of 312 responses could be judged."
    if estimator is Estimator.RAW:
        return None
    if place.language == "sw":
        return NO_PROFILE.format("sw")
    if place.model.name == "lark-2b" and place.language in {"hi", "ar"}:
        return CLOSE
    return None


def _quality(place: _Place, draw: random.Random, length: float) -> Quality:
    right = 1.0 if draw.random() < 0.5 else draw.uniform(0.8, 1.0)
    refused = 0.31 if (place.model.name, place.language) == ("oriole-8b", "hi") else draw.uniform(0, 0.03)
    return Quality(
        60, length, length / 17, draw.uniform(0.94, 1.0), place.language, right, refused, draw.uniform(0, 0.08),
        draw.uniform(0, 0.2), draw.uniform(0, 0.01), 60,
    )  # fmt: skip


def _average(name: str, cells: Sequence[Cell]) -> Average:
    values = [c.rates[0].rate for c in cells if c.rates[0].status is Reliability.OK and c.rates[0].rate is not None]
    left_out = len(cells) - len(values)
    if not values:
        return Average(name, None, None, 0, left_out)
    mean = sum(values) / len(values)
    sd = (sum((v - mean) ** 2 for v in values) / (len(values) - 1)) ** 0.5 if len(values) > 1 else None
    return Average(name, mean, sd, len(values), left_out, low=max(mean - 0.006, 0.0), high=mean + 0.007)


def _averages(groups: Sequence[tuple[str, Sequence[Cell]]]) -> tuple[Average, ...]:
    found = [_average(name, cells) for name, cells in groups]
    return tuple(sorted(found, key=lambda a: (a.mean is None, a.mean or 0.0)))


def _ranks(by_model: Sequence[Average], languages: Sequence[str]) -> tuple[RankInterval, ...]:
    last = len(by_model)
    return tuple(
        RankInterval(average.name, tag, rank, max(1, rank - (rank > 1)), min(last, rank + (rank > 2)))
        for tag in ("*", *languages)
        for rank, average in enumerate(by_model, start=1)
    )


def _comparisons(
    by_model: Sequence[Average], languages: Sequence[str], draw: random.Random
) -> tuple[Comparison, ...]:  # fmt: skip
    found = []
    for tag in ("*", *languages):
        for place, first in enumerate(by_model):
            for second in by_model[place + 1 :]:
                difference = (first.mean or 0.0) - (second.mean or 0.0)
                p = min(1.0, max(1e-6, 10 ** (-abs(difference) * 140 + draw.uniform(-0.3, 0.3))))
                found.append(
                    Comparison(
                        first.name, second.name, tag, difference, p,
                        min(1.0, p * 15), difference / 0.05, paired=True, queries=60,
                        method="paired bootstrap of queries, Holm", low=difference - 0.011, high=difference + 0.011,
                    )
                )  # fmt: skip
    return tuple(found)


def _examples(models: Sequence[Model]) -> Iterator[Example]:
    pairs = [english(), arabic(), hebrew(), chinese(), hindi(), thai(), crossing()]
    for place, (sample, prediction) in enumerate(pairs):
        generator = Generator(models[place % len(models)].name, seed=place % 5 + 1)
        yield Example(msgspec.structs.replace(sample, generator=generator), prediction)
