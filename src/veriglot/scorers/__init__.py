"""Scorers: a number a sample, with its direction stated."""

from __future__ import annotations

from veriglot.scorers.registry import load_scorer

__all__ = ["load_scorer"]
