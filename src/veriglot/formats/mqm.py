"""MQM ratings of translations, TSV (Freitag et al. 2021): a row an error, marked with `<v>...</v>` in its text.

Rows of one system and segment that follow each other become one sample with an annotation per rater. Errors of the
category *Accuracy/Addition* are what the source does not support: they are the spans, of type `hallucination` (taxonomy
`hat`), and a rater who marked none has none. Every error, with its category, its severity, the rater, the text that it
is marked in (`target`, or `source` for omissions) and its place there, stays in `meta.errors`. The system is the
generator; systems named `ref` are people.

The tables quote nothing: a quotation mark is part of its text. A mark that is never closed reaches to the end of the
text, which is counted as a repair. Rows state no language: a pair in the file's name that fits the texts is believed
(`mqm_ted_zhen.tsv`).
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from veriglot.errors import InputError
from veriglot.formats.base import Format, Reading, Sniff
from veriglot.formats.containers import BadRow, Record
from veriglot.formats.language import pair_of
from veriglot.formats.spans import marked_ranges
from veriglot.records import Annotation, Evidence, Generator, Kind, Sample, Span, Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from veriglot.formats.containers import Head, Records

__all__ = []

ADDITION = "Accuracy/Addition"
"""The category of what the translation says and the source does not."""

_MARKERS = ("<v>", "</v>")
_NO_ERROR = frozenset({"no-error", "no error"})
_NEEDED = ("system", "doc", "seg_id", "rater", "source", "target", "category", "severity")


class _Error(NamedTuple):
    """A row: the texts without marks, who rated, and the error, or None where there is none."""

    key: tuple[str, str, str]
    source: str
    target: str
    rater: str
    error: dict[str, Any] | None
    line: int


class Mqm(Format):
    """TSV of MQM errors."""

    name = "mqm"
    summary = "MQM error spans in translations, TSV"
    containers = ("tsv", "text")
    takes_lines = True
    writable = False

    def sniff(self, head: Head) -> Sniff | None:
        """By the columns `seg_id`, `rater`, `category` and `severity`."""
        columns = head.text.split("\n", 1)[0].rstrip("\r").split("\t")
        if set(_NEEDED) <= set(columns):
            return Sniff(0.95, "the columns `seg_id`, `rater`, `category` and `severity`")
        return None

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:
        """One row alone, as a sample with one rater; the first row names the columns and is none."""
        row = _row(str(data), line, reading)
        if row is not None:
            yield _sample([row], reading)

    def rows(self, records: Records, reading: Reading) -> Iterator[Sample | BadRow]:
        """Samples of consecutive rows with the same system and segment."""
        for _, group in groupby(_errors(records, reading), key=_segment):
            rows = list(group)
            yield from (row for row in rows if isinstance(row, BadRow))
            errors = [row for row in rows if isinstance(row, _Error)]
            if errors:
                reading.line = errors[0].line
                yield _sample(errors, reading)


def _segment(row: _Error | BadRow) -> tuple[str, ...] | None:
    """What rows of one sample share: the texts too, should they differ."""
    return (*row.key, row.source, row.target) if isinstance(row, _Error) else None


def _errors(records: Iterable[Record | BadRow], reading: Reading) -> Iterator[_Error | BadRow]:
    for record in records:
        if isinstance(record, BadRow):
            yield record
            continue
        reading.line = record.line
        try:
            row = _row(str(record.data), record.line, reading)
        except InputError as error:
            yield reading.bad(record, error)
        else:
            if row is not None:
                yield row


def _row(text: str, line: int, reading: Reading) -> _Error | None:
    cells = text.split("\t")
    columns = reading.state.setdefault("columns", cells)
    missing = [name for name in _NEEDED if name not in columns]
    if missing:
        raise InputError(f"the first line does not name the columns {', '.join(missing)}")
    if columns is cells:
        return None
    if len(cells) != len(columns):
        raise InputError(f"the row has {len(cells)} columns, but the first line {len(columns)}")
    row = dict(zip(columns, cells, strict=True))
    source, in_source = _marked(row["source"], "source", reading)
    target, in_target = _marked(row["target"], "target", reading)
    return _Error(
        key=(row["system"], row["doc"], row["seg_id"]),
        source=source,
        target=target,
        rater=row["rater"],
        error=_error(row, in_source, in_target),
        line=line,
    )


def _marked(text: str, field: str, reading: Reading) -> tuple[str, list[tuple[int, int]]]:
    """The text without marks, and the marked ranges."""
    opening, closing = _MARKERS
    if opening not in text and closing not in text:
        return text, []
    if text.count(opening) == text.count(closing) + 1 and text.rfind(opening) > text.rfind(closing):
        reading.repaired("unclosed_marks", f"{opening} is never closed", where=field)
        text += closing
    plain = text.replace(opening, "").replace(closing, "")
    return plain, marked_ranges(text, plain, _MARKERS, field=field, of=f"{field} without marks")


def _error(row: dict[str, str], in_source: list[Any], in_target: list[Any]) -> dict[str, Any] | None:
    category = row["category"]
    if category.lower() in _NO_ERROR:
        return None
    error: dict[str, Any] = {"category": category, "severity": row["severity"], "rater": row["rater"]}
    for side, ranges in (("target", in_target), ("source", in_source)):
        if ranges:
            error |= {"in": side, "places": [list(edges) for edges in ranges]}
            break
    if row.get("comment"):
        error["comment"] = row["comment"]
    return error


def _sample(rows: list[_Error], reading: Reading) -> Sample:
    first = rows[0]
    raters: dict[str, list[Span]] = {}
    for row in rows:
        spans = raters.setdefault(row.rater, [])
        if row.error is not None and row.error["category"] == ADDITION and row.error.get("in") == "target":
            spans.extend(Span(start, end, "hallucination") for start, end in row.error["places"])
    system, doc, segment = first.key
    source_tag, target_tag = pair_of(_beginning(reading), reading)
    errors = [row.error for row in rows if row.error is not None]
    return Sample(
        id=_id(first, reading),
        response=first.target,
        task=Task.TRANSLATION,
        language=target_tag,
        evidence=(Evidence(first.source, language=source_tag),),
        generator=Generator(system),
        annotations=tuple(
            Annotation(annotator=rater, kind=Kind.HUMAN, taxonomy="hat", spans=tuple(_in_order(spans)))
            for rater, spans in raters.items()
        ),
        meta={"doc": doc, "segment": segment} | ({"errors": errors} if errors else {}),
    )


def _in_order(spans: list[Span]) -> list[Span]:
    return sorted(set(spans), key=lambda span: (span.start, -span.end))


def _id(row: _Error, reading: Reading) -> str:
    """A name of its own, also where the rows of a segment stand in several places of the file or differ in a text."""
    met: dict[tuple[str, str, str], int] = reading.state.setdefault("met", {})
    met[row.key] = met.get(row.key, 0) + 1
    repeat = f"-{met[row.key]}" if met[row.key] > 1 else ""
    return "-".join((reading.source.stem, *row.key)) + repeat


def _beginning(reading: Reading) -> Iterator[tuple[str, str]]:
    lines = reading.source.head.decode("utf-8", "replace").split("\n")
    columns = lines[0].rstrip("\r").split("\t")
    for line in lines[1:]:
        row = dict(zip(columns, line.split("\t"), strict=False))
        yield row.get("source", ""), row.get("target", "")
