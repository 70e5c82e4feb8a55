"""How good is a detector: counts per response first, figures with intervals after.

The functions here are pure: arrays in, numbers out. `veriglot.bench` joins them to detectors and data.
"""

from __future__ import annotations

from veriglot.metrics.confusion import ConfusionMatrix, confusion_matrix
from veriglot.metrics.counts import Builder, Counts, Judged, join
from veriglot.metrics.coverage import Coverage
from veriglot.metrics.estimate import Estimate
from veriglot.metrics.figure import MEAN, POOLED, Figure
from veriglot.metrics.items import Items
from veriglot.metrics.reference import Marks, Reference, reference
from veriglot.metrics.resampling import Resampling
from veriglot.metrics.store import CountsFile, load, save
from veriglot.metrics.summary import RESAMPLES, SEED, figures, reliability_tables
from veriglot.metrics.units import segmenter

__all__ = [
    "MEAN",
    "POOLED",
    "RESAMPLES",
    "SEED",
    "Builder",
    "ConfusionMatrix",
    "Counts",
    "CountsFile",
    "Coverage",
    "Estimate",
    "Figure",
    "Items",
    "Judged",
    "Marks",
    "Reference",
    "Resampling",
    "confusion_matrix",
    "figures",
    "join",
    "load",
    "reference",
    "reliability_tables",
    "save",
    "segmenter",
]
