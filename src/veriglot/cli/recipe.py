"""From the name of a detector to the recipe by which every process makes its own."""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from veriglot.errors import UsageError

if TYPE_CHECKING:
    from typing import Any

    from veriglot.records import Detector
    from veriglot.run import Recipe

__all__ = ["DETECTOR_HELP", "Level", "detector_recipe", "load"]

Level = Literal["fact", "sentence", "response"]

DETECTOR_HELP = (
    "Detector by name: grounding (words against words), semantic (by meaning, across languages too, with a model that"
    " has to be fetched), auto (semantic where its model is here and good in the language, else grounding); or"
    " package.module:Class of one's own. Default: grounding."
)

_CLASS = re.compile(r"(?P<module>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*):(?P<attribute>[A-Za-z_]\w*)")
_SCHEMES = frozenset({"hf"})  # `hf:model` names a checkpoint, not a module


def detector_recipe(name: str, *, threshold: float | None, words: bool, level: Level = "response") -> Recipe:
    """How to make the detector `name` with these options, in this process or another.

    Args:
        name: a name that `veriglot.load_detector` knows, or `package.module:Class` for a class of one's own that takes
            the keyword arguments `threshold` and `words`. Its module may lie in the working folder.
        threshold: confidence from which a word is marked, 0 to 1; None leaves it to the detector.
        words: whether predictions carry every word with its confidence.
        level: `fact` or `sentence` for predictions that carry these with their scores, or `response` for neither.

    Raises:
        UsageError: `threshold` is out of range.
    """
    from veriglot.run import Recipe

    if threshold is not None and not 0.0 <= threshold <= 1.0:
        raise UsageError(f"--threshold is a probability between 0 and 1, but {threshold} was given.")
    options = {"threshold": threshold, "words": words}
    return Recipe(load, (name,), options if level == "response" else {**options, "level": level})


def load(name: str, *, threshold: float | None, words: bool, level: Level = "response") -> Detector:
    """Make the detector; see `detector_recipe`.

    Raises:
        UsageError: `package.module:Class` leads nowhere, or to something that is no detector.
        UnknownNameError: no detector has that name.
    """
    if level != "response":
        from veriglot.detectors.units import with_units

        return with_units(load(name, threshold=threshold, words=True), level, words=words)
    found = _CLASS.fullmatch(name)
    if found is None or found["module"] in _SCHEMES:
        from veriglot.detectors import load_detector

        detector: Detector = load_detector(name, threshold=threshold, words=words)
        return detector
    return _of_class(name, found["module"], found["attribute"], {"threshold": threshold, "words": words})


def _of_class(name: str, module: str, attribute: str, options: dict[str, Any]) -> Detector:
    from veriglot.records import Detector

    if os.getcwd() not in sys.path and "" not in sys.path:  # noqa: PTH109  # sys.path holds text
        sys.path.append(os.getcwd())  # noqa: PTH109
    try:
        factory = getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"The detector {name!r} cannot be loaded: {error}.",
            remedy="Is the module in the working folder, or installed?",
        ) from error
    except AttributeError as error:
        raise UsageError(f"The detector {name!r} cannot be loaded: {error}.") from error
    try:
        detector = factory(**options)
    except TypeError as error:
        raise UsageError(
            f"The detector {name!r} cannot be made: {error}.",
            remedy="Its class has to take the keyword arguments threshold and words.",
        ) from error
    if not isinstance(detector, Detector):
        raise UsageError(
            f"{name!r} is no detector: it lacks some of name, taxonomy, threshold, signature and predict.",
            remedy="See the protocol veriglot.records.Detector.",
        )
    return detector
