"""mFAVA JSON: an array of rows with `references`, `generated_text` and one or two layers of FAVA tags.

`silver_annotations` is what the injecting model marked, `gold_annotations` what a person did. The response is
`generated_text` (the text that people and model looked at) without the tag that its end may be cut off in; both
layers are laid onto it exactly, white space and letters that the annotation tool moved notwithstanding.

Source: mfava (Islam et al. 2025), section 3 and the published files.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.alignment import align
from veriglot.formats.file_language import language_in_name
from veriglot.formats.format import Format, Reading, Sniff, need, optional
from veriglot.formats.garbled import garbled
from veriglot.formats.tags import Tagged, parse_tags, render_tags
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task, taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.formats.head import Head
    from veriglot.formats.report import Losses

__all__ = ["Mfava"]

_LAYERS = (("gold", Kind.HUMAN), ("silver", Kind.MODEL))
_SAME_TEXT = 0.8  # a layer of which less is found in the response is not a layer of that response


class Mfava(Format):
    """mFAVA JSON, gold and silver."""

    name = "mfava"
    summary = "mFAVA JSON, gold and silver"
    containers = ("json", "jsonl", "parquet")
    cannot_hold = (
        "ids, language, question, generator, meta",
        "annotations other than those of annotators `gold` and `silver` with FAVA types",
        "confidences, pointers, units, ratings, flags; titles and addresses of passages",
    )

    def sniff(self, head: Head) -> Sniff | None:
        """By `generated_text` with one of the two layers."""
        if head.has("generated_text") and head.has_any("gold_annotations", "silver_annotations"):
            layers = [name for name, _ in _LAYERS if f"{name}_annotations" in head.keys]
            return Sniff(0.95, f"the keys `generated_text` and `{'`, `'.join(f'{n}_annotations' for n in layers)}`")
        return None

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:
        """One sample a row; `meta.group` is equal for rows that hold the same text."""
        language = language_in_name(reading.source.stem) or reading.language
        generated = parse_tags(need(data, "generated_text", str), _types())
        response = generated.text
        if generated.report.seen:
            reading.report.layer("response").add(generated.report)
            _refuse(generated, "generated_text", reading)
        annotations = []
        for name, kind in _LAYERS:
            tagged = optional(data, f"{name}_annotations", str)
            if tagged is not None:
                annotations.append(_layer(name, kind, tagged, response, reading))
        if not annotations:
            raise InputError("the row has neither layer", field="silver_annotations")
        references = optional(data, "references", str)
        meta: dict[str, Any] = {"group": _group(response)}
        broken = garbled(references) if references else None
        if broken:
            meta["reference_garbled"] = broken
            reading.report.notes[f"reference_garbled:{broken}"] += 1
        yield Sample(
            id=f"{reading.source.stem}-{line}",
            response=response,
            task=Task.QA,
            language=language,
            evidence=(Evidence(references, language=language),) if references else (),
            annotations=tuple(annotations),
            meta=meta,
        )

    def record(self, sample: Sample, losses: Losses) -> dict[str, Any]:
        """A row with the layers that the sample has."""
        _note_losses(sample, losses)
        row: dict[str, Any] = {
            "references": "\n".join(passage.text for passage in sample.evidence),
            "generated_text": sample.response,
        }
        for annotation in sample.annotations:
            key = f"{annotation.annotator}_annotations"
            if annotation.annotator not in dict(_LAYERS) or key in row or annotation.taxonomy != "fava":
                losses.note(f"annotation of {annotation.annotator!r} ({annotation.taxonomy})", sample.id)
            elif annotation.spans is None:
                losses.note("annotation without spans", sample.id)
            else:
                row[key] = tagged_text(sample, annotation.spans, losses)
        if len(row) == 2:
            losses.note("sample without a gold or silver layer of spans", sample.id)
        return row


def _types() -> tuple[str, ...]:
    return tuple(taxonomy("fava").types)


def _group(response: str) -> str:
    """The same for texts that differ in white space only."""
    return hashlib.sha256("".join(response.split()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _refuse(tagged: Tagged, field: str, reading: Reading) -> None:
    if reading.strict and tagged.faults:
        fault = tagged.faults[0]
        raise InputError(
            f"the tag {fault.tag!r} at code point {fault.at} is not right: {fault.kind}",
            field=field,
            remedy="Without strict it is repaired or reported, and counted.",
        )


def _layer(name: str, kind: Kind, text: str, response: str, reading: Reading) -> Annotation:
    tagged = parse_tags(text, _types())
    report = reading.report
    report.layer(name).add(tagged.report)
    _refuse(tagged, f"{name}_annotations", reading)
    alignment = align(tagged.text, response)
    if alignment.matched < _SAME_TEXT * alignment.solid:
        raise InputError("the annotated text is not the generated text", field=f"{name}_annotations")
    if not alignment.exact:
        reading.repaired(f"{name}:realigned_rows", "the annotated text differs from the generated text")
    spans = []
    for span in tagged.spans:
        placed = alignment.span(span.start, span.end)
        if placed is None:
            reading.repaired(f"{name}:spans_not_in_response", "a marked text is not in the generated text")
            report.layer(name).spans[span.type or ""] -= 1
        else:
            spans.append(Span(*placed, span.type))
    spans.sort(key=lambda span: (span.start, -span.end))
    return Annotation(annotator=name, kind=kind, taxonomy="fava", spans=tuple(spans))


def tagged_text(sample: Sample, spans: tuple[Span, ...], losses: Losses) -> str:
    """The response with tags, checked by reading it back: what would come out otherwise is noted as lost."""
    tagged = render_tags(sample.response, spans)
    back = parse_tags(tagged, _types())
    if back.text != sample.response:
        losses.note("text that reads as a tag", sample.id)
    elif {(s.start, s.end, s.type) for s in back.spans} != {(s.start, s.end, s.type) for s in spans}:
        losses.note("spans that tags cannot tell apart, or without a type", sample.id)
    if any(s.confidence is not None or s.evidence or s.text is not None for s in spans):
        losses.note("confidence, text or pointers of spans", sample.id)
    return tagged


def _note_losses(sample: Sample, losses: Losses) -> None:
    present = {
        "id": True,
        "question": sample.question is not None,
        "generator": sample.generator is not None,
        "task": sample.task is not Task.QA,
        "language (only in the file's name)": sample.language is not None,
        "meta": bool(sample.meta),
        "boundaries between passages": len(sample.evidence) > 1,
        "titles, addresses or languages of passages": any(e.title or e.url or e.language for e in sample.evidence),
        "units": any(a.units is not None for a in sample.annotations),
        "ratings or flags": any(a.ratings or a.flags for a in sample.annotations),
    }
    losses.note_all((what for what, there in present.items() if there), sample.id)
