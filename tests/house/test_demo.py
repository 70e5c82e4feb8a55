"""`make demo` does what the README says, by the commands it shows."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

import veriglot
from veriglot.formats.reader import read_predictions

pytestmark = pytest.mark.slow  # it judges with the reader, and makes a study

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def shown() -> str:
    done = subprocess.run([sys.executable, ROOT / "examples" / "demo.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_shows_its_commands_and_ends_with_the_report_and_what_to_do_next(shown: str) -> None:
    commands = [line for line in shown.splitlines() if line.startswith("$ veriglot ")]
    assert [command.split()[2] for command in commands] == ["detect", "detect", "detect", "study"]
    _, _, end = shown.rpartition("Open out/study/report.html in any browser.")
    assert end.endswith("labelled:\nveriglot bench labelled.jsonl\n")


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


def test_the_draw_is_of_five_scripts_and_of_the_part_that_may_be_shown() -> None:
    demo = runpy.run_path(str(ROOT / "examples" / "demo.py"))
    draw = demo["draw"]()
    assert [sample.id for sample in draw] == [sample.id for sample in demo["draw"]()]
    assert {sample.meta["part"] for sample in draw} == {"look"}
    assert Counter(sample.language for sample in draw) == dict.fromkeys(demo["LANGUAGES"], demo["DRAWN"])


def test_a_citation_does_not_look_marked() -> None:
    demo = runpy.run_path(str(ROOT / "examples" / "demo.py"))
    prediction = SimpleNamespace(spans=(SimpleNamespace(start=11, end=15),))
    assert demo["marked_text"](prediction, "It has run 1907 boats [2].") == "It has run ⟦1907⟧ boats [2]."


def test_shares_are_of_the_whole_draw_and_mistakes_are_called_so(shown: str) -> None:
    picked, draw = shown.split("2. 50 answers", 1)
    assert "picked" in picked
    predictions = list(read_predictions(ROOT / "out" / "draw-marked.jsonl"))
    samples = list(veriglot.read(ROOT / "out" / "draw.jsonl"))
    wrong = [bool(sample.annotations[0].spans) for sample in samples]
    marked = [bool(prediction.spans) for prediction in predictions]
    right_verdicts = Counter(label for label, mark in zip(wrong, marked, strict=True) if label == mark)
    for name, label in (("right", False), ("wrong", True)):
        assert f"Of the {wrong.count(label)} {name} answers drawn, {right_verdicts[label]} (" in draw
    verdicts = re.findall(r"script \([\w-]+\): (.+)", draw)
    first = [index for index in range(50) if index % 10 < 2]
    assert ["our mistake" in verdict for verdict in verdicts] == [wrong[index] != marked[index] for index in first]
