"""The answers that judge the detectors: as many right as wrong, enough of each kind, and marks that count."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from veriglot.records import Prediction, Sample, Span, Status

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import answer_set


@pytest.fixture(scope="module", params=["short", "long"])
def samples(request: pytest.FixtureRequest) -> list[Sample]:
    return answer_set.read_answers(request.param)


def test_half_are_right_and_every_kind_has_enough_to_report(samples: list[Sample]) -> None:
    kinds = Counter(sample.meta["kind"] for sample in samples if sample.meta["part"] == "report")
    assert len(samples) == 792
    assert sum(sample.meta["kind"] in answer_set.RIGHT for sample in samples) == 396
    assert set(kinds) == set(answer_set.RIGHT + answer_set.WRONG)
    assert min(kinds.values()) >= 25
    assert len({str(sample.meta["article"]).rpartition("-")[0] for sample in samples}) == 12
    assert len({sample.response for sample in samples}) > 0.97 * len(samples)


def test_every_error_is_marked_once_and_no_article_is_in_both_parts(samples: list[Sample]) -> None:
    assert all(s.annotations[0].spans for s in samples if s.meta["kind"] in answer_set.WRONG)
    parts = {part: {s.meta["article"] for s in samples if s.meta["part"] == part} for part in ("look", "report")}
    assert (len(parts["look"]), len(parts["report"])) == (9, 27)
    assert not parts["look"] & parts["report"]


def test_a_mark_counts_where_it_touches_the_error(samples: list[Sample]) -> None:
    wrong, gold = next((s, span) for s in samples for span in s.annotations[0].spans or () if span.start > 0)
    before = Prediction(wrong.id, Status.SCORED, "x", score=0.9, spans=(Span(start=0, end=gold.start),))
    touching = Prediction(wrong.id, Status.SCORED, "x", score=0.9, spans=(Span(start=0, end=gold.start + 1),))
    assert not answer_set.is_located(wrong, before)
    assert answer_set.is_located(wrong, touching)
    row = next(r for r in answer_set.rows_of([wrong, wrong], [before, touching], seed=0) if r["n"])
    assert row["marked"].startswith("1.00")
    assert row["at the place"].startswith("0.50")
