"""scipy stands behind the extra `stats`: nothing loads it before it is needed, and what needs it says what to type."""

from __future__ import annotations

import pytest

from programs import printed

ABSENT = "import sys; sys.modules['scipy'] = None\n"  # what an environment without it answers to `import scipy`


def test_the_import_and_what_needs_no_distribution_load_no_scipy() -> None:
    code = """
import sys
import numpy as np
from veriglot.rates.comparison import Difference
from veriglot.rates.comparison import adjust, average
from veriglot.rates.comparison import rank_intervals
import veriglot.rates.plan, veriglot.rates.comparison
adjust([0.01, 0.2], "holm")
draws = np.random.default_rng(0).normal(size=(2, 50))
average([0.1, 0.2], draws)
rank_intervals([0.1, 0.2], draws)
Difference.of_draws((0.1, 0.2), (draws[0], draws[1]), queries=5)
print("scipy" in sys.modules)
"""
    assert printed(code) == "False\n"
    printed(ABSENT + code)  # nor do they need it


@pytest.mark.parametrize(
    "call",
    [
        "from veriglot.rates.comparison import t_test; t_test([1.0, 2.0], [2.0, 4.0])",
        "from veriglot.rates.comparison import correlate; correlate([1, 2, 3], [1, 3, 2])",
        "from veriglot.rates.comparison import adjust; adjust([0.5], 'bh')",
    ],
)
def test_what_needs_it_says_what_to_type(call: str) -> None:
    code = f"""
{ABSENT}
from veriglot.errors import MissingExtraError
try:
    {call}
except MissingExtraError as error:
    print(error)
"""
    assert "pip install 'veriglot[stats]'" in printed(code)
