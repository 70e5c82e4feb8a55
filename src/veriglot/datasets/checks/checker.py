"""The check of a data set in all its passes, and the optional cleaned copy.

Rows are read once and stay on disk between passes; memory grows by about 150 bytes a row, whatever its length. Checks
of the whole data set run after the first pass: near-duplicates, leaks, references that files share, inconsistent
labels, and glued spans, for which each language's words and letters are learned from the data.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from contextlib import ExitStack, closing
from itertools import combinations
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from veriglot.datasets.checks.findings import CheckedFile, Finding, LabelSet, checks, checks_version
from veriglot.datasets.checks.rows import Fault, Index, repaired
from veriglot.datasets.checks.scan import FirstPass, Row, Splits, Spool, find_files
from veriglot.datasets.near_duplicates import SHINGLES_VERSION, NearIndex, equal_runs
from veriglot.errors import UnknownNameError, UsageError
from veriglot.formats.base import Report
from veriglot.formats.writer import Writer
from veriglot.metrics.agreement import alpha, coincidences
from veriglot.pipeline.progress import ProgressReporter
from veriglot.records.settings import Record
from veriglot.signatures import __version__, signature

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.arrays import Bools, UInt64s
    from veriglot.records import Annotation, Sample

    Groups = list[list[int]]  # of numbers of rows or passages

__all__ = ["CheckReport", "CleanedCopy", "check"]


class _Agreement(Record):
    """Agreement of annotations of the same texts by people or models (`kind`), in one language.

    `same` counts the pairs that are equal. For marked code points, `overlap` is the mean Dice coefficient and `alpha`
    is Krippendorff's; `same_type` is the share of those marked by both that have a common type. None: no data for it.
    """

    language: str
    kind: str
    texts: int
    annotations: int
    pairs: int
    same: int
    overlap: float | None
    alpha: float | None
    same_type: float | None


class _SharedReferences(Record):
    """Different passages that two files share, and their share of those of the smaller file.

    They are `foreign` if the languages differ although the evidence has no other language in its record.
    """

    first: str
    second: str
    shared: int
    share: float
    foreign: bool


class _SplitLeak(Record):
    """Overlap of two splits: rows of `left` whose text or reference is also in the other split, which keeps it."""

    check: str
    left: str
    stays: str = msgspec.field(name="kept")
    rows: int


class _CleanedAccount(msgspec.Struct):
    """The cleaned copy: number of rows, of changed rows, and of removed ones, with counts by check."""

    path: str
    rejected: str
    rows: int = msgspec.field(name="kept", default=0)
    repaired: int = 0
    left_out: int = 0
    repairs: Counter[str] = msgspec.field(default_factory=Counter)
    reasons: Counter[str] = msgspec.field(default_factory=Counter)


class CheckReport(Record):
    """The report of a check.

    Attributes:
        files: the input files.
        findings: in the order of the catalogue; checks without findings are in `passed`.
        passed: names of the checks that ran and found nothing.
        not_looked_for: reason for each check that did not run; nothing is known about these.
        labels: class balance, a row for each set of labels.
        agreement: of repeated and of several annotations.
        shared: files with common references.
        leaks: overlaps of splits.
        unread: files of a folder that were skipped, and why.
        near: Jaccard similarity from which texts are near-duplicates.
        cleaned: the cleaned copy, if one was written.
        signature: one line that identifies how it was made.
        version: of Veriglot.
    """

    files: tuple[CheckedFile, ...]
    findings: tuple[Finding, ...]
    passed: tuple[str, ...]
    not_looked_for: dict[str, str]
    labels: tuple[LabelSet, ...]
    agreement: tuple[_Agreement, ...]
    shared: tuple[_SharedReferences, ...]
    leaks: tuple[_SplitLeak, ...]
    unread: dict[str, str]
    near: float
    signature: str
    version: str
    cleaned: _CleanedAccount | None = None

    def finding(self, check: str) -> Finding | None:
        """The finding of a check, or None."""
        return next((finding for finding in self.findings if finding.check == check), None)


# The cleaned copy: good rows, repaired if that is safe; removed rows are in a file beside it, with reasons.


_FILES = {".jsonl", ".parquet"}


class _RejectedRow(Record, omit_defaults=True):
    """A row that is not in the cleaned copy."""

    file: str
    reasons: tuple[str, ...]
    sample: Any = None
    line: int | None = None
    detail: str | None = None
    raw: str | None = None


class CleanedCopy(Record):
    """Path and options of a cleaned copy.

    Attributes:
        path: a file (`.jsonl`, `.parquet`) for all rows, or a folder that gets a native file for each file.
        keep: checks that would remove or repair rows, and must not.
        drop: checks whose rows are removed, although they stay by default.

    Raises:
        UnknownNameError: there is no such check.
        UsageError: a check is in both, or cannot remove rows because it is not about single rows.
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
                raise UsageError(f"{name!r} does not check single rows, so it cannot drop any.")

    @property
    def one_file(self) -> bool:
        """Whether everything goes into one file."""
        return PurePath(self.path).suffix.lower() in _FILES

    @property
    def rejected(self) -> Path:
        """Path of the removed rows."""
        return Path(f"{self.path}.rejected.jsonl") if self.one_file else Path(self.path) / "rejected.jsonl"

    def refuse_inputs(self, inputs: Sequence[str]) -> None:
        """Refuse to overwrite input files.

        Raises:
            UsageError: the copy is inside the data or is one of its files, or the folder is not empty.
        """
        target = Path(self.path).resolve()
        for name in inputs:
            read = Path(name).resolve()
            if target == read or target in read.parents:
                raise UsageError("The cleaned copy would lie inside the data.", "Write it somewhere else.")
        if not self.one_file and target.is_dir() and any(target.iterdir()):
            raise UsageError(f"The folder {self.path} is not empty.", "Name a new one.")


class _Cleaner:
    """Writes the copy, row by row; `stack` closes writers and the file of rejected rows."""

    def __init__(self, cleaning: CleanedCopy, first: FirstPass, groups: dict[int, int], stack: ExitStack) -> None:
        self._cleaning = cleaning
        self._first = first
        self._groups = groups
        self._stack = stack
        self._writers: dict[int, Writer] = {}
        self._paths = set[Path]()
        self._ids = Counter[str]()
        self.account = _CleanedAccount(cleaning.path, str(cleaning.rejected))
        cleaning.rejected.parent.mkdir(parents=True, exist_ok=True)
        self._aside = stack.enter_context(cleaning.rejected.open("wb"))
        for check, row in first.bad:
            self._reject(_RejectedRow(row.path or "", (check,), line=row.line, detail=row.message, raw=row.raw))

    def take(self, index: int, row: Row) -> None:
        """Keep, repair or remove one row."""
        path = self._first.files[row.file].path
        reasons = self._first.reasons.get(index, set()) - self._cleaning.keep
        sample, repairs = row.sample, Counter[str]()
        if not reasons:
            sample, repairs = repaired(sample, self._cleaning.keep)
            if self._first.tally.is_glued(path) and "glued_span" not in self._cleaning.keep:
                mended = self._first.glue.without_glue(sample)
                if mended is None:
                    reasons = {"glued_span"}
                else:
                    sample, count = mended
                    repairs += Counter(glued_span=count)
        if reasons:
            self._reject(_RejectedRow(path, tuple(name for name in checks() if name in reasons), row.sample))
            return
        self.account.repairs.update(repairs)
        self.account.rows += 1
        self.account.repaired += bool(repairs)
        self._writer(row.file).write(self._named(sample, index, row, sorted(repairs)))

    def _named(self, sample: Sample, index: int, row: Row, repairs: list[str]) -> Sample:
        """The sample with the group of its text, its repairs, and an id that is unique in the file."""
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
        return msgspec.structs.replace(sample, id=id_, meta={**sample.meta, "check": note} if note else sample.meta)

    def _writer(self, file: int) -> Writer:
        """The writer of a file; files with the same name (`a/x.json`, `b/x.json` as arguments) have different ones."""
        number, path = 0 if self._cleaning.one_file else file, Path(self._cleaning.path)
        if number not in self._writers:
            if not self._cleaning.one_file:
                path /= self._first.files[file].relative_path.with_suffix(".jsonl")
                if path.name == "rejected.jsonl" or path in self._paths:
                    path = path.with_name(f"{path.stem}.{file + 1}.jsonl")
                self._paths.add(path)
                path.parent.mkdir(parents=True, exist_ok=True)
            self._writers[number] = self._stack.enter_context(Writer(path))
        return self._writers[number]

    def _reject(self, row: _RejectedRow) -> None:
        self.account.left_out += 1
        self.account.reasons.update(row.reasons)
        self._aside.write(msgspec.json.encode(row) + b"\n")


def check(
    data: Sequence[str],
    *,
    format: str | None = None,  # noqa: A002  the word that users type
    language: str | None = None,
    splits: str = "names",
    near: float = 0.8,
    clean: CleanedCopy | None = None,
    progress: ProgressReporter | None = None,
) -> CheckReport:
    """Check data sets, all of `data` together.

    Args:
        data: files and folders in any readable format; `-` is standard input.
        format: of every file; None to detect it.
        language: BCP 47 tag for samples without a language.
        splits: definition of splits, see `Splits`.
        near: Jaccard similarity of character n-grams (0 to 1) from which two texts are near-duplicates.
        clean: path and options of a cleaned copy.
        progress: shows the steps and their finished rows.

    Raises:
        InputError: a file does not exist, or the only one cannot be read.
        UsageError: the cleaned copy cannot be written there.
    """
    progress, report = progress or ProgressReporter(), Report()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="veriglot-check-")))
        spool = stack.enter_context(closing(Spool(folder / "rows")))
        files = find_files(data, report)
        if clean is not None:
            clean.refuse_inputs([file.path for file in files])
        first = FirstPass(spool, Splits(splits), report, clean.drop if clean else frozenset())
        first.read(files, format_name=format, language=language, progress=progress)
        return _Checker(first, folder, near, progress, stack).run(clean)


class _Checker:
    """The passes after the first one."""

    def __init__(
        self, first: FirstPass, folder: Path, near: float, progress: ProgressReporter, stack: ExitStack
    ) -> None:
        self._first, self._spool, self._index, self._tally = first, first.spool, first.index, first.tally
        self._folder, self._near, self._progress, self._stack = folder, near, progress, stack
        self._not_looked_for: dict[str, str] = {}

    def run(self, clean: CleanedCopy | None) -> CheckReport:
        first = self._first
        near_texts, near_passages = self._learn()
        leaks = self._leaks(near_texts, near_passages)
        self._repeated(near_texts)
        agreement = self._disagreements()
        self._foreign()
        self._glue()
        few = first.balance.judge(self._tally)
        cleaned = None if clean is None else self._clean(clean, near_texts)
        findings = self._tally.findings()
        names = {finding.check for finding in findings}
        self._not_looked_for.update(few)
        if not self._index.long.any():
            self._not_looked_for.setdefault("near_text", "no response has the 32 letters from which it is compared")
        for name, check_ in checks().items():  # a check without anything to look at has not passed
            if not self._tally.looked_at(name):
                self._not_looked_for.setdefault(name, f"no {check_.unit} here could have it")
        reasons = {name: why for name, why in self._not_looked_for.items() if name not in names}
        return CheckReport(
            files=tuple(first.checked),
            findings=findings,
            passed=tuple(name for name in checks() if name not in names and name not in reasons),
            not_looked_for=reasons,
            labels=first.balance.sets(),
            agreement=agreement,
            shared=_shared_references(self._index, [file.path for file in first.files]),
            leaks=leaks,
            unread=dict(first.report.unread),
            near=self._near,
            signature=signature(
                check=checks_version(), data=first.data_digest(), splits=first.splits.how, near=self._near,
                shingles=SHINGLES_VERSION, version=__version__,
            ),
            version=__version__,
            cleaned=cleaned,
        )  # fmt: skip

    def _rows(self, what: str) -> Iterator[tuple[int, Row]]:
        """Every row again, with its number."""
        self._progress.begin(what, len(self._spool))
        for number, row in enumerate(self._spool):
            self._progress.advance()
            yield number, row

    def _learn(self) -> tuple[Groups, Groups]:
        """Second pass, each different text once: groups of near-duplicate rows and passages; words of each language."""
        index, glue = self._index, self._first.glue
        new_text = _first_of(index.texts) & index.long
        new_passage = _first_of(index.passages)
        texts, references = (
            self._stack.enter_context(closing(NearIndex(self._folder / name))) for name in ("texts", "references")
        )
        entry = 0
        for number, row in self._rows("Comparing"):
            if new_text[number]:
                texts.add(row.sample.response, number)
                glue.learn_response(row.sample)
            while entry < len(index.owners) and index.owners[entry] == number:
                if new_passage[entry]:
                    passage = row.sample.evidence[int(index.places[entry])].text
                    references.add(passage, entry)
                    glue.learn(row.sample, passage)
                entry += 1
        groups = (
            list(texts.groups(lambda rows: [self._sample(row).response for row in rows], self._near)),
            list(references.groups(lambda entries: list(map(self._passage, entries)), self._near)),
        )
        for name, near_index in (("near_text", texts), ("leaked_near_reference", references)):
            if near_index.uncompared:
                self._progress.say(
                    f"texts similar to too many others to be compared with all of them: {near_index.uncompared:,}"
                    f" ({name})"
                )
        return groups

    def _sample(self, row: int) -> Sample:
        return self._spool[row].sample

    def _passage(self, entry: int) -> str:
        return self._sample(int(self._index.owners[entry])).evidence[int(self._index.places[entry])].text

    def _add_fault(
        self, check: str, number: int, detail: str, *, kind: str | None = None, text: str | None = None
    ) -> None:
        row = self._spool[number]
        fault = Fault(check, detail, kind, row.sample.response if text is None else text)
        self._first.add_fault(fault, number, row.sample, self._first.files[row.file].path)

    def _leaks(self, near_texts: Groups, near_passages: Groups) -> tuple[_SplitLeak, ...]:
        """Rows in two splits: each is reported by the first check that finds it, in the split that loses it."""
        index, names = self._index, self._first.splits.names
        if len(names) < 3:
            reason = "no two splits are known: name files train, dev or test, or say --splits files"
            self._not_looked_for |= {name: reason for name in checks() if name.startswith("leaked_")}
            return ()
        texts, near_texts = _members(index.texts, near_texts)
        entries_of, near_passages = _members(index.passages, near_passages)
        passages = [index.owners[entries].tolist() for entries in entries_of]
        groups = {
            "leaked_text": texts,
            "leaked_near_text": near_texts,
            "leaked_reference": [part for rows in passages for part in index.by_language(rows)],
            "leaked_near_reference": [
                part for entries in near_passages for part in index.by_language(index.owners[entries].tolist())
            ],
            "leaked_reference_across": passages,
        }
        leaking = set[int]()
        pairs = Counter[tuple[str, int, int]]()
        for check, several in groups.items():
            for file, rows in Counter(index.files[index.splits > 0].tolist()).items():
                self._tally.looked(check, self._first.files[file].path, rows)
            for rows in several:
                present = sorted(set(rows))
                splits = {int(index.splits[row]) for row in present} - {0}
                if len(splits) < 2:
                    continue
                stays = min(splits, key=self._first.splits.rank)
                for row in present:
                    own = int(index.splits[row])
                    if own not in (0, stays) and row not in leaking:
                        leaking.add(row)
                        pairs[check, own, stays] += 1
                        detail, kind = f"in {names[own]}, and in {names[stays]} too", f"{names[own]} in {names[stays]}"
                        self._add_fault(check, row, detail, kind=kind)
        return tuple(
            _SplitLeak(check, names[own], names[stays], count)
            for (check, own, stays), count in sorted(pairs.items(), key=lambda item: (item[0][0], -item[1]))
        )

    def _repeated(self, near_texts: Groups) -> None:
        texts = list(_repeated_keys(self._index.texts))
        self._tally.add_kinds("repeated_text", Counter(f"texts that occur {len(rows)} times" for rows in texts))
        for check, groups, relation in (
            ("copied_row", _repeated_keys(self._index.whole), "the same as"),
            ("repeated_text", texts, "the text of"),
            ("near_text", near_texts, "nearly the text of"),
        ):
            for first, *others in groups:
                detail = f"{relation} {self._sample(first).id}"
                for row in others:
                    self._add_fault(check, row, detail)

    def _disagreements(self) -> tuple[_Agreement, ...]:
        """Agreement of several annotations of one text by one kind of annotator; and the texts without agreement."""
        sums = defaultdict[tuple[str, str], AgreementSums](AgreementSums)
        differing: list[tuple[int, str, bool, int]] = []  # row, kind, one is clean, number of annotations
        texts = 0
        for number, samples in self._copies():
            by_kind: dict[tuple[str, str], list[Annotation]] = defaultdict(list)  # of one evidence
            for sample in samples:
                for annotation in sample.annotations:
                    if sample.response == samples[0].response and annotation.spans is not None:
                        by_kind[annotation.kind, sample.evidence_text].append(annotation)
            for (kind, _), marked in by_kind.items():
                if len(marked) < 2:
                    continue
                texts += 1
                if not sums[samples[0].language or "", kind].add(samples[0].response, marked[:_MOST]):
                    clean = sum(not annotation.spans for annotation in marked)
                    differing.append((number, kind, 0 < clean < len(marked), len(marked)))
        for number, kind, about_clean, count in sorted(differing):
            where = "clean or not" if about_clean else "where"
            self._add_fault("disagreeing_labels", number, f"{count} annotations ({kind}) that differ", kind=where)
        self._tally.looked("disagreeing_labels", "", texts)
        if not texts:
            self._not_looked_for["disagreeing_labels"] = "no text has several annotations of one kind"
        return tuple(each.agreement(*key) for key, each in sorted(sums.items()))

    def _copies(self) -> Iterator[tuple[int, list[Sample]]]:
        """Rows with several annotations, and the rows of each text that occurs more than once, by their first row."""
        repeated = list(_repeated_keys(self._index.texts))
        in_several = np.zeros(len(self._index.texts), np.bool_)
        in_several[[row for group in repeated for row in group]] = True
        for number, row in enumerate(self._spool):
            if not in_several[number] and len(row.sample.annotations) > 1:
                yield number, [row.sample]
        for group in repeated:
            yield group[0], [self._sample(number) for number in group[:_MOST]]

    def _foreign(self) -> None:
        """Rows that share a passage with responses in other languages, if it should be in the response's language."""
        index = self._index
        tags_of: dict[int, str] = {}
        for group in _repeated_keys(index.passages):
            owners = [int(index.owners[entry]) for entry in group if index.own[entry]]
            rows = [row for row in owners if index.languages[row]]
            tags = sorted({index.language_names[index.languages[row]] for row in rows})
            if len(tags) > 1:
                tags_of |= dict.fromkeys(rows, ", ".join(tags))
        for row, named in sorted(tags_of.items()):
            text = self._sample(row).evidence[0].text
            self._add_fault("foreign_reference", row, f"one reference for {named}", kind=named, text=text)

    def _glue(self) -> None:
        """Third pass: joins in glued spans, which need the words of all texts."""
        first = self._first
        if not first.glue.wanted:
            self._not_looked_for["glued_span"] = "no spans are of the types entity or relation"
            return
        for number, row in self._rows("Looking for seams"):
            path = first.files[row.file].path
            for span, seam, annotator in first.glue.look(row.sample):
                self._tally.looked("glued_span", path, layer=annotator)
                if seam is not None:
                    text = row.sample.response[span.start : span.end]
                    shown = text if seam.at is None else f"{text[: seam.at]}|{text[seam.at :]}"
                    fault = Fault("glued_span", f"told by {seam.why}", seam.why, shown, layer=annotator)
                    first.add_fault(fault, number, row.sample, path)

    def _clean(self, clean: CleanedCopy, near_texts: Groups) -> _CleanedAccount:
        keys = self._index.texts  # a group of near-duplicates has the key of its first row
        groups = {int(keys[row]): int(keys[group[0]]) for group in near_texts for row in group}
        with ExitStack() as stack:
            cleaner = _Cleaner(clean, self._first, groups, stack)
            for number, row in self._rows("Writing the cleaned copy"):
                cleaner.take(number, row)
        account = cleaner.account
        account.repairs, account.reasons = (Counter(dict(c.most_common())) for c in (account.repairs, account.reasons))
        return account


def _first_of(keys: UInt64s) -> Bools:
    """Whether each key occurs for the first time; 0 is not a key."""
    first = np.zeros(len(keys), np.bool_)
    first[np.unique(keys, return_index=True)[1]] = True
    first[keys == 0] = False
    return first


# Repetitions, and common passages of files, by the hashes of the index.


def _repeated_keys(keys: UInt64s) -> Iterator[list[int]]:
    """Indices of keys that occur more than once, one group at a time, in order inside each; 0 is not a key."""
    order = np.argsort(keys, kind="stable")
    for start, end in equal_runs(keys[order]):
        if keys[order[start]]:
            yield order[start:end].tolist()


def _members(keys: UInt64s, near: Groups) -> tuple[Groups, Groups]:
    """Indices of each key that occurs more than once; groups of near-duplicates with all rows that have their keys."""
    by_key = {int(keys[group[0]]): group for group in _repeated_keys(keys)}
    return list(by_key.values()), [
        [index for first in group for index in by_key.get(int(keys[first]), [first])] for group in near
    ]


def _shared_references(index: Index, files: Sequence[str]) -> tuple[_SharedReferences, ...]:
    """Pairs of files with common passages, most first; `files` has their names."""
    shared = Counter[tuple[int, int]]()
    foreign = set[tuple[int, int]]()
    own_file = index.files[index.owners].astype(np.int64)
    distinct = np.unique(np.stack([index.passages, own_file.astype(np.uint64)], axis=1), axis=0)
    counts = np.bincount(distinct[:, 1].astype(np.int64), minlength=len(files))
    for group in _repeated_keys(index.passages):
        by_file = defaultdict[int, set[int]](set)
        for entry in group:
            language = int(index.languages[index.owners[entry]]) if index.own[entry] else 0
            by_file[int(own_file[entry])].add(language)
        for pair in combinations(sorted(by_file), 2):
            shared[pair] += 1
            first, second = by_file[pair[0]] - {0}, by_file[pair[1]] - {0}
            if first and second and not first & second:
                foreign.add(pair)
    return tuple(
        _SharedReferences(
            files[a], files[b], count, count / max(1, min(int(counts[a]), int(counts[b]))), (a, b) in foreign
        )
        for (a, b), count in shared.most_common()
    )


# Several annotations of one text, by the same kind of annotator.


_MOST = 64  # maximum number of annotations of one text that are compared


class AgreementSums:
    """Sums over the texts of one language and kind of annotator."""

    def __init__(self) -> None:
        self._counts = Counter[str]()
        self._overlaps = 0.0
        self._coincidences = np.zeros((2, 2))

    def add(self, response: str, annotations: Sequence[Annotation]) -> bool:
        """Add several annotations of one text; returns whether all have the same spans."""
        names = sorted({span.type or "" for annotation in annotations for span in annotation.spans or ()})
        inside = np.zeros((len(annotations), len(names), len(response)), np.bool_)
        for number, annotation in enumerate(annotations):
            for span in annotation.spans or ():
                inside[number, names.index(span.type or ""), span.start : span.end] = True
        types = inside[:, :, [not char.isspace() for char in response]]
        marks: Bools = np.asarray(types.any(axis=1))
        pairs, same = list(combinations(range(len(annotations)), 2)), 0
        for first, second in pairs:
            shared = int((marks[first] & marks[second]).sum())
            marked = int(marks[first].sum() + marks[second].sum())
            self._overlaps += 2 * shared / marked if marked else 0.0
            typed = int((types[first] & types[second]).any(axis=0).sum())
            self._counts.update(overlapping=int(marked > 0), both=shared, typed=typed)
            same += 2 * shared == marked
        self._counts.update(texts=1, annotations=len(annotations), pairs=len(pairs), same=same)
        self._coincidences += coincidences(marks.astype(np.int64), 2)
        return same == len(pairs)

    def agreement(self, language: str, kind: str) -> _Agreement:
        """The agreement measures."""
        counts, coefficient = self._counts, float(alpha(self._coincidences))
        return _Agreement(
            language,
            kind,
            counts["texts"],
            counts["annotations"],
            counts["pairs"],
            counts["same"],
            self._overlaps / counts["overlapping"] if counts["overlapping"] else None,
            None if np.isnan(coefficient) else coefficient,
            counts["typed"] / counts["both"] if counts["both"] else None,
        )
