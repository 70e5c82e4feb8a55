"""Shared words: tokens, stop words and overlaps, and ROUGE-1, -2, -L and -Lsum in every script (Lin 2004)."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, get_args

from veriglot.errors import UsageError
from veriglot.judging.base import NotScored, text_language
from veriglot.plugins import read_package_data
from veriglot.records import Sample, Status
from veriglot.records.languages import find_language
from veriglot.scorers.base import RawScore, SampleScorer, check_choice
from veriglot.signatures import digest, signature
from veriglot.text.normalization import fold, normalise
from veriglot.text.segmentation import sentences, word_bounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Parts = Sequence[Sequence[str]]  # of a text, as words


__all__ = ["Overlap", "Value", "agreement", "check_options", "stop_words", "tokens", "tokens_with_offsets"]


Value = Literal["precision", "recall", "f1"]


class Overlap(NamedTuple):
    """The overlap of a response and its evidence, in counts.

    Attributes:
        matched: units in both.
        response: units of the response.
        evidence: units of the evidence.
    """

    matched: int
    response: int
    evidence: int

    @property
    def precision(self) -> float:
        """The share of the response's units that are in the evidence, 0 to 1; 0 if it has none."""
        return self.matched / self.response if self.response else 0.0

    @property
    def recall(self) -> float:
        """The share of the evidence's units that are in the response, 0 to 1; 0 if it has none."""
        return self.matched / self.evidence if self.evidence else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 0 if nothing is shared."""
        both = self.response + self.evidence
        return 2 * self.matched / both if both else 0.0

    def parts(self) -> dict[str, float]:
        """P, R and F1, and their counts."""
        shares = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        return shares | {name: float(count) for name, count in self._asdict().items()}


def _n_grams(words: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[i:] for i in range(n)), strict=False)


def longest_common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest common subsequence of words."""
    shorter, longer = sorted((first, second), key=len)
    last = (1 << len(shorter)) - 1
    for row in _lcs_rows(shorter, longer):
        last = row
    return len(shorter) - last.bit_count()


def _lcs_rows(first: Sequence[str], second: Sequence[str]) -> Iterator[int]:
    """The rows of the table of dynamic programming, one per word of `second`.

    A row is one integer with one bit per word of `first` (Hyyrö 2004), zero where the length grows, so that a step is
    one addition: about a microsecond for a response of some hundred words.
    """
    places: dict[str, int] = {}
    for index, word in enumerate(first):
        places[word] = places.get(word, 0) | 1 << index
    full = row = (1 << len(first)) - 1
    for word in second:
        met = places.get(word)
        if met is not None:
            met &= row
            row = ((row + met) | (row - met)) & full
        yield row


def _common_words(response: Sequence[str], evidence: Sequence[str]) -> set[int]:
    """Indices in `evidence` of a longest common subsequence: of several, the one that `rouge-score` finds."""
    if set(response).isdisjoint(evidence):
        return set()
    rows = [(1 << len(response)) - 1, *_lcs_rows(response, evidence)]

    def length(i: int, j: int) -> int:
        return j - (rows[i] & (1 << j) - 1).bit_count()

    i, j = len(evidence), len(response)
    result = set()
    while i and j:
        if evidence[i - 1] == response[j - 1]:
            i, j = i - 1, j - 1
            result.add(i)
        elif length(i, j - 1) > length(i - 1, j):
            j -= 1
        else:
            i -= 1
    return result


def check_options(value: str, empty: float | None) -> None:
    """Raise an error for an invalid `value` or `empty`.

    Raises:
        UsageError: `value` is neither precision nor recall nor F1, or `empty` is not between 0 and 1.
    """
    check_choice("value", value, get_args(Value))
    if empty is not None and not 0 <= empty <= 1:
        raise UsageError(f"empty is the value where there is nothing to compare, between 0 and 1, not {empty}.")


def agreement(
    overlap: Overlap, which: Value, empty: float | None, kind: str, language: str | None
) -> RawScore | NotScored:
    """Precision, recall or F1 of an overlap, with its parts; a share with denominator 0 is undefined.

    Its value is then `empty`, or, if that is None, the sample is not scored: it has nothing of that `kind`.
    """
    sides = {"precision": overlap.response, "recall": overlap.evidence, "f1": overlap.response + overlap.evidence}
    if sides[which]:
        return RawScore(getattr(overlap, which), overlap.parts(), language)
    if empty is not None:
        return RawScore(empty, overlap.parts(), language)
    where = {"precision": "the response", "recall": "the evidence", "f1": "either text"}[which]
    reason = f"no {kind} in {where}, so there is nothing to compare (empty= sets a value)"
    return NotScored(Status.NOTHING_TO_COMPARE, reason)


# The lists are in `stop_words.json`; `tools/build_stop_words.py` has their sources. Their
# lengths differ as their sources do, from some 30 words to 1,300.


@cache
def _table() -> dict[str, frozenset[str]]:
    lists = read_package_data(__package__, "stop_words.json", dict[str, str])
    return {tag: frozenset(words.split()) for tag, words in lists.items()}


@cache
def stop_words(tag: str) -> frozenset[str] | None:
    """The stop words of a language, in the form of `veriglot.scorers.rouge.tokens`; None if there is no list.

    Args:
        tag: a BCP 47 tag or another name of the language; a script other than the usual one (`sr-Latn`) has its own
            list.
    """
    entry = find_language(tag)
    return None if entry is None else _table().get(entry.tag) or _table().get(entry.base)


@cache
def _stop_words_revision() -> str:
    """Eight hexadecimal digits, a hash of all lists."""
    return digest([files(__package__).joinpath("stop_words.json").read_bytes()])[:8]


_ASCII = re.compile("[a-z0-9]+")


@lru_cache(32)  # for the other responses to a query, or the samples of one article
def tokens(text: str, language: str | None = None) -> tuple[str, ...]:
    """The words of a text, normalised.

    Composition, case, width, digits, Arabic and Hebrew letter forms, vowel marks, invisible characters and
    traditional or simplified characters are ignored; accents are not.

    Args:
        text: any text.
        language: a BCP 47 tag, or None; see `veriglot.text.word_bounds`.
    """
    plain = normalise(text, fold_case=False).text
    folded = fold(plain)
    return tuple(folded[start:end] for start, end in word_bounds(plain, language).tolist())


def tokens_with_offsets(text: str, language: str | None = None) -> list[tuple[str, int, int]]:
    """The words of a text as in `tokens`, each with its range in the text: half-open, in code points."""
    return [(_form(text[start:end]), start, end) for start, end in word_bounds(text, language).tolist()]


@lru_cache(1 << 16)
def _form(word: str) -> str:
    return fold(normalise(word, fold_case=False).text)


def ascii_tokens(text: str) -> tuple[str, ...]:
    """Runs of a-z and 0-9 of the text in lower case, as in `rouge-score` and `torchmetrics` without a stemmer.

    Every other character separates words: `für` is `f` and `r`, and a Thai text has none.
    """
    return tuple(_ASCII.findall(text.lower()))


Mode = Literal["unicode", "paper"]
Passages = Literal["joined", "best"]


class _Rouge(SampleScorer):
    """The common part of the variants; each counts the overlap of two lists of words in its own way.

    Args:
        value: precision, recall or F1 as the score; the others are parts. Precision, the share of the response that is
            in the evidence, is most informative about hallucination, and is what Kang et al. compare with people's
            labels (Table 6); recall and F1 fall with the length of the evidence.
        mode: `unicode` compares our own words, in every script. `paper` compares runs of a-z and 0-9 in lower case,
            as `torchmetrics` and `rouge-score` do, so that it gives 0 in scripts other than Latin.
        stopwords: whether to remove stop words from both sides, by the list of the response's language; without a list
            nothing is removed (the part `stop_list` is then 0). Or the words themselves.
        passages: `joined` uses all passages as one reference, as Kang et al. use an article; `best` uses each as a
            reference of its own, and the one with the best F1.

    Raises:
        UsageError: an invalid setting.
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
            check_choice(option, given, get_args(choices))
        if isinstance(stopwords, str):
            raise UsageError("stopwords is true, false or a list of words, not one text.")
        self.value, self.mode, self.passages = value, mode, passages
        self.stopwords = self.stopwords_by_default if stopwords is None else stopwords
        own = None if isinstance(self.stopwords, bool) else self.stopwords
        self._own = None if own is None else frozenset(form for word in own for form in tokens(word))
        left_out = _stop_words_revision() if self.stopwords is True else None
        if self._own is not None:
            left_out = f"own-{digest(sorted(self._own))[:8]}"
        self.signature = signature(
            scorer=self.name, value=value, mode=mode, stopwords=left_out, passages=passages, unit="word"
        )

    def measure(self, sample: Sample) -> RawScore | NotScored:
        """P, R and F1 as parts, with the counts; all are 0 if nothing is shared, as for an empty response."""
        language = text_language(sample.response, sample.language) if self.stopwords is True else sample.language
        without = self._left_out(language)
        response = self._parts(sample.response, language, without)
        evidence = [self._parts(passage, language, without) for passage in sample.passages]
        if self.passages == "joined":
            overlap = self._overlap(response, [part for passage in evidence for part in passage])
        else:
            overlap = max((self._overlap(response, passage) for passage in evidence), key=lambda each: each.f1)
        parts = overlap.parts()
        if self.stopwords is True:
            parts["stop_list"] = float(without is not None)
        return RawScore(getattr(overlap, self.value), parts, language)

    def _left_out(self, language: str | None) -> frozenset[str] | None:
        if self._own is not None:
            return self._own
        return stop_words(language) if self.stopwords and language else None

    def _words(self, text: str, language: str | None, without: frozenset[str] | None) -> tuple[str, ...]:
        if self.mode == "paper":
            return ascii_tokens(_blanked(text, language, without) if without else text)
        words = tokens(text, language)
        return tuple(word for word in words if word not in without) if without else words

    def _parts(self, text: str, language: str | None, without: frozenset[str] | None) -> list[tuple[str, ...]]:
        """The words of the parts of a text that are compared separately; by default one part."""
        return [self._words(text, language, without)]

    @abstractmethod
    def _overlap(self, response: Parts, evidence: Parts) -> Overlap:
        """The overlap of the response's parts with the parts of passages that are one reference."""


def _blanked(text: str, language: str | None, without: frozenset[str]) -> str:
    """The text with each stop word replaced by a space."""
    parts, last = [], 0
    for word, start, end in tokens_with_offsets(text, language):
        if word in without:
            parts.append(text[last:start])
            last = end
    return " ".join([*parts, text[last:]])


class Rouge1(_Rouge):
    """ROUGE-1: shared words, counted as often as both have them; by default without stop words, as in Kang et al.

    Settings are those of `_Rouge`: `value`, `mode`, `stopwords`, `passages`.
    """

    name = "rouge-1@1"
    stopwords_by_default = True
    _n: ClassVar[int] = 1

    def _overlap(self, response: Parts, evidence: Parts) -> Overlap:
        """Shared n-grams, counted as often as both have them (Lin 2004, section 2); none crosses passages."""
        response_counts = Counter(_n_grams(response[0], self._n))
        evidence_counts = Counter(gram for passage in evidence for gram in _n_grams(passage, self._n))
        return Overlap((response_counts & evidence_counts).total(), response_counts.total(), evidence_counts.total())


class Rouge2(Rouge1):
    """ROUGE-2: shared pairs of adjacent words; no pair crosses from one passage to the next.

    Settings are those of `_Rouge`: `value`, `mode`, `stopwords`, `passages`.
    """

    name = "rouge-2@1"
    stopwords_by_default = False
    _n = 2


class RougeL(_Rouge):
    """ROUGE-L: the longest common subsequence of words (sentence level: each side is one sequence).

    Settings are those of `_Rouge`: `value`, `mode`, `stopwords`, `passages`.
    """

    name = "rouge-l@1"

    def _overlap(self, response: Parts, evidence: Parts) -> Overlap:
        joined = [word for passage in evidence for word in passage]
        return Overlap(longest_common_subsequence(response[0], joined), len(response[0]), len(joined))


class RougeLsum(_Rouge):
    """ROUGE-L of summaries (Lin 2004, section 3.2): common subsequences of any two sentences of response and evidence.

    For every sentence of the evidence, the words of its longest common subsequences with the response's sentences
    count, each once and no more often than in either text, as in `rouge-score` and `torchmetrics`. Settings
    are those of `_Rouge`: `value`, `mode`, `stopwords`, `passages`.
    """

    name = "rouge-lsum@1"

    def _parts(self, text: str, language: str | None, without: frozenset[str] | None) -> list[tuple[str, ...]]:
        return [self._words(text[start:end], language, without) for start, end in sentences(text, language)]

    def _overlap(self, response: Parts, evidence: Parts) -> Overlap:
        of_response, of_evidence = (Counter(word for part in parts for word in part) for parts in (response, evidence))
        sizes = of_response.total(), of_evidence.total()
        matched = 0
        for passage in evidence:
            union = set().union(*(_common_words(part, passage) for part in response))
            for word in (passage[index] for index in sorted(union)):
                if of_response[word] > 0 and of_evidence[word] > 0:
                    matched += 1
                    of_response[word] -= 1
                    of_evidence[word] -= 1
        return Overlap(matched, *sizes)
