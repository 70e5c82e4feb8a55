"""How often does a model hallucinate: estimators, intervals, diagnosis, tests, planning. Numbers in, numbers out."""

from veriglot.rates.estimators import estimate
from veriglot.rates.proportion import Tallies

__all__ = ["Tallies", "estimate"]
