"""A file of JSON lines that lies beside the one being read and holds what it refers to, found by key.

Only the place of each line is kept in memory, so that a large neighbour costs little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.lines import TooLongError, iter_lines
from veriglot.records import decode_json

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Neighbour"]


class Neighbour:
    """Records of a neighbouring file by the value of one key.

    Args:
        file: the neighbour, or None where there can be none (standard input).
        key: the member whose value names a record.

    Raises:
        InputError: a line of the neighbour is not JSON, or has no such key.
    """

    def __init__(self, file: Path | None, key: str) -> None:
        self.exists = file is not None and file.is_file()
        self._file = file
        self._places: dict[str, int] = {}
        if file is not None and self.exists:
            self._places = _index(file, key)

    def find(self, value: str) -> Any:
        """The record with that value, or None."""
        place = self._places.get(value)
        if place is None or self._file is None:
            return None
        with self._file.open("rb") as stream:
            stream.seek(place)
            return decode_json(stream.readline())


def _index(file: Path, key: str) -> dict[str, int]:
    places: dict[str, int] = {}
    with file.open("rb") as stream:
        place = 0
        for number, line in iter_lines(stream):
            if isinstance(line, TooLongError):
                raise line.at(path=str(file))
            if line.strip():
                try:
                    record = decode_json(line)
                except InputError as error:
                    raise error.at(path=str(file), line=number) from error
                if not isinstance(record, dict) or key not in record:
                    raise InputError("the field is missing", path=str(file), line=number, field=key)
                places[str(record[key])] = place
            place = stream.tell()
    return places
