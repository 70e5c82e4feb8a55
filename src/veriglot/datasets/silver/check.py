"""The check of silver data: changes between two texts, spans of a reply, and each violation with its name.

Pure functions over texts, for errors by models and by rule. Whether the evidence really does not support an error is
checked by a detector or a model (`job.py`); here are only checks of the texts.
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
    """One error that was inserted into a text. Offsets are half-open, in code points.

    Attributes:
        start, end: the error, in the edited text; equal for a deletion.
        old_start, old_end: the replaced text, in the original; equal for an insertion.
        type: a type of the taxonomy.
    """

    start: int
    end: int
    old_start: int
    old_end: int
    type: str


class Edited(Record):
    """An edited text with its changes from the original.

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
        """The errors as spans of the text, without white space at their edges; deletions have none."""
        ranges = ((change.type, *trimmed(self.text, change.start, change.end)) for change in self.changes)
        return tuple(Span(start, end, type_, text=self.text[start:end]) for type_, start, end in ranges if start < end)

    @property
    def restored(self) -> str:
        """The text with the replaced text restored; equal to `original` if nothing else was changed."""
        parts = []
        read = 0
        for change in self.changes:
            parts += [self.text[read : change.start], self.original[change.old_start : change.old_end]]
            read = change.end
        return "".join([*parts, self.text[read:]])

    def then(self, text: str, changes: Sequence[Change]) -> Edited | None:
        """The text with further errors; None if one of them touches an existing error.

        Args:
            text: the text with all of them.
            changes: the further ones, in order; their old offsets are in this object's text.
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
        """The text without some of the errors, by their indices in `changes`."""
        changes = [change for number, change in enumerate(self.changes) if number not in places]
        return Edited.of(self.original, [(c, self.text[c.start : c.end]) for c in changes])

    def _originally(self, offset: int) -> int:
        """The offset in the original of an offset outside all errors."""
        return offset + sum((c.old_end - c.old_start) - (c.end - c.start) for c in self.changes if c.end <= offset)

    @classmethod
    def of(cls, original: str, put: Iterable[tuple[Change, str]]) -> Edited:
        """The original with new texts in the ranges `[old_start, old_end)` of changes, in order and not overlapping."""
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
    """Whether a further error overlaps an existing one; an insertion next to it does not."""
    if new.old_start == new.old_end:
        return earlier.start < new.old_start < earlier.end
    return new.old_start < earlier.end and earlier.start < new.old_end


def _moved(changes: Sequence[Change], offset: int) -> int:
    """By how many code points further errors move an offset of the earlier text."""
    return sum((c.end - c.start) - (c.old_end - c.old_start) for c in changes if c.old_end <= offset)


def changes_of(original: str, text: str, spans: Sequence[Span]) -> list[Change] | None:
    """The changes from `original` to `text`, if they differ only in the spans; else None.

    The text between the spans is searched for in the original, in order. If it occurs several times, the occurrence is
    taken that makes old and new text most similar in length. White space next to a span may differ, because an inserted
    sentence comes with a space; it is then part of the change.

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
    """The ranges between the spans, without the white space next to spans."""
    between = [(before.end, after.start) for before, after in pairwise(spans)]
    first = (0, len(text[: spans[0].start].rstrip()))
    last = (len(text) - len(text[spans[-1].end :].lstrip()), len(text))
    return [first, *(trimmed(text, start, end) for start, end in between), last]


def _shrunk(original: str, text: str, change: Change) -> Change:
    """The change without unchanged white space at its edges."""
    start, end, old_start, old_end, type_ = msgspec.structs.astuple(change)
    while start < end and old_start < old_end and text[start].isspace() and text[start] == original[old_start]:
        start, old_start = start + 1, old_start + 1
    while start < end and old_start < old_end and text[end - 1].isspace() and text[end - 1] == original[old_end - 1]:
        end, old_end = end - 1, old_end - 1
    return Change(start, end, old_start, old_end, type_)


def _places(original: str, pieces: list[str], lengths: list[int]) -> list[int] | None:
    """The offset of each piece in the original: the first at the beginning, the last at the end, others in between."""
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
    """The offset of a piece between `earliest` and `most` (its latest one) that is nearest to `wanted`."""
    middle = min(most, max(wanted, earliest))
    before = original.rfind(piece, earliest, middle + len(piece))
    after = original.find(piece, middle, most + len(piece))
    return min((start for start in (before, after) if start >= 0), key=lambda start: abs(start - wanted))


# Seams: positions at which an edit joined old and new text ("RomeParis", "in 1950.He").
#
# The published silver data sets have many of them, and a detector that is trained on them learns to recognise seams.
# Unlike `text.noise`, which has only the marked text, this code knows the replaced text.


_UNSPACED = re.compile(r"[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_CLOSING = re.compile(r"[.!?…,;:\u0964\u06d4\u061f\u060c\u061b]")
_SHORTEST = 2  # code points of the old word: shorter ones are the beginning or end of many others
_REST = 4  # code points of an unknown rest beside the old word: fewer may be an ending


def _word_edges(text: str, language: str) -> tuple[frozenset[int], list[tuple[int, int]]]:
    """The offsets inside words of a text, and the words."""
    bounds = words(text, language)
    return frozenset(offset for start, end in bounds for offset in range(start + 1, end)), bounds


def _inner_seam(old: str, new: str, known: frozenset[str], *, spaced: bool) -> str:
    """The part of `new` in which a word of `old` is joined with another one; empty if there is none."""
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
    """Text that an edit joined at the edges of a change; empty if there is none."""
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
    """Whether a letter directly follows the end of a sentence or a clause."""
    if not 0 < offset < len(text) or not _CLOSING.match(text[offset - 1]):
        return False
    return bool(kind_table()[code_points(text[offset])][0] & Kind.LETTER)


_MARKUP = re.compile(
    r"</?[A-Za-z_]{1,20}/?>|\*\*|```|__\w|\[/?(?:mark|delete|entity|relation|contradictory|invented|subjective|unverifiable)\]",
    re.IGNORECASE,
)
_SCRIPT_SHARE = 0.02  # minimum share of the original's letters for a further script that an error may have
_LONG = 30  # letters from which the language of a part can be detected
_LONG_IDEOGRAPHIC = 10
_SURE = 0.8
_QUOTED = 12  # code points: shorter sentences occur anywhere
_IDEOGRAPHIC = frozenset({"Hani", "Hira", "Kana", "Hang", "Bopo"})


class Violation(Record, omit_defaults=True):
    """A problem of an edited text, a reply or a passage.

    Attributes:
        reason: of `check`: `nothing` (there is no error), `type` (of a type that was not requested), `overlap` (errors
            overlap, or are out of order), `outside` (the text differs outside its errors), `deleted` (a deletion
            without new text), `empty` (an error without a letter or digit), `unchanged` (an error equal to the replaced
            text), `glued` (old and new text are joined), `markup` (tags or marks are left in the text), `garbled` (it
            loops, or has replacement characters), `script`, `language` (different from the text's own), `too_much` (too
            much was changed), `supported` (the evidence has the sentence verbatim). Replies, passages and judges have
            further ones; see `read_reply`, `seed_fault` and `Support`.
        detail: the reason as a sentence, with the text.
        start, end: range in the edited text; both 0 if the problem is the whole text.
    """

    reason: str
    detail: str
    start: int = 0
    end: int = 0


def reply_fault(answer: str, finish: str) -> Violation | None:
    """Why a model's answer is unusable: `held_back`, `cut` or `no_text`; None if it is usable."""
    if finish == "filter":
        return Violation("held_back", "the provider withheld the reply")
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
    """All problems of a text with inserted errors; empty if there are none.

    Args:
        edited: the text, with its errors in order.
        language: BCP 47 tag of the text.
        evidence: the passages of the text's evidence.
        types: the allowed types of errors; None for any.
        most_changed: maximum share of the original, 0 to 1, that may be replaced.
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
        f"outside its errors the text differs from the original: {back[offset : offset + 40]!r}"
        f" instead of {original[offset : offset + 40]!r}",
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
    """Problems of one error by itself."""
    if not new:
        yield "deleted", f"{old!r} was removed, and nothing replaces it"
        return
    if not any(c.isalnum() for c in new):
        yield "empty", f"the error {new!r} has neither letter nor digit"
        return
    if _plain(old) == _plain(new):
        yield "unchanged", f"{new!r} is marked, but the original has {old!r} there"
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
            yield "language", f"{new[:60]!r} is in {other}"


def _in_text(edited: Edited, language: str) -> Iterator[Violation]:
    original, text = edited.original, edited.text
    left = next((match for match in _MARKUP.finditer(text) if match.group() not in original), None)
    if left is not None:
        yield Violation("markup", f"{left.group()!r} is left in the text", *left.span())
    if _is_identified(original, language):
        identified = identify(text)
        if identified is not None and identified.confidence >= _SURE and not same_language(identified.tag, language):
            yield Violation("language", f"the text is in {identified.tag}, but was in {language}")


def _plain(text: str) -> str:
    """Case-folded words with one space between them."""
    return " ".join(folded_words(text))


def _scripts(original: str, evidence: Sequence[str], language: str) -> frozenset[str]:
    """The scripts that an error may have: the language's own, and those in the texts."""
    entry = find_language(language)
    own = entry.scripts if entry is not None else frozenset[str]()
    shares = [script_shares(original), *map(script_shares, evidence)]
    return own.union(*({name for name, share in scripts.items() if share >= _SCRIPT_SHARE} for scripts in shares))


def _is_identified(original: str, language: str) -> bool:
    """Whether language detection recognises the original; otherwise it is not used for the errors."""
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
    """The sentence of an error, if the evidence has it verbatim; empty otherwise."""
    for start, end in sentences(text, language):
        if start < change.end and change.start < end:
            sentence = _plain(text[start:end])
            if len(sentence) < _QUOTED or f" {sentence} " not in f" {evidence_text} ".replace("\n", " "):
                return ""
    return text[change.start : change.end][:80]
