"""The misbehaving server of the tests of http and the detectors of the tests of run serve here too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS = Path(__file__).resolve().parents[1]
DETECTORS = TESTS / "pipeline"
for folder in (TESTS / "http", DETECTORS):
    sys.path.insert(0, str(folder))


@pytest.fixture
def start() -> Callable[..., subprocess.Popen[bytes]]:
    """Start a command of Veriglot as a process of its own."""

    def started(*words: object) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(DETECTORS), *sys.path]), "COLUMNS": "100"}
        command = [sys.executable, "-c", "import sys; from veriglot.cli import main; sys.exit(main())"]
        return subprocess.Popen(
            [*command, *map(str, words)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip

    return started
