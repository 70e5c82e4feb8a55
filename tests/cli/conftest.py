"""The command line as the tests call it: in this process where that is enough, as a process where it is not."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from veriglot.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

DETECTORS = Path(__file__).resolve().parents[1] / "pipeline"  # word_absence.py, a detector of the tests' own
sys.path[:0] = [str(DETECTORS), str(DETECTORS.parent / "http")]  # and misbehaving.py, a server


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def veriglot(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Run a command in this process: `veriglot("detect", "in.jsonl", stdin=b"...")`."""

    def run(*words: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capfd.readouterr()
        code = main([str(word) for word in words])
        sys.stdout.flush()
        out, err = capfd.readouterr()
        return Outcome(code, out, err)

    return run


@pytest.fixture
def process() -> Callable[..., subprocess.Popen[bytes]]:
    """Start a command as a process of its own."""

    def start(*words: object, **settings: object) -> subprocess.Popen[bytes]:
        paths = os.pathsep.join([str(DETECTORS), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": paths, "COLUMNS": "100"}
        # Where these tests run in the background, Ctrl-C is ignored, and children inherit that; a terminal's do not.
        attend = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
        code = f"{attend}; import sys; from veriglot.cli import main; sys.exit(main())"
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
        command = [sys.executable, "-c", code, *(str(word) for word in words)]
        return subprocess.Popen(command, env=environment, **streams)  # type: ignore[call-overload]

    return start
