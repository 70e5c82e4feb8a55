"""For authors of detectors and scorers: checks of the contract, with or without a test runner.

    from veriglot.testing import check_detector

    def test_the_contract_is_kept():
        check_detector(MyDetector)

`python -m veriglot.testing NAME` does the same for an installed plug-in; docs/plugins.md lists the checks.
"""

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
from importlib.resources import files
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.plugins import read_package_data
from veriglot.records import (
    Detector,
    Direction,
    Evidence,
    Pointer,
    Prediction,
    Sample,
    Score,
    Scorer,
    Span,
    Status,
    Task,
    decode_json,
    encode,
    from_mapping,
    sample_from,
)
from veriglot.records.taxonomy import taxonomies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Breaches = Iterator[str]  # violations of the contract, one sentence each


__all__ = ["ContractError", "check_detector", "check_scorer", "hostile_samples", "ordinary_samples"]


_EMPTY = ("empty", "blank")  # ids of the hostile samples with an empty response
_BARE = ("no evidence", "blank evidence")  # ids of those without evidence

_FACT = "The mill was built in 1874 by Jonas Reed."
_CLAIM = "The mill was built in 1901."
_HALF = "\ud83d"  # a lone surrogate: allowed in Python's texts, but UTF-8 cannot encode it


def ordinary_samples() -> list[Sample]:
    """Short answers, a summary and a translation in thirteen languages, most of them with unsupported text."""
    lines = files(__package__).joinpath("samples.jsonl").read_bytes().splitlines()
    return [sample_from(decode_json(line)) for line in lines]


def hostile_samples() -> list[Sample]:
    """Samples that are empty, odd or huge. Each must be returned, scored or with a reason."""
    odd = read_package_data(__package__, "hostile.toml", dict[str, str])
    responses = {name: text.replace("HALF", _HALF) for name, text in odd.items()} | {
        "one long word": "mill" * 2000,
        "many words": " ".join(f"The mill number {number} was built in {1000 + number}." for number in range(250)),
    }
    samples = [Sample(name, text, evidence=(Evidence(_FACT),), language="en") for name, text in responses.items()]
    return [*samples, *_odd_evidence(), *_odd_fields()]


def _odd_evidence() -> list[Sample]:
    evidence = {
        "no evidence": (),
        "blank evidence": (Evidence(""), Evidence(" \n")),
        "marks for evidence": (Evidence("— … !"),),
        "holes in evidence": (Evidence(""), Evidence(_FACT), Evidence("\u200b")),
        "half a pair in evidence": (Evidence(f"{_HALF} {_FACT}"),),
        "many passages": tuple(Evidence(f"Mill {number} stands by the river.") for number in range(60)),
        "long evidence": (Evidence(" ".join(f"Mill {n} was built in {1000 + n}." for n in range(400))),),
        "evidence in another script": (Evidence("Мельница была построена в 1874 году.", language="ru"),),
    }
    return [Sample(name, _CLAIM, evidence=passages, language="en") for name, passages in evidence.items()]


def _odd_fields() -> list[Sample]:
    passages = (Evidence(_FACT),)
    return [
        Sample("no language", _CLAIM, evidence=passages),
        Sample("language that is none", _CLAIM, evidence=passages, language="!!"),
        Sample("language that nobody knows", _CLAIM, evidence=passages, language="qq-Latn"),
        Sample("blank question", _CLAIM, evidence=passages, language="en", question="  "),
        Sample("half a pair in the question", _CLAIM, evidence=passages, language="en", question=_HALF),
        Sample("long question", _CLAIM, evidence=passages, language="en", question="When was the mill built? " * 300),
        Sample("translation", _CLAIM, task=Task.TRANSLATION, evidence=(Evidence("Die Mühle."),), language="en"),
        Sample("named twice", _CLAIM, evidence=passages, language="en"),
        Sample("named twice", "Jonas Reed built it.", evidence=passages, language="en"),
    ]


def _difference(left: Any, other: Any, tolerance: float, path: str = "") -> str | None:
    """The first difference of two plain values; None if they are equal."""
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
    return next(
        (result for name, mine, second in pairs if (result := _difference(mine, second, tolerance, name))), None
    )


def in_processes(subject: Any, method: str, samples: Sequence[Sample]) -> list[Any]:
    """The results of two new processes for each sample, in order."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(partial(_one, subject, method), samples))


def _one(subject: Any, method: str, sample: Sample) -> Any:
    return getattr(subject, method)([sample])[0]


# Results of the checks of a plug-in.


_SHOWN = 4  # maximum breaches per check


@dataclass(frozen=True)
class Report:
    """The results of all checks."""

    subject: str  # name and revision of the plug-in, or the argument if it could not be created
    checks: tuple[str, ...]  # names of the executed checks, in order
    breaches: tuple[str, ...]  # violations, each as the check's name, a colon and a description
    samples: int  # number of ordinary samples
    scored: int  # how many of these it scored

    def __str__(self) -> str:
        first = f"{self.subject}: {len(self.checks)} checks, {self.scored} of {self.samples} samples scored"
        if not self.breaches:
            return f"{first}; the contract is kept."
        lines = [f"{first}; the contract is broken:"]
        for check, group in groupby(self.breaches, lambda breach: breach.partition(": ")[0]):
            breaches = list(group)
            lines += [f"- {breach}" for breach in breaches[:_SHOWN]]
            if len(breaches) > _SHOWN:
                lines.append(f"- {check}: and {len(breaches) - _SHOWN} more")
        return "\n".join(lines)


class ContractError(AssertionError):
    """A plug-in violates its contract; the message lists how.

    Attributes:
        report: the results of all checks.
    """

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


def _breaches(checks: Mapping[str, Callable[[], Breaches]]) -> Breaches:
    """The breaches of all checks; an exception is a breach of the check in which it occurred."""
    for name, check in checks.items():
        try:
            yield from (f"{name}: {what}" for what in check())
        except Exception as error:
            yield f"{name}: raised {_describe(error)}"


def _describe(error: Exception) -> str:
    """An exception and the line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    location = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{location}"


_TWICE = 3  # samples that occur twice in one batch


class _Trial(ABC):
    """Checks of one plug-in, and its answers to the samples."""

    protocol: Any  # the required protocol
    answers: str  # name of its results, in messages
    method: str  # the method that returns them

    def __init__(
        self, load: Callable[..., Any], subject: Any, samples: list[Sample], tolerance: float, share: float
    ) -> None:
        self.load, self.subject, self.samples = load, subject, samples
        self._before = deepcopy(samples)
        self.tolerance, self.share = tolerance, share

    def checks(self) -> dict[str, Callable[[], Breaches]]:
        """All checks by name, in order."""
        return {
            "description": self.description,
            self.answers: self.ordinary,
            "hostile samples": self.hostile,
            "batches": self.batches,
            "samples untouched": self.untouched,
            "determinism": self.determinism,
            "pickling": self.pickling,
        }

    @abstractmethod
    def answer(self, sample: Sample, answer: Any) -> Breaches:
        """Breaches in one answer."""

    def ask(self, samples: Sequence[Sample], subject: Any = None) -> list[Any]:
        """The answers of the plug-in, or of another instance, to samples."""
        batch = list(samples)  # a copy: changes to it are reported only once, by `untouched`
        answers: list[Any] = getattr(self.subject if subject is None else subject, self.method)(batch)
        return answers

    @cached_property
    def ordinary_answers(self) -> list[Any]:
        """Its answers to all ordinary samples in one batch."""
        return self.ask(self.samples)

    @cached_property
    def hostile_answers(self) -> list[Any]:
        """Its answers to all hostile samples in one batch."""
        return self.ask(hostile_samples())

    def scored(self) -> int:
        """Number of scored samples; 0 if it raises, which another check reports."""
        try:
            return sum(answer.status is Status.SCORED for answer in self.ordinary_answers)
        except Exception:
            return 0

    def differences(self, answers: Sequence[Any], when: str, wanted: Sequence[Any] | None = None) -> Breaches:
        """Differences between answers to the same samples and the wanted ones, by default the first answers."""
        wanted = self.ordinary_answers if wanted is None else wanted
        if len(wanted) != len(answers):
            yield f"{when}, there are {len(answers)} answers for {len(wanted)} samples"
            return
        for answer, other in zip(wanted, answers, strict=True):
            where = _difference(msgspec.to_builtins(answer), msgspec.to_builtins(other), self.tolerance)
            if where:
                yield f"{when}, sample {getattr(answer, 'id', '?')!r} differs in {where}"

    def description(self) -> Breaches:
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

    def ordinary(self) -> Breaches:
        """Each answer to the ordinary samples, and whether there are enough scored ones."""
        yield from self.all_answers(self.samples, self.ordinary_answers)
        scored = self.scored()
        if scored <= self.share * len(self.samples):
            why = next(
                (answer.reason for answer in self.ordinary_answers if answer.status is not Status.SCORED),
                "there are no samples",
            )
            yield f"only {scored} of {len(self.samples)} samples are scored, so little can be checked; the first: {why}"

    def hostile(self) -> Breaches:
        """The answers to hostile samples."""
        yield from self.all_answers(hostile_samples(), self.hostile_answers)

    def all_answers(self, samples: Sequence[Sample], answers: Sequence[Any]) -> Breaches:
        """Breaches in the answers to a batch."""
        if len(answers) != len(samples):
            yield f"there are {len(answers)} {self.answers} for {len(samples)} samples"
            return
        for sample, answer in zip(samples, answers, strict=True):
            if answer.id != sample.id:
                yield f"sample {sample.id!r}: the answer in its place is to {answer.id!r}"
                continue
            for what in self.answer(sample, answer):
                yield f"sample {sample.id!r}: {what}"

    def batches(self) -> Breaches:
        """The answers are the same one by one, in another order, and with repeated samples."""
        yield from self.differences([answer for sample in self.samples for answer in self.ask([sample])], "one by one")
        order = list(range(len(self.samples)))
        random.Random(5).shuffle(order)  # noqa: S311  # the same order every time
        shuffled = self.ask([self.samples[index] for index in order])
        yield from self.differences(shuffled, "in another order", [self.ordinary_answers[index] for index in order])
        doubled = self.ask([*self.samples, *self.samples[:_TWICE]])
        wanted = [*self.ordinary_answers, *self.ordinary_answers[:_TWICE]]
        yield from self.differences(doubled, f"with {_TWICE} samples twice", wanted)
        yield from self.differences(getattr(self.subject, self.method)(tuple(self.samples)), "given as a tuple")

    def untouched(self) -> Breaches:
        """The batch and its samples are not modified."""
        batch = list(self.samples)
        getattr(self.subject, self.method)(batch)
        if [id(sample) for sample in batch] != [id(sample) for sample in self.samples]:
            yield "the list that was given is another one afterwards"
        if self.samples != self._before:
            yield "the samples are changed"

    def determinism(self) -> Breaches:
        """The answers are the same in a second call, and from a new instance."""
        yield from self.differences(self.ask(self.samples), "asked again")
        yield from self.differences(self.ask(self.samples, self.load()), "made anew")

    def pickling(self) -> Breaches:
        """It can be pickled for another process."""
        restored = pickle.loads(pickle.dumps(self.subject))  # noqa: S301  # our own bytes
        if restored.signature != self.subject.signature:
            yield "pickled, it has another signature"
        yield from self.differences(self.ask(self.samples, restored), "pickled")

    def processes(self) -> Breaches:
        """New processes give the same answers."""
        wanted = [self.ask([sample])[0] for sample in self.samples]
        yield from self.differences(in_processes(self.subject, self.method, self.samples), "in new processes", wanted)


def _try_out(
    trial: type[_Trial], load: Callable[..., Any], samples: Sequence[Sample] | None, *, processes: bool, **options: Any
) -> Report:
    """Create a plug-in that must have all of a protocol, run all checks of its kind, and report, or raise."""
    given = ordinary_samples() if samples is None else list(samples)
    try:
        subject = load()
        lacking = [n for n in sorted(vars(trial.protocol)) if not n.startswith("_") and not hasattr(subject, n)]
        trouble = f"what was made lacks {', '.join(lacking)}" if lacking else ""
    except Exception as error:
        trouble = f"raised {_describe(error)}"
    if trouble:
        raise ContractError(Report(repr(load), ("loading",), (f"loading: {trouble}",), len(given), 0))
    tried = trial(load, subject, given, **options)
    checks = tried.checks() | ({"processes": tried.processes} if processes else {})
    breaches = tuple(_breaches(checks))
    report = Report(str(subject.name), tuple(checks), breaches, len(given), tried.scored())
    if breaches:
        raise ContractError(report)
    return report


_LADDER = (0.0, 0.2, 0.5, 0.8, 1.0)


def check_detector(
    load: Callable[..., Detector],
    samples: Sequence[Sample] | None = None,
    *,
    tolerance: float = 0.0,
    needs_evidence: bool = True,
    scored: float = 0.0,
    processes: bool = False,
) -> Report:
    """Check a detector against the contract of detectors; docs/plugins.md lists the checks.

    It works with any test runner and without one. All checks run before the first breach is reported.

    Args:
        load: the detector's class, or a function with the same keywords, `threshold` and `words`, such as
            `functools.partial(load_detector, "mine")`.
        samples: test samples besides the hostile ones; None for `ordinary_samples()`. Choose your own for a detector of
            one language or one task.
        tolerance: maximum difference of a number between batches; for networks that run batches, 1e-5.
        needs_evidence: whether a sample without evidence cannot be scored.
        scored: more than this share of `samples` must be scored, 0 to below 1; otherwise a detector that refuses
            everything would pass.
        processes: whether to test it in new processes too, which takes seconds. The class must be importable there.

    Returns:
        The results of all checks.

    Raises:
        ContractError: the contract is violated; the message lists how.
    """
    return _try_out(
        _DetectorTrial,
        load,
        samples,
        processes=processes,
        tolerance=tolerance,
        share=scored,
        needs_evidence=needs_evidence,
    )


class _DetectorTrial(_Trial):
    protocol = Detector
    answers = "predictions"
    method = "predict"

    def __init__(self, *given: Any, needs_evidence: bool, **options: Any) -> None:
        super().__init__(*given, **options)
        self.needs_evidence = needs_evidence

    def checks(self) -> dict[str, Callable[[], Breaches]]:
        return {**super().checks(), "words": self.words, "thresholds": self.thresholds}

    def description(self) -> Breaches:
        yield from super().description()
        known = taxonomies()
        if self.subject.taxonomy not in known:
            yield f"the taxonomy {self.subject.taxonomy!r} is none of {', '.join(sorted(known))}"
        if not 0 <= self.subject.threshold <= 1:
            yield f"the threshold {self.subject.threshold} is no probability"

    def hostile(self) -> Breaches:
        yield from super().hostile()
        scored = {prediction.id for prediction in self.hostile_answers if prediction.status is Status.SCORED}
        for name in scored & set(_EMPTY):
            yield f"sample {name!r}: a response that says nothing is scored"
        for name in scored & set(_BARE) if self.needs_evidence else ():
            yield f"sample {name!r}: it is scored without evidence to hold it against"

    def answer(self, sample: Sample, prediction: Prediction) -> Breaches:
        if not isinstance(prediction, Prediction):
            yield f"a detector gives records, veriglot.records.Prediction, and no {type(prediction).__qualname__}"
            return
        if prediction.asked != self.subject.name:
            yield f"the prediction says that {prediction.asked!r} was asked, not {self.subject.name!r}"
        if prediction.signature != self.subject.signature:
            yield f"its signature is {prediction.signature!r}, not the detector's"
        if from_mapping(decode_json(encode(prediction)), Prediction) != prediction:
            yield "the prediction is another one after it was written as JSON and read again"
        for span in prediction.spans or ():
            yield from _span(sample, span, self.subject.taxonomy)
        places = [(span.start, span.end) for span in prediction.spans or ()]
        if places != sorted(places):
            yield "the spans are not in order"
        words = [(word.start, word.end) for word in prediction.words or ()]
        if any(word[1] > other[0] for word, other in pairwise(words)) or (
            words and words[-1][1] > len(sample.response)
        ):
            yield "the words are not in order, overlap, or end beyond the response"
        for word in prediction.words or ():
            yield from _pointers(sample, word.evidence)

    def words(self) -> Breaches:
        for prediction in self.ordinary_answers:
            if prediction.words is not None:
                yield f"sample {prediction.id!r}: the prediction has words that nobody asked for"
        detector = self.load(words=True)
        predictions = self.ask(self.samples, detector)
        bare = [msgspec.structs.replace(prediction, words=None) for prediction in predictions]
        yield from self.differences(bare, "with words=True")
        for what in self.all_answers(self.samples, predictions):
            yield f"with words=True, {what}"
        for prediction in predictions:
            for what in _unmarked(prediction, detector.threshold, self.tolerance):
                yield f"with words=True, sample {prediction.id!r}: {what}"

    def thresholds(self) -> Breaches:
        steps = []
        for value in _LADDER:
            detector = self.load(threshold=value)
            if detector.threshold != value:
                yield f"made with threshold={value}, the detector says {detector.threshold}"
            steps.append((value, self.ask(self.samples, detector)))
        for (low, lower), (high, higher) in pairwise(steps):
            for at_low, other in zip(lower, higher, strict=True):
                if not _marked(other) <= _marked(at_low):
                    yield f"sample {at_low.id!r}: the threshold {high} marks what {low} does not"
                if at_low.status is not other.status or abs((at_low.score or 0) - (other.score or 0)) > self.tolerance:
                    yield f"sample {at_low.id!r}: status or score hang on the threshold"


def _span(sample: Sample, span: Span, taxonomy: str) -> Breaches:
    text = sample.response[span.start : span.end]
    if span.end > len(sample.response):
        yield f"the span [{span.start}, {span.end}) ends beyond the response"
    elif span.text is not None and span.text != text:
        yield f"the span [{span.start}, {span.end}) says {span.text!r}, and the response has {text!r} there"
    elif not text.strip() or text != text.strip():
        yield f"the span [{span.start}, {span.end}) begins or ends with white space, or holds nothing else"
    known = taxonomies().get(taxonomy)
    if span.type is not None and known is not None and span.type not in known.types:
        yield f"the span's type {span.type!r} is not in the taxonomy {taxonomy!r}"
    yield from _pointers(sample, span.evidence)


def _pointers(sample: Sample, pointers: Sequence[Pointer]) -> Breaches:
    lengths = {passage.id: len(passage.text) for passage in sample.evidence}
    for pointer in pointers:
        if pointer.id not in lengths:
            yield f"a pointer leads to the passage {pointer.id!r}, which the sample does not have"
        elif pointer.end > lengths[pointer.id]:
            yield f"a pointer ends at {pointer.end}, beyond the passage {pointer.id!r}"


def _unmarked(prediction: Prediction, threshold: float, tolerance: float) -> Breaches:
    """If words have confidences, spans contain exactly those from the threshold on."""
    marked = _marked(prediction)
    for word in prediction.words or ():
        inside = marked.issuperset(range(word.start, word.end))
        # confidences are rounded, so that a rounded one equal to the threshold is inconclusive
        if inside != (word.confidence >= threshold) and abs(word.confidence - threshold) > tolerance:
            where = "inside a span" if inside else "not inside a span"
            yield (
                f"the word [{word.start}, {word.end}) has the confidence {word.confidence} at the threshold"
                f" {threshold}, and is {where}"
            )


def _marked(prediction: Prediction) -> set[int]:
    return {index for span in prediction.spans or () for index in range(span.start, span.end)}


def check_scorer(
    load: Callable[[], Scorer],
    samples: Sequence[Sample] | None = None,
    *,
    tolerance: float = 0.0,
    scored: float = 0.0,
    processes: bool = False,
) -> Report:
    """Check a scorer against the contract of scorers; docs/plugins.md lists the checks.

    Args:
        load: the scorer's class, or a function without arguments: `functools.partial(load_scorer, "mine", n=3)`.
        samples: test samples besides the hostile ones; None for `ordinary_samples()`.
        tolerance: maximum difference of a number between batches; for networks that run batches, 1e-5.
        scored: more than this share of `samples` must be scored, 0 to below 1.
        processes: whether to test it in new processes too, which takes seconds.

    Returns:
        The results of all checks.

    Raises:
        ContractError: the contract is violated; the message lists how.
    """
    return _try_out(_ScorerTrial, load, samples, processes=processes, tolerance=tolerance, share=scored)


class _ScorerTrial(_Trial):
    protocol = Scorer
    answers = "scores"
    method = "score"

    def description(self) -> Breaches:
        yield from super().description()
        if not isinstance(self.subject.direction, Direction):
            yield f"the direction is {self.subject.direction!r}, and should be a veriglot.records.Direction"

    def answer(self, sample: Sample, score: Score) -> Breaches:  # noqa: ARG002  # scores have no references to it
        if score.scorer != self.subject.name:
            yield f"the score names {score.scorer!r}, not {self.subject.name!r}"
        if score.signature != self.subject.signature:
            yield f"its signature is {score.signature!r}, not the scorer's"
        if any(not abs(value) < float("inf") for value in score.parts.values()):
            yield f"a part is not finite: {score.parts}"
        if from_mapping(decode_json(encode(score)), Score) != score:
            yield "the score is another one after it was written as JSON and read again"
