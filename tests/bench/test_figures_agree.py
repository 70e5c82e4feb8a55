"""Two ways to the same figures: `evaluate`, from counts and histograms, and the bench's, from scores and labels.

A histogram ties the scores of one bin, so here the bench is given bins.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from veriglot.bench.evaluation import Evaluator, Settings
from veriglot.bench.items import cluster_of, item_labels, tag_of
from veriglot.detectors.registry import load_detector
from veriglot.formats.reader import read
from veriglot.metrics.estimate import Resampling
from veriglot.metrics.measures import Items, described, draws
from veriglot.metrics.scores import bin_of
from veriglot.records import sample_from

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "samples.jsonl"


def test_responses_of_the_examples() -> None:
    samples = [sample for sample in read(EXAMPLES) if item_labels(sample)]
    detector = load_detector("grounding")
    predictions = detector.predict(samples)
    evaluator = Evaluator(Settings("grounding", threshold=0.5))
    for sample, prediction in zip(samples, predictions, strict=True):
        evaluator.add(sample, prediction)
    evaluation = evaluator.result(seed=3, resamples=200, levels=["response", "fact"])
    labels = [item for sample in samples for item in item_labels(sample) or ()]
    scores = np.array([np.nan if p.score is None else bin_of(np.array([p.score]))[0] for p in predictions])
    marks = np.where(np.isnan(scores), np.nan, [float(bool(p.spans)) for p in predictions])
    nonfactual = np.array([item.nonfactual for item in labels])
    tags = [tag_of(sample.language) for sample in samples]
    resampling = Resampling.of([cluster_of(sample) for sample in samples], tags, resamples=200, seed=3)
    checked = 0
    for tag in sorted(set(tags)):
        mask = np.array([name == tag for name in tags])
        by_mark, by_score = (Items(part[mask], nonfactual[mask]) for part in (marks, scores))
        for name, items in (("precision", by_mark), ("recall", by_mark), ("f1", by_mark), ("auroc", by_score)):
            ours = described(name, items, resampling.select(mask), draws(name, items, resampling.select(mask), cut=0.5))
            theirs = evaluation.figure("response", name, tag)
            for one, other in ((ours.value, theirs.value), (ours.low, theirs.low), (ours.high, theirs.high)):
                assert one == (None if other is None else pytest.approx(other, abs=1e-9)), (tag, name)
            checked += ours.value is not None and ours.low is not None
        support = [
            item.support for item, inside in zip(labels, mask, strict=True) if inside and item.support is not None
        ]
        assert np.mean(support) == pytest.approx(evaluation.figure("fact", "support", tag).value)
    assert checked > 20


@pytest.mark.parametrize("query", [{"id": "q"}, ["q"], None])
def test_a_query_that_is_no_name_hides_no_group(query: object) -> None:
    meta = {"query": query, "group": "g"}
    assert cluster_of(sample_from({"id": "a", "response": "x", "meta": meta})) == "group:g"
