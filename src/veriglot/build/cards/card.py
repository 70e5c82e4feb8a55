"""A data card: everything that a data set's files and the traces of its making say, put together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import veriglot
from veriglot.build.cards.contents import Contents, contents_of
from veriglot.build.cards.given import Given
from veriglot.build.cards.tracing import Step, trace
from veriglot.build.checking import CheckReport, check
from veriglot.build.checking.reading import find_files
from veriglot.errors import UsageError
from veriglot.formats import Report
from veriglot.provenance import file_sha256

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.build.checking.findings import CheckedFile
    from veriglot.build.checking.splits import Splitting
    from veriglot.run.watch import Watch

__all__ = ["Card", "card"]


class Card(msgspec.Struct, frozen=True):
    """What a card says.

    Attributes:
        names: the name of each file below what was named.
        hashes: SHA-256 of each file.
        sizes: bytes of each file.
        contents: what is in them.
        checks: what `build check` finds.
        steps: how they were made, the files themselves first.
        given: what people said.
        version: of Veriglot.
    """

    names: tuple[str, ...]
    hashes: tuple[str, ...]
    sizes: tuple[int, ...]
    contents: Contents
    checks: CheckReport
    steps: tuple[Step, ...]
    given: Given
    version: str

    @property
    def files(self) -> tuple[CheckedFile, ...]:
        """What was read of each file, in the order of `names`; also of those in which no row could be read."""
        return tuple(one for one in self.checks.files if one.samples or one.unreadable)


def card(
    data: Sequence[str],
    *,
    given: Given | None = None,
    format: str | None = None,  # noqa: A002  the word that users type
    language: str | None = None,
    splits: Splitting = "names",
    watch: Watch | None = None,
) -> Card:
    """Put together the card of data sets.

    Args:
        data: files and folders in any readable format.
        given: what people say.
        format: of every file; guessed where None.
        language: BCP 47 tag for samples that state none.
        splits: what a split is, see `build.checking.Splits`.
        watch: told how far it is.

    Raises:
        InputError: a file does not exist or cannot be read.
        UsageError: standard input was named, which cannot be read as often as it takes.
    """
    if "-" in data:
        raise UsageError("Standard input cannot be read again.", remedy="Write it to a file first.")
    report = check(data, format=format, language=language, splits=splits, watch=watch)
    read = {one.path for one in report.files if one.samples or one.unreadable}
    files = [file for file in find_files(data, Report()) if file.path in read]
    paths = [file.path for file in files]
    return Card(
        tuple(str(file.place) for file in files), tuple(map(file_sha256, paths)),
        tuple(Path(path).stat().st_size for path in paths),
        contents_of(files, format=format, language=language, splits=splits),
        report, trace(paths), given or Given(), veriglot.__version__,
    )  # fmt: skip
