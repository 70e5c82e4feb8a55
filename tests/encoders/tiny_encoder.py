"""A real BERT of some thousand random weights with a fast tokenizer, written by the libraries that read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tokenizers
import torch
import transformers
from multilingual import SENTENCES
from tokenizers import normalizers, pre_tokenizers, processors, trainers

if TYPE_CHECKING:
    from pathlib import Path

POSITIONS = 24
WIDTH = 32
_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def write_bert(folder: Path, *, seed: int = 0) -> Path:
    """Write a BERT of two small layers, which takes 24 tokens at a time, to a folder."""
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=_tokenizer(), pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )
    tokenizer.save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = transformers.BertConfig(
            vocab_size=len(tokenizer), hidden_size=WIDTH, intermediate_size=64, num_hidden_layers=2,
            num_attention_heads=4, max_position_embeddings=POSITIONS,
        )  # fmt: skip
        transformers.BertModel(config).save_pretrained(folder)
    return folder


def _tokenizer() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=400, special_tokens=_SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(SENTENCES.values(), trainer)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    # As published checkpoints are: set to cut and to pad, which an encoder that cuts nothing has to undo.
    tokenizer.enable_truncation(POSITIONS)
    tokenizer.enable_padding(length=POSITIONS)
    return tokenizer
