"""For those who add a detector or a scorer: checks that it keeps to its contract, with or without a test runner.

    from veriglot.testing import check_detector

    def test_the_contract_is_kept():
        check_detector(MyDetector)

`python -m veriglot.testing NAME` does the same for what is installed; docs/plugins.md says what is checked.
"""

from veriglot.testing.checks import (
    ContractError,
    LoadDetector,
    check_detector,
    check_scorer,
    hostile_samples,
    ordinary_samples,
)

__all__ = ["ContractError", "LoadDetector", "check_detector", "check_scorer", "hostile_samples", "ordinary_samples"]
