"""Inline tags (`<entity>...</entity>`) to spans and back, with an account of every tag.

A tag ends in exactly one of three places. *Parsed*: it stood right. *Repaired*: it was wrong, but what was meant is
clear, and its span is kept. *Reported*: it gave no span. The kinds of repair:

- `capitalised`, `misspelt`, `malformed` (`<--entity>`, `<\\entity>`): the name is read as the nearest type;
- `opener_as_closer` (`<entity>Rome<entity>`), `closer_as_opener`: the spacing around the tag, or the next tag of the
  same type, says which it was;
- `mismatched`: closed by the closer of another type; the opener's type counts;
- `crossing`: closed while a later opened one still is open; both spans are kept as they stand;
- `unclosed`: the last tag of a text runs to the end of the text, an earlier one to the end of its sentence or to the
  next tag;
- `cut_off`: the text ends inside a closer;
- `edit_mark`: a `<mark>` or `<delete>` where the format has none; only the tag is taken out.

And of report: `stray_closer`, `empty`, `cut_off` (the text ends inside an opener), `unpaired_edit`, `not_a_tag`
(`<i>`: left in the text), `broken` (a `<name` or `</name` that never ends: left in the text).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from veriglot.errors import InputError
from veriglot.formats.report import TagReport
from veriglot.formats.tag_names import EDITS, Piece, read_fragment, read_piece
from veriglot.formats.tag_pairs import Tag, pair_tags
from veriglot.records import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Correction", "Fault", "Tagged", "parse_tags", "render_tags"]

_PIECE = re.compile(r"<([^<>\n]{0,40})>|<([^<>\n]{0,25})\Z|<(?=[/\\]?[A-Za-z])")

Edits = Literal["strip", "mark", "delete"]


@dataclass(frozen=True)
class Fault:
    """Something wrong with one tag: its kind, the tag as it stood, and where in the tagged text (code points)."""

    kind: str
    tag: str
    at: int
    repaired: bool


@dataclass(frozen=True)
class Correction:
    """What the tags say should stand in place of `[start, end)`; an insertion where both are equal."""

    start: int
    end: int
    text: str


@dataclass
class Tagged:
    """A text without its tags.

    Attributes:
        text: the text.
        spans: in order of their start, the longer first; offsets are exact in `text`.
        corrections: the text of the dropped edit elements.
        report: every tag accounted for.
        faults: what was repaired or reported, in order.
    """

    text: str
    spans: list[Span]
    corrections: list[Correction] = field(default_factory=list)
    report: TagReport = field(default_factory=TagReport)
    faults: list[Fault] = field(default_factory=list)

    def refuse_faults(self, at: str) -> None:
        """Raise for the first fault, for readers that were told to be strict.

        Args:
            at: the field that the tagged text stands in.

        Raises:
            InputError: a tag needed a repair, or could not be read.
        """
        for fault in self.faults:
            raise InputError(
                f"the tag {fault.tag!r} at code point {fault.at} is not right: {fault.kind}",
                field=at,
                remedy="Without strict it is repaired or reported, and counted.",
            )


def parse_tags(tagged: str, types: Sequence[str], *, edits: Edits = "strip") -> Tagged:
    """Read inline tags. Never raises, whatever the text.

    Args:
        tagged: the text with its tags.
        types: the span types of the taxonomy.
        edits: what `<mark>` and `<delete>` mean. `strip`: nothing, their tags are taken out and both texts stay;
            `mark`: the response holds the marked text, and the deleted one is what it replaced (FAVA's way of
            inserting errors); `delete`: the response holds the deleted text, and the marked one is the correction
            (FAVA's output).
    """
    tags = _find(tagged, tuple(types))
    dropped = _drop_edits(tags, edits)
    text, corrections = _strip(tagged, tags, dropped)
    pairs = pair_tags(tags, text)
    report = TagReport(seen=len(tags))
    spans = []
    for pair in pairs:
        if pair.start >= pair.end:
            for tag in filter(None, (pair.opener, pair.closer)):
                tag.fail("empty")
            continue
        spans.append(Span(pair.start, pair.end, pair.opener.name))
        report.spans[pair.opener.name or ""] += 1
    faults = _account(tags, report)
    spans.sort(key=lambda span: (span.start, -span.end))
    return Tagged(text, spans, corrections, report, faults)


def _find(tagged: str, types: tuple[str, ...]) -> list[Tag]:
    tags = []
    for match in _PIECE.finditer(tagged):
        inside, fragment = match.group(1), match.group(2)
        piece: Piece | None = None
        fault = "broken"
        if inside is not None:
            piece, fault = read_piece(inside, types), "not_a_tag"
        elif fragment is not None:
            piece = read_fragment(fragment, types)
            if piece is None and not re.match(r"[/\\]?[A-Za-z]", fragment):
                continue  # a lone bracket in a text, such as "<3"
        tag = Tag(match.group(0), match.start(), piece)
        if piece is None:
            tag.fail(fault)
        elif piece.fault:
            tag.mend(piece.fault)
        tags.append(tag)
    return tags


def _drop_edits(tags: list[Tag], edits: Edits) -> set[int]:
    """Pair the edit tags; return the index of each opener whose content is not in the response."""
    dropped = set()
    open_: int | None = None
    for index, tag in enumerate(tags):
        if tag.name not in EDITS:
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


def _strip(tagged: str, tags: list[Tag], dropped: set[int]) -> tuple[str, list[Correction]]:
    """The text without tags and dropped elements. Sets each tag's position in it."""
    parts: list[str] = []
    replacing: list[str] = []
    corrections: list[Correction] = []
    position = at = 0
    drop_until: int | None = None
    for index, tag in enumerate(tags):
        segment = tagged[at : tag.at]
        kept_tag = tag.raw if tag.piece is None else ""
        at = tag.at + len(tag.raw)
        if drop_until is not None:
            replacing += (segment, kept_tag)
            tag.position = position
            if index == drop_until:
                corrections.append(Correction(position, position, "".join(replacing)))
                drop_until, replacing = None, []
            continue
        parts += (segment, kept_tag)
        position += len(segment)
        tag.position = position
        position += len(kept_tag)
        if index in dropped:
            drop_until = tag.pair
    parts.append(tagged[at:])
    return "".join(parts), _beside(corrections, tags)


def _beside(corrections: list[Correction], tags: list[Tag]) -> list[Correction]:
    """Give each correction the range of the kept edit element that touches it."""
    kept = [(tag.position, tags[tag.pair].position) for tag in tags if tag.name in EDITS and tag.pair is not None]
    by_edge = {edge: (start, end) for start, end in kept if end > start for edge in (start, end)}
    return [Correction(*by_edge.get(each.start, (each.start, each.end)), each.text) for each in corrections]


def _account(tags: list[Tag], report: TagReport) -> list[Fault]:
    faults = []
    for tag in tags:
        if tag.fault is None:
            report.parsed += 1
            continue
        (report.repaired if tag.repaired else report.reported)[tag.fault] += 1
        faults.append(Fault(tag.fault, tag.raw, tag.at, tag.repaired))
    return faults


def render_tags(text: str, spans: Sequence[Span]) -> str:
    """Put tags around spans: the inverse of `parse_tags` for texts that hold nothing like a tag.

    Spans that cross come out as crossing tags; of several that end together the last opened closes first. Spans
    without a type are left out. Spans of one type that cross cannot be told from nested ones when read back.
    """
    opening: dict[int, list[Span]] = {}
    closing: dict[int, list[Span]] = {}
    for span in sorted((s for s in spans if s.type), key=lambda s: (s.start, -s.end)):
        opening.setdefault(span.start, []).append(span)
        closing.setdefault(span.end, []).insert(0, span)
    parts = []
    at = 0
    for edge in sorted(opening.keys() | closing.keys()):
        parts.append(text[at:edge])
        parts += [f"</{span.type}>" for span in closing.get(edge, ())]
        parts += [f"<{span.type}>" for span in opening.get(edge, ())]
        at = edge
    return "".join((*parts, text[at:]))
