"""The articles of a set on disk, taken one at a time: a set of kang's size holds half a gigabyte of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import msgspec

from veriglot.build.references import Reference

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

__all__ = ["Shelf"]


class Shelf:
    """The references of a file of JSON lines, by id; memory holds where each begins.

    Args:
        path: the file, which must not change meanwhile.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._places: dict[str, int] = {}
        decoder = msgspec.json.Decoder(Reference)
        place = 0
        for line in self._file:
            self._places[decoder.decode(line).id] = place
            place += len(line)

    def get(self, id_: str) -> Reference | None:
        """The reference of an id (`<person>-<language>`), or None."""
        place = self._places.get(id_)
        if place is None:
            return None
        self._file.seek(place)
        return msgspec.json.decode(self._file.readline(), type=Reference)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._places

    def __len__(self) -> int:
        return len(self._places)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
