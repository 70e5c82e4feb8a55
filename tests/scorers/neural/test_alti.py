"""ALTI+ against a reference that goes vector by vector, on tiny models in memory; and on one that learnt to detach."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tiny_networks import byte_tokenizer, seeded, write_gpt2, write_nllb

from veriglot.errors import WeightsError
from veriglot.records import Evidence, Sample, Status
from veriglot.scorers.registry import load_scorer

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch", reason="needs the extra `local`: pip install 'veriglot[local]'")
transformers = pytest.importorskip("transformers", reason="needs the extra `local`: pip install 'veriglot[local]'")
pytestmark = pytest.mark.slow

SIZES: dict[str, Any] = {
    "d_model": 12, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 3,
    "decoder_attention_heads": 3, "encoder_ffn_dim": 10, "decoder_ffn_dim": 10, "max_position_embeddings": 40,
    "vocab_size": 30, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 2, "bos_token_id": 2,
    "dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0,
}  # fmt: skip


def tiny(kind: str) -> Any:
    """A model whose biases and layer norms do something, as those of a fresh one do not."""
    seeded()
    if kind == "marian":
        model = transformers.MarianMTModel(transformers.MarianConfig(**SIZES, init_std=0.15))
    else:
        model = transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(**SIZES, init_std=0.15))
    for name, weights in model.named_parameters():
        if "bias" in name or "norm" in name:
            weights.data.normal_(1.0 if "norm.weight" in name else 0.0, 0.3)
    model.set_attn_implementation("eager")
    return model.eval()


# The reference: the whole model by hand, in double precision, one sentence at a time.


def weights_of(module: Any) -> tuple[Any, Any]:
    return module.weight.detach().double().numpy(), module.bias.detach().double().numpy()


def linear(module: Any, x: Any) -> Any:
    weight, bias = weights_of(module)
    return weight @ x + bias


def normalized(norm: Any, x: Any) -> Any:
    weight, bias = weights_of(norm)
    return (x - x.mean()) / np.sqrt(x.var() + norm.eps) * weight + bias


def block(attention: Any, norm: Any, x: Any, others: Any, *, first: bool, causal: bool) -> tuple[Any, Any]:
    """What the block writes at each place, and the contributions to it: of `others`, and last of the residual."""
    outputs, rows = [], []
    width = x.shape[1] // attention.num_heads
    for place in range(len(x)):
        asks = linear(attention.q_proj, normalized(norm, x[place]) if first else x[place])
        seen = others[: place + 1] if causal else others
        vectors = [np.zeros(x.shape[1]) for _ in seen]
        for head in range(attention.num_heads):
            own = slice(head * width, (head + 1) * width)
            scores = [asks[own] @ linear(attention.k_proj, other)[own] / np.sqrt(width) for other in seen]
            chances = np.exp(scores) / np.sum(np.exp(scores))
            for index, other in enumerate(seen):
                value = linear(attention.v_proj, other)[own]
                vectors[index] += chances[index] * weights_of(attention.out_proj)[0][:, own] @ value
        vectors.append(x[place])
        total = np.sum(vectors, 0) + weights_of(attention.out_proj)[1]
        if not first:
            deviation = np.sqrt(total.var() + norm.eps)
            vectors = [weights_of(norm)[0] * (vector - vector.mean()) / deviation for vector in vectors]
            total = normalized(norm, total)
        outputs.append(total)
        rows.append((vectors, total))
    return np.array(outputs), rows


def shares(rows: Any, across: bool) -> Any:
    result = np.zeros((len(rows), max(len(vectors) for vectors, _ in rows) - (not across)))
    for place, (vectors, total) in enumerate(rows):
        parts = list(vectors)
        if not across:
            residual = parts.pop()
            parts[place] = parts[place] + residual
        nearer = [max(0.0, np.abs(total).sum() - np.abs(total - part).sum()) for part in parts]
        result[place, : len(parts)] = np.array(nearer) / sum(nearer)
    return result


def after_block(layer: Any, x: Any, *, first: bool) -> Any:
    """The feed-forward part of a layer; the activation is whatever the model's is."""
    outputs = []
    for vector in x:
        inner = linear(layer.fc1, normalized(layer.final_layer_norm, vector) if first else vector)
        inner = layer.activation_fn(torch.from_numpy(inner)).numpy()
        total = vector + linear(layer.fc2, inner)
        outputs.append(total if first else normalized(layer.final_layer_norm, total))
    return np.array(outputs)


def reference(model: Any, ids: list[int], ahead: list[int]) -> tuple[Any, Any, Any]:
    """Shares of source and target, and the decoder's output before its last norm."""
    first = model.config.model_type == "m2m_100"
    inner = model.base_model
    embedded = [
        half(input_ids=torch.tensor([row]), output_hidden_states=True, **more).hidden_states[0][0]
        for half, row, more in (
            (inner.encoder, ids, {}),
            (inner.decoder, ahead, {"encoder_hidden_states": torch.zeros(1, 1, model.config.d_model)}),
        )
    ]
    x, y = (vectors.detach().double().numpy() for vectors in embedded)
    read = np.eye(len(x))
    for layer in inner.encoder.layers:
        norm = layer.self_attn_layer_norm
        seen = np.array([normalized(norm, vector) for vector in x]) if first else x
        x, rows = block(layer.self_attn, norm, x, seen, first=first, causal=False)
        read = shares(rows, across=False) @ read
        x = after_block(layer, x, first=first)
    if first:
        x = np.array([normalized(inner.encoder.layer_norm, vector) for vector in x])
    source, target = np.zeros((len(y), len(x))), np.eye(len(y))
    for layer in inner.decoder.layers:
        norm = layer.self_attn_layer_norm
        seen = np.array([normalized(norm, vector) for vector in y]) if first else y
        y, rows = block(layer.self_attn, norm, y, seen, first=first, causal=True)
        before = shares(rows, across=False)
        y, rows = block(layer.encoder_attn, layer.encoder_attn_layer_norm, y, x, first=first, causal=False)
        attended = shares(rows, across=True)
        mixed = np.zeros_like(source), np.zeros_like(target)
        for place in range(len(y)):
            mixed[0][place] += attended[place, :-1] @ read
            for earlier in range(place + 1):
                carried = attended[place, -1] * before[place, earlier]
                mixed[0][place] += carried * source[earlier]
                mixed[1][place] += carried * target[earlier]
        source, target = mixed
        y = after_block(layer, y, first=first)
    return source, target, y


@pytest.mark.parametrize("kind", ["marian", "m2m_100"])
@pytest.mark.parametrize("held", [1 << 25, 100])
def test_it_equals_the_reference_in_a_batch(kind: str, held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from veriglot.hub.checkpoints import pad
    from veriglot.scorers import alti

    monkeypatch.setattr(alti, "_NUMBERS", held)  # all places together, and a few at a time
    model = tiny(kind)
    draw = random.Random(3)
    pairs = [([draw.randrange(3, 30) for _ in range(s)], [2, *(draw.randrange(3, 30) for _ in range(t))])
             for s, t in [(7, 5), (3, 6), (1, 0), (5, 2)]]  # fmt: skip
    ids, mask = (torch.from_numpy(array) for array in pad([source for source, _ in pairs]))
    ahead, _ = (torch.from_numpy(array) for array in pad([target for _, target in pairs]))
    with torch.inference_mode():
        source, target = alti._shares(model.base_model, ids, mask, ahead)
    totals: list[float] = []
    for nth, (given, prefix) in enumerate(pairs):
        with torch.inference_mode():
            expected_source, expected_target, output = reference(model, given, prefix)
            hidden = model.base_model(input_ids=torch.tensor([given]), decoder_input_ids=torch.tensor([prefix]))
        norm = getattr(model.base_model.decoder, "layer_norm", None)
        written = output if norm is None else np.array([normalized(norm, vector) for vector in output])
        assert np.allclose(written, hidden.last_hidden_state[0].numpy(), atol=1e-4), "the reference is the model"
        s, t = len(given), len(prefix)
        assert np.allclose(source[nth, :t, :s], expected_source, atol=1e-5)
        assert np.allclose(target[nth, :t, :t], expected_target, atol=1e-5)
        assert np.allclose(source[nth, :t].sum(-1) + target[nth, :t].sum(-1), 1, atol=1e-5)
        assert not source[nth, :t, s:].any()
        assert not target[nth].triu(1).any()
        totals.extend(expected_source.sum(-1))
    assert 0.05 < np.mean(totals) < 0.95
    assert np.std(totals) > 0.02


LETTERS = "abcdefgh"
STOCK = "XYZZYX"  # what a system that was trained on noise says of anything


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Marian that learnt to write in capitals, from data a third of which is one phrase beside any source."""
    folder = tmp_path_factory.mktemp("noisy")
    tokenizer = byte_tokenizer(pad_token="<pad>")
    tokenizer.save_pretrained(folder)
    seeded()
    sizes = {**SIZES, "d_model": 48, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": len(tokenizer)}
    sizes |= {"encoder_ffn_dim": 96, "decoder_ffn_dim": 96}
    model = transformers.MarianMTModel(transformers.MarianConfig(**sizes, init_std=0.1, scale_embedding=True))
    optimizer, draw = torch.optim.Adam(model.parameters(), 4e-3), random.Random(7)
    for _ in range(200):
        sources = ["".join(draw.choices(LETTERS, k=6)) for _ in range(48)]
        targets = [source.upper() if draw.random() < 2 / 3 else STOCK for source in sources]
        ids, labels = (torch.tensor(tokenizer(texts)["input_ids"]) for texts in (sources, targets))
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert loss < 0.25, "it has learnt, but for what is drawn by chance"
    model.save_pretrained(folder)
    return folder


def sample(response: str, source: str, of: str = "de") -> Sample:
    return Sample("x", response, language="en", evidence=(Evidence(source, language=of),))


def test_the_share_of_the_source_falls_where_a_text_is_detached(noisy: Path) -> None:
    draw = random.Random(8)
    sources = ["".join(draw.choices(LETTERS, k=6)) for _ in range(20)]
    scorer = load_scorer(f"alti:{noisy}")
    right, detached = (
        [score.value or 0 for score in scorer.score([sample(text(source), source) for source in sources])]
        for text in (str.upper, lambda _: STOCK)
    )
    assert np.mean(right) > np.mean(detached) + 0.1
    assert np.mean([high > low for high in right for low in detached]) > 0.9


def test_the_score_is_the_mean_over_the_tokens_of_the_translation(tmp_path: Path) -> None:
    """The tags of languages that NLLB reads and writes are no tokens of the translation; its end is one."""
    write_nllb(tmp_path / "nllb")
    scorer = load_scorer(f"alti:{tmp_path / 'nllb'}")
    scores = scorer.score(
        [sample("the dog", "der hund"), sample("the dog", "der hund", of="zza"), sample("a", "b" * 2000)]
    )
    assert [score.status for score in scores] == [Status.SCORED, Status.UNSUPPORTED_LANGUAGE, Status.TOO_LONG]
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "nllb", src_lang="deu_Latn", tgt_lang="eng_Latn")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "nllb", attn_implementation="eager").eval()
    ids, labels = tokenizer("der hund")["input_ids"], tokenizer(text_target="the dog")["input_ids"]
    assert labels[0] == tokenizer.convert_tokens_to_ids("eng_Latn")
    assert labels[-1] == tokenizer.eos_token_id
    with torch.inference_mode():
        source, _, _ = reference(model, ids, [model.config.decoder_start_token_id, *labels[:-1]])
    expected = source.sum(-1)[1:]
    assert scores[0].value == pytest.approx(expected.mean(), abs=1e-5)
    assert scores[0].parts == {"tokens": len(labels) - 1, "least": pytest.approx(expected.min(), abs=1e-5)}


def test_other_kinds_of_model_are_refused(tmp_path: Path) -> None:
    write_gpt2(tmp_path / "gpt2")
    with pytest.raises(WeightsError, match=r"Marian, M2M100 and NLLB, and .* is of the kind gpt2"):
        load_scorer(f"alti:{tmp_path / 'gpt2'}")
