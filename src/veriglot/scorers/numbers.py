"""Number agreement: which numbers of the response the evidence has too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.provenance import signature
from veriglot.scorers.against_evidence import AgainstEvidence
from veriglot.scorers.agreement import agreement, checked_empty
from veriglot.scorers.number_values import number_values
from veriglot.scorers.overlap import Overlap, Value, checked_value

if TYPE_CHECKING:
    from decimal import Decimal

    from veriglot.records import Sample
    from veriglot.scorers.against_evidence import Measured, Unmeasured
    from veriglot.scorers.number_values import Reading

__all__ = ["NumberAgreement"]


class NumberAgreement(AgainstEvidence):
    """The share of the response's distinct numbers that the evidence has too, 0 to 1, in every script.

    Numbers are compared by value (`veriglot.scorers.number_values`): `١٬٢٣٤`, `1,234` and `1 234` are one. Where a mark
    may group or part, either reading will do. A response without numbers has no precision: it is not scored, unless
    `empty` says what it is worth.

    Args:
        value: which of precision, recall and F1 is the number.
        empty: the value of a response that has no numbers, 0 to 1.

    Raises:
        UsageError: a setting that makes no sense.
    """

    name = "number-agreement@2"

    def __init__(self, value: Value = "precision", empty: float | None = None) -> None:
        self.value, self.empty = checked_value(value), checked_empty(empty)

    @property
    def signature(self) -> str:
        """Name and settings."""
        return signature(scorer=self.name, value=self.value, empty=self.empty)

    def measure(self, sample: Sample) -> Measured | Unmeasured:
        """P, R and F1 of the distinct numbers, with their counts."""
        response = number_values(sample.response)
        evidence = [reading for passage in sample.evidence for reading in number_values(passage.text)]
        certain = {value for reading in (*response, *evidence) if len(reading) == 1 for value in reading}
        ours = {_settled(reading, certain) for reading in response}
        theirs = {_settled(reading, certain) for reading in evidence}
        found = Overlap(len(ours & theirs), len(ours), len(theirs))
        return agreement(found, self.value, self.empty, "number", sample.language)


def _settled(reading: Reading, certain: set[Decimal]) -> Reading:
    """The reading, of two values the one that is written beyond doubt elsewhere in the two texts."""
    beyond_doubt = reading & certain
    return frozenset([max(beyond_doubt)]) if beyond_doubt else reading
