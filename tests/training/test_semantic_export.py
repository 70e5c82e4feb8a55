"""The exported head against the network that it was made of, on what the detector really gives it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hashed_encoder import WIDTH, HashedEncoder
from training_data import english, german

from veriglot.detectors.grounding.document import Lexicon
from veriglot.detectors.semantic.detector import Head, inputs_of, shared_folder
from veriglot.detectors.semantic.features import Case, EncoderVectors, Reading, read_sample

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.training.semantic.pipeline import SemanticNetwork

torch = pytest.importorskip("torch", reason="training needs PyTorch: install the extra `train`")
pytest.importorskip("onnxscript", reason="training writes ONNX: install the extra `train`")

pytestmark = pytest.mark.slow

DIRECTIONS = 10


def reading(response: str, *passages: str, question: str | None = None) -> Reading:
    held = Case(response, passages, question, "en", "en")
    found = read_sample(held, Lexicon.load(shared_folder()), EncoderVectors(HashedEncoder()))
    assert found is not None
    return found


READINGS = {
    "a word": lambda: reading("Wool.", "Wool."),
    "an answer": lambda: reading("Mayor Holm opened it.", english(0), question="Who opened the school?"),
    "several passages": lambda: reading(english(2), english(2), german(3), "?", english(4)),
    "long evidence": lambda: reading("The market sells wool. It rains.", *(english(n) for n in range(12))),
    "a long response": lambda: reading(" ".join(english(n) for n in range(12)), english(3)),
}


@pytest.fixture(scope="module")
def network() -> SemanticNetwork:
    from veriglot.training.semantic.pipeline import SemanticNetwork

    features = reading("Wool.", "Wool.")
    torch.manual_seed(1)
    sizes = features.extract.values.shape[1], features.columns.shape[1]
    scales = [(torch.zeros(size), torch.ones(size)) for size in sizes]
    return SemanticNetwork(scales[0], scales[1], features.extract.names.index("rarity"), DIRECTIONS).eval()


@pytest.fixture(scope="module")
def projection() -> NDArray[np.float32]:
    drawn = np.random.default_rng(1).normal(size=(WIDTH, DIRECTIONS))
    orthogonal: NDArray[np.float32] = np.linalg.qr(drawn)[0].astype(np.float32)
    return orthogonal


@pytest.fixture(scope="module")
def file(network: SemanticNetwork, projection: NDArray[np.float32], tmp_path_factory: pytest.TempPathFactory) -> Path:
    from veriglot.training.semantic.pipeline import export

    path = tmp_path_factory.mktemp("head") / "head.onnx"
    before = copy.deepcopy(network.state_dict())
    export(network, projection, path)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    return path


@pytest.mark.parametrize("name", READINGS)
def test_the_head_says_what_the_network_says(
    name: str, network: SemanticNetwork, projection: NDArray[np.float32], file: Path
) -> None:
    seen = READINGS[name]()
    logits, places = Head(file).judged(seen)
    assert logits.shape == (len(seen.words), 7)
    given = inputs_of(seen)
    for key in ("words", "evidence", "question"):
        given[key] = given[key] @ projection
    present = torch.ones(1, len(seen.words), 1)
    with torch.no_grad():
        expected, place = network(*(torch.from_numpy(array) for array in given.values()), present)
    if len(seen.words) <= 500:  # a longer response is judged in parts, which see a little less
        assert np.abs(logits - expected[0].numpy()).max() < 2e-3
        assert (places == seen.slots[place[0].numpy()]).mean() > 0.9
    else:
        assert np.isfinite(logits).all()
    assert logits.std() > 1e-3


def test_the_file_names_no_folder_of_this_machine(file: Path) -> None:
    data = file.read_bytes()
    assert b"site-packages" not in data
    assert b".py" not in data


def test_columns_are_as_many_as_the_detector_reads() -> None:
    from veriglot.training.semantic.pipeline import COLUMNS

    assert reading("Wool.", "Wool.").columns.shape[1] == COLUMNS
