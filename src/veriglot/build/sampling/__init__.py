"""Samples of translations for people to annotate, out of tens of millions of lines (hat, section 2)."""

from veriglot.build.sampling.account import Account, Cleaned, Part, SampleAccount
from veriglot.build.sampling.choosing import Choice, Scored, ScorerAccount, choose
from veriglot.build.sampling.grouping import groups_of, similar_pairs
from veriglot.build.sampling.lines import Columns, Line
from veriglot.build.sampling.sampling import MtSample, mt_sample
from veriglot.build.sampling.scoring import GivenScores, ScorerSource
from veriglot.build.sampling.settings import HAT_PARTS, Cleaning, Sampling
from veriglot.build.sampling.shingles import jaccard
from veriglot.build.sampling.splitting import sizes_of, split

__all__ = [
    "HAT_PARTS",
    "Account",
    "Choice",
    "Cleaned",
    "Cleaning",
    "Columns",
    "GivenScores",
    "Line",
    "MtSample",
    "Part",
    "SampleAccount",
    "Sampling",
    "Scored",
    "ScorerAccount",
    "ScorerSource",
    "choose",
    "groups_of",
    "jaccard",
    "mt_sample",
    "similar_pairs",
    "sizes_of",
    "split",
]
