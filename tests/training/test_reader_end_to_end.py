"""From data to a folder of the reader's weights that can be loaded and used: a small training, twice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from parallel_data import parallel_samples
from training_data import MAYORS, english, silver

from veriglot.errors import UsageError, WeightsError
from veriglot.formats.writer import write
from veriglot.hub import registry
from veriglot.records import Evidence, Kind, Sample, Status, Task

pytest.importorskip("torch", reason="training needs PyTorch: install the extra `train`")
pytest.importorskip("tokenizers", reason="needs the extra `reader`: pip install 'veriglot[reader]'")
pytest.importorskip("onnx", reason="needs the extra `reader`: pip install 'veriglot[reader]'")

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

TOKENS = 0.02  # millions


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tiny_e5 import write_e5

    path = tmp_path_factory.mktemp("e5") / "tiny.bin"
    write_e5(path, room=512)
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Marked responses, natural answers, parallel questions, and a set of labelled pairs."""
    folder = tmp_path_factory.mktemp("data")
    marked = [
        silver(
            f"s{n}",
            "en",
            english(n),
            f"It lies on the river. {MAYORS[n % 10]} was charming.",
            ("charming", "subjective"),
        )
        for n in range(30)
    ]
    question = "Who opened the first school?"
    answers = [
        msgspec.structs.replace(
            row, id=f"a{n}", task=Task.QA, question=question, evidence=(Evidence(english(n + 40)),),
            annotations=(msgspec.structs.replace(row.annotations[0], annotator="gold", kind=Kind.HUMAN),),
        )
        for n, row in enumerate(marked)
    ]  # fmt: skip
    write([*marked, *answers, *parallel_samples(12)], folder / "own.jsonl")
    lines = ["premise\thypothesis\tlabel"]
    for n in range(60):
        lines += [f"Der Zug {n} fährt nach Bergau.\tZug {n} fährt nach {goal}" for goal in ("Bergau.\te", "Aspen.\tc")]
    (folder / "farstail").mkdir()
    (folder / "farstail" / "Val-word.csv").write_text("\n".join(lines), "utf-8")
    return [folder / "own.jsonl", folder / "farstail"]


class _StopError(Exception):
    pass


def trained(data: list[Path], out: Path, encoder: Path, *, threads: int = 2, stop: int | None = None) -> list[str]:
    """Train on few tokens, and return the progress lines. Line number `stop` raises an error, if given."""
    from veriglot.training.reader import data as reader_data
    from veriglot.training.reader import pipeline
    from veriglot.training.reader.twins import held_out_written

    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        if len(lines) == stop:
            raise _StopError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "find", lambda _name: encoder)
        patch.setattr(reader_data, "_HELD_OUT_CASES", 60)
        patch.setattr(reader_data, "held_out_written", lambda rng: held_out_written(rng)[:60])
        patch.setattr(pipeline, "_CHUNK", 16_000)
        patch.setattr(pipeline, "_BATCH", 600)
        patch.setattr(pipeline, "_STEPS_A_LINE", 1)
        patch.setattr(pipeline, "_MINUTES", 0.0)
        if stop is None:
            pipeline.train(data, out, seed=3, tokens=TOKENS, threads=threads, say=say)
        else:
            with pytest.raises(_StopError):
                pipeline.train(data, out, seed=3, tokens=TOKENS, threads=threads, say=say)
    return lines


@pytest.fixture(scope="module")
def whole(data: list[Path], encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    out = tmp_path_factory.mktemp("whole") / "weights"
    return out, trained(data, out, encoder)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_every_source_is_drawn_from_and_the_loss_is_reported(whole: tuple[Path, list[str]]) -> None:
    _, lines = whole
    assert {part.split()[0] for part in lines[0].split(", ")} >= {
        "pairs",
        "silver",
        "answers",
        "across",
        "translations",
    }
    reported = " ".join(lines)
    for name in ("tokens", "types", "responses", "twins", "answers"):
        assert f" {name} 0." in reported or f" {name} 1." in reported
    assert "of 0M tokens" in lines[1]
    assert lines[-1].startswith("wrote ")


def test_no_text_of_a_held_out_row_trains(data: list[Path]) -> None:
    """A passage of a parallel article is also one of the answers in its language, which have groups of their own."""
    from veriglot.training.reader.data import read_training_data

    material = read_training_data(data, 3)
    texts = {text for row in material.held_out for text in row.example.passages}
    assert any(row.example.source.startswith("parallel") for row in material.held_out)
    rows = [row for source in material.sources.values() for row in source.rows]
    assert not [row for row in rows if not texts.isdisjoint(row.example.passages)]


def test_the_folder_is_whole_and_the_checkpoint_gone(whole: tuple[Path, list[str]]) -> None:
    folder, _ = whole
    assert sorted(contents(folder)) == ["MODEL_CARD.md", "answers.npz", "fusion.json", "network.npz", "weights.json"]
    assert [path.name for path in folder.parent.iterdir()] == ["weights"]
    fusion = json.loads((folder / "fusion.json").read_bytes())
    assert [relation for relation, relation_weights in fusion.items() if relation_weights["locating"]] == ["same asked"]
    card = (folder / "MODEL_CARD.md").read_text("utf-8")
    assert "seed 3" in card
    assert "$" not in card


def test_what_was_interrupted_ends_in_the_same_weights(
    whole: tuple[Path, list[str]], data: list[Path], encoder: Path, tmp_path: Path
) -> None:
    """Interrupted inside a chunk of the first network's training, and once more after the last step of the other's."""
    folder, lines = whole
    out = tmp_path / "weights"
    steps = sum(" tokens, " in line for line in lines)
    first = int(0.5 * steps)
    written = trained(data, out, encoder, stop=1 + first)
    assert [path.name for path in tmp_path.iterdir()] == ["weights.checkpoint"]
    with pytest.raises(UsageError, match="other data or settings"):
        trained(data, out, encoder, threads=1)
    written += trained(data, out, encoder, stop=1 + steps - first + 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["weights.answers", "weights.checkpoint"]
    written += trained(data, out, encoder)
    assert contents(out) == contents(folder)
    assert len(written) == len(lines) + 2 * 2  # its sources, and the step that was repeated, each time
    assert [path.name for path in tmp_path.iterdir()] == ["weights"]


def test_the_weights_judge(whole: tuple[Path, list[str]], encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from veriglot.detectors.reader.detector import Reader

    monkeypatch.setattr(registry, "find", lambda _name: encoder)
    reader = Reader(weights=str(whole[0]), words=True)
    samples = [
        Sample("x", "It lies in the hills.", language="en", evidence=(Evidence(english(1)),)),
        Sample("y", "Sie liegt am Fluss.", language="de", evidence=(Evidence(english(1), language="en"),)),
    ]
    predictions = reader.predict(samples)
    assert [prediction.status for prediction in predictions] == [Status.SCORED] * 2
    assert all(bool(p.spans) == ((p.score or 0.0) >= 0.5) for p in predictions)


def test_another_encoder_does_not_read_them(
    whole: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tiny_e5 import write_e5
    from veriglot.detectors.reader.detector import Reader

    write_e5(tmp_path / "other.bin", seed=1, room=512)
    monkeypatch.setattr(registry, "find", lambda _name: tmp_path / "other.bin")
    with pytest.raises(WeightsError, match="trained with another encoder"):
        Reader(weights=str(whole[0]))


# The losses.


def lesson(tokeniser: Any, response: str, marked: tuple[int, ...] = (), **fields: Any) -> Any:
    from veriglot.training.reader.network import TrainingInput

    ids = tokeniser.tokens(response)[0]
    target = np.zeros(len(ids), np.float32)
    target[list(marked)] = 1
    types = np.where(target > 0, 2, -1)
    defaults = {"weight": np.ones(len(ids), np.float32), "unsupported": bool(marked)}
    pair = tokeniser.pair([], ids, tokeniser.tokens("the inner den")[0])
    return TrainingInput(pair, target, types=types, **(defaults | fields))


@pytest.fixture
def losses(encoder: Path) -> Any:
    """The losses of a batch by name, and the gradients of the heads."""
    import torch

    from veriglot.encoders.e5 import E5File
    from veriglot.training.reader.network import ReaderNetwork, loss_of

    torch.manual_seed(1)
    network = ReaderNetwork(E5File(encoder))

    def of(*lessons: Any) -> dict[str, float]:
        loss, parts = loss_of(network([lesson.pair for lesson in lessons]), lessons)
        loss.backward()
        assert np.isfinite(loss.item())
        assert loss.item() == pytest.approx(sum(parts.values()), rel=1e-4)
        return parts

    return of


def test_a_batch_with_labels_alone_learns_from_its_likeliest_tokens(losses: Any, encoder: Path) -> None:
    from veriglot.encoders.e5 import Tokeniser

    tokeniser = Tokeniser(encoder)
    nothing = {"weight": np.zeros(len(tokeniser.tokens("the den")[0]), np.float32)}
    parts = losses(*(lesson(tokeniser, "the den", unsupported=label, **nothing) for label in (True, False)))
    assert parts.keys() == {"tokens", "responses", "labels"}
    assert parts["tokens"] == 0.0
    assert parts["labels"] > 0
    unknown = losses(lesson(tokeniser, "the den", unsupported=None, **nothing))
    assert unknown == {"tokens": 0.0}


def test_a_batch_of_twins_alone(losses: Any, encoder: Path) -> None:
    from veriglot.encoders.e5 import Tokeniser

    tokeniser = Tokeniser(encoder)
    right, wrong = lesson(tokeniser, "the inner den"), lesson(tokeniser, "the outer den", (1, 2), twin=True)
    assert losses(right, wrong).keys() == {"tokens", "types", "responses", "twins"}
    assert "twins" not in losses(right)


def test_twins_lose_less_the_more_suspect_the_wrong_one_is(encoder: Path) -> None:
    import torch

    from veriglot.encoders.e5 import Tokeniser
    from veriglot.training.reader.network import ReaderOutput, loss_of

    tokeniser = Tokeniser(encoder)
    lessons = [lesson(tokeniser, "the den"), lesson(tokeniser, "the inn", (1,), twin=True)]
    length = len(lessons[1].pair.ids)
    inside = torch.zeros(2, length, dtype=torch.bool)
    for row, of_row in enumerate(lessons):
        inside[row, slice(*of_row.pair.response)] = True

    def twins(margin: float) -> float:
        tokens = torch.zeros(2, length, 7)
        tokens[1, ..., 0] += margin
        return loss_of(ReaderOutput(tokens, torch.tensor([0.0, margin]), inside), lessons)[1]["twins"]

    assert twins(3.0) < twins(0.0) < twins(-3.0)
    assert twins(0.0) == pytest.approx(0.5 * np.log(2))
