"""Mu-SHROOM JSONL (SemEval-2025 task 3): answers of models, with character spans marked by several people.

`hard_labels` are the spans that a majority marked (annotator `gold`), `soft_labels` the share of people who marked
each stretch (units of `gold` with a probability), `annotations` each person's own spans. Offsets are half-open code
points. The plain text of the Wikipedia page, where a `<lang>-<split>.refs.jsonl` lies beside the file, becomes the
evidence.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.base import Format, Reading, Sniff, need, optional, present
from veriglot.formats.containers import Neighbour
from veriglot.formats.language import language_tag
from veriglot.formats.spans import offsets_of, pair_of_offsets, placed
from veriglot.records import Annotation, Evidence, Generator, Kind, Sample, Span, Task, Unit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from veriglot.formats.containers import Head

__all__ = []

_LABEL = "hallucination"
_TAXONOMY = "hat"  # the one-type taxonomy: Mu-SHROOM marks hallucinations without typing them
_FILE_NAME = re.compile(r"(?:mushroom\.)?([A-Za-z]{2,3})-(\w+)")
_KEPT = ("model_output_tokens", "model_output_logits", "wikipedia_url")


class MuShroom(Format):
    """Mu-SHROOM JSONL."""

    name = "mu-shroom"
    summary = "Mu-SHROOM JSONL, SemEval-2025 task 3"
    companions = ("*.refs.jsonl",)

    def sniff(self, head: Head) -> Sniff | None:
        """By `model_output_text` with `model_input` or one of the label keys."""
        labels = ("hard_labels", "soft_labels", "model_input")
        if head.has("model_output_text") and head.has_any(*labels):
            return Sniff(0.95, "the keys `model_output_text` and `hard_labels`, `soft_labels` or `model_input`")
        return None

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:  # noqa: ARG002
        """One sample a record; without labels (the unlabelled test sets) it has no annotation."""
        response = need(data, "model_output_text", str)
        id_ = need(data, "id", str)
        tag = optional(data, "lang", str)
        language = language_tag(tag) if tag else reading.language
        if tag and language is None:
            reading.repaired("unknown_language", f"the language {tag!r} is not known", where="lang")
            language = tag.lower()
        url = optional(data, "wikipedia_url", str)
        model = optional(data, "model_id", str)
        yield Sample(
            id=id_,
            response=response,
            task=Task.QA,
            language=language,
            question=optional(data, "model_input", str),
            evidence=tuple(_evidence(id_, url, language, reading)),
            generator=Generator(model) if model else None,
            annotations=tuple(_annotations(data, response, reading)),
            meta=present(data, _KEPT),
        )

    def record(self, sample: Sample) -> dict[str, Any]:
        """A row; the annotation of `gold` gives hard and soft labels, the others each person's spans."""
        row: dict[str, Any] = {
            "id": sample.id,
            "lang": (sample.language or "").upper(),
            "model_input": sample.question,
            "model_output_text": sample.response,
            "model_id": sample.generator.name if sample.generator else None,
        }
        people = {}
        for annotation in sample.annotations:
            spans = [[span.start, span.end] for span in annotation.spans or ()]
            if annotation.annotator != "gold":
                if annotation.spans is not None:
                    people[annotation.annotator] = spans
                continue
            if annotation.spans is not None:
                row["hard_labels"] = spans
            if annotation.units is not None:
                row["soft_labels"] = [
                    {"start": u.start, "prob": 1.0 if u.probability is None else u.probability, "end": u.end}
                    for u in annotation.units
                ]
        if people:
            row["annotations"] = people
        row |= {key: sample.meta[key] for key in _KEPT if key in sample.meta}
        if sample.evidence and sample.evidence[0].url and "wikipedia_url" not in row:
            row["wikipedia_url"] = sample.evidence[0].url
        return present(row)


def _annotations(data: Any, response: str, reading: Reading) -> Iterator[Annotation]:
    hard = optional(data, "hard_labels", list)
    soft = optional(data, "soft_labels", list)
    if hard is not None or soft is not None:
        yield Annotation(
            annotator="gold",
            kind=Kind.HUMAN,
            taxonomy=_TAXONOMY,
            spans=None if hard is None else tuple(_spans(hard, "hard_labels", response, reading)),
            units=None if soft is None else tuple(_units(soft, response, reading)),
        )
    for name, pairs in (optional(data, "annotations", dict) or {}).items():
        spans = tuple(_spans(pairs, f"annotations.{name}", response, reading))
        yield Annotation(annotator=name, kind=Kind.HUMAN, taxonomy=_TAXONOMY, spans=spans)


def _spans(pairs: Any, where: str, response: str, reading: Reading) -> Iterator[Span]:
    if not isinstance(pairs, list):
        raise InputError("a list of [start, end] is expected", field=where)
    for index, pair in enumerate(pairs):
        within = f"{where}[{index}]"
        span = placed(*pair_of_offsets(pair, within), within, response, reading)
        if span:
            yield Span(*span, _LABEL)


def _units(soft: list[Any], response: str, reading: Reading) -> Iterator[Unit]:
    for index, item in enumerate(soft):
        where = f"soft_labels[{index}]"
        unit = placed(*offsets_of(item, where), where, response, reading)
        if unit:
            probability = need(item, "prob", float, within=where)
            if not 0 <= probability <= 1:
                raise InputError(f"a share of people lies between 0 and 1, not {probability}", field=f"{where}.prob")
            yield Unit(*unit, _LABEL, probability)


def _evidence(id_: str, url: str | None, language: str | None, reading: Reading) -> Iterator[Evidence]:
    neighbour = reading.state.get("references")
    if neighbour is None:
        neighbour = reading.state["references"] = Neighbour(_reference_file(reading), "id")
    reference = neighbour.find(id_)
    if reference is not None:
        text = need(reference, "reference", str)
        yield Evidence(text, language=language, url=optional(reference, "wikipedia_url", str) or url)
    elif neighbour.exists:
        reading.report.notes["without_reference"] += 1


def _reference_file(reading: Reading) -> Path | None:
    match = _FILE_NAME.match(reading.source.name)
    if reading.source.file is None or match is None:
        return None
    return reading.source.file.with_name(f"{match.group(1)}-{match.group(2)}.refs.jsonl")
