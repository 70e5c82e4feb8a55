"""What the tests of detectors share. This file also puts its folder on the path, for the modules beside it."""

from __future__ import annotations

import sys
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from small_lexicon import small_lexicon

from veriglot.detectors.registry import load_detector

if TYPE_CHECKING:
    from detector_contract import Load

    from veriglot.detectors.grounding.document import Lexicon

SHIPPED = Path(str(files("veriglot.detectors.semantic") / "weights"))


@pytest.fixture(scope="session")
def lexicon() -> Lexicon:
    """A lexicon of a few words, so that features can be tested whatever the shipped weights are."""
    return small_lexicon()


@pytest.fixture(scope="session")
def encoder_here(use_multilingual: Path) -> Path:
    """The file of the multilingual encoder, where its packages are installed too."""
    for package in ("sentencepiece", "onnx", "rapidfuzz", "anyascii"):
        pytest.importorskip(package, reason="needs the extra `semantic`: pip install 'veriglot[semantic]'")
    return use_multilingual


@pytest.fixture(scope="session")
def random_head(encoder_here: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of weights for the semantic detector, of random numbers."""
    for package in ("torch", "onnxscript"):
        pytest.importorskip(package, reason="needs the extra `train`: pip install 'veriglot[train]'")
    from random_head import write_random_head

    return str(write_random_head(tmp_path_factory.mktemp("head")))


@pytest.fixture(scope="session")
def tiny_reading_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file as that of `e5-multilingual`, of random numbers, with room for all that the reader is shown."""
    sys.path.append(str(Path(__file__).parents[1] / "encoders"))
    from tiny_e5 import write_e5

    place = tmp_path_factory.mktemp("e5") / "tiny.bin"
    write_e5(place, room=512)
    return place


@pytest.fixture(scope="session")
def semantic_weights(encoder_here: Path, request: pytest.FixtureRequest) -> str:
    """The weights in the package; random ones where a package is built before there are any."""
    return str(SHIPPED) if (SHIPPED / "weights.json").exists() else request.getfixturevalue("random_head")


@pytest.fixture(scope="module", params=["grounding", "semantic", "auto"])
def load(request: pytest.FixtureRequest) -> Load:
    """Makes one of our detectors, with options: what each of them has to keep to whatever its weights say."""
    if request.param == "grounding":
        return partial(load_detector, "grounding")
    weights = request.getfixturevalue("semantic_weights")
    option = "weights" if request.param == "semantic" else "semantic_weights"
    return partial(load_detector, request.param, **{option: weights})


@pytest.fixture(scope="module", params=["grounding", "semantic"])
def trained(request: pytest.FixtureRequest) -> str:
    """Name of a detector whose weights are in the package: what each of them has to find."""
    if request.param == "semantic":
        request.getfixturevalue("encoder_here")
        if not (SHIPPED / "weights.json").exists():
            pytest.skip("needs the weights of the semantic detector in the package: veriglot train semantic")
    return str(request.param)
