"""From the name of a detector to the recipe by which every process makes its own."""

from __future__ import annotations

import tomllib
from functools import partial
from typing import TYPE_CHECKING, Literal

from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from veriglot.records import Detector
    from veriglot.run import Recipe

__all__ = ["DETECTOR_HELP", "SET_HELP", "Level", "detector_recipe", "load", "read_settings"]

Level = Literal["fact", "sentence", "response"]

DETECTOR_HELP = (
    "Detector by name: grounding (words against words), semantic (by meaning, across languages too, with a model that"
    " has to be fetched), auto (the best that is here for the language); or package.module:Class of one's own. Some"
    " take an argument, such as hf:FOLDER, nli:FOLDER, judge:KIND and ensemble:NAME+NAME; veriglot doctor lists all."
    " Default: grounding."
)
SET_HELP = "A further option of the detector, such as model=NAME; may be repeated. Default: none."

_OWN = frozenset({"threshold", "words", "level"})  # options of the command itself


def detector_recipe(
    name: str,
    *,
    threshold: float | None,
    words: bool,
    level: Level = "response",
    settings: Sequence[str] = (),
    calibration: str | None = None,
) -> Recipe:
    """How to make the detector `name` with these options, in this process or another.

    Args:
        name: a name that `veriglot.load_detector` knows, or `package.module:Class` for a class of one's own that takes
            the keyword arguments `threshold` and `words`. Its module may lie in the working folder.
        threshold: confidence from which a word is marked, 0 to 1; None leaves it to the detector.
        words: whether predictions carry every word with its confidence.
        level: `fact` or `sentence` for predictions that carry these with their scores, or `response` for neither.
        settings: further options of the detector, each as `name=value`.
        calibration: a file that calibrates the detector's confidences, or None.

    Raises:
        UsageError: `threshold` is out of range, or a setting is no `name=value`.
    """
    from veriglot.run import Recipe

    if threshold is not None and not 0.0 <= threshold <= 1.0:
        raise UsageError(f"--threshold is a probability between 0 and 1, but {threshold} was given.")
    options: dict[str, Any] = {**read_settings(settings, own=_OWN), "threshold": threshold, "words": words}
    if calibration is not None:
        options["calibration_file"] = calibration
    return Recipe(load, (name,), options if level == "response" else {**options, "level": level})


def read_settings(
    settings: Sequence[str], *, option: str = "--set", own: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Options given as `name=value`: true, false, numbers and lists are those of TOML; all else is text.

    Args:
        settings: as they were typed.
        option: of the command line that gave them, for messages.
        own: names that have an option of their own there.

    Raises:
        UsageError: there is no `=`, a name is no name, or is given twice.
    """
    found: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key.isidentifier():
            raise UsageError(f"{option} takes NAME=VALUE, but {setting!r} was given.")
        if key in found:
            raise UsageError(f"{option} gives {key!r} twice.")
        if key in own:
            raise UsageError(f"{option} cannot give {key!r}.", remedy=f"It has an option of its own: --{key}.")
        found[key] = _value(value)
    return found


def _value(text: str) -> Any:
    try:
        found = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    plain = isinstance(found["value"], bool | int | float | str | list) and len(found) == 1
    return found["value"] if plain and "#" not in text else text  # neither a date nor a comment is meant


def load(
    name: str,
    *,
    threshold: float | None,
    words: bool,
    level: Level = "response",
    calibration_file: str | None = None,
    **settings: Any,
) -> Detector:
    """Make the detector; see `detector_recipe`.

    Raises:
        UsageError: `package.module:Class` leads nowhere, or to something that is no detector.
        UnknownNameError: no detector has that name.
    """
    if level != "response":
        from veriglot.detectors.units import with_units

        made = load(name, threshold=threshold, words=True, calibration_file=calibration_file, **settings)
        return with_units(made, level, words=words)
    if calibration_file is not None:
        from veriglot.detectors.confidences.calibrated import Calibrated

        return Calibrated(
            partial(load, name, **settings), calibration=calibration_file, threshold=threshold, words=words
        )
    from veriglot.detectors.own_class import load_named

    return load_named(name, threshold=threshold, words=words, **settings)
