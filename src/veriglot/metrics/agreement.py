"""Agreement of annotators: kappa, pi, Krippendorff's alpha and gamma, by pair and language, with intervals over texts.

Cohen's kappa and the F1 of spans are computed for every two annotators over all texts that both annotated, and averaged
over the pairs (as mFAVA, section 4, does for kappa). Krippendorff's alpha and gamma use all annotators of a text.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from importlib import import_module
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from msgspec.structs import replace

from veriglot.errors import UsageError, requires_extra
from veriglot.metrics.estimate import ClusteredEstimate, Resampling, estimated, mean_of_draws, stream, too_few
from veriglot.metrics.scores import ratio
from veriglot.metrics.spans import MATCHES, unit_marks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from veriglot.arrays import Float64s, Int32s, Int64s
    from veriglot.metrics.reference import Marks

    Array = Float64s

__all__ = ["ALL", "SAMPLES", "AgreementFigure", "AnnotatedText", "agreement_figures", "kappa"]


# Chance-corrected coefficients, from counts summed for each draw, so that a thousand resamples cost one matrix product.
# Each is 1 - observed / expected disagreement; it is NaN if the expected disagreement is 0 (everybody gave every unit
# the same label).


def kappa(tables: Array) -> Array:
    """Cohen's kappa of two annotators (Cohen 1960), with chance from each one's own label frequencies.

    Args:
        tables: how many units one labelled `i` and the other `j`, shape `(..., labels, labels)`.

    Returns:
        Shape `(...)`; NaN if there are no units, or expected disagreement is 0.
    """
    return _corrected(tables, (tables.sum(axis=-1) * tables.sum(axis=-2)).sum(axis=-1))


def pi(tables: Array) -> Array:
    """Scott's pi (Scott 1955): chance comes from the label frequencies of both together, regardless of their order."""
    both = tables.sum(axis=-1) + tables.sum(axis=-2)
    return _corrected(tables, (both * both).sum(axis=-1) / 4)


def _corrected(tables: Array, expected: Array) -> Array:
    total = tables.sum(axis=(-2, -1))
    observed, most = np.trace(tables, axis1=-2, axis2=-1) * total, total * total
    room = most - expected
    return ratio(observed - expected, np.where(room > 1e-12 * most, room, 0.0))


def coincidences(labels: Int64s, values: int) -> Array:
    """Ordered pairs of labels within units, each weighted by 1 / (labels - 1) (Krippendorff 2004, section 11.3).

    `labels` has the shape `(annotators, units)`, negative for a missing label; the result `(values, values)`.
    """
    given = np.stack([(labels == value).sum(axis=0) for value in range(values)]).astype(np.float64)
    raters = given.sum(axis=0)
    share = np.divide(1.0, raters - 1, out=np.zeros_like(raters), where=raters > 1)
    pairs: Array = (given * share) @ given.T
    pairs[np.diag_indices(values)] -= (given * share).sum(axis=1)
    return pairs


def alpha(tables: Array) -> Array:
    """Krippendorff's alpha of any number of annotators, from sums of `coincidences`; NaN if all labels are equal."""
    counts = tables.sum(axis=-1)
    total = counts.sum(axis=-1)
    apart = 1.0 - np.eye(counts.shape[-1])
    observed = (tables * apart).sum(axis=(-2, -1))
    expected = (counts[..., :, None] * counts[..., None, :] * apart).sum(axis=(-2, -1))
    return 1 - ratio((total - 1) * observed, expected)


# Gamma: agreement on positions and types of spans together (Mathet, Widlöcher and Métivier 2015).
#
# Spans of different annotators are aligned with minimal disorder, exactly: by an assignment for two annotators, by an
# integer program for more. Chance is the same annotations, each shifted cyclically along the text by a random step
# (section 5.2). Position and type have equal weights, the default of the paper's software.


SAMPLES = 30
"""Random annotations of a text for the expected disorder, as in the paper's section 5.3."""

_MAX_GROUPS = 2_000_000  # maximum number of groups of spans to compare


class AnnotatorSpans(NamedTuple):
    """One annotator's spans of a text, shape `(n, 2)`, with indices of their types, shape `(n,)`."""

    spans: Int64s
    types: Int64s


def disorder(annotators: Sequence[AnnotatorSpans]) -> float:
    """The disorder of the best alignment, per span of an average annotator (equations 4 to 6); 0 is perfect."""
    sizes = [len(annotator.spans) for annotator in annotators]
    total = _pair_disorder(*annotators) if len(annotators) == 2 else _group_disorder(annotators, sizes)
    return total / (sum(sizes) / len(sizes))


def _scipy(name: str) -> Any:
    with requires_extra("Gamma", "stats"):
        return import_module(f"scipy.{name}")


def _dissimilarity(first: AnnotatorSpans, second: AnnotatorSpans) -> Array:
    """Between each span of one and each of the other, with an additional row and column for no span (equation 2)."""
    table = np.ones((len(first.spans) + 1, len(second.spans) + 1))  # a span and no span: 1
    if table.size > 1:
        a, b = first.spans[:, None, :].astype(np.float64), second.spans[None, :, :].astype(np.float64)
        lengths = (a[..., 1] - a[..., 0]) + (b[..., 1] - b[..., 0])
        position = (np.abs(a - b).sum(axis=-1) / lengths) ** 2
        table[:-1, :-1] = position + (first.types[:, None] != second.types[None, :])
    return table


def _pair_disorder(first: AnnotatorSpans, second: AnnotatorSpans) -> float:
    """Spans are matched one to one, or left unmatched."""
    n, m = len(first.spans), len(second.spans)
    costs = np.ones((n + m, n + m))
    costs[:n, :m] = _dissimilarity(first, second)[:n, :m]
    costs[n:, m:] = 0.0  # no span on both sides
    rows, columns = _scipy("optimize").linear_sum_assignment(costs)
    return float(costs[rows, columns].sum())


def _group_disorder(annotators: Sequence[AnnotatorSpans], sizes: Sequence[int]) -> float:
    """Every span is in exactly one group with at most one span per annotator; the groups' total cost is minimal."""
    optimize = _scipy("optimize")
    groups, costs = _groups(annotators, sizes)
    before = np.concatenate([[0], np.cumsum(sizes)])
    member, column = np.nonzero(groups < np.array(sizes))
    row = before[column] + groups[member, column]
    members = _scipy("sparse").csr_array((np.ones(len(row)), (row, member)), shape=(int(before[-1]), len(groups)))
    solution = optimize.milp(
        costs,
        integrality=np.ones(len(groups)),
        bounds=optimize.Bounds(0, 1),
        constraints=optimize.LinearConstraint(members, 1, 1),
    )
    if solution.x is None:
        raise UsageError(f"The spans of a text cannot be aligned: {solution.message}", "Leave out gamma.")
    return float(costs @ np.round(solution.x))


def _groups(annotators: Sequence[AnnotatorSpans], sizes: Sequence[int]) -> tuple[Int64s, Array]:
    """All groups that may be in a best alignment, with their mean dissimilarity over pairs of annotators.

    A group that costs more than its single spans is never in one. Costs only grow as annotators are added, so a partial
    group is dropped as soon as it costs more than the largest allowed cost.
    """
    number = len(annotators)
    pairs = number * (number - 1) / 2
    groups, costs = np.arange(sizes[0] + 1)[:, None], np.zeros(sizes[0] + 1)
    for column in range(1, number):
        size = sizes[column] + 1
        if len(groups) * size > _MAX_GROUPS:
            raise UsageError(
                f"{number} annotators marked too many spans of one text for gamma.",
                "Leave out gamma, or compute it for fewer annotators.",
            )
        costs = np.repeat(costs, size)
        groups = np.column_stack([np.repeat(groups, size, axis=0), np.tile(np.arange(size), len(groups))])
        for other in range(column):
            costs += _dissimilarity(annotators[other], annotators[column])[groups[:, other], groups[:, column]]
        possible = costs <= pairs * number
        groups, costs = groups[possible], costs[possible]
    spans = (groups < np.array(sizes)).sum(axis=1)
    costs = costs / pairs
    possible = (spans > 0) & ((spans == 1) | (costs <= spans))
    return groups[possible], costs[possible]


def expected_disorder(
    annotators: Sequence[AnnotatorSpans], length: int, generator: np.random.Generator, samples: int = SAMPLES
) -> float:
    """The mean disorder of random annotations: each is a given one, shifted cyclically along the text by a random step.

    Steps of one sample are at least half a mean span length apart, so that no annotation is compared with itself.
    """
    widths = np.concatenate([annotator.spans[:, 1] - annotator.spans[:, 0] for annotator in annotators])
    apart = float(widths.mean()) / 2
    disorders: list[float] = []
    while len(disorders) < samples:
        steps = _steps(len(annotators), length, apart, generator)
        chosen = [annotators[int(generator.integers(len(annotators)))] for _ in annotators]
        shifted = [_shifted(annotator, step, length) for annotator, step in zip(chosen, steps, strict=True)]
        if any(len(annotator.spans) for annotator in shifted):
            disorders.append(disorder(shifted))
    return float(np.mean(disorders))


def _steps(number: int, length: int, apart: float, generator: np.random.Generator) -> list[int]:
    """Integer steps along the text, apart from each other if there is room."""
    free = np.ones(length, bool)
    steps = []
    for _ in range(number):
        places = np.flatnonzero(free)
        step = int(generator.choice(places)) if len(places) else int(generator.integers(length))
        free[max(0, int(np.ceil(step - apart))) : int(np.floor(step + apart)) + 1] = False
        steps.append(step)
    return steps


def _shifted(annotator: AnnotatorSpans, step: int, length: int) -> AnnotatorSpans:
    """Spans shifted by a step; those that would begin beyond the end wrap to the start. No span is split."""
    moved = annotator.spans + step
    return AnnotatorSpans(np.where(moved[:, :1] > length, moved - length, moved), annotator.types)


# Marks of several annotators in one text, as labels of units, and as sums from which agreement is computed.


Pair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class AnnotatedText:
    """One text with the marks of each annotator; hashed by identity, so that it can be a key of `memory`.

    Attributes:
        id: of the text; the bootstrap draws whole texts.
        language: BCP 47 tag, or an empty string.
        length: in code points.
        bounds: the units, half-open ranges of shape `(n, 2)`.
        layers: annotator to marks; includes annotators who marked nothing.
    """

    id: str
    language: str
    length: int
    bounds: Int32s
    layers: Mapping[str, Marks]


def _labels(text: AnnotatedText, names: Sequence[str] | None, marks: Marks) -> Int64s:
    """One annotator's label of each unit, shape `(n,)`: 0 for unmarked, else from 1 on in the order of `names`."""
    types = np.array([1 if names is None else 1 + names.index(type_ or "") for type_ in marks.types] + [0], np.int64)
    return types[unit_marks(text.bounds, marks.spans)]  # index -1 is the last entry, 0


class _Sums(NamedTuple):
    """The counts of one text.

    `pairs` has, for every two annotators, a table of their labels of units, and the number of their spans together, of
    spans matched by overlap and of spans matched exactly, so that F1 is matched / spans. `disorder` is observed and
    expected disorder, and the spans of an average annotator.
    """

    units: int
    annotators: list[str]
    pairs: dict[Pair, tuple[Array, tuple[float, ...]]]
    labels: Array
    disorder: tuple[float, float, float] | None


def _sums(
    text: AnnotatedText, names: Sequence[str] | None, wanted: Callable[[Pair], bool] | None, gamma: int, seed: int
) -> _Sums:
    values = 1 + (1 if names is None else len(names))
    annotators = sorted(text.layers)
    labels = {annotator: _labels(text, names, text.layers[annotator]) for annotator in annotators}
    pairs: dict[Pair, tuple[Array, tuple[float, ...]]] = {}
    for pair in combinations(annotators, 2):
        if wanted is not None and not wanted(pair):
            continue
        first, second = (text.layers[annotator] for annotator in pair)
        flat = labels[pair[0]] * values + labels[pair[1]]
        table = np.bincount(flat, minlength=values * values).reshape(values, values).astype(np.float64)
        types = (None, None) if names is None else (first.types, second.types)
        matched = [2.0 * MATCHES[match](first.spans, second.spans, *types)[0] for match in ("overlap", "exact")]
        pairs[pair] = table, (float(len(first.spans) + len(second.spans)), *matched)
    together = coincidences(np.stack(list(labels.values())), values)
    disordered = _disorders(text, names, gamma, seed) if wanted is None and gamma else None
    return _Sums(len(text.bounds), annotators, pairs, together, disordered)


def _disorders(
    text: AnnotatedText, names: Sequence[str] | None, samples: int, seed: int
) -> tuple[float, float, float] | None:
    """None if nobody marked anything, so that there is nothing to align."""
    placed = [
        AnnotatorSpans(
            marks.spans.astype(np.int64),
            np.array([0 if names is None else names.index(type_ or "") for type_ in marks.types], np.int64),
        )
        for _, marks in sorted(text.layers.items())
    ]
    spans = sum(len(annotator.spans) for annotator in placed)
    if not spans:
        return None
    chance = expected_disorder(placed, text.length, stream(seed, f"gamma {text.id}"), samples)
    return disorder(placed), chance, spans / len(placed)


ALL = "all"
"""All languages together, or all annotators of a text."""

_ALONE = "nobody shares a text with another annotator"
_CONSTANT = "every unit has the same label, so that chance explains it all"
_UNMARKED = "nobody marked anything"


class AgreementFigure(NamedTuple):
    """One figure.

    Attributes:
        measure: `kappa`, `pi`, `alpha`, `span_f1`, `span_f1_exact` or `gamma`.
        scope: `binary` (marked or not), or `typed` (as which type).
        language: BCP 47 tag, or `ALL`.
        between: two annotators, or `(ALL, ALL)`.
        pairs: number of pairs of annotators.
        estimate: the value; `items` are units (spans, for `span_f1` and `gamma`), `positives` those marked by at least
            one annotator of a pair, `clusters` texts. With fewer than `FEWEST_TEXTS` there is no interval.
    """

    measure: str
    scope: Literal["binary", "typed"]
    language: str
    between: Pair
    pairs: int
    estimate: ClusteredEstimate


def agreement_figures(
    texts: Sequence[AnnotatedText],
    names: Sequence[str] | None,
    *,
    resamples: int = 1000,
    seed: int = 0,
    anonymous: bool = False,
    gamma: int = SAMPLES,
    spans: bool = True,
    wanted: Callable[[Pair], bool] | None = None,
    progress: Callable[[float], None] | None = None,
    memory: dict[Any, Any] | None = None,
) -> list[AgreementFigure]:
    """All figures of some texts: for each language, and for all together if there are several.

    Args:
        texts: with the layers of the annotators to compare; texts with a single layer are ignored.
        names: types in order (`typed`), or None (`binary`). Spans without a type need an empty name among them.
        resamples: of whole texts within each language (languages with a single text count as one); 0 for no intervals.
        seed: of the resamples, and of gamma's random annotations.
        anonymous: names do not identify people: pairs are pooled, and Scott's pi replaces kappa.
        gamma: number of random annotations per text; 0 skips gamma, which takes most of the time.
        spans: whether annotators chose where marks begin and end; if marks are whole units, F1 of spans is left out.
        wanted: which pairs count; None for all. With a filter, alpha and gamma, which have no pairs, are left out.
        progress: gets the share of finished texts, from 0 to 1.
        memory: cache filled by an earlier call with the same arguments, and by this one: unchanged texts, and languages
            with only unchanged texts, are not recomputed.

    Raises:
        MissingExtraError: gamma is requested, and scipy is not installed.
    """
    shared = [text for text in texts if len(text.layers) > 1]
    languages = sorted({text.language for text in shared})
    drawn = Resampling.of([text.id for text in shared], _strata(shared), resamples=resamples, seed=seed)
    before, after, types = memory or {}, dict[Any, Any](), None if names is None else tuple(names)
    sums = []
    for number, text in enumerate(shared, 1):
        key = text, types
        after[key] = before[key] if key in before else _sums(text, names, wanted, gamma, seed)
        sums.append(after[key])
        if progress is not None:
            progress(number / len(shared))
    results = []
    for language in [*languages, *([ALL] if len(languages) != 1 else [])]:
        places = [index for index, text in enumerate(shared) if language in (ALL, text.language)]
        group = language, types, *(shared[index] for index in places)
        after[group] = before.get(group)
        if after[group] is None:
            work = _Work([sums[index] for index in places], drawn.cluster[places], drawn, language, names is not None)
            after[group] = work.pairs(anonymous, spans)
            if wanted is None:
                after[group].append(work.alpha())
            if wanted is None and gamma:
                after[group].append(work.gamma())
        results += after[group]
    if memory is not None:
        memory.clear()
        memory.update(after)
    return results


def _strata(texts: Sequence[AnnotatedText]) -> list[str]:
    """The stratum of each text: its language; a single text resampled alone would have an interval of width 0."""
    ids = defaultdict[str, set[str]](set)
    for text in texts:
        ids[text.language].add(text.id)
    return [text.language if len(ids[text.language]) > 1 else "single texts" for text in texts]


class _Work:
    """The figures of one language: counts and cluster of each text, and the weights of clusters in resamples."""

    def __init__(self, texts: Sequence[_Sums], clusters: Int64s, drawn: Resampling, language: str, typed: bool) -> None:
        self._texts = texts
        self._clusters = clusters
        self._drawn = drawn
        self._language = language
        self._scope: Literal["binary", "typed"] = "typed" if typed else "binary"

    def _figure(
        self, measure: str, between: Pair, pairs: int, draws: Array, sizes: tuple[int, int], places: Iterable[int]
    ) -> AgreementFigure:
        clusters = len({int(self._clusters[index]) for index in places})
        alone = not (self._texts if measure == "gamma" else clusters)
        why = _ALONE if alone else _CONSTANT if measure in {"kappa", "pi", "alpha"} else _UNMARKED
        estimate = estimated(draws, items=sizes[0], positives=sizes[1], clusters=clusters, why=why)
        reason = too_few(clusters)
        if estimate.value is not None and reason is not None:
            estimate = replace(estimate, low=None, high=None, reason=reason)
        return AgreementFigure(measure, self._scope, self._language, between, pairs, estimate)

    def _add(self, rows: Array, places: Sequence[int]) -> Array:
        """Sums over texts in each draw: `(texts, ...)` to `(1 + resamples, ...)`."""
        weights = self._drawn.table[:, self._clusters[list(places)]].astype(np.float64)
        return np.tensordot(weights, rows, axes=1)

    def pairs(self, anonymous: bool, spans: bool) -> list[AgreementFigure]:
        """Kappa (or pi) and the F1 of spans, for each pair and for all."""
        by_pair: dict[Pair, list[tuple[int, Array, tuple[float, ...]]]] = defaultdict(list)
        for index, text in enumerate(self._texts):
            for pair, (table, matched) in text.pairs.items():
                by_pair[(ALL, ALL) if anonymous else pair].append((index, table, matched))
        cells = {pair: self._cell(rows, anonymous) for pair, rows in sorted(by_pair.items())}
        measures = ("pi" if anonymous else "kappa", *(("span_f1", "span_f1_exact") if spans else ()))
        named = {} if anonymous else cells
        each = [self._figure(measure, pair, 1, *cell[measure]) for pair, cell in named.items() for measure in measures]
        return each + [self._mean(measure, [cell[measure] for cell in cells.values()]) for measure in measures]

    def _cell(
        self, rows: Sequence[tuple[int, Array, tuple[float, ...]]], anonymous: bool
    ) -> dict[str, tuple[Array, tuple[int, int], list[int]]]:
        """One pair over the texts that both annotated: measure to draws, numbers of items and positives, and texts."""
        places = [index for index, *_ in rows]
        tables = self._add(np.stack([table for _, table, _ in rows]), places)
        spans = self._add(np.array([counts for *_, counts in rows]), places)
        units = int(tables[0].sum())
        marked = units, units - int(tables[0, 0, 0])
        counted = int(spans[0, 0]), int(spans[0, 0])
        return {
            "pi" if anonymous else "kappa": ((pi if anonymous else kappa)(tables), marked, places),
            "span_f1": (ratio(spans[:, 1], spans[:, 0]), counted, places),
            "span_f1_exact": (ratio(spans[:, 2], spans[:, 0]), counted, places),
        }

    def _mean(self, measure: str, cells: Sequence[tuple[Array, tuple[int, int], list[int]]]) -> AgreementFigure:
        draws = mean_of_draws([draws for draws, _, _ in cells])
        sizes = sum(items for _, (items, _), _ in cells), sum(marked for _, (_, marked), _ in cells)
        defined = sum(not np.isnan(draws[0]) for draws, _, _ in cells)
        return self._figure(measure, (ALL, ALL), defined, draws, sizes, (i for *_, places in cells for i in places))

    def alpha(self) -> AgreementFigure:
        """Over all annotators of a text."""
        table = np.stack([text.labels for text in self._texts]) if self._texts else np.zeros((0, 2, 2))
        places = range(len(self._texts))
        sizes = sum(text.units for text in self._texts), round(float(table.sum(axis=0)[1:].sum()))
        return self._figure("alpha", (ALL, ALL), self._all_pairs(), alpha(self._add(table, places)), sizes, places)

    def gamma(self) -> AgreementFigure:
        """1 - observed / expected disorder, both summed over texts, each weighted by its spans."""
        disorders = [(index, text.disorder) for index, text in enumerate(self._texts) if text.disorder is not None]
        rows = np.array([(observed * spans, chance * spans) for _, (observed, chance, spans) in disorders])
        places = [index for index, _ in disorders]
        sums = self._add(rows.reshape(-1, 2), places)
        draws = 1 - ratio(sums[:, 0], sums[:, 1])
        spans = round(sum(spans * len(self._texts[index].annotators) for index, (_, _, spans) in disorders))
        return self._figure("gamma", (ALL, ALL), self._all_pairs(), draws, (spans, spans), places)

    def _all_pairs(self) -> int:
        return len({pair for text in self._texts for pair in combinations(text.annotators, 2)})
