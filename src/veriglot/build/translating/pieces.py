"""A text in the pieces that a translator gets, and the whole put together again out of their translations."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from veriglot.text import sentences
from veriglot.text.spacing import space_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Piece", "joined", "pieces_of"]


class Piece(NamedTuple):
    """A stretch of a text, half-open code points; `words` says whether there is anything to translate in it."""

    start: int
    end: int
    words: bool


def pieces_of(text: str, tag: str, *, by_sentence: bool) -> list[Piece]:
    """The pieces of a text, in order; what lies between them is white space or without words.

    Args:
        text: any text.
        tag: its BCP 47 tag.
        by_sentence: a piece a sentence; otherwise the whole is one.
    """
    if by_sentence:
        bounds = sentences(text, tag)
    else:
        start, end = len(text) - len(text.lstrip()), len(text.rstrip())
        bounds = [(start, end)] if start < end else []
    return [Piece(start, end, any(map(str.isalnum, text[start:end]))) for start, end in bounds]


def joined(text: str, pieces: Sequence[Piece], translations: Sequence[str], tag: str) -> tuple[str, list[int]]:
    """The translation of a text, and where each piece begins in it.

    A space between two sentences is what the language sets there; any other white space stays as it is.

    Args:
        text: the text.
        pieces: of it.
        translations: of each.
        tag: BCP 47 tag of the translations.
    """
    parts: list[str] = []
    places: list[int] = []
    length = at = 0
    for piece, translation in zip(pieces, translations, strict=True):
        between = text[at : piece.start]
        if not between.strip() and "\n" not in between and places:
            between = space_of(tag) if between or space_of(tag) else ""
        parts += (between, translation)
        length += len(between)
        places.append(length)
        length += len(translation)
        at = piece.end
    parts.append(text[at:])
    return "".join(parts), places
