"""What the tests of detectors share. This file also puts its folder on the path, for the modules beside it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from small_lexicon import small_lexicon
from stand_in import reader_at

from veriglot.detectors.registry import load_detector
from veriglot.hub.registry import MissingWeightsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from detector_contract import Load

    from veriglot.detectors.grounding.document import Lexicon


@pytest.fixture(scope="session")
def lexicon() -> Lexicon:
    """A lexicon of a few words, so that features can be tested whatever the shipped weights are."""
    return small_lexicon()


@pytest.fixture(scope="session")
def reader_here() -> None:
    """The real reader; skips where its packages or its model are missing."""
    pytest.importorskip("veriglot.detectors.reader.detector", reason="needs the extra `reader`")
    try:
        load_detector("reader")
    except MissingWeightsError as error:
        pytest.skip(f"needs the reader's encoder: {error}")


@pytest.fixture
def stand_in() -> Iterator[None]:
    with reader_at("stand_in:StandIn"):
        yield


@pytest.fixture
def no_reader() -> Iterator[None]:
    """A machine on which the extra `reader` is not installed."""
    with reader_at("package_of_nobody:Reader"):
        yield


@pytest.fixture(scope="module", params=["grounding", "reader"])
def load(request: pytest.FixtureRequest) -> Load:
    """Makes one of our detectors, with options: what each of them has to keep to whatever its weights say.

    Not `auto`, which gives samples to the reader: what it adds is tested by itself.
    """
    if request.param != "grounding":
        request.getfixturevalue("reader_here")
    return partial(load_detector, request.param)


@pytest.fixture(scope="module", params=["grounding", "reader"])
def trained(request: pytest.FixtureRequest) -> str:
    """Name of a detector whose weights are in the package: what each of them has to find."""
    if request.param == "reader":
        request.getfixturevalue("reader_here")
    return str(request.param)
