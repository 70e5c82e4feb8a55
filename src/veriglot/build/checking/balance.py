"""Class balance: how much is labelled, clean and marked, as which types, in which languages."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from veriglot.build.checking.findings import Example, LabelSet
from veriglot.errors import UnknownNameError
from veriglot.metrics.marks import covered
from veriglot.records import Taxonomy, taxonomy
from veriglot.records.languages import languages
from veriglot.text import word_bounds

if TYPE_CHECKING:
    from veriglot.build.checking.tally import Tally
    from veriglot.records import Annotation, Sample

__all__ = ["Balance"]

_FEWEST = 20  # labelled responses from which a set of labels is judged
_HARDLY = 0.05  # share of clean responses
_DENSE = 0.25  # share of marked words
_SPANS = 100  # from which types are judged
_RARE = 0.02
_WHO = {"human": "people", "model": "models"}
_PAPERS = {"mfava": "mfava", "mfava-queries": "mfava", "halluverse": "halluverse", "hat": "hat"}


@dataclass
class _Set:
    responses: int = 0
    clean: int = 0
    words: int = 0
    marked: int = 0
    types: Counter[str] = field(default_factory=Counter)


class Balance:
    """Counts labels, sample by sample."""

    def __init__(self) -> None:
        self._sets: dict[tuple[str, str, str, str, str], _Set] = defaultdict(_Set)
        self._languages: dict[str, set[str]] = defaultdict(set)

    def add(self, sample: Sample, file: str, format_name: str) -> None:
        """Count the labels of a sample."""
        if sample.language is not None:
            self._languages[format_name].add(sample.language.partition("-")[0])
        words = None
        for one in sample.annotations:
            if one.spans is None or not sample.response.strip():
                continue
            if words is None:
                words = word_bounds(sample.response, sample.language)
            into = self._sets[file, one.annotator, one.kind, one.taxonomy, sample.language or ""]
            marked = [span for span in one.spans if span.type not in _entry(one.taxonomy).clean]
            into.responses += 1
            into.clean += not marked
            into.types.update(span.type or "" for span in marked)
            into.words += len(words)
            into.marked += _marked_words(one, len(sample.response), words)

    def sets(self) -> tuple[LabelSet, ...]:
        """Every set of labels, as they appeared."""
        return tuple(
            LabelSet(*key, found.responses, found.clean, found.words, found.marked, dict(found.types.most_common()))
            for key, found in self._sets.items()
        )

    def judge(self, tally: Tally) -> dict[str, str]:
        """Count what is out of balance; a set that is too small to tell is not judged.

        People are judged together, and so are models; where one annotator is `gold`, that one alone.

        Returns:
            For each check that was not made of every set, why.
        """
        clean = _Judged("labelled rows", _FEWEST)
        types = _Judged("spans", _SPANS)
        together: dict[tuple[str, str, str], list[LabelSet]] = defaultdict(list)
        for one in self.sets():
            together[one.file, one.kind, one.taxonomy].append(one)
        for (file, kind, name), parts in together.items():
            settled = [one for one in parts if one.annotator == "gold"]
            names = {one.annotator for one in settled or parts}
            said_by = names.pop() if len(names) == 1 else _WHO.get(kind, str(kind))
            _judge_clean(tally, file, said_by, settled or parts, clean)
            _judge_types(tally, file, said_by, name, settled or parts, types)
        self._judge_languages(tally)
        judged = {"no_clean_rows": clean, "dense_marks": clean, "missing_types": types, "rare_types": types}
        found = {name: why for name, one in judged.items() if (why := one.reason()) is not None}
        if not tally.looked_at("absent_languages"):
            found["absent_languages"] = "no file is in the format of a paper that names its languages"
        return found

    def _judge_languages(self, tally: Tally) -> None:
        for format_name, present in self._languages.items():
            paper = _PAPERS.get(format_name)
            if paper is None:
                continue
            covered_ = {entry.base for entry in languages().values() if paper in entry.sources}
            where = f"all files in the format {format_name}"
            tally.looked("absent_languages", where, len(covered_))
            for tag in sorted(covered_ - present):
                tally.found("absent_languages", where, kind=tag)
            if covered_ - present:
                names = ", ".join(sorted(covered_ - present))
                tally.example("absent_languages", Example(where, f"covered by {paper} and absent: {names}"))


@dataclass
class _Judged:
    """Of how many sets of labels a check was made, and how much there was of the others."""

    unit: str
    least: int
    sets: int = 0
    few: list[int] = field(default_factory=list)

    def enough(self, count: int) -> bool:
        """Note a set with so many of the unit; whether it is judged."""
        self.sets += 1
        if count < self.least:
            self.few.append(count)
        return count >= self.least

    def reason(self) -> str | None:
        """Why the check was not made, or of which sets it was not; None where it was made of all."""
        if not self.sets:
            return "no set of labels here can be judged by it"
        if not self.few:
            return None
        most = f"{max(self.few):,}" if len(self.few) == 1 else f"at most {max(self.few):,}"
        some = "" if len(self.few) == self.sets else f" in {len(self.few):,} of {self.sets:,} sets of labels"
        return f"too few {self.unit}{some} ({most}; from {self.least:,} on)"


def _judge_clean(tally: Tally, file: str, annotator: str, parts: list[LabelSet], judged: _Judged) -> None:
    responses, clean = sum(one.responses for one in parts), sum(one.clean for one in parts)
    words, marked = sum(one.words for one in parts), sum(one.marked_words for one in parts)
    tally.looked("no_clean_rows", file, responses)
    tally.looked("dense_marks", file, words)
    if not judged.enough(responses) or not any(one.types for one in parts):
        return
    if clean < _HARDLY * responses:
        tally.found("no_clean_rows", file, responses, kind=annotator)
        detail = f"{clean:,} of {responses:,} responses that {annotator} labelled have no span"
        tally.example("no_clean_rows", Example(file, detail))
    if marked >= _DENSE * words:
        tally.found("dense_marks", file, marked, kind=annotator)
        detail = f"{marked / words:.0%} of the words are marked by {annotator}"
        tally.example("dense_marks", Example(file, detail))


def _judge_types(tally: Tally, file: str, annotator: str, name: str, parts: list[LabelSet], judged: _Judged) -> None:
    entry = _entry(name)
    expected = [type_ for type_ in entry.types if type_ not in entry.clean]
    counts: Counter[str] = Counter()
    for one in parts:
        counts.update(one.types)
    total = counts.total()
    if len(expected) < 2 or set(counts) == {""} or not judged.enough(total):
        return
    for check in ("missing_types", "rare_types"):
        tally.looked(check, file, len(expected))
    for type_ in expected:
        if not counts[type_]:
            tally.found("missing_types", file, kind=type_)
            tally.example("missing_types", Example(file, f"{annotator} never marked {type_}"))
        elif counts[type_] < _RARE * total:
            tally.found("rare_types", file, kind=type_)
            detail = f"{counts[type_]:,} of {total:,} spans of {annotator} are {type_}"
            tally.example("rare_types", Example(file, detail))


def _entry(name: str) -> Taxonomy:
    try:
        return taxonomy(name)
    except UnknownNameError:
        return Taxonomy(source="", types={}, name=name)


def _marked_words(annotation: Annotation, length: int, words: np.ndarray[tuple[int, ...], np.dtype[np.int32]]) -> int:
    """Words that any span touches, those of types that mark support aside."""
    clean = _entry(annotation.taxonomy).clean
    places = [(span.start, span.end) for span in annotation.spans or () if span.type not in clean]
    if not places or not len(words):
        return 0
    inside = np.concatenate([[0], np.cumsum(covered(length, np.array(places, np.int32)))])
    return int((inside[words[:, 1]] > inside[words[:, 0]]).sum())
