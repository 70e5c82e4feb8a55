"""Fitting a calibration: it recovers the function that labels were drawn from, on held-out texts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from told_words import ToldWords, drawn, told

from veriglot.datasets.near_duplicates import texts_of
from veriglot.detectors.calibration import Isotonic, Platt
from veriglot.errors import UnknownNameError, UsageError
from veriglot.training.calibration import (
    FOLDS,
    Rows,
    best_threshold,
    figures,
    fit_calibration,
    fit_isotonic,
    folds_of,
    measured,
    pooled_blocks,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.detectors.calibration import Calibration, Measured
    from veriglot.records import Sample

SAID = np.arange(100) / 100
HALVED = 1.0 / (1.0 + np.exp(-(0.5 * np.log(np.clip(SAID, 0.01, 0.99) / (1 - np.clip(SAID, 0.01, 0.99))) - 1.0)))
STEP = np.where(SAID < 0.6, 0.1, 0.8)


def rows_of(samples: Sequence[Sample], **options: Any) -> Rows:
    rows = Rows()
    for sample, found in zip(samples, ToldWords(words=True, **options).predict(samples), strict=True):
        rows.add(sample, [found])
    return rows


def fitted(rows: Rows, **options: Any) -> Calibration:
    detector = ToldWords()
    return fit_calibration(rows, detector=detector.name, detector_signature=detector.signature, **options)


def figure(found: Calibration, what: str, name: str = "ece", level: str = "word", script: str = "all") -> Measured:
    (one,) = [q for q in found.quality if (q.level, q.what, q.name, q.script) == (level, what, name, script)]
    return one


def test_a_line_finds_the_line_that_labels_were_drawn_by() -> None:
    found = fitted(rows_of(drawn(400, np.random.default_rng(1), HALVED)))
    line = found.words.scripts["Latn"].curve
    assert isinstance(line, Platt)
    assert (line.slope, line.offset) == pytest.approx((0.5, -1.0), abs=0.08)
    given, calibrated, change = (figure(found, what) for what in ("given", "calibrated", "change"))
    assert given.value is not None
    assert given.value > 0.15
    assert calibrated.value is not None
    assert calibrated.value < 0.03
    assert change.high is not None
    assert change.high < -0.1
    assert (given.units, given.texts) == (8000, 400)
    assert found.words.scripts["Latn"].languages == ("en",)


def test_a_map_finds_a_step_that_no_line_fits() -> None:
    rows = rows_of(drawn(400, np.random.default_rng(2), STEP))
    by_map, by_line = fitted(rows, method="isotonic"), fitted(rows)
    curve = by_map.words.default.curve
    assert isinstance(curve, Isotonic)
    assert curve.values[0] == pytest.approx(0.1, abs=0.05)
    assert curve.values[-1] == pytest.approx(0.8, abs=0.1)
    brier = [figure(found, "calibrated", "brier").value for found in (by_map, by_line)]
    assert brier[0] is not None
    assert brier[1] is not None
    assert brier[0] < brier[1]


def test_a_detector_that_is_right_stays_as_it_is() -> None:
    found = fitted(rows_of(drawn(300, np.random.default_rng(3), SAID)))
    change = figure(found, "change")
    assert change.low is not None
    assert change.high is not None
    assert change.low < 0.02
    assert change.high > -0.02


def test_noise_promises_nothing_on_texts_that_were_not_seen() -> None:
    """Labels independent of confidences: held-out probabilities are the positive share, and none is extreme."""
    found = fitted(rows_of(drawn(60, np.random.default_rng(4), np.full(100, 0.3))), method="isotonic")
    assert figure(found, "calibrated", "brier").value == pytest.approx(0.21, abs=0.02)


def test_scripts_of_enough_texts_have_their_own_and_the_rest_the_default() -> None:
    generator = np.random.default_rng(5)
    many, few = drawn(80, generator, HALVED), drawn(12, generator, SAID, language="ru")
    few = [told(one.id, f"{one.response} {'мельница ' * 12}", "ru", wrong=()) for one in few]
    found = fitted(rows_of([*many, *few]))
    assert list(found.words.scripts) == ["Latn"]
    assert {one.script for one in found.quality} == {"all", "Latn", "Cyrl"}
    assert found.words.covers("en", "Latn")
    assert not found.words.covers("ru", "Cyrl")
    assert not found.words.covers("de", "Latn")


def test_spans_alone_learn_what_outside_and_inside_mean() -> None:
    rows = rows_of(drawn(300, np.random.default_rng(6), STEP), spans_alone=True)
    found = fit_calibration(rows, detector="told-a@1", detector_signature="made|threshold:0.5")
    default = found.words.default
    assert found.source == "spans"
    assert found.settings == "made|threshold:0.5", "which spans there are hangs on the threshold"
    assert default.unmarked == pytest.approx(0.1, abs=0.02)
    assert default.verdict == pytest.approx((0.1 * 10 + 0.8 * 40) / 50, abs=0.03)
    assert not [one for one in found.quality if one.what == "given" and one.level == "word"]


def test_the_threshold_is_where_f1_is_best() -> None:
    found = fitted(rows_of(drawn(300, np.random.default_rng(7), STEP)), method="isotonic")
    assert 0.2 < found.threshold < 0.8


def test_equal_data_and_seed_give_an_equal_file() -> None:
    samples = drawn(40, np.random.default_rng(8), HALVED)
    assert fitted(rows_of(samples)) == fitted(rows_of(samples))
    other = fitted(rows_of(samples), seed=2)
    assert other.words == fitted(rows_of(samples)).words
    assert other.quality != fitted(rows_of(samples)).quality


def test_too_little_is_refused_with_the_reasons() -> None:
    samples = [*drawn(5, np.random.default_rng(9), HALVED), told("one", "a20"), told("two", "a20", "xx", wrong=())]
    with pytest.raises(UsageError, match="but there are 5") as caught:
        fitted(rows_of(samples))
    assert "no labels 1" in caught.value.message
    assert "unsupported_language 1" in caught.value.message
    with pytest.raises(UsageError, match="Every labelled word is supported"):
        fitted(rows_of(drawn(20, np.random.default_rng(9), np.zeros(100))))
    rows = Rows("nobody")
    for sample in samples:
        rows.add(sample, ToldWords(words=True).predict([sample]))
    with pytest.raises(UnknownNameError):
        fitted(rows)


def test_words_beside_spans_alone_are_refused() -> None:
    samples = drawn(20, np.random.default_rng(10), HALVED)
    rows = rows_of(samples[:10])
    for sample in samples[10:]:
        rows.add(sample, ToldWords(spans_alone=True).predict([sample]))
    with pytest.raises(UsageError, match="spans alone"):
        fitted(rows)


def test_texts_are_joined_by_any_shared_key() -> None:
    assert texts_of([("a",), ("b", "c"), ("d",), ("a", "c"), ("e",)]) == ["a", "a", "d", "a", "e"]


def test_folds_never_part_a_text_and_are_even() -> None:
    texts = np.repeat(np.arange(50), 3)
    scripts = ["Latn" if text < 40 else "Cyrl" for text in texts.tolist()]
    folds = folds_of(texts, scripts, 1)
    assert all(len(set(folds[texts == text].tolist())) == 1 for text in range(50))
    assert sorted(np.bincount(folds[::3][:40]).tolist()) == [8] * FOLDS
    assert sorted(np.bincount(folds[::3][40:]).tolist()) == [2] * FOLDS


def test_pooling_of_adjacent_violators_by_hand() -> None:
    logits = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    sizes, positives, sums = pooled_blocks(logits, np.array([False, True, False, True, True]))
    assert sizes.tolist() == [1.0, 2.0, 2.0]
    assert positives.tolist() == [0.0, 1.0, 2.0]
    assert sums.tolist() == [0.0, 3.0, 7.0]
    curve = fit_isotonic(logits, np.array([False, True, False, True, True]))
    assert curve.logits == (0.0, 1.5, 3.5)
    assert curve.values == pytest.approx((0.25, 0.5, 2.5 / 3))


def test_pooling_agrees_with_an_independent_one() -> None:
    regression = pytest.importorskip("sklearn.isotonic", reason="needs scikit-learn").IsotonicRegression()
    generator = np.random.default_rng(11)
    logits = generator.integers(-20, 20, size=500) / 4.0
    targets = generator.random(500) < 1 / (1 + np.exp(-logits))
    sizes, positives, _ = pooled_blocks(logits, targets)
    expected = regression.fit(logits, targets.astype(float)).predict(np.sort(logits))
    assert np.repeat(positives / sizes, sizes.astype(int)) == pytest.approx(expected)


def test_the_best_threshold_by_hand() -> None:
    confidences = np.array([0.9, 0.8, 0.8, 0.4, 0.1])
    assert best_threshold(confidences, np.array([True, True, False, True, False])) == 0.25  # 6/7; from 0.8 it is 2/3
    assert best_threshold(np.array([1.0, 0.0, 1.0, 0.0]), np.array([True, False, True, False])) == 0.5  # it was 1.0
    assert best_threshold(np.array([0.9, 0.3]), np.ones(2, dtype=bool)) == 0.3  # nothing is left to part from
    assert best_threshold(confidences, np.zeros(5, dtype=bool)) == 0.5


def test_figures_of_probabilities_by_hand() -> None:
    confidences = np.array([0.9, 0.9, 0.1, 0.1])
    targets = np.array([True, False, False, False])
    found = figures(confidences, targets, np.arange(4), seed=1, threshold=np.full(4, 0.5))
    assert found["brier"][0] == pytest.approx((0.01 + 0.81 + 0.01 + 0.01) / 4)
    assert found["ece"][0] == pytest.approx(0.25)
    assert found["auroc"][0] == pytest.approx(5 / 6)
    assert found["f1"][0] == pytest.approx(2 / 3)
    texts = np.zeros(4, dtype=np.int64)
    one_text = figures(confidences, targets, texts, seed=1)
    stored = [measured("word", "all", "given", name, drawn, texts) for name, drawn in one_text.items()]
    assert all(one.low is None for one in stored), "one text has no interval"


def test_the_small_detector_is_what_these_tests_take_it_for() -> None:
    make = partial(ToldWords, words=True)
    assert [word.confidence for word in make().predict([told("one", "a07 a93")])[0].words or ()] == [0.07, 0.93]
