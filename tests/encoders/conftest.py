"""The real encoder, where it has been fetched, and tiny ones that the tests write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from veriglot.encoders.base import load_encoder
from veriglot.hub import registry

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.encoders.base import Encoder


@pytest.fixture(scope="session")
def universal_file() -> Path:
    for package in ("sentencepiece", "onnx"):
        pytest.importorskip(package, reason="needs the extra `reader`: pip install 'veriglot[reader]'")
    try:
        return registry.find("use-multilingual")
    except registry.MissingWeightsError as error:
        pytest.skip(f"needs the multilingual encoder: {error}")


@pytest.fixture(scope="session")
def universal(universal_file: Path) -> Encoder:
    return load_encoder("use-multilingual", path=universal_file)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of random weights, as transformers writes it."""
    for package in ("sentence_transformers", "torch"):
        pytest.importorskip(package, reason="needs the extra `encoders`: pip install 'veriglot[encoders]'")
    from tiny_encoder import write_bert

    return write_bert(tmp_path_factory.mktemp("bert"))
