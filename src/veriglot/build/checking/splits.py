"""Which split a sample belongs to: by what it says, by the names of its file and folders, or as the user says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import PurePath

    from veriglot.records import Sample

__all__ = ["SPLITTINGS", "Splits", "Splitting", "split_in_name"]

Splitting = Literal["names", "files", "arguments", "none"]
SPLITTINGS: tuple[Splitting, ...] = ("names", "files", "arguments", "none")

_WORDS = {
    "train": "train", "training": "train",
    "dev": "dev", "val": "dev", "valid": "dev", "validation": "dev", "development": "dev",
    "test": "test", "testing": "test", "eval": "test", "heldout": "test",
}  # fmt: skip
_KEPT_FIRST = {"test": 0, "dev": 1}  # in which split a row stays that stands in several
_PART = re.compile(r"[^a-z]+")
_META = ("split", "partition")


def split_in_name(path: PurePath) -> str | None:
    """`train`, `dev` or `test` as a word in the name of a file, or in that of the nearest folder; None for no word."""
    for part in (path.stem, *(folder.name for folder in path.parents)):
        found = {_WORDS[word] for word in _PART.split(part.lower()) if word in _WORDS}
        if len(found) == 1:
            return found.pop()
    return None


class Splits:
    """Numbers splits as they appear; 0 is no split.

    Args:
        how: `names`: what a sample says in `meta.split`, else a word in its file's name or folders below the argument;
            `files`: each file is a split; `arguments`: each argument of the command is one; `none`.
    """

    def __init__(self, how: Splitting) -> None:
        self.how = how
        self.names = [""]

    def of_file(self, argument: str, place: PurePath) -> str | None:
        """The split of a whole file; None where its samples decide, or nothing does.

        Args:
            argument: the file or folder that was named.
            place: the file's path with the argument's own name in front.
        """
        if self.how == "files":
            return str(place)
        if self.how == "arguments":
            return argument
        return split_in_name(place) if self.how == "names" else None

    def number(self, sample: Sample, of_file: str | None) -> int:
        """The number of a sample's split."""
        name = of_file
        if self.how == "names":
            said = next((sample.meta[key] for key in _META if isinstance(sample.meta.get(key), str)), None)
            name = said or of_file
        if name is None:
            return 0
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    @property
    def several(self) -> bool:
        """Whether anything can leak."""
        return len(self.names) > 2

    def rank(self, number: int) -> tuple[int, int]:
        """The lowest keeps a row that stands in several: test, then dev, then the split that came first."""
        name = _WORDS.get(self.names[number].lower(), self.names[number])
        return _KEPT_FIRST.get(name, 2), number
