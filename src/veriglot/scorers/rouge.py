"""ROUGE-1, ROUGE-2 and ROUGE-L in every script, and as the common implementations count it (Lin 2004)."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from veriglot.errors import UsageError
from veriglot.scorers.base import Measured, SampleScorer, one_of, response_language
from veriglot.scorers.overlap import (
    Overlap,
    Value,
    ascii_tokens,
    longest_common_subsequence,
    n_gram_overlap,
    stop_words,
    stop_words_revision,
    tokens,
    tokens_with_places,
)
from veriglot.signatures import digest, signature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.judging.base import NotScored
    from veriglot.records import Sample

__all__ = ["Passages", "Rouge1", "Rouge2", "RougeL"]

Mode = Literal["unicode", "paper"]
Passages = Literal["joined", "best"]


class _Rouge(SampleScorer):
    """What the variants share; each counts what two lists of words have in common in its own way.

    Args:
        value: which of precision, recall and F1 is the number; the others are parts. Precision, the share of the
            response that stands in the evidence, says most of hallucination, and is what Kang et al. compare with
            people's labels (Table 6); recall and F1 sink with the length of the evidence.
        mode: `unicode` compares our own words, in every script. `paper` compares runs of a-z and 0-9 in lower case,
            as `torchmetrics` and `rouge-score` do, so that it gives 0 in scripts other than Latin.
        stopwords: whether stop words are left out of both sides, by the list of the response's language; a language
            without a list keeps all (the part `stop_list` is then 0). Or the words themselves.
        passages: `joined` takes all passages for one reference, as Kang et al. take an article; `best` takes each for a
            reference of its own, and the one whose F1 is best.

    Raises:
        UsageError: a setting that is none of these.
    """

    stopwords_by_default: ClassVar[bool] = False

    def __init__(
        self,
        value: Value = "precision",
        mode: Mode = "unicode",
        stopwords: bool | Sequence[str] | None = None,
        passages: Passages = "joined",
    ) -> None:
        for option, given, choices in (("value", value, Value), ("mode", mode, Mode), ("passages", passages, Passages)):
            one_of(option, given, get_args(choices))
        if isinstance(stopwords, str):
            raise UsageError("stopwords is true, false or a list of words, not one text.")
        self.value, self.mode, self.passages = value, mode, passages
        self.stopwords = self.stopwords_by_default if stopwords is None else stopwords
        own = None if isinstance(self.stopwords, bool) else self.stopwords
        self._own = None if own is None else frozenset(form for word in own for form in tokens(word))
        left_out = stop_words_revision() if self.stopwords is True else None
        if self._own is not None:
            left_out = f"own-{digest(sorted(self._own))[:8]}"
        self.signature = signature(
            scorer=self.name, value=value, mode=mode, stopwords=left_out, passages=passages, unit="word"
        )

    def measure(self, sample: Sample) -> Measured | NotScored:
        """P, R and F1 as parts, with the counts; all are 0 where nothing is in common, as in an empty response."""
        language = response_language(sample) if self.stopwords is True else sample.language
        without = self._left_out(language)
        response = self._words(sample.response, language, without)
        evidence = [self._words(passage.text, language, without) for passage in sample.evidence]
        if self.passages == "joined":
            overlap = self._overlap(response, evidence)
        else:
            candidates = (self._overlap(response, [passage]) for passage in evidence)
            overlap = max(candidates, key=lambda candidate: candidate.f1)
        parts = overlap.parts()
        if self.stopwords is True:
            parts["stop_list"] = float(without is not None)
        return Measured(getattr(overlap, self.value), parts, language)

    def _left_out(self, language: str | None) -> frozenset[str] | None:
        if self._own is not None:
            return self._own
        return stop_words(language) if self.stopwords and language else None

    def _words(self, text: str, language: str | None, without: frozenset[str] | None) -> tuple[str, ...]:
        if self.mode == "paper":
            return ascii_tokens(_blanked(text, language, without) if without else text)
        words = tokens(text, language)
        return tuple(word for word in words if word not in without) if without else words

    @abstractmethod
    def _overlap(self, response: Sequence[str], evidence: Sequence[Sequence[str]]) -> Overlap:
        """The overlap with passages that count as one reference."""


def _blanked(text: str, language: str | None, without: frozenset[str]) -> str:
    """The text without its stop words, each of which leaves a space."""
    parts, last = [], 0
    for word, start, end in tokens_with_places(text, language):
        if word in without:
            parts.append(text[last:start])
            last = end
    return " ".join([*parts, text[last:]])


class Rouge1(_Rouge):
    """ROUGE-1: words in common, each as often as both hold it; by default without stop words, as in Kang et al.

    Settings are those of `_Rouge`: `value`, `mode`, `stopwords`, `passages`.
    """

    name = "rouge-1@1"
    stopwords_by_default = True

    def _overlap(self, response: Sequence[str], evidence: Sequence[Sequence[str]]) -> Overlap:
        return n_gram_overlap(response, evidence, 1)


class Rouge2(_Rouge):
    """ROUGE-2: pairs of neighbouring words in common; no pair crosses from one passage to the next.

    Settings are those of `_Rouge`: `value`, `mode`, `stopwords`, `passages`.
    """

    name = "rouge-2@1"

    def _overlap(self, response: Sequence[str], evidence: Sequence[Sequence[str]]) -> Overlap:
        return n_gram_overlap(response, evidence, 2)


class RougeL(_Rouge):
    """ROUGE-L: the longest common subsequence of words (sentence level: each side is one sequence).

    Settings are those of `_Rouge`: `value`, `mode`, `stopwords`, `passages`.
    """

    name = "rouge-l@1"

    def _overlap(self, response: Sequence[str], evidence: Sequence[Sequence[str]]) -> Overlap:
        joined = [word for passage in evidence for word in passage]
        return Overlap(longest_common_subsequence(response, joined), len(response), len(joined))
