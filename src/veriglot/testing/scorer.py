"""The contract of scorers, as checks that any scorer can be put through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from veriglot.records import Direction, Score, Scorer, decode_json, encode, from_mapping
from veriglot.testing.samples import hostile_samples
from veriglot.testing.trial import Trial, try_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from veriglot.records import Sample
    from veriglot.testing.report import Report

__all__ = ["LoadScorer", "check_scorer"]


class LoadScorer(Protocol):
    """Makes a scorer: a class, or anything that is called like one."""

    def __call__(self) -> Scorer:
        """A scorer."""


def check_scorer(
    load: LoadScorer,
    samples: Sequence[Sample] | None = None,
    *,
    tolerance: float = 0.0,
    scored: float = 0.0,
    processes: bool = False,
) -> Report:
    """Put a scorer through the contract of scorers; docs/plugins.md lists what is checked.

    Args:
        load: the scorer's class, or a function without arguments: `functools.partial(load_scorer, "mine", n=3)`.
        samples: what to try it on beside the hostile samples; None for `ordinary_samples()`.
        tolerance: by how much a number may differ between batches; for networks that run batches, 1e-5.
        scored: more than this share of `samples` has to be scored, 0 to below 1.
        processes: whether to try it in new processes too, which takes seconds.

    Returns:
        What was checked.

    Raises:
        ContractError: the contract is broken; the message lists how.
    """
    return try_out(_Trial, Scorer, load, samples, processes=processes, tolerance=tolerance, share=scored)


class _Trial(Trial):
    answers = "scores"
    method = "score"

    def checks(self) -> dict[str, Callable[[], Iterator[str]]]:
        return {
            "description": self.description,
            "scores": self.ordinary,
            "hostile samples": self.hostile,
            "batches": self.batches,
            "samples untouched": self.untouched,
            "determinism": self.determinism,
            "pickling": self.pickling,
        }

    def description(self) -> Iterator[str]:
        yield from self.described()
        if not isinstance(self.subject.direction, Direction):
            yield f"the direction is {self.subject.direction!r}, and should be a veriglot.records.Direction"

    def hostile(self) -> Iterator[str]:
        samples = hostile_samples()
        yield from self.all_answers(samples, self.ask(samples))

    def answer(self, sample: Sample, said: Score) -> Iterator[str]:  # noqa: ARG002  # scores point at nothing in it
        if said.scorer != self.subject.name:
            yield f"the score names {said.scorer!r}, not {self.subject.name!r}"
        if said.signature != self.subject.signature:
            yield f"its signature is {said.signature!r}, not the scorer's"
        if any(not abs(value) < float("inf") for value in said.parts.values()):
            yield f"a part is not finite: {said.parts}"
        if from_mapping(decode_json(encode(said)), Score) != said:
            yield "the score is another one after it was written as JSON and read again"
