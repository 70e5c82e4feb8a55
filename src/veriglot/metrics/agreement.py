"""Agreement of annotators: kappa, pi, Krippendorff's alpha and gamma, by pair and language, with intervals over texts.

Cohen's kappa and the F1 of spans are computed for each two annotators over all texts that both annotated, and averaged
over the pairs (mFAVA, section 4, has kappa so). Krippendorff's alpha and gamma take all annotators of a text at once.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from importlib import import_module
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import numpy as np

from veriglot.errors import MissingExtraError, UsageError
from veriglot.metrics.bootstrap import Resampling, stream
from veriglot.metrics.estimate import FEWEST_TEXTS, ClusteredEstimate, estimated, mean_of_draws, too_few
from veriglot.metrics.spans import exact, overlap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from veriglot.metrics.reference import Marks

__all__ = ["ALL", "FEWEST_TEXTS", "SAMPLES", "AgreementFigure", "Layered", "agreement_figures", "alpha", "kappa", "pi"]


# Chance-corrected coefficients from counts: Cohen's kappa, Scott's pi and Krippendorff's alpha.
#
# All take counts that have already been summed, one draw after another, so that a thousand resamples cost one matrix
# product. Each coefficient is 1 - observed / expected disagreement; where the expected one is 0 (everybody gave every
# unit the same label) it is undefined, and NaN here.


Scale = Literal["nominal", "ordinal", "interval"]


def kappa(tables: Array) -> Array:
    """Cohen's kappa of two annotators (Cohen 1960), each expected to label by the shares of their own labels.

    Args:
        tables: how many units one gave label `i` and the other label `j`, shape `(..., labels, labels)`.

    Returns:
        Shape `(...)`; NaN where there are no units, or where chance alone explains them all.
    """
    total = tables.sum(axis=(-2, -1))
    same = np.trace(tables, axis1=-2, axis2=-1)
    expected = (tables.sum(axis=-1) * tables.sum(axis=-2)).sum(axis=-1)
    return _corrected(same * total, expected, total * total)


def pi(tables: Array) -> Array:
    """Scott's pi (Scott 1955): both are expected to label by the shares of their labels together.

    It does not ask who of the two is who, so it is what can be had where annotators have no names.

    Args:
        tables: as for `kappa`; turned round, they give the same.
    """
    total = tables.sum(axis=(-2, -1))
    same = np.trace(tables, axis1=-2, axis2=-1)
    both = tables.sum(axis=-1) + tables.sum(axis=-2)
    return _corrected(same * total, (both * both).sum(axis=-1) / 4, total * total)


def _corrected(observed: Array, expected: Array, most: Array) -> Array:
    room = most - expected
    with np.errstate(divide="ignore", invalid="ignore"):
        coefficient: Array = np.where(room > 1e-12 * most, (observed - expected) / room, np.nan)
    return coefficient


def coincidences(labels: NDArray[np.int64], values: int) -> Array:
    """Pairs of labels inside units, as Krippendorff counts them (2004, section 11.3): shape `(values, values)`.

    Each unit gives each ordered pair of its labels, weighted by 1 / (labels - 1); a unit with one label gives none.

    Args:
        labels: which value each annotator gave each unit, shape `(annotators, units)`; negative where none.
        values: how many values there are.
    """
    given = np.stack([(labels == value).sum(axis=0) for value in range(values)]).astype(np.float64)
    raters = given.sum(axis=0)
    share = np.divide(1.0, raters - 1, out=np.zeros_like(raters), where=raters > 1)
    pairs: Array = (given * share) @ given.T
    pairs[np.diag_indices(values)] -= (given * share).sum(axis=1)
    return pairs


def distances(counts: Array, scale: Scale, numbers: Sequence[float] | None = None) -> Array:
    """The squared difference of each two values, shape `(..., values, values)` (Krippendorff 2004, section 11.3).

    Args:
        counts: how often each value was given, shape `(..., values)`; an ordinal difference depends on it.
        scale: nominal (0 or 1), ordinal (how many labels lie between), interval (of `numbers`).
        numbers: what the values stand for, shape `(values,)`; only for intervals, 0, 1, 2 ... where None.
    """
    size = counts.shape[-1]
    if scale == "nominal":
        return np.broadcast_to(1.0 - np.eye(size), (*counts.shape, size))
    if scale == "interval":
        points = np.arange(size, dtype=np.float64) if numbers is None else np.asarray(numbers, np.float64)
        return np.broadcast_to((points[:, None] - points[None, :]) ** 2, (*counts.shape, size))
    middle = np.cumsum(counts, axis=-1) - counts / 2
    between: Array = (middle[..., :, None] - middle[..., None, :]) ** 2
    return between


def alpha(tables: Array, scale: Scale = "nominal", numbers: Sequence[float] | None = None) -> Array:
    """Krippendorff's alpha of any number of annotators.

    Args:
        tables: sums of `coincidences`, shape `(..., values, values)`.
        scale: how far apart two values are; see `distances`.
        numbers: what the values stand for, for the interval scale.

    Returns:
        Shape `(...)`; NaN where fewer than two labels can be paired, or all are the same.
    """
    counts = tables.sum(axis=-1)
    total = counts.sum(axis=-1)
    apart = distances(counts, scale, numbers)
    observed = (tables * apart).sum(axis=(-2, -1))
    expected = (counts[..., :, None] * counts[..., None, :] * apart).sum(axis=(-2, -1))
    with np.errstate(divide="ignore", invalid="ignore"):
        coefficient: Array = np.where(expected > 0, 1 - (total - 1) * observed / expected, np.nan)
    return coefficient


# Gamma: agreement on where spans are and of which type at once (Mathet, Widlöcher and Métivier 2015).
#
# Spans of different annotators are aligned so that their disorder is least, exactly: an assignment where there are two
# annotators, an integer program where there are more. Chance is the same annotations, each turned round the text by a
# random step (section 5.2). With equal weights for place and type, as the paper's software has it by default.


SAMPLES = 30  # random annotations a text, as in the paper's section 5.3
_EMPTY = 1.0  # dissimilarity of a span and no span
_MOST = 2_000_000  # groups of spans that are weighed against each other at most


@dataclass(frozen=True)
class Placed:
    """One annotator's spans of a text.

    Attributes:
        spans: half-open ranges, shape `(n, 2)`.
        types: shape `(n,)`, numbers of types; all the same where types do not matter.
    """

    spans: NDArray[np.int64]
    types: NDArray[np.int64]


@dataclass(frozen=True)
class Disorder:
    """How far the spans of one text are from an alignment without gaps and differences, and from chance.

    Attributes:
        observed: of the best alignment, per span of an average annotator; 0 is perfect.
        expected: the mean of that over random annotations.
        spans: of an average annotator.
    """

    observed: float
    expected: float
    spans: float

    @property
    def gamma(self) -> float:
        """1 - observed / expected; at most 1, and 0 is what chance gives."""
        return 1.0 if self.observed == 0 else 1 - self.observed / self.expected


def _optimize(what: str) -> Any:
    try:
        return import_module("scipy.optimize")
    except ModuleNotFoundError as error:
        raise MissingExtraError(what, "stats") from error


def disorder(annotators: Sequence[Placed]) -> float:
    """The disorder of the best alignment, per span of an average annotator (equations 4 to 6).

    Args:
        annotators: two or more; one of them may have marked nothing, but not all of them.

    Raises:
        MissingExtraError: scipy is not installed.
        UsageError: so many annotators marked so much that the alignment cannot be computed.
    """
    sizes = [len(annotator.spans) for annotator in annotators]
    if len(sizes) < 2 or not any(sizes):
        raise ValueError("an alignment takes two annotators, and a span")
    total = _two(*annotators) if len(annotators) == 2 else _many(annotators)
    return total / (sum(sizes) / len(sizes))


def _dissimilarity(first: Placed, second: Placed) -> Array:
    """Of each span of one and each of the other, with one row and column more for no span (equation 2)."""
    table = np.full((len(first.spans) + 1, len(second.spans) + 1), _EMPTY)
    if len(first.spans) and len(second.spans):
        a, b = first.spans[:, None, :].astype(np.float64), second.spans[None, :, :].astype(np.float64)
        lengths = (a[..., 1] - a[..., 0]) + (b[..., 1] - b[..., 0])
        position = (np.abs(a - b).sum(axis=-1) / lengths) ** 2
        kind = first.types[:, None] != second.types[None, :]
        table[:-1, :-1] = (position + kind) * _EMPTY
    return table


def _two(first: Placed, second: Placed) -> float:
    """Spans are matched one to one, or left alone."""
    optimize = _optimize("Gamma")
    table = _dissimilarity(first, second)
    n, m = len(first.spans), len(second.spans)
    costs = np.full((n + m, n + m), _EMPTY)
    costs[:n, :m] = table[:n, :m]
    costs[n:, m:] = 0.0  # what stands for no span on both sides
    rows, columns = optimize.linear_sum_assignment(costs)
    return float(costs[rows, columns].sum())


def _many(annotators: Sequence[Placed]) -> float:
    """Every span is in exactly one group of at most one span an annotator; the groups' costs are least."""
    optimize = _optimize("Gamma")
    groups, costs = _groups(annotators)
    sizes = [len(annotator.spans) for annotator in annotators]
    before = np.concatenate([[0], np.cumsum(sizes)])
    sparse = import_module("scipy.sparse")
    rows, columns = [], []
    for column, size in enumerate(sizes):
        real = np.flatnonzero(groups[:, column] < size)
        rows.append(before[column] + groups[real, column])
        columns.append(real)
    row, member = np.concatenate(rows), np.concatenate(columns)
    members = sparse.csr_array((np.ones(len(row)), (row, member)), shape=(int(before[-1]), len(groups)))
    solution = optimize.milp(
        costs,
        integrality=np.ones(len(groups)),
        bounds=optimize.Bounds(0, 1),
        constraints=optimize.LinearConstraint(members, 1, 1),
    )
    if solution.x is None:
        raise UsageError(f"The spans of a text cannot be aligned: {solution.message}", remedy="Leave out gamma.")
    return float(costs @ np.round(solution.x))


def _groups(annotators: Sequence[Placed]) -> tuple[NDArray[np.int64], Array]:
    """All groups that may be in a best alignment, with their mean dissimilarity over pairs of annotators.

    A group that costs more than its spans cost alone is in none. Costs only grow as annotators are added, so a group
    is given up as soon as it costs more than the dearest that is allowed.
    """
    number = len(annotators)
    pairs = number * (number - 1) / 2
    groups, costs = np.arange(len(annotators[0].spans) + 1)[:, None], np.zeros(len(annotators[0].spans) + 1)
    for column in range(1, number):
        size = len(annotators[column].spans) + 1
        if len(groups) * size > _MOST:
            raise UsageError(
                f"{number} annotators marked too many spans of one text for gamma.",
                remedy="Leave out gamma, or compute it for fewer annotators.",
            )
        more = np.repeat(costs, size)
        groups = np.column_stack([np.repeat(groups, size, axis=0), np.tile(np.arange(size), len(groups))])
        for other in range(column):
            table = _dissimilarity(annotators[other], annotators[column])
            more += table[groups[:, other], groups[:, column]]
        possible = more <= pairs * _EMPTY * number
        groups, costs = groups[possible], more[possible]
    sizes = np.array([len(annotator.spans) for annotator in annotators])
    spans = (groups < sizes).sum(axis=1)
    costs = costs / pairs
    possible = (spans > 0) & ((spans == 1) | (costs <= spans * _EMPTY))
    return groups[possible], costs[possible]


def expected_disorder(
    annotators: Sequence[Placed], length: int, generator: np.random.Generator, samples: int = SAMPLES
) -> float:
    """The mean disorder of random annotations: each is one of the given, turned round the text by a random step.

    Steps of one sample lie at least half a span's mean length apart, so that no annotation is drawn beside itself.

    Args:
        annotators: as for `disorder`.
        length: of the text, in the unit of the spans.
        generator: of the random steps.
        samples: how many random annotations.
    """
    filled = [annotator for annotator in annotators if len(annotator.spans)]
    widths = np.concatenate([annotator.spans[:, 1] - annotator.spans[:, 0] for annotator in filled])
    apart = float(widths.mean()) / 2
    disorders: list[float] = []
    while len(disorders) < samples:
        steps = _steps(len(annotators), length, apart, generator)
        chosen = [annotators[int(generator.integers(len(annotators)))] for _ in annotators]
        turned = [_turned(annotator, step, length) for annotator, step in zip(chosen, steps, strict=True)]
        if any(len(annotator.spans) for annotator in turned):
            disorders.append(disorder(turned))
    return float(np.mean(disorders))


def _steps(number: int, length: int, apart: float, generator: np.random.Generator) -> list[int]:
    """Whole steps round the text, apart from each other where there is room."""
    free = np.ones(length, bool)
    steps: list[int] = []
    for _ in range(number):
        places = np.flatnonzero(free)
        step = int(generator.choice(places)) if len(places) else int(generator.integers(length))
        free[max(0, int(np.ceil(step - apart))) : int(np.floor(step + apart)) + 1] = False
        steps.append(step)
    return steps


def _turned(annotator: Placed, step: int, length: int) -> Placed:
    """Spans moved on by a step; what would begin beyond the end begins at the start. None is parted."""
    moved = annotator.spans + step
    moved = np.where((moved[:, :1] > length), moved - length, moved)
    return Placed(moved, annotator.types)


# What several annotators marked in one text, as labels of units and as sums that agreement is computed from.


Pair = tuple[str, str]


@dataclass(frozen=True)
class Layered:
    """One text with what each annotator marked in it.

    Attributes:
        id: of the text; the bootstrap draws whole texts.
        language: BCP 47 tag, or an empty string.
        length: in code points.
        bounds: the units, half-open ranges of shape `(n, 2)`.
        layers: annotator to what they marked; one that marked nothing is there too.
    """

    id: str
    language: str
    length: int
    bounds: NDArray[np.int32]
    layers: Mapping[str, Marks]


@dataclass(frozen=True)
class PairSums:
    """What two annotators of one text have in common.

    Attributes:
        pair: who.
        table: how many units the one gave which label and the other which, shape `(labels, labels)`; 0 is unmarked.
        spans: spans of both; `overlapping` and `exact` count matched ones of both, so that F1 is matched / spans.
    """

    pair: Pair
    table: Array
    spans: float
    overlapping: float
    exact: float


def labels_of(text: Layered, names: Sequence[str] | None, annotator: str) -> NDArray[np.int64]:
    """What one annotator says of each unit, shape `(n,)`: 0 where it is unmarked, else 1 and up.

    A unit is marked when a span overlaps it in at least one code point. Of several spans over a unit the shortest gives
    the type: it says the most about this very unit. Of equally short ones the first does.

    Args:
        text: the text.
        names: types in order, of which the first is 1; None for 1 wherever a unit is marked.
        annotator: whose marks.
    """
    marks = text.layers[annotator]
    labels = np.zeros(len(text.bounds), np.int64)
    order = sorted(range(len(marks.spans)), key=lambda i: (int(marks.spans[i, 0] - marks.spans[i, 1]), -i))
    for index in order:  # the shortest last
        start, end = marks.spans[index]
        inside = (text.bounds[:, 1] > start) & (text.bounds[:, 0] < end)
        labels[inside] = 1 if names is None else 1 + names.index(marks.types[index] or "")
    return labels


def pair_sums(text: Layered, names: Sequence[str] | None) -> list[PairSums]:
    """Sums of every two annotators of a text, in the order of their names.

    Args:
        text: the text.
        names: types in order, or None to leave types aside.
    """
    labels = {annotator: labels_of(text, names, annotator) for annotator in sorted(text.layers)}
    return [_pair(text, names, (a, b), labels[a], labels[b]) for a, b in combinations(labels, 2)]


def _pair(
    text: Layered, names: Sequence[str] | None, pair: Pair, first: NDArray[np.int64], second: NDArray[np.int64]
) -> PairSums:
    values = 1 + (1 if names is None else len(names))
    table = np.bincount(first * values + second, minlength=values * values).reshape(values, values)
    first_marks, second_marks = text.layers[pair[0]], text.layers[pair[1]]
    types = (None, None) if names is None else (first_marks.types, second_marks.types)
    return PairSums(
        pair,
        table.astype(np.float64),
        float(len(first_marks.spans) + len(second_marks.spans)),
        2.0 * overlap(first_marks.spans, second_marks.spans, *types).matched,
        2.0 * exact(first_marks.spans, second_marks.spans, *types).matched,
    )


def label_sums(text: Layered, names: Sequence[str] | None) -> Array:
    """Coincidences of the labels of all annotators of a text, shape `(labels, labels)`."""
    values = 1 + (1 if names is None else len(names))
    labels = np.stack([labels_of(text, names, annotator) for annotator in sorted(text.layers)])
    return coincidences(labels, values)


def gamma_of(text: Layered, names: Sequence[str] | None, *, seed: int = 1, samples: int = SAMPLES) -> Disorder | None:
    """Observed and expected disorder of a text; None where nobody marked anything, so that nothing can be aligned.

    Args:
        text: with two annotators or more.
        names: types in order, or None to leave types aside.
        seed: of the random annotations; a text gets the same whatever stands beside it.
        samples: how many random annotations.
    """
    placed = [
        Placed(
            marks.spans.astype(np.int64),
            np.array([0 if names is None else names.index(type_ or "") for type_ in marks.types], np.int64),
        )
        for _, marks in sorted(text.layers.items())
    ]
    spans = sum(len(annotator.spans) for annotator in placed)
    if not spans:
        return None
    chance = expected_disorder(placed, text.length, stream(seed, f"gamma {text.id}"), samples)
    return Disorder(disorder(placed), chance, spans / len(placed))


if TYPE_CHECKING:
    Array = NDArray[np.float64]


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
            by at least one annotator of a pair, `clusters` texts. Fewer than `FEWEST_TEXTS` give no interval.
    """

    measure: str
    scope: Scope
    language: str
    between: Pair
    pairs: int
    estimate: ClusteredEstimate


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
    results: list[AgreementFigure] = []
    for language in [*languages, *([ALL] if len(languages) != 1 else [])]:
        places = [index for index, text in enumerate(shared) if language in (ALL, text.language)]
        work = _Work([sums[index] for index in places], drawn.cluster[places], drawn, language, names is not None)
        results += work.pairs(anonymous)
        if wanted is None:
            results.append(work.alpha(1 + (1 if names is None else len(names))))
        if wanted is None and gamma:
            results.append(work.gamma())
    return results


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
        [sums for sums in pair_sums(text, names) if wanted is None or wanted(sums.pair)],
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

    def _figure(self, measure: str, between: Pair, pairs: int, estimate: ClusteredEstimate) -> AgreementFigure:
        return AgreementFigure(measure, self._scope, self._language, between, pairs, _honest(estimate))

    def _add(self, rows: Array, places: Sequence[int]) -> Array:
        """Sums over texts, draw by draw: `(texts, ...)` to `(1 + resamples, ...)`."""
        weights = self._drawn.table[:, self._clusters[list(places)]].astype(np.float64)
        return np.tensordot(weights, rows, axes=1)

    def _count(self, places: Iterable[int]) -> int:
        return len({int(self._clusters[index]) for index in places})

    def pairs(self, anonymous: bool) -> list[AgreementFigure]:
        """Kappa (or pi) and the F1 of spans, of each pair and of all."""
        by_pair: dict[Pair, list[tuple[int, PairSums]]] = defaultdict(list)
        for index, text in enumerate(self._texts):
            for sums in text.pairs:
                by_pair[(ALL, ALL) if anonymous else sums.pair].append((index, sums))
        cells = {pair: _Cell(self._add, rows) for pair, rows in sorted(by_pair.items())}
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
            clusters=self._count(index for cell in cells for index in cell.places),
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
        disorders = [(index, text.disorder) for index, text in enumerate(self._texts) if text.disorder is not None]
        places = [index for index, _ in disorders]
        rows = np.array([(text.observed * text.spans, text.expected * text.spans) for _, text in disorders]).reshape(
            -1, 2
        )
        sums = self._add(rows, places)
        with np.errstate(divide="ignore", invalid="ignore"):
            draws = np.where(sums[:, 1] > 0, 1 - sums[:, 0] / sums[:, 1], np.nan)
        spans = round(sum(d.spans * len(self._texts[index].annotators) for index, d in disorders))
        why = "nobody marked anything" if self._texts else _ALONE
        estimate = estimated(draws, items=spans, positives=spans, clusters=self._count(places), why=why)
        return self._figure("gamma", (ALL, ALL), self._all_pairs(), estimate)

    def _all_pairs(self) -> int:
        return len({pair for text in self._texts for pair in combinations(text.annotators, 2)})


def _honest(estimate: ClusteredEstimate) -> ClusteredEstimate:
    """Without an interval where too few texts were drawn from."""
    reason = too_few(estimate.clusters)
    if estimate.value is None or reason is None:
        return estimate
    return msgspec.structs.replace(estimate, low=None, high=None, reason=reason)


def _why(measure: str) -> str:
    return "nobody marked anything" if measure.startswith("span") else _CONSTANT


class _Cell:
    """One pair of annotators over the texts that both annotated."""

    def __init__(self, add: Callable[[Array, Sequence[int]], Array], texts: Iterable[tuple[int, PairSums]]) -> None:
        rows = list(texts)
        self.places = [index for index, _ in rows]
        self._tables = add(np.stack([sums.table for _, sums in rows]), self.places)
        spans = np.array([(sums.spans, sums.overlapping, sums.exact) for _, sums in rows])
        self._spans = add(spans, self.places)

    def draws(self, measure: str) -> Array:
        """The data first, resamples after it."""
        if measure == "kappa":
            return kappa(self._tables)
        if measure == "pi":
            return pi(self._tables)
        matched = self._spans[:, 1 if measure == "span_f1" else 2]
        with np.errstate(divide="ignore", invalid="ignore"):
            f1: Array = np.where(self._spans[:, 0] > 0, matched / self._spans[:, 0], np.nan)
        return f1

    def sizes(self, measure: str) -> tuple[int, int]:
        """What is counted, and how much of it is marked."""
        if measure.startswith("span"):
            return int(self._spans[0, 0]), int(self._spans[0, 0])
        units = int(self._tables[0].sum())
        return units, units - int(self._tables[0, 0, 0])

    def estimate(self, measure: str, texts: int) -> ClusteredEstimate:
        """Of this pair alone, over so many texts."""
        items, positives = self.sizes(measure)
        return estimated(self.draws(measure), items=items, positives=positives, clusters=texts, why=_why(measure))
