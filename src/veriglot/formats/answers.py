"""Published data sets of model answers with labelled spans, and of correct answers with their paragraph."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.base import (
    FIELDS,
    Format,
    Reading,
    Sniff,
    beside_spans,
    need,
    optional,
    span_fields,
    spanned_annotation,
    type_in,
)
from veriglot.formats.containers import Head, Record, Source, read_container
from veriglot.formats.tags import marked_ranges, with_tags
from veriglot.records import Annotation, Evidence, Generator, Kind, Sample, Span, Task, Unit
from veriglot.storage.checkpoint import FailedRow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


__all__ = []

_TYPE = "hallucination"
# RAGTruth's labels as types of the taxonomy `support`, and the labels to write for these; LettuceDetect has them too.
_LABELS = {
    "Evident Conflict": "contradicted",
    "Subtle Conflict": "contradicted",
    "Evident Baseless Info": "unverified",
    "Subtle Baseless Info": "unverified",
}
_LABEL_OF = {"contradicted": "Evident Conflict", "unverified": "Evident Baseless Info"}


def _labelled_spans(sample: Sample, annotator: str | None = None) -> Iterator[tuple[Span, str | None, dict[str, Any]]]:
    """The spans of one annotation, each with RAGTruth's label for its type and its entry in `meta.labels`."""
    annotation = spanned_annotation(sample, annotator)
    spans = (annotation and annotation.spans) or ()
    labels = beside_spans(sample, "labels", spans) or [{}] * len(spans)
    for span, label in zip(spans, labels, strict=True):
        assert annotation is not None
        yield span, _LABEL_OF.get(type_in("support", annotation, span) or ""), label


class RagTruth(Format):
    """RAGTruth JSONL (Niu et al. 2024): responses of six models with spans that people marked.

    The sources of the published `response.jsonl` are read from `source_info.jsonl` beside it. Rows written here contain
    their source (`source_info`, `task_type`, `prompt`). Conflicts are `contradicted` and baseless information is
    `unverified` in the taxonomy `support`; the original labels stay in `meta.labels`, one for each span. If a row has
    no `language`, it is detected from the response.
    """

    summary = "RAGTruth JSONL"
    keys = ("response", "labels", "source_id")
    companions = ("source_info.jsonl",)
    fields = FIELDS["ragtruth"]
    _passage = re.compile(r"(?:\A|\n+)passage \d+:")

    def samples(self, data: Any, reading: Reading) -> Iterator[Sample | FailedRow]:
        """One sample per response, with its source."""
        if isinstance(data, dict) and "source_info" not in data:
            sources = reading.once("sources", lambda: _records_by("source_id", reading.beside("source_info.jsonl")))
            source = sources.get(str(data.get("source_id")))
            if source is None:
                reading.report.notes["without_source"] += 1
            data = {**(source or {}), **data}
        yield from super().samples(data, reading)

    def language(self, data: Any, response: str, reading: Reading) -> str | None:
        """The language of the row, or the reader's default, or else detected from the response."""
        return reading.stated_language(data) or reading.language or reading.identified(response)

    def question(self, data: Any) -> str | None:
        """The question that belongs to the passages."""
        info = data.get("source_info")
        of_passages = isinstance(info, dict) and isinstance(info.get("passages"), str)
        return info["question"] if of_passages and isinstance(info.get("question"), str) else None

    def passages(self, data: Any, language: str | None, reading: Reading) -> Iterator[Evidence]:  # noqa: ARG002
        """The passages of a `source_info`: text (summaries), numbered passages, or data."""
        info = data.get("source_info")
        if isinstance(info, str):
            yield Evidence(info, language=language)
        elif isinstance(info, dict) and isinstance(info.get("passages"), str):
            parts = self._passage.split(info["passages"])
            yield from (Evidence(part, language=language) for part in parts if part.strip())
        elif isinstance(info, dict):
            yield Evidence(json.dumps(info, ensure_ascii=False, indent=1), language=language)

    def generator(self, data: Any) -> Generator | None:
        """The model and its temperature."""
        model, temperature = optional(data, "model", str), optional(data, "temperature", float)
        return Generator(model, settings={} if temperature is None else {"temperature": temperature}) if model else None

    def annotations(self, data: Any, response: str, meta: dict[str, Any], reading: Reading) -> Iterator[Annotation]:
        """The annotation of `gold`; the original labels go into `meta`."""
        labels = need(data, "labels", list)
        for index, label in enumerate(labels):
            name = need(label, "label_type", str, within=f"labels[{index}]")
            if name not in _LABELS:
                raise InputError(f"{name!r} is none of {', '.join(_LABELS)}", field=f"labels[{index}].label_type")
        marked = sorted(reading.ranges(labels, "labels", response, by_text=True), key=lambda item: item[0])
        if marked:
            meta["labels"] = [_without(label, "start", "end", "text") for _, label, _ in marked]
        spans = tuple(Span(*edges, _LABELS[label["label_type"]]) for edges, label, _ in marked)
        yield Annotation("gold", Kind.HUMAN, "support", spans=spans)

    def labels(self, sample: Sample) -> dict[str, Any]:
        """The source, and the spans of `gold`, or else of the first annotation with any."""
        passages = (f"passage {i}:{passage.text}" for i, passage in enumerate(sample.evidence, 1))
        source = {"passages": "\n\n".join(passages)}
        if sample.question is not None:
            source["question"] = sample.question
        return {
            "source_id": sample.meta.get("source_id", sample.id),
            "temperature": sample.generator.settings.get("temperature") if sample.generator else None,
            "language": sample.language,
            "task_type": {Task.QA: "QA", Task.SUMMARIZATION: "Summary"}.get(sample.task),
            "source_info": source,
            "labels": [
                {
                    "label_type": type_ or "Evident Baseless Info",
                    **label,
                    **span_fields(sample, span),
                }
                for span, type_, label in _labelled_spans(sample, "gold")
            ],
        }


def _without(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in keys}


class LettuceDetect(Format):
    """LettuceDetect rows: `prompt`, `answer` and `labels` with `start`, `end` and a label of the source data set.

    Newer rows have the evidence in `context` and the request in `question`. Older rows have both in `prompt`, which
    then is the evidence. RAGTruth's labels become types of the taxonomy `support`; all other labels become
    `hallucination` (taxonomy `hat`). The original labels stay in `meta.labels`.
    """

    summary = "LettuceDetect training rows"
    containers = ("json", "jsonl", "parquet")
    keys = ("prompt", "answer", "labels")
    confidence = 0.9
    fields = FIELDS["lettucedetect"]

    def passages(self, data: Any, language: str | None, reading: Reading) -> Iterator[Evidence]:
        """The context, or the prompt of an older row."""
        if optional(data, "context", str) is None:
            data = {**data, "context": data["prompt"]}
        return super().passages(data, language, reading)

    def annotations(self, data: Any, response: str, meta: dict[str, Any], reading: Reading) -> Iterator[Annotation]:
        """The annotation of `gold`; the original labels go into `meta`."""
        labels = need(data, "labels", list)
        for index, label in enumerate(labels):
            need(label, "start", int, within=f"labels[{index}]")
        ours = all(isinstance(label, dict) and str(label.get("label")) in _LABELS for label in labels)
        marked = list(reading.ranges(labels, "labels", response))
        others = [_without(label, "start", "end") for _, label, _ in marked]
        if any(others):
            meta["labels"] = others
        if optional(data, "context", str) is not None:
            meta["prompt"] = data["prompt"]
        spans = tuple(Span(*edges, _LABELS[label["label"]] if ours else _TYPE) for edges, label, _ in marked)
        taxonomy = "support" if ours and spans else "hat"
        yield Annotation("gold", Kind.HUMAN, taxonomy, spans=spans)

    def labels(self, sample: Sample) -> dict[str, Any]:
        """The prompt, and the spans of the first annotation that has any."""
        context = sample.evidence_text
        prompt = f"User request: {sample.question}\n\n{context}" if sample.question else context
        return {
            "prompt": sample.meta.get("prompt", prompt),
            "labels": [
                {"label": type_ or span.type, **label, "start": span.start, "end": span.end}
                for span, type_, label in _labelled_spans(sample)
            ],
            "task_type": sample.meta.get(
                "task_type", {task: name for name, task in self.fields.tasks.items()}.get(sample.task)
            ),
        }


class PsiloQa(Format):
    """PsiloQA rows (Rykov et al. 2025): answers of open models in 14 languages, hallucinated spans marked by GPT-4o.

    `labels` has `[start, end]` pairs in `llm_answer`. If it is missing, the spans are read from `annotated_span`, the
    same answer with `[HAL]...[/HAL]` around them.
    """

    summary = "PsiloQA rows"
    keys = ("llm_answer", "wiki_passage")
    fields = FIELDS["psiloqa"]
    _markers = ("[HAL]", "[/HAL]")

    def annotations(self, data: Any, response: str, meta: dict[str, Any], reading: Reading) -> Iterator[Annotation]:  # noqa: ARG002
        """The annotation of the model that marked the spans, if there are any."""
        labels, marked = optional(data, "labels", list), optional(data, "annotated_span", str)
        if labels is not None:
            ranges = [edges for edges, _, _ in reading.ranges(labels, "labels", response)]
        elif marked is not None:
            ranges = marked_ranges(marked, response, self._markers, field="annotated_span", of="llm_answer")
        else:
            return
        spans = tuple(Span(start, end, _TYPE) for start, end in ranges)
        yield Annotation("gpt-4o", Kind.MODEL, "hat", spans=spans)

    def labels(self, sample: Sample) -> dict[str, Any]:
        """The spans of the first annotation that has any."""
        annotation = spanned_annotation(sample)
        if annotation is None:
            return {}
        spans = annotation.spans or ()
        return {
            "annotated_span": with_tags(sample.response, ((span.start, span.end, *self._markers) for span in spans)),
            "labels": [[span.start, span.end] for span in spans],
        }


class MuShroom(Format):
    """Mu-SHROOM JSONL (SemEval-2025 task 3): answers of models, with character spans marked by several people.

    `hard_labels` are the spans marked by a majority (annotator `gold`). `soft_labels` are the shares of people who
    marked each segment (units of `gold` with a probability). `annotations` are each person's own spans. Offsets are
    half-open code points. If `<lang>-<split>.refs.jsonl` is beside the file, its Wikipedia text is the evidence.
    """

    summary = "Mu-SHROOM JSONL, SemEval-2025 task 3"
    companions = ("*.refs.jsonl",)
    keys = ("model_output_text",)
    any_keys = ("hard_labels", "soft_labels", "model_input")
    fields = FIELDS["mushroom"]

    def language(self, data: Any, response: str, reading: Reading) -> str | None:
        """The language of the row, unchanged if it is unknown."""
        language = super().language(data, response, reading)
        code = optional(data, "lang", str)
        if code and language is None:
            reading.repaired("unknown_language", f"the language {code!r} is not known", where="lang")
            return code.lower()
        return language

    def passages(self, data: Any, language: str | None, reading: Reading) -> Iterator[Evidence]:
        """The text of the page, from the file of references."""
        references = reading.once("references", lambda: _records_by("id", self._reference_file(reading)))
        reference = references.get(str(data["id"]))
        if reference is not None:
            url = optional(reference, "wikipedia_url", str) or optional(data, "wikipedia_url", str)
            yield Evidence(need(reference, "reference", str), language=language, url=url)
        elif references:
            reading.report.notes["without_reference"] += 1

    @staticmethod
    def _reference_file(reading: Reading) -> Path | None:
        match = re.match(r"(?:mushroom\.)?([A-Za-z]{2,3}-\w+)", reading.source.name)
        return reading.beside(f"{match[1]}.refs.jsonl") if match else None

    def annotations(self, data: Any, response: str, meta: dict[str, Any], reading: Reading) -> Iterator[Annotation]:  # noqa: ARG002
        """The annotations of `gold` and of people; none without labels (the unlabelled test sets)."""

        def spans(pairs: Any, name: str) -> tuple[Span, ...]:
            return tuple(Span(*edges, _TYPE) for edges, _, _ in reading.ranges(pairs, name, response))

        hard, soft = optional(data, "hard_labels", list), optional(data, "soft_labels", list)
        if hard is not None or soft is not None:
            yield Annotation(
                "gold",
                Kind.HUMAN,
                "hat",  # the taxonomy with one type: Mu-SHROOM marks hallucinations without types
                spans=None if hard is None else spans(hard, "hard_labels"),
                units=None if soft is None else tuple(self._units(soft, response, reading)),
            )
        for name, pairs in (optional(data, "annotations", dict) or {}).items():
            yield Annotation(name, Kind.HUMAN, "hat", spans=spans(pairs, f"annotations.{name}"))

    @staticmethod
    def _units(soft: list[Any], response: str, reading: Reading) -> Iterator[Unit]:
        for edges, item, where in reading.ranges(soft, "soft_labels", response):
            share = need(item, "prob", float, within=where)
            if not 0 <= share <= 1:
                raise InputError(f"a share of people lies between 0 and 1, not {share}", field=f"{where}.prob")
            yield Unit(*edges, _TYPE, share)

    def labels(self, sample: Sample) -> dict[str, Any]:
        """Hard and soft labels from the annotation of `gold`, each person's spans from the others."""
        row: dict[str, Any] = {"lang": (sample.language or "").upper()}
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
        if sample.evidence and sample.evidence[0].url and "wikipedia_url" not in sample.meta:
            row["wikipedia_url"] = sample.evidence[0].url
        return row


class Squad(Format):
    """SQuAD and XQuAD JSON: questions on a paragraph with their answers (Rajpurkar et al. 2016, Artetxe et al. 2020).

    The answers are from the paragraph and correct, so each sample has an annotation without spans. The language is read
    from the file's name (`xquad.de.json`).
    """

    summary = "SQuAD and XQuAD: right answers with their paragraph"
    containers = ("json", "jsonl")
    writable = False

    def sniff(self, head: Head) -> Sniff | None:
        """By `data` that contains `paragraphs`."""
        if "data" in head.keys and '"paragraphs"' in head.text[:65536]:
            return Sniff(0.95, "the key `data` with `paragraphs` in it")
        return None

    def samples(self, data: Any, reading: Reading) -> Iterator[Sample | FailedRow]:
        """One sample per question; a bad question does not end the file."""
        language = reading.language_of_file()
        for a, article in enumerate(need(data, "data", list)):
            for p, paragraph in enumerate(need(article, "paragraphs", list, within=f"data[{a}]")):
                path = f"data[{a}].paragraphs[{p}]"
                for q, item in enumerate(need(paragraph, "qas", list, within=path)):
                    try:
                        title = article.get("title")
                        yield from self._answered(item, f"{path}.qas[{q}]", paragraph, title, language, reading)
                    except InputError as error:
                        yield reading.bad(Record(reading.line, item), error)

    @staticmethod
    def _answered(
        item: Any, path: str, paragraph: Any, title: Any, language: str | None, reading: Reading
    ) -> Iterator[Sample]:
        """A question with its first answer, if it has any."""
        context = need(paragraph, "context", str)
        answers = need(item, "answers", list, within=path)
        if not answers:
            reading.report.notes["questions_without_answer"] += 1
            return
        answer = need(answers[0], "text", str, within=f"{path}.answers[0]")
        start = optional(answers[0], "answer_start", int)
        id_ = need(item, "id", str, within=path)
        meta: dict[str, Any] = {"question_id": id_}
        if start is not None and context[start : start + len(answer)] == answer:
            meta["answer_in_evidence"] = [start, start + len(answer)]
        elif answer not in context:
            reading.repaired("answer_not_in_paragraph", "the answer does not stand in the paragraph", where=path)
            meta["answer_in_evidence"] = None
        further = [other.get("text") for other in answers[1:] if isinstance(other, dict)]
        if others := [text for text in further if isinstance(text, str)]:
            meta["other_answers"] = others
        yield Sample(
            f"{language}:{id_}" if language else id_,
            answer,
            task=Task.QA,
            language=language,
            question=need(item, "question", str, within=path),
            evidence=(Evidence(context, title=title if isinstance(title, str) else None, language=language),),
            annotations=(Annotation("gold", Kind.HUMAN, "support", spans=()),),
            meta=meta,
        )


def _records_by(key: str, file: Path | None) -> dict[str, dict[str, Any]]:
    """The records of a JSON lines file beside the input file, if it exists, by the value of one key."""
    records = {}
    for record in read_container("jsonl", Source(file)) if file else ():
        if isinstance(record, FailedRow):
            raise record.as_error()
        if not isinstance(record.data, dict) or key not in record.data:
            raise InputError("the field is missing", path=str(file), line=record.line, field=key)
        records[str(record.data[key])] = record.data
    return records
