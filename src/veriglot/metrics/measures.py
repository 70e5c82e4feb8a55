"""The table of measures: from summed counts to figures with intervals at every level, and reliability tables.

A measure maps `Sums` (the data in draw 0, resamples after it) to one value per draw.

Level `unit` is the Binary task of mFAVA (section 3.2, Table 3), `category` and `type:<type>` its Category task. Where
typed spans overlap, a unit holds several types, so each type is judged against the rest: a unit is right for a type
where reference and detector both have it. `_micro` adds the counts of the types, `_macro` is the mean over the types
for which the measure is defined, and `type_accuracy` is the share of units typed by both that share a type.

`ece` is the usual expected calibration error, over 15 groups of equal width; `ece_equal_mass` stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from veriglot.metrics import classification as scores
from veriglot.metrics import facts as support
from veriglot.metrics import ranking as histogram
from veriglot.metrics.bootstrap import percentile
from veriglot.metrics.counts import Coverage, Sums, added, dense, sums_of
from veriglot.metrics.estimate import MEAN, POOLED, MetricResult
from veriglot.metrics.ranking import BINS, ReliabilityBin, reliability

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from veriglot.metrics.counts import Counts

__all__ = ["RESAMPLES", "SEED", "SPAN_MEASURES", "Measure", "figures", "measures", "reliability_tables"]


if TYPE_CHECKING:
    Array = NDArray[np.float64]


NO_POSITIVES = "the reference marks nothing"
NO_MARKS = "the detector marks nothing"
NEITHER = "neither the reference nor the detector marks anything"
NO_NEGATIVES = "the reference marks everything"
ONE_CLASS = "the confidences are missing, or the reference marks nothing or everything"
NO_CONFIDENCES = "the predictions carry no confidences"
FLAT = "the reference or the detector marks nothing or everything"
NO_TYPES = "the types of the data and of the detector cannot be compared, or nothing typed was marked"
NO_SOFT = "there are no soft labels, or no confidences"
NOTHING = "there is nothing to count"
NO_FACTS = "no facts were counted"
ALIKE = "every response has the same share of supported facts, in the labels or by the detector"


@dataclass(frozen=True)
class Measure:
    """One measure.

    Attributes:
        level: see `MetricResult.level`.
        name: the measure's name.
        value: sums to one value per draw; NaN where it is undefined.
        why: the reason that stands beside an undefined value.
        size: sums to how many things stand behind the figure.
        prevalence: sums to the share of them that the reference calls unsupported.
    """

    level: str
    name: str
    value: Callable[[Sums], Array]
    why: str
    size: Callable[[Sums], Array]
    prevalence: Callable[[Sums], Array]


def _block(name: str) -> Callable[[Sums], Array]:
    return lambda sums: sums.blocks[name]


def _type_block(index: int) -> Callable[[Sums], Array]:
    return lambda sums: sums.blocks["types"][..., 4 * index : 4 * index + 4]


def _confusion_measures(level: str, get: Callable[[Sums], Array], *, more: bool) -> Iterator[Measure]:
    table: list[tuple[str, Callable[[Array], Array], str]] = [
        ("precision", scores.precision, NO_MARKS),
        ("recall", scores.recall, NO_POSITIVES),
        ("f1", scores.f1, NEITHER),
        ("fpr", scores.fpr, NO_NEGATIVES),
    ]
    if more:
        table += [
            ("tpr", scores.recall, NO_POSITIVES),
            ("accuracy", scores.accuracy, NOTHING),
            ("mcc", scores.mcc, FLAT),
        ]
    for name, score, why in table:
        yield Measure(
            level,
            name,
            lambda sums, score=score: score(get(sums)),  # type: ignore[misc]
            why,
            lambda sums: get(sums).sum(axis=-1),
            lambda sums: scores.prevalence(get(sums)),
        )


def _ranking_measures(level: str, *, calibration: bool, supported: bool = False) -> Iterator[Measure]:
    def parts(sums: Sums) -> tuple[Array, Array, Array, Array]:
        table = sums.histograms[level]
        return table[..., 0, :], table[..., 1, :], table[..., 2, :], table[..., 3, :]

    def size(sums: Sums) -> Array:
        total: Array = sums.histograms[level][..., :2, :].sum(axis=(-1, -2))
        return total

    def prevalence(sums: Sums) -> Array:
        return scores.ratio(sums.histograms[level][..., 0, :].sum(axis=-1), size(sums))

    def brier(sums: Sums) -> Array:
        return scores.ratio(parts(sums)[3].sum(axis=-1), size(sums))

    table: list[tuple[str, Callable[[Sums], Array], str]] = [
        ("average_precision", lambda sums: histogram.average_precision(*parts(sums)[:2]), ONE_CLASS),
        ("auroc", lambda sums: histogram.auroc(*parts(sums)[:2]), ONE_CLASS),
    ]
    if supported:
        table.append(
            (
                "average_precision_supported",
                lambda sums: histogram.average_precision(*(part[..., ::-1] for part in parts(sums)[1::-1])),
                ONE_CLASS,
            )
        )
    if calibration:
        table += [
            ("ece", lambda sums: histogram.ece_equal_width(*parts(sums)[:3]), NO_CONFIDENCES),
            ("ece_equal_mass", lambda sums: histogram.ece_equal_mass(*parts(sums)[:3]), NO_CONFIDENCES),
            ("brier", brier, NO_CONFIDENCES),
        ]
    for name, value, why in table:
        yield Measure(level, name, value, why, size, prevalence)


def _unit_size(sums: Sums) -> Array:
    size: Array = sums.blocks["unit"].sum(axis=-1)
    return size


def _unit_prevalence(sums: Sums) -> Array:
    return scores.prevalence(sums.blocks["unit"])


def _category_measures(types: Sequence[str]) -> Iterator[Measure]:
    def by_type(sums: Sums) -> Array:
        table = sums.blocks["types"]
        return table.reshape(*table.shape[:-1], len(types), 4)

    def macro(score: Callable[[Array], Array]) -> Callable[[Sums], Array]:
        """The mean over the types where the score is defined."""

        def mean(sums: Sums) -> Array:
            values = score(by_type(sums))
            known = ~np.isnan(values)
            return scores.ratio(np.where(known, values, 0.0).sum(axis=-1), known.sum(axis=-1))

        return mean

    def micro(score: Callable[[Array], Array]) -> Callable[[Sums], Array]:
        return lambda sums: score(by_type(sums).sum(axis=-2))

    for name, score in (("precision", scores.precision), ("recall", scores.recall), ("f1", scores.f1)):
        yield Measure("category", f"{name}_macro", macro(score), NO_TYPES, _unit_size, _unit_prevalence)
        yield Measure("category", f"{name}_micro", micro(score), NO_TYPES, _unit_size, _unit_prevalence)
    typing = _block("typing")
    yield Measure(
        "category",
        "type_accuracy",
        lambda sums: scores.ratio(typing(sums)[..., 0], typing(sums)[..., 1]),
        NO_TYPES,
        lambda sums: typing(sums)[..., 1],
        _unit_prevalence,
    )
    for index, name in enumerate(types):
        yield from _confusion_measures(f"type:{name}", _type_block(index), more=False)


def _span_measures() -> Iterator[Measure]:
    for block, prefix, typed in (
        ("exact", "exact", False),
        ("overlap", "overlap", False),
        ("partial", "partial", False),
        ("typed_exact", "typed_exact", True),
        ("typed_overlap", "typed_overlap", True),
    ):
        get = _block(block)
        for name, score, why in (
            ("precision", lambda c: scores.ratio(c[..., 0], c[..., 1]), NO_MARKS),
            ("recall", lambda c: scores.ratio(c[..., 0], c[..., 2]), NO_POSITIVES),
            ("f1", lambda c: scores.f1_of(c[..., 0], c[..., 1], c[..., 2]), NEITHER),
        ):
            yield Measure(
                "span",
                f"{prefix}_{name}",
                lambda sums, get=get, score=score: score(get(sums)),  # type: ignore[misc]
                NO_TYPES if typed else why,
                lambda sums, get=get: get(sums)[..., 2],  # type: ignore[misc]
                _unit_prevalence,
            )


def _character_measures() -> Iterator[Measure]:
    extent = _block("extent")
    for name, block, why in (("iou", "iou", NOTHING), ("soft_correlation", "soft", NO_SOFT)):
        get = _block(block)
        yield Measure(
            "char",
            name,
            lambda sums, get=get: scores.ratio(get(sums)[..., 0], get(sums)[..., 1]),  # type: ignore[misc]
            why,
            lambda sums: extent(sums)[..., 1],
            lambda sums: scores.ratio(extent(sums)[..., 0], extent(sums)[..., 1]),
        )


def _support_measures() -> Iterator[Measure]:
    def responses(sums: Sums) -> Array:
        count: Array = sums.blocks["support"][..., 0]
        return count

    def unsupported(sums: Sums) -> Array:
        return 1.0 - support.mean_of(sums.blocks["support"], "gold")

    for name, column in (("support", "gold"), ("support_found", "marked"), ("support_expected", "expected")):
        yield Measure(
            "fact",
            name,
            lambda sums, column=column: support.mean_of(sums.blocks["support"], column),  # type: ignore[misc]
            NO_FACTS,
            responses,
            unsupported,
        )
    for name, value, why in (
        ("support_error", lambda sums: support.mean_of(sums.blocks["support"], "off"), NO_FACTS),
        ("support_correlation", lambda sums: support.correlation(sums.blocks["support"]), ALIKE),
    ):
        yield Measure("fact", name, value, why, responses, unsupported)


def measures(types: Sequence[str]) -> list[Measure]:
    """Every measure, in the order in which figures are listed.

    Args:
        types: the types at level `category`; where empty, category figures are undefined.
    """
    return [
        *_confusion_measures("unit", _block("unit"), more=True),
        *_ranking_measures("unit", calibration=True),
        *_category_measures(types),
        *_span_measures(),
        *_character_measures(),
        *_confusion_measures("fact", _block("fact"), more=False),
        *_ranking_measures("fact", calibration=True, supported=True),
        *_support_measures(),
        *_confusion_measures("sentence", _block("sentence"), more=False),
        *_ranking_measures("sentence", calibration=False, supported=True),
        *_confusion_measures("response", _block("response"), more=False),
        *_ranking_measures("response", calibration=True),
    ]


SPAN_MEASURES = {"iou": "char", "soft_correlation": "char", "ece": "unit"}
"""Measures that a bench gives of every detector that marks spans, since no score of an item gives them; to level."""


# From counts to figures: per language, the mean over languages, and pooled, each with its interval.


RESAMPLES = 1000
SEED = 1
_TOO_FEW = "one text: no interval"
_NONE = "no labelled response was scored"


class _Behind(NamedTuple):
    """What stands behind the figures of one language: responses, clusters, coverage, and whether to resample."""

    responses: int
    clusters: int
    coverage: float | None
    resampled: bool


@dataclass(frozen=True)
class _Drawn:
    """One measure in one language: its values (the data in draw 0), size and prevalence."""

    values: Array
    size: float
    prevalence: float


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _draw(table: Sequence[Measure], sums: Sums) -> list[_Drawn]:
    plain = Sums(
        {name: part[:1] for name, part in sums.blocks.items()},
        {name: part[:1] for name, part in sums.histograms.items()},
    )
    return [
        _Drawn(measure.value(sums), float(measure.size(plain)[0]), float(measure.prevalence(plain)[0]))
        for measure in table
    ]


@dataclass(frozen=True)
class _Maker:
    unit: str
    signature: str

    def figure(
        self, measure: Measure, language: str, drawn: _Drawn, behind: _Behind, note: str | None = None
    ) -> MetricResult:
        value = _number(drawn.values[0])
        low = high = None
        if value is None:
            note = measure.why if behind.responses else _NONE
        elif not behind.resampled:
            note = f"{note}; {_TOO_FEW}" if note else _TOO_FEW
        elif len(drawn.values) > 1:
            low, high, undefined = percentile(drawn.values[1:])
            if undefined:
                gap = f"undefined in {undefined} of {len(drawn.values) - 1} resamples"
                note = f"{note}; {gap}" if note else gap
        return MetricResult(
            level=measure.level,
            name=measure.name,
            language=language,
            value=value,
            low=low,
            high=high,
            reason=note,
            unit=self.unit,
            n_responses=behind.responses,
            n_clusters=behind.clusters,
            n_units=round(drawn.size),
            coverage=behind.coverage,
            prevalence=_number(drawn.prevalence),
            signature=f"figure:{measure.level}.{measure.name}|language:{language}|{self.signature}",
        )


def figures(
    counts: Counts,
    *,
    signature: str,
    coverage: Mapping[str, Coverage],
    seed: int = SEED,
    resamples: int = RESAMPLES,
    levels: Sequence[str] | None = None,
) -> list[MetricResult]:
    """Every figure of the counts: those of each language, then the means over languages, then the pooled ones.

    Args:
        counts: the counts of scored and labelled responses.
        signature: what the figures' signatures say after the figure's own name and language.
        coverage: language to what became of its samples.
        seed: of the bootstrap.
        resamples: how many, at least 0; 0 gives no intervals.
        levels: the levels to give, `type` for all `type:...`; None for all.

    Returns:
        Figures in a fixed order. A mean over languages is taken over those where the figure is defined; its `reason`
        says which are missing. Resamples are drawn within each language, so pooled figures keep the data's mixture.
    """
    table = [m for m in measures(counts.types) if levels is None or m.level.split(":")[0] in levels]
    maker = _Maker(counts.unit, signature)
    result: list[MetricResult] = []
    drawn: dict[str, list[_Drawn]] = {}
    behind: dict[str, _Behind] = {}
    pooled: Sums | None = None
    for tag in sorted({*counts.languages, *coverage}):
        sums, clusters = sums_of(counts, tag, resamples=resamples, seed=seed)
        share = coverage[tag].share if tag in coverage else None
        behind[tag] = _Behind(counts.languages.count(tag), clusters, share, clusters > 1)
        drawn[tag] = _draw(table, sums)
        result += [maker.figure(m, tag, d, behind[tag]) for m, d in zip(table, drawn[tag], strict=True)]
        pooled = added(pooled, sums)
    if pooled is None:
        pooled, _ = sums_of(counts, "", resamples=0, seed=seed)
    whole = _Behind(
        len(counts),
        sum(part.clusters for part in behind.values()),
        Coverage.total(coverage.values()).share,
        any(part.resampled for part in behind.values()),
    )
    result += _means(maker, table, drawn, behind, whole)
    result += [maker.figure(m, POOLED, d, whole) for m, d in zip(table, _draw(table, pooled), strict=True)]
    return result


def _means(
    maker: _Maker,
    table: Sequence[Measure],
    drawn: Mapping[str, Sequence[_Drawn]],
    behind: Mapping[str, _Behind],
    whole: _Behind,
) -> list[MetricResult]:
    result = []
    for index, measure in enumerate(table):
        parts = {tag: rows[index] for tag, rows in drawn.items()}
        defined = {tag: part for tag, part in parts.items() if not np.isnan(part.values[0])}
        missing = [tag for tag in parts if tag not in defined]
        note = f"over {len(defined)} of {len(parts)} languages, without {', '.join(missing)}" if missing else None
        shares = [part.prevalence for part in defined.values() if not np.isnan(part.prevalence)]
        mean = _Drawn(
            np.mean([part.values for part in defined.values()], axis=0) if defined else np.array([np.nan]),
            sum(part.size for part in defined.values()),
            float(np.mean(shares)) if shares else float("nan"),
        )
        responses = _Behind(
            sum(behind[tag].responses for tag in defined or parts),
            sum(behind[tag].clusters for tag in defined or parts),
            whole.coverage,
            all(behind[tag].resampled for tag in defined),
        )
        result.append(maker.figure(measure, MEAN, mean, responses, note))
    return result


def reliability_tables(counts: Counts, level: str = "unit") -> dict[str, list[ReliabilityBin]]:
    """The reliability table of each language and of all (`pooled`): 15 groups of equal width with their counts."""
    table: dict[str, list[ReliabilityBin]] = {}
    whole = np.zeros((4, BINS))
    for tag in sorted(set(counts.languages)):
        group = np.where(np.array(counts.languages) == tag, 0, -1)
        histogram = dense(counts.histograms[level], group, 1)[0]
        whole += histogram
        table[tag] = reliability(*histogram[:3])
    return {**table, POOLED: reliability(*whole[:3])}
