"""From files to a folder of weights that can be loaded: a small training, twice."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from training_data import MAYORS, article_samples, english, silver

from veriglot.cli import main
from veriglot.detectors.registry import load_detector
from veriglot.errors import InputError
from veriglot.formats.reader import read
from veriglot.formats.writer import write
from veriglot.records import Sample, Status, encode

pytest.importorskip("torch", reason="training needs PyTorch: install the extra `train`")
pytest.importorskip("onnxscript", reason="training writes ONNX: install the extra `train`")

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "samples.jsonl"


def silver_samples(count: int) -> list[Sample]:
    found = []
    for n in range(count):
        mayor = MAYORS[(n + 4) % 10]
        response = f"The town lies on the river. Mayor {mayor} was a most charming man."
        marks = [("a most charming man", "subjective")]
        found.append(silver(f"s{n}", "en", english(n), response, *marks, group=f"g{n}"))
    return found


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The examples of the project, and a few articles and marked responses of these tests."""
    folder = tmp_path_factory.mktemp("data")
    own = [*article_samples("en", 25), *article_samples("de", 25), *article_samples("zh", 25), *silver_samples(40)]
    write(own, folder / "own.jsonl")
    return [EXAMPLES, folder / "own.jsonl"]


def training(data: list[Path], out: Path) -> subprocess.Popen[str]:
    """Train in a process of its own, because PyTorch's random draws may depend on earlier work of a process."""
    code = "import sys; from veriglot.cli import main; sys.exit(main())"
    paths = [str(path) for path in data]
    options = ["-o", str(out), "--seed", "3", "--epochs", "1"]
    command = [sys.executable, "-c", code, "train", "grounding", *paths, *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def folders(data: list[Path], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two folders of weights, trained at the same time with equal arguments."""
    outs = [tmp_path_factory.mktemp("trained") / "weights" for _ in range(2)]
    processes = [training(data, out) for out in outs]
    for process, out in zip(processes, outs, strict=True):
        said, progress = process.communicate()
        assert process.returncode == 0, progress
        assert said == ""
        assert "epoch 1 of 1: loss" in progress
        assert str(out) in progress
    return outs


@pytest.fixture(scope="module")
def weights(folders: list[Path]) -> Path:
    return folders[0]


def digest(folder: Path) -> str:
    found = load_detector("grounding", weights=str(folder), words=True).predict(list(read(EXAMPLES)))
    assert all(prediction.status is Status.SCORED for prediction in found)
    return hashlib.sha256(b"\n".join(encode(prediction) for prediction in found)).hexdigest()


@pytest.mark.slow
def test_the_folder_is_whole_and_loads(weights: Path) -> None:
    names = ["calibration.json", "frequencies.npy", "network.onnx", "vector_keys.npy", "vectors.npy", "weights.json"]
    assert sorted(path.name for path in weights.iterdir()) == ["MODEL_CARD.md", *names]
    detector = load_detector("grounding", weights=str(weights))
    assert detector.signature != load_detector("grounding").signature
    (found,) = detector.predict(list(read(EXAMPLES))[:1])
    assert found.status is Status.SCORED
    card = (weights / "MODEL_CARD.md").read_text("utf-8")
    assert "seed 3" in card
    assert "$" not in card
    assert "| silver | silver |" in card


def test_the_same_seed_gives_the_same_predictions_in_two_processes(folders: list[Path]) -> None:
    one, other = folders
    assert digest(one) == digest(other)
    for name in ("network.onnx", "calibration.json", "frequencies.npy", "MODEL_CARD.md"):
        assert (one / name).read_bytes() == (other / name).read_bytes()


def test_nothing_to_learn_from_is_said(tmp_path: Path) -> None:
    from veriglot.training.grounding.pipeline import train

    write([Sample("x", "No evidence here.", language="en")], tmp_path / "data.jsonl")
    said: list[str] = []
    with pytest.raises(InputError, match="nothing to train on"):
        train([tmp_path / "data.jsonl"], tmp_path / "weights", epochs=1, say=said.append)
    assert said[-1].startswith("warning: so few responses give no detector"), "six rows were trained on without a word"


def test_missing_data_is_said_before_anything_is_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "grounding", str(tmp_path / "no.jsonl"), "-o", str(tmp_path / "w")]) == 1
    assert "no such file" in capfd.readouterr().err
    assert not (tmp_path / "w").exists()
