"""A quoted passage, and the errors that are put into it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from veriglot.build.injection.changes import Change
from veriglot.text.spacing import space_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from veriglot.build.perturbation.articles import Article

__all__ = ["Edit", "Quotation"]


class Edit(NamedTuple):
    """One error: what to put in place of `[start, end)` of the quotation, and how it came about.

    Attributes:
        start, end: half-open, in code points of the quotation; equal where something is put between.
        text: what is put there.
        way: which rule made it, such as `number` or `negated`.
    """

    start: int
    end: int
    text: str
    way: str


@dataclass
class Quotation:
    """Sentences of an article as one text, with the errors that were put into it so far.

    Attributes:
        article: what is quoted.
        sentences: the sentences, in order.
        text: all of them, as one text.
        places: where each sentence stands in it, half-open in code points.
        edits: the errors with their types, not overlapping, in the order in which they were made.
    """

    article: Article
    sentences: list[str]
    text: str = ""
    places: list[tuple[int, int]] = field(default_factory=list)
    edits: list[tuple[Edit, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        space = space_of(self.article.language)
        self.text = space.join(self.sentences)
        at = 0
        for sentence in self.sentences:
            self.places.append((at, at + len(sentence)))
            at += len(sentence) + len(space)

    def shuffled(self, rng: Random) -> list[tuple[int, int]]:
        """The places of the sentences in an order drawn at random."""
        return rng.sample(self.places, len(self.places))

    def free(self, start: int, end: int) -> bool:
        """Whether nothing was changed between two places; a place where something was put in is taken too."""
        return all(end < edit.start or edit.end < start for edit, _ in self.edits)

    def untouched(self, start: int, end: int) -> bool:
        """Whether nothing was changed inside a range; what was put in before or after it does not matter."""
        return all(
            end <= edit.start or edit.end <= start for edit, _ in self.edits if edit.start < edit.end
        ) and not any(start < edit.start < end for edit, _ in self.edits)

    def applied(self) -> tuple[str, list[Change]]:
        """The text with the errors in it, and where each stands."""
        pieces: list[str] = []
        changes: list[Change] = []
        read = written = 0
        for edit, type_ in _in_order(self.edits):
            pieces += [self.text[read : edit.start], edit.text]
            start = written + edit.start - read
            written = start + len(edit.text)
            changes.append(Change(start, written, edit.start, edit.end, type_))
            read = edit.end
        return "".join([*pieces, self.text[read:]]), changes

    def ways(self) -> list[str]:
        """Which rule made each error, in the order of the text."""
        return [edit.way for edit, _ in _in_order(self.edits)]


def _in_order(edits: Sequence[tuple[Edit, str]]) -> list[tuple[Edit, str]]:
    return sorted(edits, key=lambda one: (one[0].start, one[0].end))
