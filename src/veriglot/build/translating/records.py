"""What goes into a row of translation and what becomes of it."""

from __future__ import annotations

from typing import Literal

import msgspec

from veriglot.build.translating.choosing import Strategy, Way  # msgspec reads them at run time
from veriglot.records import Sample

__all__ = ["Dropped", "Given", "MarkCount", "Task", "TranslatedRow", "TranslationRejection", "TranslationSettings"]

Given = Literal["translate", "keep"]
Dropped = Literal["aside", "keep"]


class TranslationSettings(msgspec.Struct, frozen=True):
    """How rows are translated.

    Attributes:
        strategies: what is tried for the places of spans; the best of them is taken, span by span.
        threshold: quality, 0 to 1, below which a span is dropped.
        dropped: what becomes of a row that lost a span: it is set `aside`, or it is kept with the spans that are left
            and the flag `spans_dropped`. A row that lost all spans of an annotation is always set aside: it would
            look clean.
        evidence, question: whether they are translated too, or kept in their language.
        attempts: how often a text is tried with a translator that varies, at least 1.
    """

    strategies: tuple[Strategy, ...] = ("tags", "spans", "align")
    threshold: float = 0.5
    dropped: Dropped = "aside"
    evidence: Given = "translate"
    question: Given = "translate"
    attempts: int = 2


class Task(msgspec.Struct, frozen=True):
    """A sample that is due in a language.

    Attributes:
        id: the sample's, a slash and the target.
        sample: as it was read.
        source: BCP 47 tag of its response.
        target: BCP 47 tag.
    """

    id: str
    sample: Sample
    source: str
    target: str


class MarkCount(msgspec.Struct, frozen=True):
    """What became of a mark (a span or a unit of an annotation).

    Attributes:
        type: its type or label; empty where it has none.
        kept: whether it was.
        quality: of its place, 0 to 1; 0 where none was found.
        way: which strategy placed it; None where none did.
    """

    type: str
    kept: bool
    quality: float
    way: Way | None


class TranslationRejection(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row that was set aside, or a reply that was not taken.

    Attributes:
        id: of the row.
        sample: id of the sample.
        language: the target.
        what: `row`, or what a reply was for: `response`, `tags`, `span`, `evidence`, `question`.
        reason: an `Unfit`, `Insane` or `MarkerReason`; of rows also `unknown_language`, `same_language`,
            `spans_dropped`.
        detail: the same in words.
        attempt: which try it was, from 1.
        text: what came back.
    """

    id: str
    sample: str
    language: str
    what: str
    reason: str
    detail: str
    attempt: int = 1
    text: str = ""


class TranslatedRow(msgspec.Struct, frozen=True):
    """What became of a task. The row of the stage.

    Attributes:
        id: of the task.
        language: the target.
        sample: the translation; None where the row was set aside.
        rejections: the row's own, if it was set aside, and those of replies.
        marks: what became of each.
        calls, tokens_in, tokens_out: what it cost; tokens are estimated where a server did not say.
    """

    id: str
    language: str
    sample: Sample | None
    rejections: tuple[TranslationRejection, ...]
    marks: tuple[MarkCount, ...]
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
