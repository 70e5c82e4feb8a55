"""The detectors by name; third parties join by the entry point group `veriglot.detectors`."""

from __future__ import annotations

from veriglot.lazy import Entry, Table

__all__ = ["DETECTORS"]

DETECTORS = Table(
    "detector",
    "veriglot.detectors",
    {
        "auto": Entry(
            "veriglot.detectors.auto:Auto",
            summary="the best that is here for the language, by recorded figures or what the encoder knows; says which",
        ),
        "calibrated": Entry(
            "veriglot.detectors.confidences.calibrated:Calibrated",
            summary="another detector with a calibration on labels of one's own: calibrated:NAME, calibration=FILE",
            argument="detector",
        ),
        "ensemble": Entry(
            "veriglot.detectors.ensemble.detector:Ensemble",
            summary="several detectors as one, by mean or learned weights: ensemble:grounding+semantic",
            argument="members",
        ),
        "grounding": Entry(
            "veriglot.detectors.grounding:Grounding",
            summary="words held against the evidence, offline, in every language; the default",
        ),
        "hf": Entry(
            "veriglot.detectors.token_classifier:TokenClassifier",
            extra="local",
            summary="any token classifier of transformers, such as LettuceDetect's: hf:FOLDER",
            argument="model",
        ),
        "judge": Entry(
            "veriglot.detectors.judge:judge",
            summary="a language model as judge: judge:spans, facts, translation, translation-guided, pairs",
            argument="kind",
        ),
        "nli": Entry(
            "veriglot.detectors.nli:NLI",
            extra="local",
            summary="sentences or facts held against the evidence by an entailment model: nli:FOLDER",
            argument="model",
        ),
        "semantic": Entry(
            "veriglot.detectors.semantic:Semantic",
            extra="semantic",
            summary="support by meaning, across paraphrase and across languages; veriglot models get use-multilingual",
        ),
        "xcomet": Entry(
            "veriglot.detectors.xcomet:XComet",
            summary="errors that XCOMET marks in translations, in an environment of its own: xcomet:MODEL",
            argument="model",
        ),
    },
)
