"""The scorers by name; third parties join by the entry point group `veriglot.scorers`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.plugins import Entry, Table

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
        "rouge-lsum": Entry(
            "veriglot.scorers.rouge:RougeLsum", summary="the same sentence by sentence, for long responses"
        ),
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
            summary="entailment and contradiction by the evidence, by the equations of Kang et al.: nli:FOLDER",
            argument="model",
        ),
        "mfact": Entry(
            "veriglot.scorers.neural:MFact",
            extra="local",
            summary="a classifier of faithfulness: mfact:MODEL",
            argument="model",
        ),
        "seahorse": Entry(
            "veriglot.scorers.neural:Seahorse",
            extra="local",
            summary="SEAHORSE Q4, is the response attributable to the evidence: seahorse:MODEL",
            argument="model",
        ),
        "metricx": Entry(
            "veriglot.scorers.neural:MetricX",
            extra="local",
            summary="MetricX-24, errors of a translation without a reference, 0 to 25: metricx:MODEL",
            argument="model",
        ),
        "log-probability": Entry(
            "veriglot.scorers.neural:LogProbability",
            extra="local",
            summary="how likely a language or translation model finds the response: log-probability:MODEL",
            argument="model",
        ),
        "alti": Entry(
            "veriglot.scorers.alti:Alti",
            extra="local",
            summary="ALTI+, the share of the source in what a translation model wrote: alti:MODEL",
            argument="model",
        ),
        "cosine": Entry(
            "veriglot.scorers.cosine:Cosine",
            extra="reader",
            summary="how near source and response are as vectors of an encoder: cosine:ENCODER",
            argument="encoder",
        ),
        "labse": Entry(
            "veriglot.scorers.cosine:Labse",
            extra="encoders",
            summary="the same by LaBSE, or another checkpoint of sentence-transformers: labse:MODEL",
            argument="model",
        ),
        "comet": Entry(
            "veriglot.scorers.companions:Comet",
            summary="COMET-QE, CometKiwi, XCOMET, in an environment of its own: comet:MODEL",
            argument="model",
        ),
        "laser": Entry(
            "veriglot.scorers.companions:Laser",
            summary="LASER2 and LASER3, in an environment of its own: laser:FOLDER",
            argument="model",
        ),
        "blaser": Entry(
            "veriglot.scorers.companions:Blaser",
            summary="BLASER 2.0 QE, in an environment of its own: blaser:MODEL",
            argument="model",
        ),
        "process": Entry(
            "veriglot.scorers.companions:Process",
            summary="an engine of your own, in any Python environment: process:FILE",
            argument="engine",
        ),
        "top-ngram": Entry(
            "veriglot.scorers.translation:TopNGram", summary="what is repeated more often than in the source"
        ),
        "length-ratio": Entry(
            "veriglot.scorers.translation:LengthRatio", summary="how far a translation's length is from the usual"
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
