r"""Inline tags (`<entity>...</entity>`) to spans and back, with a count of every tag and correction.

A tag ends in exactly one of three classes. *Parsed*: it was correct. *Repaired*: it was wrong, but its meaning is
clear, and its span is kept. *Reported*: it gave no span. The kinds of repair:

- `capitalised`, `misspelt`, `malformed` (`<--entity>`, `<\entity>`): the name is read as the most similar type;
- `opener_as_closer` (`<entity>Rome<entity>`), `closer_as_opener`: the spacing around the tag, or the next tag of the
  same type, tells which it was;
- `mismatched`: closed by the closer of another type; the opener's type is used;
- `crossing`: closed while a later opener is still open; both spans are kept unchanged;
- `unclosed`: the last tag of a text extends to the end of the text, an earlier one to the end of its sentence or to the
  next tag;
- `cut_off`: the text ends inside a closer;
- `edit_mark`: a `<mark>` or `<delete>` in a format without them; only the tag is removed.

And of report: `stray_closer`, `empty`, `cut_off` (the text ends inside an opener), `unpaired_edit`, `not_a_tag`
(`<i>`: left in the text), `broken` (a `<name` or `</name` that never ends: left in the text).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from veriglot.errors import InputError
from veriglot.formats.base import TagReport
from veriglot.plugins import read_package_data
from veriglot.records import Span, Unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Tagged", "in_order", "marked_ranges", "parse_tags", "render_tags", "with_tags"]

M = TypeVar("M", Span, Unit)


# The meaning of text in angle brackets: a tag of a known type, a misspelt one, an edit mark, or just text.


# The tags inside FAVA's: `<mark>` has inserted text, `<delete>` removed text.
_EDITS = ("delete", "mark")

_ALIASES = read_package_data(__package__, "aliases.toml", dict[str, str])
_INSIDE = re.compile(r"\s*[-!]*\s*([/\\]?)\s*[-!]*([A-Za-z_]{1,30})[-!]*\s*([/\\]?)\s*")
_FRAGMENT = re.compile(r"([/\\]?)\s*([A-Za-z]{0,24})")
_CLOSE_ENOUGH = 0.8


class _Piece(NamedTuple):
    """One parsed tag: its type or edit mark (None for a fragment without a name), and its error."""

    name: str | None
    closing: bool
    fault: str | None


@lru_cache(4096)
def _read_piece(inside: str, types: tuple[str, ...]) -> _Piece | None:
    """The tag `<inside>`; None if it is not a tag of these types, but text."""
    match = _INSIDE.fullmatch(inside)
    if match is None:
        return None
    slash, word, trailing = match.groups()
    resolved = _resolve(word, types)
    if resolved is None:
        return None
    name, fault = resolved
    if fault is None and inside != f"{'/' if slash else ''}{word}":
        fault = "malformed"
    return _Piece(name, bool(slash or trailing), fault)


def _resolve(word: str, types: tuple[str, ...]) -> tuple[str, str | None] | None:
    known = (*types, *_EDITS)
    if word in known:
        return word, None
    low = word.lower()
    for name in known:
        if low == name.lower():
            return name, "capitalised"
    alias = _ALIASES.get(low)
    near = [alias] if alias in known else get_close_matches(low, types, n=1, cutoff=_CLOSE_ENOUGH)
    return (near[0], "misspelt") if near else None


def _read_fragment(inside: str, types: tuple[str, ...]) -> _Piece | None:
    """The tag that `<inside`, at the end of the text without its closing bracket, would have become; None if text."""
    match = _FRAGMENT.fullmatch(inside)
    if match is None:
        return None
    slash, word = match.groups()
    known = [name for name in (*types, *_EDITS) if name.lower().startswith(word.lower())]
    if not known:
        return None
    return _Piece(known[0] if len(known) == 1 else None, bool(slash), "cut_off")


# Pairing of openers and closers, also for careless annotations.


_SENTENCE_END = re.compile(
    r"[.!?\u061f\u06d4\u0964][\"'\u201d\u00bb)\]]*(?=\s)|[\u3002\uff01\uff1f][\u201d\u300d\uff09]*|\n"
)


@dataclass
class _Tag:
    """Text in angle brackets: its raw form, its position, and the parsed tag (None if it stays in the text).

    `position` is where its content starts (an opener) or ends (a closer) in the text without tags, and `pair` the index
    of an opener's closer. If a `fault` was repaired, the span is kept.
    """

    raw: str
    at: int
    piece: _Piece | None
    position: int = 0
    pair: int | None = None
    fault: str | None = None
    repaired: bool = False

    @property
    def name(self) -> str | None:
        """The type, or the edit mark."""
        return self.piece.name if self.piece else None

    @property
    def closing(self) -> bool:
        """Whether it has the form of a closer."""
        return self.piece is not None and self.piece.closing

    def mend(self, kind: str) -> None:
        """Record a repair; the first one is the one that is counted."""
        if self.fault is None:
            self.fault, self.repaired = kind, True

    def fail(self, kind: str) -> None:
        """Record that the tag gives no span, even if it was repaired before."""
        if self.fault is None or self.repaired:
            self.fault, self.repaired = kind, False


# An opener with its closer (None if it was never closed), and the range between, in the text without tags.
_Pair: TypeAlias = tuple[_Tag, "_Tag | None", int, int]


def _pair_tags(tags: list[_Tag], text: str) -> list[_Pair]:
    """Pair the tags, recording repairs and errors in each."""
    used = [i for i, tag in enumerate(tags) if tag.piece is not None and tag.name not in _EDITS]
    by_type: dict[str, list[int]] = {}
    for index in used:
        tag = tags[index]
        if tag.name is not None and tag.fault != "cut_off":
            by_type.setdefault(tag.name, []).append(index)
    closer_of: dict[int, int] = {}
    strays = set()
    for indices in by_type.values():
        stray = _brackets(tags, indices, closer_of)
        if stray:
            for index in indices:
                closer_of.pop(index, None)
            stray = _careless(tags, indices, closer_of, text)
        strays |= stray
    _cut_off_closer(tags, used, strays, closer_of)
    # An unpaired opener followed by an unpaired closer: a wrong name, but a pair.
    for opener, closer in pairwise(used):
        if {opener, closer} <= strays and not _acts_closing(tags[opener]) and _acts_closing(tags[closer]):
            closer_of[opener] = closer
            strays -= {opener, closer}
            tags[closer].mend("mismatched")
    return _finish(tags, used, strays, closer_of, text)


def _brackets(tags: list[_Tag], indices: list[int], closer_of: dict[int, int]) -> set[int]:
    """Pair the tags of one type like brackets; returns the unpaired ones."""
    stack = []
    stray = set()
    for index in indices:
        if not tags[index].closing:
            stack.append(index)
        elif stack:
            closer_of[stack.pop()] = index
        else:
            stray.add(index)
    return stray.union(stack)


def _careless(tags: list[_Tag], indices: list[int], closer_of: dict[int, int], text: str) -> set[int]:
    """Pair the tags of one type if openers were used as closers or the reverse; returns the unpaired ones."""
    stack: list[int] = []
    stray = set()
    for index, later in zip_longest(indices, indices[1:]):
        tag = tags[index]
        following = None if later is None else tags[later]
        if tag.closing:
            if stack:
                closer_of[stack.pop()] = index
            elif following is not None and following.closing and _looks_opening(text, tag.position):
                tag.mend("closer_as_opener")
                stack.append(index)
            else:
                stray.add(index)
        elif stack and _closes(tag, following, text):
            tag.mend("opener_as_closer")
            closer_of[stack.pop()] = index
        else:
            stack.append(index)
    return stray.union(stack)


def _closes(tag: _Tag, following: _Tag | None, text: str) -> bool:
    """Whether an opener after an open one of its type was meant as its closer."""
    if text[tag.position - 1 : tag.position].strip() and not text[tag.position : tag.position + 1].isalnum():
        return True
    if _looks_opening(text, tag.position):
        return False
    return following is None or not following.closing


def _looks_opening(text: str, position: int) -> bool:
    return not text[position - 1 : position].strip() and bool(text[position : position + 1].strip())


def _cut_off_closer(tags: list[_Tag], used: list[int], strays: set[int], closer_of: dict[int, int]) -> None:
    """The text ends inside a tag: a closer closes the open tag, an opener marks nothing."""
    if not used or tags[used[-1]].fault != "cut_off":
        return
    last = used[-1]
    tag = tags[last]
    open_ = [i for i in strays if not _acts_closing(tags[i]) and (tag.name is None or tags[i].name == tag.name)]
    if tag.closing and open_:
        innermost = max(open_)
        closer_of[innermost] = last
        strays.discard(innermost)
    else:
        tag.fail("cut_off")


def _acts_closing(tag: _Tag) -> bool:
    return tag.closing != (tag.fault == "closer_as_opener")


def _finish(tags: list[_Tag], used: list[int], strays: set[int], closer_of: dict[int, int], text: str) -> list[_Pair]:
    pairs: list[_Pair] = []
    for position, index in enumerate(used):
        tag = tags[index]
        if index in closer_of:
            closer = tags[closer_of[index]]
            tag.pair = closer_of[index]
            pairs.append((tag, closer, tag.position, closer.position))
        elif index in strays and _acts_closing(tag):
            tag.fail("stray_closer")
        elif index in strays:
            tag.mend("unclosed")
            following = next((tags[i] for i in used[position + 1 :] if tags[i].fault != "cut_off"), None)
            end = len(text)
            if following is not None:
                sentence = _SENTENCE_END.search(text, tag.position, following.position)
                end = sentence.end() if sentence else following.position
            pairs.append((tag, None, tag.position, tag.position + len(text[tag.position : end].rstrip())))
    _note_crossing(tags, closer_of)
    return pairs


def _note_crossing(tags: list[_Tag], closer_of: dict[int, int]) -> None:
    opener_of = {closer: opener for opener, closer in closer_of.items()}
    stack = []
    for index in range(len(tags)):
        if index in closer_of:
            stack.append(index)
        elif index in opener_of:
            opener = opener_of[index]
            if stack[-1] != opener:
                tags[index].mend("crossing")
            stack.remove(opener)


_PIECE = re.compile(r"<([^<>\n]{0,40})>|<([^<>\n]{0,25})\Z|<(?=[/\\]?[A-Za-z])")


class _Correction(NamedTuple):
    """A replacement for `[start, end)` according to the tags; an insertion if both are equal."""

    start: int
    end: int
    text: str


@dataclass
class Tagged:
    """A text without its tags.

    Attributes:
        text: the text.
        spans: sorted by start, the longer first; offsets are exact in `text`.
        corrections: the text of the removed edit elements.
        report: counts of all tags.
        faults: the tags that were repaired or reported, in order.
    """

    text: str
    spans: list[Span]
    corrections: list[_Correction] = field(default_factory=list)
    report: TagReport = field(default_factory=TagReport)
    faults: list[_Tag] = field(default_factory=list)

    def refuse_faults(self, at: str) -> None:
        """Raise for the first error, for strict readers.

        Args:
            at: the field of the tagged text.

        Raises:
            InputError: a tag needed a repair, or could not be read.
        """
        for tag in self.faults:
            raise InputError(
                f"the tag {tag.raw!r} at code point {tag.at} is not right: {tag.fault}",
                "Without strict it is repaired or reported, and counted.",
                field=at,
            )


def parse_tags(tagged: str, types: Sequence[str], *, edits: str = "strip") -> Tagged:
    """Parse inline tags. Never raises, for any text.

    Args:
        tagged: the text with its tags.
        types: the span types of the taxonomy.
        edits: the meaning of `<mark>` and `<delete>`. `strip`: none, their tags are removed and both texts stay;
            `mark`: the response has the marked text, and the deleted text is what it replaced (FAVA's way of inserting
            errors); `delete`: the response has the deleted text, and the marked text is the correction (FAVA's output).
    """
    tags = _find(tagged, tuple(types))
    dropped = _drop_edits(tags, edits)
    text, corrections = _strip(tagged, tags, dropped)
    report = TagReport(seen=len(tags))
    spans = []
    for opener, closer, start, end in _pair_tags(tags, text):
        if start >= end:
            for tag in filter(None, (opener, closer)):
                tag.fail("empty")
            continue
        spans.append(Span(start, end, opener.name))
        report.spans[opener.name or ""] += 1
    for tag in tags:
        if tag.fault is None:
            report.parsed += 1
        else:
            (report.repaired if tag.repaired else report.reported)[tag.fault] += 1
    return Tagged(text, in_order(spans), corrections, report, [tag for tag in tags if tag.fault])


def _find(tagged: str, types: tuple[str, ...]) -> list[_Tag]:
    tags = []
    for match in _PIECE.finditer(tagged):
        inside, fragment = match.group(1), match.group(2)
        piece: _Piece | None = None
        fault = "broken"
        if inside is not None:
            piece, fault = _read_piece(inside, types), "not_a_tag"
        elif fragment is not None:
            piece = _read_fragment(fragment, types)
            if piece is None and not re.match(r"[/\\]?[A-Za-z]", fragment):
                continue  # a single bracket in a text, such as "<3"
        tag = _Tag(match.group(0), match.start(), piece)
        if piece is None:
            tag.fail(fault)
        elif piece.fault:
            tag.mend(piece.fault)
        tags.append(tag)
    return tags


def _drop_edits(tags: list[_Tag], edits: str) -> set[int]:
    """Pair the edit tags; returns the index of each opener whose content is not in the response."""
    dropped = set()
    open_: int | None = None
    for index, tag in enumerate(tags):
        if tag.name not in _EDITS:
            continue
        if edits == "strip":
            tag.mend("edit_mark")
        elif not tag.closing:
            if open_ is not None:
                tags[open_].fail("unpaired_edit")
            open_ = index
        elif open_ is not None and tags[open_].name == tag.name:
            tags[open_].pair = index
            if tag.name != edits:
                dropped.add(open_)
            open_ = None
        else:
            tag.fail("unpaired_edit")
    if open_ is not None:
        tags[open_].fail("unpaired_edit")
    return dropped


def _strip(tagged: str, tags: list[_Tag], dropped: set[int]) -> tuple[str, list[_Correction]]:
    """The text without tags and removed elements. Sets each tag's position in it."""
    parts: list[str] = []
    replacing: list[str] = []
    corrections = []
    position = at = 0
    drop_until: int | None = None
    for index, tag in enumerate(tags):
        segment = tagged[at : tag.at]
        tag_text = tag.raw if tag.piece is None else ""
        at = tag.at + len(tag.raw)
        if drop_until is not None:
            replacing += (segment, tag_text)
            tag.position = position
            if index == drop_until:
                corrections.append(_Correction(position, position, "".join(replacing)))
                drop_until, replacing = None, []
            continue
        parts += (segment, tag_text)
        position += len(segment)
        tag.position = position
        position += len(tag_text)
        if index in dropped:
            drop_until = tag.pair
    parts.append(tagged[at:])
    return "".join(parts), _beside(corrections, tags)


def _beside(corrections: list[_Correction], tags: list[_Tag]) -> list[_Correction]:
    """Give each correction the range of the adjacent edit element that was kept."""
    ranges = [(tag.position, tags[tag.pair].position) for tag in tags if tag.name in _EDITS and tag.pair is not None]
    by_edge = {edge: (start, end) for start, end in ranges if end > start for edge in (start, end)}
    return [_Correction(*by_edge.get(each.start, (each.start, each.end)), each.text) for each in corrections]


def in_order(marks: Iterable[M]) -> list[M]:
    """Spans or units sorted by start, the longest first."""
    return sorted(marks, key=lambda mark: (mark.start, -mark.end))


def with_tags(text: str, tags: Iterable[tuple[int, int, str, str]]) -> str:
    """A text with an opener and a closer around each half-open range; ranges with the same end are closed in reverse
    order of their start.

    Args:
        text: any text.
        tags: start, end, opener and closer of each.
    """
    edges = []  # position, closers first, inner ranges inside outer ones at both ends
    for number, (start, end, opener, closer) in enumerate(tags):
        edges += [(start, 1, -end, number, opener), (end, 0, -start, -number, closer)]
    parts: list[str] = []
    at = 0
    for position, _, _, _, tag in sorted(edges):
        parts += (text[at:position], tag)
        at = position
    return "".join((*parts, text[at:]))


def render_tags(text: str, spans: Sequence[Span]) -> str:
    """Put tags around spans: the inverse of `parse_tags` for texts without anything like a tag.

    Crossing spans become crossing tags. Spans without a type are left out. Crossing spans of one type are read back as
    nested ones.
    """
    return with_tags(text, ((span.start, span.end, f"<{span.type}>", f"</{span.type}>") for span in spans if span.type))


def marked_ranges(marked: str, text: str, markers: tuple[str, str], *, field: str, of: str) -> list[tuple[int, int]]:
    """The marked parts as half-open code point ranges of `text`, in order; nested markers make one part.

    Args:
        marked: the text with markers.
        text: the text without markers.
        markers: opener and closer.
        field: the field of the marked text, for messages.
        of: the field of the text without markers, for messages.

    Raises:
        InputError: the texts differ apart from the markers, or a marker is not paired.
    """
    opening, closing = markers
    pattern = re.compile("|".join(map(re.escape, markers)))
    if pattern.sub("", marked) != text:
        raise InputError(f"without its markers this is not `{of}`", field=field)
    ranges = []
    removed = depth = start = 0
    for match in pattern.finditer(marked):
        position = match.start() - removed
        removed += len(match.group())
        if match.group() == opening:
            start = position if depth == 0 else start
            depth += 1
            continue
        depth -= 1
        if depth < 0:
            raise InputError(f"{closing} at code point {match.start()} closes nothing", field=field)
        if depth == 0 and position > start:
            ranges.append((start, position))
    if depth:
        raise InputError(f"{opening} is never closed", field=field)
    return ranges
