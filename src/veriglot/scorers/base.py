"""Base classes of scorers: a score per sample or why there is none, deduplicated pairs of texts, checks of options."""

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
    "Pair",
    "PairScorer",
    "RawScore",
    "SampleScorer",
    "answered",
    "check_choice",
    "pair_languages",
    "parse_codes",
]


PlanT = TypeVar("PlanT")
ResultT = TypeVar("ResultT")


class RawScore(NamedTuple):
    """A score, its parts, and the language used (None if none was needed)."""

    value: float
    parts: dict[str, float]
    language: str | None = None


def answered(
    plans: Sequence[PlanT | NotScored], ask: Callable[[list[PlanT]], Iterable[ResultT]]
) -> list[ResultT | NotScored]:
    """Apply `ask` to the plans and return its results in order; entries that are `NotScored` stay."""
    results = iter(ask([plan for plan in plans if not isinstance(plan, NotScored)]))
    return [plan if isinstance(plan, NotScored) else next(results) for plan in plans]


class BaseScorer(PickledByArguments, ABC):
    """A scorer: one score per sample. Pickled as its options; another process loads its model itself.

    Attributes:
        name: name and revision.
        signature: name, model and settings in one line.
        direction: whether a higher score is better or worse.
        no_evidence: the reason for samples without evidence.
    """

    name: str
    signature: str
    direction = Direction.HIGHER_IS_BETTER
    no_evidence = "there is no evidence to compare the response with"

    @abstractmethod
    def _measured(self, samples: Sequence[Sample]) -> Iterable[RawScore | NotScored]:
        """One result per sample, in order."""

    def score(self, samples: Sequence[Sample]) -> list[Score]:
        """One score per sample, in order; without evidence the status is `no_evidence`."""
        return [self._score(*pair) for pair in zip(samples, self._measured(samples), strict=True)]

    def _score(self, sample: Sample, result: RawScore | NotScored) -> Score:
        if isinstance(result, NotScored):
            return Score(sample.id, result.status, self.name, reason=result.reason, signature=self.signature)
        tag = result.language or sample.language
        return Score(
            sample.id, Status.SCORED, self.name, result.value, result.parts, language=tag, signature=self.signature
        )


class SampleScorer(BaseScorer):
    """A scorer of single samples with evidence."""

    @abstractmethod
    def measure(self, sample: Sample) -> RawScore | NotScored:
        """The score of one sample, whose evidence is not blank."""

    def _measured(self, samples: Sequence[Sample]) -> Iterable[RawScore | NotScored]:
        missing = NotScored(Status.NO_EVIDENCE, self.no_evidence)
        return (self.measure(sample) if has_evidence(sample) else missing for sample in samples)


class Pair(NamedTuple):
    """The input of a scorer. Lone surrogates are replaced by the replacement character, one for one.

    Attributes:
        source: the evidence, its passages separated by line breaks; for a translation, the source text.
        response: the text to score.
        source_language: BCP 47 tag of the evidence, if all its passages have the same known language.
        language: BCP 47 tag of the response, if known.
        question: the question or prompt; empty if there is none.
    """

    source: str
    response: str
    source_language: str | None = None
    language: str | None = None
    question: str = ""


class PairScorer(BaseScorer):
    """A scorer of pairs. A blank response has no score.

    Attributes:
        one_process: true, since it has a network or another program: one copy per process would fill the memory, and a
            network uses all cores by itself.
    """

    one_process = True

    @abstractmethod
    def measure(self, pairs: Sequence[Pair]) -> list[RawScore | NotScored]:
        """A score per pair, in order, independent of the other pairs. Pairs are distinct, and none is blank."""

    def _measured(self, samples: Sequence[Sample]) -> Iterable[RawScore | NotScored]:
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
    """The languages of source and response, given or else identified; None if they cannot be."""
    return text_language(pair.source, pair.source_language), text_language(pair.response, pair.language)


def parse_codes(text: str) -> dict[str, str]:
    """Parse `TAG=CODE` separated by commas.

    Raises:
        UsageError: a part without `=`, or an invalid tag.
    """
    table = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        tag, sign, code = part.partition("=")
        if not sign or not code.strip():
            raise UsageError(f"{part!r} is no TAG=CODE.", "Give codes such as de=deu_Latn,en=eng_Latn.")
        table[get_language(tag.strip()).tag] = code.strip()
    return table


def check_choice(option: str, value: str, choices: Sequence[str]) -> None:
    """Raise an error if the value of an option is not one of its choices.

    Raises:
        UsageError: it is not.
    """
    if value not in choices:
        raise UsageError(f"{option} is one of {', '.join(choices)}, not {value!r}.")
