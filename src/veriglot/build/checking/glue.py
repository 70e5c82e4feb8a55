"""Glued spans of a whole data set: learn each language, look at each replaced span, keep where the seams are."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from veriglot.build.checking.repairs import without_ranges
from veriglot.build.checking.seams import Seam, SeamFinder
from veriglot.records import Kind
from veriglot.text import fold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.records import Sample, Span

__all__ = ["Glue", "GluedSpan"]

_REPLACING = frozenset({"entity", "relation"})
"""Types of spans in which one wording took the place of another; the others were put in as they are."""


class GluedSpan(NamedTuple):
    """A span with a seam, and who marked it."""

    span: Span
    seam: Seam
    annotator: str
    kind: Kind


class Glue:
    """Finds glued spans; one finder a language."""

    def __init__(self) -> None:
        self._finders: dict[str, SeamFinder] = defaultdict(SeamFinder)
        self._wanted: set[str] = set()

    def want(self, sample: Sample) -> None:
        """Note that the language of a sample has replaced spans, so that its texts will be learnt."""
        if any(True for _ in _replaced(sample)):
            self._wanted.add(_base(sample))

    @property
    def wanted(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self._wanted)

    def learn_passage(self, sample: Sample, text: str) -> None:
        """Take in a passage of evidence."""
        if _base(sample) in self._wanted:
            self._finders[_base(sample)].learn(text, sample.language)

    def learn_response(self, sample: Sample) -> None:
        """Take in a response, without what anybody marked in it."""
        if _base(sample) not in self._wanted:
            return
        place = 0
        spans = sorted((span.start, span.end) for one in sample.annotations for span in one.spans or ())
        for start, end in [*spans, (len(sample.response), len(sample.response))]:
            if start > place:
                self._finders[_base(sample)].learn(sample.response[place:start], sample.language)
            place = max(place, end)

    def look(self, sample: Sample) -> Iterator[tuple[GluedSpan | None, str, Kind]]:
        """Each replaced span: the seam in it or None, and who marked it."""
        replaced = list(_replaced(sample))
        if not replaced:
            return
        reference = fold("\n".join(passage.text for passage in sample.evidence))
        finder = self._finders[_base(sample)]
        for span, annotator, kind in replaced:
            seam = finder.find(sample.response[span.start : span.end], reference, sample.language)
            yield (None if seam is None else GluedSpan(span, seam, annotator, kind)), annotator, kind

    def mended(self, sample: Sample) -> tuple[Sample, int] | None:
        """The sample without the old words in its glued spans, and how many were cut; None where that is not safe.

        Only what models labelled is mended: people marked the text as it stands. A seam is cut where it is known and
        the old text is, by the reference or by the language's words.
        """
        found = [glued for glued, _, _ in self.look(sample) if glued is not None]
        if not found:
            return sample, 0
        if any(one.kind is not Kind.MODEL for one in sample.annotations):
            return None
        reference = fold("\n".join(passage.text for passage in sample.evidence))
        finder = self._finders[_base(sample)]
        ranges = []
        for span, seam, _, _ in found:
            old = "" if seam.at is None else fold(sample.response[span.start : span.start + seam.at])
            if seam.at is None or not (seam.why == "numbers" or old in reference or finder.knows(old, sample.language)):
                return None
            ranges.append((span.start, span.start + seam.at))
        mended = without_ranges(sample, ranges)
        if mended is None or any(glued is not None for glued, _, _ in self.look(mended)):
            return None
        return mended, len(found)


def _replaced(sample: Sample) -> Iterator[tuple[Span, str, Kind]]:
    for one in sample.annotations:
        for span in one.spans or ():
            if span.type in _REPLACING:
                yield span, one.annotator, one.kind


def _base(sample: Sample) -> str:
    return (sample.language or "").partition("-")[0]
