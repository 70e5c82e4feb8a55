"""Environments of their own for packages that tests try Veriglot with."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest


def run(*command: str | Path, **given: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, **given)  # type: ignore[call-overload]


def install(python: Path, *what: str | Path) -> None:
    done = run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", *what)
    assert done.returncode == 0, done.stderr[-3000:]


def environment_of(requirements: Path, scratch: Path) -> Path:
    """An environment's Python. It is made once for a list of packages, beside the one that runs this."""
    folder = Path(sys.prefix) / "integrations" / hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        wanted = requirements.read_text("utf-8").split()[-1]
        if run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", scratch, wanted).returncode:
            pytest.skip(f"needs a package index, and {wanted} cannot be fetched")
        assert run(sys.executable, "-m", "venv", "--clear", folder).returncode == 0
        install(python, "--requirement", requirements)
        (folder / "complete").touch()
    return python
