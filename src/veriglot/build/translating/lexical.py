"""Alignment without a network: words that stay as they are, numbers by value, names by sound, a dictionary, places."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from veriglot.build.translating.alignment import Alignment, Link, Side, links_of
from veriglot.provenance import digest, signature
from veriglot.text import fold, normalise
from veriglot.text.spacing import space_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray


__all__ = ["LexicalAligner", "lexical_similarity"]

_NO_LETTER = re.compile("[^a-z]")
_INNER_VOWEL = re.compile("(?<=.)[aeiouyhw]")
_DOUBLED = re.compile(r"(.)\1+")
_SOUNDS = str.maketrans("ckqgjzxvbd", "kkkkyssfpt")  # spellings that scripts and languages exchange
_SHORTEST = 3  # sounds; shorter forms meet by chance
_ALIKE = 0.75
_LEAST = 0.5
_GUESSED = 0.25  # weight of a link that place alone suggests


class LexicalAligner:
    """Links words that can be recognised; those between two such words are guessed by their place, at a low weight.

    Args:
        dictionary: translations of words, by (source tag, target tag) and folded word.
        guess: whether places are guessed.

    Names are held against each other by their sound where the packages of the extra `semantic` are installed (anyascii,
    rapidfuzz); the signature says whether they are.
    """

    def __init__(
        self,
        dictionary: Mapping[tuple[str, str], Mapping[str, Sequence[str]]] | None = None,
        *,
        guess: bool = True,
    ) -> None:
        self._dictionary = {
            pair: {fold(word): frozenset(map(fold, others)) for word, others in table.items()}
            for pair, table in (dictionary or {}).items()
        }
        self._guess = guess
        plain = [
            [*pair, *sorted((word, *others) for word, others in t.items())]
            for pair, t in sorted((dictionary or {}).items())
        ]
        self.signature = signature(
            aligner="lexical",
            dictionary=digest([msgspec.json.encode(plain)])[:16] if dictionary else None,
            sounds=_sounds_available(),
            guess=guess,
        )

    def align(self, source: Side, target: Side) -> Alignment:
        """As `Aligner`. Where the target sets no spaces, words of the dictionary are cut out of it first."""
        table = self._dictionary.get((source.tag, target.tag), {})
        if table and not space_of(target.tag):
            target = _cut(target, {form for forms in table.values() for form in forms})
        links = links_of(lexical_similarity(source, target, table), least=_LEAST)
        if self._guess:
            links = sorted([*links, *_guessed(links, len(source.words), len(target.words))])
        return Alignment(source, target, links)


def _cut(side: Side, forms: Collection[str]) -> Side:
    """A text cut into forms of a dictionary, the longest first at each place; what lies between keeps its words."""
    longest = max(map(len, forms))
    found: list[tuple[int, int]] = []
    ends = {end for _, end in side.words}
    begun = at = 0
    while at <= len(side.text):
        sizes = range(min(longest, len(side.text) - at), 0, -1)
        size = next((size for size in sizes if fold(side.text[at : at + size]) in forms), 0)
        if (size or at in ends or at == len(side.text)) and any(map(str.isalnum, side.text[begun:at])):
            found.append((begun, at))
        if size:
            found.append((at, at + size))
        if size or at in ends or not side.text[at : at + 1].isalnum():
            begun = at + size if size or at in ends else at + 1
        at += size or 1
    return Side(side.text, side.tag, tuple(found))


def lexical_similarity(
    source: Side, target: Side, dictionary: Mapping[str, frozenset[str]] | None = None
) -> NDArray[np.float32]:
    """How alike words are by form, shape (source words, target words), 0 to 1; 0 where nothing can be said."""
    ours, theirs = [fold(word) for word in source.forms()], [fold(word) for word in target.forms()]
    found = np.zeros((len(ours), len(theirs)), np.float32)
    if not found.size:
        return found
    places: dict[str, list[int]] = {}
    for j, form in enumerate(theirs):
        for key in {form, number_of(form) or form}:
            places.setdefault(key, []).append(j)
    known = dictionary or {}
    for i, form in enumerate(ours):
        for key in {form, number_of(form) or form, *known.get(form, ())}:
            found[i, places.get(key, [])] = 1.0
    if _sounds_available():
        found = np.maximum(found, _by_sound(source.forms(), target.forms()))
    return found


@lru_cache(maxsize=1 << 16)
def number_of(word: str) -> str | None:
    """The digits of a number, in ASCII and without separators; None for what is none."""
    plain = normalise(word).text
    if not any(char.isdecimal() for char in plain) or any(char.isalpha() for char in plain):
        return None
    return re.sub(r"\D", "", plain)


@lru_cache(maxsize=1)
def _sounds_available() -> str | None:
    try:
        import anyascii  # noqa: F401
        import rapidfuzz
    except ImportError:
        return None
    return f"anyascii,rapidfuzz-{rapidfuzz.__version__}"


def _by_sound(ours: list[str], theirs: list[str]) -> NDArray[np.float32]:
    """How alike the sounds of words are that may be names: capitalised, or in a script without capitals."""
    from rapidfuzz import fuzz
    from rapidfuzz.process import cdist

    first, second = [_sounds(word) for word in ours], [_sounds(word) for word in theirs]
    rows = [i for i, form in enumerate(first) if len(form) >= _SHORTEST]
    columns = [j for j, form in enumerate(second) if len(form) >= _SHORTEST]
    found = np.zeros((len(ours), len(theirs)), np.float32)
    if rows and columns:
        alike = cdist(
            [first[i] for i in rows], [second[j] for j in columns],
            scorer=fuzz.ratio, score_cutoff=100 * _ALIKE, dtype=np.float32, workers=1,
        )  # fmt: skip
        found[np.ix_(rows, columns)] = alike / 100 * 0.95
    return found


@lru_cache(maxsize=1 << 16)
def _sounds(word: str) -> str:
    """The consonants of what may be a name, in Latin letters; nothing for any other word."""
    if word[:1].islower():
        return ""
    from anyascii import anyascii

    letters = _NO_LETTER.sub("", anyascii(word).lower()).replace("ph", "f").translate(_SOUNDS)
    return _DOUBLED.sub(r"\1", _INNER_VOWEL.sub("", letters))


def _guessed(links: Sequence[Link], n: int, m: int) -> list[Link]:
    """Links for words without any, between those of their neighbours, or by the share of the text before them."""
    if not n or not m:
        return []
    linked: dict[int, float] = {}
    for link in links:
        linked.setdefault(link.source, link.target)
    anchors = [(-1.0, -1.0), *((float(i), float(j)) for i, j in sorted(linked.items())), (float(n), float(m))]
    taken = {link.target for link in links}
    xs, ys = [x for x, _ in anchors], [y for _, y in anchors]
    found = []
    for i in range(n):
        if i not in linked:
            j = round(float(np.interp(i, xs, ys)))
            if 0 <= j < m and j not in taken:
                found.append(Link(i, j, _GUESSED))
    return found
