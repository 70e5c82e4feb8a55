"""Layout of a text for display: its direction, printable characters, excerpts, pieces of crossing spans."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from veriglot.plugins import read_package_data
from veriglot.records.languages import find_language

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from veriglot.records import Pointer, Prediction, Sample, Span

__all__ = [
    "by_wording",
    "direction",
    "excerpt",
    "hundredths",
    "is_in_passage",
    "likelihood",
    "misplaced_parts",
    "note_words",
    "printable",
    "segments",
    "shortened",
    "status_words",
    "task_words",
    "unit_rows",
]


T = TypeVar("T")
_MOVE = 12
"""Maximum distance, in code points, of a cut from its position to a space."""
_PARTS_SHOWN = 4  # parts of the middle of a long passage that are shown since they match the mark
_NUMBER = re.compile(r"\d(?:[.,:/٫٬’'\u00a0\u202f]?\d)*")
_FIGURE = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_UNIT = re.compile(r"\s?[^\W\d_]{1,12}")
_WORD = re.compile(r"[^\W\d_]{4,}")


class Excerpt(NamedTuple):
    """A pointed passage with its context: the text before, the passage, the text after; cuts are marked by `…`."""

    before: str
    quoted: str
    after: str


def excerpt(text: str, start: int, end: int, *, mark: str = "", around: int = 40) -> Excerpt:
    """Up to `around` code points on either side of `[start, end)`; no number is cut, or separated from its unit.

    In a passage over 160 code points, the middle is cut except for numbers and words of `mark` (numbers if it has any).
    """
    first = max(0, start - around)
    last = min(len(text), end + around)
    if first:
        space = text.find(" ", first, min(first + _MOVE, start))
        first = _beside_number(text, first, -1) if space < 0 else space + 1
    if end < last < len(text):
        space = text.rfind(" ", max(last - _MOVE, end), last)
        last = _beside_number(text, last, 1) if space < 0 else space
        unit = _UNIT.match(text, last) if text[last - 1].isdigit() else None
        last = unit.end() if unit else last
    quoted = text[start:end]
    if len(quoted) > 160:
        quoted = _without_middle(quoted, 80, mark)
    return Excerpt(
        ("…" if first else "") + text[first:start], quoted, text[end:last] + ("…" if last < len(text) else "")
    )


def _beside_number(text: str, at: int, step: int) -> int:
    """The position of a cut, moved out of a number."""
    for _ in range(2 * _MOVE):
        if not 0 < at < len(text) or not (text[at - 1].isdigit() or text[at].isdigit()):
            break
        if not all(char.isdigit() or char in ".,:/٫٬’'" for char in text[at - 1 : at + 1]):
            break
        at += step
    return at


def _without_middle(quoted: str, half: int, mark: str) -> str:
    """Both ends, cut at spaces if one is near, and the parts of the middle that match the mark."""
    first, last = half, len(quoted) - half
    space = quoted.rfind(" ", first - _MOVE, first + 1)
    first = _beside_number(quoted, first, 1) if space < 0 else space
    space = quoted.find(" ", last - 1, last + _MOVE)
    last = _beside_number(quoted, last, -1) if space < 0 else space + 1
    words = {word.casefold() for word in _WORD.findall(mark)}
    parts = [match.span() for match in _WORD.finditer(quoted, first, last) if match.group().casefold() in words]
    if figures := _NUMBER.findall(mark):
        numbers = list(_NUMBER.finditer(quoted, first, last))
        alike = [match for match in numbers if len(match.group()) in set(map(len, figures))]
        parts = [match.span() for match in alike or numbers]
    shown: list[tuple[int, int]] = []
    for start, end in parts[:_PARTS_SHOWN]:
        context = excerpt(quoted, start, end, around=2 * _MOVE)
        start, end = start - len(context.before.lstrip("…")), end + len(context.after.rstrip("…"))
        start, end = max(start, shown[-1][1] if shown else first), min(end, last)
        if shown and start == shown[-1][1]:
            shown[-1] = (shown[-1][0], max(end, start))
        elif start < end:
            shown.append((start, end))
    middle = [quoted[start:end].strip() for start, end in shown]
    return " … ".join([quoted[:first].rstrip(), *filter(None, middle), quoted[last:].lstrip()])


_SENTENCES = read_package_data(__package__, "sentences.toml", dict[str, dict[str, str]])
_STATUSES, _NOTES = _SENTENCES["statuses"], _SENTENCES["notes"]


def status_words(status: str) -> str:
    """A status of a prediction in words; an unknown one as words of its name."""
    return _STATUSES.get(status, status.replace("_", " "))


def task_words(task: str) -> str:
    """The task of a response, in words; empty if unknown."""
    return {"qa": "question answering", "open": ""}.get(task, task)


def note_words(note: str) -> str:
    """A note of a prediction as a sentence; an unknown one (of a plug-in) unchanged."""
    for pattern, words in _NOTES.items():
        if match := re.fullmatch(pattern, note, re.DOTALL):
            return words.format(*(_STATUSES.get(part, part) for part in match.groups()))
    return note


def misplaced_parts(sample: Sample, prediction: Prediction) -> list[str]:
    """Parts of a prediction (spans, words, units, pointers) outside of its sample, in words; usually empty."""
    lengths = {passage.id or "": len(passage.text) for passage in sample.evidence}
    problems = []
    for span in prediction.spans or ():
        if span.end > len(sample.response):
            problems.append(
                f"span [{span.start}, {span.end}) ends beyond the response of {len(sample.response)} code points"
            )
        problems.extend(_lost(span, lengths))
    for what, pieces in (("word", prediction.words), ("unit", prediction.units)):
        beyond = sum(piece.end > len(sample.response) for piece in pieces or ())
        if beyond:
            problems.append(
                f"{count(beyond, what)} beyond the end of the response of {len(sample.response)} code points"
            )
    lost = sum(not is_in_passage(p, lengths.get(p.id)) for word in prediction.words or () for p in word.evidence)
    if lost:
        problems.append(f"{count(lost, 'pointer')} of words outside of the evidence")
    return problems


def is_in_passage(pointer: Pointer, length: int | None) -> bool:
    """Whether a pointer is inside a passage of that many code points (None: there is no such passage)."""
    return length is not None and pointer.end <= length


def _lost(span: Span, lengths: dict[str, int]) -> Iterator[str]:
    for pointer in span.evidence:
        length = lengths.get(pointer.id)
        if length is None:
            yield f"span [{span.start}, {span.end}) points into passage {pointer.id!r}, which the sample does not have"
        elif not is_in_passage(pointer, length):
            yield f"span [{span.start}, {span.end}) points beyond the end of passage {pointer.id!r}"


# Direction of a text, from its language and, if that is not enough, from its letters.


Direction = Literal["ltr", "rtl", "auto"]

_LOOKED_AT = 2000
"""Code points at the start of a text that are inspected: the first paragraphs determine its direction."""


def direction(text: str, tag: str | None) -> Direction:
    """The direction to lay out `text` in.

    The language decides, unless every strong letter of the text has the other direction (Urdu in Latin letters).
    Without a known language the majority of strong letters decides; a text without any is `auto`.
    """
    classes = [unicodedata.bidirectional(char) for char in text[:_LOOKED_AT]]
    left, right = classes.count("L"), classes.count("R") + classes.count("AL")  # strong letters, by direction
    known = find_language(tag) if tag else None
    if known is not None:
        here, there = (right, left) if known.direction == "rtl" else (left, right)
        if here or not there:
            return known.direction
    if left == right:
        return "auto"
    return "rtl" if right > left else "ltr"


def language_with_tag(tag: str | None) -> str:
    """The English name of a language with its tag: `German (de)`; the tag alone if the table lacks it."""
    known = find_language(tag) if tag else None
    return f"{known.name} ({tag})" if known is not None else tag or "not stated"


# Untrusted text made safe to print: characters that control the terminal or mislead the reader become visible.
#
# A response can contain escape sequences that recolour, retitle or rewrite the screen, and direction overrides that
# change the apparent order of letters. Each such code point is replaced by a visible sign. Line breaks become `\n` and
# tabs four spaces. Joiners and direction marks (ZWJ, ZWNJ, LRM, RLM, ALM) stay, since scripts need them.


_LINE_BREAK = re.compile("\r\n|[\v\f\x85\u2028\u2029]")
_STEERING = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f"  # C0 and C1 controls without the line feed: escape sequences start here
    "\u202a-\u202e\u2066-\u2069"  # direction embeddings, overrides and isolates
    "\ud800-\udfff]"  # surrogates cannot be encoded
)


def printable(text: str) -> str:
    """`text` with every control character replaced by a visible sign.

    Controls become their pictures (U+001B is `␛`), direction controls and C1 controls their names (`<U+202E>`), a lone
    surrogate U+FFFD.
    """
    return _STEERING.sub(_sign, _LINE_BREAK.sub("\n", text))


def _sign(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code == 0x09:
        return "    "
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"<U+{code:04X}>"


class Segment(NamedTuple):
    """A piece `[start, end)` of a text, in code points, and the indices of the spans that cover all of it.

    `covering` is in order from the outermost (longest) span to the innermost (shortest).
    """

    start: int
    end: int
    covering: tuple[int, ...]


def segments(length: int, spans: Sequence[Span | Pointer]) -> Iterator[Segment]:
    """Split a text of `length` code points at every end of a span; the pieces, in order, cover it exactly.

    A span that extends beyond the text is cut at its end. Time is linear in the spans, times the depth of their
    nesting.
    """
    opening: dict[int, list[int]] = {}
    closing: dict[int, list[int]] = {}
    for index, span in enumerate(spans):
        if span.start < length:
            opening.setdefault(span.start, []).append(index)
            closing.setdefault(min(span.end, length), []).append(index)
    active = set[int]()
    places = sorted({0, length, *opening, *closing})
    for start, end in pairwise(places):
        active.difference_update(closing.get(start, ()))
        active.update(opening.get(start, ()))
        yield Segment(start, end, tuple(sorted(active, key=lambda i: (spans[i].start - spans[i].end, i))))


class UnitRow(NamedTuple):
    """One unit: its kind, its score, and its own words, with `…` for what is between them."""

    kind: str
    score: float
    text: str


def unit_rows(sample: Sample, prediction: Prediction) -> list[UnitRow]:
    """The units of a prediction in order; empty if it has none."""
    response = sample.response
    return [
        UnitRow(
            unit.kind,
            unit.score,
            " … ".join(response[start:end] for start, end in unit.parts or ((unit.start, unit.end),)),
        )
        for unit in prediction.units or ()
    ]


# Numbers for people.


MINUS = "\N{MINUS SIGN}"


def number(value: float | None, digits: int = 3) -> str:
    """A figure as text; a dash for None."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", MINUS)


def percent(value: float | None, digits: int = 1) -> str:
    """A share as `7.4%`; one that would round to 0 as `<0.1%`, to 100 as `>99.9%`; None as a dash."""
    if value is None:
        return "–"
    smallest = 10**-digits
    points = 100 * value
    if 0 < points < smallest / 2:
        return f"<{smallest:.{digits}f}%"
    if 100 - smallest / 2 < points < 100:
        return f">{100 - smallest:.{digits}f}%"
    return f"{points:.{digits}f}%".replace("-", MINUS)


def hundredths(confidence: float) -> int:
    """A confidence in whole hundredths, rounded down, so that displayed values agree with thresholds."""
    return int(100 * confidence + 1e-9)


def likelihood(confidence: float | None) -> str:
    """A confidence as `91%`, rounded down; a small one that is not 0 as `<1%`; None as a dash."""
    if confidence is None:
        return "–"
    return "<1%" if 0 < confidence < 0.01 else f"{hundredths(confidence)}%"


def points(value: float, digits: int = 1) -> str:
    """A share in percentage points without the sign of the unit: `7.4`."""
    return f"{100 * value:.{digits}f}".replace("-", MINUS)


def signed(value: float) -> str:
    """A difference of shares in percentage points, with its sign: `+1.3`, `−0.4`, `0.0`."""
    text = f"{100 * value:+.1f}"
    return text[1:] if float(text) == 0 else text.replace("-", MINUS)


def interval(low: float | None, high: float | None) -> str:
    """Both ends in percentage points, `[6.1, 8.9]`; empty without an interval."""
    if low is None or high is None:
        return ""
    return f"[{points(low)}, {points(high)}]"


def by_wording(reasons: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    """The items of each reason; reasons that differ only in numbers are merged: `37–46% of the units`."""
    groups: dict[str, list[tuple[str, T]]] = {}
    for reason, case in reasons:
        groups.setdefault(_FIGURE.sub("#", reason), []).append((reason, case))
    return {_with_ranges([reason for reason, _ in pairs]): [case for _, case in pairs] for pairs in groups.values()}


def _with_ranges(reasons: Sequence[str]) -> str:
    ranges = []
    for numbers in zip(*map(_FIGURE.findall, reasons), strict=True):
        ordered = sorted(numbers, key=lambda number: float(number.replace(",", "")))
        ranges.append("–".join(dict.fromkeys([ordered[0], ordered[-1]])))
    left = iter(ranges)
    return _FIGURE.sub(lambda _: next(left), reasons[0])


def shortened(names: Sequence[str], most: int, between: str = ", ") -> str:
    """The first of some names, and the number of the others: `de, en and 5 more`."""
    return between.join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def count(number: int, singular: str, plural: str | None = None) -> str:
    """A number with its noun: `1 model`, `1,204 responses`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
