"""What training learns from: one response with its evidence, and what is known of each part of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

__all__ = ["Example", "Mark", "share_of"]


@dataclass(frozen=True)
class Mark:
    """An unsupported part of a response, half-open in code points, with its FAVA type where one is known."""

    start: int
    end: int
    type: str | None = None


@dataclass(frozen=True)
class Example:
    """One response to learn from.

    Attributes:
        kind: where it comes from: `silver`, `natural`, or how it was made (`clean`, `removed`, `changed`, `wrong`).
        source: name of the data set, for the record.
        group: examples of one group (same text, same reference) never part between training and held-out data.
        language: BCP 47 tag.
        response: the text.
        passages: the evidence.
        question: the question, or None.
        marks: what the evidence does not support.
        ignored: places that teach nothing, because their label or their text is damaged.
        shares: half-open places with the share of annotators who marked them, where that is known.
        evidence_language: BCP 47 tag of the evidence where it is not in the response's language, or None.
        translation: whether the response translates the evidence.
    """

    kind: str
    source: str
    group: str
    language: str | None
    response: str
    passages: tuple[str, ...]
    question: str | None = None
    marks: tuple[Mark, ...] = ()
    ignored: tuple[tuple[int, int], ...] = ()
    shares: tuple[tuple[int, int, float], ...] | None = None
    evidence_language: str | None = None
    translation: bool = False


def share_of(text: str) -> float:
    """A number between 0 and 1 that depends on the text alone, evenly spread: for splits that never move."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big") / 2.0**64
