"""Commands take `auto` as one detector, though its predictions name two."""

from __future__ import annotations

import json
import sys
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import veriglot
from json_lines import write_lines
from veriglot.bench.evaluation import evaluate
from veriglot.cli import main
from veriglot.cli.detect import DetectOptions
from veriglot.cli.evaluate import EvaluateOptions
from veriglot.cli.generation import Checks
from veriglot.cli.serve import ServeOptions
from veriglot.detectors.auto import Recorded, RecordedFigure
from veriglot.detectors.registry import load_detector
from veriglot.formats.reader import read, read_predictions
from veriglot.integrations import _Judging
from veriglot.records import Generator
from veriglot.study.config import DetectorEntry

if TYPE_CHECKING:
    from veriglot.records import Detector, Prediction, Sample

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "samples.jsonl"
CHOOSING = """
from functools import partial
from veriglot.detectors.auto import Auto
from veriglot.detectors.registry import DETECTORS
from veriglot.plugins import Entry
DETECTORS._entries["reader"] = Entry("stand_in:StandIn")
Choosing = partial(Auto, figures={figures!r})
"""
STUDY = """
[study]
draws = 200
pooled = true
[responses]
path = "answers.jsonl"
[[detectors]]
name = "{name}"
label = "auto"
labelled = "labelled.jsonl"
"""


class Desk:
    """A folder with labelled samples in a language with figures that are for `grounding` and in others, and `auto` by
    a name that worker processes find too."""

    def __init__(self, folder: Path) -> None:
        module = f"choosing_{folder.name.replace('-', '_')}"
        figures = str(folder / "figures.json")
        (folder / f"{module}.py").write_text(CHOOSING.format(figures=figures))
        own = RecordedFigure(load_detector("grounding").name, "grounding", "de", "evidence", "d", 0.6, None, None, 9, 9)
        recorded = Recorded(format=Recorded.known, level="word", measure="f1", figures=(own,), signature="bench:x")
        Path(figures).write_bytes(msgspec.json.encode(recorded))
        self.folder, self.name = folder, f"{module}:Choosing"
        self.rows = [row for row in read(EXAMPLES) if row.language in {"en", "de", "fi", "hi"}]
        self.detector: Detector = load_detector("auto", figures=figures)
        self.labelled = self.write("labelled.jsonl", self.rows)
        answers = [
            msgspec.structs.replace(
                row,
                id=f"{row.id}/{seed}",
                generator=Generator("kiln", seed=seed),
                annotations=(),
                meta={"query": row.id},
            )
            for row in self.rows
            for seed in (1, 2)
        ]
        self.answers = self.write("answers.jsonl", answers)

    def write(self, name: str, rows: list[Sample]) -> Path:
        path = self.folder / name
        write_lines(path, rows)
        return path


@pytest.fixture
def desk(stand_in: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return Desk(tmp_path)


def said(capfd: pytest.CaptureFixture[str], *words: object) -> str:
    capfd.readouterr()
    code = main([str(word) for word in words])
    sys.stdout.flush()
    out, err = capfd.readouterr()
    assert code == 0, err
    return out


def judges(found: list[Prediction]) -> set[str]:
    return {one.detector.partition("@")[0] for one in found}


@pytest.mark.parametrize("jobs", [1, 2])
def test_detect_writes_who_judged(desk: Desk, capfd: pytest.CaptureFixture[str], jobs: int) -> None:
    said(capfd, "detect", desk.labelled, "--detector", desk.name, "-o", "marked.jsonl", "--processes", jobs)
    found = list(read_predictions("marked.jsonl"))
    assert found == desk.detector.predict(desk.rows)
    assert judges(found) == {"grounding", "reader"}
    assert {one.asked for one in found} == {desk.detector.name}


def test_evaluate_says_the_same_of_the_detector_and_of_its_predictions(
    desk: Desk, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = ("--detector", desk.name)
    said(capfd, "detect", desk.labelled, *asked, "-o", "marked.jsonl", "--words")
    profiles: list[dict[str, Any]] = []
    for name, words in (("live", asked), ("file", ("--predictions", "marked.jsonl"))):
        said(capfd, "evaluate", desk.labelled, *words, "-o", f"{name}.json", "--json")
        profiles.append(json.loads(Path(f"{name}.json").read_text("utf-8")))
    live, file = profiles
    assert live["detector"] == file["detector"] == desk.detector.name
    assert live["languages"] == file["languages"]
    assert live["threshold"] == file["threshold"] == desk.detector.threshold


def test_estimate_takes_the_profile_of_auto_for_its_predictions(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    asked = ("--detector", desk.name)
    said(capfd, "evaluate", desk.labelled, *asked, "-o", "profile.json")
    said(capfd, "detect", desk.answers, *asked, "-o", "marked.jsonl", "--words")
    words = ("marked.jsonl", "--samples", desk.answers, "--profile", "profile.json", "--json")
    rates = json.loads(said(capfd, "estimate", *words))
    assert rates
    said(capfd, "evaluate", desk.labelled, "--detector", "grounding", "-o", "other.json")
    assert main(["estimate", "marked.jsonl", "--samples", str(desk.answers), "--profile", "other.json"]) == 2
    assert "The profile is of grounding@" in capfd.readouterr().err


def test_a_study_with_auto(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    (desk.folder / "study.toml").write_text(STUDY.format(name=desk.name))
    said(capfd, "study", "run", "study.toml", "-o", "run")
    found = list(read_predictions(next(Path("run/predictions/auto").glob("*.jsonl"))))
    assert judges(found) == {"grounding", "reader"}
    rates = json.loads(Path("run/rates.json").read_text("utf-8"))
    assert desk.detector.name in json.dumps(rates)
    said(capfd, "study", "run", "study.toml", "-o", "run")  # nothing is judged again, and nothing refused
    assert list(read_predictions(next(Path("run/predictions/auto").glob("*.jsonl")))) == found


def test_where_nobody_chooses_it_is_auto() -> None:
    functions: list[Any] = [veriglot.detect, veriglot.detect_many, evaluate, veriglot.assert_grounded, _Judging]
    stated = [signature(function).parameters["detector"].default for function in functions]
    stated += [options.detector for options in (DetectOptions(), EvaluateOptions(data=[]), Checks())]
    stated += [ServeOptions().detectors, DetectorEntry().name, signature(load_detector).parameters["name"].default]
    assert set(stated) == {"auto"}


def test_an_output_that_grounding_began_is_not_gone_on_with_by_auto(
    desk: Desk, capfd: pytest.CaptureFixture[str], no_reader: None
) -> None:
    said(capfd, "detect", desk.labelled, "--detector", "grounding", "-o", "marked.jsonl")
    begun = Path("marked.jsonl").read_bytes()
    assert main(["detect", str(desk.labelled), "-o", "marked.jsonl"]) == 2
    assert "started differently: --detector was 'grounding' and is now 'auto'" in capfd.readouterr().err
    assert Path("marked.jsonl").read_bytes() == begun


def test_without_the_reader_the_summary_says_what_to_install(
    desk: Desk, capfd: pytest.CaptureFixture[str], no_reader: None
) -> None:
    assert main(["detect", str(desk.labelled), "-o", "marked.jsonl"]) == 0
    assert f": {len(desk.rows)}. Type pip install 'veriglot[reader]'" in capfd.readouterr().err
    rows = [{"source": "The weather was nice yesterday.", "translation": "Gestern war das Wetter schön."}]
    Path("translations.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    assert main(["detect", "translations.jsonl", "-o", "held.jsonl"]) == 0
    assert "1 not checked (unsupported language 1)" in (err := capfd.readouterr().err)
    assert "of which grounding compares numbers alone; type pip install 'veriglot[reader]'" in err
