"""Real translation models with some thousand random weights, and tokenizers trained here, saved by transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sentencepiece
import torch
import transformers

if TYPE_CHECKING:
    from pathlib import Path

TEXT = [
    "The bridge was opened in 1879 by Karl Meyer.",
    "It is a nice old bridge over the river.",
    "Die Brücke wurde 1897 von Karl Meyer eröffnet.",
    "Es ist eine schöne alte Brücke über den Fluss, sagt <1> man </1>.",
] * 20


def pieces(folder: Path) -> Path:
    """A sentencepiece model."""
    folder.mkdir(parents=True, exist_ok=True)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT), model_prefix=str(folder / "pieces"), vocab_size=90, minloglevel=2,
        num_threads=1, pad_id=3, hard_vocab_limit=False,
    )  # fmt: skip
    return folder / "pieces.model"


def vocabulary(model: Path, first: list[str]) -> dict[str, int]:
    """Pieces with the ids of transformers' vocabularies."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    names = [processor.id_to_piece(n) for n in range(processor.get_piece_size())]
    return {name: number for number, name in enumerate(dict.fromkeys([*first, *names]))}


def write_m2m(folder: Path, *, seed: int = 0) -> Path:
    """An M2M-100 with one small layer on each side; NLLB has the same architecture."""
    import json

    model = pieces(folder / "training")
    table = folder / "training" / "vocab.json"
    table.write_text(json.dumps(vocabulary(model, ["<s>", "<pad>", "</s>", "<unk>"])), "utf-8")
    tokenizer = transformers.M2M100Tokenizer(str(table), str(model), src_lang="en", tgt_lang="de")
    tokenizer.save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = transformers.M2M100Config(
            vocab_size=max(tokenizer.lang_token_to_id.values()) + 1,
            d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=64,
            pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2,
        )  # fmt: skip
        transformers.M2M100ForConditionalGeneration(config).save_pretrained(folder)
    return folder


def write_marian(folder: Path, *, seed: int = 0) -> Path:
    """A Marian of one small layer on each side, for one pair of languages."""
    import json

    model = pieces(folder / "training")
    table = folder / "training" / "vocab.json"
    names = [name for name in vocabulary(model, ["</s>", "<unk>"]) if name != "<pad>"]
    names.append("<pad>")  # the last, as in Marian's own models: CTranslate2 counts on it
    table.write_text(json.dumps({name: number for number, name in enumerate(names)}), "utf-8")
    tokenizer = transformers.MarianTokenizer(str(model), str(model), str(table), source_lang="en", target_lang="de")
    tokenizer.save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = transformers.MarianConfig(
            vocab_size=len(tokenizer), d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=64,
            pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
            decoder_start_token_id=tokenizer.pad_token_id, forced_eos_token_id=None,
        )  # fmt: skip
        transformers.MarianMTModel(config).save_pretrained(folder)
    return folder
