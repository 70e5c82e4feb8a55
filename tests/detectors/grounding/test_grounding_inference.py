"""The network of the shipped weights: parts of a long response give what the whole would."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from veriglot.detectors.grounding.detector import OUTPUTS, Model
from veriglot.errors import WeightsError

WEIGHTS = Path(str(files("veriglot.detectors.grounding") / "weights"))
PERIOD = 100  # words of a stretch that repeats, so that the mean over the response is that over a part
PART = 1200


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(WEIGHTS / "network.onnx")


@pytest.fixture(scope="module")
def width(model: Model) -> int:
    return int(model._session.get_inputs()[0].shape[2])


def repeated(width: int, times: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    features = np.tile(rng.uniform(0, 1, (PERIOD, width)).astype(np.float32), (times, 1))
    return features, np.arange(PERIOD * times) // 20


@pytest.mark.parametrize("words", [1, 2, 3, 119, PART, PART + 1, 2 * PART, 2500])
def test_every_length_gives_a_row_a_word(model: Model, width: int, words: int) -> None:
    features, sentence = repeated(width, 25)
    found = model.logits(features[:words], sentence[:words])
    assert found.shape == (words, OUTPUTS)
    assert np.isfinite(found).all()
    assert model.logits(features[:words], sentence[:words]).tobytes() == found.tobytes()


def test_parts_of_a_long_response_give_what_the_whole_gives(model: Model, width: int) -> None:
    features, sentence = repeated(width, 30)
    parts, whole = model.logits(features, sentence), model._run(features, sentence)
    words = np.arange(len(features))
    place = words % PART
    inner = (place > 100) & (place < PART - 100)
    assert np.abs(parts - whole)[inner].max() < 0.15
    assert np.abs(parts - whole)[~inner].mean() < 0.3
    assert np.std(whole[:, 0]) > 0.3  # the comparison is of something


def test_a_response_as_long_as_a_part_is_not_parted(model: Model, width: int) -> None:
    features, sentence = repeated(width, PART // PERIOD)
    assert model.logits(features, sentence).tobytes() == model._run(features, sentence).tobytes()


def test_one_endless_sentence(model: Model, width: int) -> None:
    features, sentence = repeated(width, 30)
    assert model.logits(features, np.zeros_like(sentence)).shape == (3000, OUTPUTS)


@pytest.mark.parametrize("content", [None, b"", b"no network"])
def test_a_file_that_is_no_network(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "network.onnx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(WeightsError, match=r"network\.onnx cannot be loaded"):
        Model(path)
