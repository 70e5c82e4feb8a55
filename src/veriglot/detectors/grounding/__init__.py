"""The embedded default detector: holds every word of a response against the evidence, offline, in every language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from veriglot.detectors.grounding.detector import Grounding

__all__ = ["Grounding"]


def __getattr__(name: str) -> Any:
    """The detector, when it is asked for: `word_detector`, which it is made of, takes other modules of this folder."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from veriglot.detectors.grounding import detector

    return detector.Grounding
