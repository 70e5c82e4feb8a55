"""Which way a text runs, from its language and, where that does not settle it, from its letters."""

from __future__ import annotations

import unicodedata
from typing import Literal

from veriglot.errors import UnknownNameError
from veriglot.records.languages import Language, language

__all__ = ["Direction", "direction", "language_name", "letters_run"]

Direction = Literal["ltr", "rtl", "auto"]

_LOOKED_AT = 2000
"""Code points from the start of a text that are looked at: direction is a matter of the first paragraphs."""


def direction(text: str, tag: str | None) -> Direction:
    """The direction to lay out `text` in.

    The language decides, unless every strong letter of the text runs the other way (Urdu in Latin letters). Without a
    known language the majority of strong letters decides; a text without any is `auto`.
    """
    left, right = letters_run(text)
    known = _known(tag)
    if known is not None:
        here, there = (right, left) if known.direction == "rtl" else (left, right)
        if here or not there:
            return known.direction
    if left == right:
        return "auto"
    return "rtl" if right > left else "ltr"


def letters_run(text: str) -> tuple[int, int]:
    """How many strong letters run left to right and right to left, at the start of a text."""
    classes = [unicodedata.bidirectional(char) for char in text[:_LOOKED_AT]]
    return classes.count("L"), classes.count("R") + classes.count("AL")


def language_name(tag: str | None) -> str:
    """The English name of a language tag; the tag itself where the table does not know it."""
    known = _known(tag)
    return known.name if known is not None else (tag or "unknown")


def _known(tag: str | None) -> Language | None:
    if not tag:
        return None
    try:
        return language(tag)
    except UnknownNameError:
        return None
