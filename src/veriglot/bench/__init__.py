"""Detectors and scorers against labelled data."""

from veriglot.bench.evaluation import Evaluator, Settings, evaluate

__all__ = ["Evaluator", "Settings", "evaluate"]
