"""The first pass: rows are read once, looked at one by one, and put on disk for the passes that need all of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from veriglot.build.checking.balance import Balance
from veriglot.build.checking.faults import Fault, is_labelled, kind_of_error, sample_faults, span_faults
from veriglot.build.checking.findings import CheckedFile, Example, checks
from veriglot.build.checking.glue import Glue
from veriglot.build.checking.index import Index
from veriglot.build.checking.languages import LanguageCheck
from veriglot.build.checking.spool import Row, Spool
from veriglot.build.checking.tally import Tally, shortened
from veriglot.errors import InputError
from veriglot.formats import BadRow, Report, read_rows
from veriglot.formats.guessing import files_in
from veriglot.provenance import digest
from veriglot.records import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.build.checking.splits import Splits
    from veriglot.formats import FileReport
    from veriglot.records import Sample
    from veriglot.run.watch import Watch

__all__ = ["DataFile", "FirstPass", "find_files"]

_MOVED = ":realigned_rows"
_SPACES = ":moved_spaces"
_OF_EVERY_ROW = ("unreadable_row", "bad_offsets", "repeated_id")


@dataclass(frozen=True)
class DataFile:
    """A file to check.

    Attributes:
        path: where it is; `-` is standard input.
        argument: the file or folder that was named.
        place: its path with the argument's own name in front.
    """

    path: str
    argument: str
    place: PurePath


def find_files(names: Sequence[str], report: Report) -> list[DataFile]:
    """The files that names stand for, in order; a folder gives those that some format reads, sorted by path.

    Raises:
        InputError: there is no such file or folder, or a folder holds no file that can be read.
    """
    from veriglot.formats import guess
    from veriglot.formats.guessing import companion_of

    found = []
    for name in names:
        path = Path(name)
        if name == "-" or path.is_file():
            found.append(DataFile(name, name, PurePath(path.name)))
            continue
        if not path.is_dir():
            raise InputError("there is no such file or folder", path=name, remedy="Check the path.")
        before = len(found)
        for file in files_in(path):
            try:
                if owner := companion_of(file):
                    report.unread[str(file)] = f"it is read with the files of the format {owner}"
                    continue
                guess(file)
            except InputError as error:
                report.unread[str(file)] = error.detail
                continue
            found.append(DataFile(str(file), name, PurePath(path.resolve().name) / file.relative_to(path)))
        if len(found) == before:
            raise InputError("this folder holds no file that can be read", path=name)
    return found


@dataclass
class _Seen:
    """What is counted of one file."""

    format: str = ""
    languages: Counter[str] = field(default_factory=Counter)
    unreadable: int = 0
    queries: int = 0
    labelled: int = 0


class FirstPass:
    """Reads files, looks at each row by itself, and fills what the later passes need.

    Attributes:
        tally: findings so far.
        drop: checks whose rows a cleaned copy leaves out, though it usually keeps them.
        reasons: for each row that a cleaned copy leaves out, why; by its place.
        bad: rows that could not be read, as they are shown.
    """

    def __init__(self, spool: Spool, splits: Splits, report: Report, drop: frozenset[str] = frozenset()) -> None:
        self.drop = drop
        self.spool = spool
        self.splits = splits
        self.report = report
        self.tally = Tally()
        self.index = Index()
        self.glue = Glue()
        self.balance = Balance()
        self.reasons: dict[int, set[str]] = {}
        self.bad: list[tuple[str, BadRow]] = []
        self.files: list[DataFile] = []
        self._languages = LanguageCheck()
        self._seen: list[_Seen] = []
        self._hashes: list[bytes] = []

    def read(self, files: Sequence[DataFile], *, format_name: str | None, language: str | None, watch: Watch) -> None:
        """Read every file.

        Raises:
            InputError: the only file is in no known format.
        """
        watch.begin("Reading", None)
        for file in files:
            self.files.append(file)
            self._seen.append(_Seen())
            try:
                self._read(file, format_name, language, watch)
            except InputError as error:
                if len(files) == 1:
                    raise
                self._bad(BadRow(file.path, 0, error.at(path=file.path)), file)
        self.index.freeze()

    def _read(self, file: DataFile, format_name: str | None, language: str | None, watch: Watch) -> None:
        of_file = self.splits.of_file(file.argument, file.place)
        account = _Account()
        number = 0
        for row in read_rows(file.path, format=format_name, language=language, report=self.report):
            watch.advance()
            file_report = self.report.files[next(reversed(self.report.files))]
            self._seen[-1].format = file_report.format
            changed = account.since(file_report)
            if isinstance(row, BadRow):
                self._bad(row, file)
                continue
            number += 1
            split = self.splits.number(row, of_file)
            place = self.spool.add(Row(len(self.files) - 1, number, split, row))
            self._look(row, place, file, split)
            self._format_faults(row, place, file, changed)

    def _bad(self, row: BadRow, file: DataFile) -> None:
        check = kind_of_error(row.error)
        self._seen[-1].unreadable += 1
        for every in _OF_EVERY_ROW:  # a row that cannot be read is one of those that were looked at
            self.tally.looked(every, file.path)
        self.tally.found(check, file.path)
        named = row.error.field is not None and check != "repeated_id"  # which says itself that it is the id
        detail = f"{row.error.field}: {row.error.detail}" if named else row.error.detail
        self.tally.example(check, Example(file.path, detail, line=row.line or None, text=shortened(row.raw) or None))
        self.bad.append((check, row))

    def _look(self, sample: Sample, place: int, file: DataFile, split: int) -> None:
        seen = self._seen[-1]
        seen.languages[sample.language or ""] += 1
        seen.queries += not sample.response.strip() and not sample.annotations
        seen.labelled += is_labelled(sample)
        self._hashes.append(encode(sample))
        if len(self._hashes) > 256:
            self._hashes = [digest(self._hashes).encode()]
        self.index.add(sample, len(self.files) - 1, split)
        self.balance.add(sample, file.path, seen.format)
        self.glue.want(sample)
        self._denominators(sample, file.path)
        for fault in (*sample_faults(sample), *self._languages.faults(sample)):
            self.found(fault, place, sample, file.path)
        for fault in span_faults(sample):
            self.found(fault, place, sample, file.path)

    def found(self, fault: Fault, place: int, sample: Sample, path: str) -> None:
        """Count a fault of a row, and note whether a cleaned copy leaves the row out."""
        check = checks()[fault.check]
        self.tally.found(fault.check, path, kind=fault.kind, layer=fault.layer)
        text = None if fault.text is None else shortened(fault.text)
        self.tally.example(fault.check, Example(path, shortened(fault.detail), id=sample.id, text=text))
        leaves = check.cleaning == "leave out" or (check.cleaning == "repair" and fault.lasting)
        if leaves or fault.check in self.drop:
            self.reasons.setdefault(place, set()).add(fault.check)

    def _denominators(self, sample: Sample, path: str) -> None:
        tally = self.tally
        for check in ("broken_characters", "no_language", "copied_row"):
            tally.looked(check, path)
        for check in _OF_EVERY_ROW:
            tally.looked(check, path)
        if sample.annotations:
            tally.looked("no_response", path)
            tally.looked("no_evidence", path)
        if sample.response.strip():
            for check in ("leftover_tags", "looping_response", "wrong_script", "wrong_language", "repeated_text",
                          "near_text"):  # fmt: skip
                tally.looked(check, path)
        if sample.evidence:
            for check in ("garbled_reference", "foreign_reference", "reference_script", "reference_language"):
                tally.looked(check, path)
        spans = sum(len(one.spans or ()) for one in sample.annotations)
        if spans:
            for check in ("unknown_type", "text_mismatch", "span_edges", "blank_span", "repeated_span",
                          "overlapping_spans"):  # fmt: skip
                tally.looked(check, path, spans)

    def _format_faults(self, sample: Sample, place: int, file: DataFile, changed: _Changes) -> None:
        """What the format's reader had to repair in this row: tags, and text that does not match its tags."""
        for layer, faults in changed.tags.items():
            self.tally.looked("malformed_tags", file.path, layer=layer)
            if faults:
                detail = f"{layer}: {', '.join(f'{kind} {count}' for kind, count in faults.items())}"
                self.found(Fault("malformed_tags", detail, text=sample.response, layer=layer), place, sample, file.path)
                for kind, count in faults.items():
                    self.tally.kind("malformed_tags", kind, count)
        for layer in (name for name in changed.tags if name != "response"):  # in order: reports are compared
            self.tally.looked("moved_text", file.path, layer=layer)
            for note, kind in ((f"{layer}{_MOVED}", "letters"), (f"{layer}{_SPACES}", "white space")):
                if note in changed.notes:
                    detail = f"the text that {layer} tagged differs in {kind}"
                    fault = Fault("moved_text", detail, kind=kind, text=sample.response, layer=layer)
                    self.found(fault, place, sample, file.path)

    def checked_files(self) -> tuple[CheckedFile, ...]:
        """The files as they were read."""
        return tuple(
            CheckedFile(
                file.path, seen.format, self.splits.of_file(file.argument, file.place),
                dict(seen.languages.most_common()), seen.languages.total(), seen.unreadable, seen.queries,
                seen.labelled,
            )
            for file, seen in zip(self.files, self._seen, strict=True)
        )  # fmt: skip

    def data_digest(self) -> str:
        """A hash of all samples, in order."""
        return digest(self._hashes)[:16]


class _Account:
    """What a reader counted, told row by row: the difference since it was asked last."""

    def __init__(self) -> None:
        self._tags: dict[str, Counter[str]] = {}
        self._seen: Counter[str] = Counter()
        self._notes: Counter[str] = Counter()

    def since(self, report: FileReport) -> _Changes:
        """What came since; a reader looks at one row after the other, so that is what came of this row."""
        changes = {}
        for layer, tags in report.tags.items():
            if tags.seen > self._seen[layer]:
                faults = tags.repaired + tags.reported
                changes[layer] = faults - self._tags.get(layer, Counter())
                self._tags[layer], self._seen[layer] = faults, tags.seen
        changed = _Changes(changes, report.notes - self._notes)
        self._notes = report.notes.copy()
        return changed


@dataclass(frozen=True)
class _Changes:
    """Tags by layer, with what was wrong with them, and notes, of one row."""

    tags: dict[str, Counter[str]]
    notes: Counter[str]
