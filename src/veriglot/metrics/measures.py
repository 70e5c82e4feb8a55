"""The table of measures: from summed counts to a value, at every level.

A measure maps `Sums` (the data in draw 0, resamples after it) to one value per draw.

Level `unit` is the Binary task of mfava (section 3.2, Table 3), `category` and `type:<type>` its Category task. Where
typed spans overlap, a unit holds several types, so each type is judged against the rest: a unit is right for a type
where reference and detector both have it. `_micro` adds the counts of the types, `_macro` is the mean over the types
for which the measure is defined, and `type_accuracy` is the share of units typed by both that share a type.

`ece` is the usual expected calibration error, over 15 groups of equal width; `ece_equal_mass` stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veriglot.metrics import histogram, scores, support

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from veriglot.metrics.sums import Sums

    Array = NDArray[np.float64]

__all__ = ["Measure", "measures"]

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
        level: see `Figure.level`.
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
        found: Array = sums.histograms[level][..., :2, :].sum(axis=(-1, -2))
        return found

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
        found: Array = sums.blocks["support"][..., 0]
        return found

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
