"""Hallucinated spans in XSum summaries, as CSV (Maynez et al. 2020): a row a span and worker.

Rows of one article and system that follow each other become one sample with an annotation per worker. `intrinsic`
(the summary misrepresents the article) is `contradicted`, `extrinsic` (the article does not say it) is `unverified`
in the taxonomy `support`; `NULL` is a worker who found nothing. Offsets in the file count from 1, and their ends mean
different things from row to row, so the span's own text decides.

The articles lie in `Gold.docid` and `Gold.source` (a line each, in the same order) and are the evidence where those
files lie beside the CSV. The data set is English.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.base import Format, Reading, need
from veriglot.formats.containers import BadRow, Record
from veriglot.formats.spans import located
from veriglot.records import Annotation, Evidence, Generator, Kind, Sample, Span, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.formats.containers import Records

__all__ = []

_TYPES = {"intrinsic": "contradicted", "extrinsic": "unverified"}
_ESCAPED_BREAK = "\\n"  # 39 spans of the published file begin or end with a backslash and an n
_COLUMNS = (
    "bbcid", "system", "summary", "hallucination_type", "hallucinated_span",
    "hallucinated_span_start", "hallucinated_span_end", "worker_id",
)  # fmt: skip


class XsumSpans(Format):
    """XSum hallucination spans."""

    name = "xsum"
    summary = "hallucinated spans in XSum summaries, CSV"
    containers = ("csv",)
    keys = ("bbcid", "hallucinated_span")
    companions = ("Gold.docid", "Gold.source", "Gold.target")
    writable = False

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:  # noqa: ARG002
        """One row alone, as a sample with one worker."""
        yield _sample([(data, _span(data, reading))], reading)

    def rows(self, records: Records, reading: Reading) -> Iterator[Sample | BadRow]:
        """Samples of consecutive rows with the same article and system."""
        group: list[Record] = []
        for record in records:
            if isinstance(record, BadRow):
                yield record
                continue
            if group and _key(record) != _key(group[0]):
                yield from _grouped(group, reading)
                group = []
            group.append(record)
        yield from _grouped(group, reading)


def _key(record: Record) -> tuple[Any, Any]:
    return record.data.get("bbcid"), record.data.get("system")


def _grouped(group: list[Record], reading: Reading) -> Iterator[Sample | BadRow]:
    """A bad row is left out of its group and reported; the others still make a sample."""
    good: list[tuple[Any, Span | None]] = []
    for record in group:
        reading.line = record.line
        try:
            good.append((record.data, _span(record.data, reading)))
        except InputError as error:
            yield reading.bad(record, error)
    if good:
        yield _sample(good, reading)


def _sample(rows: list[tuple[Any, Span | None]], reading: Reading) -> Sample:
    first = rows[0][0]
    workers: dict[str, list[Span]] = {}
    for row, span in rows:
        spans = workers.setdefault(row["worker_id"], [])
        if span is not None and span not in spans:
            spans.append(span)
    document = _articles(reading).get(first["bbcid"])
    if document is None:
        reading.report.notes["without_article"] += 1
    return Sample(
        id=f"{first['bbcid']}-{first['system']}",
        response=first["summary"],
        task=Task.SUMMARIZATION,
        language="en",
        evidence=(Evidence(document, language="en"),) if document is not None else (),
        generator=Generator(first["system"]),
        annotations=tuple(
            Annotation(
                annotator=worker,
                kind=Kind.HUMAN,
                taxonomy="support",
                spans=tuple(sorted(spans, key=lambda s: (s.start, -s.end))),
            )
            for worker, spans in workers.items()
        ),
        meta={"bbcid": first["bbcid"]},
    )


def _span(row: Any, reading: Reading) -> Span | None:
    for column in _COLUMNS:
        need(row, column, str)
    type_ = row["hallucination_type"]
    if type_ == "NULL":
        return None
    if type_ not in _TYPES:
        raise InputError(f"{type_!r} is neither intrinsic, extrinsic nor NULL", field="hallucination_type")
    start, end = _number(row, "hallucinated_span_start"), _number(row, "hallucinated_span_end")
    marked = row["hallucinated_span"].removeprefix(_ESCAPED_BREAK).removesuffix(_ESCAPED_BREAK)
    span = located(marked, start, end, "hallucinated_span", row["summary"], reading, usual=1)
    return Span(*span, _TYPES[type_]) if span else None


def _number(row: Any, column: str) -> int:
    try:
        return int(row[column])
    except ValueError:
        raise InputError(f"a whole number is expected, not {row[column]!r}", field=column) from None


def _articles(reading: Reading) -> dict[str, str]:
    """Articles by id. They are held in memory: the published file is 1.1 MB."""
    if "articles" not in reading.state:
        file = reading.source.file
        ids, texts = (file.with_name(name) if file else None for name in ("Gold.docid", "Gold.source"))
        by_id: dict[str, str] = {}
        if ids and texts and ids.is_file() and texts.is_file():
            lines = texts.read_text("utf-8").split("\n")
            by_id = dict(zip(ids.read_text("utf-8").split(), lines, strict=False))
        reading.state["articles"] = by_id
    articles: dict[str, str] = reading.state["articles"]
    return articles
