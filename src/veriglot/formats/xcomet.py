"""XCOMET rows: a source, its translation and `error_spans` with confidence and severity (Guerreiro et al. 2024).

The spans are translation errors of any kind, not hallucinations only, so they carry no type; their severities stay in
`meta.severities`, one a span. `score` or `scores` is the rating `score`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.file_language import language_tag
from veriglot.formats.format import Format, Reading, Sniff, need, optional
from veriglot.formats.offsets import located
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.formats.head import Head

__all__ = ["Xcomet"]


class Xcomet(Format):
    """XCOMET rows."""

    name = "xcomet"
    summary = "XCOMET rows with error_spans"
    containers = ("jsonl", "json", "parquet")

    def sniff(self, head: Head) -> Sniff | None:
        """By `mt` and `error_spans`."""
        return Sniff(0.95, "the keys `mt` and `error_spans`") if head.has("mt", "error_spans") else None

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:
        """One sample a row."""
        target, source = need(data, "mt", str), optional(data, "src", str)
        spans, severities = [], []
        for index, item in enumerate(need(data, "error_spans", list)):
            where = f"error_spans[{index}]"
            start, end = need(item, "start", int, within=where), need(item, "end", int, within=where)
            place = located(optional(item, "text", str), start, end, where, target, reading)
            if place is None:
                continue
            confidence = optional(item, "confidence", float)
            if confidence is not None and not 0 <= confidence <= 1:
                raise InputError(f"a confidence lies between 0 and 1, not {confidence}", field=f"{where}.confidence")
            spans.append(Span(*place, confidence=confidence))
            severities.append(optional(item, "severity", str))
        score = optional(data, "score" if "score" in data else "scores", float)
        meta: dict[str, Any] = {"severities": severities} if any(severities) else {}
        if "ref" in data:
            meta["ref"] = data["ref"]
        target_tag, source_tag = optional(data, "tgt_lang", str), optional(data, "src_lang", str)
        yield Sample(
            id=optional(data, "id", str) or f"{reading.source.stem}-{line}",
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
        annotation = next((a for a in sample.annotations if a.spans is not None), None)
        spans = annotation.spans or () if annotation else ()
        kept = sample.meta.get("severities")
        severities = kept if isinstance(kept, list) and len(kept) == len(spans) else [None for _ in spans]
        row: dict[str, Any] = {
            "id": sample.id,
            "src": "\n\n".join(passage.text for passage in sample.evidence),
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
        return {key: value for key, value in row.items() if value is not None}
