"""Veriglot finds, measures and compares the hallucinations of language models, in every language.

One response and its evidence:

>>> import veriglot
>>> prediction = veriglot.detect("The bridge was opened in 1879.", "The bridge was opened in 1907.")
>>> [span["text"] for span in prediction.as_dicts()]
['1907']

Many, with a detector that is loaded once; what cannot be judged has another status than `scored`:

>>> evidence = (veriglot.Evidence("The bridge was opened in 1879."),)
>>> sample = veriglot.Sample(id="a", response="The bridge was opened in 1907.", language="en", evidence=evidence)
>>> detector = veriglot.load_detector("grounding")
>>> (prediction,) = detector.predict([sample])
>>> prediction.status is veriglot.Status.SCORED
True

Scores of the same samples, by name:

>>> scorer = veriglot.load_scorer("rouge-l")
>>> (score,) = scorer.score([sample])
>>> 0 < score.value < 1
True

Labelled samples, written, read and measured:

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
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from veriglot.signatures import __version__

if TYPE_CHECKING:
    from veriglot.bench.evaluation import evaluate
    from veriglot.detectors.registry import detect, load_detector
    from veriglot.errors import VeriglotError
    from veriglot.formats.reader import read
    from veriglot.formats.writer import write
    from veriglot.records import (
        Annotation,
        Detector,
        ErrorProfile,
        Evidence,
        Generator,
        Prediction,
        Sample,
        Score,
        Scorer,
        Span,
        Status,
        Task,
        Word,
    )
    from veriglot.scorers.registry import load_scorer

__all__ = [
    "Annotation",
    "Detector",
    "ErrorProfile",
    "Evidence",
    "Generator",
    "Prediction",
    "Sample",
    "Score",
    "Scorer",
    "Span",
    "Status",
    "Task",
    "VeriglotError",
    "Word",
    "__version__",
    "detect",
    "evaluate",
    "load_detector",
    "load_scorer",
    "read",
    "write",
]

_HOMES = {
    "evaluate": "bench.evaluation",
    "detect": "detectors.registry",
    "load_detector": "detectors.registry",
    "VeriglotError": "errors",
    "read": "formats.reader",
    "write": "formats.writer",
    "load_scorer": "scorers.registry",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"veriglot.{_HOMES.get(name, 'records')}"), name)


def __dir__() -> list[str]:
    return __all__
