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
from veriglot.formats.file_language import language_tag
from veriglot.formats.format import Format, Reading, Sniff, need, optional
from veriglot.formats.neighbour import Neighbour
from veriglot.records import Annotation, Evidence, Generator, Kind, Sample, Span, Task, Unit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from veriglot.formats.head import Head
    from veriglot.formats.report import Losses

__all__ = ["MuShroom"]

_LABEL = "hallucination"
_TAXONOMY = "hat"  # the one-type taxonomy: Mu-SHROOM marks hallucinations without typing them
_FILE_NAME = re.compile(r"(?:mushroom\.)?([A-Za-z]{2,3})-(\w+)")
_KEPT = ("model_output_tokens", "model_output_logits", "wikipedia_url")


class MuShroom(Format):
    """Mu-SHROOM JSONL."""

    name = "mu-shroom"
    summary = "Mu-SHROOM JSONL, SemEval-2025 task 3"
    containers = ("jsonl", "json", "parquet")
    cannot_hold = (
        "evidence (its text lies in another file; the address of the first passage is kept)",
        "types of spans, confidences, pointers, ratings, flags; task, generator settings, meta of other formats",
    )

    def sniff(self, head: Head) -> Sniff | None:
        """By `model_output_text` with `model_input` or one of the label keys."""
        labels = ("hard_labels", "soft_labels", "model_input")
        if head.has("model_output_text") and head.has_any(*labels):
            return Sniff(0.95, "the keys `model_output_text` and `hard_labels`, `soft_labels` or `model_input`")
        return None

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:
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
            meta={key: data[key] for key in _KEPT if data.get(key) is not None},
        )

    def record(self, sample: Sample, losses: Losses) -> dict[str, Any]:
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
                people[annotation.annotator] = spans
                continue
            row["hard_labels"] = spans
            row["soft_labels"] = [
                {"start": u.start, "prob": 1.0 if u.probability is None else u.probability, "end": u.end}
                for u in annotation.units or ()
            ]
        if people:
            row["annotations"] = people
        row |= {key: sample.meta[key] for key in _KEPT if key in sample.meta}
        if sample.evidence and sample.evidence[0].url and "wikipedia_url" not in row:
            row["wikipedia_url"] = sample.evidence[0].url
        _note_losses(sample, losses)
        return {key: value for key, value in row.items() if value is not None}


def _note_losses(sample: Sample, losses: Losses) -> None:
    spans = [span for a in sample.annotations for span in a.spans or ()]
    units = [unit for a in sample.annotations for unit in a.units or ()]
    present = {
        "evidence text": bool(sample.evidence),
        "types of spans": any(span.type not in (None, _LABEL) for span in spans),
        "confidence, text or pointers of spans": any(
            s.confidence is not None or s.text is not None or s.evidence for s in spans
        ),
        "labels of units": any(unit.label != _LABEL for unit in units),
        "taxonomy": any(a.taxonomy != _TAXONOMY for a in sample.annotations),
        "kind of annotator": any(a.kind is not Kind.HUMAN for a in sample.annotations),
        "units of single annotators": any(a.units and a.annotator != "gold" for a in sample.annotations),
        "absence of spans or units": any(a.spans is None for a in sample.annotations)
        or any(a.units is None and a.annotator == "gold" for a in sample.annotations),
        "ratings or flags": any(a.ratings or a.flags for a in sample.annotations),
        "task": sample.task is not Task.QA,
        "settings of the generator": sample.generator is not None
        and bool(sample.generator.revision or sample.generator.settings or sample.generator.seed is not None),
        "meta": any(key not in _KEPT for key in sample.meta),
    }
    losses.note_all((what for what, there in present.items() if there), sample.id)


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
        if not (isinstance(pair, list) and len(pair) == 2 and all(type(edge) is int for edge in pair)):
            raise InputError("a pair [start, end] of whole numbers is expected", field=f"{where}[{index}]")
        placed = _placed(pair[0], pair[1], f"{where}[{index}]", response, reading)
        if placed:
            yield Span(*placed, _LABEL)


def _units(soft: list[Any], response: str, reading: Reading) -> Iterator[Unit]:
    for index, item in enumerate(soft):
        where = f"soft_labels[{index}]"
        start, end = need(item, "start", int, within=where), need(item, "end", int, within=where)
        placed = _placed(start, end, where, response, reading)
        if placed:
            probability = need(item, "prob", float, within=where)
            if not 0 <= probability <= 1:
                raise InputError(f"a share of people lies between 0 and 1, not {probability}", field=f"{where}.prob")
            yield Unit(*placed, _LABEL, probability)


def _placed(start: int, end: int, where: str, response: str, reading: Reading) -> tuple[int, int] | None:
    """The range, if it is one. An empty one is left out, one that ends a place too far is cut: both are counted."""
    length = len(response)
    if start == end and 0 <= start <= length:
        reading.repaired("empty_spans", f"the span [{start}, {end}) is empty", where=where)
        return None
    if end == length + 1 and 0 <= start < length:
        reading.repaired("spans_cut_to_the_text", f"[{start}, {end}) ends one beyond {length}", where=where)
        end = length
    if not 0 <= start < end <= length:
        raise InputError(f"[{start}, {end}) does not lie in the response of {length} code points", field=where)
    return start, end


def _evidence(id_: str, url: str | None, language: str | None, reading: Reading) -> Iterator[Evidence]:
    neighbour = reading.state.get("references")
    if neighbour is None:
        neighbour = reading.state["references"] = Neighbour(_reference_file(reading), "id")
    found = neighbour.find(id_)
    if found is not None:
        text = need(found, "reference", str)
        yield Evidence(text, language=language, url=optional(found, "wikipedia_url", str) or url)
    elif neighbour.exists:
        reading.report.notes["without_reference"] += 1


def _reference_file(reading: Reading) -> Path | None:
    match = _FILE_NAME.match(reading.source.name)
    if reading.source.file is None or match is None:
        return None
    return reading.source.file.with_name(f"{match.group(1)}-{match.group(2)}.refs.jsonl")
