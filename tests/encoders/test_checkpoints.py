"""Any checkpoint as an encoder: the library's own numbers, batches, windows, pooling, prompts, refusals."""

from __future__ import annotations

import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from multilingual import ODD, SENTENCES

from veriglot.encoders.base import load_encoder
from veriglot.errors import UnknownNameError, UsageError, WeightsError

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.encoders.base import Encoder

pytestmark = pytest.mark.slow

POSITIONS = 24
ROOM = POSITIONS - 2  # [CLS] and [SEP]
SHORT = ("The lighthouse", "Der Turm", "灯塔", "keeper of Norva", "1955.")
LONG = " ".join([*SENTENCES.values()] * 3)
TEXTS = (*SHORT, *SENTENCES.values(), LONG)


@pytest.fixture(scope="module")
def encoder(checkpoint: Path) -> Encoder:
    return load_encoder("sentence-transformers", model=checkpoint, device="cpu")


@pytest.fixture(scope="module")
def layered(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same BERT under sentence-transformers, with a dense layer and lengths brought to one."""
    pytest.importorskip("sentence_transformers", reason="needs the extra `encoders`: pip install 'veriglot[encoders]'")
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    torch.manual_seed(3)
    folder = tmp_path_factory.mktemp("layered")
    parts = [Transformer(str(checkpoint)), Pooling(32, "mean"), Dense(32, 16), Normalize()]
    SentenceTransformer(modules=parts, device="cpu", prompts={"query": "Turm: "}).save(str(folder))
    return folder


def reference(checkpoint: Path, text: str) -> tuple[Any, Any]:
    """The vector of a short text, and those of its tokens, straight from transformers."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    given = tokenizer(text, return_tensors="pt", padding=False)
    with torch.inference_mode():
        hidden = transformers.AutoModel.from_pretrained(checkpoint)(**given).last_hidden_state[0]
    return torch.nn.functional.normalize(hidden.mean(0), dim=0).numpy(), hidden[1:-1].numpy()


@pytest.mark.parametrize("text", SHORT)
def test_vectors_are_those_of_the_library(encoder: Encoder, checkpoint: Path, text: str) -> None:
    sentence, tokens = reference(checkpoint, text)
    assert encoder.sentences([text])[0] == pytest.approx(sentence, abs=1e-5)
    assert np.abs(encoder.tokens(text).vectors - tokens).max() < 1e-5


def test_the_batch_changes_nothing(checkpoint: Path) -> None:
    fresh = load_encoder("sentence-transformers", model=checkpoint, device="cpu", cache_mb=0)
    together = fresh.sentences([*TEXTS, *ODD])
    alone = np.concatenate([fresh.sentences([text]) for text in (*TEXTS, *ODD)])
    assert np.abs(together - alone).max() < 1e-5
    assert (np.abs(np.linalg.norm(together, axis=1) - together.any(axis=1)) < 1e-5).all()


@pytest.mark.parametrize("text", [*TEXTS, *ODD])
def test_every_token_is_there_with_its_offsets(encoder: Encoder, text: str) -> None:
    bounds = encoder.tokens(text).bounds
    assert encoder.tokens(text).vectors.shape == (len(bounds), encoder.token_dimension)
    assert (bounds[:, 0] <= bounds[:, 1]).all()
    assert (np.diff(bounds, axis=0) >= 0).all()
    covered = {place for start, end in bounds.tolist() for place in range(start, end)}
    assert {place for place, char in enumerate(text) if char.isalnum()} <= covered


def test_a_long_text_is_seen_in_windows(encoder: Encoder, checkpoint: Path) -> None:
    """Its first window is what the model sees of its beginning; tokens far from the edge have that context."""
    import torch
    import transformers

    tokens = encoder.tokens(LONG)
    assert len(tokens.bounds) > 10 * ROOM
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    ids = tokenizer(LONG, truncation=False, padding=False)["input_ids"]
    assert len(ids) == len(tokens.bounds) + 2
    first = torch.tensor([[*ids[: ROOM + 1], ids[-1]]])
    with torch.inference_mode():
        hidden = transformers.AutoModel.from_pretrained(checkpoint)(input_ids=first).last_hidden_state[0, 1:-1]
    kept = ROOM - ROOM // 8 - 1  # up to the middle of the overlap
    assert np.abs(tokens.vectors[:kept] - hidden.numpy()[:kept]).max() < 1e-5
    assert np.abs(tokens.vectors[ROOM - 1] - hidden.numpy()[ROOM - 1]).max() > 1e-3


@pytest.mark.parametrize("room", [8, 9, 22, 512])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 10, 23, 100, 513])
def test_windows_part_the_tokens(count: int, room: int) -> None:
    from veriglot.encoders.base import windows

    found = list(windows(count, room))
    assert [place for _, (low, high) in found for place in range(low, high)] == list(range(count))
    for (low, high), (first, last) in found:
        assert 0 <= low <= first < last <= high <= count
        assert high - low == min(room, count)
        assert first == 0 or first - low >= room // 8
        assert last == count or high - last >= room // 8


def test_all_layers_of_sentence_transformers_run(layered: Path) -> None:
    from sentence_transformers import SentenceTransformer

    encoder = load_encoder("sentence-transformers", model=layered, device="cpu")
    assert (encoder.dimension, encoder.token_dimension) == (16, 32)
    expected = SentenceTransformer(str(layered), device="cpu").encode(list(SHORT))
    assert np.abs(encoder.sentences(SHORT) - expected).max() < 1e-5
    assert np.linalg.norm(encoder.sentences([LONG])[0]) == pytest.approx(1.0, abs=1e-5)
    again: Encoder = pickle.loads(pickle.dumps(encoder))
    assert again.signature == encoder.signature
    assert (again.sentences(SHORT) == encoder.sentences(SHORT)).all()


def test_a_prompt_stands_before_every_text_and_gives_no_tokens(layered: Path) -> None:
    from sentence_transformers import SentenceTransformer

    encoder = load_encoder("sentence-transformers", model=layered, device="cpu", prompt="Turm: ")
    expected = SentenceTransformer(str(layered), device="cpu").encode(list(SHORT), prompt_name="query")
    assert np.abs(encoder.sentences(SHORT) - expected).max() < 1e-5
    plain = load_encoder("sentence-transformers", model=layered, device="cpu")
    for text in (SHORT[0], LONG):
        assert (encoder.tokens(text).bounds == plain.tokens(text).bounds).all()
    assert "prompt:Turm" in encoder.signature


def test_other_weights_are_another_signature(checkpoint: Path, encoder: Encoder, layered: Path, tmp_path: Path) -> None:
    from tiny_encoder import write_bert

    def revision(encoder: Encoder) -> str:
        return dict(part.split(":", 1) for part in encoder.signature.split("|"))["revision"]

    assert revision(load_encoder("sentence-transformers", model=write_bert(tmp_path / "other", seed=1))) != revision(
        encoder
    )
    same = shutil.copytree(checkpoint, tmp_path / "same")
    assert revision(load_encoder("sentence-transformers", model=same)) == revision(encoder)
    changed = shutil.copytree(layered, tmp_path / "changed")
    weights = changed / "2_Dense" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\x00\x00\x80\x3f")
    kinds = [load_encoder("sentence-transformers", model=folder, device="cpu") for folder in (layered, changed)]
    assert revision(kinds[0]) != revision(kinds[1])


def test_languages_are_what_its_user_measured(checkpoint: Path) -> None:
    encoder = load_encoder("sentence-transformers", model=checkpoint, languages=["de", "zh-TW"])
    assert [encoder.strength(tag) for tag in ("de-AT", "zh-Hant", "zh-Hans", "en")] == [
        "measured", "measured", "weak", "weak",
    ]  # fmt: skip
    assert load_encoder("sentence-transformers", model=checkpoint).strength("de") == "weak"


def test_threads_get_what_one_gets(encoder: Encoder) -> None:
    texts = [f"{text} {n}" for n in range(6) for text in SHORT]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda text: encoder.tokens(text).vectors, texts))
    assert all(
        np.abs(one - encoder.tokens(text).vectors).max() < 1e-5 for text, one in zip(texts, together, strict=True)
    )


def test_what_cannot_be_an_encoder_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="cannot be loaded"):
        load_encoder("sentence-transformers", model=tmp_path / "nothing")
    with pytest.raises(UsageError, match="takes 24 tokens"):
        load_encoder("sentence-transformers", model=checkpoint, max_length=25)
    with pytest.raises(UsageError, match="too few"):
        load_encoder("sentence-transformers", model=checkpoint, max_length=9)
    with pytest.raises(UsageError, match="needs the option 'model'"):
        load_encoder("sentence-transformers")
    with pytest.raises(UnknownNameError):
        load_encoder("sentence-transformers", model=checkpoint, languages=["Klingonish"])
