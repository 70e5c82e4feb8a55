"""The detectors by name; third parties join by the entry point group `veriglot.detectors`."""

from __future__ import annotations

from veriglot.lazy import Entry, Table

__all__ = ["DETECTORS"]

DETECTORS = Table(
    "detector",
    "veriglot.detectors",
    {
        "grounding": Entry(
            "veriglot.detectors.grounding:Grounding",
            summary="words held against the evidence, offline, in every language; the default",
        ),
    },
)
