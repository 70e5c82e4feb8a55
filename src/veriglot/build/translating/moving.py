"""A sample made anew around its translated response, with every mark accounted for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from veriglot.build.translating.records import MarkCount
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Unit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from veriglot.build.translating.choosing import Placed, Way
    from veriglot.build.translating.records import Task, TranslationSettings

__all__ = ["Made", "Moved", "moved_sample"]

FLAG = "spans_dropped"
_OF_THE_TEXT = {"samples", "silver"}  # of meta: other responses, and offsets, in the language of the original


class _Place(NamedTuple):
    parts: tuple[tuple[int, int], ...]
    quality: float
    way: Way | None


class Moved(NamedTuple):
    """A translated response.

    Attributes:
        text: the translation.
        places: per mark of the original, where it is now.
    """

    text: str
    places: dict[tuple[int, int], _Place]

    @classmethod
    def of(cls, text: str, marks: Sequence[tuple[int, int]], placed: Sequence[tuple[int, int, Placed | None]]) -> Moved:
        """Put the parts of marks together.

        Args:
            text: the translation.
            marks: of the original.
            placed: number of the mark, where its piece begins in the translation, and its place there; in order. A mark
                of several pieces is as good as the mean of them, and has no place where one of them has none.
        """
        found: dict[tuple[int, int], _Place] = {}
        for number, mark in enumerate(marks):
            own = [(at, place) for owner, at, place in placed if owner == number]
            whole = [(at, place) for at, place in own if place is not None]
            if not own or len(whole) < len(own):
                found[mark] = _Place((), 0.0, None)
                continue
            parts = _touching(text, [(at + s, at + e) for at, place in whole for s, e in place.parts])
            quality = sum(place.quality for _, place in whole) / len(whole)
            worst = min((place for _, place in whole), key=lambda place: place.quality)
            found[mark] = _Place(parts, quality, worst.way)
        return cls(text, found)


def _touching(text: str, parts: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Parts in order, those made one between which there is only white space."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(parts):
        if found and not text[found[-1][1] : start].strip():
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found)


class Made(NamedTuple):
    """What came of it.

    Attributes:
        sample: the translated sample; None where it was refused.
        counts: what became of each span and unit.
        refused: why there is no sample, and the same in words.
    """

    sample: Sample | None
    counts: tuple[MarkCount, ...]
    refused: tuple[str, str] | None


def moved_sample(
    task: Task,
    settings: TranslationSettings,
    moved: Moved,
    around: Mapping[tuple[str, str], str],
    translator: str,
    aligner: str | None,
) -> Made:
    """The sample in its new language.

    Args:
        task: the sample, and into what.
        settings: threshold, and what becomes of a row that lost a span.
        moved: the response and the places of its marks.
        around: translations of evidence and question, by language and text.
        translator, aligner: their signatures.
    """
    counts: list[MarkCount] = []
    noted: list[dict[str, Any]] = []
    annotations, emptied, lost = [], False, 0
    for annotation in task.sample.annotations:
        spans = _moved(annotation, annotation.spans, moved, settings, counts, noted)
        units = _moved(annotation, annotation.units, moved, settings, counts, noted)
        gone = sum(before and after is None for before, after in (*spans, *units))
        lost += gone
        new_spans = tuple(one for _, after in spans for one in after or () if isinstance(one, Span))
        new_units = tuple(one for _, after in units for one in after or () if isinstance(one, Unit))
        emptied |= bool((annotation.spans and not new_spans) or (annotation.units and not new_units))
        annotations.append(
            Annotation(
                annotation.annotator,
                Kind.MODEL,
                annotation.taxonomy,
                spans=_ordered(new_spans) if annotation.spans is not None else None,
                units=_ordered(new_units) if annotation.units is not None else None,
                ratings=annotation.ratings,
                flags=(*annotation.flags, *((FLAG,) if gone and FLAG not in annotation.flags else ())),
            )
        )
    if lost and (emptied or settings.dropped == "aside"):
        why = f"{lost} of {len(counts)} marks found no place that is good enough"
        return Made(None, tuple(counts), ("spans_dropped", why))
    meta = {
        "sample": task.sample.id,
        "language": task.source,
        "kinds": {one.annotator: str(one.kind) for one in task.sample.annotations},
        "marks": noted,
        "translator": translator,
        "aligner": aligner,
    }
    sample = msgspec.structs.replace(
        task.sample,
        id=task.id,
        response=moved.text,
        language=task.target,
        question=_around(around, task.source, task.sample.question),
        evidence=_evidence(task, around),
        annotations=tuple(annotations),
        meta={**_kept(task.sample), "translated": {key: value for key, value in meta.items() if value}},
    )
    return Made(sample, tuple(counts), None)


def _kept(sample: Sample) -> dict[str, Any]:
    """What a translation keeps of the original's meta; both are of one group, so that no split parts them."""
    meta = {key: value for key, value in sample.meta.items() if key not in _OF_THE_TEXT}
    return {"group": sample.id, **meta}


def _moved(
    annotation: Annotation,
    marks: Sequence[Span] | Sequence[Unit] | None,
    moved: Moved,
    settings: TranslationSettings,
    counts: list[MarkCount],
    noted: list[dict[str, Any]],
) -> list[tuple[bool, list[Span | Unit] | None]]:
    """Per mark, that it was there, and what it is now; None where it was dropped."""
    found: list[tuple[bool, list[Span | Unit] | None]] = []
    for mark in marks or ():
        place = moved.places[mark.start, mark.end]
        kept = bool(place.parts) and place.quality >= settings.threshold
        type_ = (mark.type if isinstance(mark, Span) else mark.label) or ""
        counts.append(MarkCount(type_, kept, place.quality, place.way))
        noted.append(
            {
                "annotator": annotation.annotator,
                "from": [mark.start, mark.end],
                "to": [list(part) for part in place.parts] if kept else [],
                "quality": round(place.quality, 4),
                "way": place.way,
            }
        )
        pointing = settings.evidence == "keep"
        found.append((True, [_at(mark, moved.text, part, pointing) for part in place.parts] if kept else None))
    return found


def _at(mark: Span | Unit, text: str, part: tuple[int, int], pointing: bool) -> Span | Unit:
    """A mark at its new place; it points into the evidence only where that is as it was."""
    start, end = part
    if isinstance(mark, Unit):
        return Unit(start, end, mark.label, mark.probability)
    shown = text[start:end] if mark.text is not None else None
    return Span(start, end, mark.type, mark.confidence, shown, mark.evidence if pointing else ())


def _ordered(marks: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sorted(dict.fromkeys(marks), key=lambda one: (one.start, -one.end)))


def _around(around: Mapping[tuple[str, str], str], tag: str, text: str | None) -> str | None:
    return around.get((tag, text), text) if text is not None else None


def _evidence(task: Task, around: Mapping[tuple[str, str], str]) -> tuple[Evidence, ...]:
    found = []
    for passage in task.sample.evidence:
        tag = passage.language or task.source
        if (tag, passage.text) in around:
            found.append(
                msgspec.structs.replace(
                    passage,
                    text=around[tag, passage.text],
                    title=_around(around, tag, passage.title),
                    language=task.target,
                )
            )
        else:
            found.append(msgspec.structs.replace(passage, language=tag))
    return tuple(found)
