"""The lines of Python that most users need: load a detector, judge one response."""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from veriglot.errors import UsageError
from veriglot.plugins import Entry, Table
from veriglot.records import Detector, sample_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.records import Prediction

__all__ = ["DETECTORS", "detect", "load_detector", "load_named"]


DETECTORS = Table(
    "detector",
    "veriglot.detectors",
    {
        "auto": Entry(
            "veriglot.detectors.auto:Auto",
            summary="the best that is here, by recorded figures, else reader, else grounding; says which",
        ),
        "calibrated": Entry(
            "veriglot.detectors.calibration:Calibrated",
            summary="another detector with a calibration on labels of one's own: calibrated:NAME, calibration=FILE",
            argument="detector",
        ),
        "ensemble": Entry(
            "veriglot.detectors.ensemble:Ensemble",
            summary="several detectors as one, by mean or learned weights: ensemble:grounding+reader",
            argument="members",
        ),
        "grounding": Entry(
            "veriglot.detectors.grounding.detector:Grounding",
            summary="words held against the evidence, offline, in every language; the default",
        ),
        "hf": Entry(
            "veriglot.detectors.token_classifier.detector:TokenClassifier",
            extra="local",
            summary="any token classifier of transformers, such as LettuceDetect's: hf:FOLDER",
            argument="model",
        ),
        "judge": Entry(
            "veriglot.detectors.judge.judges:judge",
            summary="a language model as judge: judge:spans, facts, translation, translation-guided, pairs",
            argument="kind",
        ),
        "nli": Entry(
            "veriglot.detectors.nli:NLI",
            extra="local",
            summary="sentences or facts held against the evidence by an entailment model: nli:FOLDER",
            argument="model",
        ),
        "reader": Entry(
            "veriglot.detectors.reader.detector:Reader",
            extra="reader",
            summary="question, response and evidence read together by a multilingual encoder, across languages too",
        ),
        "xcomet": Entry(
            "veriglot.detectors.xcomet:XComet",
            summary="errors that XCOMET marks in translations, in an environment of its own: xcomet:MODEL",
            argument="model",
        ),
    },
    renamed={"semantic": "reader"},
)


def load_detector(
    name: str = "grounding", *, threshold: float | None = None, words: bool = False, **options: Any
) -> Detector:
    """A detector by name.

    Args:
        name: a name of `DETECTORS`, with an argument after a colon where it takes one: `hf:FOLDER`.
        threshold: confidence from which a word is marked, 0 to 1; None leaves it to the detector.
        words: whether predictions carry every word with its confidence and evidence.
        options: further keyword arguments of that detector, such as `weights` of `grounding`.

    Raises:
        UnknownNameError: no detector has that name, or it has no such option; the error suggests the nearest.
        MissingExtraError: its packages are not installed.
        UsageError: the threshold is no probability, or the name lacks its argument.
        WeightsError: a model is missing or damaged.
    """
    if threshold is not None and not 0.0 <= threshold <= 1.0:
        raise UsageError(f"A threshold is a probability between 0 and 1, but {threshold} was given.")
    detector: Detector = DETECTORS.make(name, threshold=threshold, words=words, **options)
    return detector


@cache
def _load_once(name: str, threshold: float | None, words: bool) -> Detector:
    return load_detector(name, threshold=threshold, words=words)


def detect(
    evidence: str | Sequence[str] | None,
    response: str,
    question: str | None = None,
    language: str | None = None,
    *,
    detector: str | Detector = "grounding",
    threshold: float | None = None,
    words: bool = False,
) -> Prediction:
    """Mark what the evidence does not support in one response.

    The detector is loaded once and kept. For many responses, batches through `load_detector` are faster.

    Args:
        evidence: one passage or several; support by any of them is support. With none, the status is `no_evidence`.
        response: the text to judge.
        question: what was asked, if known.
        language: BCP 47 tag of the response, or None to have it detected.
        detector: a name, or a detector that was loaded before.
        threshold: confidence from which a word is marked, 0 to 1; only with a name.
        words: whether the prediction carries every word; only with a name.

    Returns:
        A prediction. Look at `status` first: only `scored` means that the response was checked.
        `prediction.as_dicts()` gives the spans as plain dictionaries.

    Raises:
        UnknownNameError: no detector has that name.
        InputError: an argument is no text; `field` names it.
        UsageError: `threshold` or `words` beside a detector that was loaded before, which has its own.
    """
    if not isinstance(detector, str) and (threshold is not None or words):
        raise UsageError(
            "A detector that was loaded before keeps its own threshold and words.",
            remedy="Give them to load_detector instead.",
        )
    passages = [evidence] if isinstance(evidence, str) else list(evidence or ())
    sample = sample_from(
        {
            "id": "response",
            "response": response,
            "question": question,
            "language": language,
            "evidence": [{"text": passage} for passage in passages],
        }
    )
    judge = _load_once(detector, threshold, words) if isinstance(detector, str) else detector
    return judge.predict([sample])[0]


_CLASS = re.compile(r"(?P<module>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*):(?P<attribute>[A-Za-z_]\w*)")


def load_named(name: str, *, threshold: float | None, words: bool, **options: Any) -> Detector:
    """As `load_detector`, which knows the detectors of the table; of other names, the class that they lead to.

    A name of the table goes before a module of that name. The working folder is searched after what is installed.

    Raises:
        UsageError: `package.module:Class` leads nowhere, or to something that is no detector.
        UnknownNameError: no detector has that name.
    """
    match = _CLASS.fullmatch(name)
    if match is None or name in DETECTORS:
        return load_detector(name, threshold=threshold, words=words, **options)
    if os.getcwd() not in sys.path and "" not in sys.path:  # noqa: PTH109  # sys.path holds text
        sys.path.append(os.getcwd())  # noqa: PTH109
    try:
        factory = getattr(import_module(match["module"]), match["attribute"])
    except ModuleNotFoundError as error:
        raise UsageError(
            f"The detector {name!r} cannot be loaded: {error}.",
            remedy="Is the module in the working folder, or installed?",
        ) from error
    except AttributeError as error:
        raise UsageError(f"The detector {name!r} cannot be loaded: {error}.") from error
    try:
        detector = factory(threshold=threshold, words=words, **options)
    except TypeError as error:
        raise UsageError(
            f"The detector {name!r} cannot be made: {error}.",
            remedy="Its class has to take the keyword arguments threshold and words, and those of --set.",
        ) from error
    if not isinstance(detector, Detector):
        raise UsageError(
            f"{name!r} is no detector: it lacks some of name, taxonomy, threshold, signature and predict.",
            remedy="See the protocol veriglot.records.Detector.",
        )
    return detector
