"""How often does a model hallucinate: estimators, intervals, diagnosis, tests, planning. Numbers in, numbers out."""

from veriglot.rates.averages import Mean, average, column_averages, row_averages
from veriglot.rates.clustered import ClusteredShare, clustered_share
from veriglot.rates.comparison import Difference, compare, compare_draws, compare_over
from veriglot.rates.correlation import Correlated, correlate, correlation_p
from veriglot.rates.detector_rates import DetectorRates, detector_rates
from veriglot.rates.estimate import Estimate, estimate
from veriglot.rates.multiplicity import adjust
from veriglot.rates.planning import Plan, plan_labels, plan_responses
from veriglot.rates.ranking import Rank, rank_intervals
from veriglot.rates.shares import Share, share_of
from veriglot.rates.t_tests import TTest, paired_t, student, welch
from veriglot.rates.tallies import BINS, Labels, Tallies

__all__ = [
    "BINS",
    "ClusteredShare",
    "Correlated",
    "DetectorRates",
    "Difference",
    "Estimate",
    "Labels",
    "Mean",
    "Plan",
    "Rank",
    "Share",
    "TTest",
    "Tallies",
    "adjust",
    "average",
    "clustered_share",
    "column_averages",
    "compare",
    "compare_draws",
    "compare_over",
    "correlate",
    "correlation_p",
    "detector_rates",
    "estimate",
    "paired_t",
    "plan_labels",
    "plan_responses",
    "rank_intervals",
    "row_averages",
    "share_of",
    "student",
    "welch",
]
