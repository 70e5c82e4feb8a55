"""How good is a detector: counts per response first, figures with intervals after.

The functions here are pure: arrays in, numbers out. `veriglot.bench` joins them to detectors and data.
"""

from __future__ import annotations

from veriglot.metrics.counts import Builder, Counts, Judged, join
from veriglot.metrics.coverage import Coverage
from veriglot.metrics.figure import MEAN, POOLED, Figure
from veriglot.metrics.reference import Marks, Reference, reference
from veriglot.metrics.store import CountsFile, load, save
from veriglot.metrics.summary import RESAMPLES, SEED, figures, reliability_tables
from veriglot.metrics.units import segmenter

__all__ = [
    "MEAN",
    "POOLED",
    "RESAMPLES",
    "SEED",
    "Builder",
    "Counts",
    "CountsFile",
    "Coverage",
    "Figure",
    "Judged",
    "Marks",
    "Reference",
    "figures",
    "join",
    "load",
    "reference",
    "reliability_tables",
    "save",
    "segmenter",
]
