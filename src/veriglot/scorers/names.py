"""Name agreement: which names of the response are in the evidence too, by capital letters, across alphabets."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING

from anyascii import anyascii

from veriglot.judging.base import NotScored, text_language
from veriglot.plugins import read_package_data
from veriglot.records import Sample, Status
from veriglot.records.languages import find_language
from veriglot.scorers.base import RawScore, SampleScorer
from veriglot.scorers.rouge import check_options, stop_words, tokens_with_offsets
from veriglot.signatures import signature
from veriglot.text.segmentation import sentences
from veriglot.text.unicode import script_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


__all__ = []

_WITH_CASE = frozenset({"Latn", "Cyrl", "Grek", "Armn"})
_NOUNS_TOO = frozenset({"de", "lb", "nds"})  # every noun is capitalised
_MIN_LETTERS = 2  # minimum letters of a name
_STEM = 4  # minimum common initial letters of two forms of one name
_SHARE = 0.7  # minimum share of the shorter form in these letters
_ENDING = 4  # maximum difference in length of two forms
_MIN_CONSONANTS = 3  # minimum consonants to identify a name
_SOUNDS = read_package_data(__package__, "sounds.json", dict[str, str])
_SILENT = re.compile("(?<=.)[aeiouy]")
_NO_LETTER = re.compile("[^a-z]")
_DOUBLED = re.compile(r"(.)\1+")


class NameAgreement(SampleScorer):
    """The share of the response's names that are also in the evidence, 0 to 1.

    A name is a capitalised word that does not begin a sentence, is not a stop word, and is nowhere in lower case in the
    two texts; one that begins a sentence counts if it is also capitalised inside another. It matches a word of the
    evidence that is the same without accents, or begins the same way (Slavic, Baltic and Finnic names are inflected);
    across alphabets, one with the same consonants. So it needs no list of names and no model, and counts `French` as a
    name.

    Responses in scripts without capital letters, and in German, which capitalises all nouns, are
    `unsupported_language`, and so is evidence in a script other than Latin, Cyrillic, Greek or Armenian. A response
    without names is `nothing_to_compare`, unless `empty` gives its value.

    Args:
        empty: the value of a response that has no names, 0 to 1.

    Raises:
        UsageError: `empty` is out of range.
    """

    name = "name-agreement@2"

    def __init__(self, empty: float | None = None) -> None:
        check_options("precision", empty)
        self.empty = empty
        self.signature = signature(scorer=self.name, empty=empty)

    def measure(self, sample: Sample) -> RawScore | NotScored:
        """The share, and the counts of distinct names: `matched` and `response`."""
        tag = text_language(sample.response, sample.language)
        passages = sample.passages
        refused = _refused(tag, sample.response, passages)
        if refused is not None:
            return NotScored(Status.UNSUPPORTED_LANGUAGE, refused)
        names = names_of(sample.response, passages, tag)
        if not names and self.empty is None:
            reason = "no name in the response, so there is nothing to compare (empty= sets a value)"
            return NotScored(Status.NOTHING_TO_COMPARE, reason)
        across = len({script_of(text) for text in (sample.response, *passages)} - {None}) > 1
        matched = len(_matched(names, {word for text in passages for word in _words(text)}, across=across))
        value = matched / len(names) if names else float(self.empty or 0.0)
        return RawScore(value, {"matched": float(matched), "response": float(len(names))}, tag)


def names_of(response: str, passages: Sequence[str], tag: str | None) -> frozenset[str]:
    """The distinct names of a response, casefolded; passages also show which words are capitalised inside sentences."""
    inside, first, lower = _by_case(response)
    capital = set(inside)
    for passage in passages:
        inside_passage, _, lower_passage = _by_case(passage)
        capital |= inside_passage
        lower = lower | lower_passage
    names = inside | (first & capital)
    left_out = lower | (stop_words(tag) or frozenset() if tag else frozenset())
    return frozenset(word for word in names - left_out if len(word) >= _MIN_LETTERS)


@lru_cache(16)
def _by_case(text: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Words capitalised inside a sentence, words capitalised at the start of one, and words in lower case."""
    inside = set[str]()
    first = set[str]()
    lower = set[str]()
    beginnings = iter([start for start, _ in sentences(text)])
    begins = next(beginnings, None)
    for word, start, _ in tokens_with_offsets(text):
        letter = text[start]
        if letter.isupper() or letter.istitle():
            (first if begins is not None and start >= begins else inside).add(word)
        elif letter.islower():
            lower.add(word)
        while begins is not None and begins <= start:
            begins = next(beginnings, None)
    return frozenset(inside), frozenset(first), frozenset(lower)


def _refused(tag: str | None, response: str, passages: Iterable[str]) -> str | None:
    """Why names cannot be recognised or compared; None if they can."""
    entry = find_language(tag) if tag else None
    if entry is not None and entry.base in _NOUNS_TOO:
        return f"in {entry.base} a capital letter tells no name from a noun"
    script = script_of(response)
    if script is not None and script not in _WITH_CASE:
        return f"the script {script} of the response has no capital letters"
    scripts = [known for known in map(script_of, passages) if known is not None]
    other = next((known for known in scripts if known not in _WITH_CASE), None)
    return f"names are not compared with evidence in the script {other}" if other else None


@lru_cache(16)
def _words(text: str) -> frozenset[str]:
    return frozenset(word for word, _, _ in tokens_with_offsets(text))


def _matched(names: Iterable[str], words: Iterable[str], *, across: bool) -> set[str]:
    """The names that match one of the words."""
    plain = {_latin(word) for word in words} - {""}
    consonants = {_consonants(word) for word in plain} if across else set()
    stems = defaultdict(list)
    for word in plain:
        stems[word[:_STEM]].append(word)
    matched = set()
    for name in names:
        latin = _latin(name)
        sounds = _consonants(latin) if across else ""
        heard = any(
            len(form) >= _MIN_CONSONANTS and form in consonants for form in (sounds, sounds[:-1])
        )  # or inflected
        if latin in plain or heard or any(_same_stem(latin, word) for word in stems[latin[:_STEM]]):
            matched.add(name)
    return matched


def _same_stem(first: str, second: str) -> bool:
    """Whether two forms differ only in their ending: they share most of the shorter one and have a similar length."""
    shorter, longer = sorted((first, second), key=len)
    shared = next((i for i, char in enumerate(shorter) if char != longer[i]), len(shorter))
    return shared >= max(_STEM, _SHARE * len(shorter)) and len(longer) - len(shorter) <= _ENDING


@lru_cache(1 << 16)
def _latin(word: str) -> str:
    return _NO_LETTER.sub("", anyascii(word).lower())


@lru_cache(1 << 16)
def _consonants(latin: str) -> str:
    for old, new in _SOUNDS.items():
        latin = latin.replace(old, new)
    return _DOUBLED.sub(r"\1", _SILENT.sub("", latin))
