"""Whether a language sets spaces between words and sentences."""

from __future__ import annotations

__all__ = ["space_of"]

_UNSPACED = frozenset({"zh", "yue", "ja", "th", "lo", "km", "my"})


def space_of(language: str) -> str:
    """What stands between two words, or two sentences: a space, or nothing."""
    return "" if language.split("-")[0] in _UNSPACED else " "
