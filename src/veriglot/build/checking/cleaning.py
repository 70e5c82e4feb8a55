"""The cleaned copy: rows that hold, repaired where that is safe; what is left out lies beside it with its reasons."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.build.checking.findings import Cleaned, checks
from veriglot.build.checking.repairs import repaired
from veriglot.build.checking.tally import GLUED_SET
from veriglot.errors import UnknownNameError, UsageError
from veriglot.formats import open_writer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from veriglot.build.checking.reading import FirstPass
    from veriglot.build.checking.spool import Row
    from veriglot.formats import Writer
    from veriglot.records import Sample

__all__ = ["Cleaner", "Cleaning", "Rejected"]

_FILES = {".jsonl", ".parquet"}


class Rejected(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row that a cleaned copy does not hold.

    Attributes:
        file: where it stood.
        reasons: the checks that speak against it, in the order of the catalogue.
        sample: the row, unchanged; None where it could not be read.
        line: line of a row that could not be read.
        detail: what was wrong with it.
        raw: the row as it stood.
    """

    file: str
    reasons: tuple[str, ...]
    sample: Any = None
    line: int | None = None
    detail: str | None = None
    raw: str | None = None


@dataclass(frozen=True)
class Cleaning:
    """Where a cleaned copy goes, and what it does.

    Attributes:
        path: a file (`.jsonl`, `.parquet`) for all rows, or a folder that gets a native file for each file.
        keep: checks that leave out or repair, and shall do nothing.
        drop: checks whose rows are left out, though they usually stay.

    Raises:
        UnknownNameError: there is no such check.
        UsageError: a check is named in both, or cannot leave out rows, since it is not about single rows.
    """

    path: str
    keep: frozenset[str] = frozenset()
    drop: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name in sorted(self.keep | self.drop):
            if name not in checks():
                raise UnknownNameError("check", name, checks())
        if self.keep & self.drop:
            raise UsageError(f"{', '.join(sorted(self.keep & self.drop))} cannot be kept and dropped.")
        for name in sorted(self.drop):
            if checks()[name].unit not in {"row", "span", "tagged text"} or name == "no_clean_rows":
                raise UsageError(f"{name!r} is not about single rows, so none can be left out for it.")

    @property
    def one_file(self) -> bool:
        """Whether everything goes into one file."""
        return PurePath(self.path).suffix.lower() in _FILES

    @property
    def rejected(self) -> Path:
        """Where the rows lie that are left out."""
        return Path(f"{self.path}.rejected.jsonl") if self.one_file else Path(self.path) / "rejected.jsonl"

    def refuse_inputs(self, inputs: Sequence[str]) -> None:
        """Refuse to write over what is read.

        Raises:
            UsageError: the copy lies in the data or is one of its files, or the folder holds anything already.
        """
        target = Path(self.path).resolve()
        for name in inputs:
            read = Path(name).resolve()
            if target == read or target in read.parents:
                raise UsageError("The cleaned copy lies where the data is.", remedy="Write it somewhere else.")
        if not self.one_file and target.is_dir() and any(target.iterdir()):
            raise UsageError(f"The folder {self.path} is not empty.", remedy="Name a new one.")


class Cleaner:
    """Writes the copy, row by row."""

    def __init__(self, cleaning: Cleaning, first: FirstPass, groups: dict[int, int]) -> None:
        self._cleaning = cleaning
        self._first = first
        self._groups = groups
        self._writers: dict[int, Writer] = {}
        self._places: set[PurePath] = set()
        self._ids: Counter[str] = Counter()
        self._kept = self._changed = self._left_out = 0
        self._repairs: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._encode = msgspec.json.Encoder().encode

    def __enter__(self) -> Cleaner:
        cleaning = self._cleaning
        folder = Path(cleaning.path).parent if cleaning.one_file else Path(cleaning.path)
        folder.mkdir(parents=True, exist_ok=True)
        self._aside = cleaning.rejected.open("wb")
        for check, row in self._first.bad:
            self._reject(
                Rejected(row.path, (check,), line=row.line or None, detail=row.error.detail, raw=row.raw or None)
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for writer in self._writers.values():
            writer.__exit__(kind, error, trace)
        self._aside.close()

    def take(self, place: int, row: Row) -> None:
        """Keep, repair or leave out one row."""
        path = self._first.files[row.file].path
        reasons = self._first.reasons.get(place, set()) - self._cleaning.keep
        sample, repairs = self._mended(row, path, reasons)
        if reasons:
            ordered = tuple(name for name in checks() if name in reasons)
            self._reject(Rejected(path, ordered, row.sample))
            return
        self._repairs.update(repairs)
        self._changed += bool(repairs)
        self._kept += 1
        self._writer(row.file).write(self._named(sample, place, row, sorted(repairs)))

    def _mended(self, row: Row, path: str, reasons: set[str]) -> tuple[Sample, Counter[str]]:
        """The row with what can be put right; what cannot is added to the reasons."""
        sample, repairs = row.sample, Counter[str]()
        if reasons:
            return sample, repairs
        sample, repairs = repaired(sample, self._cleaning.keep)
        glued = self._first.tally.share("glued_span", path) >= GLUED_SET
        if glued and "glued_span" not in self._cleaning.keep:
            mended = self._first.glue.mended(sample)
            if mended is None:
                reasons.add("glued_span")
            else:
                sample, count = mended
                repairs.update({"glued_span": count} if count else {})
        return sample, repairs

    def _named(self, sample: Sample, place: int, row: Row, repairs: list[str]) -> Sample:
        """With the group of its text, what was repaired, and an id that no other row of the file has."""
        key = int(self._first.index.texts[place])
        note: dict[str, Any] = {"group": f"{self._groups.get(key, key):016x}"} if key else {}
        if repairs:
            note["repaired"] = repairs
        if row.split:
            note["split"] = self._first.splits.names[row.split]
        id_ = sample.id
        if self._cleaning.one_file:
            self._ids[id_] += 1
            if self._ids[id_] > 1:
                id_ = f"{id_}#{self._ids[id_]}"
                note["id"] = sample.id
        meta = {**sample.meta, "check": note} if note else sample.meta
        return msgspec.structs.replace(sample, id=id_, meta=meta)

    def _writer(self, file: int) -> Writer:
        number = 0 if self._cleaning.one_file else file
        if number not in self._writers:
            self._writers[number] = open_writer(self._path(file))
        return self._writers[number]

    def _path(self, file: int) -> Path:
        """Where a file's rows go; two files of one name (`a/x.json`, `b/x.json` named one by one) stay apart."""
        path = Path(self._cleaning.path)
        if self._cleaning.one_file:
            return path
        place = self._first.files[file].place.with_suffix(".jsonl")
        if place.name == "rejected.jsonl" or place in self._places:
            place = place.with_name(f"{place.stem}.{file + 1}.jsonl")
        self._places.add(place)
        (path / place).parent.mkdir(parents=True, exist_ok=True)
        return path / place

    def _reject(self, row: Rejected) -> None:
        self._left_out += 1
        self._reasons.update(row.reasons)
        self._aside.write(self._encode(row) + b"\n")

    def account(self) -> Cleaned:
        """What was written."""
        return Cleaned(
            self._cleaning.path, str(self._cleaning.rejected), self._kept, self._changed, self._left_out,
            dict(self._repairs.most_common()), dict(self._reasons.most_common()),
        )  # fmt: skip
