"""Text that machine translation or a tokenizer broke: loops, and characters it did not know."""

from __future__ import annotations

__all__ = ["garbled", "looping_share"]

_WINDOW = 12
_REACH = 150
_LOOPING = 0.3
_UNKNOWN = "\u2047"  # what some tokenizers print for a character outside their vocabulary
_UNKNOWN_PER_CODE_POINT = 0.01


def looping_share(text: str) -> float:
    """The share of `text` (0 to 1, in code points) that repeats what stood within the 150 code points before it.

    A place repeats if the 12 code points that start there also start at one of the 150 places before. Fluent text
    in any language stays below 0.1; a translation model in a loop is above 0.3. Time is linear.
    """
    last: dict[str, int] = {}
    repeated = 0
    places = len(text) - _WINDOW + 1
    for start in range(max(0, places)):
        window = text[start : start + _WINDOW]
        before = last.get(window)
        repeated += before is not None and start - before <= _REACH
        last[window] = start
    return repeated / places if places > 0 else 0.0


def garbled(text: str) -> str | None:
    """Why a reference is unusable: `looping`, `unknown_characters`, or None where it looks sound."""
    if text.count(_UNKNOWN) > _UNKNOWN_PER_CODE_POINT * len(text):
        return "unknown_characters"
    return "looping" if looping_share(text) >= _LOOPING else None
