"""PsiloQA rows (Rykov et al. 2025): answers of open models in 14 languages, hallucinated spans marked by GPT-4o.

`labels` holds `[start, end]` pairs in `llm_answer`; `annotated_span` is the same answer with `[HAL]...[/HAL]` around
them, and is read where `labels` is absent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.formats.base import Format, Reading, evidence_text, need, optional, present, spanned_annotation
from veriglot.formats.language import language_tag
from veriglot.formats.spans import marked_ranges, pair_of_offsets, placed, with_markers
from veriglot.records import Annotation, Evidence, Generator, Kind, Sample, Span, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = []

_TYPE = "hallucination"
_MARKERS = ("[HAL]", "[/HAL]")
_KEPT = ("golden_answer", "complexity")


class PsiloQa(Format):
    """PsiloQA rows."""

    name = "psiloqa"
    summary = "PsiloQA rows"
    keys = ("llm_answer", "wiki_passage")

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:
        """One sample a row."""
        answer = need(data, "llm_answer", str)
        tag = optional(data, "lang", str)
        language = language_tag(tag) if tag else reading.language
        passage = optional(data, "wiki_passage", str)
        title, url = optional(data, "wiki_title", str), optional(data, "wiki_url", str)
        model = optional(data, "llm_checkpoint", str)
        spans = _spans(data, answer, reading)
        annotation = Annotation(annotator="gpt-4o", kind=Kind.MODEL, taxonomy="hat", spans=spans)
        yield Sample(
            id=reading.row_id(data, line),
            response=answer,
            task=Task.QA,
            language=language,
            question=optional(data, "question", str),
            evidence=(Evidence(passage, title=title, language=language, url=url),) if passage else (),
            generator=Generator(model) if model else None,
            annotations=(annotation,) if spans is not None else (),
            meta=present(data, _KEPT),
        )

    def record(self, sample: Sample) -> dict[str, Any]:
        """A row with the spans of the first annotation that has any."""
        annotation = spanned_annotation(sample)
        first = sample.evidence[0] if sample.evidence else None
        row: dict[str, Any] = {
            "id": sample.id,
            "lang": sample.language,
            "wiki_title": first and first.title,
            "wiki_url": first and first.url,
            "llm_checkpoint": sample.generator and sample.generator.name,
            "wiki_passage": evidence_text(sample),
            "question": sample.question,
            "llm_answer": sample.response,
        }
        row |= {key: sample.meta[key] for key in _KEPT if key in sample.meta}
        if annotation is not None:
            spans = annotation.spans or ()
            row["annotated_span"] = with_markers(sample.response, spans, _MARKERS)
            row["labels"] = [[span.start, span.end] for span in spans]
        return present(row)


def _spans(data: Any, answer: str, reading: Reading) -> tuple[Span, ...] | None:
    labels = optional(data, "labels", list)
    if labels is None:
        marked = optional(data, "annotated_span", str)
        if marked is None:
            return None
        ranges = marked_ranges(marked, answer, _MARKERS, field="annotated_span", of="llm_answer")
        return tuple(Span(start, end, _TYPE) for start, end in ranges)
    spans = []
    for index, pair in enumerate(labels):
        where = f"labels[{index}]"
        span = placed(*pair_of_offsets(pair, where), where, answer, reading)
        if span:
            spans.append(Span(*span, _TYPE))
    return tuple(spans)
