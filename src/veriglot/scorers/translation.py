"""Scores from the form of a translation: its length, and n-grams that it repeats more often than its source."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

from veriglot.errors import UsageError
from veriglot.judging.base import NotScored, text_language
from veriglot.plugins import read_package_data
from veriglot.records import Direction, Sample, Status
from veriglot.records.languages import find_language
from veriglot.records.settings import Record
from veriglot.scorers.base import RawScore, SampleScorer
from veriglot.signatures import signature
from veriglot.text.normalization import fold
from veriglot.text.segmentation import word_bounds

if TYPE_CHECKING:
    from collections.abc import Iterable


__all__ = []

_MIN_SMOOTHING = 1e-9


class _Lengths(Record):
    relative: dict[str, float]


@cache
def _lengths() -> _Lengths:
    return read_package_data(__package__, "lengths.json", _Lengths)


def usual_ratio(source: str, target: str) -> float | None:
    """The usual ratio of a text's length in `target` to its length in `source`; None if it was not measured.

    Lengths are code points without white space. The table was measured on the Universal Declaration of Human Rights
    (median over its articles); other kinds of text differ from it by up to a fifth in most languages.
    """
    lengths = [_length(tag) for tag in (source, target)]
    return lengths[1] / lengths[0] if lengths[0] and lengths[1] else None


def _length(tag: str) -> float | None:
    entry = find_language(tag)
    relative = _lengths().relative
    return None if entry is None else relative.get(entry.tag) or relative.get(entry.base)


class LengthRatio(SampleScorer):
    """The distance of the length ratio from the usual one: `|ln(observed / usual)|`; 0 is as usual, ln 2 is double.

    Lengths are code points without white space. `smoothing` is added to the response's length and to the expected one,
    since the length of a short text is not informative. Languages that are not given are identified.

    Args:
        usual: the usual ratio, if it is known better than from the table, for every pair of languages.
        smoothing: code points.

    Raises:
        UsageError: `usual` is not positive, or `smoothing` is negative.
    """

    name = "length-ratio@1"
    direction = Direction.HIGHER_IS_WORSE
    no_evidence = "there is no source to compare the response's length with"

    def __init__(self, usual: float | None = None, smoothing: float = 10.0) -> None:
        if usual is not None and not 0 < usual < math.inf:
            raise UsageError(f"usual is a ratio of lengths and above 0, not {usual}.")
        if not 0 <= smoothing < math.inf:
            raise UsageError(f"smoothing is a number of code points, not {smoothing}.")
        self.usual, self.smoothing = usual, smoothing
        self.signature = signature(scorer=self.name, usual=usual if usual is not None else "udhr", smoothing=smoothing)

    def measure(self, sample: Sample) -> RawScore | NotScored:
        """The ratio; `parts` has `ratio`, without smoothing, and `usual`.

        If a language is unknown, or not in the table, the status is `unsupported_language`.
        """
        source = " ".join(sample.passages)
        usual, target = self.usual, sample.language
        if usual is None:
            origin = text_language(source, sample.evidence[0].language)
            target = text_language(sample.response, target)
            usual = usual_ratio(origin, target) if origin and target else None
            if usual is None:
                pair = " to ".join(tag or "an unknown language" for tag in (origin, target))
                return NotScored(Status.UNSUPPORTED_LANGUAGE, f"the usual length ratio of {pair} is not known")
        response_length, source_length = _letters(sample.response), _letters(source)
        smoothing = max(self.smoothing, _MIN_SMOOTHING)  # otherwise an empty response has an infinite score
        value = abs(math.log((response_length + smoothing) / (usual * source_length + smoothing)))
        return RawScore(value, {"ratio": response_length / source_length, "usual": usual}, target)


def _letters(text: str) -> int:
    return sum(not char.isspace() for char in text)


class TopNGram(SampleScorer):
    """1 if the response's most frequent n-gram occurs at least `t` times more than the source's (6 against 4), else 0.

    Source: Raunak et al. 2021, with the settings of HAT (section 2.2) as defaults. Tokens are our words, so
    languages without spaces are counted like others; punctuation, case and width are ignored. N-grams
    of the source do not cross passages. Occurrences may overlap: `a a a a` has `a a a` twice.

    Args:
        n: words of an n-gram.
        t: by how much the response's count must exceed the source's.
        graded: whether the score is the excess (an integer, of either sign) instead of 0 or 1, for rankings.

    Raises:
        UsageError: `n` or `t` is below 1.
    """

    name = "top-ngram@1"
    direction = Direction.HIGHER_IS_WORSE
    no_evidence = "there is no source to compare the response's repetitions with"

    def __init__(self, n: int = 3, t: int = 2, *, graded: bool = False) -> None:
        for option, value in (("n", n), ("t", t)):
            if value < 1:
                raise UsageError(f"{option} counts words or occurrences and is at least 1, not {value}.")
        self.n, self.t, self.graded = n, t, graded
        self.signature = signature(scorer=self.name, n=n, t=t, graded=graded or None, unit="word")

    def measure(self, sample: Sample) -> RawScore:
        """The excess; `parts` has the counts of the most frequent n-gram: `response` and `source`."""
        response = self._top([sample.response])
        source = self._top(sample.passages)
        excess = response - source
        value = float(excess if self.graded else excess >= self.t)
        return RawScore(value, {"response": float(response), "source": float(source)})

    def _top(self, texts: Iterable[str]) -> int:
        """How often the most frequent n-gram of the texts occurs; 0 if all are shorter than `n` words."""
        counts = Counter[tuple[str, ...]]()
        for text in texts:
            folded = fold(text)
            words = [folded[start:end] for start, end in word_bounds(text).tolist()]
            counts.update(zip(*(words[i:] for i in range(self.n)), strict=False))
        return max(counts.values(), default=0)
