"""Samples that can be read only once, written down as they pass for an output that shows them later."""

from __future__ import annotations

from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from veriglot.records import Sample, decode_json, encode, sample_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from veriglot.run import FailedRow

__all__ = ["Spool"]


class Spool:
    """A nameless temporary file of samples; it goes when the spool does."""

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115  # open as long as the spool is

    def through(self, rows: Iterable[Sample | FailedRow]) -> Iterator[Sample | FailedRow]:
        """The rows as they come; the samples among them are written down."""
        for row in rows:
            if isinstance(row, Sample):
                self._file.write(encode(row) + b"\n")
            yield row

    def samples(self) -> Iterator[Sample]:
        """The samples that passed, in order; to be asked for once, after the last row."""
        with self._file as file:
            file.seek(0)
            for line in file:
                yield sample_from(decode_json(line))
