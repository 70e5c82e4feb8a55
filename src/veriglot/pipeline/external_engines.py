"""The other side of the pipe (`external.py`): loads an engine and answers batches. Needs Python 3.8, no Veriglot.

    python external_engines.py ENGINE

ENGINE is `comet`, `laser` or `sonar`, or a Python file with a class `Engine`. Its `packages` is a tuple of names whose
versions are reported; the constructor takes the options and may raise `Exception`; `about` is a dictionary; `run(rows)`
returns for each row a dictionary with `value` (and `parts`, `details`), or with `error` (and `status`).
"""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import sys
import traceback
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    Row = dict[str, Any]
    Rows = list[Row]

__all__ = []

PROTOCOL = 1


class _UnusableModelError(Exception):
    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class Comet:
    """COMET models by their own package, unbabel-comet: COMET-QE, CometKiwi, XCOMET.

    A row is `{"source", "response"}` and may have `reference`; its value is the model's score. If a model marks errors,
    `details` has `tokens`: `[start, end, p_error, severity]` of every token of the response, with code points, the
    probability of an error of any severity, and the most likely severity (empty for no error). The published decoding
    loses a marked stretch that runs to the end of the translation; the tokens show it.
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
            raise _UnusableModelError(
                "it needs a reference translation, so it estimates no quality from the source alone",
                "Take a model of quality estimation: wmt20-comet-qe-da, a CometKiwi or an XCOMET.",
            )
        self._network = network.to(self._device).eval()
        self._joined = hasattr(network, "word_level")  # translation and source in one sequence
        self._marks = bool(getattr(network, "word_level", False))
        self._seen: list[Any] = []
        if self._marks:
            decode = self._network.decode

            def listening(probabilities: Any, ids: Any, offsets: Any) -> Any:
                """Store the probabilities of the tokens from which the model decodes its spans."""
                self._seen[:] = [probabilities, offsets]
                return decode(probabilities, ids, offsets)

            self._network.decode = listening
        self.about = {
            "class": type(network).__name__,
            "folder": str(file.parents[1]),
            "encoder": str(network.hparams.get("pretrained_model")),
            "marks": self._marks,
            "device": self._device.type,
            "tokens": int(network.encoder.max_positions),
        }

    def run(self, rows: Rows) -> Rows:
        """One answer per row. A pair that the model would truncate is not scored."""
        lengths = [self._length(row) for row in rows]
        answers: Rows = [{} for _ in rows]
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

    def _scored(self, rows: Rows) -> Rows:
        inputs = self._network.prepare_for_inference([{"src": row["source"], "mt": row["response"]} for row in rows])
        self._seen.clear()
        with self._torch.inference_mode():
            output = self._network.predict_step(self._moved(inputs))
        scores = output["scores"].float().reshape(-1).tolist()
        answers: Rows = [{"value": score} for score in scores]
        if self._marks and self._seen:
            for answer, tokens in zip(answers, self._tokens(*self._seen)):
                answer["details"] = {"tokens": tokens}
        for name, mine in (("src_scores", "source"), ("mqm_scores", "mqm")):
            values = output["metadata"].get(name) if "metadata" in output else None
            for answer, value in zip(answers, [] if values is None else values.float().reshape(-1).tolist()):
                answer.setdefault("parts", {})[mine] = value
        return answers

    def _tokens(self, probabilities: Any, offsets: Any) -> list[list[list[Any]]]:
        names = self._network.label_encoder.ids_to_label
        rows = []
        for row, bounds in zip(probabilities.float().cpu(), offsets):
            tokens = []
            for chances, (start, end) in zip(row.tolist(), bounds):
                if end <= start:  # special tokens have no range
                    continue
                label = names[max(range(len(chances)), key=chances.__getitem__)]
                error = min(1.0, max(0.0, 1.0 - chances[0]))
                tokens.append([int(start), int(end), error, label.partition("-")[2]])
            rows.append(tokens)
        return rows

    def _length(self, row: Row) -> tuple[int, int]:
        """Number of tokens of a row, with special ones, and the model's maximum before truncation."""
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
        files = [*path.glob("checkpoints/model.ckpt"), *sorted(path.glob("checkpoints/*.ckpt"))]
        if files:
            return files[0]
        raise _UnusableModelError(
            f"{path} holds no checkpoints/model.ckpt",
            "Give the folder that unbabel-comet keeps, with hparams.yaml and checkpoints/.",
        )
    from comet import download_model

    try:
        return Path(download_model(model, local_files_only=os.environ.get("HF_HUB_OFFLINE") == "1"))
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise _UnusableModelError(
            f"it is neither a folder here nor a model that can be fetched ({reason})",
            "Fetch it once where there is a network (some ask that you accept their licence there); give its folder.",
        ) from error


def _loaded(file: Path, encoder: str | None, offline: bool) -> Any:
    from comet import load_from_checkpoint
    from comet.models import str2model

    hparams = file.parents[1] / "hparams.yaml"
    if not hparams.is_file():
        raise _UnusableModelError(f"hparams.yaml is missing from {file.parents[1]}", "Copy the whole folder.")
    import torch
    import yaml

    settings = yaml.safe_load(hparams.read_text(encoding="utf-8"))
    if encoder is None:
        try:
            return load_from_checkpoint(str(file), local_files_only=offline)
        except OSError as error:
            named = settings.get("pretrained_model")
            raise _UnusableModelError(
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


class Laser:
    """LASER2 and LASER3 by their own package, laser_encoders: cosine of source and translation, in [-1, 1]."""

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

    def run(self, rows: Rows) -> Rows:
        """One cosine per row."""
        import numpy as np

        vectors = {
            side: np.asarray(encode([row[side] for row in rows]), np.float64) for side, encode in self._encode.items()
        }
        lengths = np.linalg.norm(vectors["source"], axis=1) * np.linalg.norm(vectors["response"], axis=1)
        products = (vectors["source"] * vectors["response"]).sum(1)
        return [
            {"value": float(product / length)} if length else {"error": "a text without any token has no embedding"}
            for product, length in zip(products, lengths)
        ]


def _encoder(folder: Path, name: str, device: str | None) -> Any:
    weights, pieces, words = (folder / (name + suffix) for suffix in (".pt", ".spm", ".cvocab"))
    pieces = pieces if pieces.is_file() else folder / "laser2.spm"  # shared by LASER3 languages without their own
    words = words if words.is_file() else folder / "laser2.cvocab"
    for file in (weights, pieces):
        if not file.is_file():
            raise _UnusableModelError(
                f"{file} is not there",
                "Fetch the model's files once: python -m laser_encoders.download_models --help says how.",
            )
    import torch
    from laser_encoders.models import SentenceEncoder

    load = torch.load
    # The files have a pickled dictionary beside the weights, which newer versions of torch refuse by default.
    torch.load = lambda *given, **named: load(*given, **{**named, "weights_only": False, "map_location": "cpu"})
    try:
        return SentenceEncoder(
            model_path=str(weights), spm_vocab=str(words), spm_model=str(pieces), max_tokens=8192, cpu=device == "cpu"
        )
    finally:
        torch.load = load


class Sonar:
    """BLASER 2.0 QE by its own package, sonar-space: a small network on SONAR embeddings of source and translation.

    A row is `{"source", "response", "source_language", "language"}`, languages as FLORES-200 codes (`deu_Latn`); its
    value is the score, from 1 to 5 according to its authors.
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

            def refuse(*_: Any) -> None:
                raise _UnusableModelError(
                    "a file of it is not here, and no connection is to be opened",
                    "Unset VERIGLOT_OFFLINE to fetch it once.",
                )

            socket.socket.connect = refuse  # type: ignore[method-assign]
        self._torch = torch
        self._device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self._network = _blaser(model).to(self._device).eval()
        self._embed = TextToEmbeddingModelPipeline(encoder=encoder, tokenizer=tokenizer, device=self._device)
        self.about = {"encoder": encoder, "device": self._device.type}

    def run(self, rows: Rows) -> Rows:
        """One score per row."""
        source = self._embedded([(row["source"], row["source_language"]) for row in rows])
        response = self._embedded([(row["response"], row["language"]) for row in rows])
        with self._torch.inference_mode():
            scores = self._network(src=source, mt=response).reshape(-1).float().tolist()
        return [{"value": score} for score in scores]

    def _embedded(self, texts: list[tuple[str, str]]) -> Any:
        """One vector per text; the encoder takes texts of one language at a time."""
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


ENGINES = {"comet": Comet, "laser": Laser, "sonar": Sonar}


def main(path: str) -> int:
    """Answer until the input ends. Standard output is the pipe: all other output goes to standard error."""
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    engine_class = ENGINES.get(path) or _engine_class(path)
    hello = {
        "type": "hello",
        "protocol": PROTOCOL,
        "packages": {name: _version(name) for name in getattr(engine_class, "packages", ())},
    }
    _say(pipe, hello)
    with open(0, "rb", closefd=False) as commands:  # bytes: independent of the terminal's encoding
        opened = json.loads(commands.readline() or b"null")
        if opened is None:
            return 0
        try:
            engine = engine_class(**opened["options"])
        except Exception as error:
            traceback.print_exc()
            remedy = getattr(error, "remedy", "")
            message = str(error) if remedy else _words(error)  # an error with a remedy has a message for users
            _say(pipe, {"type": "refused", "message": message, "remedy": remedy})
            return 1
        _say(pipe, {"type": "ready", "about": getattr(engine, "about", {})})
        for line in commands:
            batch = json.loads(line)
            _say(pipe, {"type": "results", "id": batch["id"], "rows": _run(engine, batch["rows"])})
    return 0


def _run(engine: Any, rows: Rows) -> Rows:
    """One answer per row; after an exception for the batch, row by row, so that only failing rows have no answer."""
    try:
        results = list(engine.run(rows))
        if len(results) != len(rows):
            raise RuntimeError(f"the engine gave {len(results)} answers to {len(rows)} rows")
    except Exception as error:
        traceback.print_exc()
        if len(rows) == 1:
            return [{"error": _words(error)}]
        return [answer for row in rows for answer in _run(engine, [row])]
    return [_checked(answer) for answer in results]


def _checked(answer: Row) -> Row:
    """The answer, if JSON can represent it; NaN is not an answer."""
    try:
        json.dumps(answer, allow_nan=False)
    except (TypeError, ValueError) as error:
        return {"error": _words(error)}
    return answer


def _engine_class(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("veriglot_engine", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Engine


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def _words(error: Exception) -> str:
    message = (str(error).strip() or type(error).__name__).splitlines()[0]
    return f"{type(error).__name__}: {message}"


def _say(pipe: TextIO, message: Row) -> None:
    pipe.write(json.dumps(message, ensure_ascii=True, allow_nan=False) + "\n")
    pipe.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
