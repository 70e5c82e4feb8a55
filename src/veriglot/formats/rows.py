"""What reading yields: samples, and rows that could not become one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from veriglot.errors import InputError

__all__ = ["BadRow", "Record"]


@dataclass(frozen=True)
class BadRow:
    """A row that could not be read. The rest of the file is not touched by it.

    Attributes:
        path: the file.
        line: line (row, for formats without lines) counted from 1, or 0 where the whole file is meant.
        error: what is wrong, with its place and its remedy.
        raw: the row as it stood, undecodable bytes shown as U+FFFD; only its beginning where it was too long.
    """

    path: str
    line: int
    error: InputError
    raw: str = ""


class Record(NamedTuple):
    """One record of a container before a format gives it a meaning.

    Attributes:
        line: line or row, counted from 1.
        data: decoded JSON, or a dictionary of column to value.
        raw: the row as it stood, where the container has such a thing.
    """

    line: int
    data: Any
    raw: bytes | None = None
