"""`make demo`: verdicts on labelled answers in five scripts, then a study; each command is shown before it runs."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import subprocess
import sys
import webbrowser
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import veriglot
from veriglot.formats.reader import read_predictions

ROOT = Path(__file__).resolve().parents[1]
STUDY = Path("examples") / "study"
OUT = Path("out")
RUN = OUT / "study"
COMMAND = Path(sys.executable).with_name("veriglot")

sys.path.insert(0, str(ROOT / "benchmarks"))

from answer_set import is_marked, read_answers  # noqa: E402  a script beside the package

if TYPE_CHECKING:
    from veriglot import Prediction, Sample

# One language of each of five scripts, of those whose answers may be looked at.
LANGUAGES = {"en": "Latin", "ar": "Arabic", "zh-Hans": "Han", "ja": "Japanese", "ko": "Hangul"}
DRAWN = 10  # answers of each language
SHOWN = 2  # of these, in full
EVIDENCE = "Der Turm ist 42 Meter hoch und wurde 1874 gebaut."
PICKED = ("Der Turm wurde 1847 gebaut.", "Der Turm ist 42 Meter hoch.")
VERDICTS = {  # what the labels say, and whether anything was marked
    (True, True): "wrong answer, marked",
    (True, False): "wrong answer, NOT marked: our mistake",
    (False, True): "right answer, MARKED: our mistake",
    (False, False): "right answer, not marked",
}


def run(*words: str | Path) -> None:
    """Show one `veriglot` command and run it; a command that fails ends the demo with its exit code."""
    shown = [str(word) for word in words]
    print(f"\n$ veriglot {shlex.join(shown)}", flush=True)
    done = subprocess.run([COMMAND, *shown], cwd=ROOT)
    if done.returncode:
        sys.exit(done.returncode)


def draw() -> list[Sample]:
    """`DRAWN` answers of each language, by seed 0, from the part of the answer set that may be looked at."""
    chosen, generator = [], random.Random(0)
    answers = [sample for sample in read_answers() if sample.meta["part"] == "look"]
    for tag in LANGUAGES:
        own = [s for s in answers if s.language == tag and str(s.meta["article"]).startswith(f"{tag}-")]
        chosen += generator.sample(own, DRAWN)
    return chosen


def marked_text(prediction: Prediction, response: str) -> str:
    """The response with ⟦brackets⟧ around what is marked: a citation may stand in [others]."""
    parts, end = [], 0
    for span in prediction.spans or ():
        parts += [response[end : span.start], "⟦", response[span.start : span.end], "⟧"]
        end = span.end
    return " ".join("".join([*parts, response[end:]]).split())


def show_verdicts(samples: list[Sample], predictions: list[Prediction]) -> None:
    """The first answers of each language in full, then how many verdicts are right over the whole draw."""
    pairs = [(s, p) for s, p in zip(samples, predictions, strict=True) if p.spans is not None]
    if len(pairs) < len(samples):
        print(f"\nNot checked, and in no count: {len(samples) - len(pairs)} answers")
    for tag, group in groupby(pairs, key=lambda pair: pair[0].language):
        for sample, prediction in list(group)[:SHOWN]:
            verdict = VERDICTS[bool(sample.annotations[0].spans), is_marked(prediction)]
            print(f"\n{LANGUAGES[str(tag)]} script ({tag}): {verdict}")
            print(f"  {sample.question}\n  {marked_text(prediction, sample.response)}")
    for wrong, name, right_verdict in ((False, "right", "not marked"), (True, "wrong", "marked")):
        verdicts = [is_marked(p) == wrong for s, p in pairs if bool(s.annotations[0].spans) == wrong]
        share = f"{sum(verdicts)} ({sum(verdicts) / len(verdicts):.0%}) were {right_verdict}"
        print(f"{'' if wrong else chr(10)}Of the {len(verdicts)} {name} answers drawn, {share}.")


def main() -> None:
    """Judge two picked answers and a draw, then measure how much a small model hallucinates."""
    (ROOT / OUT).mkdir(exist_ok=True)
    shutil.rmtree(ROOT / RUN, ignore_errors=True)  # of an earlier demo: it would be resumed, not made
    for path in (ROOT / OUT).glob("draw*"):
        path.unlink()

    print("1. Two answers, picked to explain what a verdict looks like.")
    for response in PICKED:
        run("detect", "--evidence-text", EVIDENCE, "--response-text", response, "--to", "terminal")

    samples = draw()
    print(
        f"\n2. {len(samples)} answers in {len(LANGUAGES)} scripts, drawn with seed 0 from benchmarks/answer_set (part"
        " look). They were written and labelled for this project;\nnothing was trained on them. Each wrong answer"
        " has one error that is hard to find: most put words of the evidence in the wrong place.\n"
        "⟦Brackets⟧ show what is marked."
    )
    drawn, marked = OUT / "draw.jsonl", OUT / "draw-marked.jsonl"
    veriglot.write(samples, ROOT / drawn)
    run("detect", drawn, "--detector", "reader", "--words", "-o", marked)
    show_verdicts(samples, list(read_predictions(ROOT / marked)))

    print("\n3. A study: how much a small model hallucinates in 12 languages.")
    run("study", "run", STUDY / "study.toml", "-o", RUN)

    report = RUN / "report.html"
    has_display = sys.platform in {"darwin", "win32"} or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if sys.stdout.isatty() and has_display:
        webbrowser.open((ROOT / report).as_uri())
    print(
        f"\nOpen {report} in any browser. These data do not support a rate that is called unreliable: do not quote it."
        "\nPart 2 shows how often the detector errs on hard answers. Before you rely on it, measure it on answers that"
        " you labelled:\nveriglot bench labelled.jsonl"
    )


if __name__ == "__main__":
    main()
