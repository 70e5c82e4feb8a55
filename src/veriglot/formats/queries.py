"""mFAVA queries CSV: Wikipedia passages with two knowledge-intensive questions each.

There is no response: each question becomes a sample with an empty one, which detectors answer with a status, and
from which the stages that make responses start. The passages are clean text. Source: mfava, section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.file_language import in_the_script_of, language_of_file
from veriglot.formats.format import Format, Reading, Sniff, optional
from veriglot.formats.garbled import garbled
from veriglot.records import Evidence, Sample, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.formats.head import Head

__all__ = ["MfavaQueries"]

_REFERENCES = ("references", "reference_1", "reference_2", "reference_3", "reference_4", "reference_5")
_QUERIES = ("query_1", "query_2")


class MfavaQueries(Format):
    """mFAVA references with queries."""

    name = "mfava-queries"
    summary = "mFAVA references and queries: evidence and questions without responses"
    containers = ("csv", "jsonl", "json", "parquet")
    writable = False

    def sniff(self, head: Head) -> Sniff | None:
        """By the columns `query_1` and `references` or `reference_1`."""
        if head.has("query_1") and head.has_any("references", "reference_1"):
            return Sniff(0.95, "the columns `query_1` and `reference_1` or `references`")
        return None

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:
        """One sample a query, its response empty."""
        named = language_of_file(reading)
        texts = [text for key in _REFERENCES if (text := optional(data, key, str)) and text.strip()]
        if not texts:
            raise InputError("the row has no reference", field="reference_1")
        broken = next(filter(None, map(garbled, texts)), None)
        if broken:
            reading.report.notes[f"reference_garbled:{broken}"] += 1
        title, url = optional(data, "Article Title", str), optional(data, "URL", str)
        meta: dict[str, Any] = {"category": optional(data, "Category", str)}
        if broken:
            meta["reference_garbled"] = broken
        language = in_the_script_of(named, texts[0])
        evidence = tuple(Evidence(text, title=title, language=language, url=url) for text in texts)
        for number, key in enumerate(_QUERIES, start=1):
            query = optional(data, key, str)
            if query is None:
                reading.report.notes["rows_without_" + key] += 1
                continue
            yield Sample(
                id=f"{reading.source.stem}-{line}-q{number}",
                response="",
                task=Task.QA,
                language=language,
                question=query,
                evidence=evidence,
                meta={k: v for k, v in meta.items() if v is not None},
            )
