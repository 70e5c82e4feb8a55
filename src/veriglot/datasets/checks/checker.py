"""The check of a data set in all its passes, and the cleaned copy that it can write.

Rows are read once and lie on disk between passes; memory grows by about 150 bytes a row, whatever its length. What
needs the whole data set comes after the first pass: near-duplicates, leaks, references that files share, labels that
disagree, and glued spans, for which each language's words and letters are learnt from the data itself.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from veriglot.datasets.checks.duplicates import Leaks, Repeats, foreign_passages, repeated_rows, shared_references
from veriglot.datasets.checks.findings import (
    GLUED_SET,
    CheckReport,
    CleanedAccount,
    Example,
    checks,
    checks_version,
    shortened,
)
from veriglot.datasets.checks.rows import Fault, repaired, repeated_keys
from veriglot.datasets.checks.scan import FirstPass, Splits, Splitting, Spool, find_files
from veriglot.datasets.near_duplicates import NEAR, SHINGLES_VERSION, NearIndex
from veriglot.errors import UnknownNameError, UsageError
from veriglot.formats.base import Report
from veriglot.formats.writer import open_writer
from veriglot.pipeline.engine import Silent
from veriglot.signatures import __version__, signature

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from numpy.typing import NDArray

    from veriglot.datasets.checks.findings import Agreement
    from veriglot.datasets.checks.rows import Index
    from veriglot.datasets.checks.scan import Row
    from veriglot.formats.writer import Writer
    from veriglot.pipeline.engine import Watch
    from veriglot.records import Sample

__all__ = ["CleanedCopy", "check"]


# The cleaned copy: rows that hold, repaired where that is safe; what is left out lies beside it with its reasons.


_FILES = {".jsonl", ".parquet"}


class _RejectedRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row that a cleaned copy does not hold."""

    file: str
    reasons: tuple[str, ...]
    sample: Any = None
    line: int | None = None
    detail: str | None = None
    raw: str | None = None


@dataclass(frozen=True)
class CleanedCopy:
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


class _Cleaner:
    """Writes the copy, row by row."""

    def __init__(self, cleaning: CleanedCopy, first: FirstPass, groups: dict[int, int]) -> None:
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

    def __enter__(self) -> _Cleaner:
        cleaning = self._cleaning
        folder = Path(cleaning.path).parent if cleaning.one_file else Path(cleaning.path)
        folder.mkdir(parents=True, exist_ok=True)
        self._aside = cleaning.rejected.open("wb")
        for check, row in self._first.bad:
            self._reject(
                _RejectedRow(row.path, (check,), line=row.line or None, detail=row.error.detail, raw=row.raw or None)
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for writer in self._writers.values():
            writer.__exit__(kind, error, trace)
        self._aside.close()

    def take(self, index: int, row: Row) -> None:
        """Keep, repair or leave out one row."""
        path = self._first.files[row.file].path
        reasons = self._first.reasons.get(index, set()) - self._cleaning.keep
        sample, repairs = self._mended(row, path, reasons)
        if reasons:
            ordered = tuple(name for name in checks() if name in reasons)
            self._reject(_RejectedRow(path, ordered, row.sample))
            return
        self._repairs.update(repairs)
        self._changed += bool(repairs)
        self._kept += 1
        self._writer(row.file).write(self._named(sample, index, row, sorted(repairs)))

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

    def _named(self, sample: Sample, index: int, row: Row, repairs: list[str]) -> Sample:
        """With the group of its text, what was repaired, and an id that no other row of the file has."""
        key = int(self._first.index.texts[index])
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
        relative = self._first.files[file].place.with_suffix(".jsonl")
        if relative.name == "rejected.jsonl" or relative in self._places:
            relative = relative.with_name(f"{relative.stem}.{file + 1}.jsonl")
        self._places.add(relative)
        (path / relative).parent.mkdir(parents=True, exist_ok=True)
        return path / relative

    def _reject(self, row: _RejectedRow) -> None:
        self._left_out += 1
        self._reasons.update(row.reasons)
        self._aside.write(self._encode(row) + b"\n")

    def account(self) -> CleanedAccount:
        """What was written."""
        return CleanedAccount(
            self._cleaning.path, str(self._cleaning.rejected), self._kept, self._changed, self._left_out,
            dict(self._repairs.most_common()), dict(self._reasons.most_common()),
        )  # fmt: skip


def check(
    data: Sequence[str],
    *,
    format: str | None = None,  # noqa: A002  the word that users type
    language: str | None = None,
    splits: Splitting = "names",
    near: float = NEAR,
    clean: CleanedCopy | None = None,
    folder: Path | None = None,
    watch: Watch | None = None,
) -> CheckReport:
    """Check data sets, all of `data` together.

    Args:
        data: files and folders in any readable format; `-` is standard input.
        format: of every file; guessed where None.
        language: BCP 47 tag for samples that state none.
        splits: what a split is, see `Splits`.
        near: Jaccard similarity of character n-grams (0 to 1) from which two texts are near-duplicates.
        clean: where to write a cleaned copy, and what it keeps.
        folder: where rows lie while they are checked, as much as the data; a temporary folder where None.
        watch: told how far it is.

    Raises:
        InputError: a file does not exist, or the only one cannot be read.
        UsageError: the cleaned copy cannot be written where it should.
    """
    watch = watch or Silent()
    with ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="veriglot-check-", dir=folder)))
        return _Checker(temporary, splits, near, clean, watch, stack).run(data, format, language)


@dataclass
class _NearGroups:
    """Groups of near-duplicates: of rows by their responses, and of rows by their passages."""

    text: list[list[int]]
    reference: list[list[int]]


class _Checker:
    def __init__(
        self, folder: Path, splits: Splitting, near: float, clean: CleanedCopy | None, watch: Watch, stack: ExitStack
    ) -> None:
        self._stack = stack
        self._folder = folder
        self._clean_as = clean
        self._near = near
        self._watch = watch
        self._splits = Splits(splits)
        self._report = Report()
        self._spool = stack.enter_context(closing(Spool(folder / "rows")))
        self._first = FirstPass(self._spool, self._splits, self._report, clean.drop if clean else frozenset())
        self._not_looked_for: dict[str, str] = {}

    def run(self, data: Sequence[str], format_name: str | None, language: str | None) -> CheckReport:
        files = find_files(data, self._report)
        clean = self._clean_as
        if clean is not None:
            clean.refuse_inputs([file.path for file in files])
        first = self._first
        first.read(files, format_name=format_name, language=language, watch=self._watch)
        near = self._learn()
        leaks = self._leaks(near)
        self._repeated(near)
        agreement = self._disagreements()
        self._foreign()
        self._glue()
        few = first.balance.judge(first.tally)
        checked = first.checked_files()
        shared = shared_references(
            first.index, [file.path for file in checked], [tuple(file.languages) for file in checked]
        )
        cleaned = None if clean is None else self._clean(clean, near)
        findings = first.tally.findings()
        names = {finding.check for finding in findings}
        self._not_looked_for.update({name: why for name, why in few.items() if name not in names})
        self._nothing_to_look_at(names)
        return CheckReport(
            files=checked,
            findings=findings,
            passed=tuple(name for name in checks() if name not in names and name not in self._not_looked_for),
            not_looked_for=self._not_looked_for,
            labels=first.balance.sets(),
            agreement=agreement,
            shared=shared,
            leaks=leaks.table(),
            unread=dict(self._report.unread),
            near=self._near,
            signature=self._signature(),
            version=__version__,
            cleaned=cleaned,
        )

    def _nothing_to_look_at(self, names: set[str]) -> None:
        """Note the checks that looked at nothing: they did not pass."""
        if not self._first.index.long.any():
            self._not_looked_for.setdefault("near_text", "no response has the 32 letters from which it is compared")
        for name, check_ in checks().items():
            if name not in names and not self._first.tally.looked_at(name):
                self._not_looked_for.setdefault(name, f"no {check_.unit} here could have it")

    def _signature(self) -> str:
        return signature(
            check=checks_version(), data=self._first.data_digest(), splits=self._splits.how, near=self._near,
            shingles=SHINGLES_VERSION, version=__version__,
        )  # fmt: skip

    def _learn(self) -> _NearGroups:
        """Second pass: each different text once, for near-duplicates and for what a language's words are."""
        index = self._first.index
        new_text = _first_of(index.texts) & index.long
        new_passage = _first_of(index.passages)
        texts, references = (
            self._stack.enter_context(closing(NearIndex(self._folder, name))) for name in ("texts", "references")
        )
        entry = 0
        self._watch.begin("Comparing", len(self._spool))
        for row_index, row in enumerate(self._spool):
            self._watch.advance()
            if new_text[row_index]:
                texts.add(row.sample.response, row_index)
                self._first.glue.learn_response(row.sample)
            while entry < len(index.owners) and index.owners[entry] == row_index:
                if new_passage[entry]:
                    passage = row.sample.evidence[int(index.places[entry])].text
                    references.add(passage, entry)
                    self._first.glue.learn_passage(row.sample, passage)
                entry += 1
        near = _NearGroups(
            list(texts.groups(self._responses, self._near)), list(references.groups(self._passages, self._near))
        )
        for name, near_index in (("near_text", texts), ("leaked_near_reference", references)):
            if near_index.uncompared:
                self._watch.say(f"{near_index.uncompared:,} texts share a bucket with too many to be compared ({name})")
        return near

    def _responses(self, places: list[int]) -> list[str]:
        return [self._spool[index].sample.response for index in places]

    def _passages(self, entries: list[int]) -> list[str]:
        index = self._first.index
        return [self._spool[int(index.owners[e])].sample.evidence[int(index.places[e])].text for e in entries]

    def _found(self, check: str, index: int, detail: str, *, kind: str | None = None, text: str | None = None) -> None:
        row = self._spool[index]
        fault = Fault(check, detail, kind, row.sample.response if text is None else text)
        self._first.found(fault, index, row.sample, self._first.files[row.file].path)

    def _leaks(self, near: _NearGroups) -> Leaks:
        first, index = self._first, self._first.index
        leaks = Leaks(index, self._splits)
        kinds = [name for name in checks() if name.startswith("leaked_")]
        if not self._splits.several:
            reason = "no two splits are known: name files train, dev or test, or say --splits files"
            self._not_looked_for.update(dict.fromkeys(kinds, reason))
            return leaks
        by_text, by_passage = _members(index.texts), _members(index.passages)
        passages = [[int(index.owners[e]) for e in entries] for entries in by_passage.values()]
        groups = {
            "leaked_text": [list(rows) for rows in by_text.values()],
            "leaked_near_text": [
                [r for member in group for r in _all(by_text, index.texts, member)] for group in near.text
            ],
            "leaked_reference": [part for rows in passages for part in _by_language(rows, index)],
            "leaked_near_reference": [
                part
                for group in near.reference
                for part in _by_language(
                    [int(index.owners[e]) for member in group for e in _all(by_passage, index.passages, member)], index
                )
            ],
            "leaked_reference_across": passages,
        }
        for name, several in groups.items():
            for row in range(len(self._spool)):
                if index.splits[row]:
                    first.tally.looked(name, first.files[int(index.files[row])].path)
            for rows in several:
                for row, other in leaks.among(name, rows):
                    own = self._splits.names[int(index.splits[row])]
                    self._found(name, row, f"in {own}, and in {other} too", kind=f"{own} in {other}")
        return leaks

    def _repeated(self, near: _NearGroups) -> None:
        index = self._first.index
        copied = dict(repeated_rows(index.whole))
        for row, before in copied.items():
            self._found("copied_row", row, f"the same as {self._spool[before].sample.id}")
        for rows in repeated_keys(index.texts):
            self._first.tally.kind("repeated_text", f"texts that occur {len(rows)} times")
            first = self._spool[int(rows[0])].sample.id
            for row in rows[1:].tolist():
                self._found("repeated_text", row, f"the text of {first}")
        for group in near.text:
            first = self._spool[group[0]].sample.id
            for row in group[1:]:
                self._found("near_text", row, f"nearly the text of {first}")

    def _disagreements(self) -> tuple[Agreement, ...]:
        first, index = self._first, self._first.index
        repeats = Repeats(self._spool, index)
        several = _repeating(index.texts)
        disagreements = []
        for at, row in enumerate(self._spool):
            if not several[at] and len(row.sample.annotations) > 1:
                disagreements += list(repeats.alone(at, row))
        disagreements += list(repeats.together())
        for disagreement in sorted(disagreements):
            row = self._spool[disagreement.row]
            path = first.files[row.file].path
            first.tally.found("disagreeing_labels", path, kind="clean or not" if disagreement.about_clean else "where")
            detail = f"{disagreement.annotations} annotations ({disagreement.kind}) that differ"
            first.tally.example(
                "disagreeing_labels", Example(path, detail, id=row.sample.id, text=shortened(row.sample.response))
            )
        first.tally.looked("disagreeing_labels", "", repeats.texts)
        if not repeats.texts:
            self._not_looked_for["disagreeing_labels"] = "no text has several annotations of one kind"
        return repeats.agreement()

    def _foreign(self) -> None:
        index = self._first.index
        tags_of: dict[int, str] = {}
        for rows in foreign_passages(index):
            tags = sorted({index.language_names[int(index.languages[row])] for row in rows})
            tags_of.update(dict.fromkeys(rows, ", ".join(tags)))
        for row_, named in sorted(tags_of.items()):
            text = self._spool[row_].sample.evidence[0].text
            self._found("foreign_reference", row_, f"one reference for {named}", kind=named, text=text)

    def _glue(self) -> None:
        """Third pass: seams, which need the words of all texts."""
        first = self._first
        if not first.glue.wanted:
            self._not_looked_for["glued_span"] = "no spans are of the types entity or relation"
            return
        self._watch.begin("Looking for seams", len(self._spool))
        for index, row in enumerate(self._spool):
            self._watch.advance()
            path = first.files[row.file].path
            for glued, layer, _ in first.glue.look(row.sample):
                first.tally.looked("glued_span", path, layer=layer)
                if glued is not None:
                    if "glued_span" in first.drop:
                        first.reasons.setdefault(index, set()).add("glued_span")
                    span, seam, _, _ = glued
                    text = row.sample.response[span.start : span.end]
                    shown = text if seam.at is None else f"{text[: seam.at]}|{text[seam.at :]}"
                    first.tally.found("glued_span", path, kind=seam.why, layer=layer)
                    first.tally.example(
                        "glued_span", Example(path, f"told by {seam.why}", id=row.sample.id, text=shortened(shown))
                    )

    def _clean(self, clean: CleanedCopy, near: _NearGroups) -> CleanedAccount:
        self._watch.begin("Writing the cleaned copy", len(self._spool))
        groups = _group_names(self._first.index.texts, near.text)
        with _Cleaner(clean, self._first, groups) as cleaner:
            for index, row in enumerate(self._spool):
                self._watch.advance()
                cleaner.take(index, row)
            return cleaner.account()


def _first_of(keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Whether a key is met for the first time; 0 is no key."""
    first = np.zeros(len(keys), np.bool_)
    first[np.unique(keys, return_index=True)[1]] = True
    first[keys == 0] = False
    return first


def _repeating(keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    several: NDArray[np.bool_] = counts[inverse] > 1
    several[keys == 0] = False
    return several


def _members(keys: NDArray[np.uint64]) -> dict[int, list[int]]:
    """The places of each key that occurs more than once."""
    return {int(keys[group[0]]): [int(index) for index in group] for group in repeated_keys(keys)}


def _by_language(rows: Sequence[int], index: Index) -> list[list[int]]:
    """Rows parted by the language of their responses."""
    parts: dict[int, list[int]] = {}
    for row in rows:
        parts.setdefault(int(index.languages[row]), []).append(row)
    return list(parts.values())


def _all(members: dict[int, list[int]], keys: NDArray[np.uint64], index: int) -> list[int]:
    """The places that have the key of one place."""
    return members.get(int(keys[index]), [index])


def _group_names(keys: NDArray[np.uint64], near: Sequence[Sequence[int]]) -> dict[int, int]:
    """For the keys of near-duplicates the key of the first of them; other texts are a group by themselves."""
    return {int(keys[index]): int(keys[group[0]]) for group in near for index in group}
