"""The registry of detectors, and their thresholds by strictness."""

from __future__ import annotations

import os
import re
import sys
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from veriglot.errors import MissingExtraError, UnknownNameError, UsageError
from veriglot.hub.registry import MissingWeightsError
from veriglot.plugins import Entry, Registry, read_package_data
from veriglot.records import Detector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["DETECTORS", "at_strictness", "load_detector", "load_if_installed", "load_named"]


DETECTORS = Registry(
    "detector",
    "veriglot.detectors",
    read_package_data(__package__, "detectors.toml", dict[str, Entry]),
    renamed={"semantic": "reader"},
)


def load_detector(
    name: str = "auto",
    *,
    threshold: float | None = None,
    words: bool = False,
    strictness: str = "normal",
    **options: Any,
) -> Detector:
    """A detector by name.

    Args:
        name: a name of `DETECTORS`, with its argument, if any, after a colon: `hf:FOLDER`.
        threshold: confidence from which a word is marked, 0 to 1; None for the detector's default.
        words: whether predictions include every word with its confidence and evidence.
        strictness: `low`, `normal` or `high`, mapped by the detector's `thresholds`; `high` marks more, with more false
            alarms. `normal` is the default threshold.
        options: further keyword arguments of that detector, such as `weights` of `grounding`.

    Raises:
        UnknownNameError: no detector has that name, or it has no such option; the error suggests the nearest.
        MissingExtraError: its packages are not installed.
        UsageError: the threshold is not between 0 and 1, the name lacks its argument, or the detector has no threshold
            for that strictness.
        WeightsError: a model is missing or damaged.
    """
    return at_strictness(partial(DETECTORS.make, name, words=words, **options), strictness, threshold)


def as_detector(detector: str | Detector, **options: Any) -> Detector:
    """A detector object as it is; for a name, what `load_detector` returns for it and these options.

    Raises:
        UsageError: it is not a detector. Other errors are those of `load_detector`.
    """
    if isinstance(detector, str):
        return load_detector(detector, **options)
    if isinstance(detector, type) or not isinstance(detector, Detector):
        raise UsageError(
            f"{detector!r:.100} is no detector: it lacks some of name, taxonomy, threshold, signature and predict.",
            remedy="Give a name, what veriglot.load_detector(NAME) gives, or what has veriglot.records.Detector.",
        )
    return detector


def uses_gpu(name: str) -> bool:
    """Whether a detector, or one that it wraps, runs a network that is much faster on a GPU.

    `auto` does if `reader` is installed.
    """
    names = set(re.split("[:+]", name))
    return not names.isdisjoint({"hf", "nli", "reader"}) or (
        "auto" in names and load_if_installed("reader") is not None
    )


def load_if_installed(name: str, **options: Any) -> Detector | None:
    """As `load_detector`; None if the detector's packages or model are not installed."""
    try:
        return load_detector(name, **options)
    except (MissingExtraError, MissingWeightsError):
        return None


STRICTNESS = ("low", "normal", "high")


def at_strictness(make: Callable[..., Detector], strictness: str, threshold: float | None) -> Detector:
    """The detector that `make` returns for the given threshold, or for its own threshold of a strictness.

    Raises:
        UnknownNameError: there is no such strictness.
        UsageError: both are given, the threshold is not between 0 and 1, or the detector has none for that strictness.
    """
    if threshold is not None and not (isinstance(threshold, int | float) and 0.0 <= threshold <= 1.0):
        raise UsageError(f"A threshold is a probability between 0 and 1, but {threshold!r} was given.")
    if strictness not in STRICTNESS:
        raise UnknownNameError("strictness", strictness, STRICTNESS)
    if strictness != "normal" and threshold is not None:
        raise UsageError("A strictness and a threshold exclude each other.")
    detector = make(threshold=threshold)
    if strictness == "normal":
        return detector
    thresholds: Mapping[str, float] = getattr(detector, "thresholds", {})
    if strictness not in thresholds:
        raise UsageError(
            f"{detector.name} states no threshold for the strictness {strictness}.",
            remedy=f"Give a threshold instead (--threshold; a higher one marks less); its own is {detector.threshold}.",
        )
    return make(threshold=thresholds[strictness])


_CLASS = re.compile(r"(?P<module>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*):(?P<attribute>[A-Za-z_]\w*)")


def load_named(name: str, *, threshold: float | None, words: bool, **options: Any) -> Detector:
    """As `load_detector`, but a name may also be `package.module:Class`.

    Registered names take precedence. The working folder is searched after installed packages.

    Raises:
        UsageError: `package.module:Class` does not exist or is not a detector.
        UnknownNameError: no detector has that name.
    """
    match = _CLASS.fullmatch(name)
    if match is None or name in DETECTORS:
        return load_detector(name, threshold=threshold, words=words, **options)
    if os.getcwd() not in sys.path and "" not in sys.path:  # noqa: PTH109  # sys.path holds text
        sys.path.append(os.getcwd())  # noqa: PTH109
    try:
        factory = getattr(import_module(match["module"]), match["attribute"])
    except (ModuleNotFoundError, AttributeError) as error:
        raise UsageError(
            f"The detector {name!r} cannot be loaded: {error}.",
            remedy="Is its module in the working folder, or installed?",
        ) from error
    try:
        detector = factory(threshold=threshold, words=words, **options)
    except TypeError as error:
        raise UsageError(
            f"The detector {name!r} cannot be made: {error}.",
            remedy="Its class has to take the keyword arguments threshold and words, and those of --set.",
        ) from error
    return as_detector(detector)
