"""Stacking: labelled samples with several detectors' predictions, and the weight of each, measured across folds."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from veriglot.detectors.calibration import ByScript, Measured, predicted_language, read_words, settings_of
from veriglot.detectors.ensemble import Mix, Stacked, Stacking, features, mean_of
from veriglot.errors import UsageError
from veriglot.pipeline.engine import judge
from veriglot.records import Status
from veriglot.signatures import __version__, signature
from veriglot.text.segmentation import word_bounds
from veriglot.training.confidences import (
    ALL,
    FOLDS,
    Rows,
    ScriptFits,
    Units,
    best_threshold,
    check_texts,
    judged,
    logistic_rising,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.calibration import Source
    from veriglot.detectors.ensemble import Member
    from veriglot.records import Detector, Prediction, Sample

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

__all__ = ["train"]


_BATCH = 64
FEWEST = 20  # texts, for anything at all
_FOR_A_SCRIPT = 50  # texts that a script needs for weights of its own
_PULL = 500.0  # towards the default, as so many words
_PULL_OF_RESPONSES = 50.0
_MEAN, _STACK = "mean", "stack"
_SHOWN = ("average_precision", "auroc", "ece", "brier", "f1")


def train(
    samples: Iterable[Sample], members: Sequence[Member], *, annotator: str | None = None, seed: int = 0
) -> tuple[Stacking, Rows]:
    """Have every member judge labelled samples, and learn how much each counts.

    Args:
        samples: with labels; those that a member does not score are left out, and counted.
        members: the detectors.
        annotator: whose labels; see `metrics.reference`.
        seed: of the folds and of the intervals.

    Returns:
        The weights, and the rows that they were learned from.

    Raises:
        UsageError: there is too little to learn from.
        MissingExtraError, WeightsError: a member cannot be loaded.
    """
    detectors = [member.load(None) for member in members]
    rows = Rows(annotator)
    source = iter(samples)
    while batch := list(islice(source, _BATCH)):
        answers = [judge(detector, batch) for detector in detectors]
        for index, sample in enumerate(batch):
            _add_row(rows, sample, [predictions[index] for predictions in answers])
    return fit_stacking(rows, members, detectors, seed=seed), rows


def _add_row(rows: Rows, sample: Sample, predictions: Sequence[Prediction]) -> None:
    """Add one response with what several detectors say of its words; one that a detector did not score is left out."""
    if any(prediction.status is not Status.SCORED for prediction in predictions):
        rows.add(sample, predictions)
        return
    tag, _ = predicted_language(sample, predictions[0])
    bounds = word_bounds(sample.response, tag)
    rows.add(sample, predictions, [read_words(sample, prediction, bounds) for prediction in predictions])


def fit_stacking(rows: Rows, members: Sequence[Member], detectors: Sequence[Detector], *, seed: int = 0) -> Stacking:
    """Weights from labelled responses that every member scored.

    Each script of at least 50 texts has weights of its own, drawn towards the default's. The quality is that of five
    fits of the same kind, each measured on the texts that it did not see, beside each member alone and their mean.
    """
    rows.check()
    texts = rows.texts()
    check_texts(rows, texts, FEWEST, f"Weights take at least {FEWEST} labelled texts that every member scored")
    read = rows.rows
    fitting = _Fitting(read, texts, seed, _FOR_A_SCRIPT)
    words = Units.words(read)
    crossed = fitting.combined(words, _PULL)
    threshold = best_threshold(crossed, words.target)
    names = [detector.name for detector in detectors]
    quality = _quality(fitting, words, crossed, names, [detector.threshold for detector in detectors], seed)
    responses = Units.responses(read)
    both = responses.target.any() and not responses.target.all()
    return Stacking(
        format=Stacking.known,
        members=tuple(_stacked(*pair, rows) for pair in zip(range(len(members)), members, detectors, strict=True)),
        threshold=threshold,
        words=fitting.mixes(words, _PULL),
        responses=fitting.mixes(responses, _PULL_OF_RESPONSES) if both else None,
        quality=tuple(quality),
        data=rows.data,
        signature=signature(
            stacked="+".join(names), data=rows.data.sha256[:16], kind=rows.data.kind, annotator=rows.annotator,
            folds=FOLDS, seed=seed, version=__version__,
        ),
    )  # fmt: skip


def _stacked(index: int, member: Member, detector: Detector, rows: Rows) -> Stacked:
    source: Source = "spans" if rows.rows[0].spans_alone[index] else "words"
    if any(row.spans_alone[index] != rows.rows[0].spans_alone[index] for row in rows.rows):
        raise UsageError(f"{detector.name} gives words for some samples and spans alone for others.")
    settings = settings_of(detector.signature) if source == "words" else detector.signature
    return Stacked(member, detector.name, settings or "", source)


class _Fitting(ScriptFits[Mix]):
    """Fits weights by script on any part of the responses."""

    def mixes(self, units: Units, pull: float) -> ByScript[Mix]:
        """Weights from all responses."""
        return ByScript(*self.fit(units, self._fits(units, pull)))

    def combined(self, units: Units, pull: float) -> Array:
        """The combined confidence of each unit, by weights that no response of its text had a part in; shape (n,)."""
        everyone = np.ones(units.given.shape[1], dtype=bool)

        def confidences(mix: Mix, here: Mask, learned: Mask) -> Array | np.floating[Any]:
            probabilities = mix.probabilities(features(units.given[here], units.inside[here]), everyone)
            return units.target[learned].mean() if probabilities is None else probabilities

        return self.crossed(units, self._fits(units, pull), confidences)

    @staticmethod
    def _fits(units: Units, pull: float) -> Callable[[Mask, Mix | None, tuple[str, ...]], Mix]:
        return lambda here, default, languages: _fitted(units, here, default, pull, languages)

    def thresholds(self, units: Units, crossed: Array) -> Array:
        """From where each unit is marked: where F1 is best in the other folds, shape (n,)."""
        fold = self.folds[units.row]
        result = np.zeros(len(fold))
        for number in range(FOLDS):
            result[fold == number] = best_threshold(crossed[fold != number], units.target[fold != number])
        return result


def _fitted(units: Units, mask: Mask, default: Mix | None, pull: float, languages: tuple[str, ...]) -> Mix:
    some = units.of(mask)
    rows = np.column_stack([features(some.given, some.inside), np.ones(len(some.target))])
    members = some.given.shape[1]
    start = np.append(np.full(members, 1.0 / members), 0.0)
    if default is not None:
        start = np.append(default.weights, default.offset)
    target = some.target.astype(np.float64)
    coefficients = logistic_rising(
        rows, target, np.ones(len(target)), start=start, pull=0.0 if default is None else pull
    )
    return Mix(tuple(coefficients[:-1].tolist()), float(coefficients[-1]), languages)


def _quality(
    fitting: _Fitting,
    words: Units,
    crossed: Array,
    names: Sequence[str],
    thresholds: Sequence[float],
    seed: int,
) -> list[Measured]:
    """Each member that gave words, their mean, and the stack, for all and for each script."""
    total = len(words.target)
    systems: list[tuple[str, Array, Array]] = [
        (name, words.given[:, index], np.full(total, thresholds[index]))
        for index, name in enumerate(names)
        if not np.isnan(words.given[:, index]).any()
    ]
    if len(systems) == len(names):
        together = mean_of(words.given, np.ones(len(names)))
        systems.append((_MEAN, together, np.full(total, 0.5)))
    systems.append((_STACK, crossed, fitting.thresholds(words, crossed)))
    rows = []
    for script, mask in fitting.parts(words):
        texts = fitting.texts[words.row[mask]]
        for what, given, at in systems:
            figures = judged(given[mask], words.target[mask], texts, seed=seed, threshold=at[mask])
            count = len(set(texts.tolist()))
            rows += [
                Measured.of("word", script, what, figure.name, figure, int(mask.sum()), count) for figure in figures
            ]
    order = {name: index for index, name in enumerate(_SHOWN)}
    return sorted(rows, key=lambda row: (row.script != ALL, row.script, order[row.name]))
