"""From files to a folder of weights for the semantic detector that loads: a small training, twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hashed_encoder import HashedEncoder
from parallel_data import marked_translations, parallel_samples
from training_data import article_samples, english, silver

from veriglot.cli import main
from veriglot.errors import InputError, WeightsError
from veriglot.formats.reader import read
from veriglot.formats.writer import write
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Status, Task

pytest.importorskip("torch", reason="training needs PyTorch: install the extra `train`")
pytest.importorskip("onnxscript", reason="training writes ONNX: install the extra `train`")

pytestmark = pytest.mark.slow

TRAINING = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from hashed_encoder import HashedEncoder
from veriglot.training.semantic.pipeline import train
if __name__ == "__main__":
    train([Path(sys.argv[2])], Path(sys.argv[3]), seed=3, encoder=HashedEncoder(), epochs=1, jobs=int(sys.argv[4]),
          say=print)
"""


def natural_samples(count: int) -> list[Sample]:
    """Answers that people labelled: every other one with an invented end."""
    found = []
    for n in range(count):
        response = "The market sells cheese." + (" A dragon sleeps there." if n % 2 else "")
        spans = (Span(25, len(response), "invented"),) if n % 2 else ()
        layer = Annotation("gold", Kind.HUMAN, "fava", spans)
        found.append(
            Sample(f"n{n}", response, Task.QA, "en", "What is sold?", (Evidence(english(n)),), annotations=(layer,))
        )
    return found


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("data") / "own.jsonl"
    response = "The town lies on the river. It was a most charming place."
    mark = ("a most charming place", "subjective")
    silvers = [silver(f"s{n}", "en", english(n), response, mark, group=f"g{n}") for n in range(8)]
    write(
        [
            *article_samples("en", 12), *silvers, *parallel_samples(8),
            *marked_translations(8), *natural_samples(10),
        ],
        file,
    )  # fmt: skip
    return file


@pytest.fixture(scope="module")
def folders(data: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two folders of weights, trained alike side by side, one reading with two processes."""
    script = tmp_path_factory.mktemp("script") / "training.py"
    script.write_text(TRAINING, "utf-8")
    outs = [tmp_path_factory.mktemp("trained") / "weights" for _ in range(2)]
    processes = [
        subprocess.Popen(
            [sys.executable, str(script), str(Path(__file__).parent), str(data), str(out), str(jobs)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for jobs, out in enumerate(outs, start=1)
    ]  # fmt: skip
    for process, out in zip(processes, outs, strict=True):
        said, errors = process.communicate()
        assert process.returncode == 0, errors
        assert "epoch 1 of 1: loss" in said
        assert "second stage without fold 5 of 5" in said
        assert said.endswith(f"wrote {out}\n")
        assert [path.name for path in out.parent.iterdir()] == ["weights"], "scratch files are gone"
    return outs


@pytest.mark.slow
def test_the_folder_is_whole_and_its_card_says_what_went_in(folders: list[Path]) -> None:
    names = sorted(path.name for path in folders[0].iterdir())
    assert names == ["MODEL_CARD.md", "calibration.json", "head.onnx", "weights.json"]
    card = (folders[0] / "MODEL_CARD.md").read_text("utf-8")
    assert "seed 3" in card
    assert "`hashed`" in card
    assert "$" not in card
    for kind, source in (
        ("silver", "silver"), ("natural", "qa"), ("natural", "translation tokens"), ("wrong", "parallel answers"),
        ("changed", "parallel sentences"), ("inserted", "parallel translations"),
    ):  # fmt: skip
        assert f"| {kind} | {source} |" in card
    assert "Nothing was held out" not in card


def test_the_detector_judges_all_three_relations(folders: list[Path], data: Path) -> None:
    from veriglot.detectors.semantic.detector import Semantic

    detector = Semantic(weights=str(folders[0]), words=True, encoder=HashedEncoder())
    samples = [
        Sample("same", "The market sells cheese.", Task.QA, "en", None, (Evidence(english(1), language="en"),)),
        Sample("across", "Das Dorf verkauft Käse.", Task.QA, "de", None, (Evidence(english(1), language="en"),)),
        *[sample for sample in read(data) if sample.task is Task.TRANSLATION][:2],
    ]
    for found in detector.predict(samples):
        assert found.status is Status.SCORED, found.reason
        assert found.score is not None
        assert 0 <= found.score <= 1
        assert found.words


def test_weights_take_no_other_encoder_than_their_own(folders: list[Path]) -> None:
    from veriglot.detectors.semantic.detector import Semantic

    class Other(HashedEncoder):
        signature = "encoder:hashed|weights:another file"

    with pytest.raises(WeightsError, match=r"another encoder than encoder:hashed\|weights:another file"):
        Semantic(weights=str(folders[0]), encoder=Other())


def test_equal_seeds_give_equal_weights_whatever_the_processes(folders: list[Path]) -> None:
    one, other = folders
    for path in sorted(one.iterdir()):
        assert path.read_bytes() == (other / path.name).read_bytes(), path.name


def test_nothing_to_learn_from_is_said(tmp_path: Path) -> None:
    from veriglot.training.semantic.pipeline import train

    write([Sample("x", "No evidence here.", language="en")], tmp_path / "data.jsonl")
    with pytest.raises(InputError, match="nothing to train on"):
        train([tmp_path / "data.jsonl"], tmp_path / "weights", epochs=1, encoder=HashedEncoder())
    assert [path.name for path in tmp_path.iterdir()] == ["data.jsonl"]


def test_a_missing_encoder_is_said_before_anything_is_read(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sentencepiece", reason="needs the extra `semantic`: pip install 'veriglot[semantic]'")
    options = ["--encoder", str(tmp_path / "no.onnx"), "-o", str(tmp_path / "w")]
    assert main(["train", "semantic", str(tmp_path / "no.jsonl"), *options]) != 0
    said = capfd.readouterr().err
    assert "no.onnx" in said
    assert "veriglot models get use-multilingual" in said
    assert not list(tmp_path.iterdir())
