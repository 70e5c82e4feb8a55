"""Gamma: agreement on where spans are and of which type at once (Mathet, Widlöcher and Métivier 2015).

Spans of different annotators are aligned so that their disorder is least, exactly: an assignment where there are two
annotators, an integer program where there are more. Chance is the same annotations, each turned round the text by a
random step (section 5.2). With equal weights for place and type, as the paper's software has it by default.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from veriglot.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["SAMPLES", "Disorder", "Placed", "disorder", "expected_disorder"]

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
    sizes = [len(one.spans) for one in annotators]
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
        place = (np.abs(a - b).sum(axis=-1) / lengths) ** 2
        kind = first.types[:, None] != second.types[None, :]
        table[:-1, :-1] = (place + kind) * _EMPTY
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
    sizes = [len(one.spans) for one in annotators]
    before = np.concatenate([[0], np.cumsum(sizes)])
    sparse = import_module("scipy.sparse")
    rows, columns = [], []
    for column, size in enumerate(sizes):
        real = np.flatnonzero(groups[:, column] < size)
        rows.append(before[column] + groups[real, column])
        columns.append(real)
    row, place = np.concatenate(rows), np.concatenate(columns)
    members = sparse.csr_array((np.ones(len(row)), (row, place)), shape=(int(before[-1]), len(groups)))
    found = optimize.milp(
        costs,
        integrality=np.ones(len(groups)),
        bounds=optimize.Bounds(0, 1),
        constraints=optimize.LinearConstraint(members, 1, 1),
    )
    if found.x is None:
        raise UsageError(f"The spans of a text cannot be aligned: {found.message}", remedy="Leave out gamma.")
    return float(costs @ np.round(found.x))


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
        kept = more <= pairs * _EMPTY * number
        groups, costs = groups[kept], more[kept]
    sizes = np.array([len(one.spans) for one in annotators])
    spans = (groups < sizes).sum(axis=1)
    costs = costs / pairs
    kept = (spans > 0) & ((spans == 1) | (costs <= spans * _EMPTY))
    return groups[kept], costs[kept]


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
    filled = [one for one in annotators if len(one.spans)]
    widths = np.concatenate([one.spans[:, 1] - one.spans[:, 0] for one in filled])
    apart = float(widths.mean()) / 2
    found: list[float] = []
    while len(found) < samples:
        steps = _steps(len(annotators), length, apart, generator)
        chosen = [annotators[int(generator.integers(len(annotators)))] for _ in annotators]
        turned = [_turned(one, step, length) for one, step in zip(chosen, steps, strict=True)]
        if any(len(one.spans) for one in turned):
            found.append(disorder(turned))
    return float(np.mean(found))


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


def _turned(one: Placed, step: int, length: int) -> Placed:
    """Spans moved on by a step; what would begin beyond the end begins at the start. None is parted."""
    moved = one.spans + step
    moved = np.where((moved[:, :1] > length), moved - length, moved)
    return Placed(moved, one.types)
