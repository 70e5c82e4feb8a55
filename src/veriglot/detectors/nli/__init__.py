"""The NLI detector: sentences or atomic facts of a response, held against the evidence by an entailment model."""

from __future__ import annotations

from veriglot.detectors.nli.detector import NLI

__all__ = ["NLI"]
