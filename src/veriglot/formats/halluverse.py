"""HalluVerse25 CSV: a factual sentence, its edited version, and the type of the hallucination (section 3 of its paper).

The data set labels the sentence, not a place in it: the label is a unit over the whole response (annotator `gold`).
For spans a second annotation, `edit`, marks the words in which the edited sentence differs from the factual one (all
of it for the type `sentence`); it is computed, and said to be by a model. The factual sentence is the evidence.
The paper does not print the column names, so the usual spellings are recognised whatever their case.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.base import Format, Reading, Sniff, evidence_text
from veriglot.formats.language import language_of_file, language_tag
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task, Unit
from veriglot.records.taxonomy import taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.formats.containers import Head

__all__ = []

_ORIGINAL = ("original_sentence", "original", "factual_sentence", "factual", "sentence")
_EDITED = ("edited_sentence", "edited", "hallucinated_sentence", "hallucinated")
_LABEL = ("hallucination_type", "label", "type", "final_label")
_LANGUAGE = ("language", "lang")
_NAMES = {"ent": "entity", "rel": "relation", "sent": "sentence"}
_TOKEN = re.compile(r"\w+|[^\w\s]")


class HalluVerse(Format):
    """HalluVerse25 CSV."""

    name = "halluverse"
    summary = "HalluVerse25 CSV"
    containers = ("csv", "jsonl", "json", "parquet")
    columns = ("id", "language", "original_sentence", "edited_sentence", "hallucination_type")

    def sniff(self, head: Head) -> Sniff | None:
        """By columns for the edited sentence and the type."""
        keys = {_plain(key) for key in head.keys}
        if keys & set(_EDITED) and keys & set(_LABEL):
            return Sniff(0.8, "columns for an edited sentence and its label")
        return None

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:
        """One sample a row; `0` (no hallucination, or ungrammatical) is a row without a label."""
        if not isinstance(data, dict):
            raise InputError("a row with named columns is expected")
        row = {_plain(key): value for key, value in data.items() if isinstance(value, str) and value}
        original, edited = _pick(row, _ORIGINAL), _pick(row, _EDITED)
        written = _pick(row, _LABEL).strip().lower().rstrip(".")
        label = _NAMES.get(written, written)
        named = next((row[key] for key in _LANGUAGE if key in row), None)
        language = language_tag(named) if named else language_of_file(reading)
        yield Sample(
            id=row.get("id") or f"{reading.source.stem}-{line}",
            response=edited,
            task=Task.BIOGRAPHY,
            language=language,
            evidence=(Evidence(original, language=language),),
            annotations=tuple(_annotations(label, original, edited)),
            meta={} if label != "0" else {"label": "0"},
        )

    def record(self, sample: Sample) -> dict[str, Any]:
        """A row of the sample's unit label."""
        units = [unit for annotation in sample.annotations for unit in annotation.units or ()]
        labels = {unit.label for unit in units}
        unlabelled = not labels and any(annotation.spans for annotation in sample.annotations)
        known = labels <= taxonomy("halluverse").types.keys()
        if len(labels) > 1 or unlabelled or not known or not sample.evidence:
            raise InputError("a row of HalluVerse has one label and a factual sentence")
        return {
            "id": sample.id,
            "language": sample.language or "",
            "original_sentence": evidence_text(sample),
            "edited_sentence": sample.response,
            "hallucination_type": units[0].label.capitalize() if units else "0",
        }


def _plain(column: str) -> str:
    return re.sub(r"[\s_-]+", "_", column.strip().lower())


def _pick(row: dict[str, str], names: tuple[str, ...]) -> str:
    for name in names:
        if name in row:
            return row[name]
    raise InputError("the column is missing or empty", field=names[0])


def _annotations(label: str, original: str, edited: str) -> Iterator[Annotation]:
    if label == "0":
        return
    if label not in taxonomy("halluverse").types:
        raise InputError(f"the label {label!r} is none of entity, relation, sentence, 0", field=_LABEL[0])
    whole = Unit(0, len(edited), label)
    yield Annotation(annotator="gold", kind=Kind.HUMAN, taxonomy="halluverse", units=(whole,))
    spans = (Span(0, len(edited), label),) if label == "sentence" else tuple(_changed(original, edited, label))
    yield Annotation(annotator="edit", kind=Kind.MODEL, taxonomy="halluverse", spans=spans)


def _changed(original: str, edited: str, label: str) -> Iterator[Span]:
    before, after = (list(_TOKEN.finditer(text)) for text in (original, edited))
    matcher = SequenceMatcher(None, [m.group() for m in before], [m.group() for m in after], autojunk=False)
    for operation, _, _, start, end in matcher.get_opcodes():
        if operation in {"replace", "insert"}:
            yield Span(after[start].start(), after[end - 1].end(), label)
