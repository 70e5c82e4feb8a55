"""Rows that came to nothing, kept beside the output so that nothing is dropped in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from veriglot.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FailedRow", "Lost", "lost_of"]


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
        calls, tokens_in, tokens_out: what was spent on it before it failed, where models are asked.
    """

    message: str
    path: str | None = None
    line: int | None = None
    field: str | None = None
    remedy: str = ""
    raw: str | None = None
    row: int | None = None
    id: str | None = None
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    @classmethod
    def of(cls, error: InputError, raw: str | None = None) -> FailedRow:
        """The record of an error that a reader met, with the raw row."""
        return cls(error.detail, error.path, error.line, error.field, error.remedy, raw or None)

    def as_error(self) -> InputError:
        """The same as an error, with its place and its remedy."""
        return InputError(self.message, remedy=self.remedy, path=self.path, line=self.line, field=self.field)


class Lost(NamedTuple):
    """The failed rows of an output, and what was spent on them all the same.

    Attributes:
        rows: how many.
        calls, tokens_in, tokens_out: the sums of theirs.
    """

    rows: int = 0
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


def lost_of(output: Path) -> Lost:
    """What the file of failed rows beside an output holds; nothing where there is none."""
    path = output.with_name(output.name + ".failed.jsonl")
    lost = Lost()
    if path.exists():
        decoder = msgspec.json.Decoder(FailedRow)
        with path.open("rb") as lines:
            for row in map(decoder.decode, lines):
                one = (1, row.calls, row.tokens_in, row.tokens_out)
                lost = Lost(*(a + b for a, b in zip(lost, one, strict=True)))
    return lost
