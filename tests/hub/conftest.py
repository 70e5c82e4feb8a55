"""A folder of models, a registry and servers of the tests' own: nothing reaches this user's models or the network."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from file_server import FileServer
from own_registry import OwnRegistry

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _own_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of the machine that runs the tests would change what they see."""
    for name in list(os.environ):
        if name.startswith(("PIP_", "VERIGLOT_", "HF_")) or name.lower() in {"http_proxy", "https_proxy", "all_proxy"}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "5")
    monkeypatch.setenv("VERIGLOT_WEIGHTS", str(tmp_path / "weights"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of models."""
    return tmp_path / "weights"


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer() as running:
        yield running


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OwnRegistry:
    """A registry of the user's own, which `VERIGLOT_MODELS` names."""
    made = OwnRegistry(tmp_path / "own.json")
    monkeypatch.setenv("VERIGLOT_MODELS", str(made.path))
    return made
