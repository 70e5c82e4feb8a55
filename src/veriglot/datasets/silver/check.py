"""The check of silver data: the changes between two texts, the spans of a reply, and each fault by its name.

Pure functions over texts, for errors that a model put in and for those made by rule. Whether the evidence really does
not support an error is for a detector or a model to say (`job.py`); what the texts alone tell of it is said here.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from veriglot.records import Span
from veriglot.records.languages import find_language, same_language
from veriglot.records.settings import Record
from veriglot.text.identification import identify
from veriglot.text.noise import garbled
from veriglot.text.normalization import fold
from veriglot.text.segmentation import folded_words, sentences, words
from veriglot.text.unicode import Kind, code_points, kind_table, script_shares, trimmed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

__all__ = ["Change", "Edited", "Violation", "check"]


class Change(Record, order=True):
    """One error that was put into a text. Offsets are half-open, in code points.

    Attributes:
        start, end: the error, in the edited text; equal where something was taken out and nothing put in its place.
        old_start, old_end: what stood there, in the original; equal where something was put between.
        type: a type of the taxonomy.
    """

    start: int
    end: int
    old_start: int
    old_end: int
    type: str


class Edited(Record):
    """A text and what makes it different from the original.

    Attributes:
        original: the text without errors.
        text: the text with them.
        changes: the errors, in order.
    """

    original: str
    text: str
    changes: tuple[Change, ...] = ()

    @property
    def spans(self) -> tuple[Span, ...]:
        """The errors as spans of the text, without white space at their edges; what was only taken out has none."""
        ranges = ((change.type, *trimmed(self.text, change.start, change.end)) for change in self.changes)
        return tuple(Span(start, end, type_, text=self.text[start:end]) for type_, start, end in ranges if start < end)

    @property
    def restored(self) -> str:
        """The text with what stood there before put back; equal to `original` if nothing else was changed."""
        parts = []
        read = 0
        for change in self.changes:
            parts += [self.text[read : change.start], self.original[change.old_start : change.old_end]]
            read = change.end
        return "".join([*parts, self.text[read:]])

    def then(self, text: str, changes: Sequence[Change]) -> Edited | None:
        """With further errors; None where one of them touches an error that is there already.

        Args:
            text: the text with all of them.
            changes: the further ones, in order; what stood there before are places of this text.
        """
        if any(_touches(new, change) for new in changes for change in self.changes):
            return None
        before = [
            Change(c.start + _moved(changes, c.start), c.end + _moved(changes, c.start), c.old_start, c.old_end, c.type)
            for c in self.changes
        ]
        after = [
            Change(c.start, c.end, self._originally(c.old_start), self._originally(c.old_end), c.type) for c in changes
        ]
        return Edited(self.original, text, tuple(sorted([*before, *after])))

    def without(self, places: Collection[int]) -> Edited:
        """With some errors taken out again, by their places in `changes`."""
        changes = [change for number, change in enumerate(self.changes) if number not in places]
        return Edited.of(self.original, [(c, self.text[c.start : c.end]) for c in changes])

    def _originally(self, offset: int) -> int:
        """The place of the original that a place outside all errors belongs to."""
        return offset + sum((c.old_end - c.old_start) - (c.end - c.start) for c in self.changes if c.end <= offset)

    @classmethod
    def of(cls, original: str, put: Iterable[tuple[Change, str]]) -> Edited:
        """The original with texts put in the places `[old_start, old_end)` of changes, in order and not overlapping."""
        parts = []
        changes = []
        read = written = 0
        for change, new in put:
            unchanged = original[read : change.old_start]
            start = written + len(unchanged)
            parts += [unchanged, new]
            read, written = change.old_end, start + len(new)
            changes.append(Change(start, written, change.old_start, change.old_end, change.type))
        return cls(original, "".join([*parts, original[read:]]), tuple(changes))


def _touches(new: Change, earlier: Change) -> bool:
    """Whether a further error lies on one that is there; where one is put in beside it, it does not."""
    if new.old_start == new.old_end:
        return earlier.start < new.old_start < earlier.end
    return new.old_start < earlier.end and earlier.start < new.old_end


def _moved(changes: Sequence[Change], offset: int) -> int:
    """How far further errors push a place of the text that they were put into."""
    return sum((c.end - c.start) - (c.old_end - c.old_start) for c in changes if c.old_end <= offset)


def changes_of(original: str, text: str, spans: Sequence[Span]) -> list[Change] | None:
    """The changes that make `text` of `original`, if it differs in its spans alone; None where it does not.

    What stands between the spans is looked for in the original, in order. Where it stands several times, the place is
    taken that makes what was replaced most nearly as long as what replaced it. White space beside a span may differ,
    since whoever puts a sentence in puts a space in too; it is then part of the change.

    Args:
        original: the text before.
        text: the text after.
        spans: in order, not overlapping; those without a type get an empty one.
    """
    if not spans:
        return [] if original == text else None
    if any(before.end > after.start for before, after in pairwise(spans)):
        return None
    unmarked = _unmarked_ranges(text, spans)
    pieces = [text[start:end] for start, end in unmarked]
    places = _places(original, pieces, [span.end - span.start for span in spans])
    if places is None:
        return None
    return [
        _shrunk(
            original,
            text,
            Change(unmarked[i][1], unmarked[i + 1][0], places[i] + len(pieces[i]), places[i + 1], span.type or ""),
        )
        for i, span in enumerate(spans)
    ]


def _unmarked_ranges(text: str, spans: Sequence[Span]) -> list[tuple[int, int]]:
    """The places between the spans, without the white space beside them."""
    between = [(before.end, after.start) for before, after in pairwise(spans)]
    first = (0, len(text[: spans[0].start].rstrip()))
    last = (len(text) - len(text[spans[-1].end :].lstrip()), len(text))
    return [first, *(trimmed(text, start, end) for start, end in between), last]


def _shrunk(original: str, text: str, change: Change) -> Change:
    """The change without the white space at its edges that stood there before too."""
    start, end, old_start, old_end, type_ = msgspec.structs.astuple(change)
    while start < end and old_start < old_end and text[start].isspace() and text[start] == original[old_start]:
        start, old_start = start + 1, old_start + 1
    while start < end and old_start < old_end and text[end - 1].isspace() and text[end - 1] == original[old_end - 1]:
        end, old_end = end - 1, old_end - 1
    return Change(start, end, old_start, old_end, type_)


def _places(original: str, pieces: list[str], lengths: list[int]) -> list[int] | None:
    """Where each piece begins in the original: the first at its beginning, the last at its end, the others between."""
    first, *middle, last = pieces
    end = len(original) - len(last)
    if not original.startswith(first) or not original.endswith(last) or len(first) > end:
        return None
    latest: list[int] = []
    bound = end
    for piece in reversed(middle):
        bound = original.rfind(piece, len(first), bound)
        if bound < 0:
            return None
        latest.insert(0, bound)
    places, at = [0], len(first)
    for piece, most, length in zip(middle, latest, lengths, strict=False):
        start = _nearest(original, piece, at, most, at + length)
        places.append(start)
        at = start + len(piece)
    return [*places, end]


def _nearest(original: str, piece: str, earliest: int, most: int, wanted: int) -> int:
    """The place of a piece between `earliest` and `most` (its latest one) that is nearest to `wanted`."""
    middle = min(most, max(wanted, earliest))
    before = original.rfind(piece, earliest, middle + len(piece))
    after = original.find(piece, middle, most + len(piece))
    return min((start for start in (before, after) if start >= 0), key=lambda start: abs(start - wanted))


# Seams: places where an edit left old and new text run together ("RomeParis", "in 1950.He").
#
# The published silver sets are full of them, and a detector that learns from them learns to see the seam. Unlike
# `text.noise`, which has nothing but the marked text, this knows what stood there before.


_UNSPACED = re.compile(r"[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_CLOSING = re.compile(r"[.!?…,;:\u0964\u06d4\u061f\u060c\u061b]")
_SHORTEST = 2  # code points of the old word: shorter ones begin or end any other
_REST = 4  # code points beside the old word, where they are no known word: fewer may be an ending


def _word_edges(text: str, language: str) -> tuple[frozenset[int], list[tuple[int, int]]]:
    """The places inside words of a text, and the words."""
    bounds = words(text, language)
    return frozenset(offset for start, end in bounds for offset in range(start + 1, end)), bounds


def _inner_seam(old: str, new: str, known: frozenset[str], *, spaced: bool) -> str:
    """The part of `new` that is a word of `old` with another one run into it; empty where there is none."""
    if not spaced:
        before, after = fold(old).strip(), fold(new).strip()
        joined = after.startswith(before) or after.endswith(before)
        return new if joined and before != after and len(before) >= _SHORTEST else ""
    pieces = {old[start:end] for start, end in words(old) if end - start >= _SHORTEST}
    unknown = (new[start:end] for start, end in words(new) if fold(new[start:end]) not in known)
    return next((word for word in unknown if any(_runs_into(piece, word, known) for piece in pieces)), "")


def _runs_into(old: str, word: str, known: frozenset[str]) -> bool:
    folded, stem = fold(word), fold(old)
    if len(folded) <= len(stem):
        return False
    if folded.startswith(stem):
        left, right, rest = old, word[len(old) :], folded[len(stem) :]
    elif folded.endswith(stem):
        left, right, rest = word[: -len(old)], word[-len(old) :], folded[: -len(stem)]
    else:
        return False
    if old.isdigit() and rest.isdigit():
        return len(old) >= 3 and len(rest) >= 3
    turned = left[-1].islower() and right[0].isupper()
    mixed = left[-1].isdigit() != right[0].isdigit() and len(rest) >= _SHORTEST
    return turned or mixed or (len(rest) >= _SHORTEST and rest in known) or (len(stem) >= _REST <= len(rest))


def _edge_seam(original: str, text: str, change: Change, inside: tuple[frozenset[int], frozenset[int]]) -> str:
    """What of the edited text runs together at the edges of a change and did not before; empty where nothing does."""
    for offset, old in ((change.start, change.old_start), (change.end, change.old_end)):
        if not 0 < offset < len(text) or change.start == change.end:
            continue
        left, right = text[offset - 1], text[offset]
        if _UNSPACED.match(left) or _UNSPACED.match(right):
            continue
        joined = offset in inside[1] and old not in inside[0]
        if joined or (_unparted(text, offset) and not _unparted(original, old)):
            return text[max(0, offset - 20) : offset + 20]
    return ""


def _unparted(text: str, offset: int) -> bool:
    """Whether a letter stands right after the end of a sentence or a clause."""
    if not 0 < offset < len(text) or not _CLOSING.match(text[offset - 1]):
        return False
    return bool(kind_table()[code_points(text[offset])][0] & Kind.LETTER)


_MARKUP = re.compile(
    r"</?[A-Za-z_]{1,20}/?>|\*\*|```|__\w|\[/?(?:mark|delete|entity|relation|contradictory|invented|subjective|unverifiable)\]",
    re.IGNORECASE,
)
_SCRIPT_SHARE = 0.02  # of the original's letters: a script that has this share may stand in an error too
_LONG = 30  # letters from which the language of a piece can be told
_LONG_IDEOGRAPHIC = 10
_SURE = 0.8
_QUOTED = 12  # code points: a shorter sentence may stand anywhere
_IDEOGRAPHIC = frozenset({"Hani", "Hira", "Kana", "Hang", "Bopo"})


class Violation(Record, omit_defaults=True):
    """One thing that speaks against an edited text, a reply or a passage.

    Attributes:
        reason: of `check`: `nothing` (there is no error in it), `type` (of a type that was not asked for), `overlap`
            (errors cross, or are out of order), `outside` (the text differs outside its errors), `deleted` (something
            was taken out and nothing put there), `empty` (an error without a letter or digit), `unchanged` (an error
            that says what stood there before), `glued` (old and new text run together), `markup` (tags or marks are
            left in the text), `garbled` (it loops, or holds signs for unknown characters), `script`, `language` (other
            than the text's own), `too_much` (more was changed than may be), `supported` (the evidence says it, word for
            word). Replies, passages and judges have further ones; see `read_reply`, `seed_fault` and `Support`.
        detail: the same in words, with what it is about.
        start, end: where in the edited text; both 0 where it is about the whole.
    """

    reason: str
    detail: str
    start: int = 0
    end: int = 0


def reply_fault(answer: str, finish: str) -> Violation | None:
    """Why a model's answer says nothing at all: `held_back`, `cut` or `no_text`; None where it says something."""
    if finish == "filter":
        return Violation("held_back", "the provider held the reply back")
    if finish == "length":
        return Violation("cut", "the reply was cut at its length; raise max_tokens")
    if not any(map(str.isalnum, answer)):
        return Violation("no_text", "the reply holds no words")
    return None


def check(
    edited: Edited,
    *,
    language: str,
    evidence: Sequence[str] = (),
    types: Collection[str] | None = None,
    most_changed: float = 1.0,
) -> list[Violation]:
    """Everything that is wrong with a text into which errors were put; empty where nothing is.

    Args:
        edited: the text, with its errors in order.
        language: BCP 47 tag of the text.
        evidence: the passages that the text is held against.
        types: the types that errors may have; None for any.
        most_changed: the share of the original, 0 to 1, that may have been replaced.
    """
    if not edited.changes:
        return [Violation("nothing", "no error was put into the text")]
    read = old = 0
    end, old_end = len(edited.text), len(edited.original)
    for c in edited.changes:
        if not (read <= c.start <= c.end <= end and old <= c.old_start <= c.old_end <= old_end):
            return [Violation("overlap", "the errors cross each other, or are out of order", c.start, c.end)]
        read, old = c.end, c.old_end
    violations = [
        Violation("type", f"no {change.type!r} was asked for", change.start, change.end)
        for change in edited.changes
        if types is not None and change.type not in types
    ]
    violations += _outside(edited)
    if not violations:
        violations += _in_changes(edited, language, evidence)
        violations += _in_text(edited, language)
        share = sum(change.old_end - change.old_start for change in edited.changes) / max(1, len(edited.original))
        if share > most_changed:
            violations.append(
                Violation("too_much", f"{share:.0%} of the text was replaced, of {most_changed:.0%} at most")
            )
    return violations


def _outside(edited: Edited) -> Iterator[Violation]:
    original, back = edited.original, edited.restored
    if back == original:
        return
    offset = next((i for i, (a, b) in enumerate(zip(back, original, strict=False)) if a != b), len(original))
    yield Violation(
        "outside",
        f"outside its errors the text is not the original: {back[offset : offset + 40]!r} stands"
        f" where {original[offset : offset + 40]!r} stood",
    )


def _in_changes(edited: Edited, language: str, evidence: Sequence[str]) -> Iterator[Violation]:
    original, text = edited.original, edited.text
    inside, bounds = _word_edges(original, language)
    edges = (inside, _word_edges(text, language)[0])
    known = frozenset(fold(original[start:end]) for start, end in bounds).union(*map(folded_words, evidence))
    entry = find_language(language)
    spaced = entry is None or entry.word_breaking == "spaces"
    expected = _scripts(original, evidence, language)
    identified = _is_identified(original, language)
    evidence_text = "\n".join(_plain(passage) for passage in evidence)
    for change in edited.changes:
        old, new = original[change.old_start : change.old_end], text[change.start : change.end]
        for reason, detail in _faults(old, new, known, expected, language, spaced=spaced, identified=identified):
            yield Violation(reason, detail, change.start, change.end)
        seam = _edge_seam(original, text, change, edges)
        if seam:
            yield Violation("glued", f"words run together at the edge of an error: {seam!r}", change.start, change.end)
        quoted = _quote_of(evidence_text, text, change, language) if evidence_text else ""
        if quoted:
            yield Violation("supported", f"the evidence says it word for word: {quoted!r}", change.start, change.end)


def _faults(
    old: str,
    new: str,
    known: frozenset[str],
    expected: frozenset[str],
    language: str,
    *,
    spaced: bool,
    identified: bool,
) -> Iterator[tuple[str, str]]:
    """What is wrong with one error, by itself."""
    if not new:
        yield "deleted", f"{old!r} was taken out, and nothing put in its place"
        return
    if not any(c.isalnum() for c in new):
        yield "empty", f"the error {new!r} has neither letter nor digit"
        return
    if _plain(old) == _plain(new):
        yield "unchanged", f"{new!r} is marked, and {old!r} stood there before"
    seam = _inner_seam(old, new, known, spaced=spaced)
    if seam:
        yield "glued", f"old and new words run together in {seam!r}"
    if garbled(new) is not None:
        yield "garbled", f"the error loops, or holds unknown characters: {new[:60]!r}"
    foreign = {name: share for name, share in script_shares(new).items() if name not in expected}
    if sum(foreign.values()) > 0.5:
        yield "script", f"{new[:60]!r} is written in {next(iter(foreign))}"
    elif identified:
        other = _other_language(new, language)
        if other:
            yield "language", f"{new[:60]!r} reads like {other}"


def _in_text(edited: Edited, language: str) -> Iterator[Violation]:
    original, text = edited.original, edited.text
    left = next((match for match in _MARKUP.finditer(text) if match.group() not in original), None)
    if left is not None:
        yield Violation("markup", f"{left.group()!r} is left in the text", *left.span())
    if _is_identified(original, language):
        identified = identify(text)
        if identified is not None and identified.confidence >= _SURE and not same_language(identified.tag, language):
            yield Violation("language", f"the text reads like {identified.tag}, and was {language}")


def _plain(text: str) -> str:
    """Words alone, folded, with one space between."""
    return " ".join(folded_words(text))


def _scripts(original: str, evidence: Sequence[str], language: str) -> frozenset[str]:
    """The scripts that an error may be written in: the language's own, and those that the texts hold."""
    entry = find_language(language)
    own = entry.scripts if entry is not None else frozenset[str]()
    shares = [script_shares(original), *map(script_shares, evidence)]
    return own.union(*({name for name, share in scripts.items() if share >= _SCRIPT_SHARE} for scripts in shares))


def _is_identified(original: str, language: str) -> bool:
    """Whether the original is recognised as what it is: otherwise nothing follows from what the errors look like."""
    identified = identify(original)
    return identified is not None and same_language(identified.tag, language)


def _other_language(new: str, language: str) -> str:
    letters = sum(c.isalpha() for c in new)
    ideographic = any(name in _IDEOGRAPHIC for name in script_shares(new))
    if letters < (_LONG_IDEOGRAPHIC if ideographic else _LONG) or (not ideographic and len(words(new)) < 5):
        return ""
    identified = identify(new)
    if identified is None or identified.confidence < _SURE or same_language(identified.tag, language, similar=True):
        return ""
    return identified.tag


def _quote_of(evidence_text: str, text: str, change: Change, language: str) -> str:
    """The sentence of an error, if the evidence has it word for word; empty otherwise."""
    for start, end in sentences(text, language):
        if start < change.end and change.start < end:
            sentence = _plain(text[start:end])
            if len(sentence) < _QUOTED or f" {sentence} " not in f" {evidence_text} ".replace("\n", " "):
                return ""
    return text[change.start : change.end][:80]
