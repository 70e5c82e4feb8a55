"""`make demo` does what the README says, by the commands it shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def shown() -> str:
    done = subprocess.run([sys.executable, ROOT / "examples" / "demo.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_shows_its_commands_and_ends_with_the_page(shown: str) -> None:
    commands = [line for line in shown.splitlines() if line.startswith("$ veriglot ")]
    assert [command.split()[2] for command in commands] == ["detect", "evaluate", "detect"]
    assert shown.rstrip().endswith("out/demo.html")


def test_it_shows_marked_texts_and_figures(shown: str) -> None:
    assert "{entity" in shown
    assert "pooled" in shown
    assert "Signature: " in shown


def test_the_page_stands_alone(shown: str) -> None:  # `shown` has written it
    page = (ROOT / "out" / "demo.html").read_text("utf-8")
    for mark in ('src="http', "src='http", 'href="http', "@import", "url(http"):
        assert mark not in page
    for text in ("de-1", "青函トンネル", "القرويين", "สะพานเหล็ก"):
        assert text in page
