"""Number agreement: which numbers of the response are in the evidence too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.scorers.base import RawScore, SampleScorer
from veriglot.scorers.rouge import Overlap, Value, agreement, check_options
from veriglot.signatures import signature
from veriglot.text.values import read_values

if TYPE_CHECKING:
    from veriglot.judging.base import NotScored
    from veriglot.records import Sample

__all__ = []


Reading = frozenset[float]  # possible values of one number: `1.234` is above 1,000 or between 1 and 2


def _readings(text: str, language: str | None) -> list[Reading]:
    """The possible values of each number of a text, in order; without months, which not all texts spell out."""
    return [frozenset(value.amounts) for value in read_values(text, language) if value.kind != "month"]


class NumberAgreement(SampleScorer):
    """The share of the response's distinct numbers that are also in the evidence, 0 to 1, in every script.

    Numbers are compared by value (`veriglot.text.values.read_values`): `١٬٢٣٤`, `1,234` and, in languages with data for
    it, `twelve hundred and thirty-four` are equal. If a mark may be a decimal or a thousands separator, either value
    matches. A response without numbers has no precision: it is not scored, unless `empty` gives its value.

    Args:
        value: precision, recall or F1 as the score.
        empty: the value of a response that has no numbers, 0 to 1.

    Raises:
        UsageError: an invalid setting.
    """

    name = "number-agreement@4"

    def __init__(self, value: Value = "precision", empty: float | None = None) -> None:
        check_options(value, empty)
        self.value, self.empty = value, empty
        self.signature = signature(scorer=self.name, value=value, empty=empty)

    def measure(self, sample: Sample) -> RawScore | NotScored:
        """P, R and F1 of the distinct numbers, with their counts."""
        response = _readings(sample.response, sample.language)
        passages = [(passage.text, passage.language or sample.language) for passage in sample.evidence]
        evidence = [reading for text, language in passages for reading in _readings(text, language)]
        certain = {value for reading in (*response, *evidence) if len(reading) == 1 for value in reading}
        response_numbers = {_unambiguous(reading, certain) for reading in response}
        evidence_numbers = {_unambiguous(reading, certain) for reading in evidence}
        overlap = Overlap(len(response_numbers & evidence_numbers), len(response_numbers), len(evidence_numbers))
        return agreement(overlap, self.value, self.empty, "number", sample.language)


def _unambiguous(reading: Reading, certain: set[float]) -> Reading:
    """The possible values; only one of them if either text has it in an unambiguous form."""
    beyond_doubt = reading & certain
    return frozenset([max(beyond_doubt)]) if beyond_doubt else reading
