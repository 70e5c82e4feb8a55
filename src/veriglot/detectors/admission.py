"""What can be judged at all: a response of words in a known language, and evidence to hold it against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from veriglot.detectors.grounding.language import spoken_in
from veriglot.records import Status

if TYPE_CHECKING:
    from veriglot.detectors.grounding.language import Spoken
    from veriglot.records import Sample

__all__ = ["Refusal", "admitted", "without_words"]


@dataclass(frozen=True)
class Refusal:
    """Why a sample cannot be judged: the status that its prediction has, and the reason."""

    status: Status
    reason: str


def admitted(sample: Sample) -> Spoken | Refusal:
    """The language of a sample that can be judged, or why it cannot be."""
    if not sample.response.strip():
        return Refusal(Status.FAILED, "the response is empty")
    if not _is_unicode(sample.response):
        return Refusal(Status.FAILED, "the response holds half of a surrogate pair")
    if not any(passage.text.strip() for passage in sample.evidence):
        return Refusal(Status.NO_EVIDENCE, "there is no evidence to hold the response against")
    spoken = spoken_in(sample)
    if spoken is None:
        return Refusal(
            Status.UNSUPPORTED_LANGUAGE, "the language of the response was not recognised; give it as `language`"
        )
    return spoken


def without_words(sample: Sample) -> Refusal:
    """Why a sample cannot be judged in which one of the two texts was found to have no word."""
    if any(any(c.isalnum() for c in passage.text) for passage in sample.evidence):
        return Refusal(Status.FAILED, "the response holds no word, only marks or symbols")
    return Refusal(Status.NO_EVIDENCE, "the evidence holds no word, only marks or symbols")


def _is_unicode(text: str) -> bool:
    """Whether a text can be written; Python lets half of a surrogate pair stand in one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
