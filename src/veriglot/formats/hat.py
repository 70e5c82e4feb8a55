"""HAT JSON: translations with hallucinated spans marked by people (HAT, section 3.3).

A row holds `srcLocale`, `tgtLocale`, `id`, `annotatorID`, `source`, `target` and `errors`, each with a `category` and
`spans` of a start index, an end index and the span's text. The paper names these three without spelling their keys, so
`start`/`startIndex`/`start_index`, the same for the end, and `text`/`spanText`/`span_text` are read; the text decides
where the end is meant to be inclusive. Source-level labels become flags of the taxonomy `hat` where they match one,
and stay in `meta` as they stood. A row without an annotator, and with null for
`errors`, was not annotated yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.base import Format, Reading, evidence_text, need, optional, spanned_annotation
from veriglot.formats.language import language_tag
from veriglot.formats.spans import located
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = []

_CATEGORY = "hallucination"
_START = ("start", "startIndex", "start_index")
_END = ("end", "endIndex", "end_index")
_TEXT = ("text", "spanText", "span_text")
_KNOWN = {"srcLocale", "tgtLocale", "id", "annotatorID", "source", "target", "errors"}
_FLAGS = {
    "source_wrong_language": ("wrong language", "wrong_language", "mixed language", "mixed_language"),
    "source_incomprehensible": ("nonsens", "garbled", "incomprehensible"),
    "source_noise": ("spelling", "typo", "noise"),
}


class Hat(Format):
    """HAT JSON."""

    name = "hat"
    summary = "HAT JSON, hallucinated spans in translations"
    containers = ("json", "jsonl", "parquet")
    keys = ("srcLocale", "tgtLocale", "target")

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:  # noqa: ARG002
        """One sample a row."""
        target, source = need(data, "target", str), need(data, "source", str)
        others = {key: value for key, value in data.items() if key not in _KNOWN and value not in (None, [], {})}
        annotation = Annotation(
            annotator=str(data.get("annotatorID") or "annotator"),
            kind=Kind.HUMAN,
            taxonomy="hat",
            spans=tuple(_spans(optional(data, "errors", list) or [], target, reading)),
            flags=tuple(_flags(others)),
        )
        looked_at = data.get("errors", []) is not None or data.get("annotatorID") is not None
        source_locale, target_locale = need(data, "srcLocale", str), need(data, "tgtLocale", str)
        yield Sample(
            id=str(data.get("id") or need(data, "id", str)),
            response=target,
            task=Task.TRANSLATION,
            language=language_tag(target_locale) or target_locale,
            evidence=(Evidence(source, language=language_tag(source_locale) or source_locale),),
            annotations=(annotation,) if looked_at else (),
            meta=others,
        )

    def record(self, sample: Sample) -> dict[str, Any]:
        """A row of the first annotation with spans; offsets are code points, the end exclusive.

        Without one the row has null for annotator and errors: it is still to be annotated.
        """
        annotation = spanned_annotation(sample)
        if not sample.evidence or sample.language is None or sample.evidence[0].language is None:
            raise InputError("a row of HAT has a source text, and a language of both source and target")
        row = {
            **sample.meta,
            "srcLocale": sample.evidence[0].language,
            "tgtLocale": sample.language,
            "id": sample.id,
            "source": evidence_text(sample),
            "target": sample.response,
        }
        if annotation is None:
            return {**row, "annotatorID": None, "errors": None}
        listed = [
            {"start": s.start, "end": s.end, "text": sample.response[s.start : s.end]} for s in annotation.spans or ()
        ]
        errors = [{"category": _CATEGORY, "spans": listed}] if listed else []
        return {**row, "annotatorID": annotation.annotator, "errors": errors}


def _spans(errors: list[Any], target: str, reading: Reading) -> Iterator[Span]:
    for number, error in enumerate(errors):
        category = need(error, "category", str, within=f"errors[{number}]")
        if category.lower() != _CATEGORY:
            reading.report.notes[f"errors_of_category:{category}"] += 1
            continue
        for index, span in enumerate(need(error, "spans", list, within=f"errors[{number}]")):
            where = f"errors[{number}].spans[{index}]"
            start, end = _first(span, _START, int, where), _first(span, _END, int, where)
            text = next((span[key] for key in _TEXT if isinstance(span.get(key), str)), None)
            inclusive = text is not None and target[start:end] != text and target[start : end + 1] == text
            edges = located(text, start, end + 1 if inclusive else end, where, target, reading)
            if edges:
                yield Span(*edges, _CATEGORY)


def _first(span: Any, keys: tuple[str, ...], kind: type[int], where: str) -> int:
    key = next((key for key in keys if isinstance(span, dict) and key in span), keys[0])
    return need(span, key, kind, within=where)


def _flags(meta: dict[str, Any]) -> list[str]:
    labels = str({key: value for key, value in meta.items() if value}).lower()  # a label of false is not set
    return [flag for flag, words in _FLAGS.items() if any(word in labels for word in words)]
