"""COMET models by their own package, unbabel-comet: COMET-QE, CometKiwi, XCOMET.

Runs in an environment of its own (`serve.py`). A row is `{"source", "response"}` and may have `reference`; its value is
the model's score. Of a model that marks errors, `details` holds `tokens`: `[start, end, p_error, severity]` of every
token of the response, with code points, the probability that it is in an error of any severity, and the severity that
is likeliest (empty where none is). The published decoding drops a marked stretch that runs to the end of the
translation; from the tokens it is seen.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


class UnusableModelError(Exception):
    """A checkpoint that cannot be loaded."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class Engine:
    """One COMET checkpoint.

    Args:
        model: its folder (with `hparams.yaml` and `checkpoints/model.ckpt`), its `.ckpt` file, or its name on the hub.
        encoder: folder of the encoder that it was made from, in place of the one that its hyperparameters name.
        device: such as `cpu` or `cuda:0`; None for CUDA if it is there.
        batch_size: rows at a time.
        offline: open no connection.
    """

    packages = ("unbabel-comet", "torch", "transformers")

    def __init__(
        self,
        model: str,
        encoder: str | None = None,
        device: str | None = None,
        batch_size: int = 8,
        offline: bool = False,
    ) -> None:
        if offline:
            os.environ["HF_HUB_OFFLINE"] = "1"
        import torch

        self._torch = torch
        self._batch_size = batch_size
        self._device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        file = _file(model)
        network = _loaded(file, encoder, offline)
        if network.requires_references():
            raise UnusableModelError(
                "it needs a reference translation, so it estimates no quality from the source alone",
                "Take a model of quality estimation: wmt20-comet-qe-da, a CometKiwi or an XCOMET.",
            )
        self._network = network.to(self._device).eval()
        self._joined = hasattr(network, "word_level")  # one sequence of translation and source
        self._marks = bool(getattr(network, "word_level", False))
        self._seen: list[Any] = []
        if self._marks:
            self._listen_to_decoding()
        self.about = {
            "class": type(network).__name__,
            "folder": str(file.parents[1]),
            "encoder": str(network.hparams.get("pretrained_model")),
            "marks": self._marks,
            "device": self._device.type,
            "tokens": int(network.encoder.max_positions),
        }

    def run(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """One answer a row. A pair that the model would cut off is not scored."""
        lengths = [self._length(row) for row in rows]
        answers: list[dict[str, Any]] = [{} for _ in rows]
        fits = []
        for index, (used, room) in enumerate(lengths):
            if used > room:
                words = f"source and response have {used} tokens, and the model takes {room}"
                answers[index] = {"error": words, "status": "too_long"}
            else:
                fits.append(index)
        fits.sort(key=lambda index: lengths[index][0])
        for start in range(0, len(fits), self._batch_size):
            batch = fits[start : start + self._batch_size]
            for index, answer in zip(batch, self._scored([rows[index] for index in batch])):
                answers[index] = answer
        return answers

    def _scored(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        samples = [{"src": row["source"], "mt": row["response"]} for row in rows]
        inputs = self._network.prepare_for_inference(samples)
        self._seen.clear()
        with self._torch.inference_mode():
            output = self._network.predict_step(self._moved(inputs))
        scores = output["scores"].float().reshape(-1).tolist()
        answers: list[dict[str, Any]] = [{"value": score} for score in scores]
        if self._marks and self._seen:
            for answer, tokens in zip(answers, self._tokens(*self._seen)):
                answer["details"] = {"tokens": tokens}
        for name, mine in (("src_scores", "source"), ("mqm_scores", "mqm")):
            values = output["metadata"].get(name) if "metadata" in output else None
            for answer, value in zip(answers, [] if values is None else values.float().reshape(-1).tolist()):
                answer.setdefault("parts", {})[mine] = value
        return answers

    def _listen_to_decoding(self) -> None:
        """Keep the probabilities of the tokens that the model decodes its spans from."""
        decode = self._network.decode

        def kept(probabilities: Any, ids: Any, offsets: Any) -> Any:
            self._seen[:] = [probabilities, offsets]
            return decode(probabilities, ids, offsets)

        self._network.decode = kept

    def _tokens(self, probabilities: Any, offsets: Any) -> list[list[list[Any]]]:
        names = self._network.label_encoder.ids_to_label
        rows = []
        for row, places in zip(probabilities.float().cpu(), offsets):
            tokens = []
            for chances, (start, end) in zip(row.tolist(), places):
                if end <= start:  # special tokens stand nowhere
                    continue
                label = names[max(range(len(chances)), key=chances.__getitem__)]
                error = min(1.0, max(0.0, 1.0 - chances[0]))
                tokens.append([int(start), int(end), error, label.partition("-")[2]])
            rows.append(tokens)
        return rows

    def _length(self, row: dict[str, Any]) -> tuple[int, int]:
        """Tokens of a row, special ones included, and how many the model takes before it cuts."""
        encoder = self._network.encoder
        tokenizer, room = encoder.tokenizer, encoder.max_positions - 2
        source = len(tokenizer(row["source"], truncation=False, verbose=False)["input_ids"])
        response = len(tokenizer(row["response"], truncation=False, verbose=False)["input_ids"])
        if not self._joined:
            return max(source, response), room
        return max(source, response, source + response - 2 + encoder.size_separator), room

    def _moved(self, inputs: Any) -> Any:
        if isinstance(inputs, (tuple, list)):
            return type(inputs)(self._moved(part) for part in inputs)
        if hasattr(inputs, "items"):
            return {name: self._moved(value) for name, value in inputs.items()}
        return inputs.to(self._device) if hasattr(inputs, "to") else inputs


def _file(model: str) -> Path:
    path = Path(model).expanduser()
    if path.is_file():
        return path
    if path.is_dir():
        inside = path / "checkpoints" / "model.ckpt"
        others = sorted(path.glob("checkpoints/*.ckpt"))
        if inside.is_file() or others:
            return inside if inside.is_file() else others[0]
        raise UnusableModelError(
            f"{path} holds no checkpoints/model.ckpt",
            "Give the folder that unbabel-comet keeps, with hparams.yaml and checkpoints/.",
        )
    from comet import download_model

    try:
        return Path(download_model(model, local_files_only=os.environ.get("HF_HUB_OFFLINE") == "1"))
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UnusableModelError(
            f"it is neither a folder here nor a model that can be fetched ({reason})",
            "Fetch it once where there is a network (some ask that you accept their licence there); give its folder.",
        ) from error


def _loaded(file: Path, encoder: str | None, offline: bool) -> Any:
    from comet import load_from_checkpoint
    from comet.models import str2model

    hparams = file.parents[1] / "hparams.yaml"
    if not hparams.is_file():
        raise UnusableModelError(f"hparams.yaml is missing from {file.parents[1]}", "Copy the whole folder.")
    import torch
    import yaml

    settings = yaml.safe_load(hparams.read_text(encoding="utf-8"))
    if encoder is None:
        try:
            return load_from_checkpoint(str(file), local_files_only=offline)
        except OSError as error:
            named = settings.get("pretrained_model")
            raise UnusableModelError(
                f"the encoder {named!r} that it was made from is not here",
                "Give its folder by the option encoder; its configuration and tokenizer are enough.",
            ) from error
    return str2model[settings["class_identifier"]].load_from_checkpoint(
        checkpoint_path=str(file),
        load_pretrained_weights=False,
        map_location=torch.device("cpu"),
        strict=False,
        local_files_only=offline,
        pretrained_model=encoder,
    )
