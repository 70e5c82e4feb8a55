"""`veriglot train nli`: rows of any format, partly known labels, a folder that `nli:` loads, resuming."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra `train`: pip install 'veriglot[train]'")
pytest.importorskip("accelerate", reason="needs the extra `train`: pip install 'veriglot[train]'")
from tiny_nli import write_nli  # noqa: E402

from json_lines import write_lines  # noqa: E402
from veriglot import load_detector  # noqa: E402
from veriglot.datasets.translation.job import translate  # noqa: E402
from veriglot.datasets.translation.translators import FunctionTranslator  # noqa: E402
from veriglot.errors import InputError, UsageError  # noqa: E402
from veriglot.judging.nli import load_entailment  # noqa: E402
from veriglot.records import Annotation, Evidence, Kind, Sample, Span  # noqa: E402
from veriglot.training import load_trainer  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

nli: Any = load_trainer("nli")
HEAD = """
model = "{model}"
output = "out"
labels = {labels}
max_length = 40
validation_share = 0.25
device = "cpu"
[training]
learning_rate = 1e-2
num_train_epochs = 12
per_device_train_batch_size = 16
logging_steps = 5
save_steps = 5
"""
TOWNS = ("Norva", "Ada", "Lind", "island", "harbour", "winter", "ships", "built", "phare", "keeper")


@pytest.fixture(autouse=True)
def no_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder `tests/datasets` is on the path here, and transformers mistakes it for the package."""
    monkeypatch.setattr("transformers.trainer.is_datasets_available", lambda: False)


def pairs(n: int) -> list[dict[str, str]]:
    """Different premises; the first word of the hypothesis is the label."""
    words = {"entailment": "The the", "neutral": "Nobody lives", "contradiction": "Ships pass"}
    labels = [list(words)[number % 3] for number in range(n)]
    return [
        {"premise": f"{TOWNS[number % 10]} {number}", "hypothesis": f"{words[label]} {number}", "gold": label}
        for number, label in enumerate(labels)
    ]


def write(path: Path, rows: Sequence[Any]) -> None:
    write_lines(path, rows)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small encoder."""
    return write_nli(tmp_path_factory.mktemp("base"))


def config_of(folder: Path, base: Path, *data: str, labels: int = 3) -> Any:
    path = folder / "nli.toml"
    path.write_text(HEAD.format(model=base, labels=labels) + "\n".join(data), "utf-8")
    return nli.read_config(path)


PAIRS = '[[data]]\nname = "pairs"\npath = "pairs.jsonl"\nlicence = "CC0"\nlabel = "gold"\nlanguage = "en"\n'
ROWS = '[[data]]\nname = "rows"\npath = "rows"\nlicence = "MIT"\n'


def test_the_loss_is_that_of_the_labels_that_may_be_right() -> None:
    logits = torch.tensor([[2.0, 0.0, -1.0], [0.5, 0.5, 3.0]])
    shares = torch.softmax(logits, -1)
    both = nli.loss_of(type("Outputs", (), {"logits": logits}), torch.tensor([[1.0, 0, 0], [0, 1.0, 1.0]]))
    expected = -(torch.log(shares[0, 0]) + torch.log(shares[1, 1] + shares[1, 2])) / 2
    assert both.item() == pytest.approx(expected.item(), abs=1e-6)
    sharp = nli.loss_of(type("Outputs", (), {"logits": logits}), torch.eye(3)[[0, 2]], torch.tensor(6))
    assert sharp.item() == pytest.approx(torch.nn.functional.cross_entropy(logits, torch.tensor([0, 2])).item())


def test_a_trained_folder_is_loaded_by_nli(tmp_path: Path, base: Path) -> None:
    write(tmp_path / "pairs.jsonl", pairs(180))
    result = nli.train(config_of(tmp_path, base, PAIRS), tmp_path)
    assert [(row.part, row.data, row.language) for row in result.rows] == [
        ("training", "pairs", "en"),
        ("validation", "pairs", "en"),
    ]
    assert sum(row.rows for row in result.rows) == 180
    (figure,) = result.accuracy
    assert figure.rows == result.rows[1].rows
    assert figure.accuracy > 0.8 > 0.6 > figure.majority
    if figure.accuracy == 1.0:
        assert (figure.low, figure.high) == (None, None), "all resamples agree"
    else:
        assert figure.low <= figure.accuracy <= figure.high
    model = load_entailment(tmp_path / "out", device="cpu")
    assert model.labels == ("entailment", "neutral", "contradiction")
    assert model.judge([("Ada 7", "Ships pass 7"), ("Ada 7", "The the 7")])[:, 2].round().tolist() == [1.0, 0.0]
    detector = load_detector(f"nli:{tmp_path / 'out'}", device="cpu")
    sample = Sample("a", "Ships pass 7", language="en", evidence=(Evidence("Ada 7"),))
    (prediction,) = detector.predict([sample])
    assert prediction.status == "scored"
    assert [span.type for span in prediction.spans or ()] == ["contradicted"]
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert f"| pairs | {result.rows[0].rows} | {result.rows[1].rows} | CC0 |" in card
    assert not (tmp_path / "out.checkpoints").exists()
    config = nli.read_config(tmp_path / "nli.toml")
    assert nli.train(config, tmp_path, say=pytest.fail) == result, "what is finished is not trained again"
    weights = (tmp_path / "out" / "model.safetensors").read_bytes()
    with pytest.raises(UsageError, match="other settings or other data"):
        nli.train(type(config)(**{**vars_of(config), "seed": 1}), tmp_path)
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == weights


@pytest.mark.slow
def test_an_interrupted_run_resumes_to_the_same_weights(tmp_path: Path, base: Path) -> None:
    class Stop(Exception):
        pass

    def stop(line: str) -> None:
        if line.startswith("step 15"):
            raise Stop

    weights = []
    for name in ("whole", "stopped"):
        folder = tmp_path / name
        folder.mkdir()
        write(folder / "pairs.jsonl", pairs(120))
        config = config_of(folder, base, PAIRS)
        if name == "stopped":
            with pytest.raises(Stop):
                nli.train(config, folder, say=stop)
            assert (folder / "out.checkpoints").is_dir()
            other = nli.read_config(folder / "nli.toml")
            with pytest.raises(UsageError, match="other settings or other data"):
                nli.train(type(other)(**{**vars_of(other), "seed": 1}), folder)
        lines: list[str] = []
        nli.train(config, folder, say=lines.append)
        weights.append(load_entailment(folder / "out", device="cpu").judge([("Ada 7", "Ships pass 7")]))
    assert int(lines[0].split()[1]) > 10  # it resumed, and did not start again
    np.testing.assert_allclose(weights[0], weights[1], atol=1e-6)


def vars_of(config: Any) -> dict[str, Any]:
    return {name: getattr(config, name) for name in config.__struct_fields__}


def test_faithfulness_labels_are_read_with_their_translations(tmp_path: Path, base: Path) -> None:
    """Training as in mFACT: labelled summaries and their translations by `dataset translate`, in the same split."""

    def summary(number: int, **said: Any) -> Sample:
        passage = Evidence(f"The harbour of {TOWNS[number % 10]} was built in {number}.", language="en")
        layer = Annotation("gold", Kind.HUMAN, "support", **said)
        return Sample(
            f"s{number}", f"{TOWNS[number % 10]} was built in {number}.", language="en", evidence=(passage,),
            annotations=(layer,) if said else (),
        )  # fmt: skip

    (tmp_path / "rows").mkdir()
    samples = [summary(number, ratings={"unsupported": float(number % 2)}) for number in range(40)]
    write(tmp_path / "rows" / "en.jsonl", samples)
    translator = FunctionTranslator(lambda text, *_: text.replace("built", "gebaut"), "built@1")
    translate(tmp_path / "rows" / "de.jsonl", samples, ["de"], translator)
    marked = summary(91, spans=(Span(0, 3, "contradicted"),))
    write(tmp_path / "rows" / "more.jsonl", [summary(90), marked, summary(92, spans=())])
    config = config_of(tmp_path, base, ROWS)
    training, validation, left_out = nli.read_pairs(config, tmp_path)
    labels = {(pair.id, pair.language): pair.label for pair in (*training, *validation)}
    assert len(labels) == 82
    for (name, _), label in labels.items():
        number = int(re.findall(r"\d+", name)[0])
        expected = {91: "contradiction", 92: "entailment"}.get(number)
        assert label == (expected or ("not_entailment" if number % 2 else "entailment"))
    assert sum(language == "de" for _, language in labels) == 40
    assert dict(left_out) == {"no label": 1}
    years = [{pair.premise.split()[-1] for pair in part} for part in (training, validation)]
    assert years[1]
    assert not years[0] & years[1]
    result = nli.plan(config, tmp_path)
    assert result.steps == 12 * -(-len(training) // 16)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_two_labels(tmp_path: Path, base: Path) -> None:
    write(tmp_path / "pairs.jsonl", pairs(90))
    result = nli.train(config_of(tmp_path, base, PAIRS, labels=2), tmp_path)
    assert load_entailment(tmp_path / "out", device="cpu").labels == ("entailment", "not_entailment")
    assert result.accuracy[0].majority == pytest.approx(2 / 3, abs=0.15)


def test_what_is_for_validation_alone_keeps_its_texts_out_of_training(tmp_path: Path, base: Path) -> None:
    rows = pairs(60)
    write(tmp_path / "pairs.jsonl", rows)
    write(tmp_path / "test.jsonl", [{**row, "hypothesis": f"{row['hypothesis']}!"} for row in rows[:9]])
    test = PAIRS.replace('"pairs"', '"test"').replace("pairs.jsonl", "test.jsonl") + 'use = "validation"\n'
    training, validation, left_out = nli.read_pairs(config_of(tmp_path, base, PAIRS, test), tmp_path)
    assert sum(pair.source == "test" for pair in validation) == 9
    assert not {pair.premise for pair in training} & {pair.premise for pair in validation}
    assert len(training) + len(validation) + left_out["shares a text with the validation"] == 69


@pytest.mark.parametrize(
    ("data", "change", "says"),
    [
        (PAIRS.replace("pairs.jsonl", "absent.jsonl"), ("", ""), "there is no file .*absent.jsonl"),
        (PAIRS, ("validation_share = 0.25", "validation_share = 1"), "under 1"),
        (PAIRS.replace("label =", "labell ="), ("", ""), "labell"),
        (PAIRS.replace('"gold"', '"hypothesis"'), ("", ""), "no rows of entailment"),
        (PAIRS, ("[training]", "frozen_layers = 3\n[training]"), "The encoder has 2 layers"),
        (PAIRS, ("logging_steps", "loging_steps"), "loging_steps"),
        (PAIRS, ("max_length = 40", "max_length = 400"), "takes 48 tokens"),
    ],
)
def test_what_makes_no_sense_is_refused(
    tmp_path: Path, base: Path, data: str, change: tuple[str, str], says: str
) -> None:
    write(tmp_path / "pairs.jsonl", pairs(12))
    path = tmp_path / "nli.toml"
    path.write_text(HEAD.format(model=base, labels=3).replace(*change) + data, "utf-8")
    with pytest.raises((InputError, UsageError), match=says):
        nli.plan(nli.read_config(path), tmp_path)
