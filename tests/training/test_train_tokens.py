"""`train tokens`: decoders with bidirectional attention, adapters, resuming, and checkpoints that `hf:` can load."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from json_lines import read_lines, write_lines
from settings_file import main
from veriglot.detectors.registry import load_detector
from veriglot.errors import InputError, UsageError, WeightsError
from veriglot.records import Annotation, Evidence, Generator, Kind, Sample, Span

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow
pytest.importorskip("transformers", reason="needs the extra `train`")
pytest.importorskip("peft", reason="needs the extra `train`")


@pytest.fixture(autouse=True)
def _no_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    """transformers mistakes the folder tests/datasets for the package of that name."""
    monkeypatch.setattr("transformers.trainer.is_datasets_available", lambda: False)


WORDS = ["mill", "river", "stone", "bridge", "arch", "road", "town", "tower", "gate", "wall", "field", "hill"]


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of random weights, two layers of 64."""
    import tokenizers
    import torch
    import transformers
    from tokenizers import models, pre_tokenizers, processors, trainers

    folder = tmp_path_factory.mktemp("models") / "llama"
    tokenizer = tokenizers.Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]"]
    tokenizer.train_from_iterator([" ".join([*WORDS, "not", "."])], trainers.WordLevelTrainer(special_tokens=special))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A", pair="[CLS] $A [CLS] $B:1", special_tokens=[("[CLS]", 2)]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]"
    ).save_pretrained(folder)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer.get_vocab()), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.LlamaModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Responses in which a word is wrong if `not` follows it: a causal model cannot see this."""
    rng = random.Random(0)
    path = tmp_path_factory.mktemp("data") / "data.jsonl"
    rows = []
    for number in range(120):
        words = rng.choices(WORDS, k=6)
        wrong = rng.randrange(5)
        words.insert(wrong + 1, "not")
        start = len(" ".join([*words[:wrong], ""])) if wrong else 0
        span = Span(start, start + len(words[wrong]), rng.choice(["entity", "relation"]))
        gold = Annotation("gold", Kind.HUMAN, "fava", spans=(span,))
        language = "en" if number % 2 else "de"
        evidence = Evidence(" ".join(rng.choices(WORDS, k=3)))
        fields = {"language": language, "evidence": (evidence,), "annotations": (gold,), "generator": Generator("m")}
        rows.append(Sample(f"r{number}", " ".join(words), **fields))
    return write_lines(path, rows)


def settings(folder: Path, model: Path, data: Path, **changes: Any) -> Path:
    """A file of settings, whose output is `folder/out`."""
    training = {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 1, "learning_rate": 5e-3}
    training |= {"num_train_epochs": 12, "logging_steps": 5, **changes.pop("training", {})}
    lines = {"model": str(model), "output": "out", "data": [str(data)], "device": "cpu", "seeds": [42], **changes}
    path = folder / "tokens.toml"
    path.write_text(
        "".join(f"{key} = {json.dumps(value)}\n" for key, value in lines.items())
        + "[training]\n"
        + "".join(f"{key} = {json.dumps(value)}\n" for key, value in training.items()),
        "utf-8",
    )
    return path


def trained(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["train", "tokens", str(path), "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def words_of(folder: Path, response: str, **options: Any) -> list[float]:
    sample = Sample("s", response, language="en", evidence=(Evidence("mill river"),))
    (prediction,) = load_detector(f"hf:{folder}", words=True, device="cpu", **options).predict([sample])
    return [word.confidence for word in prediction.words or ()]


def test_only_bidirectional_attention_sees_what_follows(
    decoder: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    f1 = {}
    for attention in ("bidirectional", "causal"):
        (tmp_path / attention).mkdir()
        path = settings(tmp_path / attention, decoder, data, attention=attention)
        f1[attention] = trained(path, capsys)["runs"][0]["validation"]["f1"]
    assert f1["bidirectional"] > 0.95
    assert f1["causal"] < 0.6
    both, causal = (tmp_path / name / "out" / "seed-42" for name in f1)
    assert words_of(both, "hill town not gate")[1] > 0.5 > words_of(both, "hill town gate not")[1]
    assert words_of(causal, "hill town not gate")[:2] == words_of(causal, "hill town gate not")[:2]
    assert words_of(both, "hill town not gate", attention="causal")[:2] == pytest.approx(
        words_of(both, "hill town gate not", attention="causal")[:2], abs=1e-6
    )


def test_attention_that_cannot_be_honoured_is_refused(copying_encoder: Path, data: Path, tmp_path: Path) -> None:
    from veriglot.training.tokens import read_config, train

    path = settings(tmp_path, copying_encoder, data, attention="causal")
    with pytest.raises(UsageError, match="causal"):
        train(read_config(path), tmp_path)
    config = copying_encoder / "config.json"
    stated = json.loads(config.read_bytes())
    config.write_text(json.dumps({**stated, "is_causal": True}), "utf-8")
    with pytest.raises(WeightsError, match="causal attention"):
        load_detector(f"hf:{copying_encoder}", device="cpu")


@pytest.fixture
def copying_encoder(tmp_path: Path, decoder: Path) -> Path:
    """A DeBERTa with a head, of random weights: it is bidirectional whatever its configuration says."""
    import transformers

    folder = tmp_path / "deberta"
    tokenizer = transformers.AutoTokenizer.from_pretrained(decoder)
    tokenizer.save_pretrained(folder)
    config = transformers.DebertaV2Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=64, id2label={0: "supported", 1: "hallucination"},
    )  # fmt: skip
    transformers.DebertaV2ForTokenClassification(config).save_pretrained(folder)
    return folder


def test_a_killed_run_goes_on_to_the_same_losses(decoder: Path, data: Path, tmp_path: Path) -> None:
    saving = {"training": {"save_steps": 10, "logging_steps": 1}, "adapter": "lora", "attention": "bidirectional"}
    losses = {}
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
        path = settings(tmp_path / name, decoder, data, **saving)
        command = [sys.executable, "-m", "veriglot", "train", "tokens", str(path)]
        if name == "killed":
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            out = tmp_path / name / "out" / "seed-42.checkpoints"
            while process.poll() is None and not list(out.glob("checkpoint-20/trainer_state.json")):
                time.sleep(0.02)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            assert not (tmp_path / name / "out" / "seed-42").exists()
        subprocess.run(command, check=True, capture_output=True)
        history = json.loads((tmp_path / name / "out" / "seed-42" / "losses.json").read_bytes())
        losses[name] = {row["step"]: row["loss"] for row in history if "loss" in row}
    assert losses["killed"] == pytest.approx(losses["whole"], abs=1e-6)
    assert len(losses["whole"]) > 100
    assert losses["whole"][max(losses["whole"])] < losses["whole"][1] / 2


@pytest.mark.parametrize("adapter", ["lora", "qlora"])
def test_an_adapter_and_what_it_is_merged_into_say_the_same(
    adapter: str, decoder: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if adapter == "qlora":
        pytest.importorskip("bitsandbytes", reason="needs the extra `train` on Linux")
    results = []
    for save in ("merged", "adapter"):
        (tmp_path / save).mkdir()
        path = settings(tmp_path / save, decoder, data, adapter=adapter, save=save, attention="bidirectional")
        trained(path, capsys)
        folder = tmp_path / save / "out" / "seed-42"
        assert (folder / "adapter_config.json").is_file() == (save == "adapter")
        results.append(words_of(folder, "hill town not gate"))
    assert results[0] == pytest.approx(results[1], abs=1e-4 if adapter == "lora" else 0.02)
    assert results[0][1] > 0.5


def test_types_have_seeds_means_and_deviations_and_are_not_trained_twice(
    decoder: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = {"training": {"max_steps": 8}, "types": True, "scheme": "bio", "seeds": [1, 2], "monolingual": True}
    path = settings(tmp_path, decoder, data, attention="bidirectional", **few)
    result = trained(path, capsys)
    assert [(run["language"], run["seed"]) for run in result["runs"]] == [("de", 1), ("de", 2), ("en", 1), ("en", 2)]
    values = [run["validation"]["macro_f1"] for run in result["runs"][:2]]
    (row,) = [row for row in result["summary"] if (row["language"], row["figure"]) == ("de", "macro_f1")]
    assert row["mean"] == pytest.approx(sum(values) / 2)
    assert row["deviation"] == pytest.approx(abs(values[0] - values[1]) / 2**0.5)
    folder = tmp_path / "out" / "de" / "seed-1"
    detector = load_detector(f"hf:{folder}", device="cpu")
    assert detector.taxonomy == "fava"
    (other,) = detector.predict([Sample("s", "hill", language="en", evidence=(Evidence("hill"),))])
    assert other.status == "unsupported_language"
    before = (folder / "model.safetensors").stat().st_mtime_ns
    assert trained(path, capsys) == result
    assert (folder / "model.safetensors").stat().st_mtime_ns == before
    changed = settings(tmp_path, decoder, data, attention="causal", **{**few, "training": {"max_steps": 8}})
    assert main(["train", "tokens", str(changed)]) == 2
    assert "attention" in capsys.readouterr().err
    corrected = tmp_path / "corrected.jsonl"
    rows = read_lines(data)
    rows[0]["annotations"][0]["spans"] = []
    corrected.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    settings(tmp_path, decoder, corrected, attention="bidirectional", **{**few, "training": {"max_steps": 8}})
    assert main(["train", "tokens", str(path)]) == 2, "one row has other labels"
    assert "data" in capsys.readouterr().err


def test_it_stops_early_and_keeps_the_best(
    decoder: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = settings(tmp_path, decoder, data, patience=1, adapter="lora", training={"learning_rate": 0.05})
    (run,) = trained(path, capsys)["runs"]
    history = json.loads((tmp_path / "out" / "seed-42" / "losses.json").read_bytes())
    losses = [row["eval_loss"] for row in history if "eval_loss" in row]
    assert run["steps"] < 12 * 11, "it did not go through all epochs"
    assert run["validation"]["loss"] == pytest.approx(min(losses), rel=1e-4)


def test_a_plan_is_measured_and_writes_nothing(
    decoder: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = settings(tmp_path, decoder, data, languages=["de"], max_length=10)
    assert main(["train", "tokens", str(path), "--dry-run", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["rows"] + plan["validation"] == 60
    assert plan["left_out"] == {"another language": 60}
    assert plan["cut"] == 60, "eleven tokens and more in each"
    assert plan["steps"] == 12 * math.ceil(plan["rows"] / 8)
    assert plan["memory"] > 1e7
    path = settings(
        tmp_path, decoder, data, monolingual=True, seeds=[1, 2], training={"gradient_accumulation_steps": 4}
    )
    assert main(["train", "tokens", str(path), "--dry-run", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["checkpoints"] == 4
    both = [2 * 12 * math.ceil(rows / 32) for rows in (plan["rows"] // 2, -(-plan["rows"] // 2))]
    assert abs(plan["steps"] - sum(both)) <= 2 * 12, "of each language its own"
    one = tmp_path / "one.jsonl"
    lines = data.read_text("utf-8").splitlines()
    one.write_text("\n".join([*lines[1:40:2], lines[0]]) + "\n", "utf-8")  # German has one text
    path = settings(tmp_path, decoder, one, monolingual=True, patience=1, validation_share=0.05)
    assert main(["train", "tokens", str(path), "--dry-run"]) == 1
    assert "patience" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_checkpoint_in_lettucedetects_layout_and_as_onnx(
    decoder: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import onnxruntime
    import transformers

    path = settings(tmp_path, decoder, data, prompt="lettucedetect", onnx=True, training={"max_steps": 4})
    trained(path, capsys)
    folder = tmp_path / "out" / "seed-42"
    config = transformers.AutoConfig.from_pretrained(folder)
    assert config.id2label == {0: "supported", 1: "hallucination"}
    assert "prompt:lettucedetect" in load_detector(f"hf:{folder}", device="cpu").signature
    inputs = {item.name for item in onnxruntime.InferenceSession(folder / "model.onnx").get_inputs()}
    assert inputs == {"input_ids", "attention_mask"}


def test_rows_of_one_text_stay_on_one_side() -> None:
    from veriglot.training.tokens import _split

    items = [
        (Sample(f"{number}", f"text {number // 2}", evidence=(Evidence(f"e{number // 4}"),)), (), "en")
        for number in range(40)
    ]
    training, validation = _split(items, 0.3)
    assert len(training) == 28
    assert not {s.passages[0] for s, *_ in training} & {s.passages[0] for s, *_ in validation}


def test_figures_of_tokens_are_those_of_scikit_learn() -> None:
    import numpy as np
    from sklearn.metrics import f1_score, precision_recall_fscore_support

    from veriglot.training.tokens import token_figures

    rng = np.random.default_rng(0)
    labels, outputs = rng.integers(-1, 5, (20, 30)), rng.integers(0, 5, (20, 30))
    labels[labels < 0] = -100
    names = ["O", "B-entity", "I-entity", "B-relation", "I-relation"]
    result = token_figures(outputs, labels, names)
    truth, marks = labels[labels >= 0], outputs[labels >= 0]
    expected = precision_recall_fscore_support(truth > 0, marks > 0, average="binary")[:3]
    assert [result["precision"], result["recall"], result["f1"]] == pytest.approx(expected)
    assert result["macro_f1"] == pytest.approx(
        f1_score((truth + 1) // 2, (marks + 1) // 2, labels=[1, 2], average="macro")
    )


def test_mistakes_in_the_file_are_named(decoder: Path, data: Path, tmp_path: Path) -> None:
    from veriglot.training.tokens import read_config

    for change, words in (
        ({"training": {"learning_rat": 1}}, "learning_rate"),
        ({"training": {"seed": 1}}, "seed"),
        ({"save": "adapter"}, "adapter"),
        ({"atention": "causal"}, "attention"),
        ({"prompt": "plane"}, "plain"),
        ({"validation_share": 1.0}, "between"),
    ):
        with pytest.raises(InputError, match=words):
            read_config(settings(tmp_path, decoder, data, **change))


def test_a_checkpoint_is_a_detector_of_every_command(
    decoder: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = settings(tmp_path, decoder, data, attention="bidirectional", training={"num_train_epochs": 8})
    trained(path, capsys)
    monkeypatch.chdir(tmp_path)
    name = "hf:out/seed-42"
    assert main(["detect", str(data), "-o", "predictions.jsonl", "--detector", name, "-q"]) == 0
    assert b'"hallucination"' in (tmp_path / "predictions.jsonl").read_bytes()
    assert main(["evaluate", str(data), "--detector", name, "-o", "profile.json", "-q"]) == 0
    assert json.loads((tmp_path / "profile.json").read_bytes())["pooled"]["recall"] > 0.9
    assert main(["bench", "run", str(data), "--systems", name, "-o", "bench", "-q"]) in (0, 3)
    assert "seed-42" in (tmp_path / "bench" / "results.json").read_text("utf-8")
    (tmp_path / "study.toml").write_text(
        f'[study]\ntitle = "t"\n[responses]\npath = {json.dumps(str(data))}\n'
        f'[[detectors]]\nname = "{name}"\nprofile = "profile.json"\n',
        "utf-8",
    )
    assert main(["study", "run", "study.toml", "-o", "study", "-q"]) == 0
    assert (tmp_path / "study" / "report.html").is_file()
