"""Questions made by rule out of parallel paragraphs: a sentence of one language, a few words of it left out.

People's questions are dear: a parallel set has a few to a paragraph, and a reader soon knows them by heart. What stands
at a gap can be asked of every name, number and phrase, and to find it in the paragraph's other languages takes reading
too. The words left out are chosen in one language and laid onto the others by alignment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from veriglot.build.translating.alignment import side_of
from veriglot.build.translating.projection import project
from veriglot.text import sentences, words
from veriglot.text.spacing import space_of
from veriglot.train.grounding.reading import Answer
from veriglot.train.semantic.parallel import Paragraph

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence, Set
    from random import Random

    from veriglot.build.translating.alignment import Aligner, Side
    from veriglot.train.grounding.commonness import Commonness

__all__ = ["Gaps", "clozes", "gaps"]

_SPANS = 10  # of a paragraph
_RARE = 9.0  # below 12 by how common a word is
_LONGEST = 4  # such words in a row; where another follows one word later, up to there
_SURE = 0.6  # quality of a projection that is taken
_TAKEN = 0.5  # share of gaps that are asked for at a time
_KEPT = (5, 14)  # words of the sentence that a question keeps, at least and at most
_DROPPED = 0.15  # share of these that are left out too
_FRONTED = 0.4  # share of questions with the gap at the front
_GAPS = ("…", "___", "?", "")
_ENDS = ("?", "?", "")


@dataclass(frozen=True)
class Gaps:
    """What can be left out of a paragraph.

    Attributes:
        paragraph: the paragraph.
        places: language to number of the gap to half-open code points of the passage.
    """

    paragraph: Paragraph
    places: Mapping[str, Mapping[int, tuple[int, int]]]


def gaps(found: Sequence[Paragraph], aligner: Aligner, commonness: Commonness, rng: Random) -> Iterator[Gaps]:
    """What can be left out of each paragraph, in English or its first language, and where that stands in the others.

    Words that stand in a passage twice, or whose place in a translation is not sure, are not taken there.
    """
    for paragraph in found:
        pivot = "en" if "en" in paragraph.versions else min(paragraph.versions)
        sides = {tag: side_of(paragraph.passage(tag), tag) for tag in paragraph.versions}
        spans = dict(enumerate(_spans(sides[pivot], commonness, rng)))
        places = {pivot: spans}
        for tag, side in sides.items():
            if tag != pivot:
                places[tag] = _laid(sides[pivot], side, spans, aligner)
        yield Gaps(paragraph, {tag: there for tag, there in places.items() if there})


def _spans(side: Side, commonness: Commonness, rng: Random) -> list[tuple[int, int]]:
    """Numbers, names and rare words, or a few words between two of them, that do not overlap: half-open."""
    bounds = list(side.words)
    telling = _telling(side, commonness)
    starts = [nth for nth, tells in enumerate(telling) if tells]
    rng.shuffle(starts)
    taken: set[int] = set()
    found = []
    for first in starts:
        last = first
        while last + 1 < len(bounds) and telling[last + 1] and _beside(side, last) and last + 1 - first < _LONGEST:
            last += 1
        further = last + rng.choice((0, 0, 0, 2))
        if further < len(bounds) and telling[further] and all(_beside(side, nth) for nth in range(last, further)):
            last = further
        start, end = bounds[first][0], bounds[last][1]
        if taken.isdisjoint(range(first - 1, last + 2)) and side.text.count(side.text[start:end]) == 1:
            taken.update(range(first, last + 1))
            found.append((start, end))
        if len(found) == _SPANS:
            break
    return sorted(found)


def _telling(side: Side, commonness: Commonness) -> list[bool]:
    """Whether each word is a number, a name as its capital says, or rare."""
    bounds = list(side.words)
    begins = {start for start, _ in sentences(side.text, side.tag)}
    return [
        tells > _RARE
        or any(c.isdigit() for c in side.text[start:end])
        or (side.text[start].isupper() and start not in begins)
        for tells, (start, end) in zip(12.0 - commonness.of(side.text, bounds), bounds, strict=True)
    ]


def _beside(side: Side, nth: int) -> bool:
    """Whether nothing but a space, a hyphen or an apostrophe, if that, stands between a word and the next."""
    return side.text[side.words[nth][1] : side.words[nth + 1][0]] in {"", " ", "-", "'", "’"}


def _laid(
    source: Side, target: Side, spans: Mapping[int, tuple[int, int]], aligner: Aligner
) -> dict[int, tuple[int, int]]:
    """Where each span stands in a translation, of those whose place is sure and whose words stand there once."""
    aligned = aligner.align(source, target)
    found = {}
    for number, span in spans.items():
        there = project(*aligned, span)
        if there is not None and len(there.parts) == 1 and there.quality >= _SURE:
            start, end = there.parts[0]
            if target.text.count(target.text[start:end]) == 1:
                found[number] = start, end
    return found


def clozes(found: Sequence[Gaps], rng: Random) -> list[Paragraph]:
    """The paragraphs with a question about some of their gaps, in every language; each call draws and words anew."""
    made = []
    for one in found:
        taken = {number for number in range(_SPANS) if rng.random() < _TAKEN}
        versions = {tag: answers for tag in one.places if (answers := list(_asked(one, tag, taken, rng)))}
        if len(versions) > 1:
            made.append(Paragraph(one.paragraph.group, versions))
    return made


def _asked(one: Gaps, tag: str, taken: Set[int], rng: Random) -> Iterator[Answer]:
    """The questions about a paragraph in one language; those about a gap have the same id in all of them."""
    passage, like = one.paragraph.passage(tag), one.paragraph.versions[tag][0]
    first = one.paragraph.passage(min(one.paragraph.versions))
    bounds = sentences(passage, tag)
    for number in sorted(taken & one.places[tag].keys()):
        start, end = one.places[tag][number]
        low, high = next(((low, high) for low, high in bounds if low <= start < high), (0, len(passage)))
        question = _with_gap(passage[low:start], passage[end : max(high, end)], tag, rng)
        yield Answer(like.group, tag, passage, question, passage[start:end], f"gap {number} {first}", like.title)


def _with_gap(before: str, after: str, tag: str, rng: Random) -> str:
    """Some of the words around a gap, in their order."""
    kept = rng.randint(*_KEPT)
    ours, theirs = ([text[start:end] for start, end in words(text, tag)] for text in (before, after))
    first = min(len(ours), max(rng.randint(0, kept), kept - len(theirs)))
    nearest = ours[len(ours) - first :], theirs[: kept - first]
    ours, theirs = ([word for word in part if rng.random() >= _DROPPED] for part in nearest)
    gap = rng.choice(_GAPS)
    parts = [gap, *ours, *theirs] if rng.random() < _FRONTED else [*ours, gap, *theirs]
    return space_of(tag).join(part for part in parts if part) + rng.choice(_ENDS)
