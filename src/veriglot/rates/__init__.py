"""How often a model hallucinates: estimators, intervals, diagnosis, tests, planning. Input and output are numbers."""

from veriglot.rates.estimators import estimate
from veriglot.rates.proportion import Tallies

__all__ = ["Tallies", "estimate"]
