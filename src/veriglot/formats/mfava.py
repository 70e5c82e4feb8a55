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
from veriglot.formats.file_language import in_the_script_of, language_of_file
from veriglot.formats.format import Format, Reading, Sniff, need, optional
from veriglot.formats.garbled import garbled
from veriglot.formats.glue import looks_glued, words_of
from veriglot.formats.mapping import type_in
from veriglot.formats.tags import parse_tags, render_tags
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task, taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.formats.head import Head

__all__ = ["Mfava"]

_LAYERS = (("gold", Kind.HUMAN), ("silver", Kind.MODEL))
_REPLACING = frozenset({"entity", "relation"})
_SAME_TEXT = 0.8  # a layer of which less is found in the response is not a layer of that response


class Mfava(Format):
    """mFAVA JSON, gold and silver."""

    name = "mfava"
    summary = "mFAVA JSON, gold and silver"
    containers = ("json", "jsonl", "parquet")

    def sniff(self, head: Head) -> Sniff | None:
        """By `generated_text` with one of the two layers."""
        if head.has("generated_text") and head.has_any("gold_annotations", "silver_annotations"):
            layers = [name for name, _ in _LAYERS if f"{name}_annotations" in head.keys]
            return Sniff(0.95, f"the keys `generated_text` and `{'`, `'.join(f'{n}_annotations' for n in layers)}`")
        return None

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:
        """One sample a row.

        `meta.group` is equal for rows that hold the same text; `meta.reference_garbled` says why a reference is
        unusable; `meta.glued` lists the silver spans that show a seam.
        """
        language = language_of_file(reading)
        generated = parse_tags(need(data, "generated_text", str), _types())
        response = generated.text
        if generated.report.seen:
            reading.report.layer("response").add(generated.report)
            if reading.strict:
                generated.refuse_faults("generated_text")
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
        glued = _glued(annotations, response, references or "")
        if glued:
            meta["glued"] = glued
            reading.report.notes["glued_spans"] += len(glued)
        yield Sample(
            id=f"{reading.source.stem}-{line}",
            response=response,
            task=Task.QA,
            language=in_the_script_of(language, response),
            evidence=(Evidence(references, language=in_the_script_of(language, references)),) if references else (),
            annotations=tuple(annotations),
            meta=meta,
        )

    def record(self, sample: Sample) -> dict[str, Any]:
        """A row with the layers that the sample has."""
        row: dict[str, Any] = {
            "references": "\n\n".join(passage.text for passage in sample.evidence),
            "generated_text": sample.response,
        }
        for annotation in sample.annotations:
            key = f"{annotation.annotator}_annotations"
            if annotation.annotator in dict(_LAYERS) and annotation.spans is not None and key not in row:
                row[key] = render_tags(sample.response, _with_fava_types(annotation))
        if len(row) == 2:
            raise InputError("a row of mFAVA has spans of an annotator named `gold` or `silver`")
        return row


def _with_fava_types(annotation: Annotation) -> list[Span]:
    found = [(span, type_in("fava", annotation, span)) for span in annotation.spans or ()]
    kept = [Span(span.start, span.end, type_) for span, type_ in found if type_ is not None]
    if found and not kept:
        raise InputError(f"no type of the spans of {annotation.annotator!r} has a counterpart among FAVA's")
    return kept


def _types() -> tuple[str, ...]:
    return tuple(taxonomy("fava").types)


def _group(response: str) -> str:
    """The same for texts that differ in white space only."""
    return hashlib.sha256("".join(response.split()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _glued(annotations: list[Annotation], response: str, references: str) -> list[list[int]]:
    """The injected replacements (silver entity and relation spans) in which old and new stand together."""
    known = words_of(references)
    return [
        [span.start, span.end]
        for annotation in annotations
        if annotation.kind is Kind.MODEL
        for span in annotation.spans or ()
        if span.type in _REPLACING and looks_glued(response[span.start : span.end], known)
    ]


def _layer(name: str, kind: Kind, text: str, response: str, reading: Reading) -> Annotation:
    tagged = parse_tags(text, _types())
    report = reading.report
    report.layer(name).add(tagged.report)
    if reading.strict:
        tagged.refuse_faults(f"{name}_annotations")
    alignment = align(tagged.text, response)
    if alignment.matched < _SAME_TEXT * alignment.solid:
        raise InputError("the annotated text is not the generated text", field=f"{name}_annotations")
    if not alignment.exact:
        reading.repaired(f"{name}:realigned_rows", "the annotated text differs from the generated text")
    elif tagged.text != response:
        report.notes[f"{name}:moved_spaces"] += 1
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
