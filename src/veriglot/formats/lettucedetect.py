"""LettuceDetect rows: `prompt`, `answer` and `labels` with `start`, `end` and a label of the source data set.

Newer rows hold the grounding text apart in `context` and the request in `question`; older ones have both in `prompt`,
which then is the evidence. Labels of RAGTruth become types of the taxonomy `support`; any other set of labels becomes
`hallucination` (taxonomy `hat`). The labels as they stood stay in `meta.labels`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.formats.file_language import language_tag
from veriglot.formats.format import Format, Reading, Sniff, need, optional
from veriglot.formats.mapping import RAGTRUTH_LABELS, type_in
from veriglot.formats.offsets import placed
from veriglot.formats.ragtruth import LABELS
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.formats.head import Head

__all__ = ["LettuceDetect"]

_KEPT = ("split", "dataset", "metadata", "task_type", "context_modality", "category", "subcategory")
_TASKS = {"qa": Task.QA, "summary": Task.SUMMARIZATION, "summarization": Task.SUMMARIZATION}


class LettuceDetect(Format):
    """LettuceDetect rows."""

    name = "lettucedetect"
    summary = "LettuceDetect training rows"
    containers = ("json", "jsonl", "parquet")

    def sniff(self, head: Head) -> Sniff | None:
        """By `prompt`, `answer` and `labels`."""
        if head.has("prompt", "answer", "labels"):
            return Sniff(0.9, "the keys `prompt`, `answer` and `labels`")
        return None

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:
        """One sample a row."""
        answer = need(data, "answer", str)
        prompt = need(data, "prompt", str)
        context = optional(data, "context", str)
        tag = optional(data, "language", str)
        language = language_tag(tag) if tag else reading.language
        labels = need(data, "labels", list)
        ours = all(isinstance(label, dict) and str(label.get("label")) in LABELS for label in labels)
        spans, kept = [], []
        for index, label in enumerate(labels):
            where = f"labels[{index}]"
            start, end = need(label, "start", int, within=where), need(label, "end", int, within=where)
            place = placed(start, end, where, answer, reading)
            if place:
                spans.append(Span(*place, LABELS[label["label"]] if ours else "hallucination"))
                kept.append({key: value for key, value in label.items() if key not in {"start", "end"}})
        meta = {key: data[key] for key in _KEPT if data.get(key) not in (None, {})}
        if any(kept):
            meta["labels"] = kept
        if context is not None:
            meta["prompt"] = prompt
        taxonomy = "support" if ours and spans else "hat"
        text = context if context is not None else prompt
        yield Sample(
            id=optional(data, "id", str) or f"{reading.source.stem}-{line}",
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
        annotation = next((a for a in sample.annotations if a.spans is not None), None)
        spans = annotation.spans or () if annotation else ()
        kept = sample.meta.get("labels")
        labels = kept if isinstance(kept, list) and len(kept) == len(spans) else [{} for _ in spans]
        context = "\n\n".join(passage.text for passage in sample.evidence)
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
        return {key: value for key, value in row.items() if value is not None}


def _label(annotation: Annotation, span: Span) -> str | None:
    return RAGTRUTH_LABELS.get(type_in("support", annotation, span) or "", span.type)


def _prompt(question: str | None, context: str) -> str:
    return f"User request: {question}\n\n{context}" if question else context
