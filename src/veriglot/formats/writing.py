"""Writing: samples in any writable format, predictions in the native ones, and an account of what was lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import InputError, UsageError
from veriglot.formats.columns import prediction_columns, sample_columns, schema_of
from veriglot.formats.features import lost_between, reads_as_clean
from veriglot.formats.format import Format, Reading
from veriglot.formats.report import FileReport, Losses
from veriglot.formats.sinks import CsvSink, JsonSink, LinesSink, ParquetSink, Sink
from veriglot.formats.source import Source
from veriglot.formats.table import load_format
from veriglot.records import Prediction, Sample

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

__all__ = ["Writer", "format_for", "open_writer", "write", "write_predictions"]

_BY_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
_NATIVE = ("jsonl", "parquet")


def format_for(path: str | Path) -> str:
    """The format that a file's suffix says: `jsonl` or `parquet`; `jsonl` for standard output.

    Raises:
        UsageError: the suffix says none.
    """
    if str(path) == "-":
        return "jsonl"
    name = _BY_SUFFIX.get(Path(path).suffix.lower())
    if name is None:
        raise UsageError(
            f"The name {Path(path).name!r} does not say which format to write.",
            remedy="Name it (format=, --to), or end the name in .jsonl or .parquet.",
        )
    return name


def write(
    samples: Iterable[Sample],
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  the word that users type
    append: bool = False,
) -> Losses:
    """Write samples to a file ("-": standard output).

    Args:
        samples: consumed one at a time.
        path: the file.
        format: its format; by the suffix of the name where None.
        append: continue a file that exists (JSON lines and Parquet).

    Returns:
        What the format could not hold, by kind, with counts: each sample is read back as it was written and compared.

    Raises:
        UsageError: no format is named, or it can only be read.
        UnknownNameError: no such format.
        InputError: the file cannot be written.
    """
    with open_writer(path, format=format, append=append) as writer:
        for sample in samples:
            writer.write(sample)
    return writer.losses


def write_predictions(
    predictions: Iterable[Prediction],
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    append: bool = False,
) -> int:
    """Write predictions as JSON lines or Parquet; returns how many.

    Raises:
        UsageError: a format other than `jsonl` or `parquet`.
        InputError: the file cannot be written.
    """
    with open_writer(path, format=format, append=append, kind="predictions") as writer:
        for prediction in predictions:
            writer.write(prediction)
    return writer.losses.written


def open_writer(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    append: bool = False,
    kind: str = "samples",
) -> Writer:
    """A writer that takes records one at a time; use it with `with`.

    Args:
        path: the file, or "-" for standard output.
        format: its format; by the suffix of the name where None.
        append: continue a file that exists (JSON lines and Parquet).
        kind: `samples` or `predictions`.

    Raises:
        UsageError: the combination is not possible.
        InputError: the file cannot be written.
    """
    name = format or format_for(path)
    format_ = load_format(name)
    if kind == "predictions" and name not in _NATIVE:
        raise UsageError(f"Predictions are written as {' or '.join(_NATIVE)}, not {name}.")
    if not format_.writable:
        raise UsageError(
            f"The format {name!r} can be read but not written.", remedy="Choose another with --to, such as jsonl."
        )
    container = format_.containers[0]
    if append and container not in _NATIVE:
        raise UsageError(f"A file in the format {name!r} cannot be continued.", remedy="Write it as jsonl.")
    target = None if str(path) == "-" else Path(path)
    return Writer(format_, container, _sink(format_, container, target, append, kind), path)


def _sink(format_: Format, container: str, target: Path | None, append: bool, kind: str) -> Sink:
    if container == "jsonl":
        return LinesSink(target, append=append)
    if container == "json":
        return JsonSink(target)
    if container == "parquet":
        from veriglot.formats.containers import parquet_module

        parquet_module()
        return ParquetSink(target, schema_of(kind), append=append)
    return CsvSink(target, format_.columns, "\t" if container == "tsv" else ",")


class Writer:
    """Takes samples or predictions one at a time.

    Attributes:
        losses: how many rows were written, and what of them the format could not hold.
    """

    def __init__(self, format_: Format, container: str, sink: Sink, path: str | Path) -> None:
        self.losses = Losses(format_.name)
        self._format = format_
        self._container = container
        self._sink = sink
        source = Source.unread(path)
        self._back = Reading(source, FileReport(source.path, format_.name))

    def write(self, record: Sample | Prediction) -> None:
        """Write one record.

        A sample that the format cannot hold at all, whose response would come back changed, or that would come back as
        free of errors though nobody said so, is left out and noted under a name that starts with `row:`.

        Raises:
            InputError: Parquet cannot hold a value, such as a number beyond 64 bits.
        """
        if isinstance(record, Prediction):
            self._sink.write(prediction_columns(record) if self._container == "parquet" else record)
        elif self._format.name == "jsonl":
            self._sink.write(record)
        elif self._format.name == "parquet":
            self._sink.write(sample_columns(record))
        elif (row := self._checked(record)) is not None:
            self._sink.write(row)
        else:
            return
        self.losses.written += 1

    def _checked(self, sample: Sample) -> Any:
        """The sample as a record, after reading it back; None where it has no place in the format."""
        try:
            row = self._format.record(sample)
            line = self.losses.written + (2 if self._container in {"csv", "tsv"} else 1)
            back = next(iter(self._format.samples(self._as_read(row), line, self._back)), None)
        except InputError as error:
            self.losses.note(f"row: {error.detail}", sample.id)
            return None
        except ValueError as error:
            self.losses.note(f"row: {error}", sample.id)
            return None
        if back is None or back.response != sample.response:
            self.losses.note("row: the response would come back changed", sample.id)
            return None
        if reads_as_clean(sample, back):
            self.losses.note("row: without spans it would come back as one in which nothing is wrong", sample.id)
            return None
        self.losses.note_all(lost_between(sample, back), sample.id)
        return row

    def _as_read(self, row: Any) -> Any:
        if self._container in {"csv", "tsv"}:
            return {key: str(value) for key, value in row.items()}
        return msgspec.json.decode(msgspec.json.encode(row))

    def flush(self) -> None:
        """Hand what was written to the operating system (JSON lines)."""
        self._sink.flush()

    def close(self) -> None:
        """Finish the file."""
        self._sink.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish the file. After an error what is half done keeps what can be kept (JSON lines, CSV, JSON)."""
        if error is None or isinstance(error, KeyboardInterrupt):
            self._sink.close()
        else:
            self._sink.abandon()
