"""From parallel texts: right translations, and wrong ones of the kinds that translation systems make.

A system that hallucinates runs in circles (`repeated`), says something else altogether (`detached`), or says what the
source does not beside what it does (`inserted`). Raunak et al. (NAACL 2021) and Guerreiro et al. (EACL 2023) describe
these kinds; hat's guidelines count all of them as hallucination.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from veriglot.text import words
from veriglot.text.spacing import space_of
from veriglot.train.grounding.example import Example, Mark

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

    from veriglot.train.semantic.parallel import Parallel

__all__ = ["translations_of"]

_RIGHT, _REPEATED, _DETACHED = 0.4, 0.55, 0.7  # cumulative shares of the kinds; the rest is inserted
_TRIES = 20
_REPEATED_WORDS = (1, 2, 3, 4, 5)
_TIMES = (1, 2, 2, 3, 5, 8)
_INSERTED_WORDS = (1, 2, 3, 4, 6, 9, 14)
_AMONG, _BEHIND = 0.35, 0.65  # cumulative shares of the places of what is inserted; the rest replaces the end
_LEAST_KEPT = 3  # the end that is replaced begins after a third of the words

_Others = dict[str, list[tuple[str, str]]]  # language to group and text
_Said = tuple[str, list[Mark], str]  # text, marks, kind


def translations_of(texts: Sequence[Parallel], count: int, rng: Random) -> Iterator[Example]:
    """Up to `count` translations between two drawn languages of a drawn text; none where there are no texts."""
    others: _Others = defaultdict(list)
    for text in texts:
        for language, version in text.versions.items():
            others[language].append((text.group, version))
    for _ in range(count if texts else 0):
        text = rng.choice(texts)
        language, source = rng.sample(sorted(text.versions), 2)
        if not text.versions[language].strip() or not text.versions[source].strip():
            continue
        said, marks, kind = _said(text, language, others, rng)
        yield Example(
            kind, "parallel translations", text.group, language, said, (text.versions[source],), None, tuple(marks),
            evidence_language=source, translation=True,
        )  # fmt: skip


def _said(text: Parallel, language: str, others: _Others, rng: Random) -> _Said:
    version = text.versions[language]
    right: _Said = (version, [], "clean")
    way = rng.random()
    if way < _RIGHT:
        return right
    if way < _REPEATED:
        return _repeated(version, language, rng) or right
    other = _other(text.group, version, others[language], rng)
    if way < _DETACHED:
        return other, [Mark(0, len(other), "invented")], "detached"
    return _inserted(version, other, language, rng) or right


def _other(group: str, version: str, others: list[tuple[str, str]], rng: Random) -> str:
    """A text of another group, and another text, as a rule."""
    for _ in range(_TRIES):
        theirs, text = rng.choice(others)
        if theirs != group and text != version:
            break
    return text


def _phrase(text: str, lengths: tuple[int, ...], language: str, rng: Random) -> tuple[int, int]:
    """Some words of a text in a row, as half-open code points; the text has one at least."""
    bounds = words(text, language)
    count = min(len(bounds), rng.choice(lengths))
    first = rng.randrange(len(bounds) - count + 1)
    return bounds[first][0], bounds[first + count - 1][1]


def _repeated(text: str, language: str, rng: Random) -> _Said | None:
    """A phrase said again and again, the rest of the sentence behind it or not; None for two words or fewer."""
    if len(words(text, language)) < 3:
        return None
    start, end = _phrase(text, _REPEATED_WORDS, language, rng)
    again = (space_of(language) + text[start:end]) * rng.choice(_TIMES)
    rest = text[end:] if rng.random() < 0.5 else ""
    return text[:end] + again + rest, [Mark(end, end + len(again), "invented")], "repeated"


def _inserted(text: str, other: str, language: str, rng: Random) -> _Said | None:
    """Words of another text among those of this one, behind them, or in place of their end."""
    bounds = words(text, language)
    if len(words(other, language)) < 2 or not bounds:
        return None
    phrase = other[slice(*_phrase(other, _INSERTED_WORDS, language, rng))]
    space = space_of(language)
    way = rng.random()
    if way < _BEHIND:
        place = rng.choice(bounds)[1] if way < _AMONG else bounds[-1][1]
        rest = text[place:]
    else:
        place, space, rest = rng.choice(bounds[len(bounds) // _LEAST_KEPT :])[0], "", ""
    start = place + len(space)
    marks = [Mark(start, start + len(phrase), "invented")]
    return text[:place] + space + phrase + rest, marks, "inserted"
