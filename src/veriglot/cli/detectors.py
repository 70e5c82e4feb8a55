"""Detectors of commands: from a name to the recipe that every process loads by, and `evaluate --calibrate`."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from veriglot.errors import UsageError
from veriglot.plugins import read_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.detectors.calibration import Calibration, Measured
    from veriglot.pipeline.engine import Recipe
    from veriglot.records import Detector, Prediction, Sample
    from veriglot.training.calibration import Method

__all__ = [
    "Calibrating",
    "Level",
    "detector_recipe",
    "load",
    "plain",
    "show_calibration",
    "show_measured",
]


_WIDTH = 150  # columns where no terminal says how many there are
_NAMES = {
    "ece": "ECE", "brier": "Brier", "average_precision": "AP", "auroc": "AUROC", "f1": "F1",
}  # fmt: skip


class Calibrating:
    """Collects what a detector said of labelled samples, and fits in the end.

    Args:
        path: where the calibration is written; None where none was asked for, and then nothing happens.
        method: `platt` or `isotonic`.
        annotator: whose labels.
        seed: of folds and intervals.
    """

    def __init__(self, path: str | None, *, method: Method, annotator: str | None, seed: int) -> None:
        self._path = path
        self._method: Method = method
        self._seed = seed
        self._rows: Any = None
        if path is not None:
            from veriglot.training.confidences import Rows

            self._rows = Rows(annotator)

    def see(self, sample: Sample, prediction: Prediction | None) -> None:
        """Take one sample with its prediction."""
        if self._rows is not None:
            self._rows.add(sample, [prediction])

    def fitted(self, detector: str, made: str | None) -> Calibration | None:
        """Fit and write; None where no calibration was asked for.

        Raises:
            UsageError: there is too little to fit.
        """
        if self._path is None:
            return None
        if detector.startswith("calibrated@"):
            raise UsageError("A detector is calibrated once.", remedy="Leave out --calibration.")
        from veriglot.storage.files import write_json
        from veriglot.training.calibration import fit_calibration

        calibration = fit_calibration(self._rows, detector=detector, made=made, method=self._method, seed=self._seed)
        write_json(Path(self._path), calibration, indent=2)
        return calibration


def plain(calibration: Calibration) -> dict[str, Any]:
    """What --json gives of a calibration: all but its curves."""
    shown = {"detector", "source", "method", "threshold", "quality", "data", "signature"}
    return {name: value for name, value in msgspec.to_builtins(calibration).items() if name in shown}


def show_calibration(calibration: Calibration, path: str) -> None:
    """What was measured of a calibration, as a table."""
    show_measured(
        calibration.quality,
        f"Calibration of {calibration.detector} ({calibration.method}), in {path}",
        [
            "given: the confidences as they came; calibrated: by fits that did not see the text; change: of the two, on"
            " the same resamples of whole texts. 95% intervals; those of ECE lie high in small data.",
            f"Calibrated, F1 of words is best from {calibration.threshold:.4f} on: the threshold of the file.",
            calibration.signature,
        ],
    )


def show_measured(rows: Sequence[Measured], title: str, notes: Sequence[str]) -> None:
    """A table on standard output: a row for each level, script and figure, a column for each thing measured."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    columns = list(dict.fromkeys(row.what for row in rows))
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for head in ("level", "script", "n", "texts", "figure", *columns):
        table.add_column(head, justify="right" if head in {"n", "texts"} else "left", no_wrap=True)
    by_place: dict[tuple[str, str, str], dict[str, Measured]] = {}
    for row in rows:
        by_place.setdefault((row.level, row.script, row.name), {})[row.what] = row
    for (level, script, name), by_column in by_place.items():
        measured = next(iter(by_column.values()))
        cells = [_cell(by_column.get(column)) for column in columns]
        table.add_row(level, script, f"{measured.units:,}", f"{measured.texts:,}", _NAMES.get(name, name), *cells)
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else _WIDTH)
    console.print(table)
    for note in notes:
        console.print(note, highlight=False)


def _cell(measured: Measured | None) -> str:
    if measured is None or measured.value is None:
        return "-"
    interval = (
        f" [{measured.low:.3f}, {measured.high:.3f}]" if measured.low is not None and measured.high is not None else ""
    )
    return f"{measured.value:.3f}{interval}"


# From the name of a detector to the recipe by which every process makes its own.


Level = Literal["fact", "sentence", "response"]

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
    from veriglot.pipeline.engine import Recipe

    if threshold is not None and not 0.0 <= threshold <= 1.0:
        raise UsageError(f"--threshold is a probability between 0 and 1, but {threshold} was given.")
    options: dict[str, Any] = {**read_settings(settings, own=_OWN), "threshold": threshold, "words": words}
    if calibration is not None:
        options["calibration_file"] = calibration
    return Recipe(load, (name,), options if level == "response" else {**options, "level": level})


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
        from veriglot.detectors.calibration import Calibrated

        return Calibrated(
            partial(load, name, **settings), calibration=calibration_file, threshold=threshold, words=words
        )
    from veriglot.detectors.registry import load_named

    return load_named(name, threshold=threshold, words=words, **settings)
