"""The tables of measures: figures with intervals, from summed counts, and from items with scores of systems.

A `Measure` maps `Sums` (the data in draw 0, resamples after it) to one value per draw; an `ItemMeasure` maps scores,
labels and weights to the same. Both are listed only here, with their names and why they may be undefined.

Level `unit` is the Binary task of mFAVA (section 3.2, Table 3), `category` and `type:<type>` its Category task. If
typed spans overlap, a unit has several types, so each type is compared with the rest: a unit is right for a type
if reference and detector both have it. `_micro` adds the counts of the types, `_macro` is the mean over the types
for which the measure is defined, and `type_accuracy` is the share of units typed by both that share a type.

`ece` is the usual expected calibration error, over 15 groups of equal width; `ece_equal_mass` is listed with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from veriglot.errors import UnknownNameError, UsageError
from veriglot.metrics import scores
from veriglot.metrics.counts import Counts, Coverage, Histogram, Sums
from veriglot.metrics.estimate import (
    MEAN,
    POOLED,
    ClusteredEstimate,
    MetricResult,
    Resampling,
    estimated,
    interval_of,
    number,
)
from veriglot.metrics.scores import BINS, COUNT_SCORES, Ranked, ReliabilityBin, bin_of, ratio, reliability
from veriglot.plugins import read_package_data
from veriglot.records import Direction, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from veriglot.arrays import Bools, Float64s, Int64s

    Array = Float64s
    Mask = Bools
    Cut = float | Array
    Value = Callable[[Array, Array, Array, Array], Array]  # of badness, truth, weights and cuts
    Statistic = Callable[[Sums], Array]  # of counts, one per group

__all__ = [
    "AT_THRESHOLD",
    "CORRELATIONS",
    "ITEM_MEASURES",
    "RESAMPLES",
    "SEED",
    "SPAN_MEASURES",
    "TYPES",
    "Items",
    "badness_of",
    "described",
    "draws",
    "figures",
    "reliability_tables",
    "unit_draws",
]


# Measures of counts.


class Measure(Record):
    """One measure of counts."""

    level: str
    name: str
    value: Statistic
    why: str
    size: Statistic
    prevalence: Statistic


_NO_TYPES = "the types of the data and of the detector cannot be compared, or nothing typed was marked"
_NO_CONFIDENCES = "the predictions carry no confidences"
_ONE_CLASS = "the confidences are missing, or the reference marks nothing or everything"
_TEXTS = read_package_data(__package__, "measures.toml", dict[str, dict[str, str]])
_WHY = _TEXTS["marks"]


def _confusion(level: str, get: Statistic, *more: str) -> Iterator[Measure]:
    for name in ("precision", "recall", "f1", "fpr", *more):
        score = COUNT_SCORES["recall" if name == "tpr" else name]
        yield Measure(level, name, lambda sums, score=score: score(get(sums)), _WHY[name], *_extent(get))  # type: ignore[misc]


def _extent(get: Statistic) -> tuple[Statistic, Statistic]:
    """Size and prevalence of a block of true and false positives and negatives."""
    return lambda sums: get(sums).sum(axis=-1), lambda sums: scores.prevalence(get(sums))


def _block(name: str, first: int = 0, size: int | None = None) -> Statistic:
    return lambda sums: sums.blocks[name][..., first : None if size is None else first + size]


def _ratio(block: str, part: str, whole: str) -> Statistic:
    """One column of a block divided by another."""
    return lambda sums: ratio(sums.column(block, part), sums.column(block, whole))


def _column(block: str, name: str) -> Statistic:
    return lambda sums: sums.column(block, name)


def _confidences(level: str, *, calibration: bool = True, supported: bool = False) -> Iterator[Measure]:
    """Ranking and calibration measures."""

    def parts(sums: Sums) -> Array:
        return np.moveaxis(sums.histograms[level], -2, 0)

    def size(sums: Sums) -> Array:
        total: Array = parts(sums)[:2].sum(axis=(0, -1))
        return total

    def share(row: int) -> Statistic:
        return lambda sums: ratio(parts(sums)[row].sum(axis=-1), size(sums))

    def of_supported(sums: Sums) -> Array:
        return scores.average_precision(*parts(sums)[1::-1, ..., ::-1])

    table: list[tuple[str, Statistic, str]] = [
        ("average_precision", lambda sums: scores.average_precision(*parts(sums)[:2]), _ONE_CLASS),
        ("auroc", lambda sums: scores.auroc(*parts(sums)[:2]), _ONE_CLASS),
    ]
    if supported:
        table.append(("average_precision_supported", of_supported, _ONE_CLASS))
    if calibration:
        table += [
            ("ece", lambda sums: scores.ece_equal_width(*parts(sums)[:3]), _NO_CONFIDENCES),
            ("ece_equal_mass", lambda sums: scores.ece_equal_mass(*parts(sums)[:3]), _NO_CONFIDENCES),
            ("brier", share(3), _NO_CONFIDENCES),
        ]
    for name, value, why in table:
        yield Measure(level, name, value, why, size, share(0))


def _category(types: Sequence[str]) -> Iterator[Measure]:
    def by_type(sums: Sums) -> Array:
        table = sums.blocks["types"]
        return table.reshape(*table.shape[:-1], len(types), 4)

    def macro(score: Callable[[Array], Array], sums: Sums) -> Array:
        """The mean over the types for which the score is defined."""
        values = score(by_type(sums))
        known = ~np.isnan(values)
        return ratio(np.where(known, values, 0.0).sum(axis=-1), known.sum(axis=-1))

    def micro(score: Callable[[Array], Array], sums: Sums) -> Array:
        return score(by_type(sums).sum(axis=-2))

    units = _extent(_block("unit"))
    for name in ("precision", "recall", "f1"):
        for suffix, over in (("macro", macro), ("micro", micro)):
            yield Measure("category", f"{name}_{suffix}", partial(over, COUNT_SCORES[name]), _NO_TYPES, *units)
    typing = _ratio("typing", "right", "both"), _NO_TYPES, _column("typing", "both"), units[1]
    yield Measure("category", "type_accuracy", *typing)
    for index, name in enumerate(types):
        yield from _confusion(f"type:{name}", _block("types", 4 * index, 4))


def _spans() -> Iterator[Measure]:
    _, prevalence = _extent(_block("unit"))
    for block in ("exact", "overlap", "partial", "typed_exact", "typed_overlap"):

        def f1(sums: Sums, block: str = block) -> Array:
            matched, predicted, gold = np.moveaxis(sums.blocks[block], -1, 0)
            return ratio(2.0 * matched, predicted + gold)

        for name, value in (
            ("precision", _ratio(block, "matched", "predicted")),
            ("recall", _ratio(block, "matched", "gold")),
            ("f1", f1),
        ):
            why = _NO_TYPES if block.startswith("typed") else _WHY[name]
            yield Measure("span", f"{block}_{name}", value, why, _column(block, "gold"), prevalence)


def _characters() -> Iterator[Measure]:
    extent = _column("extent", "characters"), _ratio("extent", "marked", "characters")
    for name, block, why in (
        ("iou", "iou", _WHY["accuracy"]),
        ("soft_correlation", "soft", "there are no soft labels, or no confidences"),
    ):
        yield Measure("char", name, _ratio(block, "sum", "responses"), why, *extent)


def support_correlation(sums: Sums) -> Array:
    """Pearson's correlation over responses between the labelled share of supported facts and the one expected from
    scores.

    NaN if either is the same in every response (Kang et al., Table 6, column Pearson).
    """
    gold, expected, gold_squared, expected_squared, product = (
        _ratio("support", name, "responses")(sums)
        for name in ("gold", "expected", "gold_squared", "expected_squared", "product")
    )
    spread = np.maximum(gold_squared - gold**2, 0.0) * np.maximum(expected_squared - expected**2, 0.0)
    coefficient = ratio(product - gold * expected, np.sqrt(np.where(spread > 1e-18, spread, 0.0)))
    return np.clip(coefficient, -1.0, 1.0)


def _support() -> Iterator[Measure]:
    gold = _ratio("support", "gold", "responses")
    extent = _column("support", "responses"), lambda sums: 1.0 - gold(sums)
    for suffix, column in (("", "gold"), ("_found", "marked"), ("_expected", "expected"), ("_error", "off")):
        value = _ratio("support", column, "responses")
        yield Measure("fact", f"support{suffix}", value, "no facts were counted", *extent)
    alike = "every response has the same share of supported facts, in the labels or by the detector"
    yield Measure("fact", "support_correlation", support_correlation, alike, *extent)


def measures(types: Sequence[str]) -> list[Measure]:
    """Every measure, in the order in which figures are listed."""
    return [
        *_confusion("unit", _block("unit"), "tpr", "accuracy", "mcc"),
        *_confidences("unit"),
        *_category(types),
        *_spans(),
        *_characters(),
        *_confusion("fact", _block("fact")),
        *_confidences("fact", supported=True),
        *_support(),
        *_confusion("sentence", _block("sentence")),
        *_confidences("sentence", calibration=False, supported=True),
        *_confusion("response", _block("response")),
        *_confidences("response"),
    ]


SPAN_MEASURES = {"iou": "char", "soft_correlation": "char", "ece": "unit"}
"""Measure to level: measures of detectors with spans in a bench, since item scores cannot give them."""


# From counts to figures: per language, the mean over languages, and pooled, each with its interval.

RESAMPLES = 1000
SEED = 0


class _Basis(NamedTuple):
    """Basis of the figures of one language: responses, clusters, coverage, and whether to resample."""

    responses: int
    clusters: int
    coverage: float | None
    resampled: bool


class _Draws(NamedTuple):
    """One measure in one language: its values (the data in draw 0), size and prevalence."""

    values: Array
    size: float
    prevalence: float


def _draw(table: Sequence[Measure], sums: Sums) -> list[_Draws]:
    data = sums.first()
    return [_Draws(m.value(sums), float(m.size(data)[0]), float(m.prevalence(data)[0])) for m in table]


def _figure(
    unit: str, signature: str, measure: Measure, language: str, drawn: _Draws, basis: _Basis, note: str | None = None
) -> MetricResult:
    value, low, high = number(drawn.values[0]), None, None
    if value is None:
        note = measure.why if basis.responses else "no labelled response was scored"
    else:
        low, high, gap = interval_of(drawn.values, basis.resampled)
        note = "; ".join(filter(None, (note, gap))) or None
    return MetricResult(
        level=measure.level,
        name=measure.name,
        language=language,
        value=value,
        low=low,
        high=high,
        reason=note,
        unit=unit,
        n_responses=basis.responses,
        n_clusters=basis.clusters,
        n_units=round(drawn.size),
        coverage=basis.coverage,
        prevalence=number(drawn.prevalence),
        signature=f"figure:{measure.level}.{measure.name}|language:{language}|{signature}",
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
    """All figures of the counts: those of each language, then the means over languages, then the pooled ones.

    Args:
        counts: the counts of scored and labelled responses.
        signature: end of the figures' signatures, after the figure's own name and language.
        coverage: language to the status counts of its samples.
        seed: of the bootstrap.
        resamples: number of resamples, at least 0; 0 for no intervals.
        levels: the levels to compute, `type` for all `type:...`; None for all.

    Returns:
        Figures in a fixed order. A mean over languages is over those for which the figure is defined; its `reason`
        names the others. Resamples are drawn within each language, so pooled figures keep the data's proportions.
    """
    table = [m for m in measures(counts.types) if levels is None or m.level.split(":")[0] in levels]
    figure = partial(_figure, counts.unit, signature)
    drawn: dict[str, list[_Draws]] = {}
    basis: dict[str, _Basis] = {}
    pooled: Sums | None = None
    for tag in sorted({*counts.languages, *coverage}):
        sums, clusters = counts.sums(tag, resamples=resamples, seed=seed)
        share = coverage[tag].share if tag in coverage else None
        basis[tag] = _Basis(counts.languages.count(tag), clusters, share, clusters > 1)
        drawn[tag] = _draw(table, sums)
        pooled = sums if pooled is None else pooled + sums
    if pooled is None:
        pooled, _ = counts.sums("", resamples=0, seed=seed)
    whole = _Basis(
        len(counts),
        sum(part.clusters for part in basis.values()),
        Coverage.total(coverage.values()).share,
        any(part.resampled for part in basis.values()),
    )
    return [
        *(figure(m, tag, d, basis[tag]) for tag, row in drawn.items() for m, d in zip(table, row, strict=True)),
        *(
            figure(measure, MEAN, *_mean({tag: row[index] for tag, row in drawn.items()}, basis, whole.coverage))
            for index, measure in enumerate(table)
        ),
        *(figure(m, POOLED, d, whole) for m, d in zip(table, _draw(table, pooled), strict=True)),
    ]


def _mean(
    parts: Mapping[str, _Draws], basis: Mapping[str, _Basis], coverage: float | None
) -> tuple[_Draws, _Basis, str | None]:
    """A measure over the languages for which it is defined, with a note on the others."""
    defined = {tag: part for tag, part in parts.items() if not np.isnan(part.values[0])}
    missing = [tag for tag in parts if tag not in defined]
    note = f"over {len(defined)} of {len(parts)} languages, without {', '.join(missing)}" if missing else None
    shares = [part.prevalence for part in defined.values() if not np.isnan(part.prevalence)]
    mean = _Draws(
        np.mean([part.values for part in defined.values()], axis=0) if defined else np.array([np.nan]),
        sum(part.size for part in defined.values()),
        float(np.mean(shares)) if shares else np.nan,
    )
    languages = [basis[tag] for tag in defined or parts]
    responses, clusters = sum(part.responses for part in languages), sum(part.clusters for part in languages)
    return mean, _Basis(responses, clusters, coverage, all(basis[tag].resampled for tag in defined)), note


def reliability_tables(counts: Counts, level: str = "unit") -> dict[str, list[ReliabilityBin]]:
    """The reliability table of each language and of all (`pooled`): 15 groups of equal width with their counts."""
    histograms = {tag: counts.histogram(level, tag) for tag in sorted(set(counts.languages))}
    histograms[POOLED] = sum(histograms.values(), np.zeros((4, BINS)))
    return {tag: reliability(*histogram[:3]) for tag, histogram in histograms.items()}


def unit_draws(
    confidences: Array, gold: Mask, texts: Int64s, *, seed: int, threshold: float | Array | None
) -> dict[str, Array]:
    """Measures of level `unit`, by name: on the data (draw 0), and on resamples of whole texts if there are several.

    Args:
        confidences: of each unit, 0 to 1, shape `(n,)`.
        gold: whether each is unsupported, shape `(n,)`.
        texts: the text of each, shape `(n,)`.
        seed: of the resamples, which depend only on it and the texts.
        threshold: from which a unit is marked, for all or for each; None marks none.
    """
    keys, response = np.unique(texts, return_inverse=True)
    marked = np.zeros(len(gold), bool) if threshold is None else confidences >= threshold
    unit = np.zeros((len(keys), 4))
    np.add.at(unit, (response, 2 * ~marked + ~gold), 1.0)
    values = np.stack([gold, ~gold, confidences, (confidences - gold) ** 2], axis=1)
    names, histogram = tuple(map(str, keys)), Histogram(response, bin_of(confidences), values)
    counts = Counts("word", (), names, ("quality",) * len(names), names, {"unit": unit}, {"unit": histogram})
    sums, _ = counts.sums("quality", resamples=RESAMPLES if len(names) > 1 else 0, seed=seed)
    return {measure.name: measure.value(sums) for measure in measures(()) if measure.level == "unit"}


# Measures of items: scores of responses or sentences with their labels.
#
# For every measure but `fpr`, greater is better. In the papers, `auc_pr_factual` and `auc_pr_nonfactual` are
# AUC_F and AUC_NF (Kang et al., Table 6), `auc_pr_verified` and `auc_pr_unverified` AUC_V and AUC_UNV (their Table 7);
# precision, recall, F1 and MCC are HAT's (section 4.1), of the positive class, which is hallucination.
#
# The sign of correlations makes a good system positive: goodness is correlated with the support rate, badness with
# the unverified rate. Kang et al. correlate the scores as they are, so their CON has the other sign (Table 6).


def badness_of(values: Sequence[float | None] | Array, direction: Direction | str) -> Array:
    """Scores with the sign that makes greater worse; NaN for a missing one.

    Args:
        values: a system's own scores, shape `(n,)`; None or NaN if it gave none.
        direction: of these scores.
    """
    numbers = np.array([np.nan if value is None else value for value in values], np.float64)
    return numbers if Direction(direction) is Direction.HIGHER_IS_WORSE else -numbers


@dataclass(frozen=True)
class Items:
    """The items of a data set, in an order shared by all systems.

    Attributes:
        badness: the system's score, greater is worse, of any range; NaN if it gave none. Shape `(n,)`.
        nonfactual: whether the labels call anything in the item unsupported, shape `(n,)`.
        support: share of the item's facts that the evidence supports (Kang et al.'s N_vs / N_t), NaN if it has no
            facts; None if it is not known.
        unverified: share that the evidence neither supports nor contradicts (Kang et al.'s N_nv / N_t), NaN if it
            has no facts or the labels do not say; None if it is not known.
        pairwise: badness by the same scorer as `pairwise:`; None if not requested.
        right: 1 if the system names the labelled type, 0 if another or none; NaN if the labels do not have exactly one
            type; None if types are not compared.

    Raises:
        ValueError: arrays of different lengths.
    """

    badness: Array
    nonfactual: Mask
    support: Array | None = None
    unverified: Array | None = None
    pairwise: Array | None = None
    right: Array | None = None

    def __post_init__(self) -> None:
        sizes = {len(part) for part in vars(self).values() if part is not None}
        if len(sizes) > 1:
            raise ValueError(f"items have as many scores as labels, not {sorted(sizes)}")

    def __len__(self) -> int:
        return len(self.badness)

    @property
    def scored(self) -> Mask:
        """Which items the system scored, shape `(n,)`; figures use only these."""
        return ~np.isnan(self.badness)

    def select(self, mask: Mask) -> Items:
        """Some of the items; `mask` has shape `(n,)`."""
        return replace(self, **{name: part[mask] for name, part in vars(self).items() if part is not None})


class ItemMeasure(Record):
    """One measure of items."""

    kind: str
    summary: str
    why: str
    truth: str
    value: Value
    positive: Callable[[Array], Mask]
    chance: Callable[[float], float] | None


TYPES = "type_accuracy"
"""HalluVerse25's measure (its Table 3); `type_accuracy:TYPE` is for responses of one type."""


def _is(truth: Array) -> Mask:
    return truth > 0


def _at(score: Callable[[Array], Array]) -> Value:
    def value(bad: Array, truth: Array, weights: Array, cut: Array) -> Array:
        marked, positive = bad >= cut, _is(truth)
        cells = (marked & positive, marked & ~positive, ~marked & positive, ~marked & ~positive)
        return score(weights @ np.stack(cells, axis=1).astype(np.float64))

    return value


def _item_measures() -> Iterator[tuple[str, ItemMeasure]]:
    for name, why in _TEXTS["items"].items():
        summary = _TEXTS["summaries"][name]
        yield name, ItemMeasure("threshold", summary, why, "nonfactual", _at(COUNT_SCORES[name]), _is, None)
    alike = "all labels are the same"
    no_rates = "the labels do not tell what is unverified, or all items are the same in it"
    for truth, good, bad, why in (
        ("nonfactual", "factual", "nonfactual", alike),
        ("unverified", "verified", "unverified", no_rates),
    ):
        for name, sign, positive in ((good, -1.0, lambda share: share <= 0), (bad, 1.0, _is)):
            summary = f"area under precision and recall, positives are {name}"
            precise = _ranked(sign, positive, Ranked.average_precision)
            yield f"auc_pr_{name}", ItemMeasure("ranking", summary, why, truth, precise, positive, lambda share: share)
    summary, auroc = "chance that a non-factual item has the worse score than a factual one", Ranked.auroc
    yield "auroc", ItemMeasure("ranking", summary, alike, "nonfactual", _ranked(1.0, _is, auroc), _is, lambda _: 0.5)
    unknown = "all scores or all rates are the same, or the rates are not known"
    for truth, sign, positive, why in (
        ("support", -1.0, lambda share: share < 1, unknown),
        ("unverified", 1.0, _is, no_rates),
        ("pairwise", 1.0, _is, "all numbers are the same, or the scorer is not in the bench as pairwise: too"),
    ):
        for kind, correlation in (("pearson", scores.pearson), ("spearman", scores.spearman)):
            summary = f"{kind.title()} correlation with " + (
                "the scorer itself, pairwise" if truth == "pairwise" else f"the {truth} rate"
            )
            value = _correlated(correlation, sign)
            yield f"{kind}_{truth}", ItemMeasure("correlation", summary, why, truth, value, positive, lambda _: 0.0)
    why = "types are not compared, or no response has one type"
    yield TYPES, ItemMeasure("type", "share of responses whose type is named", why, "right", _share, _is, None)


def _share(_: Array, truth: Array, weights: Array, __: Array) -> Array:
    return ratio(weights @ truth, weights.sum(axis=-1))


def _ranked(sign: float, positive: Callable[[Array], Mask], score: Callable[[Ranked, Array], Array]) -> Value:
    return lambda bad, truth, weights, _: score(Ranked.of(sign * bad, positive(truth)), weights)


def _correlated(correlation: Callable[[Array, Array, Array], Array], sign: float) -> Value:
    return lambda bad, truth, weights, _: correlation(sign * bad, truth, weights)


ITEM_MEASURES: dict[str, ItemMeasure] = dict(_item_measures())
AT_THRESHOLD = tuple(name for name, entry in ITEM_MEASURES.items() if entry.kind == "threshold")
CORRELATIONS = tuple(name for name, entry in ITEM_MEASURES.items() if entry.kind == "correlation")


def _known(name: str, items: Items) -> tuple[ItemMeasure, Array, Mask]:
    """A measure, the truth of each item, and which items are scored and have a truth."""
    if name not in ITEM_MEASURES:
        raise UnknownNameError("measure", name, ITEM_MEASURES)
    entry = ITEM_MEASURES[name]
    values = getattr(items, entry.truth)
    truth = np.full(len(items), np.nan) if values is None else np.asarray(values, np.float64)
    return entry, truth, items.scored & ~np.isnan(truth)


def draws(name: str, items: Items, resampling: Resampling, *, cut: Cut | None = None) -> Array:
    """A measure on the data (draw 0) and on every resample, shape `(1 + resamples,)`; NaN if undefined.

    Args:
        name: one of `ITEM_MEASURES`.
        items: of one system.
        resampling: of the same items.
        cut: an item counts as marked from this badness on; one for all or one for each, shape `(n,)`; for the measures
            of `AT_THRESHOLD`.

    Raises:
        UnknownNameError: no such measure.
        UsageError: a measure at a threshold, without a threshold.
        ValueError: items, resampling and cuts have different lengths, or a cut is NaN.
    """
    entry, truth, known = _known(name, items)
    if entry.kind == "threshold" and cut is None:
        raise UsageError(f"The measure {name!r} needs a threshold.", "Tune one on a dev split, or give one.")
    if len(items) != len(resampling.cluster):
        raise ValueError(f"{len(items)} items, but resamples of {len(resampling.cluster)}")
    bad, labels = items.badness[known], truth[known]
    if not len(bad):
        return np.full(len(resampling.table), np.nan)
    cuts = np.broadcast_to(np.asarray(0.0 if cut is None else cut, np.float64), known.shape)[known]
    if np.isnan(cuts).any():
        raise ValueError("a cut is a number: leave out the items for which there is none")
    return np.concatenate([entry.value(bad, labels, weights, cuts) for weights in resampling.select(known).blocks()])


def described(name: str, items: Items, resampling: Resampling, drawn: Array) -> ClusteredEstimate:
    """The estimate from draws of a measure, with its numbers of items and clusters."""
    entry, truth, known = _known(name, items)
    positives = int(np.count_nonzero(entry.positive(truth[known])))
    total = int(np.count_nonzero(known))
    why = entry.why
    if not items.scored.any():
        why = "no labelled item was scored"
    elif not total and entry.kind != "type":
        why = f"the labels do not tell the {entry.truth} rate of any scored item"
    return estimated(
        drawn,
        items=total,
        positives=positives,
        clusters=resampling.select(known).clusters(),
        why=why,
        chance=entry.chance(positives / total) if entry.chance is not None and total else None,
    )
