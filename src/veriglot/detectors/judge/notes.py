"""What a reader of a prediction must know of the places that a judge quoted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.detectors.judge.locating import Located, Quote

__all__ = ["excerpt", "location_notes"]

_SHOWN = 60  # code points of a quote


def location_notes(quotes: Sequence[Quote], found: Sequence[Located | None]) -> tuple[str, ...]:
    """The quotes that were not found, those that fit several places, and those that were found as written otherwise."""
    notes = []
    for quote, place in zip(quotes, found, strict=True):
        shown = repr(excerpt(quote.text))
        if place is None:
            notes.append(f"quote:not in the response: {shown}")
        elif place.ambiguous:
            notes.append(f"quote:at several places: {shown}")
        elif place.how != "exact":
            notes.append(f"quote:{place.how}: {shown}")
    return tuple(dict.fromkeys(notes))


def excerpt(text: str) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
