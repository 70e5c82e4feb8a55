"""From counts to figures: per language, the mean over languages, and pooled, each with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from veriglot.metrics.bootstrap import percentile
from veriglot.metrics.counts import dense
from veriglot.metrics.coverage import Coverage
from veriglot.metrics.figure import MEAN, POOLED, Figure
from veriglot.metrics.histogram import BINS, ReliabilityBin, reliability
from veriglot.metrics.measures import Measure, measures
from veriglot.metrics.sums import Sums, added, sums_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from veriglot.metrics.counts import Counts

    Array = NDArray[np.float64]

__all__ = ["RESAMPLES", "SEED", "figures", "reliability_tables"]

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
    ) -> Figure:
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
        return Figure(
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
) -> list[Figure]:
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
    result: list[Figure] = []
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
) -> list[Figure]:
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
        one = dense(counts.histograms[level], group, 1)[0]
        whole += one
        table[tag] = reliability(*one[:3])
    return {**table, POOLED: reliability(*whole[:3])}
