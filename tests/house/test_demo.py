"""`make demo` does what the README says, by the commands it shows."""

from __future__ import annotations

import re
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


def test_it_shows_its_commands_and_ends_with_the_report(shown: str) -> None:
    commands = [line for line in shown.splitlines() if line.startswith("$ veriglot ")]
    assert [command.split()[2] for command in commands] == ["detect", "study"]
    assert shown.rstrip().endswith("out/study/report.html")


def test_it_shows_marked_texts_and_rates(shown: str) -> None:
    assert "{entity" in shown
    assert "smollm2-open" in shown
    assert "720 of 720 responses judged" in shown
    assert "unreliable" in shown, "a model this small gives responses that no profile covers, and the table says so"
    assert "Signature: " in shown


def test_every_language_has_a_row(shown: str) -> None:
    table = shown.split("$ veriglot study", 1)[1]
    for tag in ("en", "de", "fr", "es", "it", "pt", "tr", "ar", "ru", "zh-Hans", "hi", "ja"):
        assert re.search(rf"\({tag}\)", table, re.MULTILINE), tag


def test_the_report_stands_alone(shown: str) -> None:  # `shown` has written it
    page = (ROOT / "out" / "study" / "report.html").read_text("utf-8")
    for mark in ('src="http', "src='http", "@import", "url(http"):
        assert mark not in page
    assert "smollm2-closed" in page


def test_what_is_shown_first_holds_a_marked_and_an_unmarked_response(shown: str) -> None:
    first = shown.split("$ veriglot study", 1)[0]
    assert "富士山" in first
    assert "Rosetta" in first
