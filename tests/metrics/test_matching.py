from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.metrics import spans as spans_module
from veriglot.metrics.spans import exact, overlap, pairwise_iou, partial

Rows = list[tuple[int, int]]
spans = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 6)).map(lambda p: (p[0], p[0] + p[1])), max_size=5)


def array(rows: Rows) -> np.ndarray:
    return np.array(rows, dtype=np.int32).reshape(-1, 2)


def iou(a: tuple[int, int], b: tuple[int, int]) -> float:
    left, right = set(range(*a)), set(range(*b))
    return len(left & right) / len(left | right)


def best_pairing(first: Rows, second: Rows, threshold: float) -> int:
    if len(first) > len(second):
        first, second = second, first
    return max(
        sum(iou(a, b) >= threshold for a, b in zip(first, order, strict=True))
        for order in permutations(second, len(first))
    )


@pytest.mark.fuzz
@given(spans, spans)
def test_pairwise_iou_is_the_set_definition(first: Rows, second: Rows) -> None:
    got = pairwise_iou(array(first), array(second))
    assert got.tolist() == [[iou(a, b) for b in second] for a in first]
    assert np.array_equal(got.T, pairwise_iou(array(second), array(first)))


@pytest.mark.fuzz
@given(spans, spans, st.sampled_from([0.1, 0.34, 0.5, 1.0]))
def test_overlap_finds_the_most_pairs(first: Rows, second: Rows, threshold: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spans_module, "IOU_THRESHOLD", threshold)
        got = overlap(array(first), array(second))
    assert got == (best_pairing(first, second, threshold), len(first), len(second))


@pytest.mark.fuzz
@given(spans, spans)
def test_exact_lies_below_partial_and_overlap(first: Rows, second: Rows) -> None:
    same = exact(array(first), array(second)).matched
    assert same == best_pairing(first, second, 1.0)
    assert same <= overlap(array(first), array(second)).matched
    assert same <= partial(array(first), array(second)).matched <= min(len(first), len(second))


@pytest.mark.fuzz
@given(spans)
def test_a_perfect_prediction_matches_all(rows: Rows) -> None:
    types = ["entity"] * len(rows)
    for found in (
        exact(array(rows), array(rows)), overlap(array(rows), array(rows)), partial(array(rows), array(rows)),
        exact(array(rows), array(rows), types, types), overlap(array(rows), array(rows), types, types),
    ):  # fmt: skip
        assert found.matched == found.predicted == found.gold == len(rows)


def test_types_have_to_agree() -> None:
    predicted, gold = array([(0, 5), (6, 9)]), array([(0, 5), (6, 10)])
    assert exact(predicted, gold, ["entity", "invented"], ["relation", "invented"]).matched == 0
    assert overlap(predicted, gold, ["entity", "invented"], ["relation", "invented"]).matched == 1
    assert overlap(predicted, gold, [None, None], [None, None]).matched == 0
    assert exact(predicted, gold, [None, None], [None, None]).matched == 0


def test_partial_gives_half_for_a_touch() -> None:
    assert partial(array([(0, 5), (6, 20), (30, 31)]), array([(0, 5), (18, 40)])).matched == 1.5


def test_many_spans_that_chain_do_not_exhaust_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans_module, "IOU_THRESHOLD", 0.3)
    rows = [(step, step + 2) for step in range(3000)]
    assert overlap(array(rows[:-1]), array(rows[1:])).matched == 2999
