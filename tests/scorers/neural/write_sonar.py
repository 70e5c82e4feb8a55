"""A tiny SONAR encoder and a tiny BLASER with random weights, with the card by which sonar-space finds the encoder.

python write_sonar.py FOLDER PIECES SIZE, with a model of sentencepiece and how many pieces it has.
"""

from __future__ import annotations

import sys
from pathlib import Path

import sonar  # noqa: F401  # registers its families
import torch
from fairseq2.data.tokenizers import VocabularyInfo
from sonar.models.blaser.model import BlaserModel
from sonar.models.sonar_text.config import SonarTextEncoderConfig
from sonar.models.sonar_text.factory import _create_sonar_text_encoder_model

CARD = """name: tiny_sonar
model_family: transformer_encoder
model_arch: basic
model_config:
  _set_:
    model_dim: 16
    max_seq_len: 64
    num_encoder_layers: 1
    num_decoder_layers: 1
    num_encoder_attn_heads: 2
    num_decoder_attn_heads: 2
    ffn_inner_dim: 16
    vocab_info: {{size: {size}, unk_idx: 1, bos_idx: 2, eos_idx: 3, pad_idx: 0}}
checkpoint: "{folder}/encoder.pt"
tokenizer: "{pieces}"
tokenizer_family: nllb
tokenizer_config:
  _set_:
    default_lang: eng_Latn
    langs: [eng_Latn, deu_Latn]
"""


def main(folder: Path, pieces: Path, count: int) -> None:
    size = count + 1 + 3 + 2  # padding, names of corpora, languages
    torch.manual_seed(3)
    config = SonarTextEncoderConfig(
        model_dim=16, max_seq_len=64, num_encoder_layers=1, num_decoder_layers=1, num_encoder_attn_heads=2,
        num_decoder_attn_heads=2, ffn_inner_dim=16, pooling="mean",
        vocab_info=VocabularyInfo(size=size, unk_idx=1, bos_idx=2, eos_idx=3, pad_idx=0),
    )  # fmt: skip
    for part in ("cards", "blaser"):
        (folder / part).mkdir(parents=True)
    torch.save({"model": _create_sonar_text_encoder_model(config).state_dict()}, folder / "encoder.pt")
    (folder / "cards" / "tiny.yaml").write_text(CARD.format(folder=folder, pieces=pieces, size=size), encoding="utf-8")
    network = BlaserModel(
        embedding_dim=16, output_dim=1, hidden_dims=[8, 4], dropout=0.1, activation="TANH", input_form="QE",
        norm_emb=True, output_act=False,
    )  # fmt: skip
    torch.save({"model": network.state_dict()}, folder / "blaser" / "model.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
