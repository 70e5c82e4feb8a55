"""Swapped roles: binary relations in which response and evidence exchange the arguments, such as who succeeded whom.

`templates/` has a file for each language with templates that extract the arguments A and B of relations from a text.
Text that matches no template is not judged.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import compress, pairwise, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from veriglot.judging.phrases import patterns_of
from veriglot.plugins import read_package_data
from veriglot.records.languages import base_tag
from veriglot.text.normalization import fold, normalise, plain
from veriglot.text.segmentation import space_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from veriglot.arrays import Bools, Int64s, UInt64s

    Range = tuple[int, int]

__all__ = ["HANGUL", "HIRAGANA", "Words", "swapped_names"]


@dataclass(frozen=True)
class Words:
    """The words of a text.

    Attributes:
        text: the text.
        bounds: half-open code point ranges in order, shape (n, 2).
        sentence: the sentence of each word, ascending, shape (n,).
        stem: equal for words of one stem, shape (n,).
        content: whether each is a content word, neither frequent nor harmless, shape (n,).
    """

    text: str
    bounds: Int64s
    sentence: Int64s
    stem: UInt64s
    content: Bools

    @cached_property
    def written(self) -> list[str]:
        """The words as written."""
        return [self.text[start:end] for start, end in self.bounds.tolist()]

    def within(self, start: int, end: int) -> slice:
        """The words that a range of code points overlaps."""
        first, last = np.searchsorted(self.bounds[:, 1], start, "right"), np.searchsorted(self.bounds[:, 0], end)
        return slice(int(first), int(last))


_REACH = 60  # code points on either side of a template's words in which the arguments may stand
_LONGEST = 400  # most code points from the first to the last word of a template
_BEFORE = 160  # code points before them that may name what a pronoun refers to
_ENDS = re.compile(r"[.:](?!\d)|[!?;。！？；।۔\n]")
_NO_END = r"[^.:!?;。！？；।۔\n]"
_EDGE = r"\s!-/:-@\[-`{-~¡¿।॥·…•。、・「」『』（）【】！？：；，’"  # may precede or follow a word of a template
_ITEM = re.compile(r"^[ \t>*+•·–-]*\(?\d{0,3}[.)．、]?[ \t*]*(.{1,60}(?<![:：]))$", re.MULTILINE)
_HAN = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\u0e00-\u0e7f]")  # also kana and Thai: scripts without spaces
HANGUL = re.compile(r"[\uac00-\ud7af]")
HIRAGANA = re.compile(r"[\u3040-\u309f]+")
# Words with the marks that Python's `\w` does not match: vowel signs of Hebrew, Arabic, the scripts of India, and Thai.
_LETTERS = re.compile(r"(?:[^\W\d_]|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff\u0e31-\u0e4e])+")
_ENDING = 3  # most letters by which forms of a name differ
_CANDIDATES = 50  # most relations of the evidence that one of the response is compared with


def _first_word(alternative: str, *, spaced: bool) -> str:
    """The first word of an alternative; with `*` if any ending may follow."""
    first, *others = re.split(rf"[{_EDGE}_]+" if spaced else "_", plain(alternative.rstrip("*")))
    return f"{first}*" if spaced and alternative.endswith("*") and not others else first


class _Template:
    """A template of a relation, such as "A was succeeded by B"; `templates/en.toml` describes the syntax."""

    def __init__(self, relation: str, text: str, *, spaced: bool) -> None:
        pieces = text.split()
        literal = [index for index, piece in enumerate(pieces) if piece not in {"A", "B", "..."}]
        self.relation = relation
        self.before = "".join(pieces[: literal[0]]).replace(".", "")
        self.behind = "".join(pieces[literal[-1] + 1 :]).replace(".", "")
        self._pieces = pieces[literal[0] : literal[-1] + 1]
        self._spaced = spaced
        self.needed = [{_first_word(word, spaced=spaced) for word in pieces[index].split("|")} for index in literal]

    @cached_property
    def words(self) -> re.Pattern[str]:
        """A pattern of its words and the gaps between them; slots between words are named groups."""
        parts, follows = [], False
        for piece in self._pieces:
            if piece in {"A", "B"}:
                parts.append(rf"(?P<{piece}>{_NO_END}{{1,50}}?)")
            elif piece == "...":
                parts.append(rf"{_NO_END}{{0,40}}?")
            else:
                between = r"[\s,'’-]+" if self._spaced else r"[\s,]*"
                parts.append(between * follows + self._alternatives(piece))
            follows = piece not in {"A", "B", "..."}
        return re.compile("".join(parts))

    def _alternatives(self, piece: str) -> str:
        """A pattern of the alternatives, longest first."""
        words = []
        for word in sorted(piece.split("|"), key=len, reverse=True):
            ending = r"[^\s,.;:!?)\"]*" if word.endswith("*") and self._spaced else ""
            text = re.escape(plain(word.rstrip("*"))).replace("_", r"[\s'’-]+") + ending
            # the look-behind comes after the first letter, since `re` searches fast for a literal prefix
            words.append(rf"{text[0]}(?<![^{_EDGE}]{text[0]}){text[1:]}" if self._spaced else text)
        any_of = f"(?:{'|'.join(words)})"
        return rf"{any_of}(?=[{_EDGE}]|$)" if self._spaced else any_of


class _Relations:
    """The rules of a language: templates, words of questions for an order, and affixes of names."""

    def __init__(self, base: str, table: dict[str, dict[str, str | list[str]]]) -> None:
        forms, names, spaced = table["forms"], table.get("names", {}), bool(space_of(base))
        self.templates = [
            _Template(relation, " ".join(str(forms.get(piece, piece)) for piece in text.split()), spaced=spaced)
            for relation, texts in table["relations"].items()
            for text in texts
        ]
        self._spaced = spaced
        self._needed = set[str]().union(*(any_of for template in self.templates for any_of in template.needed))
        self._sizes = {len(word) - 1 for word in self._needed if word.endswith("*")}
        self.ordered = [plain(word.rstrip("*")) for word in table["questions"]["in_order"]]
        patterns = patterns_of(base)
        self.inflected = patterns is not None and patterns.inflected
        self.articles = frozenset(names.get("articles", ()))
        self.prefixes = frozenset(names.get("prefixes", ()))
        self.particles = re.compile(rf"(?<=..)(?:{'|'.join(names['particles'])})$" if "particles" in names else "(?!)")
        self.subjects = re.compile(rf"(?:{'|'.join(names['subject'])})(?=\s)" if "subject" in names else "(?!)")

    def possible(self, text: str, wanted: set[str] | None) -> Iterator[_Template]:
        """The templates whose words may all occur in a folded text; `wanted` as for `_readings`."""
        if self._spaced:
            words = set(re.findall(rf"[^{_EDGE}]+", text))
            words |= {f"{word[:size]}*" for word in words for size in self._sizes}
        else:
            words = {word for word in self._needed if word[:1] in text and word in text}
        words &= self._needed
        for template in self.templates:
            if (wanted is None or template.relation in wanted) and not any(map(words.isdisjoint, template.needed)):
                yield template


@cache
def _relations(base: str) -> _Relations | None:
    try:
        table = read_package_data(__package__, f"templates/{base}.toml", dict[str, dict[str, str | list[str]]])
    except FileNotFoundError:
        return None
    return _Relations(base, table)


class _Reading(NamedTuple):
    """A relation extracted from a text.

    Attributes:
        relation: its name.
        pairs: ranges of A and B; several if the text is ambiguous.
        context: the range before them, for pronouns.
        words: the words that matched the template.
    """

    relation: str
    pairs: list[tuple[Range, Range]]
    context: Range = (0, 0)
    words: str = ""


def _readings(text: str, base: str, wanted: set[str] | None = None) -> Iterator[_Reading]:
    """The relations of a text; only the `wanted` ones if given."""
    known = _relations(base)
    if known is None:
        return
    normal = normalise(text, spaces=False)
    folded = fold(normal.text)
    matches = [
        (template, *match.span(), match)
        for template in known.possible(folded, wanted)
        for match in template.words.finditer(folded)
    ]
    spans = defaultdict[str, list[tuple[int, int]]](list)
    for template, start, end, _ in sorted(matches, key=lambda match: match[1:3]):
        spans[template.relation].append((start, end))
    ends = [0, *(end.end() for end in _ENDS.finditer(folded)), len(folded)]
    pooled = defaultdict[tuple[str, int, int, str], list[tuple[tuple[int, int], tuple[int, int]]]](list)
    for template, start, end, match in matches:
        beside = spans[template.relation]
        near = beside[bisect_left(beside, (start - _LONGEST, 0)) : bisect_right(beside, (start, len(folded)))]
        if any(end <= high and high - low > end - start for low, high in near):
            continue  # "succeeded" within "was succeeded by"
        low = max(start - _REACH, ends[bisect_right(ends, start) - 1])
        high = min(end + _REACH, ends[bisect_left(ends, end)])
        inside = {slot: match.span(slot) for slot in template.words.groupindex}
        before = _split_slots(folded, low, start, template.before, known.subjects)
        behind = _split_slots(folded, end, high, template.behind, known.subjects)
        for left, right in product(before, behind):
            both = {**left, **inside, **right}
            if all(folded[slice(*span)].strip() for span in both.values()):
                pair = (normal.original(*both["A"]), normal.original(*both["B"]))
                pooled[template.relation, low, high, match.group()].append(pair)
    for (relation, low, _, words), pairs in pooled.items():
        yield _Reading(relation, pairs, normal.original(max(0, low - _BEFORE), low) if low else (0, 0), words)


def _split_slots(text: str, start: int, end: int, slots: str, subjects: re.Pattern[str]) -> list[dict[str, Range]]:
    """Ranges of the slots within `[start, end)`; two are split after a subject, or else in every possible way."""
    if len(slots) < len("AB"):
        return [dict.fromkeys(slots, (start, end))]
    unspaced = bool(_HAN.search(text, start, end))
    cuts = [subject.end() for subject in subjects.finditer(text, start, end)]
    cuts = cuts or [cut for cut in range(start + 1, end) if unspaced or text[cut].isspace()]
    return [{slots[0]: (start, cut), slots[1]: (cut, end)} for cut in cuts]


def _listed(response: str, base: str, question: str | None) -> Iterator[_Reading]:
    """Neighbouring items of a list, if the question asks for an order."""
    known, asked = _relations(base), plain(question or "")
    edge = r"\b" if space_of(base) else ""
    if known and any(re.search(edge + re.escape(word), asked) for word in known.ordered):
        for first, second in pairwise(_ITEM.finditer(response)):
            yield _Reading("order", [(first.span(1), second.span(1))])


Names = frozenset[str]


class _NameFinder:
    """Finds the names in parts of response and evidence; in scripts without capitals, the rarer words.

    With `nouns`, longer rare words count as names in all scripts: "the lawyer".
    """

    def __init__(self, response: Words, evidence: Words, relations: _Relations) -> None:
        self.nouns = False
        letters = "".join(filter(str.isalpha, response.text))
        self.cased = 2 * (sum(map(str.isupper, letters)) + sum(map(str.islower, letters))) > len(letters)
        self._frequent, self._small = set[str](), set[str]()
        for text in (response, evidence):
            whole = fold(text.text)
            folded = [whole[start:end] for start, end in text.bounds.tolist()]
            self._frequent.update(compress(folded, (~text.content).tolist()))
            self._small.update(compress(folded, map(str.islower, text.written)))
        self._relations = relations
        endings = relations.inflected and not re.search(r"\w['’]\w", response.text)  # endings are separated: "Ada'nın"
        self.inflected = endings and self.cased
        self.of, self._same = cache(self._of), cache(self._are_same)

    def _of(self, text: str) -> Names:
        """The names as folded words; pairs of characters in scripts without spaces."""
        names, articles, before, whole = set[str](), self._relations.articles, "", fold(text)
        for match in _LETTERS.finditer(text):
            word, folded = match.group(), whole[slice(*match.span())]
            if _HAN.match(folded):
                pairs = {folded[index : index + 2] for index in range(len(folded) - 1)}
                names |= {pair for pair in pairs if not (HIRAGANA.search(pair) or self._frequent & {pair, *pair})}
            elif self.cased and not HANGUL.match(folded):
                is_name = word[0].isupper() and len(folded) > 1 and folded not in self._small
                is_noun = self.nouns and len(folded) > _ENDING and folded not in self._frequent
                if (is_name and before not in articles) or is_noun:
                    names.add(folded)
            elif folded not in self._frequent and len(folded) > 1:
                names.add(self._relations.particles.sub("", folded))
            before = folded
        return frozenset(names)

    def pairs(self, text: str, reading: _Reading) -> list[tuple[Names, Names]]:
        """The names of A and B for each pair of a reading."""
        return [(self.of(text[slice(*a)]), self.of(text[slice(*b)])) for a, b in reading.pairs]

    def _are_same(self, name: str, other: str) -> bool:
        """Whether two different words are forms of one name: "Anna" and "Annas"."""
        short, long = sorted((name, other), key=len)
        if self._relations.prefixes and long.endswith(short) and len(short) >= _ENDING:
            return long.removesuffix(short) in self._relations.prefixes
        common = next((index for index, letter in enumerate(short) if letter != long[index]), len(short))
        return common >= _ENDING and common >= max(len(long) - _ENDING, 0.6 * len(long))

    def parts(self, name: str) -> set[str]:
        """Letters that forms of a name share: the first two; in languages with prefixes also the last three."""
        return {name[:2], name[-_ENDING:]} if self._relations.prefixes else {name[:2]}

    def common(self, some: AbstractSet[str], others: AbstractSet[str]) -> int:
        """How many names are among others; forms of a name count as equal in alphabetic scripts."""
        formed = [name for name in some - others if not (_HAN.match(name) or HANGUL.match(name))]
        return len(some & others) + sum(any(self._same(name, other) for other in others) for name in formed)

    def is_part(self, word: str, names: AbstractSet[str]) -> bool:
        """Whether a word is one of the names, or in scripts without spaces a part of one."""
        folded = fold(word)
        if _HAN.match(folded):
            return folded not in self._frequent and any(folded in name or name in folded for name in names)
        return bool(self.common(self.of(word), names))


class _Comparison(NamedTuple):
    """A relation of the response compared with one of the evidence.

    Attributes:
        agreeing: number of names with the same role in both.
        swapped: number of names with exchanged roles; 0 unless both A and B have such names.
        pair: index of the response's pair with most swapped names.
        names: names of the evidence's relation.
    """

    agreeing: int
    swapped: int
    pair: int
    names: Names


def _compare(
    named: _NameFinder, ours: list[tuple[Names, Names]], stated: list[tuple[Names, Names]], context: Names
) -> _Comparison:
    best, common = _Comparison(0, 0, 0, frozenset()), cache(named.common)
    for (index, (a, b)), (other_a, other_b) in product(enumerate(ours), stated):
        first = other_a if common(other_a, a | b) else other_a | context
        if first is other_a and not common(other_b, a | b):
            continue
        straight, crossed = (common(a, first), common(b, other_b)), (common(a, other_b), common(b, first))
        if all(straight):
            best = best._replace(agreeing=max(best.agreeing, sum(straight)))
        outweighed = crossed[0] >= straight[0] and (crossed[1] >= straight[1] or not (named.cased or straight[0]))
        if all(crossed) and outweighed and sum(crossed) > best.swapped and not (named.nouns and any(straight)):
            best = _Comparison(best.agreeing, sum(crossed), index, first | other_b)
    return best


def swapped_names(response: Words, evidence: Words, language: str, question: str | None = None) -> Bools:
    """Names whose roles in a relation are exchanged everywhere in the evidence.

    Args:
        response: the response.
        evidence: all passages, joined by line breaks.
        language: BCP 47 tag of both; nothing is marked without a file in `templates/`.
        question: the question, if there is one.

    Returns:
        Shape (n,).
    """
    base = "zh" if base_tag(language) == "yue" else base_tag(language)
    result = np.zeros(len(response.bounds), bool)
    relations = _relations(base)
    claims = [*_readings(response.text, base), *_listed(response.text, base, question)]
    if relations is None or not claims:
        return result
    readings = list(_readings(evidence.text, base, {claim.relation for claim in claims}))
    named = _NameFinder(response, evidence, relations)
    for named.nouns in (False, True):  # "the lawyer" if names decide nothing
        named.of.cache_clear()
        known, unmatched = _EvidenceRelations(named, evidence, readings), list[_Reading]()
        for claim in claims:
            match = known.match(claim, named.pairs(response.text, claim))
            if match is None:
                unmatched.append(claim)
            elif match.swapped > match.agreeing:
                for span in claim.pairs[match.pair]:
                    inside = response.within(*span)
                    for index, word in enumerate(response.written[inside], inside.start):
                        result[index] |= named.is_part(word, match.names)
        if not (unmatched and named.cased) or relations.inflected:
            break
        claims = unmatched
    return result


class _EvidenceRelations:
    """The relations of the evidence, indexed by parts of their names."""

    def __init__(self, named: _NameFinder, evidence: Words, readings: list[_Reading]) -> None:
        self._named, self._evidence = named, evidence
        self._readings = readings
        self._sides: list[tuple[list[tuple[Names, Names]], Names]] = []
        self._index = defaultdict[tuple[str, str], set[int]](set)
        for number, reading in enumerate(readings):
            pairs, context = named.pairs(evidence.text, reading), named.of(evidence.text[slice(*reading.context)])
            self._sides.append((pairs, context))
            for name in context.union(*(side for pair in pairs for side in pair)):
                for part in named.parts(name):
                    self._index[reading.relation, part].add(number)

    def _is_inverted(self, claim: _Reading, ours: list[tuple[Names, Names]], number: int) -> bool:
        """Whether only the word order differs, in a language whose endings mark the roles: "Ivana saved Maria"."""
        reading, (pairs, _) = self._readings[number], self._sides[number]
        if not self._named.inflected or reading.words != claim.words:
            return False
        stated = frozenset[str]().union(*(side for pair in pairs for side in pair))
        shared = {name for pair in ours for side in pair for name in side if self._named.common({name}, stated)}
        return shared <= stated

    def match(self, claim: _Reading, ours: list[tuple[Names, Names]]) -> _Comparison | None:
        """The comparison of a claim with the evidence; None if the evidence has no such relation."""
        every = frozenset[str]().union(*(side for pair in ours for side in pair))
        parts = {part for name in every for part in self._named.parts(name)}
        near = Counter(number for part in parts for number in self._index.get((claim.relation, part), ()))
        compared = [
            _compare(self._named, ours, *self._sides[number])
            for number, _ in near.most_common(_CANDIDATES)
            if not self._is_inverted(claim, ours, number)
        ]
        if not any(match.agreeing or match.swapped for match in compared):
            is_whole = claim.context == (0, 0) and len(ours) == 1  # nothing stands before it
            (a, b), *_ = ours
            is_listed = claim.relation == "order" and is_whole and not self._named.nouns
            is_swapped = is_listed and _is_named_first(self._named, b, a, self._evidence)
            return _Comparison(0, 1, 0, a | b) if is_swapped else None
        best = max(compared, key=lambda match: match.swapped - match.agreeing)
        agrees = any(match.agreeing > match.swapped * self._named.cased for match in compared)
        return _Comparison(1, 0, 0, frozenset()) if agrees else best


def _is_named_first(named: _NameFinder, a: Names, b: Names, evidence: Words) -> bool:
    """Whether the evidence names A before B, and B after; False if they share all their names."""
    only_a, only_b = ({name for name in ours if not named.common({name}, stated)} for ours, stated in ((a, b), (b, a)))
    for word in evidence.written:
        if named.is_part(word, only_b):
            return False
        if named.is_part(word, only_a):
            return any(named.is_part(other, only_b) for other in evidence.written)
    return False
