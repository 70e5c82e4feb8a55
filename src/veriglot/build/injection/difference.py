"""Where an edited text differs from the original, word by word."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from veriglot.records import Span
from veriglot.text import words

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["differing"]

_BRIDGE = 2  # words or signs between something that was taken out and what was put in for it


def differing(original: str, text: str, type_: str, language: str) -> list[Span] | None:
    """The spans of `text` whose words and signs do not stand in the original, in order; empty where all do.

    White space alone makes no difference. None where something was taken out of the original without anything put
    in its place or beside it, which no span of the text could show.

    Args:
        original: the text before.
        text: the text after.
        type_: given to every span.
        language: BCP 47 tag of both.
    """
    before, after = _tokens(original, language), _tokens(text, language)
    matcher = SequenceMatcher(None, [original[s:e] for s, e in before], [text[s:e] for s, e in after], autojunk=False)
    spans = []
    for start, end in _joined(matcher):
        if start == end:
            return None
        spans.append(Span(after[start][0], after[end - 1][1], type_))
    return spans


def _joined(matcher: SequenceMatcher[str]) -> Iterator[tuple[int, int]]:
    """The differing ranges of tokens of the edited text; where text is gone, with what was put in beside it."""
    held: tuple[int, int] | None = None
    for operation, _, _, start, end in matcher.get_opcodes():
        if operation == "equal":
            continue
        gone = start == end or (held is not None and held[0] == held[1])
        if held is not None and gone and start - held[1] <= _BRIDGE:
            held = (held[0], end)
        else:
            if held is not None:
                yield held
            held = (start, end)
    if held is not None:
        yield held


def _tokens(text: str, language: str) -> list[tuple[int, int]]:
    """Words, and each other character that is no white space."""
    found: list[tuple[int, int]] = []
    read = 0
    for start, end in [*words(text, language), (len(text), len(text))]:
        found += [(place, place + 1) for place in range(read, start) if not text[place].isspace()]
        if start < end:
            found.append((start, end))
        read = end
    return found
