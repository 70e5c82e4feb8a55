"""Rows that came to nothing, kept beside the output so that nothing is dropped in silence."""

from __future__ import annotations

import msgspec

from veriglot.errors import InputError

__all__ = ["FailedRow"]


class FailedRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """One row that could not be read or done: where it stands, what is wrong, what to do, and its raw text.

    Attributes:
        message: what is wrong.
        path: the file, or None where the input had no name.
        line: line (or row) in the file, counted from 1.
        field: the path of the field inside the record.
        remedy: what to do about it.
        raw: the row as it stood, cut where it was too long to keep.
        row: its place among all rows of the run, counted from 0; filled in by the ledger.
        id: id of the row that was read and could not be done; None where it could not be read.
    """

    message: str
    path: str | None = None
    line: int | None = None
    field: str | None = None
    remedy: str = ""
    raw: str | None = None
    row: int | None = None
    id: str | None = None

    @classmethod
    def of(cls, error: InputError, raw: str | None = None) -> FailedRow:
        """The record of an error that a reader met, with the raw row."""
        return cls(error.detail, error.path, error.line, error.field, error.remedy, raw or None)

    def as_error(self) -> InputError:
        """The same as an error, with its place and its remedy."""
        return InputError(self.message, remedy=self.remedy, path=self.path, line=self.line, field=self.field)
