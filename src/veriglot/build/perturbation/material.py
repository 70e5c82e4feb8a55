"""What the articles of one language give to put in place of something else: values, words, sentences."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from veriglot.build.perturbation.phrases import phrases_of
from veriglot.build.perturbation.quoting import quotable
from veriglot.build.perturbation.values import ending, has_case, values_of
from veriglot.text import fold, words
from veriglot.text.spacing import space_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from veriglot.build.perturbation.articles import Article
    from veriglot.build.perturbation.values import Value

__all__ = ["Material"]

_RARE, _COMMON = 0.02, 0.15  # shares of the articles that a rare word stands in at the most, and a middling one
_SYLLABLES = frozenset({"vi"})  # where spaces part syllables, one of which is seldom a word
_SENTENCES = 5  # of an article, that give what is put elsewhere
_ENDS = frozenset(".!?…。！？।؟۔.๚」”»\"')）")
_OPENING = frozenset("\"'“„«»‘「『《(（¿¡")
_MARKUP = frozenset("{}[]\\#|<>=*_^~\n`•●◦■→⟨")  # of formulas, headings, notes
_CLOSED = {"(": ")", "（": "）", "「": "」", "《": "》", "«": "»"}
_LETTERS = 0.75  # of a sentence that is worth quoting
_LAST_WORD = re.compile(r"(\w+)\.$")
_SHORTEST_LAST = 3  # code points of the last word of a sentence that ends in a full stop
_ADJECTIVE = 5  # code points: a shorter word before a noun is no adjective
_SHORTEST = 4  # code points of a word that may be exchanged, where words have spaces between them


class Material:
    """Articles of one language with what can be taken out of them.

    Args:
        language: BCP 47 tag.
        articles: in order; equal articles make equal material.
    """

    def __init__(self, language: str, articles: list[Article]) -> None:
        self.language = language
        self.articles = articles
        self.space = space_of(language)
        self._frequency: Counter[str] = Counter()
        self._known: dict[int, frozenset[str]] = {}
        for number in range(len(articles)):
            self._frequency.update(self.known(number))
        self._repeated: dict[int, frozenset[str]] = {}
        self._quotable: dict[int, list[list[str]]] = {}

    def known(self, number: int) -> frozenset[str]:
        """The folded words of an article."""
        if number not in self._known:
            folded = (fold(text) for text in self.articles[number].texts)
            self._known[number] = frozenset(text[s:e] for text in folded for s, e in words(text, self.language))
        return self._known[number]

    def sentences(self, number: int) -> list[list[str]]:
        """The whole sentences of an article that can be quoted, passage by passage."""
        if number not in self._quotable:
            found: list[list[str]] = []
            broken = False  # whether the passage before ended within a sentence, which then goes on in this one
            for text in self.articles[number].texts:
                listed = quotable(text, self.language)
                first = 1 if broken and listed and text.lstrip().startswith(listed[0]) else 0
                found.append([one for one in listed[first:] if _whole(one)])
                broken = _breaks_off(text.rstrip())
            self._quotable[number] = found
        return self._quotable[number]

    def rare(self, word: str) -> bool:
        """Whether a folded word stands in few articles."""
        return self._frequency[word] <= max(2, _RARE * len(self.articles))

    def values(self, sentence: str, number: int) -> list[Value]:
        """The names, numbers and dates of a sentence of an article."""
        is_name = self.rare if has_case(self.language) else self._terms(number).__contains__
        return values_of(sentence, self.language, is_name, self.articles[number].title, self._is_noun)

    def _terms(self, number: int) -> frozenset[str]:
        """Rare words of titles, where no capital tells names; of articles without titles, those that one repeats."""
        if number not in self._repeated:
            folded = (fold(text) for text in self.articles[number].texts)
            counts = Counter(text[s:e] for text in folded for s, e in words(text, self.language))
            self._repeated[number] = frozenset(
                word
                for word, n in counts.items()
                if self.rare(word) and (word in self._titled if self._titled else n > 1)
            )
        return self._repeated[number]

    @cached_property
    def _titled(self) -> frozenset[str]:
        """The folded words of all titles."""
        titles = (fold(article.title) for article in self.articles)
        return frozenset(title[s:e] for title in titles for s, e in words(title, self.language))

    def _is_noun(self, before: str, word: str) -> bool:
        """Whether a capitalised word is a noun and no name, in a language that writes both with capital letters."""
        phrases = phrases_of(self.language)
        if phrases is None or not phrases.determiners:
            return False
        lowered = word.casefold()
        return (
            before.casefold() in phrases.determiners
            or (before.islower() and len(before) >= _ADJECTIVE and before.endswith(phrases.noun_after))
            or lowered.endswith(phrases.noun_endings)
            or lowered in self._determined
        )

    @cached_property
    def _determined(self) -> frozenset[str]:
        """The words that stand after a determiner anywhere in the articles, casefolded."""
        phrases = phrases_of(self.language)
        found: set[str] = set()
        for text in (text for article in self.articles for text in article.texts):
            said = [text[s:e].casefold() for s, e in words(text, self.language)]
            found.update(
                after for before, after in pairwise(said) if phrases is not None and before in phrases.determiners
            )
        return frozenset(found)

    def middling(self, sentence: str) -> list[tuple[int, int]]:
        """Words that are neither names nor numbers, neither rare nor in every article: verbs, nouns, adjectives."""
        if self.language in _SYLLABLES:
            return []
        least, most = max(2, _RARE * len(self.articles)), max(3, _COMMON * len(self.articles))
        shortest = _SHORTEST if self.space else 2
        found = []
        for start, end in words(sentence, self.language):
            word = sentence[start:end]
            if end - start < shortest or not word.isalpha() or (has_case(self.language) and not word.islower()):
                continue
            if least < self._frequency[fold(word)] <= most:
                found.append((start, end))
        return found

    def other_value(self, value: Value, number: int, rng: Random) -> str | None:
        """A value of the same shape from another article that the own one does not hold; None where there is none."""
        known = self.known(number)
        texts = self._values.get((value.kind, value.shape)) or ()
        if not texts and value.kind == "name":
            texts = self._values.get(("name", value.shape.rpartition(" ")[0])) or ()
        for text in rng.sample(texts, min(len(texts), 8)):
            folded = fold(text)
            if not all(folded[s:e] in known for s, e in words(folded, self.language)):
                return text
        return None

    def other_word(self, word: str, number: int, rng: Random) -> str | None:
        """A middling word with the same ending that the article does not hold; None where there is none."""
        texts = self._middling.get(ending(word, self.language)) or ()
        own = fold(word)
        for text in rng.sample(texts, min(len(texts), 12)):
            folded = fold(text)
            if folded not in self.known(number) and abs(len(text) - len(word)) <= 3 and folded[:4] != own[:4]:
                return text
        return None

    def other_sentence(self, number: int, rng: Random) -> tuple[int, str] | None:
        """A sentence of another article, with that article's number, that says what this one does not; or None."""
        for _ in range(12):
            other = rng.randrange(len(self.articles))
            listed = [one for some in self.sentences(other) for one in some]
            if other == number or not listed:
                continue
            sentence = rng.choice(listed)
            folded = fold(sentence)
            said = [folded[s:e] for s, e in words(folded, self.language)]
            strange = [word for word in said if word not in self.known(number) and self.rare(word)]
            if len(strange) >= 2:
                return other, sentence
        return None

    @cached_property
    def _values(self) -> dict[tuple[str, str], list[str]]:
        """Values of all articles by kind and shape; names also by their shape without the ending."""
        found: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        for number, sentence in self._sampled():
            for value in self.values(sentence, number):
                text = sentence[value.start : value.end]
                found[value.kind, value.shape][text] = None
                if value.kind == "name":
                    found["name", value.shape.rpartition(" ")[0]][text] = None
        return {key: list(texts) for key, texts in found.items()}

    @cached_property
    def _middling(self) -> dict[str, list[str]]:
        found: dict[str, dict[str, None]] = defaultdict(dict)
        for _, sentence in self._sampled():
            for start, end in self.middling(sentence):
                found[ending(sentence[start:end], self.language)][sentence[start:end]] = None
        return {key: list(texts) for key, texts in found.items()}

    def _sampled(self) -> Iterator[tuple[int, str]]:
        for number in range(len(self.articles)):
            listed = [one for some in self.sentences(number) for one in some]
            for sentence in listed[:_SENTENCES]:
                yield number, sentence


def _whole(sentence: str) -> bool:
    """Whether a sentence looks whole: it ends as sentences do, its brackets close, and most of it is letters."""
    if _breaks_off(sentence) or sentence[0].islower() or any(mark in sentence for mark in _MARKUP):
        return False
    if any(sentence.count(one) != sentence.count(other) for one, other in _CLOSED.items()):
        return False
    if not (sentence[0].isalnum() or sentence[0] in _OPENING):
        return False
    letters = sum(char.isspace() or unicodedata.category(char)[0] in "LM" for char in sentence)
    return letters >= _LETTERS * len(sentence)


def _breaks_off(text: str) -> bool:
    """Whether a text ends within a sentence: without a mark, or after a number (`20.`) or a short word (`ca.`)."""
    if text[-1:] not in _ENDS:
        return text[-1:].isascii() or not text[-1:].isalpha()  # Thai sets no mark
    if text[-1] != ".":
        return False
    last = _LAST_WORD.search(text)
    return last is not None and (len(last[1]) < _SHORTEST_LAST or last[1].isdecimal())
