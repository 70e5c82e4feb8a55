"""Fitting a calibration of one detector on labelled responses, and measuring it on texts that it did not see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from veriglot import __version__
from veriglot.detectors.confidences.calibration import CALIBRATION, Calibration, Level, Measured, WordCurve, settings_of
from veriglot.detectors.confidences.curves import Curve, Platt, logit
from veriglot.errors import UsageError
from veriglot.metrics.bootstrap import percentile
from veriglot.provenance import signature
from veriglot.train.confidences.isotonic import fit_isotonic
from veriglot.train.confidences.quality import Judged, best_threshold, judged
from veriglot.train.confidences.texts import FOLDS, folds_of
from veriglot.train.logistic import logistic_rising

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.confidences.calibration import Source
    from veriglot.train.confidences.rows import Row, Rows

    Array = NDArray[np.float64]

__all__ = ["METHODS", "Method", "fit_calibration"]

Method = Literal["platt", "isotonic"]

METHODS: tuple[Method, ...] = ("platt", "isotonic")
FEWEST = 10  # texts, for anything at all
_FOR_A_SCRIPT = {"platt": 30, "isotonic": 200}  # texts that a script needs for a curve of its own
_PULL_OF_WORDS, _PULL_OF_RESPONSES = 500.0, 100.0  # towards the default curve, as so many units
_ALL = "all"
_SHOWN = {"ece", "brier"}


class Units(NamedTuple):
    """Words or responses with one confidence each.

    Attributes:
        given: confidences, NaN where there is none, shape (n,).
        inside: whether a span overlaps it, shape (n,).
        target: whether it is unsupported, shape (n,).
        row: the place of its response, shape (n,).
    """

    given: Array
    inside: NDArray[np.bool_]
    target: NDArray[np.bool_]
    row: NDArray[np.int64]

    def of(self, kept: NDArray[np.bool_]) -> Units:
        """Some of them."""
        return Units(self.given[kept], self.inside[kept], self.target[kept], self.row[kept])


def fit_calibration(
    rows: Rows, *, detector: str, made: str | None, method: Method = "platt", seed: int = 1
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
    words, responses = _words(rows.found), _responses(rows.found)
    _check(rows, texts, words)
    fitting = _Fitting(rows.found, texts, folds_of(texts, [row.script for row in rows.found], seed), source, method)
    crossed = fitting.crossed(words, _PULL_OF_WORDS)
    quality = _quality(fitting, "word", words, crossed, seed)
    level = None
    if responses.target.any() and not responses.target.all():
        level = fitting.level(responses, _PULL_OF_RESPONSES, source="words")
        across = fitting.crossed(responses, _PULL_OF_RESPONSES, source="words")
        quality += _quality(fitting, "response", responses, across, seed)
    threshold = best_threshold(crossed, words.target)
    data = rows.data
    return Calibration(
        format=CALIBRATION,
        detector=detector,
        settings=settings_of(made) if source == "words" else made,
        source=source,
        method=method,
        threshold=threshold,
        words=fitting.level(words, _PULL_OF_WORDS),
        responses=level,
        quality=tuple(quality),
        data=data,
        signature=signature(
            calibrated=detector, method=method, data=data.sha256[:16], kind=data.kind, annotator=rows.annotator,
            folds=FOLDS, seed=seed, version=__version__,
        ),
    )  # fmt: skip


def _source(rows: Rows) -> Source:
    kinds = {row.spans_alone[0] for row in rows.found}
    if len(kinds) > 1:
        raise UsageError(
            "Some predictions carry the confidences of words, and some spans alone; one calibration cannot hold both.",
            remedy="Make all of them with --words.",
        )
    return "spans" if kinds == {True} else "words"


def _check(rows: Rows, texts: NDArray[np.int64], words: Units) -> None:
    count = len(set(texts.tolist()))
    if count < FEWEST:
        reasons = ", ".join(f"{why} {number}" for why, number in rows.left_out.most_common())
        raise UsageError(
            f"A calibration takes at least {FEWEST} labelled texts that were scored, but there are {count}"
            + (f" (left out: {reasons})." if reasons else "."),
        )
    if words.target.all() or not words.target.any():
        kind = "unsupported" if words.target.any() else "supported"
        raise UsageError(f"Every labelled word is {kind}, so there is nothing to tell apart.")


def _words(found: Sequence[Row]) -> Units:
    return Units(
        np.concatenate([row.confidences[:, 0] for row in found] or [np.zeros(0)]),
        np.concatenate([row.inside[:, 0] for row in found] or [np.zeros(0, dtype=bool)]),
        np.concatenate([row.target for row in found] or [np.zeros(0, dtype=bool)]),
        np.repeat(np.arange(len(found)), [len(row.target) for row in found]),
    )


def _responses(found: Sequence[Row]) -> Units:
    wrong = np.array([row.wrong for row in found], dtype=bool)
    scores = np.array([row.scores[0] for row in found], dtype=np.float64)
    return Units(scores, np.ones(len(found), dtype=bool), wrong, np.arange(len(found)))


class _Fitting:
    """Fits curves by script on any part of the responses."""

    def __init__(
        self,
        found: Sequence[Row],
        texts: NDArray[np.int64],
        folds: NDArray[np.int64],
        source: Source,
        method: Method,
    ) -> None:
        self.texts = texts
        self.scripts = np.array([row.script or "" for row in found])
        self._bases = [(row.language or "").split("-")[0] for row in found]
        self._folds = folds
        self._source = source
        self._method = method

    def level(
        self, units: Units, pull: float, kept: NDArray[np.bool_] | None = None, *, source: Source | None = None
    ) -> Level:
        """Curves of units, of the responses that are kept."""
        chosen = np.ones(len(self.texts), dtype=bool) if kept is None else kept
        own = source or self._source
        default = self._curve(units.of(chosen[units.row]), own, None, pull)
        found = {}
        for script in sorted(set(self.scripts[chosen].tolist()) - {""}):
            of_script = chosen & (self.scripts == script)
            here = units.of(of_script[units.row])
            enough = len(set(self.texts[of_script].tolist())) >= _FOR_A_SCRIPT[self._method]
            if enough and here.target.any() and not here.target.all():
                tags = {self._bases[place] for place in np.flatnonzero(of_script).tolist()}
                found[script] = self._curve(here, own, default, pull, tuple(sorted(tags - {""})))
        return Level(default, found)

    def crossed(self, units: Units, pull: float, *, source: Source | None = None) -> Array:
        """The calibrated confidence of each unit, by a fit that saw no response of its text; shape (n,)."""
        result = np.zeros(len(units.target))
        for fold in range(FOLDS):
            held = self._folds == fold
            level = self.level(units, pull, ~held, source=source)
            for script in sorted(set(self.scripts[held].tolist())):
                here = (held & (self.scripts == script))[units.row]
                curve = level.scripts.get(script, level.default)
                result[here] = curve.probabilities(units.given[here], units.inside[here], source or self._source)
        return result

    def _curve(
        self, units: Units, source: Source, default: WordCurve | None, pull: float, languages: tuple[str, ...] = ()
    ) -> WordCurve:
        given = ~np.isnan(units.given)
        some = units.of(given)
        curve = default.curve if default is not None else None
        if len(some.target):
            curve = self._fitted(logit(some.given), some.target, curve, pull)
        if source == "words":
            return WordCurve(curve, languages=languages)
        return WordCurve(curve, _share(units.target[~units.inside]), _share(units.target[units.inside]), languages)

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
    scripts = fitting.scripts[units.row]
    parts: list[tuple[str, NDArray[np.bool_]]] = [(_ALL, np.ones(len(scripts), dtype=bool))]
    known = sorted(set(scripts.tolist()) - {""})
    if len(known) > 1:
        parts += [(script, scripts == script) for script in known]
    rows = []
    for script, kept in parts:
        rows += _compared(fitting, level, script, units.of(kept), crossed[kept], seed)
    return rows


def _compared(fitting: _Fitting, level: str, script: str, units: Units, crossed: Array, seed: int) -> list[Measured]:
    texts = fitting.texts[units.row]
    count = len(set(texts.tolist()))
    after = judged(crossed, units.target, texts, seed=seed)
    rows = [Measured.of(level, script, "calibrated", one, len(crossed), count) for one in after if one.name in _SHOWN]
    if np.isnan(units.given).any():
        return rows
    before = judged(units.given, units.target, texts, seed=seed)
    given = [Measured.of(level, script, "given", one, len(crossed), count) for one in before if one.name in _SHOWN]
    change = [
        Measured.of(level, script, "change", _difference(one, other), len(crossed), count)
        for one, other in zip(before, after, strict=True)
        if one.name in _SHOWN
    ]
    return [*given, *rows, *change]


def _difference(before: Judged, after: Judged) -> Judged:
    drawn = after.drawn - before.drawn
    if before.value is None or after.value is None:
        return Judged(before.name, None, None, None, drawn)
    low, high, _ = percentile(drawn)
    return Judged(before.name, after.value - before.value, low, high, drawn)
