"""`veriglot evaluate --calibrate`: fit a calibration beside the evaluation, write it, and show what it does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.detectors.confidences.calibration import Calibration, Measured
    from veriglot.records import Prediction, Sample
    from veriglot.train.confidences.calibrating import Method

__all__ = [
    "CALIBRATE_HELP",
    "CALIBRATION_HELP",
    "CURVE_HELP",
    "Calibrating",
    "plain",
    "show_calibration",
    "show_measured",
]

CALIBRATION_HELP = (
    "Calibrate the detector's confidences by this file, which veriglot evaluate --calibrate wrote. Default: none."
)
CALIBRATE_HELP = (
    "Fit a calibration of the detector on the data, by script, and write it here, as JSON; it is shown how much better"
    " the confidences are on texts that a fit did not see. Default: none."
)
CURVE_HELP = (
    "Shape of --calibrate: platt (a line of log odds, for some dozens of texts or more) or isotonic (any rising shape,"
    " for some hundreds). Default: platt."
)
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
            from veriglot.train.confidences.rows import Rows

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
        from veriglot.run.manifest import write_whole
        from veriglot.train.confidences.calibrating import fit_calibration

        found = fit_calibration(self._rows, detector=detector, made=made, method=self._method, seed=self._seed)
        write_whole(Path(self._path), msgspec.json.format(msgspec.json.encode(found)) + b"\n")
        return found


def plain(found: Calibration) -> dict[str, Any]:
    """What --json gives of a calibration: all but its curves."""
    kept = {"detector", "source", "method", "threshold", "quality", "data", "signature"}
    return {name: value for name, value in msgspec.to_builtins(found).items() if name in kept}


def show_calibration(found: Calibration, path: str) -> None:
    """What was measured of a calibration, as a table."""
    show_measured(
        found.quality,
        f"Calibration of {found.detector} ({found.method}), in {path}",
        [
            "given: the confidences as they came; calibrated: by fits that did not see the text; change: of the two, on"
            " the same resamples of whole texts. 95% intervals; those of ECE lie high in small data.",
            f"Calibrated, F1 of words is best from {found.threshold:.4f} on: the threshold of the file.",
            found.signature,
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
    for (level, script, name), found in by_place.items():
        one = next(iter(found.values()))
        cells = [_cell(found.get(column)) for column in columns]
        table.add_row(level, script, f"{one.units:,}", f"{one.texts:,}", _NAMES.get(name, name), *cells)
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else _WIDTH)
    console.print(table)
    for note in notes:
        console.print(note, highlight=False)


def _cell(one: Measured | None) -> str:
    if one is None or one.value is None:
        return "-"
    interval = f" [{one.low:.3f}, {one.high:.3f}]" if one.low is not None and one.high is not None else ""
    return f"{one.value:.3f}{interval}"
