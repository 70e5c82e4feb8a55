"""Networks of the real architectures with random weights, and tokenizers of a few pieces, written by transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

LETTERS = "abcdefghijklmnopqrstuvwxyzäöüßABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:?!สวัดี中文北京"
WORDS = ["▁the", "▁premise", "▁hypothesis", "▁source", "▁candidate", "▁0", "▁1"]
PIECES = [("▁", -2.0), *((word, -3.0) for word in WORDS), *((letter, -6.0) for letter in dict.fromkeys(LETTERS))]


def seeded() -> None:
    import torch

    torch.manual_seed(5)


def write_mt5(folder: Path, *, vocabulary: int = 250112, tokenizer: bool = True, tied: bool = False) -> Path:
    """An mT5. Its head is apart from its embeddings, as that of every published one, unless it is `tied`."""
    import json

    import torch
    from safetensors.torch import load_file, save_file
    from transformers import MT5Config, MT5ForConditionalGeneration

    seeded()
    config = MT5Config(
        vocab_size=vocabulary,
        d_model=8,
        d_kv=4,
        d_ff=8,
        num_layers=1,
        num_heads=2,
        decoder_start_token_id=0,
    )
    MT5ForConditionalGeneration(config).save_pretrained(folder)
    if not tied:  # the library would not write it so: it ties whatever it makes itself
        weights = load_file(folder / "model.safetensors")
        weights["lm_head.weight"] = torch.randn(vocabulary, 8) * 4
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        stored = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (folder / "config.json").write_text(json.dumps({**stored, "tie_word_embeddings": False}), encoding="utf-8")
    if tokenizer:
        write_t5_tokenizer(folder)
    return folder


def write_t5_tokenizer(folder: Path) -> Path:
    from transformers import T5Tokenizer

    T5Tokenizer(vocab=[("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -20.0), *PIECES], extra_ids=0).save_pretrained(folder)
    return folder


def write_classifier(folder: Path, labels: dict[int, str], positions: int = 66) -> Path:
    """An XLM-R with a head of as many outputs as there are labels."""
    from transformers import XLMRobertaConfig, XLMRobertaForSequenceClassification, XLMRobertaTokenizer

    seeded()
    vocabulary = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -20.0), *PIECES, ("<mask>", 0.0)]
    XLMRobertaTokenizer(vocab=vocabulary).save_pretrained(folder)
    config = XLMRobertaConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=positions,
        id2label=labels,
        pad_token_id=1,
        initializer_range=0.5,
    )
    XLMRobertaForSequenceClassification(config).save_pretrained(folder)
    return folder


def byte_tokenizer(**options: Any) -> Any:
    """A tokenizer of single characters, with the special tokens that are given."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    table = {name: place for place, name in enumerate(["<pad>", "</s>", "<unk>", "<s>", *alphabet])}
    inner = Tokenizer(models.BPE(vocab=table, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="</s>", unk_token="<unk>", **options)


def write_gpt2(folder: Path) -> Path:
    from transformers import GPT2Config, GPT2LMHeadModel

    seeded()
    tokenizer = byte_tokenizer(bos_token="<s>")
    tokenizer.save_pretrained(folder)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=2048, n_embd=8, n_layer=1, n_head=2, bos_token_id=3, eos_token_id=1,
        initializer_range=0.5,
    )  # fmt: skip
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


def write_nllb(folder: Path) -> Path:
    """M2M100 with NLLB's tokenizer, which is told the languages."""
    from transformers import M2M100Config, M2M100ForConditionalGeneration, NllbTokenizer

    seeded()
    names = ["<s>", "<pad>", "</s>", "<unk>", *(piece for piece, _ in PIECES), "<mask>"]
    tokenizer = NllbTokenizer(vocab={name: place for place, name in enumerate(names)}, merges=[])
    tokenizer.save_pretrained(folder)
    config = M2M100Config(
        vocab_size=len(tokenizer), d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=8, decoder_ffn_dim=8, max_position_embeddings=1024, init_std=0.5,
        decoder_start_token_id=2, pad_token_id=1, eos_token_id=2, bos_token_id=0,
    )  # fmt: skip
    M2M100ForConditionalGeneration(config).save_pretrained(folder)
    return folder
