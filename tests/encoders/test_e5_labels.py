"""Labels of tokens with the tokenizer inside the file of `e5-multilingual`, and what has no such tokenizer."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("transformers", reason="needs the extra `local`")
pytest.importorskip("onnxruntime", reason="needs the extra `reader`: pip install 'veriglot[reader]'")

from settings_file import main
from tiny_e5 import BEGIN, END, write_e5
from veriglot.datasets.token_labels import fast_tokenizer_of, spans_of_labels, token_labels
from veriglot.encoders.e5 import tokenizer_of
from veriglot.errors import WeightsError
from veriglot.records import Span

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

TEXT = "the river in the inner den"


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A registry of one's own with the tiny model, and with one whose single file is something else."""
    write_e5(tmp_path / "tiny.bin")
    (tmp_path / "other.onnx").write_bytes(b"no tokenizer in here")
    models = {}
    for name, file in (("tiny-e5", "tiny.bin"), ("other", "other.onnx")):
        data = (tmp_path / file).read_bytes()
        models[name] = {
            "title": name, "licence": {"name": "MIT", "url": "https://example.org/mit"},
            "files": [{"name": file, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}],
            "places": [{"kind": "local", "path": str(tmp_path), "in_place": True}],
        }  # fmt: skip
    path = tmp_path / "registry.json"
    path.write_text(json.dumps({"models": models, "mirrors": {}}), "utf-8")
    monkeypatch.setenv("VERIGLOT_MODELS", str(path))
    monkeypatch.setenv("VERIGLOT_WEIGHTS", str(tmp_path / "weights"))  # never the user's own
    return tmp_path


@pytest.mark.parametrize("by_name", [False, True])
def test_spans_come_back_from_labels_by_its_tokens(registry: Path, by_name: bool) -> None:
    tokenizer = fast_tokenizer_of("tiny-e5" if by_name else str(registry / "tiny.bin"))
    span = Span(4, 9, "entity")
    found = token_labels(TEXT, [span], tokenizer, scheme="bio")
    assert found.ids == tuple(tokenizer_of(registry / "tiny.bin").encode(TEXT).ids)
    assert (found.ids[0], found.ids[-1]) == (BEGIN, END)
    assert (found.labels[0], found.labels[-1]) == (None, None)
    assert spans_of_labels(TEXT, found.offsets, found.labels) == (span,)
    cut = token_labels(TEXT, [span], tokenizer, max_length=5)
    assert len(cut.ids) == 5


def test_the_command_takes_it_by_name(registry: Path) -> None:
    layer = {"annotator": "g", "kind": "human", "taxonomy": "fava", "spans": [{"start": 4, "end": 9, "type": "entity"}]}
    (registry / "data.jsonl").write_text(json.dumps({"id": "r", "response": TEXT, "annotations": [layer]}), "utf-8")
    words = ["dataset", "labels", str(registry / "data.jsonl"), "--tokenizer", "tiny-e5", "-q"]
    assert main([*words, "-o", str(registry / "out.jsonl")]) == 0
    assert json.loads((registry / "out.jsonl").read_text())["spans"] == {"exact": 1}


def test_a_model_of_a_single_file_without_one_is_refused_in_whole_sentences(registry: Path) -> None:
    with pytest.raises(WeightsError, match=r"^The tokenizer of 'other' is inside its file and does not give") as caught:
        fast_tokenizer_of("other")
    assert "Give a tokenizer.json" in (caught.value.remedy or "")


def test_a_file_that_ends_early_is_said_to_be_damaged(registry: Path) -> None:
    (registry / "part.bin").write_bytes((registry / "tiny.bin").read_bytes()[:60])
    with pytest.raises(WeightsError, match="is not multilingual-e5-small"):
        fast_tokenizer_of(str(registry / "part.bin"))
