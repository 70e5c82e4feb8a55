"""The scorers by name; third parties join by the entry point group `veriglot.scorers`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.lazy import Entry, Table

if TYPE_CHECKING:
    from veriglot.records import Scorer

__all__ = ["SCORERS", "load_scorer"]

SCORERS = Table(
    "scorer",
    "veriglot.scorers",
    {
        "rouge-1": Entry("veriglot.scorers.rouge:Rouge1", summary="words that the evidence holds, without stop words"),
        "rouge-2": Entry("veriglot.scorers.rouge:Rouge2", summary="pairs of words that the evidence holds"),
        "rouge-l": Entry("veriglot.scorers.rouge:RougeL", summary="the longest subsequence of words of the evidence"),
        "chrf": Entry("veriglot.scorers.chrf:ChrF", extra="bench", summary="character n-grams in common, by sacrebleu"),
        "entity-overlap": Entry(
            "veriglot.scorers.entities:EntityOverlap",
            extra="entities",
            summary="named entities that the evidence holds, by spaCy",
        ),
        "number-agreement": Entry(
            "veriglot.scorers.numbers:NumberAgreement", summary="numbers that the evidence holds, by value"
        ),
        "name-agreement": Entry(
            "veriglot.scorers.names:NameAgreement", extra="bench", summary="names that the evidence holds, by capitals"
        ),
        "pairwise": Entry(
            "veriglot.scorers.pairwise:Pairwise",
            summary="any scorer, against other responses to the query: pairwise:rouge-l",
            argument="scorer",
        ),
        "nli": Entry(
            "veriglot.scorers.nli:NLI",
            extra="local",
            summary="entailment and contradiction by the evidence, by kang's equations: nli:FOLDER",
            argument="model",
        ),
        "top-ngram": Entry(
            "veriglot.scorers.top_ngram:TopNGram", summary="what is repeated more often than in the source"
        ),
        "length-ratio": Entry(
            "veriglot.scorers.length_ratio:LengthRatio", summary="how far a translation's length is from the usual"
        ),
    },
)


def load_scorer(name: str, **options: Any) -> Scorer:
    """A scorer by name.

    Args:
        name: a name of `SCORERS`.
        options: of the scorer; see its class.

    Raises:
        UnknownNameError: no such scorer, or no such option; the error suggests the nearest.
        UsageError: an option that makes no sense.
    """
    scorer: Scorer = SCORERS.make(name, **options)
    return scorer
