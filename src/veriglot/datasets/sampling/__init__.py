"""Samples of translations for people to annotate, out of tens of millions of lines (HAT, section 2)."""

from veriglot.datasets.near_duplicates import groups_of, jaccard, similar_pairs
from veriglot.datasets.sampling.lines import Columns
from veriglot.datasets.sampling.sample import MtSample, mt_sample
from veriglot.datasets.sampling.selection import (
    Account,
    Choice,
    Cleaned,
    Cleaning,
    GivenScores,
    SampleAccount,
    Sampling,
    Scored,
    ScorerSource,
    choose,
    sizes_of,
    split,
)

__all__ = [
    "Account",
    "Choice",
    "Cleaned",
    "Cleaning",
    "Columns",
    "GivenScores",
    "MtSample",
    "SampleAccount",
    "Sampling",
    "Scored",
    "ScorerSource",
    "choose",
    "groups_of",
    "jaccard",
    "mt_sample",
    "similar_pairs",
    "sizes_of",
    "split",
]
