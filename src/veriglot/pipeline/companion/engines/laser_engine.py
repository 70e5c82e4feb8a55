"""LASER2 and LASER3 sentence embeddings by their own package, laser_encoders; the cosine of source and translation.

Runs in an environment of its own (`serve.py`). A row is `{"source", "response"}`; its value is the cosine, between -1
and 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


class UnusableModelError(Exception):
    """Files that cannot be loaded."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class Engine:
    """The encoder of the source, and that of the translation where it is another one.

    Args:
        model: folder with `NAME.pt`, `NAME.spm` and, for LASER3, `NAME.cvocab`.
        encoder: NAME for the translation, such as `laser2` or `laser3-hau_Latn.v1`.
        source_encoder: NAME for the source; None for the same.
        device: `cpu` or None; the package takes CUDA if it is there.
        offline: no meaning here, since nothing is fetched.
    """

    packages = ("laser_encoders", "fairseq", "torch")

    def __init__(
        self,
        model: str,
        encoder: str = "laser2",
        source_encoder: str | None = None,
        device: str | None = None,
        offline: bool = True,
    ) -> None:
        del offline
        response = _encoder(Path(model), encoder, device)
        same = source_encoder in (None, encoder)
        source = response if same else _encoder(Path(model), str(source_encoder), device)
        self._encode = {"source": source, "response": response}
        self.about = {"encoder": encoder, "source_encoder": source_encoder or encoder}

    def run(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """One cosine a row."""
        import numpy as np

        vectors = {
            side: np.asarray(encode([row[side] for row in rows]), dtype=np.float64)
            for side, encode in self._encode.items()
        }
        lengths = np.linalg.norm(vectors["source"], axis=1) * np.linalg.norm(vectors["response"], axis=1)
        products = (vectors["source"] * vectors["response"]).sum(1)
        return [
            {"value": float(product / length)} if length else {"error": "a text without any token has no embedding"}
            for product, length in zip(products, lengths)
        ]


def _encoder(folder: Path, name: str, device: str | None) -> Any:
    weights, pieces, words = (folder / (name + suffix) for suffix in (".pt", ".spm", ".cvocab"))
    pieces = pieces if pieces.is_file() else folder / "laser2.spm"  # LASER3 languages without their own share it
    words = words if words.is_file() else folder / "laser2.cvocab"
    for file in (weights, pieces):
        if not file.is_file():
            raise UnusableModelError(
                f"{file} is not there",
                "Fetch the model's files once: python -m laser_encoders.download_models --help says how.",
            )
    import torch
    from laser_encoders.models import SentenceEncoder

    load = torch.load
    # The files hold their dictionary beside the weights; newer versions of torch load weights alone unless told.
    torch.load = lambda *given, **named: load(*given, **{**named, "weights_only": False, "map_location": "cpu"})
    try:
        return SentenceEncoder(
            model_path=str(weights), spm_vocab=str(words), spm_model=str(pieces), max_tokens=8192, cpu=device == "cpu"
        )
    finally:
        torch.load = load
