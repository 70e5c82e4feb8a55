"""What a format is: recognition, records to samples and back, and reports of repairs and losses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from veriglot.errors import InputError, UsageError
from veriglot.formats.containers import BadRow, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from veriglot.formats.containers import Head, Records, Source
    from veriglot.records import Annotation, Sample

__all__ = [
    "FileReport",
    "Format",
    "Loss",
    "Losses",
    "Reading",
    "Report",
    "Sniff",
    "TagReport",
    "evidence_text",
    "need",
    "optional",
    "present",
    "spanned_annotation",
]


T = TypeVar("T")


class Sniff(NamedTuple):
    """How sure a format is that a file is its own (0 to 1), and from what it knows."""

    confidence: float
    why: str


@dataclass
class Reading:
    """One file being read.

    Attributes:
        source: the file.
        report: where repairs and observations are counted.
        strict: whether anything that needs a repair is an error.
        language: BCP 47 tag to use where neither the file nor its name says one; None leaves it unset.
        line: the line of the record that is being read.
        state: what a format keeps while it reads one file.
    """

    source: Source
    report: FileReport
    strict: bool = False
    language: str | None = None
    line: int = 0
    state: dict[str, Any] = field(default_factory=dict)

    def repaired(self, kind: str, message: str, *, where: str | None = None, count: int = 1) -> None:
        """Count a repair.

        Raises:
            InputError: repairs are refused (`strict`).
        """
        if self.strict:
            raise InputError(message, field=where, remedy="Without strict this is repaired and counted.")
        self.report.notes[kind] += count

    def row_id(self, data: Any, line: int) -> str:
        """The id of a row: its own `id`, or the name of the file and the line."""
        return optional(data, "id", str) or f"{self.source.stem}-{line}"

    def bad(self, record: Record, error: InputError) -> BadRow:
        """The record as a row that could not be read."""
        path = self.source.path
        raw = record.raw.decode("utf-8", "replace") if record.raw is not None else ""
        return BadRow(path, record.line, error.at(path=path, line=record.line), raw)


_TABLES = frozenset({"csv", "tsv"})


class Format(ABC):
    """A format: one way in which people keep labelled responses in files.

    Attributes:
        name: its name on the command line.
        summary: one line on what it is.
        containers: what its records lie in; the first is what writing produces.
        companions: names of files that lie beside its own and are read with them.
        keys: the keys (columns of a table) by which `sniff` knows its files; a format that sets none has a `sniff` of
            its own.
        confidence: how sure these keys are, 0 to 1.
        takes_lines: whether its records are lines of text that the format takes apart itself, as tables are that have
            no header or no quotes; whatever the container looks like, `samples` is given the line.
        writable: whether it can be written.
        columns: header, for those written as CSV.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    containers: ClassVar[tuple[str, ...]] = ("jsonl", "json", "parquet")
    companions: ClassVar[tuple[str, ...]] = ()
    keys: ClassVar[tuple[str, ...]] = ()
    confidence: ClassVar[float] = 0.95
    takes_lines: ClassVar[bool] = False
    writable: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ()

    def sniff(self, head: Head) -> Sniff | None:
        """Whether a file with this beginning is of this format, here by `keys`; None if it certainly is not."""
        if not self.keys or not head.has(*self.keys):
            return None
        *others, last = (f"`{key}`" for key in self.keys)
        named = f"{', '.join(others)} and {last}" if others else last
        return Sniff(self.confidence, f"the {'columns' if self.containers[0] in _TABLES else 'keys'} {named}")

    def reads_beside(self, file: Path) -> bool:
        """Whether a file is read with the format's own files, without being of the format itself."""
        return any(file.match(pattern) for pattern in self.companions)

    @abstractmethod
    def samples(self, data: Any, line: int, reading: Reading) -> Iterable[Sample]:
        """The samples of one record.

        Raises:
            InputError: the record is not what the format says; `field` names the place.
        """

    def rows(self, records: Records, reading: Reading) -> Iterator[Sample | BadRow]:
        """Samples and bad rows of a file, in order."""
        for record in records:
            if isinstance(record, BadRow):
                yield record
                continue
            reading.line = record.line
            try:
                yield from self.samples(record.data, record.line, reading)
            except InputError as error:
                yield reading.bad(record, error)
            except ValueError as error:  # what a record refuses, such as two passages of one id
                yield reading.bad(record, InputError(str(error)))

    def record(self, sample: Sample) -> Any:  # noqa: ARG002
        """The sample as a record of the container. What does not come back when it is read is noted by the writer.

        Raises:
            UsageError: the format can only be read.
            InputError: the format cannot hold this sample at all.
        """
        raise UsageError(
            f"The format {self.name!r} can be read but not written.", remedy="Choose another with --to, such as jsonl."
        )


_KINDS: dict[type, str] = {str: "text", int: "a whole number", float: "a number", list: "a list", dict: "an object"}


def need(data: Any, key: str, kind: type[T], *, within: str = "") -> T:
    """`data[key]`, checked to be of `kind`.

    Raises:
        InputError: `data` is no object, or the key is missing or of another type.
    """
    path = f"{within}.{key}" if within else key
    if not isinstance(data, dict):
        raise InputError(f"an object is expected here, but this is {_kind_of(data)}", field=within or None)
    value: Any = data.get(key)
    if value is None:
        raise InputError("the field is missing", field=path, remedy="Is the file in another format? Name it.")
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InputError(f"{_KINDS.get(kind, kind.__name__)} is expected, but this is {_kind_of(value)}", field=path)
    return value


def _kind_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    return _KINDS.get(type(value), type(value).__name__)


def optional(data: Any, key: str, kind: type[T]) -> T | None:
    """`data[key]` checked to be of `kind`, or None where it is absent, null, or empty text.

    Raises:
        InputError: it is of another type, or `data` is no object.
    """
    if isinstance(data, dict) and data.get(key) in (None, ""):
        return None
    return need(data, key, kind)


def present(data: Mapping[str, Any], keys: Iterable[str] | None = None) -> dict[str, Any]:
    """The members of `data` that are not null: those of `keys`, in their order, or all."""
    return {key: data[key] for key in (data if keys is None else keys) if data.get(key) is not None}


def evidence_text(sample: Sample) -> str:
    """The passages of a sample as one text, an empty line between them."""
    return "\n\n".join(passage.text for passage in sample.evidence)


def spanned_annotation(sample: Sample, annotator: str | None = None) -> Annotation | None:
    """The annotation of `annotator`, or else the first, that has spans; None where none has."""
    spanned = [annotation for annotation in sample.annotations if annotation.spans is not None]
    return next((annotation for annotation in spanned if annotation.annotator == annotator), next(iter(spanned), None))


@dataclass
class TagReport:
    """Every tag in exactly one place: `seen == parsed + repaired.total() + reported.total()`.

    Attributes:
        seen: tags and pieces of tags met; an opener and its closer are two.
        parsed: those that were right as they stood.
        repaired: kind of repair to count; the tag's span was kept.
        reported: kind of fault to count; the tag gave no span.
        spans: span type to count of the spans that came out.
    """

    seen: int = 0
    parsed: int = 0
    repaired: Counter[str] = field(default_factory=Counter)
    reported: Counter[str] = field(default_factory=Counter)
    spans: Counter[str] = field(default_factory=Counter)

    def add(self, other: TagReport) -> None:
        """Add another account to this one."""
        self.seen += other.seen
        self.parsed += other.parsed
        self.repaired.update(other.repaired)
        self.reported.update(other.reported)
        self.spans.update(other.spans)

    def balanced(self) -> bool:
        """Whether every tag is accounted for."""
        return self.seen == self.parsed + self.repaired.total() + self.reported.total()


@dataclass
class FileReport:
    """What reading one file gave.

    Attributes:
        path: the file.
        format: the format it was read as.
        why: what the format was known from.
        samples: samples that came out.
        bad: rows that did not become a sample.
        tags: tags by layer ("gold", "silver", "response" where the fault is in the response itself).
        notes: other repairs and observations, by kind, with counts of places (not rows).
    """

    path: str
    format: str
    why: str = ""
    samples: int = 0
    bad: int = 0
    tags: dict[str, TagReport] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)

    def layer(self, name: str) -> TagReport:
        """The account of the tags of one layer."""
        return self.tags.setdefault(name, TagReport())

    def all_tags(self) -> TagReport:
        """The tags of all layers together."""
        total = TagReport()
        for report in self.tags.values():
            total.add(report)
        return total


@dataclass
class Report:
    """What reading gave, file by file, in the order read."""

    files: dict[str, FileReport] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)

    def file(self, path: str, format_name: str, why: str = "") -> FileReport:
        """The account of one file."""
        return self.files.setdefault(path, FileReport(path, format_name, why))

    def as_rows(self) -> list[dict[str, Any]]:
        """The report as plain data, a dictionary per file."""
        return [
            {
                "path": f.path,
                "format": f.format,
                "why": f.why,
                "samples": f.samples,
                "bad": f.bad,
                "notes": dict(f.notes),
                "tags": {
                    layer: {
                        "seen": t.seen,
                        "parsed": t.parsed,
                        "repaired": dict(t.repaired),
                        "reported": dict(t.reported),
                        "spans": dict(t.spans),
                    }
                    for layer, t in f.tags.items()
                },
            }
            for f in self.files.values()
        ]


@dataclass
class Loss:
    """Something that a format cannot hold: how often, and the id of one sample where it happened."""

    count: int
    example: str


@dataclass
class Losses:
    """What writing left out, by name of what was lost. Empty when the file holds everything.

    Attributes:
        format: the format written.
        written: rows that the file holds.
        lost: what was lost to how often; the name of a whole sample that was left out starts with `row:`.
    """

    format: str = ""
    written: int = 0
    lost: dict[str, Loss] = field(default_factory=dict)

    def note(self, what: str, sample_id: str, count: int = 1) -> None:
        """Record that `what` of one sample is not in the file."""
        loss = self.lost.get(what)
        if loss is None:
            self.lost[what] = Loss(count, sample_id)
        else:
            loss.count += count

    def note_all(self, what: Iterable[str], sample_id: str) -> None:
        """Record several at once."""
        for each in what:
            self.note(each, sample_id)

    def __bool__(self) -> bool:
        return bool(self.lost)

    @property
    def rows_left_out(self) -> int:
        """How many whole samples are not in the file."""
        return sum(loss.count for what, loss in self.lost.items() if what.startswith("row: "))

    def as_data(self) -> dict[str, Any]:
        """The losses as plain data."""
        lost = {what: {"count": loss.count, "example": loss.example} for what, loss in self.lost.items()}
        return {"format": self.format, "written": self.written, "lost": lost}
