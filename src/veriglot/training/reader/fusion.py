"""Fits the weights that combine reader and grounding, and their calibration, on held-out texts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import compress
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.grounding.detector import (
    VERBATIM_LOGIT,
    Grounding,
    PlattScaling,
    ScriptCalibration,
    response_features,
)
from veriglot.detectors.reader.detector import (
    GROUNDING_COLUMN,
    RELATIONS,
    RESPONSE_COLUMN,
    FusionWeights,
    Network,
    relation_of,
)
from veriglot.judging.base import ResolvedLanguage
from veriglot.records import Evidence, Sample, Task
from veriglot.text.support import COMPUTED
from veriglot.training.calibration import fit_logistic, fit_platt_by_script
from veriglot.training.grounding.examples import Example, Labels, labels_of, script_of_tag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from veriglot.arrays import Bools, Float32s, Float64s
    from veriglot.training.reader.sources import Row

__all__ = ["JudgedRow", "calibration_rows", "fit_fusion", "judge"]

_ROWS_PER_SOURCE, _ROWS_IF_NATURAL = 120, 400  # held-out rows of a source for calibration; natural ones
_SCRIPT_PENALTY = 1500.0  # pull of a script's scaling towards the default; counts like this number of words
# Assumed share of responses with errors, by relation. It separates right and wrong responses best: for answers in the
# look part of `benchmarks/answer_set.py`, for other responses in the calibration parts of `gates.py`. Few translations
# are wrong.
_WRONG = {"same": 0.4, "same asked": 0.55, "across": 0.4, "across asked": 0.3, "translation": 0.2}
_NATURAL, _PAIRS = 3.0, 0.3  # weights in the response score: responses of models, bare sentence pairs
_OF_MODELS = ("natural", "calibrating")  # kinds of rows that models wrote
_PENALTY = 2000.0  # towards the mean of reader and grounding


@dataclass(frozen=True)
class JudgedRow:
    """A row and the outputs of both detectors for its words.

    Attributes:
        row: the row.
        labels: of its words; their weights are 0 if only the response is labelled.
        features: of `fusion_features`, shape (n, 18).
        counted: words that claim something, shape (n,).
        quoted: words of sentences that the evidence contains verbatim, and numbers that can be computed from it,
            shape (n,).
        relation: one of `RELATIONS`.
    """

    row: Row
    labels: Labels
    features: Float32s
    counted: Bools
    quoted: Bools
    relation: str


def calibration_rows(held_out: Sequence[Row], seed: int) -> list[Row]:
    """A sample of held-out rows of every source, with more natural ones; all twins, half of them right.

    Written texts across languages are sampled too: all of them would outnumber the other cross-lingual rows.
    """
    rng = Random(f"joins {seed}")  # noqa: S311  a seeded draw, not a secret
    by_source: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in held_out:
        across = row.example.source == "written" and row.example.evidence_language is not None
        by_source[("across", "natural") if across else (row.example.source, row.example.kind)].append(row)
    return [
        row
        for (source, kind), some in by_source.items()
        for row in (
            some
            if source in ("twins", "written")
            else rng.sample(some, min(len(some), _ROWS_IF_NATURAL if kind in _OF_MODELS else _ROWS_PER_SOURCE))
        )
    ]


def judge(rows: Iterable[Row], network: Network, say: Callable[[str], None] = lambda _: None) -> list[JudgedRow]:
    """Outputs of both detectors for every row with words; verbatim and harmless words have weight 0."""
    by_words = Grounding()
    judged = []
    for number, row in enumerate(rows, start=1):
        example = row.example
        tag = example.language or "und"
        sample = Sample(
            id=str(number),
            task=Task.TRANSLATION if example.translation else Task.OPEN,
            language=tag,
            question=example.question,
            evidence=tuple(Evidence(text, language=example.evidence_language) for text in example.passages),
            response=example.response,
        )
        raw = by_words.predict_raw(sample, ResolvedLanguage(tag, script_of_tag(tag)), example.evidence_language)
        if raw is None or raw.harmless.all():
            continue
        sure = raw.verbatim | (raw.numbers == COMPUTED)
        labels = labels_of(example, raw.features.response.bounds, raw.harmless | sure)
        if not row.located:
            labels.weight[:] = 0
        evidence = example.evidence_language or tag
        asked = bool(example.question)
        relation = relation_of(tag, evidence, translation=example.translation, asked=asked)
        ways = [relation]
        if relation.startswith("same"):
            written, of_models = example.source == "written", example.kind in _OF_MODELS
            # There are so many written answers that they would outnumber responses of models without a question.
            ways = ["same"] * (not (asked and written)) + ["same asked"] * (asked or written or of_models)
        for way in ways:
            way, features, _ = network.read(sample, raw, way, tag, evidence)
            judged.append(JudgedRow(row, labels, features, ~raw.harmless, sure, way))
        if not number % 500:
            say(f"judged {number} held-out rows")
    return judged


def fit_fusion(judged: Sequence[JudgedRow]) -> dict[str, FusionWeights]:
    """Weights for every relation; those of a relation with few rows are pulled towards the weights of all."""
    start = np.zeros(judged[0].features.shape[1])
    start[[0, GROUNDING_COLUMN]] = 0.5
    # Natural answers with marked words are so few that they are used only for locating errors.
    answers = [row for row in judged if row.labels.is_answer and row.relation == "same asked"]
    judged = [row for row in judged if not row.labels.is_answer]
    whole = _weights(judged, start)
    fusion = {}
    for relation in RELATIONS:
        some = [row for row in judged if row.relation == relation]
        if not any(row.labels.weight.any() for row in some):
            some = list(judged)
        weights = _weights(some, whole)
        calibration = _calibration(some, weights, _WRONG[relation])
        locating = None
        if relation == "same asked" and answers:
            called = _evidence(some, weights) @ np.array(calibration.response) >= 0
            locating = tuple(_weights([*compress(some, called), *answers], weights).tolist())
        fusion[relation] = FusionWeights(tuple(weights.tolist()), calibration, locating)
    return fusion


def _weights(judged: Sequence[JudgedRow], start: Float64s) -> Float64s:
    """Feature weights; a word counts by 1 / the root of its response's length, and sources count alike."""
    rows = [row for row in judged if row.labels.weight.any()]
    features = np.concatenate([row.features for row in rows]).astype(np.float64)
    targets = np.concatenate([row.labels.target for row in rows]).astype(np.float64)
    weights = np.concatenate(
        [row.labels.weight * (_NATURAL if row.labels.is_answer else 1.0) / len(row.labels) ** 0.5 for row in rows]
    ).astype(np.float64)
    return np.asarray(fit_logistic(features, targets, weights, start=start, penalty=_PENALTY))


def _calibration(judged: Sequence[JudgedRow], weights: Float64s, share: float) -> ScriptCalibration:
    """Platt scaling by script from labelled words, and the response's weights from all rows."""
    words = [
        (row.row.example.language, row.features @ weights, row.labels.target, row.labels.weight)
        for row in judged
        if row.labels.weight.any()
    ]
    default = PlattScaling(1.0, 0.0)
    lines, tags = fit_platt_by_script(words, default, _SCRIPT_PENALTY)
    return ScriptCalibration(lines, tags, default, _response(judged, weights, share))


def _response(judged: Sequence[JudgedRow], weights: Float64s, share: float) -> tuple[float, ...]:
    """Weights of `response_features`, which include the reader's logit of the response."""
    evidence = _evidence(judged, weights)
    wrong = np.array([bool(row.row.unsupported) for row in judged])
    weight = np.array([_weight(row.row.example) for row in judged])
    of_side = np.where(wrong, share / max(1.0, weight[wrong].sum()), (1 - share) / max(1.0, weight[~wrong].sum()))
    return tuple(fit_logistic(evidence, wrong.astype(np.float64), weight * of_side * len(judged)).tolist())


def _evidence(judged: Sequence[JudgedRow], weights: Float64s) -> Float64s:
    """`response_features` of every row, shape (n, 6)."""
    evidence = []
    for row in judged:
        values = row.features @ weights
        values[row.quoted] = np.minimum(values[row.quoted], VERBATIM_LOGIT)
        evidence.append(response_features(values[row.counted], float(row.features[:, RESPONSE_COLUMN].max())))
    return np.array(evidence)


def _weight(example: Example) -> float:
    if example.kind in _OF_MODELS:
        return _NATURAL
    return 1.0 if example.question is not None or example.kind not in ("clean", "wrong") else _PAIRS
