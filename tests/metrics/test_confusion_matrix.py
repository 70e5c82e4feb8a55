"""Confusion matrices, and halluverse's Tables 3 and 4 as counts."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np
import pytest

from veriglot.bench.evaluation import NO_ANSWER, confusion_matrix
from veriglot.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

CLASSES = ("entity", "relation", "sentence")


def test_by_hand() -> None:
    pairs = [("entity", "entity")] * 3 + [("entity", "relation"), ("relation", None), ("sentence", "entity")]
    answers, counts = confusion_matrix([*pairs, ("relation", "relation"), ("sentence", "phrase")], CLASSES)
    assert answers == (*CLASSES, "none", "phrase", NO_ANSWER)
    assert counts == ((3, 1, 0, 0, 0, 0), (0, 1, 0, 0, 0, 1), (1, 0, 0, 0, 1, 0))


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
        answers, counts = confusion_matrix(pairs, CLASSES)
        assert answers[:3] == CLASSES
        table = np.array(counts)
        accuracies = [*np.diag(table) / table.sum(axis=1), np.trace(table) / table.sum()]
        for type_, accuracy in zip((*CLASSES, "overall"), accuracies, strict=True):
            assert 100 * accuracy == pytest.approx(printed[model, language, type_], abs=0.00501)
        if model == "gpt-4o":
            missed = (table.sum(axis=1) - np.diag(table)).tolist()
            assert missed == [failed[language, type_] for type_ in CLASSES]
            assert sum(missed) == failed[language, "total"]
