"""Sentences of a text that are worth quoting, and what can be left out of them without saying anything else."""

from __future__ import annotations

import re

from veriglot.text import sentences

__all__ = ["quotable", "without_brackets"]

_SHORTEST, _LONGEST = 20, 400  # code points
_BRACKETS = re.compile(r"\s*[(（][^()（）]*[)）]")


def quotable(text: str, language: str) -> list[str]:
    """The sentences of a text that are worth quoting: neither very short nor very long."""
    found = (text[s:e].strip() for s, e in sentences(text, language))
    return [s for s in found if _SHORTEST <= len(s) <= _LONGEST]


def without_brackets(sentence: str) -> str:
    """The sentence without what stands in round brackets, and the white space before it."""
    return _BRACKETS.sub("", sentence)
