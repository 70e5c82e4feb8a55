"""Learning how much each of several detectors counts, on labelled responses; measured on texts that no fit saw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from veriglot import __version__
from veriglot.detectors.confidences.calibration import Measured, settings_of
from veriglot.detectors.ensemble.combining import Mean
from veriglot.detectors.ensemble.plan import made
from veriglot.detectors.ensemble.stacking import STACKING, Mix, Mixes, Stacked, Stacking, features
from veriglot.errors import UsageError
from veriglot.provenance import signature
from veriglot.run.judge import judge
from veriglot.train.confidences.quality import best_threshold, judged
from veriglot.train.confidences.reading import batches, row_of
from veriglot.train.confidences.rows import Rows
from veriglot.train.confidences.texts import FOLDS, folds_of
from veriglot.train.logistic import logistic_rising

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.confidences.calibration import Source
    from veriglot.detectors.ensemble.plan import Member
    from veriglot.records import Detector, Sample
    from veriglot.train.confidences.rows import Row

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

__all__ = ["fit_stacking", "train"]

FEWEST = 20  # texts, for anything at all
_FOR_A_SCRIPT = 50  # texts that a script needs for weights of its own
_PULL = 500.0  # towards the default, as so many words
_PULL_OF_RESPONSES = 50.0
_ALL = "all"
_MEAN, _STACK = "mean", "stack"
_SHOWN = ("average_precision", "auroc", "ece", "brier", "f1")


def train(
    samples: Iterable[Sample], members: Sequence[Member], *, annotator: str | None = None, seed: int = 1
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
    detectors = [made(member, threshold=None) for member in members]
    rows = Rows(annotator)
    for batch in batches(samples):
        found = [judge(detector, batch) for detector in detectors]
        for place, sample in enumerate(batch):
            row_of(rows, sample, [predictions[place] for predictions in found])
    return fit_stacking(rows, members, detectors, seed=seed), rows


def fit_stacking(rows: Rows, members: Sequence[Member], detectors: Sequence[Detector], *, seed: int = 1) -> Stacking:
    """Weights from labelled responses that every member scored.

    Each script of at least 50 texts has weights of its own, drawn towards the default's. The quality is that of five
    fits of the same kind, each measured on the texts that it did not see, beside each member alone and their mean.

    Raises:
        UsageError: too few texts, or nothing or everything in them is unsupported.
        UnknownNameError: no sample has labels of the annotator.
    """
    rows.check()
    texts = rows.texts()
    _check(rows, texts)
    found = rows.found
    fitting = _Fitting(found, texts, folds_of(texts, [row.script for row in found], seed))
    words = _Units.of_words(found)
    crossed = fitting.crossed(words, _PULL)
    threshold = best_threshold(crossed, words.target)
    names = [detector.name for detector in detectors]
    quality = _quality(fitting, words, crossed, names, [one.threshold for one in detectors], seed)
    responses = _Units.of_responses(found)
    both = responses.target.any() and not responses.target.all()
    return Stacking(
        format=STACKING,
        members=tuple(_stacked(*one, rows) for one in zip(range(len(members)), members, detectors, strict=True)),
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


def _stacked(place: int, member: Member, detector: Detector, rows: Rows) -> Stacked:
    source: Source = "spans" if rows.found[0].spans_alone[place] else "words"
    if any(row.spans_alone[place] != rows.found[0].spans_alone[place] for row in rows.found):
        raise UsageError(f"{detector.name} gives words for some samples and spans alone for others.")
    settings = settings_of(detector.signature) if source == "words" else detector.signature
    return Stacked(member, detector.name, settings or "", source)


def _check(rows: Rows, texts: NDArray[np.int64]) -> None:
    count = len(set(texts.tolist()))
    if count < FEWEST:
        reasons = ", ".join(f"{why} {number}" for why, number in rows.left_out.most_common())
        raise UsageError(
            f"Weights take at least {FEWEST} labelled texts that every member scored, but there are {count}"
            + (f" (left out: {reasons})." if reasons else "."),
        )
    target = np.concatenate([row.target for row in rows.found])
    if target.all() or not target.any():
        kind = "unsupported" if target.any() else "supported"
        raise UsageError(f"Every labelled word is {kind}, so there is nothing to tell apart.")


class _Units:
    """Words or responses with what each member says of them.

    Attributes:
        given: shape (n, m), NaN where a member gave no confidence.
        inside: shape (n, m).
        target: shape (n,).
        row: the place of the response, shape (n,).
    """

    def __init__(self, given: Array, inside: Mask, target: Mask, row: NDArray[np.int64]) -> None:
        self.given, self.inside, self.target, self.row = given, inside, target, row
        self.values = features(given, inside)

    @classmethod
    def of_words(cls, found: Sequence[Row]) -> _Units:
        return cls(
            np.concatenate([row.confidences for row in found]),
            np.concatenate([row.inside for row in found]),
            np.concatenate([row.target for row in found]),
            np.repeat(np.arange(len(found)), [len(row.target) for row in found]),
        )

    @classmethod
    def of_responses(cls, found: Sequence[Row]) -> _Units:
        scores = np.stack([row.scores for row in found])
        wrong = np.array([row.wrong for row in found], dtype=bool)
        return cls(scores, np.ones_like(scores, dtype=bool), wrong, np.arange(len(found)))


class _Fitting:
    """Fits weights by script on any part of the responses."""

    def __init__(self, found: Sequence[Row], texts: NDArray[np.int64], folds: NDArray[np.int64]) -> None:
        self.texts = texts
        self.scripts = np.array([row.script or "" for row in found])
        self._bases = [(row.language or "").split("-")[0] for row in found]
        self._folds = folds

    def mixes(self, units: _Units, pull: float, kept: Mask | None = None) -> Mixes:
        """Weights from the responses that are kept."""
        chosen = np.ones(len(self.texts), dtype=bool) if kept is None else kept
        default = _fitted(units, chosen[units.row])
        found = {}
        for script in sorted(set(self.scripts[chosen].tolist()) - {""}):
            of_script = chosen & (self.scripts == script)
            here = of_script[units.row]
            target = units.target[here]
            if len(set(self.texts[of_script].tolist())) >= _FOR_A_SCRIPT and target.any() and not target.all():
                tags = {self._bases[place] for place in np.flatnonzero(of_script).tolist()} - {""}
                found[script] = _fitted(units, here, default, pull, tuple(sorted(tags)))
        return Mixes(default, found)

    def crossed(self, units: _Units, pull: float) -> Array:
        """The combined confidence of each unit, by weights that no response of its text had a part in; shape (n,)."""
        result = np.zeros(len(units.target))
        everyone = np.ones(units.given.shape[1], dtype=bool)
        for fold in range(FOLDS):
            held = self._folds == fold
            mixes = self.mixes(units, pull, ~held)
            for script in sorted(set(self.scripts[held].tolist())):
                here = (held & (self.scripts == script))[units.row]
                said = mixes.scripts.get(script, mixes.default).probabilities(units.values[here], everyone)
                result[here] = units.target[~held[units.row]].mean() if said is None else said
        return result

    def thresholds(self, units: _Units, crossed: Array) -> Array:
        """From where each unit is marked: where F1 is best in the other folds, shape (n,)."""
        fold = self._folds[units.row]
        result = np.zeros(len(fold))
        for one in range(FOLDS):
            result[fold == one] = best_threshold(crossed[fold != one], units.target[fold != one])
        return result


def _fitted(
    units: _Units, kept: Mask, default: Mix | None = None, pull: float = 0.0, languages: tuple[str, ...] = ()
) -> Mix:
    features_ = np.column_stack([units.values[kept], np.ones(int(kept.sum()))])
    members = units.values.shape[1]
    start = np.append(np.full(members, 1.0 / members), 0.0)
    if default is not None:
        start = np.append(default.weights, default.offset)
    target = units.target[kept].astype(np.float64)
    found = logistic_rising(features_, target, np.ones(len(target)), start=start, pull=pull)
    return Mix(tuple(found[:-1].tolist()), float(found[-1]), languages)


def _quality(
    fitting: _Fitting,
    words: _Units,
    crossed: Array,
    names: Sequence[str],
    thresholds: Sequence[float],
    seed: int,
) -> list[Measured]:
    """Each member that gave words, their mean, and the stack, for all and for each script."""
    total = len(words.target)
    systems: list[tuple[str, Array, Array]] = [
        (name, words.given[:, place], np.full(total, thresholds[place]))
        for place, name in enumerate(names)
        if not np.isnan(words.given[:, place]).any()
    ]
    if len(systems) == len(names):
        mean = Mean((1.0,) * len(names))
        everyone: Any = np.ones(len(names), dtype=bool)
        together = mean.words(words.given, words.inside, everyone, None, None)
        assert together is not None
        systems.append((_MEAN, together, np.full(total, 0.5)))
    systems.append((_STACK, crossed, fitting.thresholds(words, crossed)))
    scripts = fitting.scripts[words.row]
    known = sorted(set(scripts.tolist()) - {""})
    rows = []
    for script in [_ALL, *(known if len(known) > 1 else [])]:
        kept = np.ones(len(scripts), dtype=bool) if script == _ALL else scripts == script
        texts = fitting.texts[words.row[kept]]
        for what, given, at in systems:
            figures = judged(given[kept], words.target[kept], texts, seed=seed, threshold=at[kept])
            count = len(set(texts.tolist()))
            rows += [Measured.of("word", script, what, one, int(kept.sum()), count) for one in figures]
    order = {name: place for place, name in enumerate(_SHOWN)}
    return sorted(rows, key=lambda row: (row.script != _ALL, row.script, order[row.name]))
