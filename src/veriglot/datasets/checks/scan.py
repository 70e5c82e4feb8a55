"""The first pass of a check: files and splits, checks of single rows, class balance, and rows on disk for later."""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from veriglot.datasets.checks.findings import CheckedFile, Example, LabelSet, Tally, checks
from veriglot.datasets.checks.rows import Fault, Glue, Index, row_faults
from veriglot.errors import InputError
from veriglot.formats.base import Report, TagReport
from veriglot.formats.reader import read_rows, readable_files
from veriglot.metrics.spans import marked, ranges
from veriglot.plugins import read_package_data
from veriglot.records import Sample, encode
from veriglot.records.languages import languages
from veriglot.records.settings import Record
from veriglot.records.taxonomy import Taxonomy, taxonomies
from veriglot.storage.checkpoint import FailedRow
from veriglot.text.segmentation import word_bounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.pipeline.progress import ProgressReporter

__all__ = ["DataFile", "FirstPass", "Row", "Splits", "Spool", "find_files"]


# Class balance: shares of labelled and clean responses, of marked words and of types, by language.


_FEWEST = 20  # minimum number of labelled responses of a set of labels
_HARDLY = 0.05  # share of clean responses
_DENSE = 0.25  # share of marked words
_SPANS = 100  # minimum number for a check of types
_RARE = 0.02
_WHO = {"human": "people", "model": "models"}
_PAPERS = {"mfava": "mfava", "mfava-queries": "mfava", "halluverse": "halluverse", "hat": "hat"}


class Balance:
    """Counts labels, sample by sample."""

    def __init__(self) -> None:
        self._sets: dict[tuple[str, ...], LabelSet] = {}
        self._languages = defaultdict[str, set[str]](set)

    def add(self, sample: Sample, file: str, format_name: str) -> None:
        """Count the labels of a sample."""
        if sample.language is not None:
            self._languages[format_name].add(sample.language.partition("-")[0])
        words = None
        for annotation in sample.annotations:
            if annotation.spans is None or not sample.response.strip():
                continue
            if words is None:
                words = word_bounds(sample.response, sample.language)
            key = (file, annotation.annotator, annotation.kind, annotation.taxonomy, sample.language or "")
            label_set = self._sets.setdefault(key, LabelSet(*key))
            clean = _entry(annotation.taxonomy).clean
            spans = [span for span in annotation.spans if span.type not in clean]
            label_set.responses += 1
            label_set.clean += not spans
            label_set.words += len(words)
            label_set.marked_words += int(marked(words, ranges(spans)).sum())
            label_set.types = dict(Counter(label_set.types) + Counter(span.type or "" for span in spans))

    def sets(self) -> tuple[LabelSet, ...]:
        """Every set of labels, in order of appearance."""
        for label_set in self._sets.values():
            label_set.types = dict(Counter(label_set.types).most_common())
        return tuple(self._sets.values())

    def judge(self, tally: Tally) -> dict[str, str]:
        """Count imbalances; sets that are too small are not checked.

        All people are checked together, and all models; if one annotator is `gold`, only that one.

        Returns:
            The reason for each check that skipped some sets.
        """
        clean, types = _SetSizes("labelled rows", _FEWEST), _SetSizes("spans", _SPANS)
        together = defaultdict[tuple[str, str, str], list[LabelSet]](list)
        for label_set in self.sets():
            together[label_set.file, label_set.kind, label_set.taxonomy].append(label_set)
        for (file, kind, name), label_sets in together.items():
            parts = [part for part in label_sets if part.annotator == "gold"] or label_sets
            names = {part.annotator for part in parts}
            annotator = names.pop() if len(names) == 1 else _WHO.get(kind, kind)
            _judge_clean(tally, file, annotator, parts, clean)
            _judge_types(tally, file, annotator, name, parts, types)
        self._judge_languages(tally)
        reasons = {"no_clean_rows": clean.reason(), "missing_types": types.reason()}
        reasons |= {"dense_marks": reasons["no_clean_rows"], "rare_types": reasons["missing_types"]}
        if not tally.looked_at("absent_languages"):
            reasons["absent_languages"] = "no file is in the format of a paper that names its languages"
        return {name: reasons[name] for name in checks() if reasons.get(name)}

    def _judge_languages(self, tally: Tally) -> None:
        for format_name, present in self._languages.items():
            paper = _PAPERS.get(format_name)
            if paper is None:
                continue
            own = {entry.base for entry in languages().values() if paper in entry.sources}
            where = f"all files in the format {format_name}"
            tally.looked("absent_languages", where, len(own))
            absent = sorted(own - present)
            if absent:
                example = Example(where, f"covered by {paper} and absent: {', '.join(absent)}")
                tally.add("absent_languages", example, len(absent))
                tally.add_kinds("absent_languages", dict.fromkeys(absent, 1))


@dataclass
class _SetSizes:
    """Sizes of the sets of labels that a check judges, in `unit`; sets below `minimum` are left out."""

    unit: str
    minimum: int
    counts: list[int] = field(default_factory=list)

    def enough(self, count: int) -> bool:
        self.counts.append(count)
        return count >= self.minimum

    def reason(self) -> str:
        """Why the check was skipped, or for which sets; empty if it covered all."""
        if not self.counts:
            return "no set of labels here can be judged by it"
        few = [count for count in self.counts if count < self.minimum]
        if not few:
            return ""
        most = f"{max(few):,}" if len(few) == 1 else f"at most {max(few):,}"
        some = "" if len(few) == len(self.counts) else f" in {len(few):,} of {len(self.counts):,} sets of labels"
        return f"too few {self.unit}{some} ({most}; from {self.minimum:,} on)"


def _judge_clean(tally: Tally, file: str, annotator: str, parts: list[LabelSet], sizes: _SetSizes) -> None:
    responses, clean = sum(part.responses for part in parts), sum(part.clean for part in parts)
    words, marked_words = sum(part.words for part in parts), sum(part.marked_words for part in parts)
    tally.looked("no_clean_rows", file, responses)
    tally.looked("dense_marks", file, words)
    if not sizes.enough(responses) or not any(part.types for part in parts):
        return
    if clean < _HARDLY * responses:
        example = Example(file, f"{clean:,} of {responses:,} responses that {annotator} labelled have no span")
        tally.add("no_clean_rows", example, responses, kind=annotator)
    if marked_words >= _DENSE * words:
        example = Example(file, f"{marked_words / words:.0%} of the words are marked by {annotator}")
        tally.add("dense_marks", example, marked_words, kind=annotator)


def _judge_types(tally: Tally, file: str, annotator: str, name: str, parts: list[LabelSet], sizes: _SetSizes) -> None:
    entry = _entry(name)
    expected = [type_ for type_ in entry.types if type_ not in entry.clean]
    counts = sum((Counter(part.types) for part in parts), Counter[str]())
    total = counts.total()
    if len(expected) < 2 or set(counts) == {""} or not sizes.enough(total):
        return
    for check in ("missing_types", "rare_types"):
        tally.looked(check, file, len(expected))
    for type_ in expected:
        if not counts[type_]:
            tally.add("missing_types", Example(file, f"{annotator} never marked {type_}"), kind=type_)
        elif counts[type_] < _RARE * total:
            example = Example(file, f"{counts[type_]:,} of {total:,} spans of {annotator} are {type_}")
            tally.add("rare_types", example, kind=type_)


def _entry(name: str) -> Taxonomy:
    return taxonomies().get(name) or Taxonomy(source="", types={}, name=name)


# The split of a sample: from the sample, from the names of its file and folders, or from the user.


_WORDS = read_package_data(__package__, "splits.toml", dict[str, str])
_RANKS = {"test": 0, "dev": 1}  # order of the splits that keep a row of several splits
_PART = re.compile(r"[^a-z]+")
_META = ("split", "partition")


def split_in_name(path: PurePath) -> str | None:
    """`train`, `dev` or `test` as a word in the name of a file, or of the nearest folder; None if there is none."""
    for part in (path.stem, *(folder.name for folder in path.parents)):
        splits = {_WORDS[word] for word in _PART.split(part.lower()) if word in _WORDS}
        if len(splits) == 1:
            return splits.pop()
    return None


class Splits:
    """Numbers splits in order of appearance; 0 is no split.

    Args:
        how: `names`: `meta.split` of the sample, else a word in the name of its file, or of its folders below the
            argument; `files`: each file is a split; `arguments`: each argument of the command is one; `none`.
    """

    def __init__(self, how: str) -> None:
        self.how = how
        self.names = [""]

    def of_file(self, file: DataFile) -> str | None:
        """The split of a whole file; None if its samples decide, or nothing does."""
        if self.how == "files":
            return str(file.relative_path)
        if self.how == "arguments":
            return file.argument
        return split_in_name(file.relative_path) if self.how == "names" else None

    def number(self, sample: Sample, of_file: str | None) -> int:
        """The number of a sample's split."""
        stated = (sample.meta.get(key) for key in _META if self.how == "names")
        name = next((value for value in stated if isinstance(value, str) and value), of_file)
        if name is None:
            return 0
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def rank(self, number: int) -> tuple[int, int]:
        """The split with the lowest rank keeps a row of several splits: test, then dev, then the first in the data."""
        name = _WORDS.get(self.names[number].lower(), self.names[number])
        return _RANKS.get(name, 2), number


# Rows on disk between the passes of a check, so that memory does not grow with the text, and inputs are read once.


class Row(Record):
    """A sample with the numbers of its file and of its split; split 0 is none."""

    file: int
    split: int
    sample: Sample


class Spool:
    """Rows that are written once and read several times, in order or one by one: 8 bytes of memory a row."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w+b")
        self._places = array("Q", [0])
        self._decoder = msgspec.msgpack.Decoder(Row)

    def __len__(self) -> int:
        return len(self._places) - 1

    def add(self, row: Row) -> int:
        """Write a row; returns its number."""
        self._file.seek(self._places[-1])
        self._places.append(self._places[-1] + self._file.write(msgspec.msgpack.encode(row)))
        return len(self) - 1

    def __iter__(self) -> Iterator[Row]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, index: int) -> Row:
        start, end = self._places[index], self._places[index + 1]
        self._file.seek(start)
        return self._decoder.decode(self._file.read(end - start))

    def close(self) -> None:
        """Close the file; it is not deleted."""
        self._file.close()


class DataFile(NamedTuple):
    """A file to check.

    Attributes:
        path: its path; `-` is standard input.
        argument: the file or folder in the arguments.
        relative_path: its path below the argument, with the argument's own name first.
    """

    path: str
    argument: str
    relative_path: PurePath


def find_files(names: Sequence[str], report: Report) -> list[DataFile]:
    """The files of the arguments, in order; of a folder, those that some format can read, sorted by path.

    Raises:
        InputError: there is no such file or folder, or a folder has no readable file.
    """
    files = []
    for name in names:
        path = Path(name)
        if name == "-" or path.is_file():
            files.append(DataFile(name, name, PurePath(path.name)))
            continue
        if not path.is_dir():
            raise InputError.of(FileNotFoundError(), name)
        before = len(files)
        for source, _ in readable_files(path, report.unread):
            inside = Path(source.path).relative_to(path)
            files.append(DataFile(source.path, name, PurePath(path.resolve().name) / inside))
        if len(files) == before:
            raise InputError("this folder holds no file that can be read", path=name)
    return files


# Every row by itself: its problems, and repairs by its format's reader.


_OF_EVERY_ROW = ("unreadable_row", "bad_offsets", "repeated_id")
_OFFSETS = re.compile(r"\.(?:start|end|spans|units)\b|(?:spans|units|hard_labels|soft_labels)(?:\[|$)")
_SHOWN = 160


class FirstPass:
    """Reads files, checks each row by itself, and collects data for the later passes.

    Attributes:
        tally: findings so far.
        drop: checks whose rows a cleaned copy removes, although they stay by default.
        reasons: for each row number that a cleaned copy removes, the reasons.
        bad: rows that could not be read, each with its check.
        files: files read so far; `checked` has their counts.
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
        self.reasons = defaultdict[int, set[str]](set)
        self.bad: list[tuple[str, FailedRow]] = []
        self.files: list[DataFile] = []
        self.checked: list[CheckedFile] = []
        self._hasher = sha256()

    def read(
        self, files: Sequence[DataFile], *, format_name: str | None, language: str | None, progress: ProgressReporter
    ) -> None:
        """Read every file.

        Raises:
            InputError: the only file is in no known format.
        """
        progress.begin("Reading", None)
        for file in files:
            checked = CheckedFile(file.path, split=self.splits.of_file(file))
            self.files.append(file)
            self.checked.append(checked)
            try:
                self._read(checked, format_name, language, progress)
            except InputError as error:
                if len(files) == 1:
                    raise
                self._bad(FailedRow.of(error.at(path=file.path)), checked)
            checked.languages = dict(Counter(checked.languages).most_common())
        self.index.freeze()

    def _read(
        self, file: CheckedFile, format_name: str | None, language: str | None, progress: ProgressReporter
    ) -> None:
        for row in read_rows(file.path, format=format_name, language=language, report=self.report):
            progress.advance()
            file_report = self.report.files[next(reversed(self.report.files))]
            file.format = file_report.format
            tags, notes = file_report.tags, file_report.notes  # of this row: a reader has one row at a time
            file_report.tags, file_report.notes = {layer: TagReport() for layer in tags}, Counter()
            if isinstance(row, FailedRow):
                self._bad(row, file)
                continue
            index = self._look(row, file)
            for fault in chain(row_faults(row), self._format_faults(row, file.path, tags, notes)):
                self.add_fault(fault, index, row, file.path)

    def _bad(self, row: FailedRow, file: CheckedFile) -> None:
        check = _kind_of_error(row)
        file.unreadable += 1
        for every in _OF_EVERY_ROW:  # an unreadable row counts as checked
            self.tally.looked(every, file.path)
        named = row.field is not None and check != "repeated_id"  # its message has the id already
        detail = f"{row.field}: {row.message}" if named else row.message
        self.tally.add(check, Example(file.path, detail, line=row.line, text=_shortened(row.raw or "") or None))
        self.bad.append((check, row))

    def _look(self, sample: Sample, file: CheckedFile) -> int:
        """Count a sample and store data for later passes; returns its number."""
        number, split = len(self.files) - 1, self.splits.number(sample, file.split)
        holds = {
            "row": 1,
            "annotations": len(sample.annotations) > 0,
            "response": bool(sample.response.strip()),
            "evidence": len(sample.evidence) > 0,
            "spans": sum(len(annotation.spans or ()) for annotation in sample.annotations),
        }
        for name, check in checks().items():
            if count := holds.get(check.among):
                self.tally.looked(name, file.path, count)
        file.languages[sample.language or ""] = file.languages.get(sample.language or "", 0) + 1
        file.samples += 1
        file.queries += not (holds["response"] or holds["annotations"])
        file.labelled += any(annotation.spans is not None for annotation in sample.annotations)
        self._hasher.update(encode(sample) + b"\n")
        self.index.add(sample, number, split)
        self.balance.add(sample, file.path, file.format)
        self.glue.want(sample)
        return self.spool.add(Row(number, split, sample))

    def add_fault(self, fault: Fault, index: int, sample: Sample, path: str) -> None:
        """Count a problem of a row, and note whether a cleaned copy removes the row."""
        check = checks()[fault.check]
        text = None if fault.text is None else _shortened(fault.text)
        example = Example(path, _shortened(fault.detail), id=sample.id, text=text)
        self.tally.add(fault.check, example, kind=fault.kind, layer=fault.layer)
        leaves = check.cleaning == "leave out" or (check.cleaning == "repair" and fault.lasting)
        if leaves or fault.check in self.drop:
            self.reasons[index].add(fault.check)

    def _format_faults(
        self, sample: Sample, path: str, tags: dict[str, TagReport], notes: Counter[str]
    ) -> Iterator[Fault]:
        """Repairs by the format's reader in this row: tags, and text that does not match its tags."""
        layers = {layer: report.repaired + report.reported for layer, report in tags.items() if report.seen}
        for layer, faults in layers.items():
            self.tally.looked("malformed_tags", path, layer=layer)
            if faults:
                detail = f"{layer}: {', '.join(f'{kind} {count}' for kind, count in faults.items())}"
                self.tally.add_kinds("malformed_tags", faults)
                yield Fault("malformed_tags", detail, text=sample.response, layer=layer)
        for layer in (name for name in layers if name != "response"):  # in order: reports are compared
            self.tally.looked("moved_text", path, layer=layer)
            for note, kind in (("realigned_rows", "letters"), ("moved_spaces", "white space")):
                if f"{layer}:{note}" in notes:
                    detail = f"the text that {layer} tagged differs in {kind}"
                    yield Fault("moved_text", detail, kind=kind, text=sample.response, layer=layer)

    def data_digest(self) -> str:
        """A hash of all samples, in order."""
        return self._hasher.hexdigest()[:16]


def _kind_of_error(row: FailedRow) -> str:
    """The check of a row that could not be read."""
    if row.field == "id" and "occurred before" in row.message:
        return "repeated_id"
    about_offsets = "half-open" in row.message or "ends beyond" in row.message
    if about_offsets or _OFFSETS.search(row.field or ""):
        return "bad_offsets"
    return "unreadable_row"


def _shortened(text: str) -> str:
    """A text cut to 160 code points, on one line."""
    plain = " ".join(text[: 4 * _SHOWN].split())
    cut = plain[: _SHOWN - 1]
    if plain[len(cut) : _SHOWN].isdigit():
        cut = cut.rstrip("0123456789.,٠١٢٣٤٥٦٧٨٩٫٬") or cut  # a part of a number is another number
    return plain if len(plain) <= _SHOWN else f"{cut}…"
