"""multilingual-e5-small out of its file: the numbers of the same BERT in transformers, offsets, batches, refusals."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from multilingual import ODD, SENTENCES, UNRELATED

from tiny_e5 import BEGIN, END, HEADS, INNER, LAYERS, ROOM, WIDTH, write_e5
from veriglot.encoders.base import Encoder, load_encoder
from veriglot.encoders.e5 import Tokeniser, pad_pairs, tokenizer_of, transformers_folder
from veriglot.errors import WeightsError
from veriglot.hub import registry
from veriglot.text.segmentation import sentences, word_bounds

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

pytest.importorskip("tokenizers", reason="needs the extra `reader`: pip install 'veriglot[reader]'")
pytest.importorskip("onnx", reason="needs the extra `reader`: pip install 'veriglot[reader]'")

pytestmark = pytest.mark.slow

NAME = "e5-multilingual"
LAYER = 10  # whose output is given for tokens
TEXTS = ("the weather in the inner city", "a", "query: strange things here", "in " * 40)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, NDArray[np.float32]]]:
    path = tmp_path_factory.mktemp("e5") / "tiny.bin"
    return path, write_e5(path)


@pytest.fixture(scope="module")
def real() -> Encoder:
    try:
        return load_encoder(NAME, path=registry.find(NAME))
    except registry.MissingWeightsError as error:
        pytest.skip(f"needs the encoder: {error}")


def bert_of(tensors: dict[str, NDArray[np.float32]]) -> Any:
    """The same network in transformers."""
    torch = pytest.importorskip("torch", reason="needs the extra `local`: pip install 'veriglot[local]'")
    transformers = pytest.importorskip("transformers", reason="needs the extra `local`: pip install 'veriglot[local]'")
    config = transformers.BertConfig(
        vocab_size=len(tensors["emb.word"]), hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=INNER, max_position_embeddings=ROOM, type_vocab_size=2,
    )  # fmt: skip
    names = {
        "emb.word": "embeddings.word_embeddings.weight",
        "emb.pos": "embeddings.position_embeddings.weight",
        "emb.type": "embeddings.token_type_embeddings.weight",
    }
    parts = {
        "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
        "ao": "attention.output.dense", "aln": "attention.output.LayerNorm", "fi": "intermediate.dense",
        "fo": "output.dense", "oln": "output.LayerNorm",
    }  # fmt: skip
    for kind, name in {"w": "weight", "b": "bias"}.items():
        names[f"emb.ln.{kind}"] = f"embeddings.LayerNorm.{name}"
        for nth in range(LAYERS):
            names |= {f"l{nth}.{p}.{kind}": f"encoder.layer.{nth}.{long}.{name}" for p, long in parts.items()}
    bert = transformers.BertModel(config, add_pooling_layer=False)
    bert.load_state_dict({names[name]: torch.from_numpy(values) for name, values in tensors.items()})
    return bert.eval()


def test_vectors_are_those_of_the_same_network_in_transformers(
    tiny: tuple[Path, dict[str, NDArray[np.float32]]],
) -> None:
    path, tensors = tiny
    bert = bert_of(tensors)
    import torch

    encoder: Any = load_encoder(NAME, path=path)
    for text in TEXTS[:3]:
        ids = encoder._tokenizer.encode(f"query: {text}").ids
        assert (ids[0], ids[-1]) == (BEGIN, END)
        with torch.no_grad():
            states = bert(torch.tensor([ids]), output_hidden_states=True).hidden_states
        mean = states[-1][0].mean(0).numpy()
        found = encoder.tokens(text)
        theirs = states[LAYER][0].numpy()[-1 - len(found.vectors) : -1]
        # Products are in 8-bit integers, hence not to the last digit.
        assert alike(encoder.sentences([text])[0], mean) > 0.995
        assert min(alike(a, b) for a, b in zip(found.vectors, theirs, strict=True)) > 0.98


def test_its_checkpoint_of_transformers_is_the_same_network(
    tiny: tuple[Path, dict[str, NDArray[np.float32]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, tensors = tiny
    bert = bert_of(tensors)
    import torch
    import transformers

    monkeypatch.setenv("VERIGLOT_WEIGHTS", str(tmp_path))
    part = np.stack([np.zeros(WIDTH), np.ones(WIDTH), -np.ones(WIDTH)]).astype(np.float32)
    plain, learned = transformers_folder(path=path), transformers_folder("learned", {"part": part}, path=path)
    assert plain.parent == learned.parent == tmp_path
    tokenizer = transformers.AutoTokenizer.from_pretrained(plain)
    network = transformers.AutoModel.from_pretrained(plain, dtype=torch.float32).eval()
    for text in TEXTS[:2]:
        given = tokenizer(text, return_tensors="pt")
        assert given["input_ids"][0].tolist() == tokenizer_of(path).encode(f"query: {text}").ids
        with torch.no_grad():
            theirs = bert(given["input_ids"])[0]
            np.testing.assert_allclose(network(**given)[0], theirs, atol=0.02)  # 16 bits, through 12 layers
    given = tokenizer("the weather", "a")
    sequence = Tokeniser(path).pair([], Tokeniser(path).tokens("a")[0], Tokeniser(path).tokens("the weather")[0])
    assert tuple(given["input_ids"]) == sequence.ids  # as the reader's: the second text is the response
    _, _, parts = pad_pairs([sequence])
    assert given["token_type_ids"] == parts[0].argmax(-1).tolist()
    types = transformers.AutoModel.from_pretrained(learned).embeddings.token_type_embeddings.weight
    np.testing.assert_allclose((types[1] - types[0]).detach().float(), np.ones(WIDTH), atol=1e-3)


def alike(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_a_text_gets_the_same_whatever_is_beside_it(tiny: tuple[Path, Any]) -> None:
    encoder = load_encoder(NAME, path=tiny[0], cache_mb=0)
    together = encoder.sentences(TEXTS)
    for text, vector in zip(TEXTS, together, strict=True):
        assert encoder.sentences([text])[0] == pytest.approx(vector, abs=1e-5)


def test_a_long_text_is_seen_whole(tiny: tuple[Path, Any]) -> None:
    encoder = load_encoder(NAME, path=tiny[0])
    text = "in the " * 200
    found = encoder.tokens(text)
    assert len(found.vectors) > 3 * ROOM
    assert (found.bounds[0, 0], found.bounds[-1, 1]) == (0, len(text.rstrip()))


def test_it_travels_to_other_processes(tiny: tuple[Path, Any]) -> None:
    encoder = load_encoder(NAME, path=tiny[0])
    again = pickle.loads(pickle.dumps(encoder))
    assert again.signature == encoder.signature
    assert (again.sentences(TEXTS) == encoder.sentences(TEXTS)).all()


@pytest.mark.parametrize(
    "damage", ["nothing there", "another file", "cut off early", "cut off late", "no layer", "odd heads"]
)
def test_what_is_not_that_model_is_refused(tiny: tuple[Path, Any], tmp_path: Path, damage: str) -> None:
    data, path = tiny[0].read_bytes(), tmp_path / "model.bin"
    if damage != "nothing there":
        path.write_bytes(
            {
                "another file": b"GGUF" + data[4:],
                "cut off early": data[:100],
                "cut off late": data[:-1000],
                "no layer": data.replace(b"l3.ao.w", b"x3.ao.w"),
                "odd heads": data[:16] + (7).to_bytes(4, "little") + data[20:],
            }[damage]
        )
    with pytest.raises(WeightsError) as caught:
        load_encoder(NAME, path=path)
    assert "veriglot models get e5-multilingual" in (caught.value.remedy or "")


def test_meaning_is_near_across_languages(real: Encoder) -> None:
    vectors = real.sentences([*SENTENCES.values(), UNRELATED])
    likeness = vectors @ vectors.T
    # Its similarities are all high: what counts is which is higher.
    assert likeness[:-1, :-1].min() > likeness[-1, :-1].max()


@pytest.mark.parametrize("text", [*SENTENCES.values(), *ODD])
def test_offsets_lie_in_the_text(real: Encoder, text: str) -> None:
    found = real.tokens(text)
    assert len(found.bounds) == len(found.vectors)
    assert (found.bounds[:, 0] <= found.bounds[:, 1]).all()
    assert (np.diff(found.bounds, axis=0) >= 0).all()
    assert found.bounds.max(initial=0) <= len(text)


def test_every_word_of_a_text_has_a_vector(real: Encoder) -> None:
    for tag, text in SENTENCES.items():
        words = np.array(word_bounds(text, tag))
        found = real.tokens(text, sentences(text, tag)).of_words(words)
        assert (np.linalg.norm(found, axis=1) > 0).all(), tag
