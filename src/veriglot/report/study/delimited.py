"""Tables as CSV (RFC 4180, UTF-8, `\\n` between rows)."""

from __future__ import annotations

import csv
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from veriglot.report.study.tables import Table, Value

__all__ = ["csv_text"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the start of a formula."""


def csv_text(table: Table) -> str:
    """A table as CSV, with a head; shares stay between 0 and 1, at full precision, and None is empty.

    Text that a spreadsheet would run as a formula (it begins with `=`, `+`, `-` or `@`) gets a `'` in front: responses
    and names come from models and from others.
    """
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([_field(value) for value in row] for row in table.rows)
    return file.getvalue()


def _field(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    return repr(value)
