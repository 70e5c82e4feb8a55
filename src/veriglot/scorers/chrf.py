"""chrF: character n-grams shared by a response and its evidence (Popović 2015), by sacrebleu."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sacrebleu import __version__ as sacrebleu_version
from sacrebleu.metrics.chrf import CHRF

from veriglot.errors import UsageError
from veriglot.scorers.base import RawScore, SampleScorer, check_choice
from veriglot.signatures import signature

if TYPE_CHECKING:
    from veriglot.records import Sample

__all__ = []


class ChrF(SampleScorer):
    """chrF of the response against its evidence, 0 to 100, as in sacrebleu; `words=2` makes it chrF++.

    It needs no word segmentation. It was designed to compare translations with reference translations: `evidence` is
    then the reference, not the source.

    Args:
        characters: maximum order of character n-grams.
        words: maximum order of word n-grams; 0 for none. Words are separated by spaces and punctuation.
        beta: weight of recall relative to precision.
        lowercase: whether to ignore case.
        passages: `joined` uses all passages as one reference; `best` uses each as a reference, and the best of them.

    Raises:
        UsageError: an invalid setting.
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
        check_choice("passages", passages, ("joined", "best"))
        self.passages = passages
        self._metric = CHRF(characters, words, beta, lowercase=lowercase)
        self.signature = signature(  # with sacrebleu's names of settings
            scorer=self.name, case="lc" if lowercase else "mixed", nc=characters, nw=words, beta=beta, space="no",
            passages=passages, sacrebleu=sacrebleu_version,
        )  # fmt: skip

    def measure(self, sample: Sample) -> RawScore:
        """The score; 0 if nothing is shared, as for an empty response."""
        references = ["\n".join(sample.passages)] if self.passages == "joined" else sample.passages
        return RawScore(float(self._metric.sentence_score(sample.response, references).score), {})
