"""Progress: there for a person at a terminal on long work, absent otherwise."""

from __future__ import annotations

import os
import pty
import re
import select
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from rows import samples

from json_lines import write_lines
from veriglot.cli.console import ProgressBar
from veriglot.pipeline import progress

if TYPE_CHECKING:
    from pathlib import Path


def on_terminal(process: Any, *words: object) -> str:
    """What the command shows on standard error where that is a terminal."""
    ours, theirs = pty.openpty()
    running = process(*words, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
    os.close(ours)
    running.stdout.close()
    assert running.wait(60) == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


def test_long_work_off_a_terminal_shows_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also while a single row takes minutes."""
    monkeypatch.setattr(progress, "_EVERY", 0.01)
    shown = ""
    with ProgressBar(shown=True, total=lambda: 1_200, step="judging") as bar:
        bar.advance()
        while shown.count("\n") < 2:
            shown += capsys.readouterr().err
    assert set(shown.splitlines()) == {"veriglot: judging: 1 of 1,200 done after 0 s"}
    for silent in (ProgressBar(shown=False, total=lambda: 9), ProgressBar(shown=True, total=lambda: 9, lines=False)):
        with silent:
            time.sleep(0.05)
    assert "9 rows" not in capsys.readouterr().err


@pytest.mark.slow
def test_long_work_shows_rows_rate_and_time_left(process: Any, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    write_lines(source, samples(700))
    words = ("detect", source, "--detector", "word_absence:Slow", "--processes", 1)
    shown = on_terminal(process, *words, "-o", tmp_path / "out.jsonl")
    assert re.search(r"\d+/700", shown)
    assert re.search(r"[\d.,]+ rows/s", shown)
    assert re.search(r"0:00:\d\d", shown)
    assert "700 rows: " in shown
    assert on_terminal(process, *words, "-o", tmp_path / "quiet.jsonl", "--quiet") == ""


def test_short_work_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    now = [100.0]
    with os.fdopen(theirs, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with ProgressBar(shown=True, total=lambda: 9, clock=lambda: now[0]) as bar:
            bar.advance()
            now[0] += 0.9
            bar.advance()
            assert not select.select([ours], [], [], 0)[0], "nothing was written"
            now[0] += 0.2
            bar.advance()
    assert "3/9" in os.read(ours, 65536).decode()
    os.close(ours)
