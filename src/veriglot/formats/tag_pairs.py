"""Which closer belongs to which opener, also where people and models tagged carelessly."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from veriglot.formats.tag_names import EDITS

if TYPE_CHECKING:
    from veriglot.formats.tag_names import Piece

__all__ = ["Pair", "Tag", "pair_tags"]

_SENTENCE_END = re.compile(
    r"[.!?\u061f\u06d4\u0964][\"'\u201d\u00bb)\]]*(?=\s)|[\u3002\uff01\uff1f][\u201d\u300d\uff09]*|\n"
)


@dataclass
class Tag:
    """One piece in angle brackets.

    Attributes:
        raw: as it stood.
        at: where, in code points of the tagged text.
        piece: what it was read as; None for what is no tag and stays in the text.
        position: where its content starts (an opener) or ends (a closer) in the text without tags.
        pair: index of the closer that belongs to this opener.
        fault: what was wrong with it, or None.
        repaired: whether its span is kept all the same.
    """

    raw: str
    at: int
    piece: Piece | None
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
        """Whether it is written as a closer."""
        return self.piece is not None and self.piece.closing

    def mend(self, kind: str) -> None:
        """Note a repair; the first one names the tag's place in the account."""
        if self.fault is None:
            self.fault, self.repaired = kind, True

    def fail(self, kind: str) -> None:
        """Note that the tag gives no span, whatever was repaired before."""
        if self.fault is None or self.repaired:
            self.fault, self.repaired = kind, False


class Pair(NamedTuple):
    """An opener with its closer (None where it was never closed) and the range between, in the text without tags."""

    opener: Tag
    closer: Tag | None
    start: int
    end: int


def pair_tags(tags: list[Tag], text: str) -> list[Pair]:
    """Pair the tags, noting on each what had to be repaired or reported."""
    used = [i for i, tag in enumerate(tags) if tag.piece is not None and tag.name not in EDITS]
    by_type: dict[str, list[int]] = {}
    for index in used:
        tag = tags[index]
        if tag.name is not None and tag.fault != "cut_off":
            by_type.setdefault(tag.name, []).append(index)
    closer_of: dict[int, int] = {}
    strays: set[int] = set()
    for indices in by_type.values():
        stray = _brackets(tags, indices, closer_of)
        if stray:
            for index in indices:
                closer_of.pop(index, None)
            stray = _careless(tags, indices, closer_of, text)
        strays |= stray
    _cut_off_closer(tags, used, strays, closer_of)
    _mismatched(tags, used, strays, closer_of)
    return _finish(tags, used, strays, closer_of, text)


def _brackets(tags: list[Tag], indices: list[int], closer_of: dict[int, int]) -> set[int]:
    """Pair the tags of one type as brackets are; return those that are left over."""
    stack: list[int] = []
    stray = set()
    for index in indices:
        if not tags[index].closing:
            stack.append(index)
        elif stack:
            closer_of[stack.pop()] = index
        else:
            stray.add(index)
    return stray.union(stack)


def _careless(tags: list[Tag], indices: list[int], closer_of: dict[int, int], text: str) -> set[int]:
    """Pair the tags of one type where openers were used as closers or the reverse; return those left over."""
    stack: list[int] = []
    stray = set()
    for place, index in enumerate(indices):
        tag = tags[index]
        following = tags[indices[place + 1]] if place + 1 < len(indices) else None
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


def _closes(tag: Tag, following: Tag | None, text: str) -> bool:
    """Whether an opener met while one of its type is open was meant to close that one."""
    if _looks_closing(text, tag.position):
        return True
    if _looks_opening(text, tag.position):
        return False
    return following is None or not following.closing


def _looks_opening(text: str, position: int) -> bool:
    before, after = text[position - 1 : position], text[position : position + 1]
    return (not before or before.isspace()) and bool(after) and not after.isspace()


def _looks_closing(text: str, position: int) -> bool:
    before, after = text[position - 1 : position], text[position : position + 1]
    return bool(before) and not before.isspace() and (not after or after.isspace() or not after.isalnum())


def _cut_off_closer(tags: list[Tag], used: list[int], strays: set[int], closer_of: dict[int, int]) -> None:
    """The text ends inside a tag: a closer closes what is open, an opener marks nothing."""
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


def _acts_closing(tag: Tag) -> bool:
    return tag.closing != (tag.fault == "closer_as_opener")


def _mismatched(tags: list[Tag], used: list[int], strays: set[int], closer_of: dict[int, int]) -> None:
    """An opener left over that is followed by a closer left over: its name is wrong, the pair is meant."""
    for opener, closer in pairwise(used):
        if opener in strays and closer in strays and not _acts_closing(tags[opener]) and _acts_closing(tags[closer]):
            closer_of[opener] = closer
            strays -= {opener, closer}
            tags[closer].mend("mismatched")


def _finish(tags: list[Tag], used: list[int], strays: set[int], closer_of: dict[int, int], text: str) -> list[Pair]:
    pairs = []
    for place, index in enumerate(used):
        tag = tags[index]
        if index in closer_of:
            closer = tags[closer_of[index]]
            tag.pair = closer_of[index]
            pairs.append(Pair(tag, closer, tag.position, closer.position))
        elif index in strays and _acts_closing(tag):
            tag.fail("stray_closer")
        elif index in strays:
            tag.mend("unclosed")
            rest = [tags[i] for i in used[place + 1 :] if tags[i].fault != "cut_off"]
            pairs.append(Pair(tag, None, tag.position, _end_of_unclosed(tag, rest[0] if rest else None, text)))
    _note_crossing(tags, closer_of)
    return pairs


def _end_of_unclosed(tag: Tag, following: Tag | None, text: str) -> int:
    if following is None:
        return _without_space(text, tag.position, len(text))
    sentence = _SENTENCE_END.search(text, tag.position, following.position)
    return _without_space(text, tag.position, sentence.end() if sentence else following.position)


def _without_space(text: str, start: int, end: int) -> int:
    while end > start and text[end - 1].isspace():
        end -= 1
    return end


def _note_crossing(tags: list[Tag], closer_of: dict[int, int]) -> None:
    opener_of = {closer: opener for opener, closer in closer_of.items()}
    stack: list[int] = []
    for index in range(len(tags)):
        if index in closer_of:
            stack.append(index)
        elif index in opener_of:
            opener = opener_of[index]
            if stack[-1] != opener:
                tags[index].mend("crossing")
            stack.remove(opener)
