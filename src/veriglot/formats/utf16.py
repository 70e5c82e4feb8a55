"""Offsets in UTF-16 code units, as browsers and Java count, to code points and back."""

from __future__ import annotations

__all__ = ["from_utf16", "to_utf16"]


def to_utf16(text: str, start: int, end: int) -> tuple[int, int]:
    """The code point range `[start, end)` in UTF-16 code units."""
    return _units(text[:start]), _units(text[:end])


def from_utf16(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The UTF-16 range `[start, end)` in code points; None where an edge splits a surrogate pair or lies outside."""
    first, last = _points(text, start), _points(text, end)
    return None if first is None or last is None else (first, last)


def _units(text: str) -> int:
    return len(text) + sum(char > "\uffff" for char in text)


def _points(text: str, units: int) -> int | None:
    if units < 0:
        return None
    seen = 0
    for index, char in enumerate(text):
        if seen >= units:
            return index if seen == units else None
        seen += 2 if char > "\uffff" else 1
    return len(text) if seen == units else None
