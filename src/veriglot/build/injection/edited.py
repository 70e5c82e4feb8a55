"""A text with the errors that were put into it so far: one more put in, one taken out again, places kept exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from veriglot.build.injection.changes import Change, spans_of
from veriglot.text import fold, words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from veriglot.records import Span

__all__ = ["Edited", "narrowed", "rebuilt"]


class Edited(msgspec.Struct, frozen=True):
    """A text and what makes it different from the original.

    Attributes:
        original: the text without errors.
        text: the text with them.
        changes: the errors, in order.
    """

    original: str
    text: str
    changes: tuple[Change, ...] = ()

    @classmethod
    def of(cls, original: str) -> Edited:
        """A text without errors."""
        return cls(original, original)

    @property
    def spans(self) -> tuple[Span, ...]:
        """The errors as spans of the text."""
        return spans_of(self.changes, self.text)

    def then(self, text: str, changes: Sequence[Change]) -> Edited | None:
        """With further errors; None where one of them touches an error that is there already.

        Args:
            text: the text with all of them.
            changes: the further ones, in order; what stood there before are places of this text.
        """
        if any(_touches(new, held) for new in changes for held in self.changes):
            return None
        before = [
            Change(c.start + _moved(changes, c.start), c.end + _moved(changes, c.start), c.old_start, c.old_end, c.type)
            for c in self.changes
        ]
        after = [
            Change(c.start, c.end, self._originally(c.old_start), self._originally(c.old_end), c.type) for c in changes
        ]
        return Edited(self.original, text, tuple(sorted([*before, *after])))

    def without(self, places: Collection[int]) -> Edited:
        """With some errors taken out again, by their places in `changes`."""
        kept = [change for number, change in enumerate(self.changes) if number not in places]
        return rebuilt(self.original, [(c, self.text[c.start : c.end]) for c in kept])

    def _originally(self, place: int) -> int:
        """The place of the original that a place outside all errors belongs to."""
        return place + sum((c.old_end - c.old_start) - (c.end - c.start) for c in self.changes if c.end <= place)


def rebuilt(original: str, put: Iterable[tuple[Change, str]]) -> Edited:
    """The original with texts put in the places `[old_start, old_end)` of changes, in order and not overlapping.

    Everything else is the original's own, letter by letter; where a change stands in the edited text is worked out.
    """
    parts: list[str] = []
    changes: list[Change] = []
    read = written = 0
    for change, new in put:
        kept = original[read : change.old_start]
        start = written + len(kept)
        parts += [kept, new]
        read, written = change.old_end, start + len(new)
        changes.append(Change(start, written, change.old_start, change.old_end, change.type))
    return Edited(original, "".join([*parts, original[read:]]), tuple(changes))


def narrowed(original: str, text: str, change: Change, language: str) -> Change:
    """The change without the words at its edges that stood there before, so that it marks what is wrong alone.

    Something is left of it in the edited text, and what is left begins and ends with a word.
    """
    old = _words_in(original, change.old_start, change.old_end, language)
    new = _words_in(text, change.start, change.end, language)
    if not old or not new:
        return change
    same = [fold(text[s:e]) == fold(original[t:f]) for (s, e), (t, f) in zip(new, old, strict=False)]
    head = min(next((i for i, one in enumerate(same) if not one), len(same)), len(new) - 1, len(old) - 1)
    rest_old, rest_new = old[head:], new[head:]
    same = [
        fold(text[s:e]) == fold(original[t:f])
        for (s, e), (t, f) in zip(reversed(rest_new[1:]), reversed(rest_old[1:]), strict=False)
    ]
    tail = next((i for i, one in enumerate(same) if not one), len(same))
    start, old_start = (new[head][0], old[head][0]) if head else (change.start, change.old_start)
    end, old_end = (new[-tail - 1][1], old[-tail - 1][1]) if tail else (change.end, change.old_end)
    between = (original[change.old_start : old_start], original[old_end : change.old_end])
    if between != (text[change.start : start], text[end : change.end]):
        return change  # what would be left outside is not the original's, letter by letter
    return Change(start, end, old_start, old_end, change.type)


def _words_in(text: str, start: int, end: int, language: str) -> list[tuple[int, int]]:
    return [(start + s, start + e) for s, e in words(text[start:end], language)]


def _touches(new: Change, held: Change) -> bool:
    """Whether a further error lies on one that is there; where one is put in beside it, it does not."""
    if new.old_start == new.old_end:
        return held.start < new.old_start < held.end
    return new.old_start < held.end and held.start < new.old_end


def _moved(changes: Sequence[Change], place: int) -> int:
    """How far further errors push a place of the text that they were put into."""
    return sum((c.end - c.start) - (c.old_end - c.old_start) for c in changes if c.old_end <= place)
