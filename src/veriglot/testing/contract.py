"""Running the checks of a plug-in: equal answers, processes, breaches, and the report."""

from __future__ import annotations

import multiprocessing
import pickle
import random
import traceback
from abc import ABC, abstractmethod
from concurrent.futures import ProcessPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.records import Status
from veriglot.testing.samples import ordinary_samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from veriglot.records import Sample

__all__ = ["Breach", "ContractError", "Report", "Trial", "differences", "try_out"]


def differences(wanted: Sequence[Any], answers: Sequence[Any], tolerance: float, when: str) -> Iterator[str]:
    """What differs between two lists of records that belong to the same samples.

    Args:
        wanted: predictions or scores.
        found: those to hold against them.
        tolerance: by how much numbers may differ.
        when: what was done to get `found`.
    """
    if len(wanted) != len(answers):
        yield f"{when}, there are {len(answers)} answers for {len(wanted)} samples"
        return
    for answer, other in zip(wanted, answers, strict=True):
        where = difference(msgspec.to_builtins(answer), msgspec.to_builtins(other), tolerance)
        if where:
            yield f"{when}, sample {getattr(answer, 'id', '?')!r} differs in {where}"


def difference(left: Any, other: Any, tolerance: float, path: str = "") -> str | None:
    """Where two plain values differ, and how; None where they do not."""
    if isinstance(left, dict) and isinstance(other, dict):
        keys = sorted(left.keys() | other.keys())
        pairs = [(f"{path}.{key}" if path else key, left.get(key), other.get(key)) for key in keys]
    elif isinstance(left, list | tuple) and isinstance(other, list | tuple):
        if len(left) != len(other):
            return f"{path}: {len(left)} and {len(other)} entries"
        pairs = [
            (f"{path}[{index}]", mine, second) for index, (mine, second) in enumerate(zip(left, other, strict=True))
        ]
    elif isinstance(left, float) and isinstance(other, float) and abs(left - other) <= tolerance:
        return None
    else:
        return None if left == other else f"{path}: {left!r} and {other!r}"
    return next((result for name, mine, second in pairs if (result := difference(mine, second, tolerance, name))), None)


def in_processes(subject: Any, method: str, samples: Sequence[Sample]) -> list[Any]:
    """What two new processes say of each sample, in order.

    Args:
        subject: a detector or scorer; it travels there pickled.
        method: `predict` or `score`.
        samples: one by one.
    """
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn) as pool:
        return list(pool.map(partial(_one, subject, method), samples))


def _one(subject: Any, method: str, sample: Sample) -> Any:
    return getattr(subject, method)([sample])[0]


# What the checks of a plug-in found.


_SHOWN = 4  # breaches of one check


@dataclass(frozen=True)
class Breach:
    """One way in which a plug-in does not do what it has to.

    Attributes:
        check: name of the check.
        what: what was seen, and what was to be seen.
    """

    check: str
    what: str

    def __str__(self) -> str:
        return f"{self.check}: {self.what}"


@dataclass(frozen=True)
class Report:
    """All that was checked.

    Attributes:
        subject: name and revision of the plug-in, or what was given where it could not be made.
        checks: names of the checks that ran, in order.
        breaches: what they found.
        samples: how many ordinary samples it was given.
        scored: how many of these it scored.
    """

    subject: str
    checks: tuple[str, ...]
    breaches: tuple[Breach, ...]
    samples: int
    scored: int

    def __str__(self) -> str:
        first = f"{self.subject}: {len(self.checks)} checks, {self.scored} of {self.samples} samples scored"
        if not self.breaches:
            return f"{first}; the contract is kept."
        lines = [f"{first}; the contract is broken:"]
        for check in dict.fromkeys(breach.check for breach in self.breaches):
            breaches = [breach for breach in self.breaches if breach.check == check]
            lines += [f"- {breach}" for breach in breaches[:_SHOWN]]
            if len(breaches) > _SHOWN:
                lines.append(f"- {check}: and {len(breaches) - _SHOWN} more")
        return "\n".join(lines)


class ContractError(AssertionError):
    """A plug-in does not keep to its contract; the message lists how.

    Attributes:
        report: all that was checked.
    """

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


def run_checks(checks: Mapping[str, Callable[[], Iterator[str]]]) -> list[Breach]:
    """What every check yields; an exception is a breach of the check that it ended."""
    breaches: list[Breach] = []
    for name, check in checks.items():
        try:
            breaches.extend(Breach(name, what) for what in check())
        except Exception as error:
            breaches.append(Breach(name, f"raised {told(error)}"))
    return breaches


def told(error: Exception) -> str:
    """An exception and the line that it comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    location = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{location}"


def held(report: Report) -> Report:
    """The report, if the contract is kept.

    Raises:
        ContractError: otherwise.
    """
    if report.breaches:
        raise ContractError(report)
    return report


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
    def answer(self, sample: Sample, answer: Any) -> Iterator[str]:
        """What is wrong with one answer."""

    def ask(self, samples: Sequence[Sample], subject: Any = None) -> list[Any]:
        """What the plug-in, or another of its kind, says of samples."""
        batch = list(samples)  # a list of its own: what a plug-in does to it is told once, by `untouched`
        answers: list[Any] = getattr(self.subject if subject is None else subject, self.method)(batch)
        return answers

    @cached_property
    def found(self) -> list[Any]:
        """What it says of all samples at once."""
        return self.ask(self.samples)

    def scored(self) -> int:
        """How many of the samples it scores; 0 where it raises, of which a check tells."""
        try:
            return sum(answer.status is Status.SCORED for answer in self.found)
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
            why = next(
                (answer.reason for answer in self.found if answer.status is not Status.SCORED), "there are no samples"
            )
            yield f"only {scored} of {len(self.samples)} samples are scored, so little can be checked; the first: {why}"

    def all_answers(self, samples: Sequence[Sample], answers: Sequence[Any]) -> Iterator[str]:
        """What is wrong with the answers to a batch."""
        if len(answers) != len(samples):
            yield f"there are {len(answers)} {self.answers} for {len(samples)} samples"
            return
        for sample, answer in zip(samples, answers, strict=True):
            if answer.id != sample.id:
                yield f"sample {sample.id!r}: the answer in its place is to {answer.id!r}"
                continue
            for what in self.answer(sample, answer):
                yield f"sample {sample.id!r}: {what}"

    def batches(self) -> Iterator[str]:
        """One by one, in another order, and with samples twice, the answers are the same."""
        singles = [answer for sample in self.samples for answer in self.ask([sample])]
        yield from differences(self.found, singles, self.tolerance, "one by one")
        order = list(range(len(self.samples)))
        random.Random(5).shuffle(order)  # noqa: S311  # the same order every time
        shuffled = self.ask([self.samples[index] for index in order])
        yield from differences([self.found[index] for index in order], shuffled, self.tolerance, "in another order")
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
        answers = in_processes(self.subject, self.method, self.samples)
        yield from differences(wanted, answers, self.tolerance, "in new processes")


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
        protocol: of `records.prediction`; what was made has to have all of it.
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
