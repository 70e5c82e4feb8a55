"""Reading predictions: native JSON lines or Parquet, the format known from the content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.errors import InputError
from veriglot.formats.columns import prediction_from_columns
from veriglot.formats.containers import read_container
from veriglot.formats.head import look_at
from veriglot.formats.lines import MAX_LINE_BYTES
from veriglot.formats.rows import BadRow
from veriglot.formats.source import Source
from veriglot.records import prediction_from

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from veriglot.records import Prediction

__all__ = ["read_prediction_rows", "read_predictions"]


def read_predictions(path: str | Path, *, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[Prediction]:
    """Predictions of a file, or of standard input ("-"), streamed in order.

    Raises:
        InputError: the first row that is not a prediction, with path, line and field.
    """
    for row in read_prediction_rows(path, max_line_bytes=max_line_bytes):
        if isinstance(row, BadRow):
            raise row.error
        yield row


def read_prediction_rows(path: str | Path, *, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[Prediction | BadRow]:
    """Like `read_predictions`, but a row that cannot be read is yielded as a `BadRow` and reading goes on.

    Raises:
        InputError: the file does not exist.
    """
    source = Source(path)
    container = look_at(source).container
    if container == "empty":
        return
    if container not in {"jsonl", "json", "parquet"}:
        container = "jsonl"  # each line will say what is wrong with it
    convert = prediction_from_columns if container == "parquet" else prediction_from
    for record in read_container(container, source, max_line_bytes):
        if isinstance(record, BadRow):
            yield record
            continue
        try:
            if not isinstance(record.data, dict):
                raise InputError("a prediction is a JSON object")
            yield convert(record.data)
        except InputError as error:
            raw = record.raw.decode("utf-8", "replace") if record.raw is not None else ""
            yield BadRow(source.path, record.line, error.at(path=source.path, line=record.line), raw)
