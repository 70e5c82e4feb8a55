"""Annotation projection: a span onto a translation through linked words, a quoted text, or markers in the text."""

from __future__ import annotations

import math
import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from veriglot.datasets.translation.alignment import Range, number_of, side_of
from veriglot.text.normalization import normalise

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from veriglot.datasets.translation.alignment import Aligner, Link, Side

__all__ = [
    "STRATEGIES",
    "MarkerFault",
    "PlacedMark",
    "Strategy",
    "Way",
    "best_of",
    "marked",
    "place_in_response",
    "project",
    "unmarked",
    "words_inside",
]


_AGAINST = 0.5  # what a link to a word outside counts
_EMPTY = 0.02  # what a word of the target costs in any case
_OTHER = 0.5  # share of the first part's gain that a further one has to have


class _AlignedMark(NamedTuple):
    """Where a mark went."""

    parts: tuple[Range, ...]
    quality: float


def words_inside(side: Side, mark: Range) -> list[int]:
    """The numbers of the words that a range touches."""
    return [number for number, (start, end) in enumerate(side.words) if start < mark[1] and mark[0] < end]


def project(source: Side, target: Side, links: Sequence[Link], mark: Range) -> _AlignedMark | None:
    """Lay a mark of the source onto the target; None where none of its words has a link.

    Each word of the target speaks for the mark with the weight of its links to words inside, and against it with half
    of that to words outside. The part is the stretch that gains most; a further one is taken where it gains half as
    much or more. Words without a link cost next to nothing between two that belong to the mark, and are left out at
    the edges.

    Args:
        source, target: the text and its translation.
        links: between their words.
        mark: half-open code point range of the source.
    """
    inside = frozenset(words_inside(source, mark))
    within, outside = [0.0] * len(target.words), [0.0] * len(target.words)
    for link in links:
        weights = within if link.source in inside else outside
        weights[link.target] += link.weight
    runs = _runs([own - _AGAINST * other - _EMPTY for own, other in zip(within, outside, strict=True)])
    if not runs:
        return None
    places = {j for first, last in runs for j in range(first, last + 1)}
    own, other = sum(within[j] for j in places), sum(outside[j] for j in places)
    arrived: dict[int, float] = {}
    for link in links:
        if link.source in inside and link.target in places:
            arrived[link.source] = min(1.0, arrived.get(link.source, 0.0) + link.weight)
    parts = tuple(
        _with_edges(source, target, mark, (target.words[first][0], target.words[last][1])) for first, last in runs
    )
    return _AlignedMark(parts, sum(arrived.values()) / len(inside) * own / (own + other))


def _runs(gains: Sequence[float]) -> list[Range]:
    """The stretch of words with the largest sum, and others that come near it; first and last word inclusive."""
    runs: list[Range] = []
    left = list(gains)
    threshold = 0.0
    while True:
        gain, first, last = _largest(left)
        if gain <= threshold:
            return sorted(runs)
        threshold = threshold or _OTHER * gain
        runs.append((first, last))
        left[first : last + 1] = [-math.inf] * (last + 1 - first)


def _largest(gains: Sequence[float]) -> tuple[float, int, int]:
    """The largest sum of neighbours, with the first and the last of them; of equal ones the first, and the shortest."""
    best, run, begun = (0.0, 0, -1), 0.0, 0
    for index, gain in enumerate(gains):
        if run <= 0:
            run, begun = 0.0, index
        run += gain
        if run > best[0]:
            best = (run, begun, index)
    return best


def _with_edges(source: Side, target: Side, mark: Range, part: Range) -> Range:
    """A part with as much of the signs around it as the mark has around its words: brackets, quotes, full stops."""
    touched = words_inside(source, mark)
    if not touched:
        return part
    before = source.text[mark[0] : max(mark[0], source.words[touched[0]][0])]
    after = source.text[min(mark[1], source.words[touched[-1]][1]) : mark[1]]
    start, end = part
    for _ in before.strip():
        if start > 0 and _is_sign(target.text[start - 1]):
            start -= 1
    for _ in after.strip():
        if end < len(target.text) and _is_sign(target.text[end]):
            end += 1
    return start, end


def _is_sign(char: str) -> bool:
    return not char.isspace() and not char.isalnum()


# The translation of a part of a text, found in the translation of the whole.


_NORMALISED = 0.95
_LEAST = 0.7  # likeness of a passage that was translated a little differently
_UNDECIDED = 0.8  # what a place counts for that is one of several
_LONGEST = 60  # words of a part that is searched for among passages like it


class _Located(NamedTuple):
    """Where a part stands."""

    start: int
    end: int
    likeness: float


def _locate(side: Side, part: str, expected: float) -> _Located | None:
    """Find a translated part."""
    part = _core(part)
    if not part:
        return None
    starts, ends = {start for start, _ in side.words}, {end for _, end in side.words}
    for likeness, places in ((1.0, _found(side.text, part)), (_NORMALISED, _found_normalised(side.text, part))):
        whole = [(start, end) for start, end in places if start in starts and end in ends]
        if whole:
            start, end = min(whole, key=lambda span: abs(span[0] / max(1, len(side.text)) - expected))
            return _Located(start, end, likeness * (_UNDECIDED if len(whole) > 1 else 1.0))
    return _alike(side, part, expected)


def _core(part: str) -> str:
    """Without spaces and signs at either end."""
    places = [index for index, char in enumerate(part) if char.isalnum()]
    return part[places[0] : places[-1] + 1] if places else ""


def _found(text: str, part: str) -> Iterator[Range]:
    at = text.find(part)
    while at >= 0:
        yield at, at + len(part)
        at = text.find(part, at + 1)


def _found_normalised(text: str, part: str) -> Iterator[Range]:
    whole, wanted = normalise(text), normalise(part).text
    for start, end in _found(whole.text, wanted) if wanted else ():
        yield whole.original(start, end)


def _alike(side: Side, part: str, expected: float) -> _Located | None:
    """The stretch of words that has the most in common with the part."""
    count = len(side_of(part, side.tag).words)
    if not count or count > _LONGEST or not side.words:
        return None
    wanted = normalise(part).text
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    best: tuple[float, float, int, int] | None = None
    for size in range(max(1, count - 2), count + 3):
        for first in range(len(side.words) - size + 1):
            start, end = side.words[first][0], side.words[first + size - 1][1]
            matcher.set_seq1(normalise(side.text[start:end]).text)
            floor = best[0] if best else _LEAST
            if matcher.real_quick_ratio() < floor or matcher.quick_ratio() < floor:
                continue
            candidate = (matcher.ratio(), -abs(start / max(1, len(side.text)) - expected), start, end)
            best = max(best, candidate) if best else candidate
    return _Located(best[2], best[3], best[0]) if best and best[0] >= _LEAST else None


# Where a mark went: what each strategy says, and which of them is believed.
#
# The quality of a span, 0 to 1, says how far the evidence for its place goes. Its own part is 1 for markers that came
# back and for whole sentences, `_Located.likeness` for a part translated by itself, and `Projected.quality` for
# alignment. Where other strategies have a candidate too, it is 0.6 of that and 0.4 of the share of code points (F1)
# that it has in common with the best of them. Two checks lower it: a number of the mark that stands in the translation
# outside the span (times 0.3), and a span whose share of the translation is more than four times, or less than a
# quarter of, the mark's share of the text (times 0.5). Markers that neither check speaks against are believed;
# otherwise the best is.


Strategy = Literal["tags", "spans", "align"]
Way = Literal["tags", "sentence", "spans", "align"]
STRATEGIES: tuple[Strategy, ...] = ("tags", "spans", "align")

_OWN, _SHARED = 0.6, 0.4
_NUMBER_ELSEWHERE = 0.3
_ODD_LENGTH = 0.5
_TIMES = 4.0
_FEWEST_DIGITS = 2


class PlacedMark(msgspec.Struct, frozen=True):
    """A mark in a translation.

    Attributes:
        parts: half-open code point ranges, in order.
        quality: 0 to 1, as above.
        way: which strategy placed it; `sentence` where the mark was all of a sentence.
    """

    parts: tuple[Range, ...]
    quality: float
    way: Way


def best_of(
    source: Side,
    target: Side,
    marks: Sequence[Range],
    *,
    tagged: Sequence[Range] | None = None,
    apart: Mapping[Range, str] | None = None,
    aligner: Aligner | None = None,
) -> list[PlacedMark | None]:
    """Each mark's best place; None where no strategy finds one.

    Args:
        source, target: a text and its translation.
        marks: half-open code point ranges of the text.
        tagged: where markers came back, one range a mark; None where they did not, or were not asked for.
        apart: translations of marks by themselves.
        aligner: None for no alignment.
    """
    aligned = aligner.align(source, target) if aligner is not None and marks else None
    result = []
    for number, mark in enumerate(marks):
        candidates: list[tuple[Way, tuple[Range, ...], float]] = []
        if tagged is not None:
            candidates.append(("tags", (tagged[number],), 1.0))
        whole = _sentence(source, target, mark)
        if whole is not None:
            candidates.append(("sentence", (whole,), 1.0))
        elif apart is not None and mark in apart:
            at = _locate(target, apart[mark], mark[0] / max(1, len(source.text)))
            if at is not None:
                candidates.append(("spans", (_with_edges(source, target, mark, at[:2]),), at.likeness))
        if aligned is not None and whole is None and words_inside(aligned.source, mark):
            projected = project(*aligned, mark)
            if projected is not None:
                candidates.append(("align", projected.parts, projected.quality))
        result.append(_best(source, target, mark, candidates))
    return result


def _sentence(source: Side, target: Side, mark: Range) -> Range | None:
    """All of the translation, where the mark holds every word of the text."""
    if not source.words or not target.words or len(words_inside(source, mark)) < len(source.words):
        return None
    return _with_edges(source, target, mark, (target.words[0][0], target.words[-1][1]))


def _best(
    source: Side,
    target: Side,
    mark: Range,
    candidates: Sequence[tuple[Way, tuple[Range, ...], float]],
) -> PlacedMark | None:
    best: PlacedMark | None = None
    for way, parts, own in candidates:
        others = [_overlap(parts, other_parts) for name, other_parts, _ in candidates if name != way]
        quality = _OWN * own + _SHARED * max(others) if others else own
        sound = _plausible(source, target, mark, parts)
        quality *= sound
        if way == "tags" and sound == 1.0:  # the translator itself said so
            return PlacedMark(parts, min(1.0, quality), way)
        if best is None or quality > best.quality + 1e-9:
            best = PlacedMark(parts, max(0.0, min(1.0, quality)), way)
    return best


def _overlap(first: Sequence[Range], second: Sequence[Range]) -> float:
    """F1 of the code points of two sets of ranges."""
    first_points, second_points = _points(first), _points(second)
    return 2 * len(first_points & second_points) / max(1, len(first_points) + len(second_points))


def _points(parts: Sequence[Range]) -> set[int]:
    return {point for start, end in parts for point in range(start, end)}


def _plausible(source: Side, target: Side, mark: Range, parts: Sequence[Range]) -> float:
    factor = 1.0
    inside = _numbers(source, [mark])
    there = _numbers(target, parts)
    if any(number in _numbers(target, [(0, len(target.text))]) for number in inside - there):
        factor *= _NUMBER_ELSEWHERE
    share = (mark[1] - mark[0]) / max(1, len(source.text))
    now = sum(end - start for start, end in parts) / max(1, len(target.text))
    if now > _TIMES * share or share > _TIMES * now:
        factor *= _ODD_LENGTH
    return factor


def _numbers(side: Side, parts: Sequence[Range]) -> set[str]:
    numbers = set()
    for part in parts:
        for word in words_inside(side, part):
            number = number_of(side.text[slice(*side.words[word])])
            if number is not None and len(number) >= _FEWEST_DIGITS:
                numbers.add(number)
    return numbers


# Marks in a text as markers that a translator carries along: `<1>...</1>`, and what is made of those that come back.
#
# Numbers, since letters are transliterated into other scripts and words are translated. What a translator does to
# brackets, digits and spaces is read with patience; a marker that is gone, or there twice, is not.


_MarkerReason = Literal["markers_lost", "markers_added", "markers_unpaired", "markers_empty", "markers_in_text"]

_ESCAPED = re.compile(r"&(lt|gt|#60|#62);", re.IGNORECASE)
_MARKER = re.compile(r"[<＜‹〈]\s*([/／\\]?)\s*(\d{1,3})\s*[>＞›〉]")
_LIKE = re.compile(r"[<＜‹〈]\s*[/／\\]?\s*\d{1,3}\s*[>＞›〉]|&lt;\s*/?\s*\d{1,3}\s*&gt;", re.IGNORECASE)
_OPEN_ENDED = re.compile(r"[<＜]\s*[/／]?\s*\d{0,3}\s*\Z")


class MarkerFault(msgspec.Struct, frozen=True):
    """Why the markers of a translation cannot be used.

    Attributes:
        reason: `markers_lost` (one did not come back), `markers_added` (one came back more often, or that was never
            there), `markers_unpaired` (closed before it is opened), `markers_empty` (around no word),
            `markers_in_text` (the original holds what looks like one).
        detail: the same in words.
    """

    reason: _MarkerReason
    detail: str


class Unmarked(msgspec.Struct, frozen=True):
    """A translation without its markers."""

    text: str
    spans: tuple[Range, ...]


def marked(text: str, marks: Sequence[Range]) -> str | MarkerFault:
    """A text with markers around ranges of it; nested and crossing ones are each written as they stand.

    Args:
        text: any text.
        marks: half-open code point ranges; the first is number 1.
    """
    if _LIKE.search(text):
        return MarkerFault("markers_in_text", "the text holds what looks like a marker")
    edges: list[tuple[int, int, int, int, str]] = []  # place, closers first, the inner inside the outer at either edge
    for number, (start, end) in enumerate(marks, 1):
        edges.append((start, 1, start - end, number, f"<{number}>"))
        edges.append((end, 0, end - start, -number, f"</{number}>"))
    parts: list[str] = []
    at = 0
    for position, _, _, _, marker in sorted(edges):
        parts += (text[at:position], marker)
        at = position
    return "".join((*parts, text[at:]))


def unmarked(text: str, count: int) -> Unmarked | MarkerFault:
    """The translation, and where its marks stand; a fault unless each marker came back once, in pairs, around a word.

    Args:
        text: what a translator gave for a text with `count` marks.
        count: how many.
    """
    text = _ESCAPED.sub(lambda match: "<" if match[1].lower() in {"lt", "#60"} else ">", text)
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    parts: list[str] = []
    length = at = 0
    for match in _MARKER.finditer(text):
        piece = text[at : match.start()]
        parts.append(piece)
        length += len(piece)
        at = match.end()
        number = int(match[2]) - 1
        edges = ends if match[1] else starts
        if number in edges or not 0 <= number < count:
            return MarkerFault("markers_added", f"{match[0]!r} was not there, or only once")
        edges[number] = length
    parts.append(text[at:])
    whole = "".join(parts)
    if _OPEN_ENDED.search(whole):
        return MarkerFault("markers_lost", "it ends inside a marker")
    missing = [number + 1 for number in range(count) if number not in starts or number not in ends]
    if missing:
        return MarkerFault("markers_lost", f"{len(missing)} of {count} did not come back in pairs, first {missing[0]}")
    return _tidied(whole, [(starts[number], ends[number]) for number in range(count)])


def _tidied(text: str, spans: Sequence[Range]) -> Unmarked | MarkerFault:
    """Without the double spaces that markers leave, and with spans that begin and end in no space."""
    chars: list[str] = []
    positions = []  # of each code point in the text that is left
    for char in text:
        positions.append(len(chars))
        if char == " " and (not chars or chars[-1].isspace()):
            continue
        chars.append(char)
    positions.append(len(chars))
    while chars and chars[-1].isspace():
        chars.pop()
    tidy = "".join(chars)
    ranges = []
    for start, end in spans:
        if end < start:
            return MarkerFault("markers_unpaired", "a marker is closed before it is opened")
        first, last = min(positions[start], len(tidy)), min(positions[end], len(tidy))
        while first < last and tidy[first].isspace():
            first += 1
        while first < last and tidy[last - 1].isspace():
            last -= 1
        if not any(char.isalnum() for char in tidy[first:last]):
            return MarkerFault("markers_empty", "a marker stands around no word")
        ranges.append((first, last))
    return Unmarked(tidy, tuple(ranges))


def place_in_response(
    text: str, marks: Sequence[Range], placed: Sequence[tuple[int, int, PlacedMark | None]]
) -> dict[Range, PlacedMark | None]:
    """Where each mark is in a response that was translated piece by piece; None where it has no projected.

    Args:
        text: the translation.
        marks: of the original.
        placed: number of the mark, where its piece begins in the translation, and its projected there; in order. A mark
            of several pieces is as good as the mean of them, and has no projected where one of them has none.
    """
    places: dict[Range, PlacedMark | None] = {}
    for number, mark in enumerate(marks):
        own = [(at, projected) for owner, at, projected in placed if owner == number]
        whole = [(at, projected) for at, projected in own if projected is not None]
        if not own or len(whole) < len(own):
            places[mark] = None
            continue
        parts = _touching(text, [(at + start, at + end) for at, projected in whole for start, end in projected.parts])
        quality = sum(projected.quality for _, projected in whole) / len(whole)
        worst = min((projected for _, projected in whole), key=lambda projected: projected.quality)
        places[mark] = PlacedMark(parts, quality, worst.way)
    return places


def _touching(text: str, parts: Sequence[Range]) -> tuple[Range, ...]:
    """Parts in order, those made one between which there is only white space."""
    merged: list[Range] = []
    for start, end in sorted(parts):
        if merged and not text[merged[-1][1] : start].strip():
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)
