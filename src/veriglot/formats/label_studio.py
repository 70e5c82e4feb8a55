"""Label Studio's JSON: reads its exports, and writes files that it imports, with the labeling configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.base import Format, Reading, Sniff, need, optional, present
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task
from veriglot.records.taxonomy import taxonomies, taxonomy_with

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from veriglot.formats.containers import Head

__all__ = ["labeling_config"]

_RESPONSE = ("response", "answer", "text", "target")
_EVIDENCE = ("evidence", "context", "source", "references", "reference")
# Key of a task to the kind of annotator, and the keys of their name. We write `annotator`, which Label Studio ignores:
# its import refuses a `completed_by` that is not a member of the organization.
_HOLDERS = (
    ("annotations", Kind.HUMAN, ("annotator", "completed_by")),
    ("completions", Kind.HUMAN, ("completed_by",)),
    ("predictions", Kind.MODEL, ("model_version",)),
)
_GOLD = "gold"
_OF_PASSAGE = ("id", "title", "language", "url")
_KNOWN = {*_RESPONSE, *_EVIDENCE, "id", "question", "language", "task", "taxonomy"}


class LabelStudio(Format):
    """Label Studio JSON export: tasks with `data`, `annotations` and `predictions`, spans as `labels` results on text.

    Label Studio counts in UTF-16 code units, as browsers do; if these differ from code points, the span's own text
    decides. An annotation has the name of the person who completed it, a prediction (kind `model`) its model version.
    Cancelled annotations, and results that are not labelled text, are left out and counted. Written files can be
    imported: annotations have an `annotator`, and belong to the person who imports them; those of `gold` become ground
    truth.
    """

    summary = "Label Studio JSON export"
    containers = ("json", "jsonl")
    keys = ("data",)
    any_keys = ("annotations", "predictions", "completions")
    confidence = 0.85

    def sniff(self, head: Head) -> Sniff | None:
        """By `data` with `annotations` or `predictions`."""
        return None if "response" in head.keys else super().sniff(head)

    def samples(self, data: Any, reading: Reading) -> Iterator[Sample]:
        """One sample per task."""
        shown = need(data, "data", dict)
        key = next((key for key in _RESPONSE if isinstance(shown.get(key), str)), None)
        if key is None:
            raise InputError(f"the task shows no text under {', '.join(_RESPONSE)}", field="data")
        response = shown[key]
        task = optional(shown, "task", str)
        yield Sample(
            str(shown.get("id") or data.get("id") or reading.row_name),
            response,
            task=Task(task) if task in set(Task) else Task.OPEN,
            language=reading.stated_language(shown) or reading.language,
            question=optional(shown, "question", str) or None,
            evidence=tuple(_evidence(shown)),
            annotations=tuple(_annotations(data, shown, response, reading)),
            meta={k: v for k, v in shown.items() if k not in _KNOWN},
        )

    def record(self, sample: Sample) -> dict[str, Any]:
        """A task; people's annotations with spans or units under `annotations`, models' under `predictions`."""
        shown: dict[str, Any] = {
            **sample.meta,
            "id": sample.id,
            "response": sample.response,
            "evidence": [_passage(passage) for passage in sample.evidence],
            "question": sample.question or "",
            "language": sample.language,
            "task": sample.task,
        }
        names = {a.taxonomy for a in sample.annotations}
        if len(names) == 1:
            shown["taxonomy"] = names.pop()
        marked = [a for a in sample.annotations if a.spans is not None or a.units is not None]
        return {
            "data": present(shown),
            "annotations": [
                {"annotator": a.annotator, "ground_truth": a.annotator == _GOLD, "result": _results(sample.response, a)}
                for a in marked
                if a.kind is Kind.HUMAN
            ],
            "predictions": [
                {"model_version": a.annotator, "result": _results(sample.response, a)}
                for a in marked
                if a.kind is Kind.MODEL
            ],
        }


def labeling_config(labels: Mapping[str, str]) -> str:
    """The labeling configuration, as XML, of a project for files written by `LabelStudio`.

    Args:
        labels: names to colours, as `#rrggbb`.
    """
    from xml.sax.saxutils import quoteattr  # slow (imports ssl), and this module is always imported

    choices = "".join(
        f"    <Label value={quoteattr(name)} background={quoteattr(colour)}/>\n" for name, colour in labels.items()
    )
    return (
        '<View>\n  <Text name="question" value="$question"/>\n'
        f'  <Labels name="label" toName="response">\n{choices}  </Labels>\n'
        '  <Text name="response" value="$response" granularity="symbol"/>\n'
        '  <Paragraphs name="evidence" value="$evidence" nameKey="title" textKey="text"/>\n</View>\n'
    )


def _passage(passage: Evidence) -> dict[str, str]:
    fields = {name: getattr(passage, name) for name in _OF_PASSAGE}
    return {"text": passage.text, "title": "", **{name: value for name, value in fields.items() if value}}


def _results(response: str, annotation: Annotation) -> list[dict[str, Any]]:
    results = []
    units = [Span(unit.start, unit.end, unit.label) for unit in annotation.units or ()]  # a pair is one unit
    for index, span in enumerate(annotation.spans if annotation.spans is not None else units):
        value = {
            "start": _utf16_length(response[: span.start]),
            "end": _utf16_length(response[: span.end]),
            "text": response[span.start : span.end],
            "labels": [span.type] if span.type else [],
        }
        result = {"id": f"span{index}", "type": "labels", "from_name": "label", "to_name": "response", "value": value}
        results.append(result if span.confidence is None else {**result, "score": span.confidence})
    return results


def _evidence(shown: dict[str, Any]) -> Iterator[Evidence]:
    for key in _EVIDENCE:
        value = shown.get(key)
        if isinstance(value, str) and value:
            yield Evidence(value)
        elif isinstance(value, list):
            yield from (Evidence(text) for text in value if isinstance(text, str))
            for passage in value:
                if isinstance(passage, dict) and isinstance(passage.get("text"), str):
                    known = {name: str(passage[name]) for name in _OF_PASSAGE if passage.get(name)}
                    yield Evidence(passage["text"], **known)
        if value:
            return


def _annotations(data: Any, shown: Any, response: str, reading: Reading) -> Iterator[Annotation]:
    for key, kind, who in _HOLDERS:
        for index, item in enumerate(optional(data, key, list) or []):
            where = f"{key}[{index}]"
            if key == "predictions" and isinstance(item, int):  # exports without predictions have their ids
                reading.report.notes["predictions_without_content"] += 1
                continue
            if not isinstance(item, dict):
                raise InputError("an object is expected", field=where)
            if item.get("was_cancelled"):
                reading.report.notes["cancelled_annotations"] += 1
                continue
            spans = tuple(_spans(optional(item, "result", list) or [], where, response, reading))
            yield Annotation(
                annotator=next(filter(None, (_name(item.get(name)) for name in who)), "")
                or f"{'prediction' if kind is Kind.MODEL else 'annotator'}_{index + 1}",
                kind=kind,
                taxonomy=optional(shown, "taxonomy", str)
                or taxonomy_with(span.type for span in spans if span.type)
                or "label-studio",
                spans=spans,
            )


def _name(who: Any) -> str:
    if isinstance(who, dict):
        who = who.get("email") or who.get("id")
    return "" if who is None else str(who)


def _spans(results: list[Any], within: str, response: str, reading: Reading) -> Iterator[Span]:
    for index, result in enumerate(results):
        where = f"{within}.result[{index}]"
        value = result.get("value") if isinstance(result, dict) else None
        if not isinstance(value, dict) or "labels" not in value or "start" not in value:
            reading.report.notes["results_that_are_no_spans"] += 1
            continue
        start, end = (need(value, edge, int, within=where) for edge in ("start", "end"))
        span = _in_code_points(optional(value, "text", str), start, end, where, response, reading)
        labels = need(value, "labels", list, within=where)
        if span is None:
            continue
        score = result.get("score")
        confidence = float(score) if isinstance(score, int | float) and 0 <= score <= 1 else None
        for label in labels or [None]:
            yield Span(*span, None if label is None else _named(str(label)), confidence)


def _in_code_points(
    text: str | None, start: int, end: int, where: str, response: str, reading: Reading
) -> tuple[int, int] | None:
    first, last = _code_point_index(response, start), _code_point_index(response, end)
    if first is None or last is None:
        return reading.located(text, start, end, where, response)
    if text is None:
        return reading.placed(first, last, where, response)
    return (
        (first, last) if response[first:last] == text and text else reading.located(text, start, end, where, response)
    )


def _utf16_length(text: str) -> int:
    return len(text) + sum(char > "\uffff" for char in text)


def _code_point_index(text: str, units: int) -> int | None:
    """An offset in UTF-16 code units as code points; None if it splits a surrogate pair or is out of range."""
    if units < 0:
        return None
    seen = 0
    for index, char in enumerate(text):
        if seen >= units:
            return index if seen == units else None
        seen += 2 if char > "\uffff" else 1
    return len(text) if seen == units else None


def _named(label: str) -> str:
    low = label.lower()
    return low if any(low in each.types for each in taxonomies().values()) else label
