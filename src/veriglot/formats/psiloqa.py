"""PsiloQA rows (Rykov et al. 2025): answers of open models in 14 languages, hallucinated spans marked by GPT-4o.

`labels` holds `[start, end]` pairs in `llm_answer`; `annotated_span` is the same answer with `[HAL]...[/HAL]` around
them, and is read where `labels` is absent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.file_language import language_tag
from veriglot.formats.format import Format, Reading, Sniff, need, optional
from veriglot.formats.markers import marked_ranges, with_markers
from veriglot.formats.offsets import placed
from veriglot.records import Annotation, Evidence, Generator, Kind, Sample, Span, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.formats.head import Head

__all__ = ["PsiloQa"]

_TYPE = "hallucination"
_MARKERS = ("[HAL]", "[/HAL]")
_KEPT = ("golden_answer", "complexity")


class PsiloQa(Format):
    """PsiloQA rows."""

    name = "psiloqa"
    summary = "PsiloQA rows"
    containers = ("jsonl", "json", "parquet")

    def sniff(self, head: Head) -> Sniff | None:
        """By `llm_answer` and `wiki_passage`."""
        if head.has("llm_answer", "wiki_passage"):
            return Sniff(0.95, "the keys `llm_answer` and `wiki_passage`")
        return None

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
            id=optional(data, "id", str) or f"{reading.source.stem}-{line}",
            response=answer,
            task=Task.QA,
            language=language,
            question=optional(data, "question", str),
            evidence=(Evidence(passage, title=title, language=language, url=url),) if passage else (),
            generator=Generator(model) if model else None,
            annotations=(annotation,) if spans is not None else (),
            meta={key: data[key] for key in _KEPT if data.get(key) is not None},
        )

    def record(self, sample: Sample) -> dict[str, Any]:
        """A row with the spans of the first annotation that has any."""
        spans = next((a.spans for a in sample.annotations if a.spans is not None), None)
        first = sample.evidence[0] if sample.evidence else None
        row: dict[str, Any] = {
            "id": sample.id,
            "lang": sample.language,
            "wiki_title": first and first.title,
            "wiki_url": first and first.url,
            "llm_checkpoint": sample.generator and sample.generator.name,
            "wiki_passage": "\n\n".join(passage.text for passage in sample.evidence),
            "question": sample.question,
            "llm_answer": sample.response,
        }
        row |= {key: sample.meta[key] for key in _KEPT if key in sample.meta}
        if spans is not None:
            row["annotated_span"] = with_markers(sample.response, spans, _MARKERS)
            row["labels"] = [[span.start, span.end] for span in spans]
        return {key: value for key, value in row.items() if value is not None}


def _spans(data: Any, answer: str, reading: Reading) -> tuple[Span, ...] | None:
    labels = optional(data, "labels", list)
    if labels is None:
        marked = optional(data, "annotated_span", str)
        if marked is None:
            return None
        ranges = marked_ranges(marked, answer, _MARKERS, field="annotated_span", of="llm_answer")
        return tuple(Span(*place, _TYPE) for place in ranges)
    spans = []
    for index, pair in enumerate(labels):
        where = f"labels[{index}]"
        if not (isinstance(pair, list) and len(pair) == 2 and all(type(edge) is int for edge in pair)):
            raise InputError("a pair [start, end] of whole numbers is expected", field=where)
        place = placed(pair[0], pair[1], where, answer, reading)
        if place:
            spans.append(Span(*place, _TYPE))
    return tuple(spans)
