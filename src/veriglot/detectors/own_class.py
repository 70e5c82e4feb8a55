"""Detectors that are named by where their class lies: `package.module:Class`, in the working folder or installed."""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from veriglot.detectors.detect import load_detector
from veriglot.detectors.table import DETECTORS
from veriglot.errors import UsageError

if TYPE_CHECKING:
    from veriglot.records import Detector

__all__ = ["load_named"]

_CLASS = re.compile(r"(?P<module>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*):(?P<attribute>[A-Za-z_]\w*)")


def load_named(name: str, *, threshold: float | None, words: bool, **options: Any) -> Detector:
    """As `load_detector`, which knows the detectors of the table; of other names, the class that they lead to.

    A name of the table goes before a module of that name. The working folder is searched after what is installed.

    Raises:
        UsageError: `package.module:Class` leads nowhere, or to something that is no detector.
        UnknownNameError: no detector has that name.
    """
    found = _CLASS.fullmatch(name)
    if found is None or name in DETECTORS:
        return load_detector(name, threshold=threshold, words=words, **options)
    return _of_class(name, found["module"], found["attribute"], {"threshold": threshold, "words": words, **options})


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
            remedy="Its class has to take the keyword arguments threshold and words, and those of --set.",
        ) from error
    if not isinstance(detector, Detector):
        raise UsageError(
            f"{name!r} is no detector: it lacks some of name, taxonomy, threshold, signature and predict.",
            remedy="See the protocol veriglot.records.Detector.",
        )
    return detector
