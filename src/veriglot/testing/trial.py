"""What detectors and scorers have in common: batches, order, determinism, pickling, processes."""

from __future__ import annotations

import pickle
import random
from abc import ABC, abstractmethod
from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING, Any

from veriglot.records import Status
from veriglot.testing.comparing import differences
from veriglot.testing.processes import in_processes
from veriglot.testing.report import Breach, Report
from veriglot.testing.running import held, run_checks, told
from veriglot.testing.samples import ordinary_samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from veriglot.records import Sample

__all__ = ["Trial", "try_out"]

_TWICE = 3  # samples that are given twice in one batch


class Trial(ABC):
    """One plug-in and what it says of the samples.

    Args:
        load: makes it.
        subject: made by it.
        samples: ordinary ones.
        tolerance: by how much numbers may differ between batches.
        share: more than this share of the samples has to be scored.
    """

    answers: str  # what it gives, in messages
    method: str  # that gives them

    def __init__(
        self, load: Callable[..., Any], subject: Any, samples: list[Sample], tolerance: float, share: float
    ) -> None:
        self.load, self.subject, self.samples = load, subject, samples
        self._before = deepcopy(samples)
        self.tolerance, self.share = tolerance, share

    @abstractmethod
    def checks(self) -> dict[str, Callable[[], Iterator[str]]]:
        """Every check by its name, in order."""

    @abstractmethod
    def answer(self, sample: Sample, said: Any) -> Iterator[str]:
        """What is wrong with one answer."""

    def ask(self, samples: Sequence[Sample], subject: Any = None) -> list[Any]:
        """What the plug-in, or another of its kind, says of samples."""
        batch = list(samples)  # a list of its own: what a plug-in does to it is told once, by `untouched`
        found: list[Any] = getattr(self.subject if subject is None else subject, self.method)(batch)
        return found

    @cached_property
    def found(self) -> list[Any]:
        """What it says of all samples at once."""
        return self.ask(self.samples)

    def scored(self) -> int:
        """How many of the samples it scores; 0 where it raises, of which a check tells."""
        try:
            return sum(one.status is Status.SCORED for one in self.found)
        except Exception:
            return 0

    def described(self) -> Iterator[str]:
        """Name, signature and the empty batch."""
        name, at, revision = self.subject.name.partition("@")
        if not (name and at and revision):
            yield f"the name is {self.subject.name!r}, and should be a name and a revision, such as 'mine@1.0'"
        if name not in self.subject.signature or "\n" in self.subject.signature:
            yield f"the signature {self.subject.signature!r} does not hold the name {name!r}, or has several lines"
        if self.load().signature != self.subject.signature:
            yield "two that were made with the same options have different signatures"
        empty = self.ask([])
        if empty != []:
            yield f"an empty batch gives {empty!r}, and should give []"

    def ordinary(self) -> Iterator[str]:
        """Every answer to the ordinary samples, and whether there are enough to check anything."""
        yield from self.all_answers(self.samples, self.found)
        scored = self.scored()
        if scored <= self.share * len(self.samples):
            why = next((one.reason for one in self.found if one.status is not Status.SCORED), "there are no samples")
            yield f"only {scored} of {len(self.samples)} samples are scored, so little can be checked; the first: {why}"

    def all_answers(self, samples: Sequence[Sample], found: Sequence[Any]) -> Iterator[str]:
        """What is wrong with the answers to a batch."""
        if len(found) != len(samples):
            yield f"there are {len(found)} {self.answers} for {len(samples)} samples"
            return
        for sample, said in zip(samples, found, strict=True):
            if said.id != sample.id:
                yield f"sample {sample.id!r}: the answer in its place is to {said.id!r}"
                continue
            for what in self.answer(sample, said):
                yield f"sample {sample.id!r}: {what}"

    def batches(self) -> Iterator[str]:
        """One by one, in another order, and with samples twice, the answers are the same."""
        singles = [said for sample in self.samples for said in self.ask([sample])]
        yield from differences(self.found, singles, self.tolerance, "one by one")
        order = list(range(len(self.samples)))
        random.Random(5).shuffle(order)  # noqa: S311  # the same order every time
        shuffled = self.ask([self.samples[place] for place in order])
        yield from differences([self.found[place] for place in order], shuffled, self.tolerance, "in another order")
        doubled = self.ask([*self.samples, *self.samples[:_TWICE]])
        wanted = [*self.found, *self.found[:_TWICE]]
        yield from differences(wanted, doubled, self.tolerance, f"with {_TWICE} samples twice")
        frozen = getattr(self.subject, self.method)(tuple(self.samples))
        yield from differences(self.found, frozen, self.tolerance, "given as a tuple")

    def untouched(self) -> Iterator[str]:
        """Neither the batch nor its samples are changed."""
        batch = list(self.samples)
        getattr(self.subject, self.method)(batch)
        if [id(sample) for sample in batch] != [id(sample) for sample in self.samples]:
            yield "the list that was given is another one afterwards"
        if self.samples != self._before:
            yield "the samples are changed"

    def determinism(self) -> Iterator[str]:
        """Asked again, and made anew, it says the same."""
        yield from differences(self.found, self.ask(self.samples), self.tolerance, "asked again")
        yield from differences(self.found, self.ask(self.samples, self.load()), self.tolerance, "made anew")

    def pickling(self) -> Iterator[str]:
        """It travels to another process."""
        again = pickle.loads(pickle.dumps(self.subject))  # noqa: S301  # our own bytes
        if again.signature != self.subject.signature:
            yield "pickled, it has another signature"
        yield from differences(self.found, self.ask(self.samples, again), self.tolerance, "pickled")

    def processes(self) -> Iterator[str]:
        """New processes say the same."""
        wanted = [self.ask([sample])[0] for sample in self.samples]
        found = in_processes(self.subject, self.method, self.samples)
        yield from differences(wanted, found, self.tolerance, "in new processes")


def try_out(
    trial: type[Trial],
    protocol: Any,
    load: Callable[..., Any],
    samples: Sequence[Sample] | None,
    *,
    processes: bool,
    tolerance: float,
    share: float,
    **options: Any,
) -> Report:
    """Make a plug-in, run all checks, and report.

    Args:
        trial: the checks of its kind; `options` are its own.
        protocol: of `records.protocols`; what was made has to have all of it.
        load: makes the plug-in.
        samples: None for `ordinary_samples()`.
        processes: whether new processes are tried too.
        tolerance: see `Trial`.
        share: see `Trial`.

    Raises:
        ContractError: the contract is broken.
    """
    given = ordinary_samples() if samples is None else list(samples)
    try:
        subject = load()
    except Exception as error:
        return held(Report(repr(load), ("loading",), (Breach("loading", f"raised {told(error)}"),), len(given), 0))
    lacking = [name for name in sorted(_members(protocol)) if not hasattr(subject, name)]
    if lacking:
        breach = Breach("loading", f"what was made lacks {', '.join(lacking)}")
        return held(Report(repr(load), ("loading",), (breach,), len(given), 0))
    tried = trial(load, subject, given, tolerance, share, **options)
    checks = {**tried.checks(), **({"processes": tried.processes} if processes else {})}
    breaches = run_checks(checks)
    return held(Report(str(subject.name), tuple(checks), tuple(breaches), len(given), tried.scored()))


def _members(protocol: Any) -> set[str]:
    return {name for name in vars(protocol) if not name.startswith("_")}
