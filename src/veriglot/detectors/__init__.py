"""Detectors: samples in, predictions out. A module or folder each; `load_detector` finds them by name."""

from veriglot.detectors.detect import detect, load_detector, stream
from veriglot.detectors.table import DETECTORS

__all__ = ["DETECTORS", "detect", "load_detector", "stream"]
