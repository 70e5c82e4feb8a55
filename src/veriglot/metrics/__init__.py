"""How good is a detector: counts per response first, figures with intervals after.

The functions here are pure: arrays in, numbers out. `veriglot.bench` joins them to detectors and data.
"""

from __future__ import annotations

from veriglot.metrics.bootstrap import Resampling
from veriglot.metrics.estimate import ClusteredEstimate, MetricResult
from veriglot.metrics.items import Items
from veriglot.metrics.reference import Marks, reference
from veriglot.metrics.units import segmenter

__all__ = ["ClusteredEstimate", "Items", "Marks", "MetricResult", "Resampling", "reference", "segmenter"]
