"""What a format is: how it is recognised, how a record becomes samples, how a sample becomes a record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from veriglot.errors import InputError, UsageError
from veriglot.formats.rows import BadRow, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from veriglot.formats.containers import Records
    from veriglot.formats.head import Head
    from veriglot.formats.report import FileReport
    from veriglot.formats.source import Source
    from veriglot.records import Sample

__all__ = ["Format", "Reading", "Sniff", "need", "optional"]

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

    def bad(self, record: Record, error: InputError) -> BadRow:
        """The record as a row that could not be read."""
        path = self.source.path
        raw = record.raw.decode("utf-8", "replace") if record.raw is not None else ""
        return BadRow(path, record.line, error.at(path=path, line=record.line), raw)


class Format(ABC):
    """A format: one way in which people keep labelled responses in files.

    Attributes:
        name: its name on the command line.
        summary: one line on what it is.
        containers: what its records lie in; the first is what writing produces.
        companions: names of files that lie beside its own and are read with them.
        takes_lines: whether its records are lines of text that the format takes apart itself, as tables are that have
            no header or no quotes; whatever the container looks like, `samples` is given the line.
        writable: whether it can be written.
        columns: header, for those written as CSV.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    containers: ClassVar[tuple[str, ...]] = ("jsonl", "json", "parquet")
    companions: ClassVar[tuple[str, ...]] = ()
    takes_lines: ClassVar[bool] = False
    writable: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def sniff(self, head: Head) -> Sniff | None:
        """Whether a file with this beginning is of this format; None if it certainly is not."""

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
    place = f"{within}.{key}" if within else key
    if not isinstance(data, dict):
        raise InputError(f"an object is expected here, but this is {_kind_of(data)}", field=within or None)
    value: Any = data.get(key)
    if value is None:
        raise InputError("the field is missing", field=place, remedy="Is the file in another format? Name it.")
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InputError(f"{_KINDS.get(kind, kind.__name__)} is expected, but this is {_kind_of(value)}", field=place)
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
