"""Checks on data sets: what is wrong with them, with counts and examples, and a cleaned copy with reasons."""

from veriglot.build.checking.checker import check
from veriglot.build.checking.cleaning import Cleaning, Rejected
from veriglot.build.checking.findings import (
    Agreement,
    Check,
    CheckedFile,
    CheckReport,
    Cleaned,
    Example,
    Finding,
    LabelSet,
    SharedReferences,
    SplitLeak,
    checks,
    checks_version,
)
from veriglot.build.checking.near import NEAR, NearIndex
from veriglot.build.checking.seams import Seam, SeamFinder

__all__ = [
    "NEAR",
    "Agreement",
    "Check",
    "CheckReport",
    "CheckedFile",
    "Cleaned",
    "Cleaning",
    "Example",
    "Finding",
    "LabelSet",
    "NearIndex",
    "Rejected",
    "Seam",
    "SeamFinder",
    "SharedReferences",
    "SplitLeak",
    "check",
    "checks",
    "checks_version",
]
