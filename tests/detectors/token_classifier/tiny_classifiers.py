"""Real token classifiers of some thousand weights, written by the libraries that read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tokenizers
import torch
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

WIDTH = 64
_CODE = WIDTH - 2  # numbers that tell tokens apart; then whether it stands in the prompt, and whether it was found
_SIDE, _FOUND = WIDTH - 2, WIDTH - 1
_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
LETTUCE = {0: "LABEL_0", 1: "LABEL_1"}


def write_copying(folder: Path, texts: Iterable[str], *, room: int = 512, names: dict[int, str] | None = None) -> Path:
    """Write a BERT whose weights are set by hand: a token is supported where the prompt holds it too.

    Each token looks for tokens like itself, and takes from them on which side of the pair they stand. Words that
    `texts` do not hold are all one token.
    """
    texts = list(texts)
    tokenizer = tokenizers.Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=_SPECIAL, show_progress=False))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    wrapped = _saved(folder, tokenizer, ["input_ids", "token_type_ids", "attention_mask"])
    config = transformers.BertConfig(
        vocab_size=len(wrapped), hidden_size=WIDTH, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
        max_position_embeddings=room, id2label=names or {0: "supported", 1: "hallucination"},
    )  # fmt: skip
    network = transformers.BertForTokenClassification(config)
    with torch.no_grad():
        _set_by_hand(network, len(wrapped))
    network.save_pretrained(folder)
    return folder


def _set_by_hand(network: Any, vocabulary: int) -> None:
    for name, weight in network.named_parameters():
        weight.fill_(1.0 if name.endswith("LayerNorm.weight") else 0.0)
    table = network.bert.embeddings
    drawn = torch.rand((vocabulary, _CODE), generator=torch.Generator().manual_seed(3))
    codes = torch.where(drawn.argsort(dim=1) % 2 == 0, 1.0, -1.0)  # half and half: normalisation treats all alike
    table.word_embeddings.weight[:, :_CODE] = codes
    table.token_type_embeddings.weight[0, _SIDE] = 4.0
    table.token_type_embeddings.weight[1, _SIDE] = -4.0
    attention = network.bert.encoder.layer[0].attention
    for place in range(_CODE):
        attention.self.query.weight[place, place] = 4.0
        attention.self.key.weight[place, place] = 1.0
    attention.self.value.weight[_FOUND, _SIDE] = 1.0
    attention.output.dense.weight[_FOUND, _FOUND] = 4.0
    network.classifier.weight[0, _FOUND] = 2.0
    for output in range(1, network.config.num_labels):
        network.classifier.bias[output] = -11.0 - output  # once here and once there is still support


def write_random(folder: Path, kind: str, texts: Iterable[str], *, names: dict[int, str], seed: int = 0) -> Path:
    """Write a token classifier with random weights of one of the families `KINDS`."""
    make, sentencepiece, typed = KINDS[kind]
    tokenizer = _unigram(texts) if sentencepiece else _byte_level(texts)
    inputs = ["input_ids", "token_type_ids", "attention_mask"] if typed else ["input_ids", "attention_mask"]
    wrapped = _saved(folder, tokenizer, inputs)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = make(len(wrapped), names)
        with torch.no_grad():
            network.classifier.weight.normal_(0, 0.2)  # so that probabilities differ
        network.save_pretrained(folder)
    return folder


def _saved(folder: Path, tokenizer: tokenizers.Tokenizer, inputs: list[str]) -> Any:
    wrapped = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        model_input_names=inputs,
    )  # fmt: skip
    wrapped.save_pretrained(folder)
    return wrapped


def _pairs(tokenizer: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    # As published checkpoints are: set to cut and to pad, which a detector that cuts nothing has to undo.
    tokenizer.enable_truncation(64)
    tokenizer.enable_padding(length=64)
    return tokenizer


def _byte_level(texts: Iterable[str]) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=_SPECIAL,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(texts, trainer)
    return _pairs(tokenizer)


def _unigram(texts: Iterable[str]) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=500, special_tokens=_SPECIAL, unk_token="[UNK]", show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return _pairs(tokenizer)


_SMALL: dict[str, Any] = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "pad_token_id": 0,
}  # fmt: skip


def _modernbert(size: int, names: dict[int, str]) -> Any:
    config = transformers.ModernBertConfig(
        vocab_size=size, max_position_embeddings=8192, cls_token_id=2, sep_token_id=3, bos_token_id=2, eos_token_id=3,
        id2label=names, **_SMALL,
    )  # fmt: skip
    return transformers.ModernBertForTokenClassification(config)


def _eurobert(size: int, names: dict[int, str]) -> Any:
    config = transformers.EuroBertConfig(
        vocab_size=size, num_key_value_heads=2, bos_token_id=2, eos_token_id=3, id2label=names, **_SMALL
    )
    return transformers.EuroBertForTokenClassification(config)


def _xlm_roberta(size: int, names: dict[int, str]) -> Any:
    config = transformers.XLMRobertaConfig(
        vocab_size=size, max_position_embeddings=514, bos_token_id=2, eos_token_id=3, id2label=names, **_SMALL
    )
    return transformers.XLMRobertaForTokenClassification(config)


def _deberta(size: int, names: dict[int, str]) -> Any:
    config = transformers.DebertaV2Config(
        vocab_size=size, relative_attention=True, position_buckets=16, norm_rel_ebd="layer_norm", share_att_key=True,
        pos_att_type=["p2c", "c2p"], position_biased_input=False, max_position_embeddings=512, type_vocab_size=0,
        id2label=names, **_SMALL,
    )  # fmt: skip
    return transformers.DebertaV2ForTokenClassification(config)


def _bert(size: int, names: dict[int, str]) -> Any:
    config = transformers.BertConfig(vocab_size=size, max_position_embeddings=512, id2label=names, **_SMALL)
    return transformers.BertForTokenClassification(config)


# family -> how it is made, whether its tokenizer is SentencePiece's Unigram, whether it takes token types
KINDS: dict[str, tuple[Any, bool, bool]] = {
    "modernbert": (_modernbert, False, False),
    "eurobert": (_eurobert, False, False),
    "xlm-roberta": (_xlm_roberta, True, False),
    "deberta-v2": (_deberta, True, True),
    "bert": (_bert, True, True),
}
