"""Agreement of annotators as figures: between which of them, in which language, with intervals over texts.

Cohen's kappa and the F1 of spans are computed for each two annotators over all texts that both annotated, and averaged
over the pairs (mfava, section 4, has kappa so). Krippendorff's alpha and gamma take all annotators of a text at once.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from veriglot.metrics.agreement.coefficients import alpha, kappa, pi
from veriglot.metrics.agreement.gamma import SAMPLES
from veriglot.metrics.agreement.texts import gamma_of, label_sums, pair_sums
from veriglot.metrics.estimate import Estimate, estimated, mean_of_draws
from veriglot.metrics.resampling import Resampling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from veriglot.metrics.agreement.texts import Layered, Pair, PairSums

    Array = NDArray[np.float64]

__all__ = ["ALL", "MEASURES", "AgreementFigure", "agreement_figures"]

Scope = Literal["binary", "typed"]
MEASURES = ("kappa", "pi", "alpha", "span_f1", "span_f1_exact", "gamma")
ALL = "all"
"""Stands for all languages, and for all annotators of a text."""

_ALONE = "nobody shares a text with another annotator"
_CONSTANT = "every unit has the same label, so that chance explains it all"


class AgreementFigure(NamedTuple):
    """One figure.

    Attributes:
        measure: of `MEASURES`.
        scope: `binary` (marked or not), or `typed` (as which type).
        language: BCP 47 tag, or `ALL`.
        between: two annotators, or `(ALL, ALL)`.
        pairs: pairs of annotators behind it.
        estimate: the number; `items` are units (spans, for `span_f1` and `gamma`), `positives` those that are marked
            by at least one annotator of a pair, `clusters` texts.
    """

    measure: str
    scope: Scope
    language: str
    between: Pair
    pairs: int
    estimate: Estimate


def agreement_figures(
    texts: Sequence[Layered],
    names: Sequence[str] | None,
    *,
    language: str = ALL,
    resamples: int = 1000,
    seed: int = 1,
    anonymous: bool = False,
    gamma: int = SAMPLES,
    wanted: Callable[[Pair], bool] | None = None,
) -> list[AgreementFigure]:
    """All figures of some texts.

    Args:
        texts: with the layers of those whose agreement is asked for; texts with one layer count for nothing.
        names: types in order (`typed`), or None (`binary`). Spans without a type need an empty name among them.
        language: what the figures say they are of.
        resamples: of whole texts; 0 for no intervals.
        seed: of the resamples, and of gamma's chance.
        anonymous: names stand for nobody: pairs are pooled, and Scott's pi stands in for kappa.
        gamma: random annotations a text; 0 leaves gamma out, which is most of the work.
        wanted: which pairs count; all where None. Alpha and gamma, which know no pairs, are then left out.
    """
    shared = [text for text in texts if len(text.layers) > 1]
    drawn = Resampling.of([text.id for text in shared], resamples=resamples, seed=seed)
    work = _Work(shared, names, language, drawn)
    found = work.pairs(anonymous, wanted)
    if wanted is None:
        found.append(work.alpha())
        if gamma:
            found.append(work.gamma(seed, gamma))
    return found


class _Work:
    def __init__(self, texts: Sequence[Layered], names: Sequence[str] | None, language: str, drawn: Resampling) -> None:
        self._texts = texts
        self._names = names
        self._scope: Scope = "binary" if names is None else "typed"
        self._language = language
        self._drawn = drawn

    def _sums(self, rows: Array, places: Sequence[int]) -> Array:
        """Sums over texts, draw by draw: `(texts, ...)` to `(1 + resamples, ...)`."""
        clusters = self._drawn.place[list(places)]
        weights = self._drawn.table[:, clusters].astype(np.float64)
        return np.tensordot(weights, rows, axes=1) if len(rows) else np.zeros((len(weights), *rows.shape[1:]))

    def pairs(self, anonymous: bool, wanted: Callable[[Pair], bool] | None) -> list[AgreementFigure]:
        """Kappa (or pi) and the F1 of spans, of each pair and of all."""
        by_pair: dict[Pair, list[tuple[int, PairSums]]] = defaultdict(list)
        for place, text in enumerate(self._texts):
            for sums in pair_sums(text, self._names):
                if wanted is None or wanted(sums.pair):
                    by_pair[(ALL, ALL) if anonymous else sums.pair].append((place, sums))
        cells = {pair: _Cell(self._sums, found) for pair, found in sorted(by_pair.items())}
        chosen = ("pi" if anonymous else "kappa", "span_f1", "span_f1_exact")
        figures = [
            AgreementFigure(measure, self._scope, self._language, pair, 1, cell.estimate(measure))
            for pair, cell in cells.items()
            for measure in chosen
            if not anonymous
        ]
        return figures + [self._mean(measure, list(cells.values())) for measure in chosen]

    def _mean(self, measure: str, cells: Sequence[_Cell]) -> AgreementFigure:
        places = {place for cell in cells for place in cell.places}
        defined = [cell for cell in cells if not np.isnan(cell.draws(measure)[0])]
        draws = mean_of_draws([cell.draws(measure) for cell in cells]) if cells else np.array([np.nan])
        counts = [cell.sizes(measure) for cell in cells]
        estimate = estimated(
            draws,
            items=sum(size for size, _ in counts),
            positives=sum(marked for _, marked in counts),
            clusters=len({int(self._drawn.place[place]) for place in places}),
            why=_CONSTANT if cells else _ALONE,
        )
        return AgreementFigure(measure, self._scope, self._language, (ALL, ALL), len(defined), estimate)

    def alpha(self) -> AgreementFigure:
        """Of all annotators of a text."""
        rows = [label_sums(text, self._names) for text in self._texts]
        values = 2 if self._names is None else 1 + len(self._names)
        table = np.stack(rows) if rows else np.zeros((0, values, values))
        draws = alpha(self._sums(table, range(len(rows))))
        labels = table.sum(axis=0)
        units = sum(len(text.bounds) for text in self._texts)
        estimate = estimated(
            draws,
            items=units,
            positives=round(float(labels[1:].sum())),
            clusters=self._drawn.clusters() if rows else 0,
            why=_CONSTANT if rows else _ALONE,
        )
        return AgreementFigure("alpha", self._scope, self._language, (ALL, ALL), self._all_pairs(), estimate)

    def gamma(self, seed: int, samples: int) -> AgreementFigure:
        """1 - observed / expected disorder, both summed over texts, each weighted by its spans."""
        found = [
            (place, one)
            for place, text in enumerate(self._texts)
            if (one := gamma_of(text, self._names, seed=seed, samples=samples)) is not None
        ]
        rows = np.array([(one.observed * one.spans, one.expected * one.spans) for _, one in found]).reshape(-1, 2)
        sums = self._sums(rows, [place for place, _ in found])
        with np.errstate(divide="ignore", invalid="ignore"):
            draws = np.where(sums[:, 1] > 0, 1 - sums[:, 0] / sums[:, 1], np.nan)
        spans = sum(len(marks.spans) for place, _ in found for marks in self._texts[place].layers.values())
        places = {int(self._drawn.place[place]) for place, _ in found}
        estimate = estimated(
            draws,
            items=spans,
            positives=spans,
            clusters=len(places),
            why="nobody marked anything" if self._texts else _ALONE,
        )
        return AgreementFigure("gamma", self._scope, self._language, (ALL, ALL), self._all_pairs(), estimate)

    def _all_pairs(self) -> int:
        pairs = {(a, b) for text in self._texts for a in text.layers for b in text.layers if a < b}
        return len(pairs)


class _Cell:
    """One pair of annotators over the texts that both annotated."""

    def __init__(self, add: Callable[[Array, Sequence[int]], Array], found: Iterable[tuple[int, PairSums]]) -> None:
        rows = list(found)
        self.places = [place for place, _ in rows]
        self._tables = add(np.stack([one.table for _, one in rows]), self.places)
        spans = np.array([(one.spans, one.overlapping, one.exact) for _, one in rows])
        self._spans = add(spans, self.places)

    def draws(self, measure: str) -> Array:
        """The data first, resamples after it."""
        if measure == "kappa":
            return kappa(self._tables)
        if measure == "pi":
            return pi(self._tables)
        matched = self._spans[:, 1 if measure == "span_f1" else 2]
        with np.errstate(divide="ignore", invalid="ignore"):
            found: Array = np.where(self._spans[:, 0] > 0, matched / self._spans[:, 0], np.nan)
        return found

    def sizes(self, measure: str) -> tuple[int, int]:
        """What is counted, and how much of it is marked."""
        if measure.startswith("span"):
            return int(self._spans[0, 0]), int(self._spans[0, 0])
        units = int(self._tables[0].sum())
        return units, units - int(self._tables[0, 0, 0])

    def estimate(self, measure: str) -> Estimate:
        """Of this pair alone."""
        items, positives = self.sizes(measure)
        why = "neither marked anything" if measure.startswith("span") else _CONSTANT
        return estimated(self.draws(measure), items=items, positives=positives, clusters=len(set(self.places)), why=why)
