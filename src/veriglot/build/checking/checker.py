"""Checks on data sets: what is wrong with labelled data before anything is trained or measured on it.

Rows are read once and lie on disk between passes; memory grows by about 150 bytes a row, whatever its length. What
needs the whole data set comes after the first pass: near-duplicates, leaks, references that files share, labels that
disagree, and glued spans, for which each language's words and letters are learnt from the data itself.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import veriglot
from veriglot.build.checking.cleaning import Cleaner, Cleaning
from veriglot.build.checking.faults import Fault
from veriglot.build.checking.findings import CheckReport, Example, checks, checks_version
from veriglot.build.checking.index import groups_of
from veriglot.build.checking.near import NEAR, NearIndex
from veriglot.build.checking.reading import FirstPass, find_files
from veriglot.build.checking.repeats import Leaks, Repeats, foreign_passages, repeated_rows, shared_references
from veriglot.build.checking.splits import Splits, Splitting
from veriglot.build.checking.spool import Spool
from veriglot.build.checking.tally import shortened
from veriglot.build.sampling.shingles import SHINGLES_VERSION
from veriglot.formats import Report
from veriglot.provenance import signature
from veriglot.run.watch import Silent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.build.checking.findings import Agreement, Cleaned
    from veriglot.build.checking.index import Index
    from veriglot.run.watch import Watch

__all__ = ["check"]


def check(
    data: Sequence[str],
    *,
    format: str | None = None,  # noqa: A002  the word that users type
    language: str | None = None,
    splits: Splitting = "names",
    near: float = NEAR,
    clean: Cleaning | None = None,
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
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="veriglot-check-", dir=folder)))
        return _Checker(place, splits, near, clean, watch, stack).run(data, format, language)


@dataclass
class _Near:
    """Groups of near-duplicates: of rows by their responses, and of rows by their passages."""

    text: list[list[int]]
    reference: list[list[int]]


class _Checker:
    def __init__(
        self, folder: Path, splits: Splitting, near: float, clean: Cleaning | None, watch: Watch, stack: ExitStack
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
            first.index, [one.path for one in checked], [tuple(one.languages) for one in checked]
        )
        cleaned = None if clean is None else self._clean(clean, near)
        found = first.tally.findings()
        names = {one.check for one in found}
        self._not_looked_for.update({name: why for name, why in few.items() if name not in names})
        self._nothing_to_look_at(names)
        return CheckReport(
            files=checked,
            findings=found,
            passed=tuple(name for name in checks() if name not in names and name not in self._not_looked_for),
            not_looked_for=self._not_looked_for,
            labels=first.balance.sets(),
            agreement=agreement,
            shared=shared,
            leaks=leaks.table(),
            unread=dict(self._report.unread),
            near=self._near,
            signature=self._signature(),
            version=veriglot.__version__,
            cleaned=cleaned,
        )

    def _nothing_to_look_at(self, found: set[str]) -> None:
        """Note the checks that looked at nothing: they did not pass."""
        if not self._first.index.long.any():
            self._not_looked_for.setdefault("near_text", "no response has the 32 letters from which it is compared")
        for name, check_ in checks().items():
            if name not in found and not self._first.tally.looked_at(name):
                self._not_looked_for.setdefault(name, f"no {check_.unit} here could have it")

    def _signature(self) -> str:
        return signature(
            check=checks_version(), data=self._first.data_digest(), splits=self._splits.how, near=self._near,
            shingles=SHINGLES_VERSION, version=veriglot.__version__,
        )  # fmt: skip

    def _learn(self) -> _Near:
        """Second pass: each different text once, for near-duplicates and for what a language's words are."""
        index = self._first.index
        new_text = _first_of(index.texts) & index.long
        new_passage = _first_of(index.passages)
        texts, references = (
            self._stack.enter_context(closing(NearIndex(self._folder, name))) for name in ("texts", "references")
        )
        entry = 0
        self._watch.begin("Comparing", len(self._spool))
        for place, row in enumerate(self._spool):
            self._watch.advance()
            if new_text[place]:
                texts.add(row.sample.response, place)
                self._first.glue.learn_response(row.sample)
            while entry < len(index.owners) and index.owners[entry] == place:
                if new_passage[entry]:
                    passage = row.sample.evidence[int(index.places[entry])].text
                    references.add(passage, entry)
                    self._first.glue.learn_passage(row.sample, passage)
                entry += 1
        found = _Near(
            list(texts.groups(self._responses, self._near)), list(references.groups(self._passages, self._near))
        )
        for name, one in (("near_text", texts), ("leaked_near_reference", references)):
            if one.uncompared:
                self._watch.say(f"{one.uncompared:,} texts share a bucket with too many to be compared ({name})")
        return found

    def _responses(self, places: list[int]) -> list[str]:
        return [self._spool[place].sample.response for place in places]

    def _passages(self, entries: list[int]) -> list[str]:
        index = self._first.index
        return [self._spool[int(index.owners[e])].sample.evidence[int(index.places[e])].text for e in entries]

    def _found(self, check: str, place: int, detail: str, *, kind: str | None = None, text: str | None = None) -> None:
        row = self._spool[place]
        fault = Fault(check, detail, kind, row.sample.response if text is None else text)
        self._first.found(fault, place, row.sample, self._first.files[row.file].path)

    def _leaks(self, near: _Near) -> Leaks:
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
            "leaked_near_text": [[r for one in group for r in _all(by_text, index.texts, one)] for group in near.text],
            "leaked_reference": [part for rows in passages for part in _by_language(rows, index)],
            "leaked_near_reference": [
                part
                for group in near.reference
                for part in _by_language(
                    [int(index.owners[e]) for one in group for e in _all(by_passage, index.passages, one)], index
                )
            ],
            "leaked_reference_across": passages,
        }
        for name, several in groups.items():
            for place in range(len(self._spool)):
                if index.splits[place]:
                    first.tally.looked(name, first.files[int(index.files[place])].path)
            for rows in several:
                for place, kept in leaks.among(name, rows):
                    own = self._splits.names[int(index.splits[place])]
                    self._found(name, place, f"in {own}, and in {kept} too", kind=f"{own} in {kept}")
        return leaks

    def _repeated(self, near: _Near) -> None:
        index = self._first.index
        copied = dict(repeated_rows(index.whole))
        for place, before in copied.items():
            self._found("copied_row", place, f"the same as {self._spool[before].sample.id}")
        for rows in groups_of(index.texts):
            self._first.tally.kind("repeated_text", f"texts that occur {len(rows)} times")
            first = self._spool[int(rows[0])].sample.id
            for place in rows[1:].tolist():
                self._found("repeated_text", place, f"the text of {first}")
        for group in near.text:
            first = self._spool[group[0]].sample.id
            for place in group[1:]:
                self._found("near_text", place, f"nearly the text of {first}")

    def _disagreements(self) -> tuple[Agreement, ...]:
        first, index = self._first, self._first.index
        repeats = Repeats(self._spool, index)
        several = _repeating(index.texts)
        found = []
        for at, row in enumerate(self._spool):
            if not several[at] and len(row.sample.annotations) > 1:
                found += list(repeats.alone(at, row))
        found += list(repeats.together())
        for one in sorted(found):
            row = self._spool[one.row]
            path = first.files[row.file].path
            first.tally.found("disagreeing_labels", path, kind="clean or not" if one.about_clean else "where")
            detail = f"{one.annotations} annotations ({one.kind}) that differ"
            first.tally.example(
                "disagreeing_labels", Example(path, detail, id=row.sample.id, text=shortened(row.sample.response))
            )
        first.tally.looked("disagreeing_labels", "", repeats.texts)
        if not repeats.texts:
            self._not_looked_for["disagreeing_labels"] = "no text has several annotations of one kind"
        return repeats.agreement()

    def _foreign(self) -> None:
        index = self._first.index
        found: dict[int, str] = {}
        for rows in foreign_passages(index):
            tags = sorted({index.language_names[int(index.languages[row])] for row in rows})
            found.update(dict.fromkeys(rows, ", ".join(tags)))
        for place, named in sorted(found.items()):
            text = self._spool[place].sample.evidence[0].text
            self._found("foreign_reference", place, f"one reference for {named}", kind=named, text=text)

    def _glue(self) -> None:
        """Third pass: seams, which need the words of all texts."""
        first = self._first
        if not first.glue.wanted:
            self._not_looked_for["glued_span"] = "no spans are of the types entity or relation"
            return
        self._watch.begin("Looking for seams", len(self._spool))
        for place, row in enumerate(self._spool):
            self._watch.advance()
            path = first.files[row.file].path
            for glued, layer, _ in first.glue.look(row.sample):
                first.tally.looked("glued_span", path, layer=layer)
                if glued is not None:
                    if "glued_span" in first.drop:
                        first.reasons.setdefault(place, set()).add("glued_span")
                    span, seam, _, _ = glued
                    text = row.sample.response[span.start : span.end]
                    shown = text if seam.at is None else f"{text[: seam.at]}|{text[seam.at :]}"
                    first.tally.found("glued_span", path, kind=seam.why, layer=layer)
                    first.tally.example(
                        "glued_span", Example(path, f"told by {seam.why}", id=row.sample.id, text=shortened(shown))
                    )

    def _clean(self, clean: Cleaning, near: _Near) -> Cleaned:
        self._watch.begin("Writing the cleaned copy", len(self._spool))
        groups = _group_names(self._first.index.texts, near.text)
        with Cleaner(clean, self._first, groups) as cleaner:
            for place, row in enumerate(self._spool):
                self._watch.advance()
                cleaner.take(place, row)
            return cleaner.account()


def _first_of(keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Whether a key is met for the first time; 0 is no key."""
    first = np.zeros(len(keys), np.bool_)
    first[np.unique(keys, return_index=True)[1]] = True
    first[keys == 0] = False
    return first


def _repeating(keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    several: NDArray[np.bool_] = counts[place] > 1
    several[keys == 0] = False
    return several


def _members(keys: NDArray[np.uint64]) -> dict[int, list[int]]:
    """The places of each key that occurs more than once."""
    return {int(keys[group[0]]): [int(place) for place in group] for group in groups_of(keys)}


def _by_language(rows: Sequence[int], index: Index) -> list[list[int]]:
    """Rows parted by the language of their responses."""
    parts: dict[int, list[int]] = {}
    for row in rows:
        parts.setdefault(int(index.languages[row]), []).append(row)
    return list(parts.values())


def _all(members: dict[int, list[int]], keys: NDArray[np.uint64], place: int) -> list[int]:
    """The places that have the key of one place."""
    return members.get(int(keys[place]), [place])


def _group_names(keys: NDArray[np.uint64], near: Sequence[Sequence[int]]) -> dict[int, int]:
    """For the keys of near-duplicates the key of the first of them; other texts are a group by themselves."""
    return {int(keys[place]): int(keys[group[0]]) for group in near for place in group}
