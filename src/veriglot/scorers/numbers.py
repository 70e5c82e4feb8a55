"""Number agreement: which numbers of the response the evidence has too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.scorers.base import Measured, SampleScorer
from veriglot.scorers.rouge import Overlap, Value, agreement, check_options
from veriglot.signatures import signature
from veriglot.text.values import read_values

if TYPE_CHECKING:
    from veriglot.judging.base import NotScored
    from veriglot.records import Sample

__all__ = []


Reading = frozenset[float]  # what one number may mean: `1.234` is a thousand or one and a bit


def _readings(text: str, language: str | None) -> list[Reading]:
    """The numbers of a text in order, each as what it may mean; months are left out, which not all texts spell."""
    return [frozenset(value.amounts) for value in read_values(text, language) if value.kind != "month"]


class NumberAgreement(SampleScorer):
    """The share of the response's distinct numbers that the evidence has too, 0 to 1, in every script.

    Numbers are compared by value (`veriglot.text.values.read_values`): `١٬٢٣٤`, `1,234` and, in a language of the
    data, `twelve hundred and thirty-four` are one. Where a mark may group or part, either reading will do. A response
    without numbers has no precision: it is not scored, unless `empty` says what it is worth.

    Args:
        value: which of precision, recall and F1 is the number.
        empty: the value of a response that has no numbers, 0 to 1.

    Raises:
        UsageError: a setting that makes no sense.
    """

    name = "number-agreement@4"

    def __init__(self, value: Value = "precision", empty: float | None = None) -> None:
        check_options(value, empty)
        self.value, self.empty = value, empty
        self.signature = signature(scorer=self.name, value=value, empty=empty)

    def measure(self, sample: Sample) -> Measured | NotScored:
        """P, R and F1 of the distinct numbers, with their counts."""
        response = _readings(sample.response, sample.language)
        passages = [(passage.text, passage.language or sample.language) for passage in sample.evidence]
        evidence = [reading for text, language in passages for reading in _readings(text, language)]
        certain = {value for reading in (*response, *evidence) if len(reading) == 1 for value in reading}
        response_numbers = {_settled(reading, certain) for reading in response}
        evidence_numbers = {_settled(reading, certain) for reading in evidence}
        overlap = Overlap(len(response_numbers & evidence_numbers), len(response_numbers), len(evidence_numbers))
        return agreement(overlap, self.value, self.empty, "number", sample.language)


def _settled(reading: Reading, certain: set[float]) -> Reading:
    """The reading, of two values the one that is written beyond doubt elsewhere in the two texts."""
    beyond_doubt = reading & certain
    return frozenset([max(beyond_doubt)]) if beyond_doubt else reading
