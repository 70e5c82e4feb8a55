"""`make demo`: the main jobs on the examples, by the commands that a user would type, each shown before it runs."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STUDY = Path("examples") / "study"
OUT = Path("out")
RUN = OUT / "study"
COMMAND = Path(sys.executable).with_name("veriglot")

# A few of the small model's responses, in different scripts: with the passage before it (open), and without (closed).
SELECTION = (
    "en-2-q2/smollm2-open/42",
    "en-3-q1/smollm2-closed/42",
    "es-3-q2/smollm2-open/42",
    "ru-2-q1/smollm2-open/42",
    "ar-3-q1/smollm2-open/42",
    "ja-1-q1/smollm2-open/42",
)


def run(*words: str | Path) -> None:
    """Show one `veriglot` command and run it; a command that fails ends the demo with its exit code."""
    shown = [str(word) for word in words]
    print(f"\n$ veriglot {shlex.join(shown)}", flush=True)
    done = subprocess.run([COMMAND, *shown], cwd=ROOT)
    if done.returncode:
        sys.exit(done.returncode)


def select() -> Path:
    """Write the selected responses to a file of their own, in the order of `SELECTION`."""
    files = sorted((ROOT / STUDY / "responses").glob("*.jsonl"))
    lines = [line for file in files for line in file.read_bytes().splitlines(keepends=True)]
    by_id = {line.split(b'"', 4)[3].decode(): line for line in lines}
    path = OUT / "selection.jsonl"
    (ROOT / path).write_bytes(b"".join(by_id[name] for name in SELECTION))
    return path


def main() -> None:
    """Mark a few responses, then measure how much the model that gave them hallucinates."""
    (ROOT / OUT).mkdir(exist_ok=True)
    shutil.rmtree(ROOT / RUN, ignore_errors=True)  # of an earlier demo: it would be resumed, not made
    run("detect", select(), "--to", "terminal")
    run("study", "run", STUDY / "study.toml", "-o", RUN)
    print(f"\nThe study to look at, in any browser: {RUN / 'report.html'}")


if __name__ == "__main__":
    main()
