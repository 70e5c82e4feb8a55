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
from veriglot.formats.base import Format, Reading, need, optional, present, spanned_annotation
from veriglot.formats.containers import Neighbour
from veriglot.formats.language import identified, stated_language
from veriglot.formats.spans import RAGTRUTH_LABELS, beside_spans, located, offsets_of, type_in
from veriglot.records import Annotation, Evidence, Generator, Kind, Sample, Span, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LABELS"]

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
    keys = ("response", "labels", "source_id")
    companions = ("source_info.jsonl",)

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:  # noqa: ARG002
        """One sample a response."""
        response = need(data, "response", str)
        source = _source(data, reading)
        language = stated_language(data) or reading.language or identified(response, reading)
        model = optional(data, "model", str)
        temperature = optional(data, "temperature", float)
        labels = need(data, "labels", list)
        spans, others = _spans(labels, response, reading)
        meta = present(data, _KEPT)
        if others:
            meta["labels"] = others
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
        annotation = spanned_annotation(sample, "gold")
        spans = annotation.spans or () if annotation else ()
        labels = beside_spans(sample, "labels", spans) or [{}] * len(spans)
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
        return present(row)


def _label(annotation: Annotation, span: Span, label: dict[str, Any], sample: Sample) -> dict[str, Any]:
    return {
        "label_type": RAGTRUTH_LABELS.get(type_in("support", annotation, span) or "", "Evident Baseless Info"),
        **label,
        "start": span.start,
        "end": span.end,
        "text": sample.response[span.start : span.end],
    }


def _spans(labels: list[Any], response: str, reading: Reading) -> tuple[tuple[Span, ...], list[dict[str, Any]]]:
    pairs = []
    for index, label in enumerate(labels):
        where = f"labels[{index}]"
        name = need(label, "label_type", str, within=where)
        if name not in LABELS:
            raise InputError(f"{name!r} is none of {', '.join(LABELS)}", field=f"{where}.label_type")
        start, end = offsets_of(label, where)
        edges = located(optional(label, "text", str), start, end, where, response, reading)
        if edges:
            others = {key: value for key, value in label.items() if key not in {"start", "end", "text"}}
            pairs.append((Span(*edges, LABELS[name]), others))
    pairs.sort(key=lambda pair: (pair[0].start, pair[0].end))
    return tuple(span for span, _ in pairs), [others for _, others in pairs]


def _source(data: Any, reading: Reading) -> dict[str, Any]:
    if "source_info" in data:
        return dict(data)
    neighbour = reading.state.get("sources")
    if neighbour is None:
        file = reading.source.file.with_name("source_info.jsonl") if reading.source.file else None
        neighbour = reading.state["sources"] = Neighbour(file, "source_id")
    source = neighbour.find(str(data.get("source_id")))
    if source is None:
        reading.report.notes["without_source"] += 1
        return {}
    return dict(source)


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
