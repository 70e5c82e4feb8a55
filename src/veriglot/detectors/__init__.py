"""Detectors: samples in, predictions out. A module or folder each; `load_detector` finds them by name."""

from veriglot.detectors.registry import DETECTORS, detect, load_detector, stream

__all__ = ["DETECTORS", "detect", "load_detector", "stream"]
