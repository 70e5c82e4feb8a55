"""Fitting a calibration of one detector on labelled responses, and measuring it on texts that it did not see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from veriglot.detectors.calibration import (
    ByScript,
    Calibration,
    Curve,
    Measured,
    Platt,
    WordCurve,
    logit,
    settings_of,
)
from veriglot.errors import UsageError
from veriglot.metrics.estimate import percentile
from veriglot.signatures import __version__, signature
from veriglot.training.confidences import (
    FOLDS,
    Judged,
    ScriptFits,
    Units,
    best_threshold,
    check_texts,
    fit_isotonic,
    judged,
    logistic_rising,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.calibration import Source
    from veriglot.training.confidences import Row, Rows

    Array = NDArray[np.float64]

__all__ = ["Method", "fit_calibration"]

Method = Literal["platt", "isotonic"]

FEWEST = 10  # texts, for anything at all
_FOR_A_SCRIPT = {"platt": 30, "isotonic": 200}  # texts that a script needs for a curve of its own
_PULL_OF_WORDS, _PULL_OF_RESPONSES = 500.0, 100.0  # towards the default curve, as so many units
_SHOWN = {"ece", "brier"}


def fit_calibration(
    rows: Rows, *, detector: str, made: str | None, method: Method = "platt", seed: int = 0
) -> Calibration:
    """A calibration of what one detector said.

    Each script of at least 30 texts (isotonic: 200) has curves of its own, drawn towards the default's; the default is
    fitted on everything. The quality is that of five fits of the same kind, each measured on the texts it did not see.

    Args:
        rows: labelled responses with that detector's predictions.
        detector: its name and revision.
        made: its signature, or None.
        method: `platt` or `isotonic`.
        seed: of the folds and of the intervals.

    Raises:
        UsageError: too few texts, nothing or everything in them is unsupported, or words stand beside spans alone.
        UnknownNameError: no sample has labels of the annotator.
    """
    rows.check()
    texts = rows.texts()
    source = _source(rows)
    check_texts(rows, texts, FEWEST, f"A calibration takes at least {FEWEST} labelled texts that were scored")
    words, responses = Units.words(rows.rows), Units.responses(rows.rows)
    fitting = _Fitting(rows.rows, texts, seed, method)
    crossed = fitting.calibrated(words, _PULL_OF_WORDS, source)
    quality = _quality(fitting, "word", words, crossed, seed)
    level = None
    if responses.target.any() and not responses.target.all():
        level = fitting.level(responses, _PULL_OF_RESPONSES, "words")
        across = fitting.calibrated(responses, _PULL_OF_RESPONSES, "words")
        quality += _quality(fitting, "response", responses, across, seed)
    threshold = best_threshold(crossed, words.target)
    data = rows.data
    return Calibration(
        format=Calibration.known,
        detector=detector,
        settings=settings_of(made) if source == "words" else made,
        source=source,
        method=method,
        threshold=threshold,
        words=fitting.level(words, _PULL_OF_WORDS, source),
        responses=level,
        quality=tuple(quality),
        data=data,
        signature=signature(
            calibrated=detector, method=method, data=data.sha256[:16], kind=data.kind, annotator=rows.annotator,
            folds=FOLDS, seed=seed, version=__version__,
        ),
    )  # fmt: skip


def _source(rows: Rows) -> Source:
    kinds = {row.spans_alone[0] for row in rows.rows}
    if len(kinds) > 1:
        raise UsageError(
            "Some predictions carry the confidences of words, and some spans alone; one calibration cannot hold both.",
            remedy="Make all of them with --words.",
        )
    return "spans" if kinds == {True} else "words"


class _Fitting(ScriptFits[WordCurve]):
    """Fits curves by script on any part of the responses."""

    def __init__(self, rows: Sequence[Row], texts: NDArray[np.int64], seed: int, method: Method) -> None:
        super().__init__(rows, texts, seed, _FOR_A_SCRIPT[method])
        self._method = method

    def curves(
        self, units: Units, pull: float, source: Source
    ) -> Callable[[NDArray[np.bool_], WordCurve | None, tuple[str, ...]], WordCurve]:
        """Fits a curve on some of the units."""
        return lambda here, default, languages: self._curve(units.of(here), source, default, pull, languages)

    def level(self, units: Units, pull: float, source: Source) -> ByScript[WordCurve]:
        """Curves of all units."""
        return ByScript(*self.fit(units, self.curves(units, pull, source)))

    def calibrated(self, units: Units, pull: float, source: Source) -> Array:
        """The calibrated confidence of each unit, by a fit that saw no response of its text; shape (n,)."""
        return self.crossed(
            units,
            self.curves(units, pull, source),
            lambda curve, here, _: curve.probabilities(units.given[here, 0], units.inside[here, 0], source),
        )

    def _curve(
        self, units: Units, source: Source, default: WordCurve | None, pull: float, languages: tuple[str, ...] = ()
    ) -> WordCurve:
        some = units.of(~np.isnan(units.given[:, 0]))
        curve = default.curve if default is not None else None
        if len(some.target):
            curve = self._fitted(logit(some.given[:, 0]), some.target, curve, pull)
        if source == "words":
            return WordCurve(curve, languages=languages)
        inside = units.inside[:, 0]
        return WordCurve(curve, _share(units.target[~inside]), _share(units.target[inside]), languages)

    def _fitted(self, logits: Array, target: NDArray[np.bool_], default: Curve | None, pull: float) -> Curve:
        if self._method == "isotonic":
            return fit_isotonic(logits, target)
        features = np.stack([logits, np.ones_like(logits)], axis=1)
        start = np.array([default.slope, default.offset]) if isinstance(default, Platt) else np.array([1.0, 0.0])
        weight = pull if isinstance(default, Platt) else 0.0
        slope, offset = logistic_rising(
            features, target.astype(np.float64), np.ones(len(target)), start=start, pull=weight
        )
        return Platt(float(slope), float(offset))


def _share(target: NDArray[np.bool_]) -> float:
    """The share that is unsupported, drawn a little to the middle: no case is no certainty."""
    return round(float((target.sum() + 0.5) / (len(target) + 1.0)), 4)


def _quality(fitting: _Fitting, level: str, units: Units, crossed: Array, seed: int) -> list[Measured]:
    """What was given and what was made of it, for each script and for all."""
    rows = []
    for script, mask in fitting.parts(units):
        rows += _compared(fitting, level, script, units.of(mask), crossed[mask], seed)
    return rows


def _compared(fitting: _Fitting, level: str, script: str, units: Units, crossed: Array, seed: int) -> list[Measured]:
    texts = fitting.texts[units.row]
    count = len(set(texts.tolist()))
    after = [figure for figure in judged(crossed, units.target, texts, seed=seed) if figure.name in _SHOWN]
    size = len(crossed)
    rows = [Measured.of(level, script, "calibrated", figure.name, figure, size, count) for figure in after]
    if np.isnan(units.given).any():
        return rows
    before = [figure for figure in judged(units.given[:, 0], units.target, texts, seed=seed) if figure.name in _SHOWN]
    given = [Measured.of(level, script, "given", figure.name, figure, size, count) for figure in before]
    change = [
        Measured.of(level, script, "change", figure.name, _difference(figure, other), size, count)
        for figure, other in zip(before, after, strict=True)
    ]
    return [*given, *rows, *change]


def _difference(before: Judged, after: Judged) -> Judged:
    drawn = after.drawn - before.drawn
    if before.value is None or after.value is None:
        return Judged(before.name, drawn, value=None)
    low, high, _ = percentile(drawn)
    return Judged(before.name, drawn, value=after.value - before.value, low=low, high=high)
