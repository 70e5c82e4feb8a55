"""What is to be translated for a row, and whether what came back can be taken."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from veriglot.build.translating.alignment import side_of
from veriglot.build.translating.markers import MarkerFault, unmarked
from veriglot.build.translating.pieces import Piece, pieces_of
from veriglot.build.translating.projection import words_inside
from veriglot.build.translating.sanity import insanity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.build.translating.translator import Translated

__all__ = ["Order", "Text"]


@dataclass
class Text:
    """A text in its pieces, with the marks in each.

    Attributes:
        what: `response`, `evidence` or `question`.
        text: the text.
        tag: its BCP 47 tag.
        pieces: of it.
        marks: per piece, the parts of marks that lie in it, in code points of the piece.
        owners: per piece, the number of the mark of each part.
    """

    what: str
    text: str
    tag: str
    pieces: list[Piece]
    marks: list[list[tuple[int, int]]] = field(default_factory=list)
    owners: list[list[int]] = field(default_factory=list)

    @classmethod
    def of(cls, what: str, text: str, tag: str, marks: Sequence[tuple[int, int]] = (), *, by_sentence: bool) -> Text:
        """Cut a text, and its marks with it; a part of a mark without any word is left out."""
        found = cls(what, text, tag, pieces_of(text, tag, by_sentence=by_sentence))
        for piece in found.pieces:
            side = side_of(text[piece.start : piece.end], tag) if marks else None
            parts, owners = [], []
            for number, (start, end) in enumerate(marks):
                part = (max(start - piece.start, 0), min(end, piece.end) - piece.start)
                if side is not None and part[0] < part[1] and words_inside(side, part):
                    parts.append(part)
                    owners.append(number)
            found.marks.append(parts)
            found.owners.append(owners)
        return found

    def piece(self, number: int) -> str:
        """The text of a piece."""
        return self.text[self.pieces[number].start : self.pieces[number].end]


@dataclass
class Order:
    """Something that is to be translated for a row.

    Attributes:
        what: `response`, `tags`, `span`, `evidence` or `question`.
        tag: BCP 47 tag of the text.
        plain: the text without markers.
        sent: the text as it is sent.
        marks: how many markers it has.
        text: its translation, once there is a good one; without markers.
        spans: where the markers came back.
        fault: why the last reply was not taken: a reason, and the same in words.
    """

    what: str
    tag: str
    plain: str
    sent: str
    marks: int = 0
    text: str | None = None
    spans: tuple[tuple[int, int], ...] = ()
    fault: tuple[str, str] | None = None

    @property
    def needed(self) -> bool:
        """Whether there is no row without it."""
        return self.what in {"response", "evidence", "question"}

    def take(self, reply: Translated, target: str) -> None:
        """Take a translation if it can be used; otherwise `fault` says why not."""
        self.fault = (reply.unfit, reply.detail) if reply.unfit is not None else None
        if self.fault is not None:
            return
        text = reply.text.strip()
        spans: tuple[tuple[int, int], ...] = ()
        if self.marks:
            read = unmarked(text, self.marks)
            if isinstance(read, MarkerFault):
                self.fault = (read.reason, read.detail)
                return
            text, spans = read.text, read.spans
        self.fault = insanity(self.plain, text, self.tag, target)
        if self.fault is None:
            self.text, self.spans = text, spans
