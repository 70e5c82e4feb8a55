"""What a pass over responses and predictions sees beside the counts of units: status, quality, types, examples."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from veriglot.build.quality import Quality, QualityTally
from veriglot.metrics.marks import ranges
from veriglot.metrics.units import segmenter
from veriglot.records import Status
from veriglot.study.files import pairs
from veriglot.study.results import Example
from veriglot.study.tallying import language_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from veriglot.records import Prediction, Sample
    from veriglot.run.watch import Watch
    from veriglot.study.config import Config
    from veriglot.study.folder import Folder

__all__ = ["Seen", "Survey", "survey_all"]

_UNTYPED = "unsupported"
NOTHING = Quality(0, 0.0, 0.0, 0.0, None, None, 0.0, 0.0, None, 0.0, 0)
_EXAMPLES = 3  # of a language


@dataclass
class Seen:
    """One model in one language.

    Attributes:
        statuses: predictions by status.
        types: marked units by span type.
        quality: of the responses.
        best: the example with the most confident mark, and that confidence.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    quality: QualityTally = field(default_factory=QualityTally)
    best: tuple[float, Example] | None = None


class Survey:
    """Takes each response with what the first detector said of it; memory grows with models and languages only.

    Args:
        unit: what types are counted in.
    """

    def __init__(self, unit: str) -> None:
        self._segment = segmenter(unit)
        self._by_words = unit == "word"
        self.cells: dict[tuple[str, str], Seen] = {}

    def add(self, model: str, sample: Sample, prediction: Prediction) -> None:
        """Count one response."""
        tag = language_of(sample, prediction)
        cell = self.cells.setdefault((model, tag), Seen())
        cell.statuses[prediction.status] += 1
        cell.quality.add(sample)
        if prediction.status is Status.SCORED and prediction.spans:
            self._add_marks(cell, tag, sample, prediction)

    def quality(self, model: str, language: str) -> Quality:
        """The quality of the responses of one model in one language; of no responses where there are none."""
        cell = self.cells.get((model, language))
        found = cell.quality.quality() if cell is not None else None
        return found if found is not None else NOTHING

    def examples(self, languages: Iterable[str]) -> tuple[Example, ...]:
        """The most confident marks of each language, of different models."""
        chosen: list[Example] = []
        for tag in languages:
            best = [cell.best for (_, language), cell in self.cells.items() if language == tag and cell.best]
            best.sort(key=lambda pair: (-pair[0], pair[1].sample.id))
            chosen += [example for _, example in best[:_EXAMPLES]]
        return tuple(chosen)

    def _add_marks(self, cell: Seen, tag: str, sample: Sample, prediction: Prediction) -> None:
        spans = prediction.spans
        assert spans
        if self._by_words and prediction.words is not None:
            bounds = ranges(prediction.words)
        else:
            bounds = self._segment(sample.response, tag)
        marks = ranges(spans)
        first = np.searchsorted(bounds[:, 1], marks[:, 0], side="right")
        last = np.searchsorted(bounds[:, 0], marks[:, 1], side="left")
        for span, count in zip(spans, (last - first).tolist(), strict=True):
            cell.types[span.type or _UNTYPED] += max(0, count)
        most = max(span.confidence or 0.0 for span in spans)
        if cell.best is None or (-most, sample.id) < (-cell.best[0], cell.best[1].sample.id):
            shown = msgspec.structs.replace(prediction, words=None)
            cell.best = (most, Example(sample, shown))


def survey_all(config: Config, folder: Folder, models: Iterable[str], detector: str, watch: Watch) -> Survey:
    """Look at every response and at what one detector (by its label) said of it."""
    found = Survey(config.study.unit)
    for model in models:
        for sample, prediction in pairs(folder.responses(model), folder.predictions(detector, model)):
            found.add(model, sample, prediction)
            watch.advance()
    return found
