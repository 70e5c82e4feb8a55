"""What a piece in angle brackets is: a tag of a known type, a misspelling of one, an edit mark, or just text."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache
from typing import NamedTuple

__all__ = ["EDITS", "Piece", "read_fragment", "read_piece"]

EDITS = ("delete", "mark")
"""The tags inside FAVA's: `<mark>` holds what was put in, `<delete>` what was taken out."""

_EDIT_ALIASES = {"deleted": "delete", "del": "delete", "insert": "mark", "inserted": "mark", "marked": "mark"}
_TYPE_ALIASES = {
    "contradiction": "contradictory",
    "contradicts": "contradictory",
    "unverified": "unverifiable",
    "invention": "invented",
    "relational": "relation",
    "entities": "entity",
    "opinion": "subjective",
    "sentence": "contradictory",  # FAVA's older name
}
_INSIDE = re.compile(r"\s*[-!]*\s*([/\\]?)\s*[-!]*([A-Za-z_]{1,30})[-!]*\s*([/\\]?)\s*")
_FRAGMENT = re.compile(r"([/\\]?)\s*([A-Za-z]{0,24})")
_CLOSE_ENOUGH = 0.8


class Piece(NamedTuple):
    """One tag as it was read.

    Attributes:
        name: the type, or `mark` or `delete`; None for a fragment that names none.
        closing: whether it closes.
        fault: None if it stood right; else `capitalised`, `misspelt`, `malformed` or `cut_off`.
    """

    name: str | None
    closing: bool
    fault: str | None


@lru_cache(maxsize=4096)
def read_piece(inside: str, types: tuple[str, ...]) -> Piece | None:
    """What `<inside>` means; None if it is no tag of these types, so text."""
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
    return Piece(name, bool(slash or trailing), fault)


def _resolve(word: str, types: tuple[str, ...]) -> tuple[str, str | None] | None:
    known = (*types, *EDITS)
    if word in known:
        return word, None
    low = word.lower()
    for name in known:
        if low == name.lower():
            return name, "capitalised"
    if low in _EDIT_ALIASES:
        return _EDIT_ALIASES[low], "misspelt"
    alias = _TYPE_ALIASES.get(low)
    if alias in types:
        return alias, "misspelt"
    near = get_close_matches(low, types, n=1, cutoff=_CLOSE_ENOUGH)
    return (near[0], "misspelt") if near else None


def read_fragment(inside: str, types: tuple[str, ...]) -> Piece | None:
    """What a `<inside` that ends the text, without its closing bracket, was the beginning of; None if text."""
    match = _FRAGMENT.fullmatch(inside)
    if match is None:
        return None
    slash, word = match.groups()
    low = word.lower()
    known = [name for name in (*types, *EDITS) if name.lower().startswith(low)]
    if not known:
        return None
    return Piece(known[0] if len(known) == 1 else None, bool(slash), "cut_off")
