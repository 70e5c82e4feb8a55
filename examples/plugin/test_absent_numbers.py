from absent_numbers import AbsentNumbers

from veriglot.testing import check_detector, ordinary_samples


def test_the_contract_is_kept():
    samples = [sample for sample in ordinary_samples() if any(char.isdigit() for char in sample.response)]
    check_detector(AbsentNumbers, samples, processes=True)
