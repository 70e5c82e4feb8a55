"""What occurs more than once: rows, texts and references, inside splits and across them."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from veriglot.build.checking.agreement import AgreementSums
from veriglot.build.checking.findings import SharedReferences, SplitLeak
from veriglot.build.checking.index import groups_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from veriglot.build.checking.findings import Agreement
    from veriglot.build.checking.index import Index
    from veriglot.build.checking.splits import Splits
    from veriglot.build.checking.spool import Row, Spool
    from veriglot.records import Annotation

__all__ = ["Disagreement", "Leaks", "Repeats", "foreign_passages", "repeated_rows", "shared_references"]

_LARGEST = 64  # annotations of one text that are held against each other


def repeated_rows(keys: NDArray[np.uint64]) -> Iterator[tuple[int, int]]:
    """Each row that occurred before, with the first row that it repeats."""
    for group in groups_of(keys):
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
        kept = min(splits, key=self._splits.rank)
        for row in present:
            own = int(self._index.splits[row])
            if own not in (0, kept) and row not in self.rows:
                self.rows.add(row)
                self._pairs[check, own, kept] += 1
                yield row, self._splits.names[kept]

    def table(self) -> tuple[SplitLeak, ...]:
        """What splits share, most first of each check."""
        names = self._splits.names
        return tuple(
            SplitLeak(check, names[own], names[kept], count)
            for (check, own, kept), count in sorted(self._pairs.items(), key=lambda item: (item[0][0], -item[1]))
        )


def foreign_passages(index: Index) -> Iterator[list[int]]:
    """Rows whose responses are in different languages and that have one passage, a passage a time.

    Passages that are said to be in another language than the response, and sources of translations, do not count.
    """
    for group in groups_of(index.passages):
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
    for group in groups_of(index.passages):
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


class Disagreement(NamedTuple):
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

    def alone(self, place: int, row: Row) -> Iterator[Disagreement]:
        """The annotations of a row whose text does not occur again."""
        yield from self._compare(place, [row])

    def together(self) -> Iterator[Disagreement]:
        """Texts that occur in several rows: rows are read again, a text a time."""
        for group in groups_of(self._index.texts):
            rows = [self._spool[int(place)] for place in group[:_LARGEST]]
            yield from self._compare(int(group[0]), rows)

    def agreement(self) -> tuple[Agreement, ...]:
        """The figures by language and kind."""
        return tuple(sums.agreement(*key) for key, sums in sorted(self._sums.items()))

    def _compare(self, place: int, rows: Sequence[Row]) -> Iterator[Disagreement]:
        first = rows[0].sample
        same_text = [row.sample for row in rows if row.sample.response == first.response]
        by_kind: dict[str, list[Annotation]] = defaultdict(list)
        for sample in same_text:
            for one in sample.annotations:
                if one.spans is not None:
                    by_kind[one.kind].append(one)
        for kind, said in by_kind.items():
            if len(said) < 2:
                continue
            self.texts += 1
            sums = self._sums[first.language or "", kind]
            if not sums.add(first.response, said[:_LARGEST]):
                clean = sum(not one.spans for one in said)
                yield Disagreement(place, kind, 0 < clean < len(said), len(said))
