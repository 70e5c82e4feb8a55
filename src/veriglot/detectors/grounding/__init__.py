"""The embedded default detector: holds every word of a response against the evidence, offline, in every language."""

from veriglot.detectors.grounding.detector import Grounding

__all__ = ["Grounding"]
