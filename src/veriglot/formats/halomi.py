"""HalOmi TSV (Dale et al. 2023): translations with hallucinated parts of the target between `<<<` and `>>>`.

Annotator `gold` carries the spans, and the sentence-level degrees as ratings `class_hall` and `class_omit`. The parts
of the source that the translation omits stay in `meta.omit_spans`. Language codes are FLORES's (`deu_Latn`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.base import Format, Reading, evidence_text, need, optional, spanned_annotation
from veriglot.formats.language import language_tag
from veriglot.formats.spans import marked_ranges, with_markers
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = []

_MARKERS = ("<<<", ">>>")
_RATINGS = ("class_hall", "class_omit")
_KEPT = ("omit_spans", "data_source", "perturbation", "selection")


class HalOmi(Format):
    """HalOmi TSV."""

    name = "halomi"
    summary = "HalOmi TSV, hallucinations and omissions in translations"
    containers = ("tsv", "csv", "jsonl", "parquet")
    keys = ("mt_text", "hall_spans")
    columns = ("src_lang", "tgt_lang", "src_text", "mt_text", "omit_spans", "hall_spans", "class_hall", "class_omit",
               "data_source")  # fmt: skip

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:
        """One sample a row."""
        target = need(data, "mt_text", str)
        source_tag, target_tag = need(data, "src_lang", str), need(data, "tgt_lang", str)
        ratings: dict[str, float | str] = {key: data[key] for key in _RATINGS if data.get(key)}
        ranges = marked_ranges(need(data, "hall_spans", str), target, _MARKERS, field="hall_spans", of="mt_text")
        annotation = Annotation(
            annotator="gold",
            kind=Kind.HUMAN,
            taxonomy="hat",
            spans=tuple(Span(start, end, "hallucination") for start, end in ranges),
            ratings=ratings,
        )
        source = optional(data, "src_text", str)
        yield Sample(
            id=f"{reading.source.stem}-{line}",
            response=target,
            task=Task.TRANSLATION,
            language=_tag(target_tag),
            evidence=(Evidence(source, language=_tag(source_tag)),) if source else (),
            annotations=(annotation,),
            meta={key: data[key] for key in _KEPT if data.get(key)},
        )

    def record(self, sample: Sample) -> dict[str, Any]:
        """A row; of several annotations the first with spans."""
        annotation = spanned_annotation(sample)
        if annotation is None or not sample.evidence or sample.language is None or not sample.evidence[0].language:
            raise InputError("a row of HalOmi has spans, a source text, and the languages of both texts")
        source = evidence_text(sample)
        return {
            "src_lang": sample.evidence[0].language,
            "tgt_lang": sample.language,
            "src_text": source,
            "mt_text": sample.response,
            "omit_spans": sample.meta.get("omit_spans", source),
            "hall_spans": with_markers(sample.response, annotation.spans or (), _MARKERS),
            "class_hall": str(annotation.ratings.get("class_hall", "")),
            "class_omit": str(annotation.ratings.get("class_omit", "")),
            "data_source": str(sample.meta.get("data_source", "")),
        }


def _tag(code: str) -> str:
    return language_tag(code) or language_tag(code.split("_")[0]) or code.replace("_", "-")
