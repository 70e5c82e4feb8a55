"""What a model wrote as queries, sifted: number, form, language. Every rejection has a reason and is kept."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

import msgspec

from veriglot.build.quality import same_language
from veriglot.llm import AnswerError, decode_answer

if TYPE_CHECKING:
    from veriglot.build.references import Reference
    from veriglot.llm import Reply

__all__ = ["Reason", "Rejection", "Written", "sift"]

Reason = Literal["unreadable", "number", "form", "duplicate", "language", "answerable"]

_FEWEST_LETTERS = 6
_MOST_CODE_POINTS = 600
_LIST_MARK = re.compile(r"^\s*(?:[-*•–]|\(?\d{1,2}[.):、]|[①②③④⑤])\s*")
_QUESTION_MARKS = "?？؟;՞፧"
_AROUND = " \t\"'“”„«»「」『』*"


class Written(msgspec.Struct, frozen=True):
    """What the model is asked to answer with: the queries, in order."""

    queries: tuple[str, ...]


class Rejection(msgspec.Struct, frozen=True, omit_defaults=True):
    """A query that was written and not taken, or one that never came.

    Attributes:
        id: of the query that it would have been.
        reference: id of the reference.
        language: of the reference.
        reason: `unreadable` (the reply holds no queries), `number` (too few, or one too many), `form` (too short, too
            long), `duplicate`, `language`, `answerable`.
        detail: the same in words.
        question: the query, where there is one; else the reply.
    """

    id: str
    reference: str
    language: str
    reason: Reason
    detail: str
    question: str = ""


def sift(reference: Reference, reply: Reply, count: int) -> tuple[list[tuple[str, str]], list[Rejection]]:
    """The queries in a reply that pass what can be checked without asking again.

    Args:
        reference: what they are about.
        reply: JSON as asked for, or one query a line, as models that take no schema write it.
        count: how many were asked for.

    Returns:
        Id and text of each query that passes, and the rejections; together they name every query of the reply, and
        every one that is missing.
    """
    taken: list[tuple[str, str]] = []
    rejected: list[Rejection] = []

    def reject(number: int, reason: Reason, detail: str, question: str = "") -> None:
        id_ = f"{reference.id}-q{number}"
        rejected.append(Rejection(id_, reference.id, reference.language, reason, detail, question))

    found = _queries(reply)
    if not found:
        for number in range(1, count + 1):
            reject(number, "unreadable", "the reply holds no queries", reply.text)
        return taken, rejected
    for number, question in enumerate(found, start=1):
        if number > count:
            reject(number, "number", f"{count} queries were asked for, and this is one more", question)
            continue
        trouble = _trouble(reference, question, [text for _, text in taken])
        if trouble is not None:
            reject(number, *trouble, question)
        else:
            taken.append((f"{reference.id}-q{number}", question))
    for number in range(len(found) + 1, count + 1):
        reject(number, "number", f"{count} queries were asked for, and {len(found)} came")
    return taken, rejected


def _queries(reply: Reply) -> list[str]:
    lines = _listed(reply)
    if lines is None:
        lines = [line.rstrip(" ,") for line in reply.text.splitlines() if any(mark in line for mark in _QUESTION_MARKS)]
        lines = [line for line in lines if not line.lstrip().startswith(("{", "["))]  # pieces of JSON are no queries
        if reply.finish == "length" and lines and not reply.text.rstrip().endswith(tuple(_QUESTION_MARKS)):
            lines = [line for line in lines if line.rstrip().endswith(tuple(_QUESTION_MARKS))]
    cleaned = (_LIST_MARK.sub("", line).strip(_AROUND) for line in lines)
    return [line for line in cleaned if line]


def _listed(reply: Reply) -> list[str] | None:
    """The queries of a reply in JSON: as asked for, as a bare list, or under another name; None where there is none."""
    with suppress(AnswerError):
        return list(decode_answer(reply, Written).queries)
    with suppress(AnswerError):
        return list(decode_answer(reply, tuple[str, ...]))
    with suppress(AnswerError):
        named = decode_answer(reply, dict[str, tuple[str, ...]])
        return list(*named.values()) if len(named) == 1 else None
    return None


def _trouble(reference: Reference, question: str, before: list[str]) -> tuple[Reason, str] | None:
    from veriglot.text import fold, identify

    if sum(char.isalpha() for char in question) < _FEWEST_LETTERS and not _dense(question):
        return "form", "it is too short to be a question"
    if len(question) > _MOST_CODE_POINTS:
        return "form", f"it is longer than {_MOST_CODE_POINTS} code points"
    if any(fold(question) == fold(other) for other in before):
        return "duplicate", "it was asked before"
    found = identify(question)
    if found is not None and not same_language(found.tag, reference.language):
        return "language", f"it is in {found.tag} and should be in {reference.language}"
    return None


def _dense(question: str) -> bool:
    """Whether few characters can be a question: where a character is a syllable or a word."""
    return sum("\u3040" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7a3" for char in question) >= 4
