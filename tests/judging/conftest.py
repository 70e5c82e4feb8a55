"""Tiny classifiers of each family on disk. This file also puts its folder on the path, for the modules beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session", params=["bert", "xlm-roberta", "deberta-v2", "bart", "modernbert"])
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a classifier of pairs of one family, as its library saves it."""
    pytest.importorskip("transformers", reason="needs the extra `local`: pip install 'veriglot[local]'")
    from tiny_nli import write_nli

    return write_nli(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the smallest of them."""
    pytest.importorskip("transformers", reason="needs the extra `local`: pip install 'veriglot[local]'")
    from tiny_nli import write_nli

    return write_nli(tmp_path_factory.mktemp("plain-bert"), "bert")
