"""The checks of a scorer: ours pass, and each way of breaking the contract is told."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from veriglot.records import Direction, Sample, Score, Status
from veriglot.scorers.registry import load_scorer
from veriglot.testing import ContractError, check_scorer

if TYPE_CHECKING:
    from collections.abc import Sequence


class Length:
    """How long a response is; right in every way."""

    name = "length@1"
    direction = Direction.HIGHER_IS_WORSE
    signature = "scorer:length@1"

    def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [self._one(sample) for sample in samples]

    def _one(self, sample: Sample) -> Score:
        if not sample.response.strip():
            return Score(sample.id, Status.FAILED, self.name, reason="empty", signature=self.signature)
        value = float(len(sample.response))
        return Score(sample.id, Status.SCORED, self.name, value, parts={"length": value}, signature=self.signature)


class Relative(Length):
    """Scores by what else is in the batch."""

    def score(self, samples: Sequence[Sample]) -> list[Score]:
        most = max((len(sample.response) for sample in samples), default=1)
        return [
            Score(one.id, Status.SCORED, self.name, len(one.response) / max(most, 1), signature=self.signature)
            for one in samples
        ]


class Reversed(Length):
    def score(self, samples: Sequence[Sample]) -> list[Score]:
        return super().score(samples)[::-1]


class Directionless(Length):
    direction = "up"  # type: ignore[assignment]


class InfinitePart(Length):
    def _one(self, sample: Sample) -> Score:
        return Score(sample.id, Status.SCORED, self.name, 1.0, parts={"p": float("nan")}, signature=self.signature)


class Strict(Length):
    def _one(self, sample: Sample) -> Score:
        assert sample.evidence, "there is no evidence"
        return super()._one(sample)


def test_a_right_one_passes_in_new_processes_too() -> None:
    report = check_scorer(Length, processes=True)
    assert report.scored == report.samples == 16


@pytest.mark.parametrize("name", ["top-ngram", "length-ratio"])
def test_ours_pass(name: str) -> None:
    assert check_scorer(partial(load_scorer, name), scored=0.9).breaches == ()


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (Relative, "batches: one by one"),
        (Reversed, "the answer in its place is to"),
        (Directionless, "should be a veriglot.records.Direction"),
        (InfinitePart, "a part is not finite"),
        (Strict, "hostile samples: raised AssertionError: there is no evidence"),
        (lambda: object(), "what was made lacks direction, name, score, signature"),
    ],
)
def test_a_wrong_scorer_is_told(kind: Any, told: str) -> None:
    with pytest.raises(ContractError) as caught:
        check_scorer(kind)
    assert told in str(caught.value)
