"""Reading: detects the format of a file or folder, and reads samples and predictions; a bad row never ends the file."""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from msgspec.structs import replace

from veriglot.errors import InputError, UsageError
from veriglot.formats.base import FORMATS, FileReport, Reading, Report, load_format
from veriglot.formats.columns import check_columns, checked
from veriglot.formats.containers import Head, Source, read_container
from veriglot.formats.native import without_null
from veriglot.records import Annotation, Kind, Prediction, Sample, from_mapping
from veriglot.storage.checkpoint import FailedRow, without_side_files
from veriglot.storage.parts import finished_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


__all__ = [
    "SeenIds",
    "columns_from",
    "files_in",
    "guess",
    "read",
    "read_predictions",
    "read_rows",
    "readable_files",
    "say_in_python",
]


_LOG = logging.getLogger(__name__)

# The format of a file, detected from its content, and why.


_ENOUGH = 0.5
_SAVE = "Save the rows as CSV, JSON lines or Parquet"
_NO_ROWS = InputError("it has no rows", "Check that it is the right file.")


class Guess(NamedTuple):
    """The detected format of a file.

    Attributes:
        format: its name.
        why: what in the content it was detected from, for people.
        confidence: 0 to 1.
        container: container of the records.
    """

    format: str
    why: str
    confidence: float = 1.0
    container: str = "jsonl"


def guess(path: str | Path) -> Guess:
    """Detect the format of a file, or of standard input ("-").

    Raises:
        InputError: no format is recognised, or the file is empty or missing.
    """
    return _guess_source(Source(path))


def _head(source: Source) -> Head:
    head = source.look()
    if head.container == "empty":
        raise _NO_ROWS.at(path=source.path)
    return head


def _refuse(source: Source, head: Head) -> NoReturn:
    """Raise the error for a source without a known format."""
    if b"\0" in source.head and source.encoding != "utf-16" and head.container not in {"parquet", "arrow"}:
        raise InputError("this is binary data, not text", f"{_SAVE}.", path=source.path)
    if head.keys >= {"id", "status", "detector"}:
        remedy = "Name the samples that they were made of."
        raise InputError("this holds predictions, not samples", remedy, path=source.path)
    if head.keys:
        source.recode()  # refuses column names that cannot be decoded
        try:
            check_columns(head, {})
        except InputError as error:
            if "\ufffd" in error.detail:
                source.refuse_encoding()
            if source.encoding != "utf-8":
                error.remedy += ". If letters look wrong, save the file as UTF-8."
            raise error.at(path=source.path) from error
    if not head.keys:
        first = next(read_container(head.container, source), None)
        if first is None:
            raise _NO_ROWS.at(path=source.path)
        if isinstance(first, FailedRow):
            raise first.as_error()
    remedy = f"{_SAVE}, or name the format (--format of convert, format= in Python): {', '.join(FORMATS.names())}."
    raise InputError(f"no known format fits: it looks like {head.container}", remedy, path=source.path)


def _guess_source(source: Source) -> Guess:
    head = _head(source)
    best: Guess | None = None
    for name in FORMATS.names():
        format_ = load_format(name)
        if head.container not in format_.containers:
            continue
        sniffed = format_.sniff(head)
        if sniffed is not None and sniffed.confidence >= _ENOUGH and (not best or sniffed.confidence > best.confidence):
            best = Guess(name, sniffed.why, sniffed.confidence, head.container)
    if best is None:
        _refuse(source, head)
    return best


_REJECTED = "rejected.jsonl"  # rejected rows of a data set, beside it or in its folder
_OF_DATASETS = {"dataset_dict.json", "dataset_info.json", "state.json"}  # written by `save_to_disk`


def files_in(folder: Path) -> list[Path]:
    """The files of a folder and its subfolders, sorted by path, without hidden ones and rejected rows."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not path.name.endswith(_REJECTED)
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and not (path.name in _OF_DATASETS and any(path.parent.rglob("*.arrow")))
    )


def readable_files(folder: Path, unread: dict[str, str], named: str | None = None) -> Iterator[tuple[Source, Guess]]:
    """The files of a folder with a known format (or `named`); skipped files are added to `unread` with the reason.

    Files that runs leave beside their output are in neither.
    """
    for file in without_side_files(files_in(folder)):
        owner = next((name for name in FORMATS.names() if load_format(name).reads_beside(file)), None)
        if owner is not None:
            unread[str(file)] = f"it has no samples of its own, and is read with those of the format {owner}"
            continue
        try:
            source = Source(file)
            yield source, _as_named(source, named) if named else _guess_source(source)
        except InputError as error:
            unread[str(file)] = error.detail


def columns_from(pairs: Iterable[str]) -> dict[str, str]:
    """A mapping from sample field to column, from texts such as `response=answer,evidence=contexts`.

    Raises:
        UsageError: a text does not have this form, or names a field twice.
        UnknownNameError: no such field.
    """
    columns: dict[str, str] = {}
    for text in pairs:
        for pair in re.split(r",(?=\s*\w+=)", text):
            part, equals, column = pair.partition("=")
            part = part.strip()
            if not equals or part in columns:
                raise UsageError(
                    f"{pair!r} maps nothing." if not equals else f"{part} is mapped twice.",
                    "Write --map PART=COLUMN,PART=COLUMN, such as response=answer,evidence=contexts.",
                )
            columns[part] = column.strip()
    return checked(columns)


def say_in_python(error: InputError) -> None:
    """Make the remedy say `columns={...}` instead of `--map`."""
    pairs = r"--map (?:'([^']*)'|(\w+=(?:[^\s,.;)]|[,.](?=\S))*))"
    error.remedy = re.sub(pairs, lambda match: f"columns={columns_from([match[1] or match[2]])}", error.remedy)


class SeenIds:
    """A set of ids with 24 to 48 bytes each, whatever their length: a hash table with open addressing.

    While it grows, the old table also exists: 72 bytes. A `set` of the hashes takes 66 to 144.
    """

    def __init__(self) -> None:
        self._count, self._table = 0, bytearray(_ID_BYTES << 10)

    def is_new(self, id_: str) -> bool:
        """Add an id; whether it is new."""
        key = hashlib.blake2b(id_.encode("utf-8", "surrogatepass"), digest_size=_ID_BYTES).digest()
        slot = self._slot(key)
        if self._table[slot : slot + _ID_BYTES] == key:
            return False
        self._table[slot : slot + _ID_BYTES] = key
        self._count += 1
        if self._count * _ID_BYTES * 3 > len(self._table) * 2:
            before, self._table = self._table, bytearray(2 * len(self._table))
            for start in range(0, len(before), _ID_BYTES):
                if (moved := before[start : start + _ID_BYTES]) != _NO_ID:
                    slot = self._slot(moved)
                    self._table[slot : slot + _ID_BYTES] = moved
        return True

    def _slot(self, key: bytes | bytearray) -> int:
        """The index of a hash in the table, or the free one for it."""
        size = len(self._table)
        slot = int.from_bytes(key[:8], "little") * _ID_BYTES % size
        while self._table[slot : slot + _ID_BYTES] not in (key, _NO_ID):
            slot = (slot + _ID_BYTES) % size
        return slot


_ID_BYTES = 16  # of a hash
_NO_ID = bytes(_ID_BYTES)


def read(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  the word that users type
    strict: bool = False,
    report: Report | None = None,
    language: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> Iterator[Sample]:
    """Samples of a file, a folder, or standard input ("-"), streamed in order.

    Args:
        path: a file, a folder (all its files with a known format, sorted by name), or "-".
        format: the format's name; detected from the content if None.
        strict: refuse content that would need a repair.
        report: gets counts of repairs, file by file.
        language: BCP 47 tag of samples whose rows have none; it takes precedence over one in the file's name. Without
            either the language stays None; it is never assumed.
        columns: mapping from sample field to column, such as `{"response": "answer"}`; see `columns.read_row`.

    Raises:
        InputError: the first unreadable row, with path, line and field. `read_rows` goes on instead.
        UnknownNameError: no such format.
    """
    try:
        for row in read_rows(path, format=format, strict=strict, report=report, language=language, columns=columns):
            if isinstance(row, FailedRow):
                raise row.as_error()
            yield row
    except InputError as error:
        say_in_python(error)
        raise


def read_rows(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    strict: bool = False,
    report: Report | None = None,
    language: str | None = None,
    seen: SeenIds | None = None,
    columns: Mapping[str, str] | None = None,
    labelled: bool = False,
) -> Iterator[Sample | FailedRow]:
    """Like `read`, but an unreadable row becomes a `FailedRow` and reading goes on.

    Args:
        path: as for `read`, like the next arguments.
        format: its format.
        strict: refuse repairs.
        report: gets counts.
        language: BCP 47 tag of samples that have none.
        seen: ids that may not occur again, for several inputs of one output; ids of this path are added. Ids within one
            path must be unique in any case.
        columns: as for `read`.
        labelled: refuse labels with unknown meaning; otherwise they stay in `meta`, which is logged.

    Raises:
        InputError: the path does not exist, or no format is detected.
        UnknownNameError: no such format.
    """
    report, seen = report or Report(), seen or SeenIds()
    columns = checked(columns or {})
    if columns and format not in {None, "columns"}:
        raise UsageError(f"The format {format!r} has columns of its own.", "Leave out either columns or format.")
    for source, guessed in _sources(path, "columns" if columns else format, report):
        file_report = report.files.setdefault(source.path, FileReport(source.path, guessed.format, guessed.why))
        reading = Reading(
            source, file_report, strict=strict, language=language, columns=columns, labelled=labelled,
            named=format is not None, container=guessed.container,
        )  # fmt: skip
        format_ = load_format(guessed.format)
        if guessed.format == "columns":
            if guessed.container in {"csv", "tsv"}:
                source.recode()
            if (head := source.look()).keys:
                try:
                    check_columns(head, columns)
                except InputError as error:
                    raise error.at(path=source.path) from error
        records = read_container("text" if format_.takes_lines else guessed.container, source)
        for row in _with_shared(format_.rows(records, reading), reading):
            if isinstance(row, Sample) and not seen.is_new(row.id):
                row = _renamed(row, reading, seen)
            if isinstance(row, FailedRow):
                file_report.bad += 1
            else:
                file_report.samples += 1
            yield row
        if not file_report.samples + file_report.bad:
            if source.file is None or str(path) == source.path:
                raise _NO_ROWS.at(path=source.path)
            file_report.bad += 1
            yield FailedRow.of(_NO_ROWS.at(path=source.path))


def _with_shared(rows: Iterable[Sample | FailedRow], reading: Reading) -> Iterator[Sample | FailedRow]:
    """The rows; a response that several rows label (one per person or per span) becomes one sample, at the end.

    Further spans of a person are added; a repeated row with the same labels is refused.

    Raises:
        InputError: every row has its own id, but responses recur: each row would count as one.
    """
    shared: list[tuple[int, Sample]] = []
    by_id = False
    for row in rows:
        if reading.shared and isinstance(row, Sample):
            shared.append((reading.line, row))
            by_id |= row.id != reading.row_name
        else:
            yield row
    _label_empty_cells(shared, reading)
    texts = _by_text(shared, by_id, reading)
    columns = reading.labelled and reading.report.format == "columns"
    if columns and len(texts) == len(shared) > len(_by_text(shared, False, reading)):
        raise InputError(
            "several rows label the same response, but each of them has an id of its own",
            "Join them with --map id=, or add --map annotator= if each row is a response.",
            path=reading.source.path,
        )
    for reading.line, sample in texts.values():
        yield sample


def _label_empty_cells(rows: list[tuple[int, Sample]], reading: Reading) -> None:
    """In a table, an empty cell of an annotator of other rows means 'nothing wrong', unless a row has `[]` for it."""
    layers = [layer for _, row in rows for layer in row.annotations if not layer.ratings]
    marking = {layer.annotator for layer in layers} if all(layer.spans for layer in layers) else ()
    empty = Counter[str]()
    for index, (line, row) in enumerate(rows):
        if reading.container in {"csv", "tsv"} and not row.annotations and (name := row.meta.get("annotator")):
            empty[_EMPTY_COUNTS if name in marking else _EMPTY_DOES_NOT_COUNT] += 1
            if name in marking:
                rows[index] = line, replace(row, annotations=(Annotation(name, Kind.HUMAN, "hat", spans=()),))
    for message, number in empty.items():
        _LOG.warning("%s: %s; such rows: %d", reading.source.path, message, number)


_EMPTY_COUNTS = "an empty cell of who marks other rows counts as 'nothing wrong'; delete rows that nobody looked at"
_EMPTY_DOES_NOT_COUNT = "a row with an annotator but no label does not count; write [] as its spans if nothing is wrong"


def _by_text(
    rows: Iterable[tuple[int, Sample]], by_id: bool, reading: Reading
) -> dict[Any, tuple[int, Sample | FailedRow]]:
    """The merged samples, each with the line of its first row, by text, and by id if `by_id`."""
    texts: dict[Any, tuple[int, Any]] = {}
    for line, row in rows:
        key: Any = (by_id and row.id, row.response, row.question, row.evidence_text, str(row.generator))
        if key in texts:
            first, before = texts[key]
            layers = {layer.annotator: layer for layer in before.annotations}
            for layer in row.annotations:
                layers[layer.annotator] = _with_spans(layers.get(layer.annotator, layer), layer)
            if row.annotations == () or tuple(layers.values()) != before.annotations:
                line, row = first, replace(before, annotations=tuple(layers.values()))
            else:
                refused = by_id or reading.labelled or row.annotations[0] not in before.annotations
                # Otherwise it is another response, if labels do not matter.
                texts[line] = line, _labelled_before(row, first, line, reading) if refused else row
                continue
        texts[key] = line, row
    return texts


def _with_spans(before: Annotation, row: Annotation) -> Annotation:
    """The labels of an annotator, with the spans of one more row; without types of another taxonomy."""
    if not (before.spans and row.spans):
        return before
    alike = before.taxonomy == row.taxonomy
    further = (replace(span, type=span.type if alike else None) for span in row.spans)
    spans = sorted(dict.fromkeys((*before.spans, *further)), key=lambda span: (span.start, span.end))
    return replace(before, spans=tuple(spans))


def _labelled_before(row: Sample, first: int, line: int, reading: Reading) -> FailedRow:
    """The error for a second row with an annotator's labels of a response: it is unclear which labels are valid."""
    return FailedRow.of(
        InputError(
            f"{row.annotations[0].annotator!r} labels the response of line {first} again",
            "Delete the row that does not hold. If the name is that of several people, give each a name; if these are"
            " two responses, give each an id.",
            path=reading.source.path,
            line=line or None,
            field="annotator",
        )
    )


def _renamed(row: Sample, reading: Reading, seen: SeenIds) -> Sample | FailedRow:
    """A row with a repeated id; if the id is from file name and line, the folder is added before it."""
    file = reading.source.file
    if file is not None and row.id == reading.row_name:
        renamed = replace(row, id=f"{file.resolve().parent.name}/{row.id}")
        if seen.is_new(renamed.id):
            return renamed
    return FailedRow.of(
        InputError(
            f"the id {row.id!r} occurred before",
            "Labels of several people need a column of their names, --map annotator=COLUMN; else give every"
            " sample an id of its own, or number the rows: --map id="
            if reading.report.format == "columns" and not reading.shared
            else "Give every sample an id of its own.",
            path=reading.source.path,
            line=reading.line or None,
            field="id",
        )
    )


def _sources(path: str | Path, name: str | None, report: Report) -> Iterator[tuple[Source, Guess]]:
    if str(path) == "-" or not Path(path).is_dir():
        source = Source(path)
        yield source, _as_named(source, name) if name else _guess_source(source)
        return
    any_read = False
    for source, guessed in readable_files(Path(path), report.unread, name if name == "columns" else None):
        if name and guessed.format != name:
            report.unread[source.path] = f"it is in the format {guessed.format}"
        else:
            any_read = True
            yield source, guessed
    for file, why in report.unread.items():
        _LOG.info("%s is skipped: %s", file, why)
    if not any_read:
        wanted = f"in the format {name!r}" if name else "in a known format"
        raise InputError(f"no file of this folder is {wanted}", "Name a file, or a format.", path=str(path))


def _as_named(source: Source, name: str) -> Guess:
    container, containers = _head(source).container, load_format(name).containers
    if container not in containers:
        if container != "text" or containers[0] not in {"jsonl", "csv", "tsv"}:
            detail = f"the format {name!r} lies in {' or '.join(containers)}, but this looks like {container}"
            raise InputError(detail, "Check the format.", path=source.path)
        container = containers[0]  # too damaged to detect; each line has its error
    return Guess(name, "named by the caller", 1.0, container)


def read_predictions(path: str | Path) -> Iterator[Prediction]:
    """Predictions of a file, of a folder of parts, or of standard input ("-"), streamed in order.

    Raises:
        UsageError: it is a folder without predictions, or with incomplete ones.
        InputError: the file does not exist; or the first row that is not a prediction, with path, line and field.
    """
    if Path(path).is_dir():
        for part in finished_parts(Path(path)):
            yield from read_predictions(Path(path) / part.id)
        return
    source = Source(path)
    container = source.look().container
    if container == "empty":
        return
    if container == "text":
        container = "jsonl"  # each line will have its error
    remedy = "Predictions are what `veriglot detect` writes with -o FILE.jsonl or -o FILE.parquet."
    if container not in {"jsonl", "json", "parquet"}:
        raise InputError(f"this holds no predictions: it is {container}", remedy, path=source.path)
    for record in read_container(container, source):
        if isinstance(record, FailedRow):
            raise record.as_error()
        try:
            if not isinstance(record.data, dict):
                raise InputError("a prediction is a JSON object")
            if "response" in record.data and "status" not in record.data:
                raise InputError("this is a sample, not a prediction", remedy)
            yield from_mapping(without_null(record.data) if container == "parquet" else record.data, Prediction)
        except InputError as error:
            raise error.at(path=source.path, line=record.line) from error
