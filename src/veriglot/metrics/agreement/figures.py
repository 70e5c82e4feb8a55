"""Agreement of annotators as figures: between which of them, in which language, with intervals over texts.

Cohen's kappa and the F1 of spans are computed for each two annotators over all texts that both annotated, and averaged
over the pairs (mfava, section 4, has kappa so). Krippendorff's alpha and gamma take all annotators of a text at once.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
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

    from veriglot.metrics.agreement.gamma import Disorder
    from veriglot.metrics.agreement.texts import Layered, Pair, PairSums

    Array = NDArray[np.float64]

__all__ = ["ALL", "FEWEST_TEXTS", "MEASURES", "AgreementFigure", "agreement_figures"]

Scope = Literal["binary", "typed"]
MEASURES = ("kappa", "pi", "alpha", "span_f1", "span_f1_exact", "gamma")
ALL = "all"
"""Stands for all languages, and for all annotators of a text."""

FEWEST_TEXTS = 5
"""Texts under which no interval is given: a bootstrap of two to four texts says next to nothing of their spread."""

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
            by at least one annotator of a pair, `clusters` texts. Fewer than `FEWEST_TEXTS` give no interval.
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
    resamples: int = 1000,
    seed: int = 1,
    anonymous: bool = False,
    gamma: int = SAMPLES,
    wanted: Callable[[Pair], bool] | None = None,
) -> list[AgreementFigure]:
    """All figures of some texts: of each language, and of all together where there are several.

    Args:
        texts: with the layers of those whose agreement is asked for; texts with one layer count for nothing.
        names: types in order (`typed`), or None (`binary`). Spans without a type need an empty name among them.
        resamples: of whole texts within each language, languages of a single text together; 0 for no intervals.
        seed: of the resamples, and of gamma's chance.
        anonymous: names stand for nobody: pairs are pooled, and Scott's pi stands in for kappa.
        gamma: random annotations a text; 0 leaves gamma out, which is most of the work.
        wanted: which pairs count; all where None. Alpha and gamma, which know no pairs, are then left out.

    Raises:
        MissingExtraError: gamma is asked for, and scipy is not installed.
    """
    shared = [text for text in texts if len(text.layers) > 1]
    languages = sorted({text.language for text in shared})
    drawn = Resampling.of([text.id for text in shared], _strata(shared), resamples=resamples, seed=seed)
    sums = [_sums(text, names, wanted, gamma, seed) for text in shared]
    found: list[AgreementFigure] = []
    for language in [*languages, *([ALL] if len(languages) != 1 else [])]:
        places = [place for place, text in enumerate(shared) if language in (ALL, text.language)]
        work = _Work([sums[place] for place in places], drawn.place[places], drawn, language, names is not None)
        found += work.pairs(anonymous)
        if wanted is None:
            found.append(work.alpha(1 + (1 if names is None else len(names))))
        if wanted is None and gamma:
            found.append(work.gamma())
    return found


def _strata(texts: Sequence[Layered]) -> list[str]:
    """Where each text is drawn from: its language; one text drawn from itself would make an interval of no width."""
    ids: dict[str, set[str]] = defaultdict(set)
    for text in texts:
        ids[text.language].add(text.id)
    return [text.language if len(ids[text.language]) > 1 else "single texts" for text in texts]


class _Sums(NamedTuple):
    """What one text gives: see `PairSums`, `label_sums` and `Disorder`."""

    units: int
    annotators: tuple[str, ...]
    pairs: list[PairSums]
    labels: Array | None
    disorder: Disorder | None


def _sums(
    text: Layered, names: Sequence[str] | None, wanted: Callable[[Pair], bool] | None, gamma: int, seed: int
) -> _Sums:
    everyone = wanted is None
    return _Sums(
        len(text.bounds),
        tuple(sorted(text.layers)),
        [one for one in pair_sums(text, names) if wanted is None or wanted(one.pair)],
        label_sums(text, names) if everyone else None,
        gamma_of(text, names, seed=seed, samples=gamma) if everyone and gamma else None,
    )


class _Work:
    """The figures of one language.

    Args:
        texts: what each text gives.
        clusters: the cluster of each text, shape `(n,)`.
        drawn: how often each resample draws each cluster.
        language: what the figures say they are of.
        typed: whether types count.
    """

    def __init__(
        self, texts: Sequence[_Sums], clusters: NDArray[np.int64], drawn: Resampling, language: str, typed: bool
    ) -> None:
        self._texts = texts
        self._clusters = clusters
        self._drawn = drawn
        self._language = language
        self._scope: Scope = "typed" if typed else "binary"

    def _figure(self, measure: str, between: Pair, pairs: int, estimate: Estimate) -> AgreementFigure:
        return AgreementFigure(measure, self._scope, self._language, between, pairs, _honest(estimate))

    def _add(self, rows: Array, places: Sequence[int]) -> Array:
        """Sums over texts, draw by draw: `(texts, ...)` to `(1 + resamples, ...)`."""
        weights = self._drawn.table[:, self._clusters[list(places)]].astype(np.float64)
        return np.tensordot(weights, rows, axes=1)

    def _count(self, places: Iterable[int]) -> int:
        return len({int(self._clusters[place]) for place in places})

    def pairs(self, anonymous: bool) -> list[AgreementFigure]:
        """Kappa (or pi) and the F1 of spans, of each pair and of all."""
        by_pair: dict[Pair, list[tuple[int, PairSums]]] = defaultdict(list)
        for place, text in enumerate(self._texts):
            for sums in text.pairs:
                by_pair[(ALL, ALL) if anonymous else sums.pair].append((place, sums))
        cells = {pair: _Cell(self._add, found) for pair, found in sorted(by_pair.items())}
        chosen = ("pi" if anonymous else "kappa", "span_f1", "span_f1_exact")
        each = [
            self._figure(measure, pair, 1, cell.estimate(measure, self._count(cell.places)))
            for pair, cell in cells.items()
            for measure in chosen
            if not anonymous
        ]
        return each + [self._mean(measure, list(cells.values())) for measure in chosen]

    def _mean(self, measure: str, cells: Sequence[_Cell]) -> AgreementFigure:
        defined = [cell for cell in cells if not np.isnan(cell.draws(measure)[0])]
        draws = mean_of_draws([cell.draws(measure) for cell in cells]) if cells else np.array([np.nan])
        counts = [cell.sizes(measure) for cell in cells]
        estimate = estimated(
            draws,
            items=sum(size for size, _ in counts),
            positives=sum(marked for _, marked in counts),
            clusters=self._count(place for cell in cells for place in cell.places),
            why=_why(measure) if cells else _ALONE,
        )
        return self._figure(measure, (ALL, ALL), len(defined), estimate)

    def alpha(self, values: int) -> AgreementFigure:
        """Of all annotators of a text."""
        rows = [text.labels for text in self._texts if text.labels is not None]
        table = np.stack(rows) if rows else np.zeros((0, values, values))
        estimate = estimated(
            alpha(self._add(table, range(len(rows)))),
            items=sum(text.units for text in self._texts),
            positives=round(float(table.sum(axis=0)[1:].sum())),
            clusters=self._count(range(len(rows))),
            why=_CONSTANT if rows else _ALONE,
        )
        return self._figure("alpha", (ALL, ALL), self._all_pairs(), estimate)

    def gamma(self) -> AgreementFigure:
        """1 - observed / expected disorder, both summed over texts, each weighted by its spans."""
        found = [(place, one.disorder) for place, one in enumerate(self._texts) if one.disorder is not None]
        places = [place for place, _ in found]
        rows = np.array([(one.observed * one.spans, one.expected * one.spans) for _, one in found]).reshape(-1, 2)
        sums = self._add(rows, places)
        with np.errstate(divide="ignore", invalid="ignore"):
            draws = np.where(sums[:, 1] > 0, 1 - sums[:, 0] / sums[:, 1], np.nan)
        spans = round(sum(one.spans * len(self._texts[place].annotators) for place, one in found))
        why = "nobody marked anything" if self._texts else _ALONE
        estimate = estimated(draws, items=spans, positives=spans, clusters=self._count(places), why=why)
        return self._figure("gamma", (ALL, ALL), self._all_pairs(), estimate)

    def _all_pairs(self) -> int:
        return len({pair for text in self._texts for pair in combinations(text.annotators, 2)})


def _honest(estimate: Estimate) -> Estimate:
    """Without an interval where too few texts were drawn from."""
    if estimate.value is None or estimate.clusters >= FEWEST_TEXTS:
        return estimate
    texts = "1 text" if estimate.clusters == 1 else f"{estimate.clusters} texts"
    reason = f"too few texts for an interval: {texts}, and {FEWEST_TEXTS} are the fewest"
    return estimate._replace(low=None, high=None, reason=reason)


def _why(measure: str) -> str:
    return "nobody marked anything" if measure.startswith("span") else _CONSTANT


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

    def estimate(self, measure: str, texts: int) -> Estimate:
        """Of this pair alone, over so many texts."""
        items, positives = self.sizes(measure)
        return estimated(self.draws(measure), items=items, positives=positives, clusters=texts, why=_why(measure))
