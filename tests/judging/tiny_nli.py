"""Real classifiers of pairs of some thousand random weights, with fast tokenizers, written by their own libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tokenizers
import torch
import transformers
from tokenizers import normalizers, pre_tokenizers, processors, trainers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

POSITIONS = 48
TEXTS = (
    "The lighthouse of Norva was built in 1901 by the keeper Ada Lind.",
    "Der Leuchtturm von Norva wurde 1901 gebaut und steht auf einer Insel.",
    "Le phare de Norva a été construit en 1901 par la gardienne.",
    "灯塔建于1901年，位于岛上。",
    "Маяк Норвы был построен в 1901 году.",
    "بنيت المنارة عام 1901 على الجزيرة.",
    "ประภาคารสร้างขึ้นในปี 1901 บนเกาะ",
    "The harbour was closed in winter. Nobody lives on the island today. Ships pass far away.",
)
ORDERS: Mapping[str, tuple[str, ...]] = {  # as the configurations of published checkpoints name their outputs
    "roberta-large-mnli": ("CONTRADICTION", "NEUTRAL", "ENTAILMENT"),
    "xlm-roberta-large-xnli": ("contradiction", "neutral", "entailment"),
    "mDeBERTa-v3-base-xnli-multilingual-nli-2mil7": ("entailment", "neutral", "contradiction"),
    "nli-deberta-v3-base": ("contradiction", "entailment", "neutral"),
    "bge-m3-zeroshot-v2.0": ("entailment", "not_entailment"),
}
_SMALL: dict[str, Any] = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "initializer_range": 0.3,
}  # fmt: skip


def write_nli(
    folder: Path, family: str = "bert", labels: tuple[str, ...] = ORDERS["xlm-roberta-large-xnli"], *, seed: int = 0
) -> Path:
    """Write a classifier of a family to a folder: `bert`, `xlm-roberta`, `deberta-v2`, `bart` or `modernbert`."""
    tokenizer = _saved_tokenizer(family)
    tokenizer.save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = _network(family, len(tokenizer), labels)
        for name, weights in network.named_parameters():
            if "classif" in name or "classification_head" in name:
                weights.data.normal_(0, 1.0)  # spread out, so that pairs differ by more than rounding
        network.save_pretrained(folder)
    return folder


def _network(family: str, size: int, labels: tuple[str, ...]) -> Any:
    told = {"id2label": dict(enumerate(labels)), "label2id": {label: i for i, label in enumerate(labels)}}
    if family == "bert":
        given = transformers.BertConfig(vocab_size=size, max_position_embeddings=POSITIONS, **_SMALL, **told)
        return transformers.BertForSequenceClassification(given)
    if family == "xlm-roberta":
        given = transformers.XLMRobertaConfig(
            vocab_size=size, max_position_embeddings=POSITIONS + 2, pad_token_id=1, bos_token_id=0, eos_token_id=2,
            type_vocab_size=1, **_SMALL, **told,
        )  # fmt: skip
        return transformers.XLMRobertaForSequenceClassification(given)
    if family == "deberta-v2":
        given = transformers.DebertaV2Config(
            vocab_size=size, max_position_embeddings=POSITIONS, relative_attention=True, position_buckets=16,
            pos_att_type=["p2c", "c2p"], share_att_key=True, position_biased_input=False, norm_rel_ebd="layer_norm",
            type_vocab_size=0, **_SMALL, **told,
        )  # fmt: skip
        return transformers.DebertaV2ForSequenceClassification(given)
    if family == "modernbert":
        given = transformers.ModernBertConfig(
            vocab_size=size, max_position_embeddings=POSITIONS, pad_token_id=1, bos_token_id=0, eos_token_id=2,
            cls_token_id=0, sep_token_id=2, **_SMALL, **told,
        )  # fmt: skip
        return transformers.ModernBertForSequenceClassification(given)
    given = transformers.BartConfig(
        vocab_size=size, max_position_embeddings=POSITIONS, d_model=32, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64,
        pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, init_std=0.3, **told,
    )  # fmt: skip
    return transformers.BartForSequenceClassification(given)


def _saved_tokenizer(family: str) -> Any:
    if family == "bert":
        return transformers.PreTrainedTokenizerFast(
            tokenizer_object=_wordpiece(), pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
            model_max_length=POSITIONS,
        )  # fmt: skip
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=_unigram(), bos_token="<s>", cls_token="<s>", eos_token="</s>", sep_token="</s>",
        pad_token="<pad>", unk_token="<unk>", model_max_length=POSITIONS,
        model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip


def _wordpiece() -> tokenizers.Tokenizer:
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    made.train_from_iterator(
        TEXTS, trainers.WordPieceTrainer(vocab_size=300, special_tokens=special, show_progress=False)
    )
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made.enable_truncation(POSITIONS)  # as published checkpoints are: what cuts nothing has to undo it
    return made


def _unigram() -> tokenizers.Tokenizer:
    """As XLM-R's: SentencePiece's unigrams, words begun by a mark for the space before them."""
    made = tokenizers.Tokenizer(tokenizers.models.Unigram())
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=220, special_tokens=special, unk_token="<unk>", show_progress=False)
    made.train_from_iterator(TEXTS, trainer)
    made.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=False, add_prefix_space=False
    )
    return made


def byte_tokenizer() -> Any:
    """As RoBERTa's, with no merges: each byte is a token, so that most characters have several."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<s>", "<pad>", "</s>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=0, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator([], trainer)
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, cls_token="<s>", eos_token="</s>", sep_token="</s>", pad_token="<pad>"
    )
