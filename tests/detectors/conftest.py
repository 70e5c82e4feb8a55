"""What the tests of detectors share. This file also puts its folder on the path, for the modules beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from small_lexicon import small_lexicon

if TYPE_CHECKING:
    from veriglot.detectors.grounding.lexicon import Lexicon


@pytest.fixture(scope="session")
def lexicon() -> Lexicon:
    """A lexicon of a few words, so that features can be tested whatever the shipped weights are."""
    return small_lexicon()
