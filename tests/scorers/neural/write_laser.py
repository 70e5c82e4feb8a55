"""A tiny LASER encoder with random weights, in the form that laser_encoders reads: python write_laser.py FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path

import sentencepiece
import torch
from laser_encoders.models import LaserLstmEncoder

TEXT = ["the dog sleeps", "der hund schlaeft", "a b c d e f g h i j k l m n o p q r s t u v w x y z", "0 1 2 3 4 5 6 7"]


def main(folder: Path) -> None:
    folder.mkdir(parents=True)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT * 20), model_prefix=str(folder / "laser2"), vocab_size=60, hard_vocab_limit=False
    )
    (folder / "laser2.model").rename(folder / "laser2.spm")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "laser2.spm"))
    table = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    for number in range(pieces.get_piece_size()):
        table.setdefault(pieces.id_to_piece(number), len(table))
    torch.manual_seed(1)
    given = {
        "num_embeddings": len(table),
        "padding_idx": 1,
        "embed_dim": 8,
        "hidden_size": 8,
        "bidirectional": True,
    }
    network = LaserLstmEncoder(**given)
    torch.save({"params": given, "model": network.state_dict(), "dictionary": table}, folder / "laser2.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
