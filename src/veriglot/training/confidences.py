"""Labelled responses with detectors' confidences as arrays: folds, thresholds, metrics and fits by script."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from veriglot.datasets.near_duplicates import UnionFind
from veriglot.detectors.calibration import Isotonic, predicted_language, read_words, sigmoid
from veriglot.errors import UnknownNameError, UsageError
from veriglot.metrics.estimate import percentile, stream, weights
from veriglot.metrics.reference import COMBINED, labelled, reference
from veriglot.metrics.scores import BINS, auroc, average_precision, bin_of, ece_equal_mass, f1, ratio
from veriglot.metrics.spans import marked
from veriglot.records import DataSource, Estimate, Kind, Status, encode
from veriglot.signatures import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.calibration import Reading
    from veriglot.records import Prediction, Sample

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

__all__ = [
    "ALL",
    "FOLDS",
    "Judged",
    "Row",
    "Rows",
    "ScriptFits",
    "Units",
    "best_threshold",
    "check_texts",
    "fit_isotonic",
    "judged",
    "logistic",
    "logistic_rising",
]


# How well probabilities do on labels, with intervals over whole texts.


RESAMPLES = 1000
_TEXTS = 512  # laid out densely at a time


class Judged(Estimate, frozen=True):
    """One figure with its interval, and its value in every resample, shape (resamples,)."""

    name: str
    drawn: Array


def judged(
    confidences: Array,
    targets: Mask,
    texts: NDArray[np.int64],
    *,
    seed: int,
    threshold: float | Array | None = None,
) -> list[Judged]:
    """Figures of probabilities held against labels.

    Resamples hang on the seed and the texts alone, so figures of the same units can be compared draw by draw.

    Args:
        confidences: of each unit, 0 to 1, shape (n,).
        targets: whether each is unsupported, shape (n,).
        texts: the text of each, shape (n,).
        seed: of the resamples.
        threshold: from which a unit is marked, for all or for each, for F1; None for no F1.

    Returns:
        `ece` over 15 groups of equal mass (Nixon et al. 2019), `brier`, `average_precision`, `auroc`, and `f1`.
    """
    _, number = np.unique(texts, return_inverse=True)
    count = int(number.max()) + 1 if len(number) else 0
    drawn = _draws(count, seed)
    positives, negatives, promised, errors = _histograms(confidences, targets, number, drawn)
    values = {
        "ece": ece_equal_mass(positives, negatives, promised),
        "brier": ratio(errors.sum(axis=-1), (positives + negatives).sum(axis=-1)),
        "average_precision": average_precision(positives, negatives),
        "auroc": auroc(positives, negatives),
    }
    if threshold is not None:
        values["f1"] = _f1(confidences >= threshold, targets, number, drawn)
    return [_figure(name, value) for name, value in values.items()]


def _figure(name: str, drawn: Array) -> Judged:
    if np.isnan(drawn[0]):
        return Judged(name, drawn[1:], value=None)
    low, high, _ = percentile(drawn[1:])
    return Judged(name, drawn[1:], value=float(drawn[0]), low=low, high=high)


def _draws(count: int, seed: int) -> Array:
    """How often each text is there: once in the data (row 0), and as drawn in each resample after it."""
    once = np.ones((1, count))
    return np.concatenate([once, weights(count, RESAMPLES, stream(seed, "quality"))]) if count > 1 else once


def _histograms(confidences: Array, targets: Mask, number: NDArray[np.int64], drawn: Array) -> Array:
    """Histograms of every draw, shape (4, draws, BINS)."""
    bins = bin_of(confidences)
    values = (targets, ~targets, confidences, (confidences - targets) ** 2)
    sums = np.zeros((len(drawn), len(values) * BINS))
    for start in range(0, drawn.shape[1], _TEXTS):
        end = min(start + _TEXTS, drawn.shape[1])
        here = (number >= start) & (number < end)
        table = np.zeros((end - start, len(values), BINS))
        for part, value in enumerate(values):
            np.add.at(table[:, part], (number[here] - start, bins[here]), value[here].astype(np.float64))
        sums += drawn[:, start:end] @ table.reshape(end - start, -1)
    return np.moveaxis(sums.reshape(len(drawn), len(values), BINS), 1, 0)


def _f1(marked: Mask, targets: Mask, number: NDArray[np.int64], drawn: Array) -> Array:
    table = np.zeros((drawn.shape[1], 4))
    for part, kind in enumerate((marked & targets, marked & ~targets, ~marked & targets, ~marked & ~targets)):
        np.add.at(table[:, part], number[kind], 1.0)
    return f1(drawn @ table)


def best_threshold(confidences: Array, targets: Mask) -> float:
    """The confidence from which marking gives the best F1; the highest of several equals, and 0.5 without positives."""
    if not targets.any():
        return 0.5
    order = np.argsort(-confidences, kind="stable")
    ordered, true_positives = confidences[order], np.cumsum(targets[order])
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)  # ties are marked together
    score = 2.0 * true_positives[last] / (last + 1 + int(targets.sum()))
    return float(ordered[last[int(score.argmax())]])


# Which responses are of one text, and folds that never part them.


FOLDS = 5


def texts_of(keys: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """The number of the text of each response, in order of first appearance; a shared key makes two of one text."""
    groups = UnionFind[int]()
    first: dict[str, int] = {}
    for response, own in enumerate(keys):
        for key in own:
            groups.unite(response, first.setdefault(key, response))
    numbers: dict[int, int] = {}
    roots = map(groups.root, range(len(keys)))
    return np.array([numbers.setdefault(root, len(numbers)) for root in roots], dtype=np.int64)


def folds_of(texts: NDArray[np.int64], strata: Sequence[str | None], seed: int) -> NDArray[np.int64]:
    """The fold of each response, 0 to `FOLDS` - 1: whole texts, spread evenly inside each stratum."""
    home: dict[int, str | None] = {}
    for text, stratum in zip(texts.tolist(), strata, strict=True):
        home.setdefault(text, stratum)
    members: dict[str, list[int]] = defaultdict(list)
    for text, stratum in home.items():
        members[stratum or ""].append(text)
    fold = np.zeros(len(home), dtype=np.int64)
    generator = np.random.default_rng(seed)
    start = 0
    for _, own in sorted(members.items()):
        fold[generator.permutation(own)] = (start + np.arange(len(own))) % FOLDS
        start += len(own)  # small strata do not all begin in the first fold
    placed: NDArray[np.int64] = fold[texts]
    return placed


_KINDS = {Kind.HUMAN: "gold", Kind.MODEL: "silver"}


@dataclass(frozen=True)
class Row:
    """One labelled response.

    Attributes:
        keys: what it shares with other responses of the same text; see `texts`.
        language: BCP 47 tag, or None where it is not known.
        script: ISO 15924 code, or None.
        confidences: of each word by each detector, shape (n, m); NaN where a detector gave none.
        inside: whether a span of each detector overlaps each word, shape (n, m).
        target: whether each word is unsupported, shape (n,).
        scores: of the response by each detector, shape (m,).
        wrong: whether anything in the response is unsupported.
        spans_alone: whether each detector gave spans without the confidences of words.
    """

    keys: tuple[str, ...]
    language: str | None
    script: str | None
    confidences: Array
    inside: Mask
    target: Mask
    scores: Array
    wrong: bool
    spans_alone: tuple[bool, ...]


@dataclass
class Rows:
    """Collects labelled responses; memory grows with their words, not with the texts.

    Attributes:
        annotator: whose labels; see `metrics.reference`.
        rows: the responses.
        left_out: those that could not be used, by reason.
    """

    annotator: str | None = None
    rows: list[Row] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    _hashes: list[str] = field(default_factory=list)
    _kinds: set[Kind] = field(default_factory=set)
    _seen: set[str] = field(default_factory=set)

    def add(self, sample: Sample, predictions: Sequence[Prediction | None], readings: Sequence[Reading] = ()) -> None:
        """Take one response.

        Args:
            sample: with its labels.
            predictions: of each detector; None where there is none.
            readings: what each says of the same words; empty for what a single detector says of its own.
        """
        self._seen.update(labels.annotator for labels in labelled(sample))
        chosen = reference(sample, self.annotator)
        why = _unusable(predictions) if chosen is not None else "no labels"
        if chosen is None or why:
            self.left_out[why or "no labels"] += 1
            return
        scored = [prediction for prediction in predictions if prediction is not None]
        read = readings or [read_words(sample, scored[0])]
        self._hashes.append(digest([encode(sample)]))
        self._kinds.add(chosen.kind)
        tag, script = predicted_language(sample, scored[0])
        self.rows.append(
            Row(
                keys=_keys(sample),
                language=tag,
                script=script,
                confidences=np.stack([reading.confidences for reading in read], axis=1),
                inside=np.stack([reading.marked for reading in read], axis=1),
                target=marked(read[0].bounds, chosen.marks.spans),
                scores=np.array([prediction.score for prediction in scored], dtype=np.float64),
                wrong=bool(len(chosen.marks.spans)),
                spans_alone=tuple(reading.source == "spans" for reading in read),
            )
        )

    def check(self) -> None:
        """Whether the annotator that was asked for labelled anything.

        Raises:
            UnknownNameError: not one sample.
        """
        if self.annotator and self.annotator not in COMBINED and self._seen and self.annotator not in self._seen:
            raise UnknownNameError("annotator", self.annotator, {*self._seen, *COMBINED})

    @property
    def data(self) -> DataSource:
        """Hash and kind of the labels."""
        kinds = {_KINDS[kind] for kind in self._kinds}
        return DataSource(digest(self._hashes), kinds.pop() if len(kinds) == 1 else "mixed" if kinds else "none")

    def texts(self) -> NDArray[np.int64]:
        """The text of each response: responses that say the same, share a passage or a named group are one."""
        return texts_of([row.keys for row in self.rows])


def _unusable(predictions: Sequence[Prediction | None]) -> str:
    for prediction in predictions:
        if prediction is None:
            return "no prediction"
        if prediction.status is not Status.SCORED:
            return str(prediction.status)
    return ""


def _keys(sample: Sample) -> tuple[str, ...]:
    """What a sample has in common with others of its text; one passage that two share is enough."""
    group = sample.meta.get("group")
    keys = [f"response:{digest([sample.response])[:16]}"]
    keys += [f"evidence:{digest([passage.text])[:16]}" for passage in sample.evidence if passage.text.strip()]
    if isinstance(group, str | int):
        keys.append(f"group:{group}")
    return tuple(keys)


# What calibration and stacking have in common: fits by script, each measured on texts that it did not see.


F = TypeVar("F")
ALL = "all"  # scripts together


@dataclass(frozen=True)
class Units:
    """Words or responses with what each of m detectors says of them.

    Attributes:
        given: confidences, NaN where there is none, shape (n, m).
        inside: whether a span overlaps it, shape (n, m).
        target: whether it is unsupported, shape (n,).
        row: the place of its response, shape (n,).
    """

    given: Array
    inside: Mask
    target: Mask
    row: NDArray[np.int64]

    @classmethod
    def words(cls, rows: Sequence[Row]) -> Units:
        """The words of responses."""
        return cls(
            np.concatenate([row.confidences for row in rows]),
            np.concatenate([row.inside for row in rows]),
            np.concatenate([row.target for row in rows]),
            np.repeat(np.arange(len(rows)), [len(row.target) for row in rows]),
        )

    @classmethod
    def responses(cls, rows: Sequence[Row]) -> Units:
        """The responses themselves, by their scores."""
        scores = np.stack([row.scores for row in rows])
        wrong = np.array([row.wrong for row in rows], dtype=bool)
        return cls(scores, np.ones_like(scores, dtype=bool), wrong, np.arange(len(rows)))

    def of(self, mask: Mask) -> Units:
        """Some of them."""
        return Units(self.given[mask], self.inside[mask], self.target[mask], self.row[mask])


def check_texts(rows: Rows, texts: NDArray[np.int64], fewest: int, needs: str) -> None:
    """Refuse too few texts, and words that are all of one kind.

    Args:
        rows: the responses.
        texts: the text of each, shape (r,).
        fewest: texts that are needed.
        needs: who needs them, for the message: `A calibration takes at least 10 labelled texts that were scored`.

    Raises:
        UsageError: as said.
    """
    count = len(set(texts.tolist()))
    if count < fewest:
        reasons = ", ".join(f"{why} {number}" for why, number in rows.left_out.most_common())
        raise UsageError(f"{needs}, but there are {count}" + (f" (left out: {reasons})." if reasons else "."))
    target = np.concatenate([row.target for row in rows.rows])
    if target.all() or not target.any():
        kind = "unsupported" if target.any() else "supported"
        raise UsageError(f"Every labelled word is {kind}, so there is nothing to tell apart.")


class ScriptFits(Generic[F]):
    """Fits for all responses and for each script with enough texts, on any part of them.

    Args:
        rows: the responses, r of them.
        texts: the text of each, shape (r,).
        seed: of the folds.
        fewest: texts that a script needs for a fit of its own.
    """

    def __init__(self, rows: Sequence[Row], texts: NDArray[np.int64], seed: int, fewest: int) -> None:
        self.texts = texts
        self.scripts = np.array([row.script or "" for row in rows])
        self.folds = folds_of(texts, [row.script for row in rows], seed)
        self._bases = [(row.language or "").split("-")[0] for row in rows]
        self._fewest = fewest

    def fit(
        self,
        units: Units,
        fitted: Callable[[Mask, F | None, tuple[str, ...]], F],
        mask: Mask | None = None,
    ) -> tuple[F, dict[str, F]]:
        """The fit for everything, and those by script.

        Args:
            units: words or responses.
            fitted: a fit on some of the units, given the default's and the languages; the default is fitted without.
            mask: which responses, shape (r,); None for all.
        """
        chosen = np.ones(len(self.texts), dtype=bool) if mask is None else mask
        default = fitted(chosen[units.row], None, ())
        scripts = {}
        for script in sorted(set(self.scripts[chosen].tolist()) - {""}):
            of_script = chosen & (self.scripts == script)
            here = of_script[units.row]
            target = units.target[here]
            if len(set(self.texts[of_script].tolist())) >= self._fewest and target.any() and not target.all():
                tags = {self._bases[index] for index in np.flatnonzero(of_script).tolist()}
                scripts[script] = fitted(here, default, tuple(sorted(tags - {""})))
        return default, scripts

    def crossed(
        self,
        units: Units,
        fitted: Callable[[Mask, F | None, tuple[str, ...]], F],
        confidences: Callable[[F, Mask, Mask], Array | np.floating[Any]],
    ) -> Array:
        """The confidence of each unit, by a fit that saw no response of its text; shape (n,).

        Args:
            units: words or responses, n of them.
            fitted: as for `fit`.
            confidences: what a fit gives for some of the units, and which units it was made from.
        """
        result = np.zeros(len(units.target))
        for fold in range(FOLDS):
            held_out = self.folds == fold
            default, scripts = self.fit(units, fitted, ~held_out)
            for script in sorted(set(self.scripts[held_out].tolist())):
                here = (held_out & (self.scripts == script))[units.row]
                result[here] = confidences(scripts.get(script, default), here, ~held_out[units.row])
        return result

    def parts(self, units: Units) -> list[tuple[str, Mask]]:
        """All units, and where there are several scripts those of each, by name."""
        scripts = self.scripts[units.row]
        known = sorted(set(scripts.tolist()) - {""})
        parts = [(ALL, np.ones(len(scripts), dtype=bool))]
        return parts + [(script, scripts == script) for script in known if len(known) > 1]


# Logistic regression by Newton's method, and isotonic regression.


_STEPS = 50
_RIDGE = 1e-3


def logistic(
    features: Array, targets: Array, weights: Array, *, start: Array | None = None, pull: float = 0.0
) -> Array:
    """The weights of a logistic regression, drawn towards `start` by a quadratic penalty.

    Args:
        features: shape (n, k); the constant is one of them.
        targets: 0 to 1, shape (n,).
        weights: of the rows, not negative, shape (n,).
        start: where the penalty is 0, shape (k,); None for the origin.
        pull: the strength of the penalty, as so many rows' worth.

    Returns:
        Shape (k,).
    """
    centre = np.zeros(features.shape[1]) if start is None else start
    coefficients = centre.copy()
    ridge = np.eye(features.shape[1]) * (_RIDGE + 0.01 * pull)
    for _ in range(_STEPS):
        chances = sigmoid(features @ coefficients)
        slope = features.T @ (weights * (chances - targets)) + ridge @ (coefficients - centre)
        bend = (features * (weights * chances * (1 - chances))[:, None]).T @ features + ridge
        step = np.linalg.solve(bend, slope)
        coefficients = coefficients - np.clip(step, -1, 1)
    return coefficients


def logistic_rising(
    features: Array, targets: Array, weights: Array, *, start: Array | None = None, pull: float = 0.0
) -> Array:
    """The same, but no weight other than the last, the constant's, is negative: more suspicion is never less.

    Features whose weight comes out negative are left out, the most negative first, and the rest fitted again.
    """
    rising = list(range(features.shape[1]))
    while True:
        centre = None if start is None else start[rising]
        coefficients = logistic(features[:, rising], targets, weights, start=centre, pull=pull)
        worst = int(coefficients[:-1].argmin()) if len(rising) > 1 else 0
        if len(rising) == 1 or coefficients[worst] >= 0:
            whole = np.zeros(features.shape[1])
            whole[rising] = coefficients
            return whole
        del rising[worst]


# Isotonic regression: the never-falling map that fits labels best.


def fit_isotonic(logits: Array, targets: Mask) -> Isotonic:
    """A point for each block of pooled adjacent violators, at its mean logit.

    A block of n units of which k are unsupported has the value (k + 1/2) / (n + 1): a few units at the end of the
    scale do not make a certainty.

    Args:
        logits: shape (n,), n at least 1.
        targets: shape (n,).
    """
    sizes, positives, sums = pooled_blocks(logits, targets)
    values = np.maximum.accumulate((positives + 0.5) / (sizes + 1.0))
    return Isotonic(tuple((sums / sizes).tolist()), tuple(values.tolist()))


def pooled_blocks(logits: Array, targets: Mask) -> tuple[Array, Array, Array]:
    """Blocks by the pool-adjacent-violators algorithm: their units, unsupported units, and sums of logits."""
    points, positions = np.unique(logits, return_inverse=True)
    sizes = np.bincount(positions).astype(np.float64)
    positives = np.bincount(positions, weights=targets.astype(np.float64))
    blocks: list[list[float]] = []
    for block in zip(sizes.tolist(), positives.tolist(), (sizes * points).tolist(), strict=True):
        blocks.append(list(block))
        while len(blocks) > 1 and blocks[-2][1] * blocks[-1][0] >= blocks[-1][1] * blocks[-2][0]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
    table = np.array(blocks)
    return table[:, 0], table[:, 1], table[:, 2]
