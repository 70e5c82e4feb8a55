"""Writing: a sink for each container, what a format would lose, and samples and predictions one at a time.

JSON lines can be continued; whatever a crash left of a last line is taken off first. Parquet cannot be continued in
place: its finished rows are copied into a new file, which replaces the old one when it is closed whole.
"""

from __future__ import annotations

import csv
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import msgspec

from veriglot.errors import InputError, UsageError
from veriglot.formats.base import FileReport, Losses, Reading, load_format
from veriglot.formats.containers import Source, parquet_module
from veriglot.formats.native import schema_of
from veriglot.records import Prediction, Sample, Task, decode_json
from veriglot.storage.files import partial_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import TracebackType

    from veriglot.formats.base import Format
    from veriglot.records import Annotation

__all__ = ["Writer", "open_writer", "write"]


_ROW_GROUP = 1024
_BLOCK = 1 << 16


class _Sink:
    """Puts encoded records into a file, or (None) onto standard output, which stays open."""

    def __init__(self, path: Path | None, mode: str = "wb") -> None:
        self._path = path
        try:
            self._stream = cast("BinaryIO", path.open(mode)) if path is not None else sys.stdout.buffer
        except OSError as error:
            raise InputError(f"it cannot be written: {error.strerror}", path=str(path)) from error

    def write(self, record: Any) -> None:
        """Add one record, here as a line of JSON."""
        self._stream.write(msgspec.json.encode(record) + b"\n")

    def flush(self) -> None:
        """Hand what was written to the operating system, where the container can be read half done."""
        self._stream.flush()

    def close(self) -> None:
        """Finish the file."""
        self._stream.flush()
        if self._path is not None:
            self._stream.close()

    def abandon(self) -> None:
        """Close without finishing what would otherwise pass for whole."""
        self.close()


def _mend(path: Path) -> None:
    """End the last line of a file that is to be continued; take it off where it was cut."""
    with path.open("r+b") as stream:
        end = stream.seek(0, os.SEEK_END)
        tail = b""
        start = end
        while start > 0 and b"\n" not in tail:
            start = max(0, start - _BLOCK)
            stream.seek(start)
            tail = stream.read(end - start)
        last = tail[tail.rfind(b"\n") + 1 :]
        try:
            if last:
                decode_json(last)
                stream.seek(end)
                stream.write(b"\n")
        except InputError:
            stream.truncate(end - len(last))


class _JsonSink(_Sink):
    """One JSON array, a record a line."""

    _before = b"[\n"

    def write(self, record: Any) -> None:
        self._stream.write(self._before + msgspec.json.encode(record))
        self._before = b",\n"

    def close(self) -> None:
        self._stream.write(b"\n]\n" if self._before == b",\n" else b"[\n]\n")
        super().close()


class _CsvSink(_Sink):
    """CSV or TSV with a header; values are quoted where they have to be."""

    def __init__(self, path: Path | None, columns: Sequence[str], delimiter: str) -> None:
        super().__init__(path)
        self._text = io.TextIOWrapper(self._stream, "utf-8", newline="", write_through=True)
        self._rows = csv.DictWriter(self._text, columns, delimiter=delimiter)
        self._rows.writeheader()

    def write(self, record: Any) -> None:
        self._rows.writerow(record)

    def close(self) -> None:
        self._text.detach()
        super().close()


class _ParquetSink(_Sink):
    """Parquet in row groups of 1,024, through a file beside the target that takes its place when it is closed whole."""

    def __init__(self, path: Path | None, schema: Any, *, append: bool = False) -> None:
        if path is None:
            raise UsageError("Parquet cannot be written to standard output.", remedy="Name a file with -o.")
        parquet = parquet_module()
        self._target = path
        self._partial = partial_path(path)
        self._schema = schema
        self._rows: list[Any] = []
        try:
            self._writer = parquet.ParquetWriter(self._partial, schema, compression="zstd")
        except OSError as error:
            raise InputError(f"it cannot be written: {error.strerror or error}", path=str(path)) from error
        if append and path.exists():
            self._copy(parquet)

    def _copy(self, parquet: Any) -> None:
        try:
            with self._target.open("rb") as stream:
                old = parquet.ParquetFile(stream)
                if not old.schema_arrow.equals(self._schema):
                    raise UsageError(f"{self._target} holds other columns, so it cannot be continued.")
                for batch in old.iter_batches(batch_size=_ROW_GROUP):
                    self._writer.write_batch(batch)
        except BaseException as error:
            self.abandon()
            if isinstance(error, OSError | ValueError):
                raise InputError(
                    "it cannot be continued: it is not readable as Parquet", path=str(self._target)
                ) from error
            raise

    def write(self, record: Any) -> None:
        self._rows.append(record)
        if len(self._rows) >= _ROW_GROUP:
            self._write_rows()

    def _write_rows(self) -> None:
        import pyarrow as pa

        rows, self._rows = self._rows, []
        try:
            if rows:
                self._writer.write_table(pa.Table.from_pylist(rows, schema=self._schema))
        except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
            raise InputError(f"Parquet cannot hold a value: {error}", path=str(self._target)) from error

    def flush(self) -> None:
        """Nothing: a part of a Parquet file cannot be read."""

    def close(self) -> None:
        try:
            self._write_rows()
        except InputError:
            self.abandon()
            raise
        self._writer.close()
        self._partial.replace(self._target)

    def abandon(self) -> None:
        self._rows = []
        self._writer.close()
        self._partial.unlink(missing_ok=True)


# What a sample holds, part by part: the measure of what a format can and cannot keep.


def features(sample: Sample) -> dict[str, Any]:
    """The parts that a sample has, by name; what it does not have is absent.

    Two samples that agree in a part have equal values for its name.
    """
    return {name: value for name, value in _parts(sample) if value not in (None, (), {}, "")}


def _parts(sample: Sample) -> Iterator[tuple[str, Any]]:
    generator, passages, annotations = sample.generator, sample.evidence, sample.annotations
    yield "id", sample.id
    yield "response", sample.response
    yield "task", None if sample.task is Task.OPEN else sample.task
    yield "language", sample.language
    yield "question", sample.question
    yield "evidence", sample.evidence_text
    yield "boundaries between passages", tuple(p.text for p in passages) if len(passages) > 1 else None
    yield "ids of passages", tuple(p.id for i, p in enumerate(passages) if p.id != f"p{i}")
    yield "titles of passages", tuple(p.title for p in passages if p.title is not None)
    yield "addresses of passages", tuple(p.url for p in passages if p.url is not None)
    yield "languages of passages", tuple(p.language for p in passages if p.language is not None)
    yield "generator", generator and generator.name
    yield "settings of the generator", generator and _settings(generator)
    yield "meta", sample.meta
    if not annotations:
        return
    yield "annotators", tuple(a.annotator for a in annotations)
    yield "kinds of annotators", tuple(a.kind for a in annotations)
    yield "number of annotations", len(annotations) if len(annotations) > 1 else None
    yield "taxonomies", tuple(a.taxonomy for a in annotations)
    yield from _marks(annotations)


def _settings(generator: Any) -> tuple[Any, ...] | None:
    settings = (generator.revision, generator.seed, generator.settings or None)
    return settings if any(part is not None for part in settings) else None


def _marks(annotations: tuple[Annotation, ...]) -> Iterator[tuple[str, Any]]:
    spans = [span for a in annotations for span in a.spans or ()]
    units = [unit for a in annotations for unit in a.units or ()]
    yield "spans", tuple(tuple(sorted({(s.start, s.end) for s in a.spans})) for a in annotations if a.spans)
    yield "order and repeats of spans", _order(annotations)
    yield "types of spans", tuple((s.start, s.end, s.type) for s in spans if s.type is not None)
    yield "spans without a type", tuple((s.start, s.end) for s in spans if s.type is None)
    yield "annotations without spans", tuple(i for i, a in enumerate(annotations) if a.spans is None)
    yield "annotations with no span", tuple(i for i, a in enumerate(annotations) if a.spans == ())
    yield "confidences of spans", tuple(s.confidence for s in spans if s.confidence is not None)
    yield "texts of spans", tuple(s.text for s in spans if s.text is not None)
    yield "pointers of spans", tuple(s.evidence for s in spans if s.evidence)
    yield "units", tuple((u.start, u.end, u.label) for u in units)
    yield "probabilities of units", tuple(u.probability for u in units if u.probability is not None)
    yield "annotations with no unit", tuple(i for i, a in enumerate(annotations) if a.units == ())
    yield "ratings", tuple(sorted(((k, v) for a in annotations for k, v in a.ratings.items()), key=str))
    yield "flags", tuple(flag for a in annotations for flag in a.flags)


def _order(annotations: tuple[Annotation, ...]) -> tuple[Any, ...] | None:
    """The spans in their order, where it is not the sorted one, or where one occurs twice."""
    orders = []
    for annotation in annotations:
        spans = [(s.start, s.end, s.type) for s in annotation.spans or ()]
        if spans != sorted({(s[0], s[1]): s for s in spans}.values(), key=lambda s: s[:2]):
            orders.append(tuple(spans))
    return tuple(orders) or None


# Writing: samples in any writable format, predictions in the native ones, and an account of what was lost.


_BY_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
_NATIVE = ("jsonl", "parquet")


def _format_for(path: str | Path) -> str:
    """The format that a file's suffix says: `jsonl` or `parquet`; `jsonl` for standard output."""
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
    samples: Iterable[Sample | Prediction],
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  the word that users type
    append: bool = False,
    kind: str = "samples",
) -> Losses:
    """Write samples or predictions to a file ("-": standard output).

    Args:
        samples: consumed one at a time.
        path: the file.
        format: its format; by the suffix of the name where None. Predictions are `jsonl` or `parquet`.
        append: continue a file that exists (JSON lines and Parquet).
        kind: `samples` or `predictions`.

    Returns:
        What the format could not hold, by kind, with counts: each sample is read back as it was written and compared.

    Raises:
        UsageError: no format is named, or it can only be read.
        UnknownNameError: no such format.
        InputError: the file cannot be written.
    """
    with open_writer(path, format=format, append=append, kind=kind) as writer:
        for sample in samples:
            writer.write(sample)
    return writer.losses


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
    name = format or _format_for(path)
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
    sink: _Sink
    if container == "jsonl":
        if append and target is not None and target.exists():
            _mend(target)
        sink = _Sink(target, "ab" if append else "wb")
    elif container == "json":
        sink = _JsonSink(target)
    elif container == "parquet":
        sink = _ParquetSink(target, schema_of(Prediction if kind == "predictions" else Sample), append=append)
    else:
        sink = _CsvSink(target, format_.columns, "\t" if container == "tsv" else ",")
    return Writer(format_, sink, path)


class Writer:
    """Takes samples or predictions one at a time.

    Attributes:
        losses: how many rows were written, and what of them the format could not hold.
    """

    def __init__(self, format_: Format, sink: _Sink, path: str | Path) -> None:
        self.losses = Losses(format_.name)
        self._format = format_
        self._table = format_.containers[0] in {"csv", "tsv"}
        self._sink = sink
        self._back = Reading(Source(path), FileReport(str(path), format_.name))

    def write(self, record: Sample | Prediction) -> None:
        """Write one record.

        A sample that the format cannot hold at all, whose response would come back changed, or that would come back as
        free of errors though nobody said so, is left out and noted under a name that starts with `row:`.

        Raises:
            InputError: Parquet cannot hold a value, such as a number beyond 64 bits.
        """
        if isinstance(record, Prediction):
            self._sink.write(msgspec.to_builtins(record) if self._format.name == "parquet" else record)
        elif self._format.name in _NATIVE:
            self._sink.write(self._format.record(record))
        elif (row := self._checked(record)) is not None:
            self._sink.write(row)
        else:
            return
        self.losses.written += 1

    def _checked(self, sample: Sample) -> Any:
        """The sample as a record, after reading it back; None where it has no place in the format."""
        try:
            row = self._format.record(sample)
            as_read = (
                {key: str(value) for key, value in row.items()}
                if self._table
                else msgspec.json.decode(msgspec.json.encode(row))
            )
            self._back.line = self.losses.written + (2 if self._table else 1)
            back = next(iter(self._format.samples(as_read, self._back)), None)
        except ValueError as error:
            self.losses.note(sample.id, f"row: {error}")
            return None
        except InputError as error:
            self.losses.note(sample.id, f"row: {error.detail}")
            return None
        if not isinstance(back, Sample) or back.response != sample.response:
            self.losses.note(sample.id, "row: the response would come back changed")
            return None
        # Formats that always have a list of spans make this of samples without labels, and of labels that they drop.
        clean, clean_back = (sum(a.spans == () for a in each.annotations) for each in (sample, back))
        if clean_back > clean:
            self.losses.note(sample.id, "row: without spans it would come back as one in which nothing is wrong")
            return None
        there = features(back)
        self.losses.note(sample.id, *(name for name, value in features(sample).items() if there.get(name) != value))
        return row

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
