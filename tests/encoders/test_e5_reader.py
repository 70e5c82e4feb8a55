"""The reader on ONNX Runtime and in PyTorch are the same network, and blocks keep what was learned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

pytest.importorskip("tokenizers", reason="needs the extra `reader`: pip install 'veriglot[reader]'")
pytest.importorskip("onnx", reason="needs the extra `reader`: pip install 'veriglot[reader]'")

from tiny_e5 import WIDTH, write_e5
from veriglot.encoders.e5 import BLOCK, PARTS, E5File, E5Reader, Tokeniser, pad_pairs, quantise
from veriglot.errors import WeightsError

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = (
    ("what is in there?", "the inner den", "the river in the inner den"),
    ("", "a", ""),
    ("who", "strange things are in here " * 4, "the weather in the inner city " * 8),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("e5") / "tiny.bin"
    write_e5(path, room=512)
    return path


def test_packed_numbers_are_near_those_that_were_packed() -> None:
    matrix = np.random.default_rng(0).normal(0, 0.1, (6, 3 * BLOCK)).astype(np.float32)
    matrix[2, :BLOCK] = 0.0
    numbers, scales = quantise(matrix)
    assert (numbers.shape, scales.shape) == ((6, 3, BLOCK), (6, 3))
    assert (numbers.dtype, scales.dtype) == (np.uint8, np.float16)
    again = ((numbers.astype(np.float32) - 8) * scales.astype(np.float32)[..., None]).reshape(matrix.shape)
    highest = np.abs(matrix.reshape(6, 3, BLOCK)).max(axis=-1, keepdims=True)
    assert (np.abs(again - matrix).reshape(6, 3, BLOCK) <= highest / 12).all()
    assert not again[2, :BLOCK].any()


def test_sequences_are_padded_with_their_parts(path: Path) -> None:
    tokeniser = Tokeniser(path)
    pairs = [tokeniser.pair(*(tokeniser.tokens(text)[0] for text in texts)) for texts in TEXTS]
    ids, mask, parts = pad_pairs(pairs)
    assert mask.sum(axis=1).tolist() == [len(pair.ids) for pair in pairs]
    assert parts.shape == (*ids.shape, len(PARTS))
    for nth, pair in enumerate(pairs):
        for number, name in enumerate(PARTS):
            assert (parts[nth, slice(*getattr(pair, name))].argmax(axis=-1) == number).all()


def test_what_was_learned_for_another_network_is_refused(path: Path) -> None:
    with pytest.raises(WeightsError, match="What the reader has learned is not for the network in"):
        E5Reader({"part": np.zeros((3, WIDTH), np.float32), "l6.q.b": np.zeros(3, np.float32)}, path)
    with pytest.raises(WeightsError, match="There is no file"):
        E5Reader({}, path.with_name("nothing"))


@pytest.mark.slow
def test_the_network_of_training_is_that_of_onnx_runtime(path: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs the extra `train`: pip install 'veriglot[train]'")
    from veriglot.detectors.reader.detector import head, read_network, save_network
    from veriglot.training.reader.network import FIRST, ReaderNetwork
    from veriglot.training.reader.pipeline import arrays_of

    torch.manual_seed(0)
    network = ReaderNetwork(E5File(path))
    with torch.no_grad():
        for name, values in network.named_parameters():
            if values.requires_grad:
                values += 0.05 * torch.randn_like(values)
            assert values.requires_grad == (not name.startswith(("_norm", *(f"layers.{n}." for n in range(FIRST)))))
    tokeniser = Tokeniser(path)
    pairs = [tokeniser.pair(*(tokeniser.tokens(text)[0] for text in texts)) for texts in TEXTS]
    save_network(tmp_path / "network.npz", arrays_of(network, E5File(path), pairs))
    stored = read_network(tmp_path / "network.npz")
    reader = E5Reader(stored, path)
    with torch.no_grad():
        read = network.eval()(pairs)
        network.layers[5].fi.bias[7] = 90.0  # what goes into the next matrix
    assert 7 in network.outliers(pairs)[5, 1]
    ours, theirs = [], []
    alone = {index: last for index, _, last in reader.states(pairs)}
    for index, _, last in reader.states(pairs, whole=True):
        part = slice(*pairs[index].response)
        ours.append(head(stored, "tokens", last[part]))
        theirs.append(read.tokens[index, part].numpy())
        assert read.inside[index].sum() == len(last[part])
        inside = last[part]
        assert np.abs(alone[index] - np.concatenate([last[:1], inside])).max() < 0.1 * np.abs(inside).max()
        pooled = np.concatenate([last[0], inside.mean(axis=0), inside.max(axis=0)])
        assert head(stored, "response", pooled[None])[0, 0] == pytest.approx(float(read.responses[index]), abs=0.1)
    one, other = np.concatenate(ours), np.concatenate(theirs)
    # Training computes in 16 bits, the other in 8-bit integers, hence not to the last digit.
    assert np.abs(one - other).max() < 0.25
    assert np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.98


@pytest.mark.slow
def test_the_adapters_of_training_are_those_of_onnx_runtime(path: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs the extra `train`: pip install 'veriglot[train]'")
    from veriglot.detectors.reader.detector import AnswerFinder, save_network
    from veriglot.training.reader.network import AnswerNetwork
    from veriglot.training.reader.pipeline import _in_bytes

    torch.manual_seed(0)
    network = AnswerNetwork(E5File(path))
    with torch.no_grad():
        for name, values in network.named_parameters():
            assert values.requires_grad == name.endswith((".down", ".up", "part")) or name.startswith(
                ("answer.", "unsupported.")
            )
            if values.requires_grad:
                values += 0.05 * torch.randn_like(values)
    tokeniser = Tokeniser(path)
    pairs = [tokeniser.pair(*(tokeniser.tokens(text)[0] for text in texts)) for texts in TEXTS]
    save_network(tmp_path / "answers.npz", _in_bytes(network.learned()))
    finder = AnswerFinder(tmp_path / "answers.npz", path)
    again = AnswerNetwork(E5File(path))
    again.start_from(network.learned())
    with torch.no_grad():
        outputs = network.eval().outputs(pairs)
        assert all(torch.equal(*both) for both in zip(outputs[0], again.eval().outputs(pairs)[0], strict=True))
    ours = np.concatenate([finder.read(pair, ("line",), tokeniser)[0][:, 0] for pair in pairs])
    theirs = torch.cat([tokens for tokens, _ in outputs]).numpy()
    assert np.abs(ours - theirs).max() < 0.25
    assert np.corrcoef(ours, theirs)[0, 1] > 0.98


def test_what_the_adapters_learn_is_where_the_answer_stands(path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs the extra `train`: pip install 'veriglot[train]'")
    from veriglot.training.reader.network import AnswerNetwork, TrainingInput

    torch.manual_seed(0)
    network, tokeniser = AnswerNetwork(E5File(path)), Tokeniser(path)
    pair = tokeniser.pair(*(tokeniser.tokens(text)[0] for text in TEXTS[0]))
    count, size = pair.response[1] - pair.response[0], pair.evidence[1] - pair.evidence[0]
    answer = np.arange(size) == size // 2
    ones = np.ones(count, np.float32)
    item = TrainingInput(pair, ones, ones, np.full(count, -1), True, answer=answer)
    optimizer = torch.optim.AdamW([v for v in network.parameters() if v.requires_grad], 0.01)
    for _ in range(20):
        loss, parts = network.loss([item])
        assert loss.item() == pytest.approx(sum(parts.values()), rel=1e-4)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ((tokens, by_evidence),) = network.outputs([pair])
    assert by_evidence.argmax().item() == size // 2
    assert (tokens > 0).all()
    assert network.loss([TrainingInput(pair, ones, ones, item.types, True)])[1].keys() == {"tokens"}
