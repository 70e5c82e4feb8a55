"""What became of the rows of a cell: statuses by language, coverage, and why some were not scored."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import msgspec

from veriglot.bench.belonging import tag_of
from veriglot.bench.elsewhere import MISSING
from veriglot.records import Prediction

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from veriglot.bench.cells import Said
    from veriglot.bench.results import BenchCell
    from veriglot.records import Sample, Score

__all__ = ["counted"]


def counted(cell: BenchCell, said: Said, rows: Sequence[Sample]) -> BenchCell:
    """The cell with what became of its test rows."""
    answers = said.answers[: len(rows)]
    statuses: dict[str, Counter[str]] = defaultdict(Counter)
    became = [_became(answer) for answer in answers]
    for sample, status in zip(rows, became, strict=True):
        statuses[tag_of(sample.language)][status] += 1
    scored = sum(one["scored"] for one in statuses.values())
    coverage = scored / len(rows) if rows else 0.0
    cell = msgspec.structs.replace(
        cell,
        statuses={tag: dict(sorted(found.items())) for tag, found in sorted(statuses.items())},
        coverage=coverage,
        cost=said.cost,
        signature=said.signature,
    )
    if scored == len(rows):
        return cell
    status = "partial" if scored else "failed" if set(became) == {"failed"} else "unscored"
    return msgspec.structs.replace(cell, status=status, reason=_why(answers))


def _why(answers: Iterable[Prediction | Score]) -> str:
    """Why rows were not scored: how many have which status, and the reason that most of them give."""
    unscored = [one for one in answers if one.status != "scored"]
    counts = Counter(_became(one) for one in unscored)
    reasons = Counter(one.reason for one in unscored)
    listed = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
    return f"{listed}; most often: {reasons.most_common(1)[0][0]}"


def _became(answer: Prediction | Score) -> str:
    return MISSING if isinstance(answer, Prediction) and MISSING in answer.notes else answer.status.value
