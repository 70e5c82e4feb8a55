"""Number agreement: which numbers of the response the evidence has too."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from veriglot.scorers.base import SampleScorer
from veriglot.scorers.rouge import Overlap, Value, agreement, check_options
from veriglot.signatures import signature
from veriglot.text.normalization import normalise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.judging.base import NotScored
    from veriglot.records import Sample
    from veriglot.scorers.base import Measured

__all__ = []


Reading = frozenset[Decimal]  # what one number may mean: `1.234` is a thousand or one and a bit

_DIGITS = {
    char: value
    for value, chars in enumerate(("〇零", "一", "二", "三", "四", "五", "六", "七", "八", "九"))
    for char in chars
}
_UNITS = {"十": 10, "百": 100, "千": 1000}
_SCALES = {"百": 100, "千": 1000, "백": 100, "천": 1000}  # after digits: `3천만`
_MYRIADS = {"万": 10**4, "萬": 10**4, "億": 10**8, "亿": 10**8, "만": 10**4, "억": 10**8}
_HAN = "".join([*_DIGITS, *_UNITS, *(char for char in _MYRIADS if char not in "만억")])

_NUMBER = re.compile(
    r"\d+(?:[.,٫٬'’\u00a0\u2009\u202f]\d+)*"  # 1,234.5  1 234 with a space that does not break
    r"(?:\s?[百千백천万萬億亿만억])*"  # 12万
    rf"|[{_HAN}]{{2,}}"
)
_DATE = re.compile(r"(?<!\d)(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})(?!\d)")
_LIST_MARK = re.compile(r"^[ \t]*\(?\d{1,3}[.)](?=\s)", re.MULTILINE)
_MONTH = re.compile(r"(?<!\d)\d{1,2}\s?[月월]")
_SPACE = "\u00a0"  # that does not break; two others like it are taken for the same
_GROUPING = _SPACE + "'’٬"
_BLANK = " \u2003 "  # what keeps apart what stood around something that is taken out


def number_values(text: str) -> list[Reading]:
    """The numbers of a text in order, each as the set of values that it may mean.

    Digits of every script, decimal and grouping marks of every custom (where a mark may be either, both values), and
    Chinese numerals of two characters or more, also after digits (`12万`). Digits inside a word count (`B52`, `20th`,
    `1879年`). Left out: the marks of lists at the beginning of a line, and the month of a date in figures
    (`14.03.1879`, `3月`), which other texts write as a word. Words for numbers (`seven`) are not read.
    """
    plain = normalise(text, fold_case=False, spaces=False, punctuation=False, compatibility=False).text
    plain = _MONTH.sub(_BLANK, _DATE.sub(_without_month, _LIST_MARK.sub(_BLANK, plain)))
    return [reading for match in _NUMBER.finditer(plain) for reading in _readings(match.group())]


def _without_month(match: re.Match[str]) -> str:
    """Day and year of a date in figures; the whole where it cannot be one."""
    first, mark, middle, last = match.groups()
    if len(first) <= 2 and len(last) not in (2, 4):
        return match.group()
    month_first = mark == "/" and int(middle) > 12 >= int(first)
    month = int(first if month_first else middle)
    if not 1 <= month <= 12 or len(first) == 3:
        return match.group()
    return _BLANK.join([middle if month_first else first, last])


def _readings(written: str) -> Iterator[Reading]:
    """The reading of one match, or none where its characters make no number."""
    if not written[0].isdecimal():
        value = _chinese(written)
        if value is not None:
            yield frozenset({value})
        return
    scale = 1
    scales = _SCALES | _MYRIADS
    while not written[-1].isdecimal():
        scale *= scales.get(written[-1], 1)
        written = written[:-1]
    for part in _parts(written):
        yield frozenset(value * scale for value in _decimal(part))


def _parts(written: str) -> list[str]:
    """Digits with marks as one number, or, where they can be none (`1,2,3`), as several."""
    return [written] if _decimal(written) else re.findall(r"\d+", written)


def _decimal(written: str) -> set[Decimal]:
    """The values of digits with marks between them; none where they can be no number."""
    marks = [_SPACE if char.isspace() else char for char in written if not char.isdecimal()]
    groups = re.split(r"\D", written)
    if not marks:
        return {Decimal(written)}
    grouped = len(groups[0]) <= 3 and groups[0] != "0" and all(len(group) == 3 for group in groups[1:])
    values = set()
    if grouped and len(set(marks)) == 1 and marks[0] != "٫":
        values.add(Decimal("".join(groups)))
    if len(marks) == 1 and marks[0] not in _GROUPING:
        values.add(Decimal(".".join(groups)))
    elif len(marks) > 1 and len(set(marks[:-1])) == 1 and marks[-1] != marks[0] and marks[-1] not in _GROUPING:
        whole = groups[:-1]
        if len(whole[0]) <= 3 and all(len(group) in (2, 3) for group in whole[1:]):  # 12,34,567.8 in India
            values.add(Decimal("".join(whole) + "." + groups[-1]))
    if not values and len(set(marks)) == 1 and len(groups[-1]) == 3 and all(len(group) == 2 for group in groups[1:-1]):
        values.add(Decimal("".join(groups)))  # 12,34,567
    return values


def _chinese(written: str) -> Decimal | None:
    """The value of a Chinese numeral: `一百二十`, `二〇一九`, `三万`; None where the characters make none."""
    if all(char in _DIGITS for char in written):
        return Decimal("".join(str(_DIGITS[char]) for char in written)) if len(written) >= 3 else None
    total, section, digit, last = 0, 0, None, 10**12
    for char in written:
        if char in _DIGITS:
            if digit:
                return None
            digit = _DIGITS[char]
        elif char in _UNITS:
            if digit is None and section:
                return None
            section += (1 if digit is None else digit) * _UNITS[char]
            digit = None
        else:
            if section + (digit or 0) == 0 or _MYRIADS[char] >= last:
                return None
            total += (section + (digit or 0)) * _MYRIADS[char]
            section, digit, last = 0, None, _MYRIADS[char]
    return Decimal(total + section + (digit or 0))


class NumberAgreement(SampleScorer):
    """The share of the response's distinct numbers that the evidence has too, 0 to 1, in every script.

    Numbers are compared by value (`veriglot.scorers.numbers`): `١٬٢٣٤`, `1,234` and `1 234` are one. Where a mark
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
        check_options(value, empty)
        self.value, self.empty = value, empty
        self.signature = signature(scorer=self.name, value=value, empty=empty)

    def measure(self, sample: Sample) -> Measured | NotScored:
        """P, R and F1 of the distinct numbers, with their counts."""
        response = number_values(sample.response)
        evidence = [reading for passage in sample.evidence for reading in number_values(passage.text)]
        certain = {value for reading in (*response, *evidence) if len(reading) == 1 for value in reading}
        response_numbers = {_settled(reading, certain) for reading in response}
        evidence_numbers = {_settled(reading, certain) for reading in evidence}
        overlap = Overlap(len(response_numbers & evidence_numbers), len(response_numbers), len(evidence_numbers))
        return agreement(overlap, self.value, self.empty, "number", sample.language)


def _settled(reading: Reading, certain: set[Decimal]) -> Reading:
    """The reading, of two values the one that is written beyond doubt elsewhere in the two texts."""
    beyond_doubt = reading & certain
    return frozenset([max(beyond_doubt)]) if beyond_doubt else reading
