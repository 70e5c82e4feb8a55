"""mFAVA's Figure 4 and what belongs to it, read from a folder of tables: its cells, Table 10, facts of the text."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Figure4", "facts", "precision_recall", "read_figure4"]

_ROUNDING = 0.005  # figures are printed to two decimals of a percent
# Where float sums land on a bound: far below any figure, far above the dust of adding thirty numbers.
_DUST = 1e-9


@dataclass(frozen=True)
class Figure4:
    """Rates of 11 models in 30 languages, in percent.

    Attributes:
        languages, models: names, in the figure's order (averages ascend).
        low, high: what each cell can be, `(30, 11)`: half a last digit around a printed one, worst-case bounds for the
            17 that the text of the paper lost.
        by_language, by_model: printed mean and +-, `(30, 2)` and `(11, 2)`.
        overall: printed mean and +-, `(2,)`.
        printed: which cells the text holds, `(30, 11)`.
    """

    languages: tuple[str, ...]
    models: tuple[str, ...]
    low: Array
    high: Array
    by_language: Array
    by_model: Array
    overall: Array
    printed: NDArray[np.bool_]

    @property
    def rates(self) -> Array:
        """The printed value, or the middle of the bounds, `(30, 11)`."""
        return (self.low + self.high) / 2

    def of(self, *models: str) -> Array:
        """Columns of `models`, `(30, n)`."""
        return self.rates[:, [self.models.index(model) for model in models]]

    def mean_bounds(self, axis: int) -> tuple[Array, Array]:
        """Smallest and largest mean that the bounds of the cells allow, less and plus the rounding of the mean."""
        return self.low.mean(axis) - _ROUNDING - _DUST, self.high.mean(axis) + _ROUNDING + _DUST

    def sd_slack(self, axis: int) -> Array:
        """How far the standard deviation (ddof 1) can lie off that of `rates`: |d sd| <= ||d values|| / sqrt(n - 1)."""
        halves = (self.high - self.low) / 2
        slack: Array = np.sqrt((halves**2).sum(axis) / (self.low.shape[axis] - 1)) + _ROUNDING + _DUST
        return slack


def read_figure4(folder: Path) -> Figure4:
    """Read the figure from `mfava_figure4_hallucination_rates.csv` in `folder`."""
    rows = _rows(folder / "mfava_figure4_hallucination_rates.csv")
    cells = [row for row in rows if row["kind"] == "cell"]
    languages = tuple(dict.fromkeys(row["language"] for row in cells))
    models = tuple(dict.fromkeys(row["model"] for row in cells))
    low, high = np.full((2, len(languages), len(models)), np.nan)
    printed = np.zeros((len(languages), len(models)), dtype=np.bool_)
    for row in cells:
        place = languages.index(row["language"]), models.index(row["model"])
        low[place], high[place] = _bounds(row)
        printed[place] = row["status"] == "printed"
    averages = {
        kind: np.array([[float(row["mean"]), float(row["std"])] for row in rows if row["kind"] == kind])
        for kind in ("language_average", "model_average", "overall_average")
    }
    return Figure4(
        languages, models, low, high, averages["language_average"], averages["model_average"],
        averages["overall_average"][0], printed,
    )  # fmt: skip


def precision_recall(folder: Path) -> dict[tuple[str, str], tuple[float, float]]:
    """Table 10: precision and recall, as shares, by (test set, language)."""
    return {
        (row["test_set"], row["language"]): (float(row["precision"]) / 100, float(row["recall"]) / 100)
        for row in _rows(folder / "mfava_table10_precision_recall_f1.csv")
        if row["kind"] == "language"
    }


def facts(folder: Path) -> dict[str, Any]:
    """Figures of the text, by name."""
    held = json.loads((folder / "mfava_facts.json").read_text(encoding="utf-8"))["facts"]
    return {name: fact["value"] for name, fact in held.items()}


def _bounds(row: dict[str, str]) -> tuple[float, float]:
    if row["status"] == "printed":
        return float(row["mean"]) - _ROUNDING, float(row["mean"]) + _ROUNDING
    low, high = float(row["low"]), float(row["high"])
    if not row["mean"]:
        return low, high
    # Bounds are rounded, and need not lie evenly around what they bound.
    half = max(float(row["mean"]) - low, high - float(row["mean"])) + _ROUNDING
    return float(row["mean"]) - half, float(row["mean"]) + half


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
