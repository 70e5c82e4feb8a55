"""LettuceDetect rows: `prompt`, `answer` and `labels` with `start`, `end` and a label of the source data set.

Newer rows hold the grounding text apart in `context` and the request in `question`; older ones have both in `prompt`,
which then is the evidence. Labels of RAGTruth become types of the taxonomy `support`; any other set of labels becomes
`hallucination` (taxonomy `hat`). The labels as they stood stay in `meta.labels`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.formats.base import Format, Reading, evidence_text, need, optional, present, spanned_annotation
from veriglot.formats.language import language_tag
from veriglot.formats.ragtruth import LABELS
from veriglot.formats.spans import RAGTRUTH_LABELS, beside_spans, offsets_of, placed, type_in
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = []

_KEPT = ("split", "dataset", "metadata", "task_type", "context_modality", "category", "subcategory")
_TASKS = {"qa": Task.QA, "summary": Task.SUMMARIZATION, "summarization": Task.SUMMARIZATION}


class LettuceDetect(Format):
    """LettuceDetect rows."""

    name = "lettucedetect"
    summary = "LettuceDetect training rows"
    containers = ("json", "jsonl", "parquet")
    keys = ("prompt", "answer", "labels")
    confidence = 0.9

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:
        """One sample a row."""
        answer = need(data, "answer", str)
        prompt = need(data, "prompt", str)
        context = optional(data, "context", str)
        tag = optional(data, "language", str)
        language = language_tag(tag) if tag else reading.language
        labels = need(data, "labels", list)
        ours = all(isinstance(label, dict) and str(label.get("label")) in LABELS for label in labels)
        spans, others = [], []
        for index, label in enumerate(labels):
            where = f"labels[{index}]"
            span = placed(*offsets_of(label, where), where, answer, reading)
            if span:
                spans.append(Span(*span, LABELS[label["label"]] if ours else "hallucination"))
                others.append({key: value for key, value in label.items() if key not in {"start", "end"}})
        meta = {key: data[key] for key in _KEPT if data.get(key) not in (None, {})}
        if any(others):
            meta["labels"] = others
        if context is not None:
            meta["prompt"] = prompt
        taxonomy = "support" if ours and spans else "hat"
        text = context if context is not None else prompt
        yield Sample(
            id=reading.row_id(data, line),
            response=answer,
            task=_TASKS.get(str(data.get("task_type")).lower(), Task.OPEN),
            language=language,
            question=optional(data, "question", str),
            evidence=(Evidence(text, language=language),) if text else (),
            annotations=(Annotation(annotator="gold", kind=Kind.HUMAN, taxonomy=taxonomy, spans=tuple(spans)),),
            meta=meta,
        )

    def record(self, sample: Sample) -> dict[str, Any]:
        """A row with the spans of the first annotation that has any."""
        annotation = spanned_annotation(sample)
        spans = annotation.spans or () if annotation else ()
        labels = beside_spans(sample, "labels", spans) or [{} for _ in spans]
        context = evidence_text(sample)
        names = {task: name for name, task in _TASKS.items()}
        row: dict[str, Any] = {
            "id": sample.id,
            "prompt": sample.meta.get("prompt", _prompt(sample.question, context)),
            "context": context,
            "question": sample.question,
            "answer": sample.response,
            "labels": [
                {"label": _label(annotation, span), **label, "start": span.start, "end": span.end}
                for span, label in zip(spans, labels, strict=True)
                if annotation
            ],
            "task_type": names.get(sample.task),
            "language": sample.language,
        }
        row |= {key: sample.meta[key] for key in _KEPT if key in sample.meta}
        return present(row)


def _label(annotation: Annotation, span: Span) -> str | None:
    return RAGTRUTH_LABELS.get(type_in("support", annotation, span) or "", span.type)


def _prompt(question: str | None, context: str) -> str:
    return f"User request: {question}\n\n{context}" if question else context
