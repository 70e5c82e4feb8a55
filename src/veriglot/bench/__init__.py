"""Detectors and scorers against labelled data."""

from veriglot.bench.evaluate import Evaluation, Evaluator, Settings, evaluate

__all__ = ["Evaluation", "Evaluator", "Settings", "evaluate"]
