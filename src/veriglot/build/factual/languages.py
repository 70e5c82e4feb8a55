"""Is a response in the language that was asked for? What is not, is set aside (kang, section 2.2)."""

from __future__ import annotations

from typing import Literal

import msgspec

from veriglot.build.quality import same_language

__all__ = ["REASONS", "RejectReason", "Verdict", "verdict_on"]

RejectReason = Literal["empty", "undetected", "language"]
REASONS: tuple[RejectReason, ...] = ("empty", "undetected", "language")


class Verdict(msgspec.Struct, frozen=True):
    """What was found.

    Attributes:
        language: tag that the response is in; None where it cannot be told.
        confidence: of that, 0 to 1; None likewise.
        reason: why the response is set aside: `empty` (it holds no letter), `undetected` (its language cannot be told;
            kang's *Valid %* counts the others), `language` (another one; kang's *Acc.*); None where it stays.
        detail: the reason in words.
    """

    language: str | None
    confidence: float | None
    reason: RejectReason | None = None
    detail: str = ""


def verdict_on(response: str, asked: str) -> Verdict:
    """Judge one response.

    Args:
        response: the text.
        asked: tag of the language that was asked for; the script may be another.
    """
    from veriglot.text import identify

    if not any(char.isalpha() for char in response):
        return Verdict(None, None, "empty", "it holds no letter")
    found = identify(response)
    if found is None:
        return Verdict(None, None, "undetected", "its language cannot be told")
    confidence = round(found.confidence, 4)
    if not same_language(found.tag, asked):
        return Verdict(found.tag, confidence, "language", f"it is in {found.tag} and should be in {asked}")
    return Verdict(found.tag, confidence)
