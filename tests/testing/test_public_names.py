"""The names of `veriglot` itself: each is there, is loaded when it is asked for, and the examples run."""

from __future__ import annotations

import doctest

import pytest

import veriglot


@pytest.mark.parametrize("name", veriglot.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(veriglot, name) is not None


def test_another_name_is_missing() -> None:
    with pytest.raises(AttributeError, match="no attribute 'load_scorers'"):
        veriglot.load_scorers  # noqa: B018


def test_the_examples_run() -> None:
    results = doctest.testmod(veriglot)
    assert results.attempted > 10
    assert results.failed == 0
