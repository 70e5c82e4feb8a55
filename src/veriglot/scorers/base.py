"""What scorers share: a score a sample or why there is none, pairs of texts measured once, checks of options."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from veriglot.errors import UsageError
from veriglot.judging.base import NotScored, has_evidence, text_language
from veriglot.plugins import PickledByArguments
from veriglot.records import Direction, Sample, Score, Status
from veriglot.records.languages import get_language
from veriglot.text.unicode import without_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


__all__ = [
    "BaseScorer",
    "Measured",
    "Pair",
    "PairScorer",
    "SampleScorer",
    "answered",
    "codes_of",
    "one_of",
    "pair_languages",
]


PlanT = TypeVar("PlanT")
ResultT = TypeVar("ResultT")


class Measured(NamedTuple):
    """A number, the parts that it was made of, and the language it was made in (None where none was needed)."""

    value: float
    parts: dict[str, float]
    language: str | None = None


def answered(
    plans: Sequence[PlanT | NotScored], ask: Callable[[list[PlanT]], Iterable[ResultT]]
) -> list[ResultT | NotScored]:
    """What `ask` gives of the plans, in order, with those that are no plans as they are."""
    results = iter(ask([plan for plan in plans if not isinstance(plan, NotScored)]))
    return [plan if isinstance(plan, NotScored) else next(results) for plan in plans]


class BaseScorer(PickledByArguments, ABC):
    """A scorer: one score a sample. It travels to another process as its options, and loads its model there.

    Attributes:
        name: name and revision.
        signature: name, model and settings in one line.
        direction: which way the numbers go.
        no_evidence: the reason of a sample without evidence.
    """

    name: str
    signature: str
    direction = Direction.HIGHER_IS_BETTER
    no_evidence = "there is no evidence to hold the response against"

    @abstractmethod
    def _measured(self, samples: Sequence[Sample]) -> Iterable[Measured | NotScored]:
        """One result a sample, in order."""

    def score(self, samples: Sequence[Sample]) -> list[Score]:
        """One score a sample, in order; without evidence the status is `no_evidence`."""
        return [self._score(*pair) for pair in zip(samples, self._measured(samples), strict=True)]

    def _score(self, sample: Sample, result: Measured | NotScored) -> Score:
        if isinstance(result, NotScored):
            return Score(sample.id, result.status, self.name, reason=result.reason, signature=self.signature)
        tag = result.language or sample.language
        return Score(
            sample.id, Status.SCORED, self.name, result.value, result.parts, language=tag, signature=self.signature
        )


class SampleScorer(BaseScorer):
    """A scorer that measures each sample by itself, where there is evidence."""

    @abstractmethod
    def measure(self, sample: Sample) -> Measured | NotScored:
        """The number of one sample, whose evidence is not blank."""

    def _measured(self, samples: Sequence[Sample]) -> Iterable[Measured | NotScored]:
        missing = NotScored(Status.NO_EVIDENCE, self.no_evidence)
        return (self.measure(sample) if has_evidence(sample) else missing for sample in samples)


class Pair(NamedTuple):
    """What is scored. Halves of UTF-16 pairs are the replacement character, and keep their place.

    Attributes:
        source: the evidence, its passages parted by line breaks; in a translation, what was translated.
        response: the text to judge.
        source_language: BCP 47 tag of the evidence, where all its passages are of one language and it is known.
        language: BCP 47 tag of the response, where it is known.
        question: what was asked; empty where nothing was.
    """

    source: str
    response: str
    source_language: str | None = None
    language: str | None = None
    question: str = ""


class PairScorer(BaseScorer):
    """A scorer of pairs. A response that is blank has no score.

    Attributes:
        one_process: true, as it holds a network or another program: a copy a process would fill the memory, and a
            network takes every core by itself.
    """

    one_process = True

    @abstractmethod
    def measure(self, pairs: Sequence[Pair]) -> list[Measured | NotScored]:
        """A number per pair, in order, which hangs on that pair alone. Pairs are distinct, and none is blank."""

    def _measured(self, samples: Sequence[Sample]) -> Iterable[Measured | NotScored]:
        pairs = [self._pair(sample) for sample in samples]
        distinct = list(dict.fromkeys(pair for pair in pairs if isinstance(pair, Pair)))
        results = dict(zip(distinct, self.measure(distinct) if distinct else [], strict=True))
        return [results[pair] if isinstance(pair, Pair) else pair for pair in pairs]

    def _pair(self, sample: Sample) -> Pair | NotScored:
        passages = list(filter(str.strip, sample.passages))
        if not passages:
            return NotScored(Status.NO_EVIDENCE, self.no_evidence)
        if not sample.response.strip():
            return NotScored(Status.NOTHING_TO_COMPARE, "the response is blank")
        languages = {passage.language for passage in sample.evidence}
        return Pair(
            without_surrogates("\n".join(passages)),
            without_surrogates(sample.response),
            languages.pop() if len(languages) == 1 else None,
            sample.language,
            without_surrogates(sample.question or ""),
        )


def pair_languages(pair: Pair) -> tuple[str | None, str | None]:
    """The languages of source and response, as they are given or else identified; None where they cannot be."""
    return text_language(pair.source, pair.source_language), text_language(pair.response, pair.language)


def codes_of(text: str) -> dict[str, str]:
    """`TAG=CODE` parted by commas, as a table.

    Raises:
        UsageError: a part without `=`, or a tag that is none.
    """
    table = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        tag, sign, code = part.partition("=")
        if not sign or not code.strip():
            raise UsageError(f"{part!r} is no TAG=CODE.", "Give codes such as de=deu_Latn,en=eng_Latn.")
        table[get_language(tag.strip()).tag] = code.strip()
    return table


def one_of(option: str, value: str, choices: Sequence[str]) -> None:
    """Refuse the value of an option that is none of its choices.

    Raises:
        UsageError: it is not.
    """
    if value not in choices:
        raise UsageError(f"{option} is one of {', '.join(choices)}, not {value!r}.")
