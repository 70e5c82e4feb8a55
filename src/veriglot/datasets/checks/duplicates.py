"""Repeated rows, texts and references, inside splits and across them, and how far annotations of one text agree."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from veriglot.datasets.checks.findings import Agreement, SharedReferences, SplitLeak
from veriglot.datasets.checks.rows import repeated_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from veriglot.datasets.checks.rows import Index
    from veriglot.datasets.checks.scan import Row, Splits, Spool
    from veriglot.records import Annotation

__all__ = ["Leaks", "Repeats", "foreign_passages", "repeated_rows", "shared_references"]


@dataclass
class AgreementSums:
    """Sums over the texts of one language and kind of annotator."""

    texts: int = 0
    annotations: int = 0
    pairs: int = 0
    same: int = 0
    overlaps: float = 0.0
    overlapping: int = 0
    both: int = 0
    typed: int = 0
    coincidences: NDArray[np.float64] | None = None

    def add(self, response: str, annotations: Sequence[Annotation]) -> bool:
        """Take in several annotations of one text; whether all marked the same places."""
        solid = np.array([not char.isspace() for char in response])
        marks = [_marked(annotation, len(response))[solid] for annotation in annotations]
        types = [_types(annotation, len(response))[:, solid] for annotation in self._in_one_order(annotations)]
        self.texts += 1
        self.annotations += len(annotations)
        agreed = True
        for first, second in combinations(range(len(annotations)), 2):
            agreed &= self._pair(marks[first], marks[second], types[first], types[second])
        counts = np.stack(marks).sum(axis=0, dtype=np.int64)
        self._coincide(counts, len(annotations))
        return agreed

    def _in_one_order(self, annotations: Sequence[Annotation]) -> list[_Typed]:
        names = sorted({span.type or "" for annotation in annotations for span in annotation.spans or ()})
        return [_Typed(annotation, names) for annotation in annotations]

    def _pair(
        self,
        first: NDArray[np.bool_],
        second: NDArray[np.bool_],
        types: NDArray[np.bool_],
        others: NDArray[np.bool_],
    ) -> bool:
        self.pairs += 1
        shared = int((first & second).sum())
        marked = int(first.sum() + second.sum())
        if marked:
            self.overlaps += 2 * shared / marked
            self.overlapping += 1
        self.both += shared
        self.typed += int((types & others).any(axis=0).sum())
        same = 2 * shared == marked
        self.same += same
        return same

    def _coincide(self, marked: NDArray[np.int64], annotators: int) -> None:
        if self.coincidences is None:
            self.coincidences = np.zeros((2, 2))
        unmarked = annotators - marked
        share = 1 / (annotators - 1)
        self.coincidences[0, 0] += share * float((unmarked * (unmarked - 1)).sum())
        self.coincidences[1, 1] += share * float((marked * (marked - 1)).sum())
        mixed = share * float((marked * unmarked).sum())
        self.coincidences[0, 1] += mixed
        self.coincidences[1, 0] += mixed

    def agreement(self, language: str, kind: str) -> Agreement:
        """The figures."""
        return Agreement(
            language, kind, self.texts, self.annotations, self.pairs, self.same,
            self.overlaps / self.overlapping if self.overlapping else None,
            self._alpha(),
            self.typed / self.both if self.both else None,
        )  # fmt: skip

    def _alpha(self) -> float | None:
        """1 - observed / expected disagreement, nominal."""
        table = self.coincidences
        if table is None:
            return None
        values = table.sum(axis=1)
        total = float(values.sum())
        expected = float(values[0] * values[1]) / (total - 1) if total > 1 else 0.0
        return 1 - float(table[0, 1]) / expected if expected > 0 else None


@dataclass(frozen=True)
class _Typed:
    annotation: Annotation
    names: list[str]


def _marked(annotation: Annotation, length: int) -> NDArray[np.bool_]:
    inside = np.zeros(length, np.bool_)
    for span in annotation.spans or ():
        inside[span.start : span.end] = True
    return inside


def _types(typed: _Typed, length: int) -> NDArray[np.bool_]:
    """Which types each code point has, shape (types, length)."""
    inside = np.zeros((max(1, len(typed.names)), length), np.bool_)
    for span in typed.annotation.spans or ():
        inside[typed.names.index(span.type or ""), span.start : span.end] = True
    return inside


_LARGEST = 64  # annotations of one text that are held against each other


def repeated_rows(keys: NDArray[np.uint64]) -> Iterator[tuple[int, int]]:
    """Each row that occurred before, with the first row that it repeats."""
    for group in repeated_keys(keys):
        first = int(group[0])
        for row in group[1:]:
            yield int(row), first


class Leaks:
    """Rows that stand in two splits, each with the split where it stays: test, then dev, then the one that came first.

    Attributes:
        rows: the rows that leak by any check so far; a row is counted by the first check that finds it.
    """

    def __init__(self, index: Index, splits: Splits) -> None:
        self._index = index
        self._splits = splits
        self._pairs: Counter[tuple[str, int, int]] = Counter()
        self.rows: set[int] = set()

    def among(self, check: str, rows: Iterable[int]) -> Iterator[tuple[int, str]]:
        """Of rows that share something: those that leak, with the name of the split in which it stays."""
        present = sorted(set(rows))
        splits = {int(self._index.splits[row]) for row in present} - {0}
        if len(splits) < 2:
            return
        first = min(splits, key=self._splits.rank)
        for row in present:
            own = int(self._index.splits[row])
            if own not in (0, first) and row not in self.rows:
                self.rows.add(row)
                self._pairs[check, own, first] += 1
                yield row, self._splits.names[first]

    def table(self) -> tuple[SplitLeak, ...]:
        """What splits share, most first of each check."""
        names = self._splits.names
        return tuple(
            SplitLeak(check, names[own], names[first], count)
            for (check, own, first), count in sorted(self._pairs.items(), key=lambda item: (item[0][0], -item[1]))
        )


def foreign_passages(index: Index) -> Iterator[list[int]]:
    """Rows whose responses are in different languages and that have one passage, a passage a time.

    Passages that are said to be in another language than the response, and sources of translations, do not count.
    """
    for group in repeated_keys(index.passages):
        rows = index.owners[group[index.own[group]]]
        if len(set(index.languages[rows].tolist()) - {0}) > 1:
            yield [int(row) for row in rows if index.languages[row]]


def shared_references(
    index: Index, files: Sequence[str], languages: Sequence[Sequence[str]]
) -> tuple[SharedReferences, ...]:
    """Pairs of files with passages in common, most first.

    Args:
        index: of all rows.
        files: names of the files.
        languages: of the responses of each.
    """
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
            files[a], files[b], tuple(languages[a]), tuple(languages[b]), count,
            count / max(1, min(int(counts[a]), int(counts[b]))), (a, b) in foreign,
        )
        for (a, b), count in shared.most_common()
    )  # fmt: skip


class _Disagreement(NamedTuple):
    """A text whose annotations of one kind differ: its first row, the kind, and whether one of them is clean."""

    row: int
    kind: str
    about_clean: bool
    annotations: int


class Repeats:
    """Texts with several annotations of one kind, in one row or in several; agreement is summed as they pass."""

    def __init__(self, spool: Spool, index: Index) -> None:
        self._spool = spool
        self._index = index
        self._sums: dict[tuple[str, str], AgreementSums] = defaultdict(AgreementSums)
        self.texts = 0

    def alone(self, index: int, row: Row) -> Iterator[_Disagreement]:
        """The annotations of a row whose text does not occur again."""
        yield from self._compare(index, [row])

    def together(self) -> Iterator[_Disagreement]:
        """Texts that occur in several rows: rows are read again, a text a time."""
        for group in repeated_keys(self._index.texts):
            rows = [self._spool[int(index)] for index in group[:_LARGEST]]
            yield from self._compare(int(group[0]), rows)

    def agreement(self) -> tuple[Agreement, ...]:
        """The figures by language and kind."""
        return tuple(sums.agreement(*key) for key, sums in sorted(self._sums.items()))

    def _compare(self, index: int, rows: Sequence[Row]) -> Iterator[_Disagreement]:
        first = rows[0].sample
        same_text = [row.sample for row in rows if row.sample.response == first.response]
        by_kind: dict[str, list[Annotation]] = defaultdict(list)
        for sample in same_text:
            for annotation in sample.annotations:
                if annotation.spans is not None:
                    by_kind[annotation.kind].append(annotation)
        for kind, marked in by_kind.items():
            if len(marked) < 2:
                continue
            self.texts += 1
            sums = self._sums[first.language or "", kind]
            if not sums.add(first.response, marked[:_LARGEST]):
                clean = sum(not annotation.spans for annotation in marked)
                yield _Disagreement(index, kind, 0 < clean < len(marked), len(marked))
