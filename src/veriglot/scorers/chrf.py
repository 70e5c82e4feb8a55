"""chrF: character n-grams that a response and its evidence have in common (Popović 2015), by sacrebleu."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sacrebleu import __version__ as sacrebleu_version
from sacrebleu.metrics.chrf import CHRF

from veriglot.errors import UsageError
from veriglot.scorers.base import Measured, SampleScorer, one_of
from veriglot.signatures import signature

if TYPE_CHECKING:
    from veriglot.records import Sample

__all__ = []


class ChrF(SampleScorer):
    """chrF of the response against its evidence, 0 to 100, as sacrebleu counts it; `words=2` makes it chrF++.

    It needs no words, and so no segmentation. It was made for translations against other translations: `evidence` is
    then the reference, not the source.

    Args:
        characters: the longest character n-gram.
        words: the longest word n-gram; 0 for none. Words are parted by spaces and punctuation.
        beta: how many times recall counts as much as precision.
        lowercase: whether case makes no difference.
        passages: `joined` takes all passages for one reference; `best` takes each for one, and the best of them.

    Raises:
        UsageError: a setting that makes no sense.
    """

    name = "chrf@1"

    def __init__(
        self,
        characters: int = 6,
        words: int = 0,
        beta: int = 2,
        *,
        lowercase: bool = False,
        passages: Literal["joined", "best"] = "joined",
    ) -> None:
        for option, given, minimum in (("characters", characters, 1), ("words", words, 0), ("beta", beta, 1)):
            if isinstance(given, bool) or not isinstance(given, int) or given < minimum:
                raise UsageError(f"{option} is a whole number of at least {minimum}, not {given!r}.")
        one_of("passages", passages, ("joined", "best"))
        self.passages = passages
        self._metric = CHRF(characters, words, beta, lowercase=lowercase)
        self.signature = signature(  # settings in sacrebleu's words
            scorer=self.name, case="lc" if lowercase else "mixed", nc=characters, nw=words, beta=beta, space="no",
            passages=passages, sacrebleu=sacrebleu_version,
        )  # fmt: skip

    def measure(self, sample: Sample) -> Measured:
        """The score; 0 where nothing is in common, as in an empty response."""
        references = ["\n".join(sample.passages)] if self.passages == "joined" else sample.passages
        return Measured(float(self._metric.sentence_score(sample.response, references).score), {})
