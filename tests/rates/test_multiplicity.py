from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.errors import UnknownNameError
from veriglot.rates.comparison import adjust


def closed_testing(p_values: list[float]) -> list[float]:
    """Holm by its definition: a hypothesis falls when every set that holds it falls by Bonferroni."""
    n = len(p_values)
    sets = [chosen for size in range(1, n + 1) for chosen in combinations(range(n), size)]
    whole = {chosen: min(1.0, len(chosen) * min(p_values[i] for i in chosen)) for chosen in sets}
    return [max(whole[chosen] for chosen in sets if i in chosen) for i in range(n)]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_holm_is_closed_testing_with_bonferroni(p_values: list[float]) -> None:
    assert adjust(p_values, "holm") == pytest.approx(closed_testing(p_values), abs=1e-15)


def test_both_give_what_statsmodels_gives() -> None:
    # statsmodels 0.15.0, multipletests(p, method="holm" and "fdr_bh").
    p_values = [0.01, 0.04, 0.03, 0.005, 0.55, 0.04]
    assert adjust(p_values, "holm") == pytest.approx([0.05, 0.12, 0.12, 0.03, 0.55, 0.12])
    assert adjust(p_values, "bh") == pytest.approx([0.03, 0.048, 0.048, 0.03, 0.55, 0.048])


@given(st.lists(st.one_of(st.floats(0, 1), st.just(float("nan"))), max_size=12), st.sampled_from(["holm", "bh"]))
def test_what_was_not_tested_is_not_counted(p_values: list[float], method: str) -> None:
    given_values = np.array(p_values)
    adjusted = adjust(given_values, method)
    tested = ~np.isnan(given_values)
    assert np.isnan(adjusted[~tested]).all()
    assert adjusted[tested] == pytest.approx(adjust(given_values[tested], method))
    assert (adjusted[tested] >= given_values[tested] - 1e-15).all()
    assert (adjusted[tested] <= 1).all()


def test_holm_holds_the_chance_of_any_false_finding() -> None:
    generator = np.random.default_rng(3)
    false = generator.uniform(size=(4000, 10))
    true = generator.beta(0.1, 20, size=(4000, 5))
    found = [(adjust(np.concatenate(row), "holm")[:10] < 0.05).any() for row in zip(false, true, strict=True)]
    assert 0.03 < np.mean(found) < 0.06


def test_bh_holds_the_share_of_false_findings() -> None:
    generator = np.random.default_rng(4)
    shares = []
    for _ in range(3000):
        adjusted = adjust(np.concatenate([generator.uniform(size=10), generator.beta(0.1, 20, size=10)]), "bh")
        found = adjusted < 0.1
        shares.append(found[:10].sum() / max(found.sum(), 1))
    assert 0.03 < np.mean(shares) < 0.06  # level 0.1, half of the hypotheses true


def test_what_is_no_p_value_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        adjust([0.1, 1.2])
    with pytest.raises(UnknownNameError, match="Did you mean holm"):
        adjust([0.1], "holms")
