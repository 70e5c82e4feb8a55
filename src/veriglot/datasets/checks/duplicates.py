"""Hashes of all rows and passages, what repeats or is shared by them, and how far annotations of one text agree."""

from __future__ import annotations

import hashlib
import re
from array import array
from collections import Counter, defaultdict
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from veriglot.datasets.checks.findings import Agreement, SharedReferences
from veriglot.datasets.near_duplicates import equal_runs
from veriglot.metrics.agreement import alpha, coincidences
from veriglot.records import Task
from veriglot.text.normalization import fold

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from veriglot.datasets.checks.scan import Spool
    from veriglot.records import Annotation, Sample

__all__ = ["Index", "Repeats", "foreign_passages", "letters_of", "members", "repeated_keys", "shared_references"]


# What is kept of every row: hashes of its text, labels and references, 40 bytes or so, however long the text.


_ENOUGH = 32.0  # letters of a text that nobody writes twice by chance
_BETWEEN = re.compile(r"[\W_]+")
_DENSE = 2.5  # what a letter counts that is a syllable or a word
_COLUMNS = {
    "texts": "Q", "long": "B", "whole": "Q", "files": "I", "splits": "H", "languages": "H",
    "passages": "Q", "owners": "I", "places": "H", "own": "B",
}  # fmt: skip


def letters_of(text: str) -> str:
    """Letters and digits of a text, folded: what two copies have in common whatever was done to their spaces."""
    return _BETWEEN.sub("", fold(text))


def _weighs_enough(letters: str) -> bool:
    """Whether a text is too long to occur twice by chance."""
    if len(letters) >= _ENOUGH:
        return True
    dense = sum("\u2e80" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7a3" for char in letters)
    return len(letters) + (_DENSE - 1) * dense >= _ENOUGH


def _hash(*parts: str) -> int:
    """64 bits, never 0; framed, so that joins cannot collide."""
    hasher = hashlib.blake2b(digest_size=8)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(4, "little"))
        hasher.update(data)
    return int.from_bytes(hasher.digest(), "little") or 1


class Index:
    """Hashes by row and by passage; `freeze` makes arrays of them.

    Attributes:
        texts: of each row's response, with its question and evidence where it is short; 0 where it is empty.
        long: whether the response alone made the hash.
        whole: of everything that a row says: question, evidence, response, labels.
        files, splits: numbers of each row's file and split.
        languages: number of each row's language, without its script; 0 where none is stated. `language_names` has them.
        passages: of each passage that is long enough.
        owners, places: which row each belongs to, and which of its passages it is.
        own: whether a passage is said, or has to be assumed, to be in the language of its response.
    """

    texts: NDArray[np.uint64]
    long: NDArray[np.bool_]
    whole: NDArray[np.uint64]
    files: NDArray[np.uint32]
    splits: NDArray[np.uint16]
    languages: NDArray[np.uint16]
    passages: NDArray[np.uint64]
    owners: NDArray[np.uint32]
    places: NDArray[np.uint16]
    own: NDArray[np.bool_]

    def __init__(self) -> None:
        self._columns = {name: array(code) for name, code in _COLUMNS.items()}
        self.language_names = [""]
        self._encode = msgspec.json.Encoder(order="deterministic").encode

    def add(self, sample: Sample, file: int, split: int) -> None:
        """Take in the next row."""
        row = len(self._columns["texts"])
        response, question = letters_of(sample.response), letters_of(sample.question or "")
        passages = [letters_of(passage.text) for passage in sample.evidence]
        is_long = _weighs_enough(response)
        context = () if is_long else (question, *passages)
        labels = self._encode(sample.annotations).decode()
        model = sample.generator.name if sample.generator is not None else ""
        base = _base(sample.language)
        if base not in self.language_names:
            self.language_names.append(base)
        self._append(
            texts=_hash(response, *context) if response else 0,
            long=is_long,
            whole=_hash(question, *passages, sample.response, model, labels),
            files=file,
            splits=split,
            languages=self.language_names.index(base),
        )
        for number, passage in enumerate(passages):
            if _weighs_enough(passage):
                stated = sample.evidence[number].language
                own = _base(stated) == base if stated else sample.task is not Task.TRANSLATION
                self._append(passages=_hash(passage), owners=row, places=min(number, 0xFFFF), own=own)

    def _append(self, **values: int) -> None:
        for name, value in values.items():
            self._columns[name].append(value)

    def freeze(self) -> None:
        """Make arrays; nothing can be added after it."""
        for name, column in self._columns.items():
            values = np.array(column)
            setattr(self, name, values.astype(np.bool_) if column.typecode == "B" else values)

    def by_language(self, rows: Sequence[int]) -> list[list[int]]:
        """Rows parted by the language of their responses."""
        parts: dict[int, list[int]] = defaultdict(list)
        for row in rows:
            parts[int(self.languages[row])].append(row)
        return list(parts.values())


def _base(tag: str | None) -> str:
    return (tag or "").partition("-")[0]


def repeated_keys(keys: NDArray[np.uint64]) -> Iterator[NDArray[np.int64]]:
    """Indices of keys that occur more than once, a group a time, in order inside each; 0 is no key."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    for start, end in equal_runs(ordered):
        if ordered[start]:
            yield order[start:end]


def members(keys: NDArray[np.uint64]) -> dict[int, list[int]]:
    """The places of each key that occurs more than once."""
    return {int(keys[group[0]]): group.tolist() for group in repeated_keys(keys)}


def foreign_passages(index: Index) -> Iterator[list[int]]:
    """Rows whose responses are in different languages and that have one passage, a passage a time.

    Passages that are said to be in another language than the response, and sources of translations, do not count.
    """
    for group in repeated_keys(index.passages):
        rows = index.owners[group[index.own[group]]]
        if len(set(index.languages[rows].tolist()) - {0}) > 1:
            yield [int(row) for row in rows if index.languages[row]]


def shared_references(index: Index, files: Sequence[str]) -> tuple[SharedReferences, ...]:
    """Pairs of files with passages in common, most first; `files` has their names."""
    shared: Counter[tuple[int, int]] = Counter()
    foreign: set[tuple[int, int]] = set()
    own_file = index.files[index.owners].astype(np.int64)
    distinct = np.unique(np.stack([index.passages, own_file.astype(np.uint64)], axis=1), axis=0)
    counts = np.bincount(distinct[:, 1].astype(np.int64), minlength=len(files))
    for group in repeated_keys(index.passages):
        by_file: dict[int, set[int]] = defaultdict(set)
        for entry in group:
            language = int(index.languages[index.owners[entry]]) if index.own[entry] else 0
            by_file[int(own_file[entry])].add(language)
        for pair in combinations(sorted(by_file), 2):
            shared[pair] += 1
            first, second = by_file[pair[0]] - {0}, by_file[pair[1]] - {0}
            if first and second and not first & second:
                foreign.add(pair)
    return tuple(
        SharedReferences(
            files[a], files[b], count, count / max(1, min(int(counts[a]), int(counts[b]))), (a, b) in foreign
        )
        for (a, b), count in shared.most_common()
    )


# Several annotations of one text, by the same kind of annotator.


_MOST = 64  # annotations of one text that are held against each other


class AgreementSums:
    """Sums over the texts of one language and kind of annotator."""

    def __init__(self) -> None:
        self._texts = self._annotations = self._pairs = self._same = self._overlapping = self._both = self._typed = 0
        self._overlaps = 0.0
        self._coincidences = np.zeros((2, 2))

    def add(self, response: str, annotations: Sequence[Annotation]) -> bool:
        """Take in several annotations of one text; whether all marked the same places."""
        names = sorted({span.type or "" for annotation in annotations for span in annotation.spans or ()})
        inside = np.zeros((len(annotations), len(names), len(response)), np.bool_)
        for number, annotation in enumerate(annotations):
            for span in annotation.spans or ():
                inside[number, names.index(span.type or ""), span.start : span.end] = True
        types = inside[:, :, [not char.isspace() for char in response]]
        marks = types.any(axis=1)
        self._texts += 1
        self._annotations += len(annotations)
        same_before, pairs_before = self._same, self._pairs
        for first, second in combinations(range(len(annotations)), 2):
            shared = int((marks[first] & marks[second]).sum())
            marked = int(marks[first].sum() + marks[second].sum())
            if marked:
                self._overlaps += 2 * shared / marked
                self._overlapping += 1
            self._pairs += 1
            self._both += shared
            self._typed += int((types[first] & types[second]).any(axis=0).sum())
            self._same += 2 * shared == marked
        self._coincidences += coincidences(marks.astype(np.int64), 2)
        return self._same - same_before == self._pairs - pairs_before

    def agreement(self, language: str, kind: str) -> Agreement:
        """The figures."""
        coefficient = float(alpha(self._coincidences))
        return Agreement(
            language,
            kind,
            self._texts,
            self._annotations,
            self._pairs,
            self._same,
            self._overlaps / self._overlapping if self._overlapping else None,
            None if np.isnan(coefficient) else coefficient,
            self._typed / self._both if self._both else None,
        )


class Disagreement(NamedTuple):
    """A text whose annotations of one kind differ: its first row, the kind, and whether one of them is clean."""

    row: int
    kind: str
    about_clean: bool
    annotations: int


class Repeats:
    """Texts with several annotations of one kind, in one row or in several.

    Attributes:
        texts: how many there are.
        disagreements: where they differ, in order of the rows.
        agreement: the figures by language and kind.
    """

    def __init__(self, spool: Spool, index: Index) -> None:
        self._sums: dict[tuple[str, str], AgreementSums] = defaultdict(AgreementSums)
        self.texts = 0
        repeated = [group.tolist() for group in repeated_keys(index.texts)]
        again = np.zeros(len(index.texts), np.bool_)
        again[[row for group in repeated for row in group]] = True
        differing: list[Disagreement] = []
        for number, row in enumerate(spool):
            if not again[number] and len(row.sample.annotations) > 1:
                differing += self._compare(number, [row.sample])
        for group in repeated:
            differing += self._compare(group[0], [spool[number].sample for number in group[:_MOST]])
        self.disagreements = sorted(differing)
        self.agreement = tuple(sums.agreement(*key) for key, sums in sorted(self._sums.items()))

    def _compare(self, index: int, samples: Sequence[Sample]) -> Iterator[Disagreement]:
        first = samples[0]
        by_kind: dict[str, list[Annotation]] = defaultdict(list)
        for sample in samples:
            for annotation in sample.annotations:
                if sample.response == first.response and annotation.spans is not None:
                    by_kind[annotation.kind].append(annotation)
        for kind, marked in by_kind.items():
            if len(marked) < 2:
                continue
            self.texts += 1
            if not self._sums[first.language or "", kind].add(first.response, marked[:_MOST]):
                clean = sum(not annotation.spans for annotation in marked)
                yield Disagreement(index, kind, 0 < clean < len(marked), len(marked))
