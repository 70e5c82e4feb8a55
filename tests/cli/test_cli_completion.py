"""Shells complete commands and options, by the script that `--show-completion` prints."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("veriglot")
ASK = """
{script}
COMP_WORDS=({words}); COMP_CWORD={index}
_veriglot_completion {command}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def script() -> str:
    if shutil.which("bash") is None:
        pytest.skip("needs bash")
    settings = {
        **os.environ,
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }
    command = [COMMAND, "--show-completion", "bash"]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=settings).stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("veriglot ev", ["evaluate"]),
        ("veriglot evaluate --fu", ["--full"]),
        ("veriglot study i", ["init"]),
        ("veriglot no-such-command --f", []),
    ],
)
def test_the_next_word(script: str, words: str, expected: list[str]) -> None:
    asked = ASK.format(script=script, words=words, index=len(words.split()) - 1, command=COMMAND)
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.split() == expected
