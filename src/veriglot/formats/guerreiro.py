"""Pathologies of translations, CSV (Guerreiro et al. 2023, "Looking for a Needle in a Haystack").

A row holds `src`, `mt`, `ref` and a 0 or 1 for each pathology. The label is of the whole translation: what is a
hallucination by the data's paper (`repetitions`, which is oscillation, `strong-unsupport` and `full-unsupport`, which
are strong and full detachment) is a unit `hallucination` over the whole response (taxonomy `hat`), and a row without
any has none. `omission` and `named-entities` are pathologies and no hallucinations. All five are flags of the
annotation `gold`: `oscillation`, `strong_detachment`, `full_detachment`, `omission`, `named_entities`. Of a strong
detachment only a part is unsupported, and no one marked which; the flags tell them apart. The reference translation
goes to `meta.reference`.

In the published file a row has commas in a text that is not quoted: a comma before a space is read as part of its
text where that gives the right number of columns. The languages are identified from the file's beginning.
"""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.base import Format, Reading, need
from veriglot.formats.containers import BadRow, Record
from veriglot.formats.language import pair_of
from veriglot.records import Annotation, Evidence, Kind, Sample, Task, Unit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.formats.containers import Records

__all__ = []

FLAGS = {
    "repetitions": "oscillation",
    "strong-unsupport": "strong_detachment",
    "full-unsupport": "full_detachment",
    "omission": "omission",
    "named-entities": "named_entities",
}
"""Columns of the file to flags of the annotation."""

HALLUCINATIONS = ("oscillation", "strong_detachment", "full_detachment")
"""Flags of what the data's paper calls a hallucination."""

_COLUMNS = ("", "src", "mt", "ref", "repetitions", "named-entities", "omission", "strong-unsupport", "full-unsupport")
_COMMA_BETWEEN_COLUMNS = re.compile(r",(?! )")


class Guerreiro(Format):
    """CSV of translations with pathologies."""

    name = "guerreiro"
    summary = "pathologies of translations: detachment, oscillation, omission, CSV"
    containers = ("csv",)
    keys = ("src", "mt", "strong-unsupport", "full-unsupport")
    writable = False

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:
        """One sample a row."""
        source, target = need(data, "src", str), need(data, "mt", str)
        flags = tuple(flag for column, flag in FLAGS.items() if _is_set(data, column))
        hallucinated = any(flag in HALLUCINATIONS for flag in flags) and target
        source_tag, target_tag = pair_of(_beginning(reading), reading)
        units = (Unit(0, len(target), "hallucination"),) if hallucinated else ()
        yield Sample(
            id=f"{reading.source.stem}-{data.get('') or line}",
            response=target,
            task=Task.TRANSLATION,
            language=target_tag,
            evidence=(Evidence(source, language=source_tag),),
            annotations=(Annotation(annotator="gold", kind=Kind.HUMAN, taxonomy="hat", units=units, flags=flags),),
            meta={"reference": data["ref"]} if data.get("ref") else {},
        )

    def rows(self, records: Records, reading: Reading) -> Iterator[Sample | BadRow]:
        """Samples and bad rows; rows with commas that should have been quoted are repaired."""
        return super().rows((_repaired(record, reading) for record in records), reading)


def _is_set(data: Any, column: str) -> bool:
    value = need(data, column, str)
    if value not in {"0", "1"}:
        raise InputError(f"a label is 0 or 1, not {value[:60]!r}", field=column)
    return value == "1"


def _repaired(record: Record | BadRow, reading: Reading) -> Record | BadRow:
    """A row with too many columns as it was meant, if it can be told; else as it is."""
    if not isinstance(record, BadRow):
        return record
    cells = _COMMA_BETWEEN_COLUMNS.split(record.raw.rstrip("\r\n"))
    if len(cells) != len(_COLUMNS) or not all(cell in {"0", "1"} for cell in cells[4:]):
        return record
    reading.line = record.line
    try:
        reading.repaired("unquoted_commas", "the row has commas in a text that is not quoted")
    except InputError as error:
        return BadRow(record.path, record.line, error.at(path=record.path, line=record.line), record.raw)
    return Record(record.line, dict(zip(_COLUMNS, cells, strict=True)))


def _beginning(reading: Reading) -> Iterator[tuple[str, str]]:
    text = reading.source.head.decode("utf-8", "replace")
    for row in csv.DictReader(io.StringIO(text, newline="")):
        yield row.get("src") or "", row.get("mt") or ""
