"""TopNGram: oscillation, told by what a response repeats more often than its source (Raunak et al. 2021)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from veriglot.errors import UsageError
from veriglot.records import Direction
from veriglot.scorers.base import Measured, SampleScorer
from veriglot.signatures import signature
from veriglot.text.normalization import fold
from veriglot.text.segmentation import word_bounds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from veriglot.records import Sample

__all__ = ["TopNGram"]


class TopNGram(SampleScorer):
    """1 where the most frequent n-gram of the response occurs at least `t` times more often than the source's, else 0.

    Source: Raunak et al. 2021, with the settings of HAT (section 2.2) as defaults. Tokens are our words, so that
    languages without spaces are counted like others; punctuation is none, case and width make no difference. N-grams
    of the source cross no border between passages. Occurrences may overlap: `a a a a` holds `a a a` twice.

    Args:
        n: words of an n-gram.
        t: by how much the response's count must exceed the source's.
        graded: give the excess (a whole number, of either sign) in place of 0 or 1, for rankings.

    Raises:
        UsageError: `n` or `t` is below 1.
    """

    name = "top-ngram@1"
    direction = Direction.HIGHER_IS_WORSE
    no_evidence = "there is no source to hold the response's repetitions against"

    def __init__(self, n: int = 3, t: int = 2, *, graded: bool = False) -> None:
        for option, value in (("n", n), ("t", t)):
            if value < 1:
                raise UsageError(f"{option} counts words or occurrences and is at least 1, not {value}.")
        self.n, self.t, self.graded = n, t, graded

    @property
    def signature(self) -> str:
        """Name, settings and unit."""
        return signature(scorer=self.name, n=self.n, t=self.t, graded=self.graded or None, unit="word")

    def measure(self, sample: Sample) -> Measured:
        """The excess; `parts` holds the counts of the most frequent n-gram: `response` and `source`."""
        response = self.top([sample.response])
        source = self.top(passage.text for passage in sample.evidence)
        excess = response - source
        value = float(excess if self.graded else excess >= self.t)
        return Measured(value, {"response": float(response), "source": float(source)})

    def top(self, texts: Iterable[str]) -> int:
        """How often the most frequent n-gram of the texts occurs; 0 where all are shorter than `n` words."""
        counts: Counter[tuple[str, ...]] = Counter()
        for text in texts:
            folded = fold(text)
            words = [folded[start:end] for start, end in word_bounds(text).tolist()]
            counts.update(zip(*(words[i:] for i in range(self.n)), strict=False))
        return max(counts.values(), default=0)
