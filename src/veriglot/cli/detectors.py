"""Detectors of commands: from a name to a picklable constructor, and tables of their confidences."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from veriglot.detectors.registry import at_strictness, load_named
from veriglot.plugins import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from veriglot.detectors.calibration import Measured
    from veriglot.records import Detector

__all__ = ["Level", "detector_recipe", "load", "show_measured"]

Level = Literal["fact", "sentence", "response"]

_OWN = frozenset({"threshold", "words", "level", "strictness"})  # the command's own options
_NAMES = {"ece": "ECE", "brier": "Brier", "average_precision": "AP", "auroc": "AUROC", "f1": "F1"}


def detector_recipe(
    name: str,
    *,
    threshold: float | None,
    words: bool,
    level: Level = "response",
    settings: Sequence[str] = (),
    calibration: str | None = None,
    strictness: str = "normal",
) -> Callable[[], Any]:
    """A picklable constructor of the detector `name` with these options, for this process or another.

    Args:
        name: a name that `veriglot.load_detector` knows, or `package.module:Class` for your own class with the
            keyword arguments `threshold` and `words`. Its module may be in the working folder.
        threshold: minimum confidence of a marked word, 0 to 1; None for the detector's default.
        words: whether predictions have all words with their confidences.
        level: `fact` or `sentence` for predictions with these and their scores, or `response` for neither.
        settings: further options of the detector, each as `name=value`.
        calibration: a file that calibrates the detector's confidences, or None.
        strictness: `low`, `normal` or `high`, which selects one of the detector's thresholds.

    Raises:
        UsageError: a setting is not `name=value`.
    """
    options: dict[str, Any] = {"words": words, "level": level, "calibration_file": calibration}
    options |= read_settings(settings, own=_OWN)
    return partial(at_strictness, partial(load, name, **options), strictness, threshold)


def load(
    name: str,
    *,
    threshold: float | None = None,
    words: bool = False,
    level: Level = "response",
    calibration_file: str | None = None,
    strictness: str = "normal",
    **settings: Any,
) -> Detector:
    """Make the detector; see `detector_recipe`.

    Raises:
        UsageError: `package.module:Class` does not exist, or is not a detector.
        UnknownNameError: no detector has that name.
    """
    if strictness != "normal":
        options = {"words": words, "level": level, "calibration_file": calibration_file, **settings}
        return at_strictness(partial(load, name, **options), strictness, threshold)
    if level != "response":
        from veriglot.detectors.units import WithUnits

        detector = load(name, threshold=threshold, words=True, calibration_file=calibration_file, **settings)
        return WithUnits(detector, level, words)
    if calibration_file is not None:
        from veriglot.detectors.calibration import Calibrated

        make = partial(load_named, name, **settings)
        return Calibrated(make, calibration=calibration_file, threshold=threshold, words=words)
    return load_named(name, threshold=threshold, words=words, **settings)


def show_measured(rows: Sequence[Measured], title: str, notes: Sequence[str]) -> None:
    """A table on standard output: one row per level, script and figure, one column per measured thing."""
    from veriglot.report.tables import Table

    columns = list(dict.fromkeys(row.what for row in rows))
    by_figure: dict[tuple[str, str, str], dict[str, Measured]] = {}
    for row in rows:
        by_figure.setdefault((row.level, row.script, row.name), {})[row.what] = row
    cells = []
    for (level, script, name), by_column in by_figure.items():
        first = next(iter(by_column.values()))
        figures = [_figure(by_column.get(column)) for column in columns]
        cells.append((level, script, f"{first.units:,}", f"{first.texts:,}", _NAMES.get(name, name), *figures))
    Table(title, ("level", "script", "n", "texts", "figure", *columns), cells, lead=5).print()
    print("\n".join(notes))


def _figure(measured: Measured | None) -> str:
    if measured is None or measured.value is None:
        return "-"
    bounds = (
        f" [{measured.low:.3f}, {measured.high:.3f}]" if measured.low is not None and measured.high is not None else ""
    )
    return f"{measured.value:.3f}{bounds}"
