"""Entailment models for the scorer: those that the tests of entailment know, found by their folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "judging"))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a tiny DeBERTa of random weights."""
    pytest.importorskip("transformers", reason="needs the extra `local`: pip install 'veriglot[local]'")
    from tiny_nli import write_nli

    return str(write_nli(tmp_path_factory.mktemp("tiny-deberta"), "deberta-v2"))
