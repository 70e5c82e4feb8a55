"""Recorded figures of detectors: how well each did in a language, on which data, in a bench that somebody ran."""

from __future__ import annotations

from collections import defaultdict
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from veriglot.detectors.calibration import read_versioned
from veriglot.signatures import digest

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["RECORDED", "Known", "Ranked", "Recorded", "RecordedFigure", "Setting", "read_recorded"]

RECORDED = "veriglot-recorded/1"

Setting = Literal["evidence", "translation"]


class Known(NamedTuple):
    """A detector of the bench.

    Attributes:
        name: the name that loads it.
        options: what it was made with, as pairs of name and JSON text.
        revision: its name and revision then; figures say nothing of another.
    """

    name: str
    options: tuple[tuple[str, str], ...]
    revision: str


class RecordedFigure(msgspec.Struct, frozen=True):
    """How well one detector did in one language on one data set.

    Attributes:
        detector: its name and revision.
        name: the name that loads it.
        language: BCP 47 tag of the responses.
        setting: `translation` where the evidence was their source text, otherwise `evidence`.
        data: name of the data set.
        value, low, high: the figure with its 95% interval; more is better.
        items, texts: units and texts behind it.
        options: what it was made with, as JSON text by option.
    """

    detector: str
    name: str
    language: str
    setting: Setting
    data: str
    value: float
    low: float | None
    high: float | None
    items: int
    texts: int
    options: dict[str, str] = {}

    @property
    def known(self) -> Known:
        """Which detector it is of."""
        return Known(self.name, tuple(sorted(self.options.items())), self.detector)


class Ranked(NamedTuple):
    """A detector with its mean over the data sets that it was compared on."""

    known: Known
    value: float


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one bench.

    Attributes:
        format: `veriglot-recorded/1`.
        level, measure: what was measured, such as `word` and `auc_pr_nonfactual`.
        figures: all of them.
        signature: of the bench.
    """

    format: str
    level: str
    measure: str
    figures: tuple[RecordedFigure, ...]
    signature: str

    @property
    def revision(self) -> str:
        """A short hash of the figures."""
        return digest([msgspec.json.encode(self.figures)])[:8]

    def detectors(self) -> list[Known]:
        """Every detector that figures are of, in their order."""
        return list(dict.fromkeys(figure.known for figure in self.figures))

    def ranking(self, language: str, setting: Setting, among: Collection[Known]) -> list[Ranked]:
        """Detectors by their figures in a language, the best first; empty where there are none.

        They are compared on the data sets that all of them have a figure on. Where there is no such data set, the one
        that has figures on fewest is left out, and so on.
        """
        table: dict[Known, dict[str, float]] = defaultdict(dict)
        for figure in self.figures:
            if figure.language == language and figure.setting == setting and figure.known in among:
                table[figure.known][figure.data] = figure.value
        while table:
            shared = set.intersection(*(set(row) for row in table.values()))
            if shared:
                break
            del table[min(table, key=lambda known: len(table[known]))]
        means = [Ranked(known, fmean(row[data] for data in sorted(shared))) for known, row in table.items()]
        return sorted(means, key=lambda ranked: -ranked.value)

    def places(self) -> list[tuple[str, Setting]]:
        """Every language and setting that figures are of."""
        return sorted({(figure.language, figure.setting) for figure in self.figures})


def read_recorded(path: str | Path | None = None) -> Recorded | None:
    """Recorded figures.

    Args:
        path: a file that `veriglot bench record` wrote; None for the one in the package.

    Returns:
        None where the package has none.

    Raises:
        InputError: the file that was named is missing, or is something else.
    """
    file = Path(path) if path is not None else Path(str(files("veriglot.detectors") / "recorded.json"))
    if path is None and not file.is_file():
        return None
    return read_versioned(file, Recorded, RECORDED, "file of recorded figures", "veriglot bench record")
