"""Fits a calibration for one detector, or the weights of an ensemble, on labelled responses, with cross-validation."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any, Generic, Literal, TypeVar

import msgspec
import numpy as np

from veriglot.arrays import Bools, Float64s, Int64s, Numbers
from veriglot.datasets.near_duplicates import text_keys, texts_of
from veriglot.detectors.calibration import (
    ByScript,
    Calibration,
    Isotonic,
    Measured,
    Platt,
    Reading,
    Source,
    WordCurve,
    logit,
    predicted_language,
    read_words,
    settings_of,
    sigmoid,
)
from veriglot.detectors.ensemble import Member, Mix, StackedMember, Stacking, features, mean_of
from veriglot.detectors.grounding.detector import PlattScaling
from veriglot.errors import UsageError
from veriglot.metrics.estimate import percentile
from veriglot.metrics.measures import unit_draws
from veriglot.metrics.reference import labelled, reference, require_annotator, response_label, source_of
from veriglot.metrics.spans import marked
from veriglot.pipeline.engine import judge
from veriglot.records import DataSource, Detector, Kind, Prediction, Record, Sample, Status, encode
from veriglot.records.languages import find_language
from veriglot.signatures import __version__, digest, signature
from veriglot.text.segmentation import word_bounds

__all__ = ["Rows", "fit_calibration", "fit_logistic", "fit_platt", "fit_platt_by_script", "train_stacking"]


# Quality of probabilities against labels, with confidence intervals over texts.


def figures(
    confidences: Float64s, targets: Bools, texts: Int64s, *, seed: int, threshold: Float64s | None = None
) -> dict[str, Float64s]:
    """Measures of probabilities against labels, by name: first the value, then the value of every bootstrap resample.

    The resamples depend only on the seed and the texts, so measures of the same units can be compared pairwise.
    """
    drawn = unit_draws(confidences, targets, texts, seed=seed, threshold=threshold)
    measures = {"ece": "ece_equal_mass", "brier": "brier", "average_precision": "average_precision", "auroc": "auroc"}
    if threshold is not None:
        measures["f1"] = "f1"
    return {name: drawn[measure] for name, measure in measures.items()}


def measured(level: str, script: str, what: str, name: str, drawn: Float64s, texts: Int64s) -> Measured:
    """One measure in its stored form, over units of these texts: rounded to four digits."""
    numbers = (None, None, None) if np.isnan(drawn[0]) else (float(drawn[0]), *percentile(drawn[1:])[:2])
    value, low, high = (None if number is None else round(number, 4) for number in numbers)
    count = len(set(texts.tolist()))
    return Measured(level, script, what, name, len(texts), count, value=value, low=low, high=high)


def best_threshold(confidences: Float64s, targets: Bools) -> float:
    """The threshold with the best F1, in the middle of the gap below the lowest marked confidence.

    If several are equal, the highest; 0.5 if there are no positives.
    """
    if not targets.any():
        return 0.5
    order = np.argsort(-confidences, kind="stable")
    ordered, true_positives = confidences[order], np.cumsum(targets[order])
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)  # equal values go together
    score = 2.0 * true_positives[last] / (last + 1 + int(targets.sum()))
    lowest = last[score.argmax()]
    return float(ordered[lowest : lowest + 2].mean())


# Groups of responses about one text, and folds that never split a group.


FOLDS = 5


def folds_of(texts: Int64s, strata: Sequence[str | None], seed: int) -> Int64s:
    """The fold of each response, 0 to `FOLDS` - 1: a text stays in one fold, and each stratum is spread evenly."""
    home: dict[int, str | None] = {}
    for text, stratum in zip(texts.tolist(), strata, strict=True):
        home.setdefault(text, stratum)
    members = defaultdict[str, list[int]](list)
    for text, stratum in home.items():
        members[stratum or ""].append(text)
    fold = np.zeros(len(home), np.int64)
    generator = np.random.default_rng(seed)
    start = 0
    for _, own in sorted(members.items()):
        fold[generator.permutation(own)] = (start + np.arange(len(own))) % FOLDS
        start += len(own)  # so that small strata do not all begin in the first fold
    return np.asarray(fold[texts])


class Row(Record):
    """One labelled response."""

    keys: list[str]
    language: str | None
    script: str | None
    confidences: Float64s
    inside: Bools
    target: Bools
    scores: Float64s
    wrong: bool
    spans_alone: tuple[bool, ...]


class Rows(msgspec.Struct):
    """Collects labelled responses; stores numbers per word, not the texts.

    Attributes:
        annotator: whose labels are used; see `metrics.reference`.
        rows: the responses.
        left_out: number of unusable responses by reason.
    """

    annotator: str | None = None
    rows: list[Row] = []
    left_out: Counter[str] = msgspec.field(default_factory=Counter)
    _hashes: list[str] = []
    _kinds: set[Kind] = set()
    _seen: set[str] = set()

    def add(self, sample: Sample, predictions: Sequence[Prediction | None], readings: Sequence[Reading] = ()) -> None:
        """Add one response.

        Args:
            sample: with its labels.
            predictions: one for each detector, or None.
            readings: confidences of all detectors for the same words; empty for a single detector with its own words.
        """
        self._seen.update(labels.annotator for labels in labelled(sample))
        chosen = reference(sample, self.annotator)
        if chosen is None:
            self.left_out["labelled as a whole" if response_label(sample, self.annotator) else "no labels"] += 1
            return
        if why := _unusable(predictions):
            self.left_out[why] += 1
            return
        scored = [prediction for prediction in predictions if prediction is not None]
        read = readings or [read_words(sample, scored[0])]
        self._hashes.append(digest([encode(sample)]))
        self._kinds.add(chosen.kind)
        tag, script = predicted_language(sample, scored[0])
        self.rows.append(
            Row(
                keys=text_keys(sample),
                language=tag,
                script=script,
                confidences=np.stack([reading.confidences for reading in read], axis=1),
                inside=np.stack([reading.marked for reading in read], axis=1),
                target=marked(read[0].bounds, chosen.marks.spans),
                scores=np.array([prediction.score for prediction in scored], np.float64),
                wrong=bool(len(chosen.marks.spans)),
                spans_alone=tuple(reading.source == "spans" for reading in read),
            )
        )

    @property
    def data(self) -> DataSource:
        """Hash and kind of the labels."""
        return source_of(self._hashes, self._kinds)

    def texts(self, fewest: int, needs: str) -> Int64s:
        """The text of each response: responses with equal text, a common passage or a common group are one text.

        Raises:
            UnknownNameError: the requested annotator has no labels.
            UsageError: there are fewer texts than `needs` says, or all words have the same label.
        """
        require_annotator(self.annotator, self._seen)
        numbers: dict[str, int] = {}  # in order of first appearance
        texts = np.array([numbers.setdefault(text, len(numbers)) for text in texts_of([row.keys for row in self.rows])])
        if len(numbers) < fewest:
            reasons = ", ".join(f"{why} {number}" for why, number in self.left_out.most_common())
            raise UsageError(
                f"{needs}, but there are {len(numbers)}" + (f" (left out: {reasons})." if reasons else ".")
            )
        target = np.concatenate([row.target for row in self.rows])
        if target.all() or not target.any():
            kind = "unsupported" if target.any() else "supported"
            raise UsageError(f"Every labelled word is {kind}, so there is nothing to tell apart.")
        return texts


def _unusable(predictions: Sequence[Prediction | None]) -> str:
    for prediction in predictions:
        if prediction is None:
            return "no prediction"
        if prediction.status is not Status.SCORED:
            return str(prediction.status)
    return ""


# Shared by calibration and stacking: fits for each script, evaluated on texts that were not in the fit.


F = TypeVar("F", WordCurve, Mix)
Fit = Callable[[Bools, F | None, tuple[str, ...]], F]  # from a mask, the default fit or None, base tags
ALL = "all"  # all scripts together


class Units(Record):
    """Words or responses with the confidences of m detectors."""

    given: Float64s
    inside: Bools
    target: Bools
    row: Int64s

    @classmethod
    def words(cls, rows: Sequence[Row]) -> Units:
        """The words of responses as units."""
        return cls(
            np.concatenate([row.confidences for row in rows]),
            np.concatenate([row.inside for row in rows]),
            np.concatenate([row.target for row in rows]),
            np.repeat(np.arange(len(rows)), [len(row.target) for row in rows]),
        )

    @classmethod
    def responses(cls, rows: Sequence[Row]) -> Units:
        """The responses as units, with their scores."""
        scores = np.stack([row.scores for row in rows])
        wrong = np.array([row.wrong for row in rows], bool)
        return cls(scores, np.ones_like(scores, dtype=bool), wrong, np.arange(len(rows)))

    def of(self, mask: Bools) -> Units:
        """The units in a mask."""
        return Units(self.given[mask], self.inside[mask], self.target[mask], self.row[mask])


class ScriptFits(Generic[F]):
    """Fits for all responses and for each script with enough texts; also on a subset."""

    def __init__(self, rows: Sequence[Row], texts: Int64s, seed: int, fewest: int) -> None:
        self.texts = texts
        self.scripts = np.array([row.script or "" for row in rows])
        self.folds = folds_of(texts, [row.script for row in rows], seed)
        self._bases = [(row.language or "").split("-")[0] for row in rows]
        self._fewest = fewest

    def fit(self, units: Units, fitted: Fit[F], mask: Bools | None = None) -> ByScript[F]:
        """The default fit on all scripts, and a fit for each script."""
        chosen = np.ones(len(self.texts), bool) if mask is None else mask
        default = fitted(chosen[units.row], None, ())
        scripts = {}
        for script in sorted(set(self.scripts[chosen].tolist()) - {""}):
            of_script = chosen & (self.scripts == script)
            here = of_script[units.row]
            target = units.target[here]
            if len(set(self.texts[of_script].tolist())) >= self._fewest and target.any() and not target.all():
                tags = {self._bases[index] for index in np.flatnonzero(of_script).tolist()}
                scripts[script] = fitted(here, default, tuple(sorted(tags - {""})))
        return ByScript(default, scripts)

    def cross_predict(
        self, units: Units, fitted: Fit[F], confidences: Callable[[F, Bools, Bools], Float64s | np.floating[Any]]
    ) -> Float64s:
        """Cross-validated confidence of each unit: its fit saw no response about its text; shape (n,)."""
        result = np.zeros(len(units.target))
        for fold in range(FOLDS):
            held_out = self.folds == fold
            fits = self.fit(units, fitted, ~held_out)
            for script in sorted(set(self.scripts[held_out].tolist())):
                here = (held_out & (self.scripts == script))[units.row]
                result[here] = confidences(fits.scripts.get(script, fits.default), here, ~held_out[units.row])
        return result

    def parts(self, units: Units) -> list[tuple[str, Bools]]:
        """The mask of all units; if there are several scripts, also the mask of each; with names."""
        scripts = self.scripts[units.row]
        known = sorted(set(scripts.tolist()) - {""})
        parts = [(ALL, np.ones(len(scripts), bool))]
        return parts + [(script, scripts == script) for script in known if len(known) > 1]


# Logistic regression by Newton's method, and isotonic regression.


_STEPS = 50
_RIDGE = 1e-3


def fit_logistic(
    features: Float64s, targets: Float64s, weights: Float64s, *, start: Float64s | None = None, penalty: float = 0.0
) -> Float64s:
    """The weights of a logistic regression with an L2 penalty on the distance to `start`.

    Args:
        features: shape (n, k), including the constant.
        targets: 0 to 1, shape (n,).
        weights: of the rows, at least 0, shape (n,).
        start: centre of the penalty, shape (k,); None is the origin.
        penalty: its strength; it counts like this number of rows.

    Returns:
        Shape (k,).
    """
    centre = np.zeros(features.shape[1]) if start is None else start
    coefficients = centre.copy()
    ridge = np.eye(features.shape[1]) * (_RIDGE + 0.01 * penalty)
    for _ in range(_STEPS):
        chances = sigmoid(features @ coefficients)
        slope = features.T @ (weights * (chances - targets)) + ridge @ (coefficients - centre)
        bend = (features * (weights * chances * (1 - chances))[:, None]).T @ features + ridge
        step = np.linalg.solve(bend, slope)
        coefficients = coefficients - np.clip(step, -1, 1)
    return coefficients


def fit_monotonic_logistic(
    features: Float64s, targets: Float64s, weights: Float64s, *, start: Float64s | None = None, penalty: float = 0.0
) -> Float64s:
    """Logistic regression with weights of at least 0, except the last (the constant's): it is monotonic.

    The feature with the most negative weight is removed and the rest fitted again, until none is negative.
    """
    rising = list(range(features.shape[1]))
    while True:
        centre = None if start is None else start[rising]
        coefficients = fit_logistic(features[:, rising], targets, weights, start=centre, penalty=penalty)
        worst = int(coefficients[:-1].argmin()) if len(rising) > 1 else 0
        if len(rising) == 1 or coefficients[worst] >= 0:
            whole = np.zeros(features.shape[1])
            whole[rising] = coefficients
            return whole
        del rising[worst]


def fit_platt(
    texts: Sequence[Sequence[Numbers]], start: PlattScaling | None = None, penalty: float = 0.0
) -> PlattScaling:
    """Platt scaling fitted on texts; each gives logits, targets and weights of its words."""
    logits, targets, weights = (np.concatenate(columns).astype(np.float64) for columns in zip(*texts, strict=True))
    features = np.stack([logits, np.ones_like(logits)], axis=1)
    centre = None if start is None else np.array([start.slope, start.offset])
    return PlattScaling(*fit_logistic(features, targets, weights, start=centre, penalty=penalty).tolist())


def fit_platt_by_script(
    words: Iterable[tuple[str | None, Numbers, Numbers, Numbers]], start: PlattScaling, penalty: float, fewest: int = 0
) -> tuple[dict[str, PlattScaling], tuple[str, ...]]:
    """Platt scaling for each script with enough words, pulled towards `start`; and the base tags of their languages.

    Args:
        words: for each text its language, logits, targets and weights.
        start: centre of the penalty.
        penalty: its strength; it counts like this number of words.
        fewest: minimum number of words of a script.
    """
    by_script = defaultdict[str, list[tuple[str, Sequence[Numbers]]]](list)
    for tag, *columns in words:
        language = find_language(tag or "")
        if language is not None:
            by_script[language.script].append(((tag or "").split("-")[0], columns))
    lines, tags = {}, set[str]()
    for script, texts in by_script.items():
        if sum(len(columns[0]) for _, columns in texts) >= fewest:
            lines[script] = fit_platt([columns for _, columns in texts], start, penalty)
            tags.update(tag for tag, _ in texts)
    return lines, tuple(sorted(tags))


# Isotonic regression: the monotonic function that fits the labels best.


def fit_isotonic(logits: Float64s, targets: Bools) -> Isotonic:
    """A point for each block of pooled adjacent violators, at the mean logit of the block.

    A block of n units with k unsupported ones has the value (k + 1/2) / (n + 1), so that a few units at the end of the
    scale do not give a probability of 0 or 1.
    """
    sizes, positives, sums = pooled_blocks(logits, targets)
    values = np.maximum.accumulate((positives + 0.5) / (sizes + 1.0))
    return Isotonic(tuple((sums / sizes).tolist()), tuple(values.tolist()))


def pooled_blocks(logits: Float64s, targets: Bools) -> tuple[Float64s, Float64s, Float64s]:
    """Blocks of the pool-adjacent-violators algorithm: number of units, of unsupported units, and sum of logits."""
    points, positions = np.unique(logits, return_inverse=True)
    sizes = np.bincount(positions).astype(np.float64)
    positives = np.bincount(positions, weights=targets.astype(np.float64))
    blocks = []
    for block in zip(sizes.tolist(), positives.tolist(), (sizes * points).tolist(), strict=True):
        blocks.append(list(block))
        while len(blocks) > 1 and blocks[-2][1] * blocks[-1][0] >= blocks[-1][1] * blocks[-2][0]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
    table = np.array(blocks)
    return table[:, 0], table[:, 1], table[:, 2]


# Calibration of one detector, evaluated on texts that were not in the fit.


Method = Literal["platt", "isotonic"]

FEWEST_TEXTS = 10  # minimum number of texts
_TEXTS_FOR_A_CURVE = {"platt": 30, "isotonic": 200}  # minimum number of texts of a script with its own curve
_PENALTY_OF_WORDS, _PENALTY_OF_RESPONSES = 500.0, 100.0  # towards the default curve; counts like this number of units
_OF_CALIBRATION = ("ece", "brier")


def fit_calibration(
    rows: Rows, *, detector: str, detector_signature: str | None, method: Method = "platt", seed: int = 0
) -> Calibration:
    """A calibration of one detector.

    Each script with at least 30 texts (isotonic: 200) has its own curves. Platt curves are pulled towards the default,
    which is fitted on everything. The quality comes from five-fold cross-validation.

    Args:
        rows: labelled responses with the detector's predictions.
        detector: its name and revision.
        detector_signature: the detector's, or None.
        method: `platt` or `isotonic`.
        seed: for folds and intervals.

    Raises:
        UsageError: there are too few texts, all words have the same label, or only some predictions have words.
        UnknownNameError: no sample has labels of the annotator.
    """
    source = _source(rows)
    texts = rows.texts(FEWEST_TEXTS, f"A calibration takes at least {FEWEST_TEXTS} labelled texts that were scored")
    words, responses = Units.words(rows.rows), Units.responses(rows.rows)
    fitting = ScriptFits[WordCurve](rows.rows, texts, seed, _TEXTS_FOR_A_CURVE[method])
    of_words = partial(_curve, method, words, _PENALTY_OF_WORDS, source)
    crossed = fitting.cross_predict(words, of_words, partial(_calibrated, words, source))
    quality = _quality(fitting, "word", words, crossed, seed)
    level = None
    if responses.target.any() and not responses.target.all():
        of_responses = partial(_curve, method, responses, _PENALTY_OF_RESPONSES, "words")
        level = fitting.fit(responses, of_responses)
        across = fitting.cross_predict(responses, of_responses, partial(_calibrated, responses, "words"))
        quality += _quality(fitting, "response", responses, across, seed)
    threshold = best_threshold(crossed, words.target)
    data = rows.data
    return Calibration(
        format=Calibration.known,
        detector=detector,
        settings=settings_of(detector_signature) if source == "words" else detector_signature,
        source=source,
        method=method,
        threshold=threshold,
        words=fitting.fit(words, of_words),
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
            "Make all of them with --words.",
        )
    return "spans" if kinds == {True} else "words"


def _calibrated(units: Units, source: Source, curve: WordCurve, here: Bools, _: Bools) -> Float64s:
    return curve.probabilities(units.given[here, 0], units.inside[here, 0], source)


def _curve(
    method: Method,
    everything: Units,
    penalty: float,
    source: Source,
    mask: Bools,
    default: WordCurve | None,
    languages: tuple[str, ...],
) -> WordCurve:
    """A curve fitted on the units in `mask`."""
    units = everything.of(mask)
    some = units.of(~np.isnan(units.given[:, 0]))
    curve = default.curve if default is not None else None
    if len(some.target):
        logits = logit(some.given[:, 0])
        if method == "isotonic":
            curve = fit_isotonic(logits, some.target)
        else:
            start, weight = np.array([1.0, 0.0]), 0.0
            if isinstance(curve, Platt):
                start, weight = np.array([curve.slope, curve.offset]), penalty
            parts = np.stack([logits, np.ones_like(logits)], axis=1), some.target.astype(np.float64)
            slope, offset = fit_monotonic_logistic(*parts, np.ones(len(logits)), start=start, penalty=weight)
            curve = Platt(float(slope), float(offset))
    if source == "words":
        return WordCurve(curve, languages=languages)
    inside = units.inside[:, 0]
    return WordCurve(curve, _share(units.target[~inside]), _share(units.target[inside]), languages)


def _share(target: Bools) -> float:
    """The unsupported share, smoothed: no cases do not give 0 or 1."""
    return round(float((target.sum() + 0.5) / (len(target) + 1.0)), 4)


def _quality(fitting: ScriptFits[WordCurve], level: str, units: Units, crossed: Float64s, seed: int) -> list[Measured]:
    """Measures before and after calibration, for each script and for all."""
    rows = []
    for script, mask in fitting.parts(units):
        some, texts = units.of(mask), fitting.texts[units.row[mask]]
        after = figures(crossed[mask], some.target, texts, seed=seed)
        systems = {"calibrated": after}
        if not np.isnan(some.given).any():
            before = figures(some.given[:, 0], some.target, texts, seed=seed)
            change = {name: after[name] - before[name] for name in _OF_CALIBRATION}
            systems = {"given": before, "calibrated": after, "change": change}
        rows += [
            measured(level, script, what, name, drawn[name], texts)
            for what, drawn in systems.items()
            for name in _OF_CALIBRATION
        ]
    return rows


# Stacking: a weight for each of several detectors, with cross-validation.


_BATCH = 64
FEWEST_FOR_STACKING = 20  # minimum number of texts
_TEXTS_FOR_WEIGHTS = 50  # minimum number of texts of a script with its own weights
_PENALTY_OF_WEIGHTS = 500.0  # towards the default weights; counts like this number of words
_PENALTY_OF_RESPONSE_WEIGHTS = 50.0
_OF_STACKING = ("average_precision", "auroc", "ece", "brier", "f1")


def train_stacking(
    samples: Iterable[Sample], members: Sequence[Member], *, annotator: str | None = None, seed: int = 0
) -> tuple[Stacking, Rows]:
    """Run every member on labelled samples, and fit the weights of the ensemble.

    Args:
        samples: with labels; samples that a member does not score are left out and counted.
        members: the detectors.
        annotator: whose labels are used; see `metrics.reference`.
        seed: for folds and intervals.

    Returns:
        The weights, and the rows of the fit.

    Raises:
        UsageError: there is too little data.
        MissingExtraError, WeightsError: a member cannot be loaded.
    """
    detectors = [member.load(None) for member in members]
    rows = Rows(annotator)
    source = iter(samples)
    while batch := list(islice(source, _BATCH)):
        for sample, *predictions in zip(batch, *(judge(detector, batch) for detector in detectors), strict=True):
            readings = []
            if all(prediction.status is Status.SCORED for prediction in predictions):
                bounds = word_bounds(sample.response, predicted_language(sample, predictions[0])[0])
                readings = [read_words(sample, prediction, bounds) for prediction in predictions]
            rows.add(sample, predictions, readings)
    return fit_stacking(rows, members, detectors, seed=seed), rows


def fit_stacking(rows: Rows, members: Sequence[Member], detectors: Sequence[Detector], *, seed: int) -> Stacking:
    """Ensemble weights from labelled responses that every member scored.

    Each script with at least 50 texts has its own weights, pulled towards the default weights. The quality comes from
    five-fold cross-validation, compared with each member alone and with their mean.
    """
    needs = f"Weights take at least {FEWEST_FOR_STACKING} labelled texts that every member scored"
    texts = rows.texts(FEWEST_FOR_STACKING, needs)
    read = rows.rows
    fitting = ScriptFits[Mix](read, texts, seed, _TEXTS_FOR_WEIGHTS)
    words = Units.words(read)
    of_words = partial(_fitted, words, _PENALTY_OF_WEIGHTS)
    crossed = fitting.cross_predict(words, of_words, partial(_combined, words))
    threshold = best_threshold(crossed, words.target)
    names = [detector.name for detector in detectors]
    quality = _stack_quality(fitting, words, crossed, names, [detector.threshold for detector in detectors], seed)
    responses = Units.responses(read)
    both = responses.target.any() and not responses.target.all()
    return Stacking(
        format=Stacking.known,
        members=tuple(_stacked(*pair, rows) for pair in zip(range(len(members)), members, detectors, strict=True)),
        threshold=threshold,
        words=fitting.fit(words, of_words),
        responses=fitting.fit(responses, partial(_fitted, responses, _PENALTY_OF_RESPONSE_WEIGHTS)) if both else None,
        quality=tuple(quality),
        data=rows.data,
        signature=signature(
            stacked="+".join(names), data=rows.data.sha256[:16], kind=rows.data.kind, annotator=rows.annotator,
            folds=FOLDS, seed=seed, version=__version__,
        ),
    )  # fmt: skip


def _stacked(index: int, member: Member, detector: Detector, rows: Rows) -> StackedMember:
    source: Source = "spans" if rows.rows[0].spans_alone[index] else "words"
    if any(row.spans_alone[index] != rows.rows[0].spans_alone[index] for row in rows.rows):
        raise UsageError(f"{detector.name} gives words for some samples and spans alone for others.")
    settings = settings_of(detector.signature) if source == "words" else detector.signature
    return StackedMember(member, detector.name, settings or "", source)


def _combined(units: Units, mix: Mix, here: Bools, learned: Bools) -> Float64s | np.floating[Any]:
    everyone = np.ones(units.given.shape[1], bool)
    probabilities = mix.probabilities(features(units.given[here], units.inside[here]), everyone)
    return units.target[learned].mean() if probabilities is None else probabilities


def _fitted(units: Units, penalty: float, mask: Bools, default: Mix | None, languages: tuple[str, ...]) -> Mix:
    some = units.of(mask)
    rows = np.column_stack([features(some.given, some.inside), np.ones(len(some.target))])
    members = some.given.shape[1]
    start = np.append(np.full(members, 1.0 / members), 0.0)
    if default is not None:
        start = np.append(default.weights, default.offset)
    target = some.target.astype(np.float64)
    coefficients = fit_monotonic_logistic(
        rows, target, np.ones(len(target)), start=start, penalty=0.0 if default is None else penalty
    )
    return Mix(tuple(coefficients[:-1].tolist()), float(coefficients[-1]), languages)


def _stack_quality(
    fitting: ScriptFits[Mix],
    words: Units,
    crossed: Float64s,
    names: Sequence[str],
    thresholds: Sequence[float],
    seed: int,
) -> list[Measured]:
    """Measures of each member with word confidences, their mean, and the stack, for all and for each script."""
    total = len(words.target)
    systems = [
        (name, words.given[:, index], np.full(total, thresholds[index]))
        for index, name in enumerate(names)
        if not np.isnan(words.given[:, index]).any()
    ]
    if len(systems) == len(names):
        systems.append(("mean", mean_of(words.given, np.ones(len(names))), np.full(total, 0.5)))
    fold, best = fitting.folds[words.row], np.zeros(total)  # threshold with the best F1 in the other folds
    for number in range(FOLDS):
        best[fold == number] = best_threshold(crossed[fold != number], words.target[fold != number])
    systems.append(("stack", crossed, best))
    rows = []
    for script, mask in fitting.parts(words):
        texts = fitting.texts[words.row[mask]]
        for what, given, at in systems:
            drawn = figures(given[mask], words.target[mask], texts, seed=seed, threshold=at[mask])
            rows += [measured("word", script, what, name, values, texts) for name, values in drawn.items()]
    order = {name: index for index, name in enumerate(_OF_STACKING)}
    return sorted(rows, key=lambda row: (row.script != ALL, row.script, order[row.name]))
