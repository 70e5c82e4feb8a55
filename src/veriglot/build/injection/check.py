"""The check of silver data: what is marked was changed, what is not marked was not, and every fault has a name.

Pure functions over texts, for errors that a model put in and for those made by rule. Whether the evidence really does
not support an error is for a detector or a model to say (`support.py`); what the texts alone tell of it is said here.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from veriglot.build.injection.changes import Change, changes_of, restored
from veriglot.build.injection.seams import edge_seam, inner_seam, word_edges
from veriglot.build.prompts import known_language
from veriglot.build.quality import same_language
from veriglot.formats.garbled import garbled
from veriglot.text import fold, identify, script_shares, sentences, words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from veriglot.records import Span

__all__ = ["REASONS", "Reason", "Violation", "check", "check_spans"]

Reason = Literal[
    "nothing",
    "type",
    "overlap",
    "outside",
    "deleted",
    "empty",
    "unchanged",
    "glued",
    "markup",
    "garbled",
    "script",
    "language",
    "too_much",
    "supported",
]
REASONS: tuple[Reason, ...] = get_args(Reason)

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
_TOGETHER = {"Jpan": {"Hira", "Kana", "Hani"}, "Kore": {"Hang", "Hani"}, "Hans": {"Hani"}, "Hant": {"Hani"}}


class Violation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that is wrong with an edited text.

    Attributes:
        reason: `nothing` (there is no error in it), `type` (of a type that was not asked for), `overlap` (errors cross,
            or are out of order), `outside` (the text differs outside its errors), `deleted` (something was taken out
            and nothing put there), `empty` (an error without a letter or digit), `unchanged` (an error that says what
            stood there before), `glued` (old and new text run together), `markup` (tags or marks are left in the
            text), `garbled` (it loops, or holds signs for unknown characters), `script`, `language` (other than the
            text's own), `too_much` (more was changed than may be), `supported` (the evidence says it, word for word).
        detail: the same in words, with what it is about.
        start, end: where in the edited text; both 0 where it is about the whole.
    """

    reason: Reason
    detail: str
    start: int = 0
    end: int = 0


def check(
    original: str,
    text: str,
    changes: Sequence[Change],
    *,
    language: str,
    evidence: Sequence[str] = (),
    types: Collection[str] | None = None,
    most_changed: float = 1.0,
) -> list[Violation]:
    """Everything that is wrong with a text into which errors were put; empty where nothing is.

    Args:
        original: the text before.
        text: the text after.
        changes: the errors, in order, with what stood there before.
        language: BCP 47 tag of the text.
        evidence: the passages that the text is held against.
        types: the types that errors may have; None for any.
        most_changed: the share of the original, 0 to 1, that may have been replaced.
    """
    if not changes:
        return [Violation("nothing", "no error was put into the text")]
    disorder = _disorder(original, text, changes)
    if disorder is not None:
        return [disorder]
    found = [*_mistyped(changes, types), *_outside(original, text, changes)]
    if not found:
        found += _in_changes(original, text, changes, language, evidence)
        found += _in_text(original, text, language)
        replaced = sum(change.old_end - change.old_start for change in changes)
        if replaced > most_changed * max(1, len(original)):
            share = replaced / max(1, len(original))
            found.append(Violation("too_much", f"{share:.0%} of the text was replaced, of {most_changed:.0%} at most"))
    return found


def check_spans(
    original: str,
    text: str,
    spans: Sequence[Span],
    *,
    language: str,
    evidence: Sequence[str] = (),
    types: Collection[str] | None = None,
    most_changed: float = 1.0,
) -> list[Violation]:
    """`check` for a text of which only the spans are known; what they replaced is found by `changes_of`."""
    changes = changes_of(original, text, spans)
    if changes is None:
        ordered = all(one.end <= other.start for one, other in pairwise(spans))
        if not ordered:
            return [Violation("overlap", "the spans cross each other, or are out of order")]
        return [Violation("outside", "outside its spans the text is not the original")]
    return check(original, text, changes, language=language, evidence=evidence, types=types, most_changed=most_changed)


def _disorder(original: str, text: str, changes: Sequence[Change]) -> Violation | None:
    read = old = 0
    for c in changes:
        if not (read <= c.start <= c.end <= len(text) and old <= c.old_start <= c.old_end <= len(original)):
            return Violation("overlap", "the errors cross each other, or are out of order", c.start, c.end)
        read, old = c.end, c.old_end
    return None


def _mistyped(changes: Sequence[Change], types: Collection[str] | None) -> Iterator[Violation]:
    for change in changes:
        if types is not None and change.type not in types:
            yield Violation("type", f"no {change.type!r} was asked for", change.start, change.end)


def _outside(original: str, text: str, changes: Sequence[Change]) -> Iterator[Violation]:
    back = restored(original, text, changes)
    if back == original:
        return
    place = next((i for i, (a, b) in enumerate(zip(back, original, strict=False)) if a != b), len(original))
    yield Violation(
        "outside",
        f"outside its errors the text is not the original: {back[place : place + 40]!r} stands"
        f" where {original[place : place + 40]!r} stood",
    )


def _in_changes(
    original: str, text: str, changes: Sequence[Change], language: str, evidence: Sequence[str]
) -> Iterator[Violation]:
    inside, bounds = word_edges(original, language)
    edges = (inside, word_edges(text, language)[0])
    known = frozenset(fold(original[start:end]) for start, end in bounds).union(*map(_words, evidence))
    entry = known_language(language)
    spaced = entry is None or entry.word_breaking == "spaces"
    expected = _scripts(original, evidence, language)
    told = _told(original, language)
    held = "\n".join(_plain(passage) for passage in evidence)
    for change in changes:
        old, new = original[change.old_start : change.old_end], text[change.start : change.end]
        for reason, detail in _faults(old, new, known, expected, language, spaced=spaced, told=told):
            yield Violation(reason, detail, change.start, change.end)
        seam = edge_seam(original, text, change, edges)
        if seam:
            yield Violation("glued", f"words run together at the edge of an error: {seam!r}", change.start, change.end)
        said = _said_by(held, text, change, language) if held else ""
        if said:
            yield Violation("supported", f"the evidence says it word for word: {said!r}", change.start, change.end)


def _faults(
    old: str, new: str, known: frozenset[str], expected: frozenset[str], language: str, *, spaced: bool, told: bool
) -> Iterator[tuple[Reason, str]]:
    """What is wrong with one error, by itself."""
    if not new:
        yield "deleted", f"{old!r} was taken out, and nothing put in its place"
        return
    if not any(c.isalnum() for c in new):
        yield "empty", f"the error {new!r} has neither letter nor digit"
        return
    if _plain(old) == _plain(new):
        yield "unchanged", f"{new!r} is marked, and {old!r} stood there before"
    seam = inner_seam(old, new, known, spaced=spaced)
    if seam:
        yield "glued", f"old and new words run together in {seam!r}"
    if garbled(new) is not None:
        yield "garbled", f"the error loops, or holds unknown characters: {new[:60]!r}"
    foreign = _foreign_script(new, expected)
    if foreign:
        yield "script", f"{new[:60]!r} is written in {foreign}"
    elif told:
        other = _other_language(new, language)
        if other:
            yield "language", f"{new[:60]!r} reads like {other}"


def _in_text(original: str, text: str, language: str) -> Iterator[Violation]:
    left = next((found for found in _MARKUP.finditer(text) if found.group() not in original), None)
    if left is not None:
        yield Violation("markup", f"{left.group()!r} is left in the text", *left.span())
    if _told(original, language):
        found = identify(text)
        if found is not None and found.confidence >= _SURE and not same_language(found.tag, language):
            yield Violation("language", f"the text reads like {found.tag}, and was {language}")


def _words(text: str) -> Iterator[str]:
    folded = fold(text)
    return (folded[start:end] for start, end in words(folded))


def _plain(text: str) -> str:
    """Words alone, folded, with one space between."""
    return " ".join(_words(text))


def _scripts(original: str, evidence: Sequence[str], language: str) -> frozenset[str]:
    """The scripts that an error may be written in: the language's own, and those that the texts hold."""
    entry = known_language(language)
    own = _TOGETHER.get(entry.script, {entry.script}) if entry is not None else set()
    shares = [script_shares(original), *map(script_shares, evidence)]
    return frozenset(own).union(*({name for name, share in one.items() if share >= _SCRIPT_SHARE} for one in shares))


def _foreign_script(new: str, expected: frozenset[str]) -> str:
    shares = script_shares(new)
    foreign = sum(share for name, share in shares.items() if name not in expected)
    if foreign <= 0.5:
        return ""
    return next(name for name in shares if name not in expected)


def _told(original: str, language: str) -> bool:
    """Whether the original is recognised as what it is: otherwise nothing follows from what the errors look like."""
    found = identify(original)
    return found is not None and same_language(found.tag, language)


def _other_language(new: str, language: str) -> str:
    letters = sum(c.isalpha() for c in new)
    ideographic = any(name in _IDEOGRAPHIC for name in script_shares(new))
    if letters < (_LONG_IDEOGRAPHIC if ideographic else _LONG) or (not ideographic and len(words(new)) < 5):
        return ""
    found = identify(new)
    if found is None or found.confidence < _SURE or same_language(found.tag, language):
        return ""
    return found.tag


def _said_by(held: str, text: str, change: Change, language: str) -> str:
    """The sentence of an error, if the evidence has it word for word; empty otherwise."""
    for start, end in sentences(text, language):
        if start < change.end and change.start < end:
            said = _plain(text[start:end])
            if len(said) < _QUOTED or f" {said} " not in f" {held} ".replace("\n", " "):
                return ""
    return text[change.start : change.end][:80]
