"""XCOMET rows: a source, its translation and `error_spans` with confidence and severity (Guerreiro et al. 2024).

The spans are translation errors of any kind, not hallucinations only, so they carry no type; their severities stay in
`meta.severities`, one a span. `score` or `scores` is the rating `score`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.base import Format, Reading, evidence_text, need, optional, present, spanned_annotation
from veriglot.formats.language import language_tag
from veriglot.formats.spans import beside_spans, located, offsets_of
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = []


class Xcomet(Format):
    """XCOMET rows."""

    name = "xcomet"
    summary = "XCOMET rows with error_spans"
    keys = ("mt", "error_spans")

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:
        """One sample a row."""
        target, source = need(data, "mt", str), optional(data, "src", str)
        spans, severities = [], []
        for index, item in enumerate(need(data, "error_spans", list)):
            where = f"error_spans[{index}]"
            start, end = offsets_of(item, where)
            span = located(optional(item, "text", str), start, end, where, target, reading)
            if span is None:
                continue
            confidence = optional(item, "confidence", float)
            if confidence is not None and not 0 <= confidence <= 1:
                raise InputError(f"a confidence lies between 0 and 1, not {confidence}", field=f"{where}.confidence")
            spans.append(Span(*span, confidence=confidence))
            severities.append(optional(item, "severity", str))
        score = optional(data, "score" if "score" in data else "scores", float)
        meta: dict[str, Any] = {"severities": severities} if any(severities) else {}
        if "ref" in data:
            meta["ref"] = data["ref"]
        target_tag, source_tag = optional(data, "tgt_lang", str), optional(data, "src_lang", str)
        yield Sample(
            id=reading.row_id(data, line),
            response=target,
            task=Task.TRANSLATION,
            language=language_tag(target_tag) if target_tag else reading.language,
            evidence=(Evidence(source, language=language_tag(source_tag) if source_tag else None),) if source else (),
            annotations=(
                Annotation(
                    annotator="xcomet",
                    kind=Kind.MODEL,
                    taxonomy="hat",
                    spans=tuple(spans),
                    ratings={} if score is None else {"score": score},
                ),
            ),
            meta=meta,
        )

    def record(self, sample: Sample) -> dict[str, Any]:
        """A row of the first annotation that has spans."""
        annotation = spanned_annotation(sample)
        spans = annotation.spans or () if annotation else ()
        severities = beside_spans(sample, "severities", spans) or [None for _ in spans]
        row = {
            "id": sample.id,
            "src": evidence_text(sample),
            "mt": sample.response,
            "ref": sample.meta.get("ref"),
            "src_lang": sample.evidence[0].language if sample.evidence else None,
            "tgt_lang": sample.language,
            "score": annotation.ratings.get("score") if annotation else None,
            "error_spans": [
                {
                    "text": sample.response[span.start : span.end],
                    "confidence": span.confidence,
                    "severity": severity,
                    "start": span.start,
                    "end": span.end,
                }
                for span, severity in zip(spans, severities, strict=True)
            ],
        }
        return present(row)
