"""How often does a model hallucinate: estimators, intervals, diagnosis, tests, planning. Numbers in, numbers out."""

from veriglot.rates.averages import average, column_averages, row_averages
from veriglot.rates.comparison import compare, rank_intervals
from veriglot.rates.correlation import correlate
from veriglot.rates.estimators import ESTIMATORS, RateEstimate, estimate
from veriglot.rates.plan import Plan, plan_labels, plan_responses
from veriglot.rates.proportion import BINS, Labels, Share, Tallies, detector_rates, share_of
from veriglot.rates.significance import adjust

__all__ = [
    "BINS",
    "ESTIMATORS",
    "Labels",
    "Plan",
    "RateEstimate",
    "Share",
    "Tallies",
    "adjust",
    "average",
    "column_averages",
    "compare",
    "correlate",
    "detector_rates",
    "estimate",
    "plan_labels",
    "plan_responses",
    "rank_intervals",
    "row_averages",
    "share_of",
]
