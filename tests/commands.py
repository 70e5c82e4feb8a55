"""Commands in this process, as tests call them: `evaluate = command("evaluate")` is a fixture that runs that verb."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from settings_file import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Command = Callable[..., Outcome]


def command(*verb: str) -> Any:
    """A fixture that runs a command which begins with these words."""

    @pytest.fixture
    def fixture(capfd: pytest.CaptureFixture[str]) -> Command:
        def run(*words: object) -> Outcome:
            capfd.readouterr()
            code = main([*verb, *words])
            return Outcome(code, *capfd.readouterr())

        return run

    return fixture
