"""What a model replied, read as errors in the passage that it was given; whatever it did instead has a name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from veriglot.build.injection.changes import Change, changes_of
from veriglot.build.injection.difference import differing
from veriglot.build.injection.edited import Edited, narrowed, rebuilt
from veriglot.build.refusals import refuses
from veriglot.formats.tags import parse_tags
from veriglot.llm.thoughts import after_thoughts
from veriglot.text import fold, sentences

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.build.injection.wording import Form
    from veriglot.llm import Reply
    from veriglot.records import Span

__all__ = ["REPLACING", "Fault", "FaultReason", "bare", "read_reply"]

FaultReason = Literal[
    "no_text", "refused", "held_back", "cut", "tags", "type", "overlap", "deleted", "nothing", "outside"
]

REPLACING = frozenset({"entity", "relation"})
_HARMLESS = frozenset({"capitalised", "misspelt", "malformed"})  # faults of a tag that leave no doubt where it stands
_FENCE = re.compile(r"\A```[a-z]*\s*\n(.*?)\n?```\s*\Z", re.DOTALL)
_LABEL = re.compile(
    r"\A\s*(?:\**(?:edited(?: (?:text|passage|sentence))?|passage|output|answer)\**\s*[:：]\**)\s*", re.I
)
_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "「": "」", "'": "'"}
_TYPED = re.compile(r"</?(?:entity|relation|sentence)_error>", re.IGNORECASE)


class Fault(msgspec.Struct, frozen=True):
    """Why a reply gave no error.

    Attributes:
        reason: `no_text` (nothing, or no word), `refused` (the model declines), `held_back` (by its provider), `cut`
            (at its length), `tags` (broken ones, so that nobody knows what is marked), `type` (another one than was
            asked for), `overlap` (nested or crossing tags), `deleted` (something is gone and nothing marked there),
            `nothing` (no error was put in), `outside` (what is not marked is not the passage).
        detail: the same in words.
    """

    reason: FaultReason
    detail: str


def read_reply(passage: str, reply: Reply, type_: str, *, form: Form, taxonomy: str, language: str) -> Edited | Fault:
    """The passage with the errors of a reply.

    What is not an error is the passage's own, letter by letter: letters that the reply writes in another case or form
    are put back; any other difference is a fault.

    Args:
        passage: what the model was given.
        reply: what it said.
        type_: the type of error that was asked for.
        form: how it was asked to say what it changed.
        taxonomy: of the type.
        language: BCP 47 tag of the passage.
    """
    if reply.finish == "filter":
        return Fault("held_back", "the provider held the reply back")
    said = after_thoughts(reply.text).strip()
    if not any(c.isalnum() for c in said):
        return Fault("no_text", "the reply holds no words")
    if reply.finish == "length":
        return Fault("cut", "the reply was cut at its length; raise max_tokens")
    if form == "plain" and refuses(said, language):  # anything else is a text that differs
        return Fault("refused", f"the model declines: {said[:120]!r}")
    faults: list[Fault] = []
    for candidate in _candidates(said, passage):
        read = _tagged if form == "tags" else _plain
        found = read(passage, candidate, type_, taxonomy, language)
        if isinstance(found, Edited):
            return found
        faults.append(found)
    first = faults[0]
    if first.reason in {"outside", "nothing", "deleted"} and refuses(said, language):
        return Fault("refused", f"the model declines: {said[:120]!r}")
    return first


def bare(text: str) -> str:
    """A reply without what models put around a text: thoughts, fences, a label, quotation marks."""
    text = after_thoughts(text).strip()
    fenced = _FENCE.match(text)
    text = fenced[1].strip() if fenced else text
    text = _LABEL.sub("", text, count=1).strip()
    if len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and text[0] not in text[1:-1] and text[-1] not in text[1:-1]:
        text = text[1:-1].strip()
    return text


def _candidates(said: str, passage: str) -> Iterator[str]:
    """The reply, and what is left of it without a sentence of the model's own before and after the passage."""
    quoted = passage[:1] in _QUOTES and said[:1] == passage[:1]
    whole = said if quoted else bare(said)
    yield whole
    first, _, rest = whole.partition("\n")
    headed = first.rstrip().endswith((":", "：")) and rest.strip()
    if headed:
        yield bare(rest)
    body = bare(rest) if headed else whole
    most = passage.count("\n\n") + 1
    parts = body.split("\n\n")
    if len(parts) > most:
        yield "\n\n".join(parts[:most]).strip()


def _tagged(passage: str, said: str, type_: str, taxonomy: str, language: str) -> Edited | Fault:
    from veriglot.records import taxonomy as named

    parsed = parse_tags(said, tuple(named(taxonomy).types), edits="mark")
    bad = next((fault for fault in parsed.faults if fault.kind not in _HARMLESS), None)
    if bad is not None and bad.kind == "empty":
        return Fault("deleted", f"the tag {bad.tag!r} stands around nothing")
    if bad is not None:
        return Fault("tags", f"the tag {bad.tag!r} is not right: {bad.kind}")
    if not parsed.spans:
        return Fault("nothing", f"nothing is marked in {said[:120]!r}")
    wrong = next((span for span in parsed.spans if span.type != type_), None)
    if wrong is not None:
        return Fault("type", f"{wrong.type!r} is marked where {type_!r} was asked for")
    if any(one.end > other.start for one, other in zip(parsed.spans, parsed.spans[1:], strict=False)):
        return Fault("overlap", "tags stand inside each other, or cross")
    return _put(passage, parsed.text, parsed.spans, language)


def _plain(passage: str, said: str, type_: str, taxonomy: str, language: str) -> Edited | Fault:
    text = _TYPED.sub("", said).strip()
    exchanging = taxonomy == "halluverse"  # none of whose types adds a sentence; some of FAVA's do
    if text.count("\n") > passage.count("\n") or (exchanging and _longer(text, passage, language)):
        return Fault("outside", f"the reply says more than the edited text: {text[:120]!r}")
    if fold(text) == fold(passage):
        return Fault("nothing", "the reply is the passage itself")
    spans = differing(passage, text, type_, language)
    if spans is None:
        return Fault("deleted", "something is gone, and nothing stands in its place")
    if not spans:
        return Fault("nothing", "the reply is the passage itself")
    if type_ == "sentence":
        return rebuilt(passage, [(Change(0, len(text), 0, len(passage), type_), text)])
    return _put(passage, text, spans, language)


def _longer(text: str, passage: str, language: str) -> bool:
    return len(sentences(text, language)) > max(1, len(sentences(passage, language)))


def _put(passage: str, text: str, spans: Sequence[Span], language: str) -> Edited | Fault:
    """The passage with spans of another text put into it, if that text is otherwise the same."""
    changes = changes_of(passage, text, spans) or changes_of(fold(passage), fold(text), spans)
    if not changes:
        return Fault("outside", f"what is not marked is not the passage: {text[:120]!r}")
    exact = rebuilt(passage, [(change, text[change.start : change.end]) for change in changes])
    narrow = [
        narrowed(passage, exact.text, change, language) if change.type in REPLACING else change
        for change in exact.changes
    ]
    return Edited(passage, exact.text, tuple(narrow))
