"""A tiny COMET checkpoint with random weights, written by unbabel-comet itself in its own environment.

python write_comet.py KIND FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import comet.models as comet_models
import pytorch_lightning
import torch
import yaml
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import XLMRobertaConfig, XLMRobertaModel, XLMRobertaTokenizerFast

LETTERS = "abcdefghijklmnopqrstuvwxyzäöüABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,?!"
VOCABULARY = [
    ("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -10.0), ("▁", -2.0),
    *((letter, -5.0) for letter in LETTERS), ("▁the", -3.0), ("<mask>", 0.0),
]  # fmt: skip


def write_encoder(folder: Path) -> None:
    inner = Tokenizer(models.Unigram(VOCABULARY, unk_id=3))
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.decoder = decoders.Metaspace()
    inner.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    XLMRobertaTokenizerFast(tokenizer_object=inner).save_pretrained(folder)
    config = XLMRobertaConfig(
        vocab_size=len(VOCABULARY), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=66, pad_token_id=1, bos_token_id=0, eos_token_id=2,
    )  # fmt: skip
    XLMRobertaModel(config, add_pooling_layer=False).save_pretrained(folder)


def network(kind: str, encoder: Path) -> tuple[str, object]:
    given = {
        "encoder_model": "XLM-RoBERTa",
        "pretrained_model": str(encoder),
        "hidden_sizes": [8, 4],
        "layer_norm": False,
    }
    if kind == "qe":
        return "referenceless_regression_metric", comet_models.ReferencelessRegression(**given, layer="mix")
    if kind == "reference":
        return "regression_metric", comet_models.RegressionMetric(**given, layer="mix")
    given.update(sent_layer="mix", word_layer=2)
    if kind == "kiwi":
        return "unified_metric", comet_models.UnifiedMetric(
            **given, input_segments=["mt", "src"], word_level_training=False
        )
    return "xcomet_metric", comet_models.XCOMETMetric(**given)


def main(kind: str, folder: Path) -> None:
    torch.manual_seed(0)
    write_encoder(folder / "encoder")
    identifier, made = network(kind, folder / "encoder")
    trainer = pytorch_lightning.Trainer(logger=False, enable_checkpointing=False, accelerator="cpu", max_epochs=1)
    trainer.strategy.connect(made)
    trainer.save_checkpoint(folder / "checkpoints" / "model.ckpt", weights_only=True)
    settings = {**made.hparams, "class_identifier": identifier}
    (folder / "hparams.yaml").write_text(yaml.dump(settings), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
