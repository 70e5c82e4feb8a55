"""RAGTruth JSONL (Niu et al. 2024): responses of six models with spans that people marked.

The published `response.jsonl` names its source in `source_info.jsonl`, which is joined where it lies beside it. Rows
that carry their source themselves (`source_info`, `task_type`, `prompt`), as written here, are read too. Conflicts
are `contradicted`, baseless information is `unverified` in the taxonomy `support`; the labels as published stay in
`meta.labels`, one a span. Rows need not say their `language`, which then is identified from the response.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.file_language import identified, language_tag
from veriglot.formats.format import Format, Reading, Sniff, need, optional
from veriglot.formats.mapping import RAGTRUTH_LABELS, type_in
from veriglot.formats.neighbour import Neighbour
from veriglot.formats.offsets import located
from veriglot.records import Annotation, Evidence, Generator, Kind, Sample, Span, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.formats.head import Head

__all__ = ["LABELS", "RagTruth"]

LABELS = {
    "Evident Conflict": "contradicted",
    "Subtle Conflict": "contradicted",
    "Evident Baseless Info": "unverified",
    "Subtle Baseless Info": "unverified",
}
"""RAGTruth's labels to types of the taxonomy `support`."""

_TASKS = {"QA": Task.QA, "Summary": Task.SUMMARIZATION, "Data2txt": Task.OPEN}
_TASK_OF = {Task.QA: "QA", Task.SUMMARIZATION: "Summary"}
_PASSAGE = re.compile(r"(?:\A|\n+)passage \d+:")
_KEPT = ("source_id", "split", "quality")


class RagTruth(Format):
    """RAGTruth responses with their sources."""

    name = "ragtruth"
    summary = "RAGTruth JSONL"
    containers = ("jsonl", "json", "parquet")
    companions = ("source_info.jsonl",)

    def sniff(self, head: Head) -> Sniff | None:
        """By `response`, `labels` and `source_id`."""
        if head.has("response", "labels", "source_id"):
            return Sniff(0.95, "the keys `response`, `labels` and `source_id`")
        return None

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:  # noqa: ARG002
        """One sample a response."""
        response = need(data, "response", str)
        source = _source(data, reading)
        tag = optional(data, "language", str)
        language = (language_tag(tag) or tag) if tag else reading.language or identified(response, reading)
        model = optional(data, "model", str)
        temperature = optional(data, "temperature", float)
        labels = need(data, "labels", list)
        spans, kept = _spans(labels, response, reading)
        meta = {key: data[key] for key in _KEPT if data.get(key) is not None}
        if kept:
            meta["labels"] = kept
        question, passages = _read_source(source)
        yield Sample(
            id=str(data.get("id") or need(data, "id", str)),
            response=response,
            task=_TASKS.get(str(source.get("task_type")), Task.OPEN),
            language=language,
            question=question,
            evidence=tuple(Evidence(text, language=language) for text in passages),
            generator=Generator(model, settings={} if temperature is None else {"temperature": temperature})
            if model
            else None,
            annotations=(Annotation(annotator="gold", kind=Kind.HUMAN, taxonomy="support", spans=spans),),
            meta=meta,
        )

    def record(self, sample: Sample) -> dict[str, Any]:
        """A response that carries its source, with the spans of `gold`, or else of the first annotation with any."""
        spanned = [a for a in sample.annotations if a.spans is not None]
        annotation = next((a for a in spanned if a.annotator == "gold"), spanned[0] if spanned else None)
        spans = annotation.spans or () if annotation else ()
        kept = sample.meta.get("labels")
        labels = kept if isinstance(kept, list) and len(kept) == len(spans) else [{}] * len(spans)
        passages = [passage.text for passage in sample.evidence]
        source: Any = {"passages": "\n\n".join(f"passage {i}:{text}" for i, text in enumerate(passages, start=1))}
        if sample.question is not None:
            source["question"] = sample.question
        row: dict[str, Any] = {
            "id": sample.id,
            "source_id": sample.meta.get("source_id", sample.id),
            "model": sample.generator.name if sample.generator else None,
            "temperature": sample.generator.settings.get("temperature") if sample.generator else None,
            "language": sample.language,
            "task_type": _TASK_OF.get(sample.task),
            "source_info": source,
            "labels": [_label(annotation, *pair, sample) for pair in zip(spans, labels, strict=True) if annotation],
            "response": sample.response,
        }
        row |= {key: sample.meta[key] for key in _KEPT if key in sample.meta}
        return {key: value for key, value in row.items() if value is not None}


def _label(annotation: Annotation, span: Span, label: dict[str, Any], sample: Sample) -> dict[str, Any]:
    return {
        "label_type": RAGTRUTH_LABELS.get(type_in("support", annotation, span) or "", "Evident Baseless Info"),
        **label,
        "start": span.start,
        "end": span.end,
        "text": sample.response[span.start : span.end],
    }


def _spans(labels: list[Any], response: str, reading: Reading) -> tuple[tuple[Span, ...], list[dict[str, Any]]]:
    found = []
    for index, label in enumerate(labels):
        where = f"labels[{index}]"
        name = need(label, "label_type", str, within=where)
        if name not in LABELS:
            raise InputError(f"{name!r} is none of {', '.join(LABELS)}", field=f"{where}.label_type")
        start, end = need(label, "start", int, within=where), need(label, "end", int, within=where)
        place = located(optional(label, "text", str), start, end, where, response, reading)
        if place:
            kept = {key: value for key, value in label.items() if key not in {"start", "end", "text"}}
            found.append((Span(*place, LABELS[name]), kept))
    found.sort(key=lambda pair: (pair[0].start, pair[0].end))
    return tuple(span for span, _ in found), [kept for _, kept in found]


def _source(data: Any, reading: Reading) -> dict[str, Any]:
    if "source_info" in data:
        return dict(data)
    neighbour = reading.state.get("sources")
    if neighbour is None:
        file = reading.source.file.with_name("source_info.jsonl") if reading.source.file else None
        neighbour = reading.state["sources"] = Neighbour(file, "source_id")
    found = neighbour.find(str(data.get("source_id")))
    if found is None:
        reading.report.notes["without_source"] += 1
        return {}
    return dict(found)


def _read_source(source: dict[str, Any]) -> tuple[str | None, list[str]]:
    """Question and passages of a `source_info`: text (summaries), passages with a question (QA), or data."""
    info = source.get("source_info")
    if isinstance(info, str):
        return None, [info]
    if not isinstance(info, dict):
        return None, []
    passages = info.get("passages")
    if isinstance(passages, str):
        question = info.get("question")
        parts = [part for part in _PASSAGE.split(passages) if part.strip()]
        return question if isinstance(question, str) else None, parts
    return None, [json.dumps(info, ensure_ascii=False, indent=1)]
