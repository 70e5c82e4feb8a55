"""Checks on data sets: what is wrong with them, with counts and examples, and a cleaned copy with reasons."""

from veriglot.datasets.checks.checker import CleanedCopy, check
from veriglot.datasets.checks.findings import CheckReport, Example, Finding, LabelSet, checks
from veriglot.datasets.checks.seams import SeamFinder
from veriglot.datasets.near_duplicates import NearIndex

__all__ = ["CheckReport", "CleanedCopy", "Example", "Finding", "LabelSet", "NearIndex", "SeamFinder", "check", "checks"]
