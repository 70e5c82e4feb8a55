"""The small model of the examples behind its real server, as a process of its own; a skip where it is not there."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "study"
MODEL = "smollm2-135m-instruct"
CONTEXT = 4096  # tokens, as small_model.py sets them


@dataclass
class RealServer:
    """A server that runs until it is stopped.

    Attributes:
        base_url: its address, with the version.
        process: the server.
    """

    base_url: str
    process: subprocess.Popen[str]

    def stop(self) -> int:
        """Stop it; the exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=60)
        return self.process.returncode


def start_real_server() -> RealServer:
    """Start it on a free port, or skip the test where model and server are not installed."""
    command = [sys.executable, EXAMPLE / "small_model.py"]
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True)
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if address:
            return RealServer(address, process)
        process.communicate(timeout=60)
        said.seek(0)
        why = said.read().strip()
    assert process.returncode == 1, f"the server broke with {process.returncode}: {why}"
    assert "make small-model" in why, why
    pytest.skip(f"needs a real model and its server, which is no dependency of the tests: {why}")
