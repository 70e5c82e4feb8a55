"""Veriglot finds, measures and compares the hallucinations of language models, in every language.

One response and its evidence:

>>> import veriglot
>>> prediction = veriglot.detect(evidence="It opened in 1879.", response="It opened in 1907.")
>>> prediction.verdict
<Verdict.UNSUPPORTED: 'unsupported'>
>>> [span.text for span in prediction.spans]
['1907']

A response that was not checked has no spans. Asking for them is an error, because an empty list would look clean:

>>> unchecked = veriglot.detect(evidence="", response="The bridge was opened in 1907.")
>>> unchecked.verdict, unchecked.status
(<Verdict.NOT_CHECKED: 'not_checked'>, <Status.NO_EVIDENCE: 'no_evidence'>)
>>> unchecked.spans  # doctest: +ELLIPSIS
Traceback (most recent call last):
veriglot.errors.NotChecked: The response 'response' was not checked (no_evidence): ...

Many responses, lazily and in order; rows are dictionaries, samples or a DataFrame:

>>> rows = [{"evidence": "It was opened in 1879.", "response": text} for text in ("In 1879.", "In 1907.")]
>>> [prediction.verdict.value for prediction in veriglot.detect_many(rows)]
['supported', 'unsupported']

A detector, as in plug-ins, takes samples and returns records with a status:

>>> evidence = (veriglot.Evidence("The bridge was opened in 1879."),)
>>> sample = veriglot.Sample(id="a", response="The bridge was opened in 1907.", language="en", evidence=evidence)
>>> detector = veriglot.load_detector("grounding")
>>> (record,) = detector.predict([sample])
>>> record.status is veriglot.Status.SCORED
True

Scorers by name:

>>> scorer = veriglot.load_scorer("rouge-l")
>>> (score,) = scorer.score([sample])
>>> 0 < score.value < 1
True

Write, read and evaluate labelled samples:

>>> import tempfile
>>> label = veriglot.Annotation("gold", "human", taxonomy="hat", spans=(veriglot.Span(25, 29, "hallucination"),))
>>> labelled = veriglot.Sample(
...     id="a", response=sample.response, language="en", evidence=evidence, annotations=(label,)
... )
>>> path = tempfile.mkdtemp() + "/labelled.jsonl"
>>> _ = veriglot.write([labelled], path)
>>> evaluation = veriglot.evaluate(veriglot.read(path), veriglot.load_detector("grounding", words=True), resamples=0)
>>> sorted(evaluation.profile().languages)
['en']

Hallucination rates of models, corrected for the detector's errors, or not (`raw`):

>>> (rate,) = veriglot.estimate(veriglot.detect_many([sample]), [sample], estimator="raw")
>>> rate.language, rate.units, rate.status.value
('en', 6, 'unreliable')
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from veriglot.signatures import __version__

if TYPE_CHECKING:
    from veriglot.bench.evaluation import evaluate
    from veriglot.detection import Prediction, detect, detect_many
    from veriglot.detectors.registry import load_detector
    from veriglot.errors import NotChecked, VeriglotError
    from veriglot.formats.reader import read
    from veriglot.formats.writer import write
    from veriglot.pytest import assert_grounded
    from veriglot.records import (
        Annotation,
        Detector,
        ErrorProfile,
        Evidence,
        Generator,
        Sample,
        Span,
        Status,
        Task,
        Verdict,
    )
    from veriglot.scorers.registry import load_scorer
    from veriglot.study.estimation import estimate

__all__ = [
    "Annotation",
    "Detector",
    "ErrorProfile",
    "Evidence",
    "Generator",
    "NotChecked",
    "Prediction",
    "Sample",
    "Span",
    "Status",
    "Task",
    "Verdict",
    "VeriglotError",
    "__version__",
    "assert_grounded",
    "detect",
    "detect_many",
    "estimate",
    "evaluate",
    "load_detector",
    "load_scorer",
    "read",
    "write",
]

_HOMES = {
    "evaluate": "bench.evaluation",
    "Prediction": "detection",
    "detect": "detection",
    "detect_many": "detection",
    "load_detector": "detectors.registry",
    "NotChecked": "errors",
    "VeriglotError": "errors",
    "read": "formats.reader",
    "write": "formats.writer",
    "load_scorer": "scorers.registry",
    "assert_grounded": "pytest",
    "estimate": "study.estimation",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"veriglot.{_HOMES.get(name, 'records')}"), name)


def __dir__() -> list[str]:
    return __all__
