"""For those who add a detector or a scorer: checks that it keeps to its contract, with or without a test runner.

    from veriglot.testing import check_detector

    def test_the_contract_is_kept():
        check_detector(MyDetector)

`python -m veriglot.testing NAME` does the same for what is installed; docs/plugins.md says what is checked.
"""

from veriglot.testing.detector import LoadDetector, check_detector
from veriglot.testing.report import Breach, ContractError, Report
from veriglot.testing.samples import hostile_samples, ordinary_samples
from veriglot.testing.scorer import LoadScorer, check_scorer

__all__ = [
    "Breach",
    "ContractError",
    "LoadDetector",
    "LoadScorer",
    "Report",
    "check_detector",
    "check_scorer",
    "hostile_samples",
    "ordinary_samples",
]
