"""Level `fact` of an evaluation: counts against a plain loop, sentences from their facts, stored counts of before."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from absent_words import AbsentWords
from labelled_texts import samples

from veriglot.bench.evaluation import Evaluator, Settings, evaluate, measured
from veriglot.metrics.counts import CountsFile
from veriglot.metrics.spans import combine_scores
from veriglot.text.facts import facts
from veriglot.text.segmentation import sentences

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.records import Span


def touched(parts: tuple[tuple[int, int], ...], spans: tuple[Span, ...]) -> bool:
    return any(span.start < end and start < span.end for start, end in parts for span in spans)


def test_fact_counts_are_those_of_a_plain_loop() -> None:
    data = samples()
    found = evaluate(data, AbsentWords(), resamples=0)
    for row, sample, prediction in zip(found.counts.blocks["fact"], data, AbsentWords().predict(data), strict=True):
        expected = [0, 0, 0, 0]
        for fact in facts(sample.response, sample.language):
            gold = touched(fact.parts, sample.annotations[0].spans or ())
            marked = touched(fact.parts, prediction.spans or ())
            expected[{(True, True): 0, (False, True): 1, (True, False): 2, (False, False): 3}[gold, marked]] += 1
        assert row.tolist() == expected
    assert found.counts.blocks["fact"].sum() > len(data)


def test_a_wrong_year_is_one_wrong_fact_and_lowers_the_share_of_support() -> None:
    found = evaluate(samples()[:1], AbsentWords(), resamples=0)
    shares = [1.0 if not touched(fact.parts, samples()[0].annotations[0].spans or ()) else 0.0 for fact in
              facts(samples()[0].response, "en")]  # fmt: skip
    assert shares.count(0.0) == 1
    assert found.figure("fact", "support", "en").value == pytest.approx(np.mean(shares))
    assert found.figure("fact", "support_error", "en").n_units == 1


def test_supported_facts_as_the_positive_class() -> None:
    """Kang's AUC_F: as good as AUC_NF on the same data with labels and scores turned round."""
    found = evaluate(samples(), AbsentWords(), resamples=0)
    histogram = found.counts.histograms["fact"]
    order = np.argsort(histogram.bin)
    scores = np.repeat(histogram.bin[order], histogram.values[order, :2].sum(axis=1).astype(int))
    labels = np.concatenate([[1] * int(p) + [0] * int(n) for p, n in histogram.values[order, :2]])
    supported = 0.0
    for value in np.unique(scores[labels == 0]):
        held = scores <= value
        supported += np.mean(labels[held] == 0) * np.sum((scores == value) & (labels == 0))
    wanted = supported / np.sum(labels == 0)
    assert found.figure("fact", "average_precision_supported", "pooled").value == pytest.approx(wanted)


def test_sentences_are_scored_by_their_facts_and_marked_at_the_threshold() -> None:
    sample = samples()[1]
    (prediction,) = AbsentWords().predict([sample])
    confidences = {(word.start, word.end): word.confidence for word in prediction.words or ()}
    wanted = []
    for start, end in sentences(sample.response, "en"):
        by_fact = [
            max(value for (a, b), value in confidences.items() if any(x <= a and b <= y for x, y in fact.parts))
            for fact in facts(sample.response, "en")
            if start <= fact.start < end
        ]
        wanted.append(combine_scores(np.array(by_fact)))
    for threshold in (0.05, 0.5, 0.99):
        evaluator = Evaluator(Settings("d@1", threshold=threshold))
        evaluator.add(sample, prediction)
        tp, fp, fn, tn = evaluator.stored().counts.blocks["sentence"][0].tolist()
        assert tp + fp == sum(score >= threshold for score in wanted)
        assert tp + fp + fn + tn == len(wanted)


def test_without_words_facts_are_marked_but_not_ranked() -> None:
    found = evaluate(samples(), AbsentWords(words=False), resamples=0)
    assert found.figure("fact", "f1", "pooled").value is not None
    assert found.figure("fact", "auroc", "pooled").value is None
    assert found.figure("fact", "support_expected", "en").value == found.figure("fact", "support_found", "en").value


def test_languages_without_rules_are_named() -> None:
    foreign = [msgspec.structs.replace(sample, language="bn") for sample in samples()]
    assert any("one fact" in note and "bn" in note for note in evaluate(foreign, AbsentWords(), resamples=0).notes)
    assert not any("one fact" in note for note in evaluate(samples(), AbsentWords(), resamples=0).notes)


def test_counts_of_before_there_were_facts_still_load(tmp_path: Path) -> None:
    stored = evaluate(samples(), AbsentWords(), resamples=0).stored
    stored.save(tmp_path / "c.json")
    old = json.loads((tmp_path / "c.json").read_bytes())
    for name in ("fact", "support"):
        del old["blocks"][name]
    del old["histograms"]["fact"]
    (tmp_path / "old.json").write_text(json.dumps(old, separators=(",", ":")))
    found = measured(CountsFile.load(tmp_path / "old.json"), resamples=0)
    assert found.figure("unit", "f1", "pooled").value is not None
    support = found.figure("fact", "support", "pooled")
    assert (support.value, support.reason) == (None, "no facts were counted")
