"""Every lexical scorer keeps to the contract of scorers: order, batches, hostile text, pickling, processes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import spacy

from veriglot.scorers.registry import load_scorer
from veriglot.testing import check_scorer, ordinary_samples

if TYPE_CHECKING:
    from pathlib import Path

SCORERS: list[tuple[str, dict[str, Any]]] = [
    ("rouge-1", {}),
    ("rouge-1", {"mode": "paper"}),
    ("rouge-2", {"passages": "best"}),
    ("rouge-l", {"value": "f1"}),
    ("rouge-lsum", {}),
    ("chrf", {"words": 2}),
    ("number-agreement", {"empty": 1.0}),
    ("name-agreement", {"empty": 1.0}),
    ("top-ngram", {}),
    ("length-ratio", {}),
]


@pytest.mark.parametrize(("name", "options"), SCORERS)
def test_the_contract_is_kept(name: str, options: dict[str, Any]) -> None:
    check_scorer(partial(load_scorer, name, **options))


@pytest.mark.parametrize("name", ["rouge-l", "chrf", "length-ratio"])
def test_it_is_kept_against_sisters(name: str) -> None:
    samples = [
        msgspec.structs.replace(sample, meta={"samples": [passage.text for passage in sample.evidence]})
        for sample in ordinary_samples()
    ]
    check_scorer(partial(load_scorer, f"pairwise:{name}"), samples)


def test_it_is_kept_by_a_pipeline_of_rules(tmp_path: Path) -> None:
    pipeline = spacy.blank("xx")
    pipeline.add_pipe("entity_ruler").add_patterns([{"label": "NAME", "pattern": [{"SHAPE": {"REGEX": "^X"}}]}])
    pipeline.to_disk(tmp_path / "rules")
    check_scorer(partial(load_scorer, "entity-overlap", pipeline=str(tmp_path / "rules"), empty=0.0))


def test_it_is_kept_across_processes() -> None:
    check_scorer(partial(load_scorer, "rouge-1"), processes=True)
