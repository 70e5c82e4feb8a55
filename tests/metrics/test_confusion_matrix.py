"""Confusion matrices, and halluverse's Tables 3 and 4 as counts."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np
import pytest

from veriglot.errors import UsageError
from veriglot.metrics.classification import NO_ANSWER, confusion_matrix

if TYPE_CHECKING:
    from pathlib import Path

CLASSES = ("entity", "relation", "sentence")


def test_by_hand() -> None:
    pairs = [("entity", "entity")] * 3 + [("entity", "relation"), ("relation", None), ("sentence", "entity")]
    matrix = confusion_matrix([*pairs, ("relation", "relation"), ("sentence", "phrase")], CLASSES)
    assert matrix.answers == (*CLASSES, "phrase", NO_ANSWER)
    assert matrix.counts.tolist() == [[3, 1, 0, 0, 0], [0, 1, 0, 0, 1], [1, 0, 0, 1, 0]]
    assert matrix.sizes == {"entity": 4, "relation": 2, "sentence": 2}
    assert matrix.failed == {"entity": 1, "relation": 1, "sentence": 2}
    assert matrix.accuracy() == pytest.approx(4 / 8)
    assert matrix.accuracy("relation") == 0.5
    assert matrix.precision("entity") == 0.75
    assert matrix.precision("sentence") is None
    assert matrix.f1("entity") == pytest.approx(2 * 3 / (4 + 4))
    assert matrix.macro_f1() == pytest.approx((0.75 + 0.5 + 0.0) / 3)
    assert matrix.shares()[0].tolist() == [0.75, 0.25, 0.0, 0.0, 0.0]


def test_matrices_add_over_the_answers_of_both() -> None:
    first = confusion_matrix([("entity", "entity"), ("entity", None)], CLASSES)
    second = confusion_matrix([("entity", "phrase"), ("relation", "entity")], CLASSES)
    both = first + second
    assert both.answers == (*CLASSES, NO_ANSWER, "phrase")
    assert both.counts.tolist() == [[1, 0, 0, 1, 1], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
    assert both.accuracy() == 0.25
    assert np.isnan(both.shares()[2]).all()
    assert both.accuracy("sentence") is None
    with pytest.raises(ValueError, match="cannot be added"):
        first + confusion_matrix([], ("a", "b"))


def test_an_item_of_no_class_is_refused() -> None:
    with pytest.raises(UsageError, match="other"):
        confusion_matrix([("other", "entity")], CLASSES)


def test_the_paper_s_accuracies_and_failures_are_one_matrix(shared_facts: Path) -> None:
    def rows(name: str) -> list[dict[str, str]]:
        return list(csv.DictReader((shared_facts / name).read_text("utf-8").splitlines()))

    sizes = {(row["language"], row["type"]): int(row["count"]) for row in rows("halluverse_derived_class_counts.csv")}
    printed = {
        (row["model"], row["language"], row["type"]): float(row["accuracy"])
        for row in rows("halluverse_table3_accuracy.csv")
    }
    failed = {(row["language"], row["type"]): int(row["failed"]) for row in rows("halluverse_table4_gpt4_failures.csv")}
    models = {(model, language) for model, language, _ in printed}
    assert len(models) == 30
    for model, language in models:
        pairs = []
        for type_ in CLASSES:
            size = sizes[language, type_]
            right = round(printed[model, language, type_] * size / 100)
            pairs += [(type_, type_)] * right + [(type_, None)] * (size - right)
        matrix = confusion_matrix(pairs, CLASSES)
        for type_ in (*CLASSES, None):
            accuracy = matrix.accuracy(type_)
            assert accuracy is not None
            assert 100 * accuracy == pytest.approx(printed[model, language, type_ or "overall"], abs=0.00501)
        if model == "gpt-4o":
            assert matrix.failed == {type_: failed[language, type_] for type_ in CLASSES}
            assert sum(matrix.failed.values()) == failed[language, "total"]
