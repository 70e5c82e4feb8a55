"""Judges on real models in this process: a tiny one that was taught an answer, and one that babbles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from scripted_judges import sample

from veriglot.detectors.registry import load_detector
from veriglot.records import Evidence, Sample, Status, Task

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.records import Detector

pytestmark = pytest.mark.slow

ANSWER = '{"reason": "added", "hallucination": true}'
SOURCE, TRANSLATION = "Der Turm.", "The old tower."
OWN_PROMPT = """
version = "test"
max_tokens = 64
user = "{evidence}\\n{response}"
"""


@pytest.fixture(autouse=True, scope="module")
def _extra() -> None:
    for package in ("transformers", "torch"):
        pytest.importorskip(package, reason="needs the extra `local`: pip install 'veriglot[local]'")


@pytest.fixture(scope="module")
def babbling(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tiny_model import write_model

    return write_model(tmp_path_factory.mktemp("babbling"))


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of some thousand weights that was trained to answer one prompt, two times in three with yes."""
    import torch
    import transformers
    from tiny_model import write_model

    folder = write_model(tmp_path_factory.mktemp("taught"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).train()
    asked = f"<source>\n{SOURCE}\n</source>\n<translation>\n{TRANSLATION}\n</translation>"
    turns = [{"role": "user", "content": asked}]
    prompt = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    ids = tokenizer(prompt, return_tensors="pt", add_special_tokens=False)["input_ids"]
    both = []
    for text in (ANSWER, ANSWER.replace("true", "false")):
        answer = tokenizer(f"{text}<|end|>", return_tensors="pt", add_special_tokens=False)["input_ids"]
        whole = torch.cat([ids, answer], 1)
        labels = whole.clone()
        labels[:, : ids.shape[1]] = -100
        both.append((whole, labels))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(60):
        yes, no = (model(whole, labels=labels).loss for whole, labels in both)
        optimizer.zero_grad()
        (2 * yes + no).backward()
        optimizer.step()
    model.save_pretrained(folder)
    return folder


def local(kind: str, folder: Path, tmp_path: Path, **options: Any) -> Detector:
    own = tmp_path / "own.toml"
    own.write_text(OWN_PROMPT, "utf-8")
    device = {"device": "cpu"}
    return load_detector(
        f"judge:{kind}", model=str(folder), client="transformers", client_options=device, prompt=str(own), **options
    )


def translated(id_: str = "t") -> Sample:
    source = (Evidence(SOURCE, language="de"),)
    return Sample(id_, TRANSLATION, task=Task.TRANSLATION, language="en", evidence=source)


def test_a_model_in_this_process_judges_and_its_tokens_say_how_sure_it_was(taught: Path, tmp_path: Path) -> None:
    import torch
    import transformers

    made = local("translation", taught, tmp_path, probabilities=True, schema=False)
    (found,) = made.predict([translated()])
    assert found.status is Status.SCORED, found.reason
    assert found.notes == ("reason:added", "confidence:token_probabilities", "calibration:none")

    tokenizer = transformers.AutoTokenizer.from_pretrained(taught)
    model = transformers.AutoModelForCausalLM.from_pretrained(taught).eval()
    asked = f"<source>\n{SOURCE}\n</source>\n<translation>\n{TRANSLATION}\n</translation>"
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": asked}], add_generation_prompt=True, tokenize=False
    )
    before = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    answer = tokenizer(ANSWER, add_special_tokens=False)["input_ids"]
    with torch.inference_mode():
        rows = torch.log_softmax(model(torch.tensor([before + answer])).logits[0], -1)
    pieces = [tokenizer.decode([token]) for token in answer]
    ends = [len("".join(pieces[: n + 1])) for n in range(len(pieces))]
    place = next(n for n, end in enumerate(ends) if end > ANSWER.index("true"))
    other = tokenizer(ANSWER.replace("true", "false"), add_special_tokens=False)["input_ids"]
    assert other[:place] == answer[:place]
    yes, no = (math.exp(rows[len(before) + place - 1, token]) for token in (answer[place], other[place]))
    assert found.score == pytest.approx(yes / (yes + no), abs=2e-3)
    assert 0.55 < found.score < 0.8
    assert [span.text for span in found.spans or ()] == [TRANSLATION]


@pytest.mark.parametrize("kind", ["translation", "translation-guided"])
def test_a_model_that_babbles_has_failed(kind: str, babbling: Path, tmp_path: Path) -> None:
    made = local(kind, babbling, tmp_path, schema=False, samples=3)
    found = made.predict([translated(str(n)) for n in range(3)])
    assert [one.status for one in found] == [Status.FAILED] * 3
    assert all(one.spans is None and one.reason for one in found)


@pytest.mark.parametrize("kind", ["spans", "facts", "pairs"])
def test_a_prompt_that_the_context_does_not_hold_is_too_long(kind: str, babbling: Path) -> None:
    made = load_detector(f"judge:{kind}", model=str(babbling), client="transformers", client_options={"device": "cpu"})
    (found,) = made.predict([sample()])
    assert found.status is Status.TOO_LONG
    assert "context" in (found.reason or "")
