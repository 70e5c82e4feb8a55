"""BLASER 2.0 QE by its own package, sonar-space: a small network on SONAR embeddings of source and translation.

Runs in an environment of its own (`serve.py`). A row is `{"source", "response", "source_language", "language"}`,
languages as FLORES-200 codes (`deu_Latn`); its value is the score, by its authors' scale 1 to 5.
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
    """BLASER on SONAR.

    Args:
        model: a card of the package (`blaser_2_0_qe`), or the file `model.pt` of one, or the folder that holds it.
        encoder: card of the text encoder.
        tokenizer: card of its tokenizer.
        device: such as `cpu` or `cuda:0`; None for CUDA if it is there.
        offline: fetch nothing: cards whose files are not cached are refused.
    """

    packages = ("sonar-space", "fairseq2", "torch")

    def __init__(
        self,
        model: str = "blaser_2_0_qe",
        encoder: str = "text_sonar_basic_encoder",
        tokenizer: str = "text_sonar_basic_encoder",
        device: str | None = None,
        offline: bool = False,
    ) -> None:
        import torch
        from sonar.inference_pipelines.text import TextToEmbeddingModelPipeline

        if offline:
            _stay_offline()
        self._torch = torch
        self._device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self._network = _blaser(model).to(self._device).eval()
        self._embed = TextToEmbeddingModelPipeline(encoder=encoder, tokenizer=tokenizer, device=self._device)
        self.about = {"encoder": encoder, "device": self._device.type}

    def run(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """One score a row."""
        source = self._embedded([(row["source"], row["source_language"]) for row in rows])
        response = self._embedded([(row["response"], row["language"]) for row in rows])
        with self._torch.inference_mode():
            scores = self._network(src=source, mt=response).reshape(-1).float().tolist()
        return [{"value": score} for score in scores]

    def _embedded(self, texts: list[tuple[str, str]]) -> Any:
        """One vector a text; a call takes texts of one language."""
        vectors: list[Any] = [None for _ in texts]
        for language in sorted({language for _, language in texts}):
            places = [index for index, (_, text_language) in enumerate(texts) if text_language == language]
            embedded = self._embed.predict([texts[index][0] for index in places], source_lang=language)
            for index, vector in zip(places, embedded):
                vectors[index] = vector
        return self._torch.stack(vectors)


def _blaser(model: str) -> Any:
    path = Path(model).expanduser()
    file = path / "model.pt" if path.is_dir() else path
    if not file.is_file():
        from sonar.models.blaser.loader import load_blaser_model

        return load_blaser_model(model)
    import torch
    from sonar.models.blaser.model import BlaserModel

    state = torch.load(file, map_location="cpu", weights_only=True)
    weights = state.get("model", state)
    widths = [matrix.shape for name, matrix in weights.items() if name.endswith("weight")]
    network = BlaserModel(
        embedding_dim=widths[0][1] // 4,
        output_dim=widths[-1][0],
        hidden_dims=[width[0] for width in widths[:-1]],
        dropout=0.1,
        activation="TANH",
        input_form="QE",
        norm_emb=True,
        output_act=False,
    )
    network.load_state_dict(weights)
    return network


def _stay_offline() -> None:
    import socket

    def refuse(*_: Any) -> None:
        raise UnusableModelError(
            "a file of it is not here, and no connection is to be opened",
            "Unset VERIGLOT_OFFLINE to fetch it once.",
        )

    socket.socket.connect = refuse  # type: ignore[method-assign]
