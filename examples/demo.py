"""`make demo`: the main job on the examples, by the commands that a user would type, each shown before it runs."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = Path("examples") / "samples.jsonl"
OUT = Path("out")
COMMAND = Path(sys.executable).with_name("veriglot")

# A screenful or two, of different scripts; the HTML view shows them all.
SELECTION = ("en-1", "de-1", "ru-3", "el-1", "ar-1", "he-1", "hi-1", "ta-1", "th-1", "zh-Hans-1", "ja-1", "ko-1")


def run(*words: str | Path) -> None:
    """Show one `veriglot` command and run it; a command that fails ends the demo with its exit code."""
    shown = [str(word) for word in words]
    print(f"\n$ veriglot {shlex.join(shown)}", flush=True)
    done = subprocess.run([COMMAND, *shown], cwd=ROOT)
    if done.returncode:
        sys.exit(done.returncode)


def select() -> Path:
    """Write the selected samples to a file of their own, in the order of `SELECTION`."""
    lines = (ROOT / SAMPLES).read_text("utf-8").splitlines(keepends=True)
    by_id = {line.split('"', 4)[3]: line for line in lines}
    path = OUT / "selection.jsonl"
    (ROOT / path).write_text("".join(by_id[name] for name in SELECTION), "utf-8")
    return path


def main() -> None:
    """Mark, measure, write the page."""
    (ROOT / OUT).mkdir(exist_ok=True)
    page = OUT / "demo.html"
    run("detect", select(), "--view", "terminal")
    run("evaluate", SAMPLES, "--level", "unit", "--resamples", "0")  # 2-3 texts a language: too few for intervals
    for left in (ROOT / OUT).glob("demo.*"):  # of an earlier demo: it would be resumed, not written again
        left.unlink()
    run("detect", SAMPLES, "-o", page)
    print(f"\nEvery example, with its evidence beside it: {page}")


if __name__ == "__main__":
    main()
