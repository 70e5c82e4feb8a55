"""Tiny checkpoints on disk, and texts that their tokenizers were made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from many_languages import TEXTS

if TYPE_CHECKING:
    from pathlib import Path

WORDS = "the mill was built in by jonas reed and stands near river nine arches stone bridge over closed to cars . , : ?"


@pytest.fixture(scope="session")
def texts() -> list[str]:
    """Texts in sixteen languages and more."""
    return [*(t.evidence for t in TEXTS.values()), *(t.changed for t in TEXTS.values()), WORDS, "1874 1901 1950"]


@pytest.fixture(scope="session")
def needs_local() -> None:
    for package in ("transformers", "torch"):
        pytest.importorskip(package, reason="needs the extra `local`: pip install 'veriglot[local]'")


@pytest.fixture(scope="session")
def copying(needs_local: None, texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A network that finds a token supported where the prompt holds it too, of 512 tokens at a time."""
    from tiny_classifiers import write_copying

    return str(write_copying(tmp_path_factory.mktemp("copying"), texts))


@pytest.fixture(scope="session")
def narrow(needs_local: None, texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same, of 64 tokens at a time."""
    from tiny_classifiers import write_copying

    return str(write_copying(tmp_path_factory.mktemp("narrow"), texts, room=64))


@pytest.fixture(scope="session")
def lettuce(needs_local: None, texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ModernBERT of random weights under a name as LettuceDetect's."""
    from tiny_classifiers import LETTUCE, write_random

    folder = tmp_path_factory.mktemp("models") / "lettucedect-tiny-modernbert-multi-v1"
    return write_random(folder, "modernbert", texts, names=LETTUCE)
