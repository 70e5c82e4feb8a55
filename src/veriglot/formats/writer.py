"""Writing: one sink per container, the losses of a format, and samples and predictions one at a time."""

from __future__ import annotations

import csv
import io
import sys
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import msgspec
from msgspec import inspect

from veriglot.errors import InputError, InputTypeError, UsageError
from veriglot.formats.base import FORMATS, FileReport, Reading, load_format
from veriglot.formats.containers import Source, parquet_module
from veriglot.records import Annotation, Prediction, Sample, Task
from veriglot.storage.files import partial_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


__all__ = ["Losses", "Writer", "predictions_as_parquet", "write"]

_ROW_GROUP = 1024


@dataclass
class _Loss:
    """Something that a format cannot represent: how often, and the id of one such sample."""

    count: int
    example: str


@dataclass
class Losses:
    """What was lost in writing, by name. Empty if the file has everything.

    Attributes:
        format: the format written.
        written: rows in the file.
        lost: name to number of losses (`count`) and id of one such sample (`example`); the name for a sample that was
            left out completely starts with `row:`.
    """

    format: str = ""
    written: int = 0
    lost: dict[str, _Loss] = field(default_factory=dict)

    def note(self, sample_id: str, *names: str) -> None:
        """Record the losses of one sample."""
        for name in names:
            self.lost.setdefault(name, _Loss(0, sample_id)).count += 1

    def __bool__(self) -> bool:
        return bool(self.lost)

    @property
    def rows_left_out(self) -> int:
        """Number of samples that are not in the file."""
        return sum(loss.count for name, loss in self.lost.items() if name.startswith("row: "))


class _Sink:
    """Writes encoded records to a file, or (None) to standard output, which stays open."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        try:
            self._stream = cast("BinaryIO", path.open("wb")) if path is not None else sys.stdout.buffer
        except OSError as error:
            raise InputError(f"it cannot be written: {error.strerror}", path=str(path)) from error

    def write(self, record: Any) -> None:
        """Write one record, by default as a line of JSON."""
        self._stream.write(msgspec.json.encode(record) + b"\n")

    def close(self) -> None:
        """Finish the file."""
        self._stream.flush()
        if self._path is not None:
            self._stream.close()

    def abandon(self) -> None:
        """Close without finishing what would otherwise pass for whole."""
        self.close()


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

    def __init__(self, path: Path | None, columns: Sequence[str], delimiter: str, encoding: str) -> None:
        super().__init__(path)
        self._text = io.TextIOWrapper(self._stream, encoding, newline="", write_through=True)
        self._rows = csv.DictWriter(self._text, columns, delimiter=delimiter)
        self._rows.writeheader()

    def write(self, record: Any) -> None:
        self._rows.writerow(record)

    def close(self) -> None:
        self._text.detach()
        super().close()


class _ParquetSink(_Sink):
    """Parquet in row groups of 1,024, through a temporary file that replaces the target when it is closed."""

    def __init__(self, path: Path | None, kind: type[msgspec.Struct]) -> None:
        if path is None:
            raise UsageError("Parquet cannot be written to standard output.", "Name a file with -o.")
        parquet = parquet_module()
        self._target = path
        self._partial = partial_path(path)
        self._schema = _arrow_schema(kind)
        self._rows: list[Any] = []
        try:
            self._writer = parquet.ParquetWriter(self._partial, self._schema, compression="zstd")
        except OSError as error:
            raise InputError(f"it cannot be written: {error.strerror or error}", path=str(path)) from error

    def write(self, record: Any) -> None:
        self._rows.append(record)
        if len(self._rows) >= _ROW_GROUP:
            self._write_rows()

    def _write_rows(self) -> None:
        rows, self._rows = self._rows, []
        try:
            if rows:
                self._writer.write_table(_arrow_table(rows, self._schema))
        except InputError as error:
            self.abandon()
            raise error.at(path=str(self._target)) from error

    def close(self) -> None:
        self._write_rows()
        self._writer.close()
        self._partial.replace(self._target)

    def abandon(self) -> None:
        self._rows = []
        self._writer.close()
        self._partial.unlink(missing_ok=True)


def predictions_as_parquet(predictions: Sequence[Prediction]) -> bytes:
    """The content of a Parquet file of predictions.

    Raises:
        MissingExtraError: pyarrow is not installed.
        InputError: Parquet cannot represent a value, such as a number beyond 64 bits.
    """
    parquet, buffer = parquet_module(), io.BytesIO()
    table = _arrow_table(msgspec.to_builtins(predictions), _arrow_schema(Prediction))
    parquet.write_table(table, buffer, compression="zstd", row_group_size=_ROW_GROUP)
    return buffer.getvalue()


def _arrow_table(rows: list[Any], schema: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.Table.from_pylist(rows, schema=schema)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        raise InputError(f"Parquet cannot hold a value: {error}") from error


def _arrow_schema(kind: type[msgspec.Struct]) -> Any:
    import pyarrow as pa

    return pa.schema(list(_arrow_type(inspect.type_info(kind))))


def _arrow_type(info: inspect.Type) -> Any:
    """The Arrow type of a field; enumerations are text, and so are objects with arbitrary keys, as JSON."""
    import pyarrow as pa

    match info:
        case inspect.UnionType(types=types):
            return _arrow_type(next(each for each in types if not isinstance(each, inspect.NoneType)))
        case inspect.StructType(fields=fields):
            return pa.struct([(field.name, _arrow_type(field.type)) for field in fields])
        case inspect.VarTupleType(item_type=item):
            return pa.list_(_arrow_type(item))
        case inspect.TupleType(item_types=items):
            return pa.list_(_arrow_type(items[0]))
        case inspect.IntType():
            return pa.int64()
        case inspect.FloatType():
            return pa.float64()
        case _:
            return pa.string()


# The content of a sample by parts, to find out what a format loses.


def features(sample: Sample) -> dict[str, Any]:
    """The parts of a sample by name, without missing ones.

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
    yield "titles of passages", _given(p.title for p in passages)
    yield "addresses of passages", _given(p.url for p in passages)
    yield "languages of passages", _given(p.language for p in passages)
    yield "generator", generator and generator.name
    settings = msgspec.to_builtins(generator) if generator else {}
    yield "settings of the generator", {key: value for key, value in settings.items() if key != "name"}
    yield "meta", sample.meta
    if not annotations:
        return
    yield "annotators", tuple(a.annotator for a in annotations)
    yield "kinds of annotators", tuple(a.kind for a in annotations)
    yield "number of annotations", len(annotations) if len(annotations) > 1 else None
    yield "taxonomies", tuple(a.taxonomy for a in annotations)
    yield from _marks(annotations, sample.response)


def _given(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(value for value in values if value not in (None, ()))


def _marks(annotations: tuple[Annotation, ...], response: str) -> Iterator[tuple[str, Any]]:
    spans = [span for a in annotations for span in a.spans or ()]
    units = [unit for a in annotations for unit in a.units or ()]
    yield "spans", tuple(tuple(sorted({(s.start, s.end) for s in a.spans})) for a in annotations if a.spans)
    yield "order and repeats of spans", _order(annotations)
    yield "types of spans", tuple((s.start, s.end, s.type) for s in spans if s.type is not None)
    yield "spans without a type", tuple((s.start, s.end) for s in spans if s.type is None)
    yield "annotations without spans", tuple(i for i, a in enumerate(annotations) if a.spans is None)
    yield "annotations with no span", tuple(i for i, a in enumerate(annotations) if a.spans == ())
    yield "confidences of spans", _given(s.confidence for s in spans)
    yield (
        "texts of spans",
        _given(s.text for s in spans if s.text != response[s.start : s.end]),
    )  # others say nothing new
    yield "pointers of spans", _given(s.evidence for s in spans)
    yield "units", tuple((u.start, u.end, u.label) for u in units)
    yield "probabilities of units", _given(u.probability for u in units)
    yield "annotations with no unit", tuple(i for i, a in enumerate(annotations) if a.units == ())
    yield "ratings", tuple(sorted(((k, v) for a in annotations for k, v in a.ratings.items()), key=str))
    yield "flags", tuple(flag for a in annotations for flag in a.flags)


def _order(annotations: tuple[Annotation, ...]) -> tuple[Any, ...] | None:
    """The spans in their order, if they are not sorted, or if one occurs twice."""
    orders = []
    for annotation in annotations:
        spans = [(s.start, s.end, s.type) for s in annotation.spans or ()]
        if spans != sorted({(s[0], s[1]): s for s in spans}.values(), key=lambda s: s[:2]):
            orders.append(tuple(spans))
    return tuple(orders) or None


# Writing: samples in any writable format, predictions in the native ones, and a report of losses.


_BY_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet", ".csv": "columns"}
_NATIVE = ("jsonl", "parquet")


def write(
    samples: Iterable[Sample | Prediction],
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  the word that users type
) -> Losses:
    """Write samples or predictions to a file ("-": standard output).

    Args:
        samples: samples; or predictions, such as those of `veriglot.detect_many`. Consumed one at a time.
        path: the file.
        format: its format; if None, by the file's suffix. Predictions are `jsonl` or `parquet`.

    Returns:
        What the format lost, by kind, with counts: each written sample is read back and compared.

    Raises:
        UsageError: no format is given or derived, or it is not writable.
        InputError: the file cannot be written.
    """
    rows = iter(samples)
    first = list(islice(rows, 1))
    kind = "predictions" if first and not isinstance(first[0], Sample) else "samples"
    with Writer(path, format=format, kind=kind) as writer:
        for row in chain(first, rows):
            writer.write(row)
    return writer.losses


class Writer:
    """Writes samples or predictions one at a time; use it with `with`. Arguments and errors as for `write`.

    Attributes:
        losses: number of written rows, and what the format lost.
    """

    def __init__(self, path: str | Path, *, format: str | None = None, kind: str = "samples") -> None:  # noqa: A002
        target = None if str(path) == "-" else Path(path)
        name = format or (_BY_SUFFIX.get(target.suffix.lower()) if target else "jsonl")
        if name is None:
            raise UsageError(
                f"The name {str(path)!r} does not say which format to write.",
                "Name it (format=, --to), or end the name in .jsonl, .parquet or .csv.",
            )
        if name not in FORMATS or not load_format(name).writable:
            writable = ", ".join(each for each in FORMATS.names() if load_format(each).writable)
            raise UsageError(f"The format {name!r} cannot be written.", f"Choose one of {writable}.")
        self._name, self._format = name, load_format(name)
        if kind == "predictions" and name not in _NATIVE:
            raise UsageError(f"Predictions are written as {' or '.join(_NATIVE)}, not {name}.")
        container, columns = self._format.containers[0], self._format.columns
        self._sink: _Sink
        if columns:
            encoding = "utf-8-sig" if name == "columns" else "utf-8"  # Excel needs the byte order mark
            self._sink = _CsvSink(target, columns, "\t" if container == "tsv" else ",", encoding)
        elif container == "parquet":
            self._sink = _ParquetSink(target, Prediction if kind == "predictions" else Sample)
        else:
            self._sink = (_JsonSink if container == "json" else _Sink)(target)
        self.losses = Losses(name)
        self._back = Reading(Source(path), FileReport(str(path), name))

    def write(self, record: Sample | Prediction) -> None:
        """Write one record.

        A sample is left out if the format cannot represent it at all, if its response would change, or if it would
        become free of errors without such a label; it is recorded under a name that starts with `row:`.

        Raises:
            InputError: Parquet cannot represent a value, such as a number beyond 64 bits.
            InputTypeError: it is neither a sample nor a prediction.
        """
        record = getattr(record, "record", record)  # of a prediction from `veriglot.detect`
        if not isinstance(record, Sample | Prediction):
            raise InputTypeError(
                f"a Sample or a Prediction is expected, and this is a {type(record).__name__}",
                "Write what veriglot.read or veriglot.detect_many gives.",
            )
        if isinstance(record, Prediction):
            self._sink.write(msgspec.to_builtins(record))
        elif self._name in _NATIVE:
            self._sink.write(self._format.record(record))
        elif (row := self._checked(record)) is not None:
            self._sink.write(row)
        else:
            return
        self.losses.written += 1

    def _checked(self, sample: Sample) -> Any:
        """The sample as a record, after reading it back; None if it must be left out."""
        try:
            row = self._format.record(sample)
            as_read = (
                {key: str(value) for key, value in row.items()}
                if self._format.columns
                else msgspec.json.decode(msgspec.json.encode(row))
            )
            self._back.line = self.losses.written + (2 if self._format.columns else 1)
            back = next(iter(self._format.samples(as_read, self._back)), None)
        except (ValueError, InputError) as error:
            self.losses.note(sample.id, f"row: {error.detail if isinstance(error, InputError) else error}")
            return None
        if not isinstance(back, Sample) or back.response != sample.response:
            self.losses.note(sample.id, "row: the response would come back changed")
            return None
        # Formats that require a list of spans add one to samples without labels, and for labels that they drop.
        clean, clean_back = (sum(a.spans == () for a in each.annotations) for each in (sample, back))
        if clean_back > clean:
            self.losses.note(sample.id, "row: without spans it would come back as one in which nothing is wrong")
            return None
        there = features(back)
        self.losses.note(sample.id, *(name for name, value in features(sample).items() if there.get(name) != value))
        return row

    def close(self) -> None:
        """Finish the file."""
        self._sink.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Finish the file. After an error the records so far are kept if possible (JSON lines, CSV, JSON)."""
        if kind is None or issubclass(kind, KeyboardInterrupt):
            self._sink.close()
        else:
            self._sink.abandon()
