"""Detectors: samples in, predictions out. A module or folder each; `load_detector` finds them by name."""
