"""Translated samples as rows: projected spans, why spans or rows were dropped, and the account by language."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from veriglot.datasets.translation.projection import Strategy, Way
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Unit
from veriglot.storage.checkpoint import FailedRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from veriglot.datasets.translation.projection import PlacedMark

__all__ = [
    "MarkAccount",
    "MarkCount",
    "ProjectedResponse",
    "Task",
    "TranslatedRow",
    "TranslationAccount",
    "TranslationLanguage",
    "TranslationRejection",
    "TranslationSettings",
    "load_translation_account",
    "projected_sample",
    "translation_account_of",
    "translation_account_path",
]


class MarkAccount(msgspec.Struct, frozen=True):
    """The marks (spans and labelled units) of one type.

    Attributes:
        asked: marks of the rows whose texts could be translated.
        dropped: those of them without a place that is good enough.
        quality: mean quality of those that were kept, 0 to 1; None where none was.
        ways: how many of those that were kept each strategy placed; `sentence` are marks of whole sentences.
    """

    asked: int
    dropped: int
    quality: float | None
    ways: dict[str, int]

    @property
    def drop_rate(self) -> float | None:
        """The share that was dropped, 0 to 1; None where nothing was asked for."""
        return self.dropped / self.asked if self.asked else None


class TranslationLanguage(msgspec.Struct, frozen=True):
    """One language, or all of them.

    Attributes:
        rows: samples that were to be translated and did not fail; `TranslationAccount.failed` are further ones.
        kept: those that were.
        partial: those of them that lost a span.
        types: marks by type.
        row_reasons: rows that were set aside, by reason.
        reply_reasons: translations that were not taken, by what they were of and reason; a text that was translated
            another way in the end is counted too.
        calls, tokens_in, tokens_out: what it cost; tokens are estimated where a server did not say.
    """

    rows: int
    kept: int
    partial: int
    types: dict[str, MarkAccount]
    row_reasons: dict[str, int]
    reply_reasons: dict[str, dict[str, int]]
    calls: int
    tokens_in: int
    tokens_out: int

    @property
    def marks(self) -> MarkAccount:
        """The marks of all types."""
        asked = sum(account.asked for account in self.types.values())
        dropped = sum(account.dropped for account in self.types.values())
        total = sum((account.quality or 0.0) * (account.asked - account.dropped) for account in self.types.values())
        ways: Counter[str] = Counter()
        for account in self.types.values():
            ways.update(account.ways)
        return MarkAccount(asked, dropped, total / (asked - dropped) if asked > dropped else None, dict(ways))


class TranslationAccount(msgspec.Struct, frozen=True):
    """All of a run.

    Attributes:
        languages: by BCP 47 tag, in the order of the tags.
        total: all languages together; what it cost includes what was spent on failed rows, which are in no language.
        failed: rows that came to nothing because a call gave nothing, or that could not be read.
    """

    languages: dict[str, TranslationLanguage]
    total: TranslationLanguage
    failed: int = 0


class _Tally:
    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        self._quality: Counter[str] = Counter()
        self._ways: dict[str, Counter[str]] = {}
        self._reasons: dict[str, Counter[str]] = {}

    def add(self, row: TranslatedRow) -> None:
        counts = self._counts
        counts["rows"] += 1
        counts["kept"] += row.sample is not None
        counts["partial"] += row.sample is not None and any(not mark.kept for mark in row.marks)
        for name in ("calls", "tokens_in", "tokens_out"):
            counts[name] += getattr(row, name)
        for mark in row.marks:
            self._asked[mark.type] += 1
            self._dropped[mark.type] += not mark.kept
            if mark.kept:
                self._quality[mark.type] += mark.quality  # type: ignore[assignment]  # a Counter of floats
                self._ways.setdefault(mark.type, Counter())[mark.way or ""] += 1
        for rejection in row.rejections:
            self._reasons.setdefault(rejection.what, Counter())[rejection.reason] += 1

    def pay(self, lost: FailedRows) -> None:
        self._counts.update(msgspec.structs.asdict(lost.usage))

    def account(self) -> TranslationLanguage:
        counts = self._counts
        types = {}
        for type_ in sorted(self._asked):
            projected = self._asked[type_] - self._dropped[type_]
            mean = self._quality[type_] / projected if projected else None
            types[type_] = MarkAccount(self._asked[type_], self._dropped[type_], mean, self._ranked(self._ways, type_))
        replies = {what: self._ranked(self._reasons, what) for what in sorted(self._reasons) if what != "row"}
        return TranslationLanguage(
            counts["rows"],
            counts["kept"],
            counts["partial"],
            types,
            self._ranked(self._reasons, "row"),
            replies,
            counts["calls"],
            counts["tokens_in"],
            counts["tokens_out"],
        )

    @staticmethod
    def _ranked(table: dict[str, Counter[str]], key: str) -> dict[str, int]:
        return dict(sorted(table.get(key, Counter()).items(), key=lambda item: (-item[1], item[0])))


def translation_account_of(rows: Iterable[TranslatedRow], *, failed: FailedRows = FailedRows()) -> TranslationAccount:  # noqa: B008
    """Account for what was translated, row by row; memory does not grow with them.

    Args:
        rows: what became of each.
        failed: rows that came to nothing, and what was spent on them.
    """
    languages: dict[str, _Tally] = {}
    total = _Tally()
    for row in rows:
        languages.setdefault(row.language, _Tally()).add(row)
        total.add(row)
    total.pay(failed)
    by_language = {tag: languages[tag].account() for tag in sorted(languages)}
    return TranslationAccount(by_language, total.account(), failed.rows)


def translation_account_path(output: Path) -> Path:
    """Where the account of an output is."""
    return output.with_name(output.name + ".account.json")


def load_translation_account(output: Path) -> TranslationAccount:
    """The account that lies beside an output."""
    return msgspec.json.decode(translation_account_path(output).read_bytes(), type=TranslationAccount)


# What goes into a row of translation and what becomes of it.


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


FLAG = "spans_dropped"
_OF_THE_TEXT = {"samples", "silver"}  # of meta: other responses, and offsets, in the language of the original


class _Place(NamedTuple):
    parts: tuple[tuple[int, int], ...]
    quality: float
    way: Way | None


class ProjectedResponse(NamedTuple):
    """A translated response.

    Attributes:
        text: the translation.
        places: per mark of the original, where it is now.
    """

    text: str
    places: dict[tuple[int, int], _Place]

    @classmethod
    def of(
        cls, text: str, marks: Sequence[tuple[int, int]], placed: Sequence[tuple[int, int, PlacedMark | None]]
    ) -> ProjectedResponse:
        """Put the parts of marks together.

        Args:
            text: the translation.
            marks: of the original.
            placed: number of the mark, where its piece begins in the translation, and its place there; in order. A mark
                of several pieces is as good as the mean of them, and has no place where one of them has none.
        """
        projections: dict[tuple[int, int], _Place] = {}
        for number, mark in enumerate(marks):
            own = [(at, projection) for owner, at, projection in placed if owner == number]
            whole = [(at, projection) for at, projection in own if projection is not None]
            if not own or len(whole) < len(own):
                projections[mark] = _Place((), 0.0, None)
                continue
            parts = _touching(text, [(at + s, at + e) for at, projection in whole for s, e in projection.parts])
            quality = sum(projection.quality for _, projection in whole) / len(whole)
            worst = min((projection for _, projection in whole), key=lambda projection: projection.quality)
            projections[mark] = _Place(parts, quality, worst.way)
        return cls(text, projections)


def _touching(text: str, parts: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Parts in order, those made one between which there is only white space."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(parts):
        if merged and not text[merged[-1][1] : start].strip():
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


class ProjectionResult(NamedTuple):
    """What came of it.

    Attributes:
        sample: the translated sample; None where it was refused.
        counts: what became of each span and unit.
        refused: why there is no sample, and the same in words.
    """

    sample: Sample | None
    counts: tuple[MarkCount, ...]
    refused: tuple[str, str] | None


def projected_sample(
    task: Task,
    settings: TranslationSettings,
    projected: ProjectedResponse,
    around: Mapping[tuple[str, str], str],
    translator: str,
    aligner: str | None,
) -> ProjectionResult:
    """The sample in its new language.

    Args:
        task: the sample, and into what.
        settings: threshold, and what becomes of a row that lost a span.
        projected: the response and the places of its marks.
        around: translations of evidence and question, by language and text.
        translator, aligner: their signatures.
    """
    counts: list[MarkCount] = []
    notes: list[dict[str, Any]] = []
    annotations, emptied, lost = [], False, 0
    for annotation in task.sample.annotations:
        spans = _projected_marks(annotation, annotation.spans, projected, settings, counts, notes)
        units = _projected_marks(annotation, annotation.units, projected, settings, counts, notes)
        dropped = sum(before and after is None for before, after in (*spans, *units))
        lost += dropped
        new_spans = tuple(item for _, after in spans for item in after or () if isinstance(item, Span))
        new_units = tuple(item for _, after in units for item in after or () if isinstance(item, Unit))
        emptied |= bool((annotation.spans and not new_spans) or (annotation.units and not new_units))
        annotations.append(
            Annotation(
                annotation.annotator,
                Kind.MODEL,
                annotation.taxonomy,
                spans=_ordered(new_spans) if annotation.spans is not None else None,
                units=_ordered(new_units) if annotation.units is not None else None,
                ratings=annotation.ratings,
                flags=(*annotation.flags, *((FLAG,) if dropped and FLAG not in annotation.flags else ())),
            )
        )
    if lost and (emptied or settings.dropped == "aside"):
        why = f"{lost} of {len(counts)} marks found no place that is good enough"
        return ProjectionResult(None, tuple(counts), ("spans_dropped", why))
    meta = {
        "sample": task.sample.id,
        "language": task.source,
        "kinds": {item.annotator: str(item.kind) for item in task.sample.annotations},
        "marks": notes,
        "translator": translator,
        "aligner": aligner,
    }
    sample = msgspec.structs.replace(
        task.sample,
        id=task.id,
        response=projected.text,
        language=task.target,
        question=_translated_or_same(around, task.source, task.sample.question),
        evidence=_evidence(task, around),
        annotations=tuple(annotations),
        meta={**_carried_meta(task.sample), "translated": {key: value for key, value in meta.items() if value}},
    )
    return ProjectionResult(sample, tuple(counts), None)


def _carried_meta(sample: Sample) -> dict[str, Any]:
    """What a translation keeps of the original's meta; both are of one group, so that no split parts them."""
    meta = {key: value for key, value in sample.meta.items() if key not in _OF_THE_TEXT}
    return {"group": sample.id, **meta}


def _projected_marks(
    annotation: Annotation,
    marks: Sequence[Span] | Sequence[Unit] | None,
    projected: ProjectedResponse,
    settings: TranslationSettings,
    counts: list[MarkCount],
    notes: list[dict[str, Any]],
) -> list[tuple[bool, list[Span | Unit] | None]]:
    """Per mark, that it was there, and what it is now; None where it was dropped."""
    result: list[tuple[bool, list[Span | Unit] | None]] = []
    for mark in marks or ():
        projection = projected.places[mark.start, mark.end]
        accepted = bool(projection.parts) and projection.quality >= settings.threshold
        type_ = (mark.type if isinstance(mark, Span) else mark.label) or ""
        counts.append(MarkCount(type_, accepted, projection.quality, projection.way))
        notes.append(
            {
                "annotator": annotation.annotator,
                "from": [mark.start, mark.end],
                "to": [list(part) for part in projection.parts] if accepted else [],
                "quality": round(projection.quality, 4),
                "way": projection.way,
            }
        )
        pointing = settings.evidence == "keep"
        result.append(
            (True, [_mark_at(mark, projected.text, part, pointing) for part in projection.parts] if accepted else None)
        )
    return result


def _mark_at(mark: Span | Unit, text: str, part: tuple[int, int], pointing: bool) -> Span | Unit:
    """A mark at its new place; it points into the evidence only where that is as it was."""
    start, end = part
    if isinstance(mark, Unit):
        return Unit(start, end, mark.label, mark.probability)
    shown = text[start:end] if mark.text is not None else None
    return Span(start, end, mark.type, mark.confidence, shown, mark.evidence if pointing else ())


def _ordered(marks: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sorted(dict.fromkeys(marks), key=lambda mark: (mark.start, -mark.end)))


def _translated_or_same(around: Mapping[tuple[str, str], str], tag: str, text: str | None) -> str | None:
    return around.get((tag, text), text) if text is not None else None


def _evidence(task: Task, around: Mapping[tuple[str, str], str]) -> tuple[Evidence, ...]:
    passages = []
    for passage in task.sample.evidence:
        tag = passage.language or task.source
        if (tag, passage.text) in around:
            passages.append(
                msgspec.structs.replace(
                    passage,
                    text=around[tag, passage.text],
                    title=_translated_or_same(around, tag, passage.title),
                    language=task.target,
                )
            )
        else:
            passages.append(msgspec.structs.replace(passage, language=tag))
    return tuple(passages)
