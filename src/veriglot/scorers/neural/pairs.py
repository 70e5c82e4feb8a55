"""What scorers that hold a response against its source share: one score a sample, each distinct pair measured once."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from veriglot.records import Direction, Score, Status
from veriglot.scorers.against_evidence import Measured, Unmeasured
from veriglot.text import identify

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.records import Sample

__all__ = ["Pair", "PairScorer", "spoken"]

_SURROGATE = re.compile("[\ud800-\udfff]")


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


class PairScorer(ABC):
    """A scorer of pairs.

    Attributes:
        name: name and revision.
        direction: which way the numbers go.
        signature: name, model and settings.
        one_process: true, as it holds a network or another program: a copy a process would fill the memory, and a
            network takes every core by itself.
    """

    one_process = True
    name: str
    direction = Direction.HIGHER_IS_BETTER
    signature: str

    @abstractmethod
    def measure(self, pairs: Sequence[Pair]) -> list[Measured | Unmeasured]:
        """A number per pair, in order, which hangs on that pair alone. Pairs are distinct, and none is blank."""

    def score(self, samples: Sequence[Sample]) -> list[Score]:
        """One score a sample, in order. Without evidence there is none, nor of a response that is blank."""
        pairs = [_pair(sample) for sample in samples]
        distinct = list(dict.fromkeys(pair for pair in pairs if isinstance(pair, Pair)))
        found = dict(zip(distinct, self.measure(distinct) if distinct else [], strict=True))
        return [
            self._scored(sample, found[pair] if isinstance(pair, Pair) else pair)
            for sample, pair in zip(samples, pairs, strict=True)
        ]

    def _scored(self, sample: Sample, found: Measured | Unmeasured) -> Score:
        if isinstance(found, Unmeasured):
            return Score(sample.id, found.status, self.name, reason=found.reason, signature=self.signature)
        return Score(
            sample.id,
            Status.SCORED,
            self.name,
            value=found.value,
            parts=found.parts,
            language=found.language or sample.language,
            signature=self.signature,
        )


def _pair(sample: Sample) -> Pair | Unmeasured:
    passages = [passage.text for passage in sample.evidence if passage.text.strip()]
    if not passages:
        return Unmeasured(Status.NO_EVIDENCE, "there is no evidence to hold the response against")
    if not sample.response.strip():
        return Unmeasured(Status.NOTHING_TO_COMPARE, "the response is blank")
    languages = {passage.language for passage in sample.evidence}
    return Pair(
        _writable("\n".join(passages)),
        _writable(sample.response),
        languages.pop() if len(languages) == 1 else None,
        sample.language,
        _writable(sample.question or ""),
    )


def spoken(pair: Pair) -> tuple[str | None, str | None]:
    """The languages of source and response, as they are given or else identified; None where they cannot be told."""
    return pair.source_language or _identified(pair.source), pair.language or _identified(pair.response)


def _identified(text: str) -> str | None:
    found = identify(text)
    return found.tag if found else None


def _writable(text: str) -> str:
    return _SURROGATE.sub("\ufffd", text)
