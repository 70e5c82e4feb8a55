"""How much reader and grounding count for a word, and what their sum means: fitted on texts that trained neither."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.grounding.detector import Grounding, ScriptCalibration, response_evidence
from veriglot.detectors.reader.detector import RELATIONS, Join, join_features, relation_of
from veriglot.judging.base import ResolvedLanguage
from veriglot.records import Evidence, Sample, Task
from veriglot.training.calibration import logistic
from veriglot.training.grounding.examples import labels_of
from veriglot.training.reader.twins import draw_case, languages
from veriglot.training.trainer import calibrate, script_of_tag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.reader.detector import Network
    from veriglot.training.grounding.examples import Labels
    from veriglot.training.reader.sources import Row

    Array = NDArray[np.float64]

__all__ = ["Judged", "calibration_rows", "fit_joins", "judge"]

_A_SOURCE = 260  # held-out rows of a source that calibrate
_CASES = 14  # twins of facts that trained nothing, a language
_PULL = 20.0  # towards the mean of reader and grounding


@dataclass(frozen=True)
class Judged:
    """A row and what both say of its words.

    Attributes:
        row: the row.
        labels: of its words; no word counts where only the response's label is known.
        features: of `join_features`, shape (n, 13).
        counted: words that claim something, shape (n,).
        relation: one of `RELATIONS`.
    """

    row: Row
    labels: Labels
    features: NDArray[np.float32]
    counted: NDArray[np.bool_]
    relation: str


def calibration_rows(held_out: Sequence[Row], seed: int) -> list[Row]:
    """Some rows of every source that trained nothing, and answers in pairs about facts that trained nothing."""
    rng = Random(f"joins {seed}")  # noqa: S311  a seeded draw, not a secret
    by_source: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in held_out:
        by_source[row.example.source, row.example.kind].append(row)
    rows = [row for some in by_source.values() for row in rng.sample(some, min(len(some), _A_SOURCE))]
    for tag in languages():
        for case in range(_CASES):
            answer_language = rng.choice(languages()) if case % 4 == 0 else None
            rows += draw_case(tag, rng, answer_language=answer_language, held_out=True)
    return rows


def judge(rows: Iterable[Row], network: Network, say: Callable[[str], None] = lambda _: None) -> list[Judged]:
    """Both detectors' words of every row that has any; quotations and words that claim nothing teach nothing."""
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
        seen = by_words.see(sample, ResolvedLanguage(tag, script_of_tag(tag)), example.evidence_language)
        if seen is None or (seen.free | seen.quoted).all():
            continue
        extract = seen.extract
        words = network.words(example.response, extract.response.bounds, tag, example.question, example.passages)
        labels = labels_of(example, extract.response.bounds, seen.free | seen.quoted)
        if not row.located:
            labels.weight[:] = 0
        relation = relation_of(tag, example.evidence_language, translation=example.translation)
        features = join_features(words, seen.logits[:, 0], extract.sentence, seen.numbers)
        judged.append(Judged(row, labels, features, ~seen.free, relation))
        if not number % 500:
            say(f"judged {number} held-out rows")
    return judged


def fit_joins(judged: Sequence[Judged]) -> dict[str, Join]:
    """A join for every relation; one with few rows is drawn towards that of all."""
    start = np.zeros(judged[0].features.shape[1])
    start[:2] = 0.5
    whole = _weights(judged, start)
    joins = {}
    for relation in RELATIONS:
        some = [row for row in judged if row.relation == relation]
        if not any(row.labels.weight.any() for row in some):
            some = list(judged)
        weights = _weights(some, whole)
        joins[relation] = Join(tuple(weights.tolist()), _calibration(some, weights))
    return joins


def _weights(judged: Sequence[Judged], start: Array) -> Array:
    """Of the features: words count by the root of the words in their response."""
    rows = [row for row in judged if row.labels.weight.any()]
    features = np.concatenate([row.features for row in rows]).astype(np.float64)
    targets = np.concatenate([row.labels.target for row in rows]).astype(np.float64)
    weights = np.concatenate([row.labels.weight / len(row.labels) ** 0.5 for row in rows]).astype(np.float64)
    return logistic(features, targets, weights, start=start, pull=_PULL * 100)


def _calibration(judged: Sequence[Judged], weights: Array) -> ScriptCalibration:
    """Lines from rows whose words are labelled, and the response's weights from all."""
    logits = [(row.features @ weights)[:, None] for row in judged]
    located = [(row, values) for row, values in zip(judged, logits, strict=True) if row.labels.weight.any()]
    lines = calibrate([row.labels for row, _ in located], [values for _, values in located])
    evidence = np.array(
        [np.append(response_evidence(values[row.counted, 0]), 1.0) for row, values in zip(judged, logits, strict=True)]
    )
    wrong = np.array([float(bool(row.row.unsupported)) for row in judged])
    response = logistic(evidence, wrong, np.ones(len(judged)))
    return ScriptCalibration(lines.scripts, lines.languages, lines.default, tuple(response.tolist()))
