"""From parallel questions to a folder of weights with a reader that loads and judges: a small training, twice."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hashed_encoder import WIDTH, HashedEncoder
from parallel_data import parallel_samples

from veriglot.cli import main
from veriglot.errors import InputError
from veriglot.formats.writer import write
from veriglot.hub import registry
from veriglot.records import Evidence, Sample, Status, Task

pytest.importorskip("torch", reason="training needs PyTorch: install the extra `train`")
pytest.importorskip("onnxscript", reason="training writes ONNX: install the extra `train`")

pytestmark = pytest.mark.slow

for _beside in ("detectors", "encoders"):
    sys.path.append(str(Path(__file__).parents[1] / _beside))


@pytest.fixture(scope="module")
def encoder_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tiny_e5 import write_e5

    place = tmp_path_factory.mktemp("e5") / "tiny.bin"
    write_e5(place, room=512)
    return place


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weights without a reader, for the small encoder."""
    from random_head import write_random_head

    folder = write_random_head(tmp_path_factory.mktemp("base") / "weights", encoded=WIDTH, directions=16)
    (folder / "MODEL_CARD.md").write_text("# Model card: semantic random\n\nOf random numbers.\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def folders(base: Path, encoder_file: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], list[str]]:
    """Two folders of weights, trained alike, and what was said of it."""
    from veriglot.training.reader.pipeline import train

    data = tmp_path_factory.mktemp("data") / "parallel.jsonl"
    write(parallel_samples(12), data)
    outs = [tmp_path_factory.mktemp("trained") / "weights" for _ in range(2)]
    said: list[str] = []
    for out in outs:
        train(
            [data], out, weights=base, seed=3, encoder=HashedEncoder(), reads_with=encoder_file, passes=1, threads=1,
            say=said.append,
        )  # fmt: skip
    return outs, said


@pytest.mark.slow
def test_the_folder_is_whole_and_its_card_says_what_went_in(folders: tuple[list[Path], list[str]], base: Path) -> None:
    (one, _), said = folders
    names = sorted(path.name for path in one.iterdir())
    assert names == ["MODEL_CARD.md", "calibration.json", "head.onnx", "reader.npz", "weights.json"]
    assert (one / "head.onnx").read_bytes() == (base / "head.onnx").read_bytes()
    card = (one / "MODEL_CARD.md").read_text("utf-8")
    assert card.startswith("# Model card: semantic ")
    assert card.count("## Reader") == 1
    assert "in\nde en" in card
    assert "among them" in card
    assert any("with their answers" in line for line in said)
    assert said[-1].startswith("wrote ")


def test_equal_data_and_seed_give_equal_weights(folders: tuple[list[Path], list[str]]) -> None:
    one, other = folders[0]
    assert (one / "reader.npz").read_bytes() == (other / "reader.npz").read_bytes()
    assert (one / "weights.json").read_bytes() == (other / "weights.json").read_bytes()


def test_the_weights_judge_across_languages(
    folders: tuple[list[Path], list[str]], encoder_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from veriglot.detectors.semantic.detector import Semantic

    monkeypatch.setattr(registry, "find", lambda _: encoder_file)
    detector: Any = Semantic(weights=str(folders[0][0]), encoder=HashedEncoder(), words=True)
    sample = Sample(
        "s", "Gegründet wurde sie 1300.", Task.QA, "de", None, (Evidence("It was founded in 1300.", language="en"),)
    )
    (found,) = detector.predict([sample])
    assert found.status is Status.SCORED
    assert found.detector == "semantic@1.2"
    assert "reader:absent" not in found.notes


def test_a_reader_is_trained_anew_over_an_old_one(
    folders: tuple[list[Path], list[str]], encoder_file: Path, tmp_path: Path
) -> None:
    from veriglot.training.reader.pipeline import train

    data = tmp_path / "parallel.jsonl"
    write(parallel_samples(12), data)
    old = folders[0][0]
    train(
        [data], tmp_path / "new", weights=old, seed=4, encoder=HashedEncoder(), reads_with=encoder_file, passes=1,
        threads=1,
    )  # fmt: skip
    assert (tmp_path / "new" / "reader.npz").read_bytes() != (old / "reader.npz").read_bytes()
    assert (tmp_path / "new" / "MODEL_CARD.md").read_text("utf-8").count("## Reader") == 1


def test_data_without_parallel_articles_is_refused(base: Path, encoder_file: Path, tmp_path: Path) -> None:
    from veriglot.training.reader.pipeline import train

    data = tmp_path / "one.jsonl"
    write([sample for sample in parallel_samples(30) if sample.language == "en"], data)
    with pytest.raises(InputError, match="too few parallel articles") as caught:
        train([data], tmp_path / "out", weights=base, encoder=HashedEncoder(), reads_with=encoder_file)
    assert "several languages" in (caught.value.remedy or "")
    assert not (tmp_path / "out").exists()


def test_the_command_says_which_data_is_missing(
    use_multilingual: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        registry.find("e5-multilingual")
    except registry.MissingWeightsError as error:
        pytest.skip(f"needs the encoder: {error}")
    code = main(["train", "reader", str(tmp_path / "none.jsonl"), "-o", str(tmp_path / "out")])
    assert code != 0
    assert "none.jsonl" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
