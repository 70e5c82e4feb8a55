"""A folder of the reader's weights, of random numbers, for the tiny encoder: what a training would write."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from tiny_e5 import INNER, LAYERS, WIDTH, write_e5
from veriglot.detectors.grounding.detector import Grounding, PlattScaling, ScriptCalibration
from veriglot.detectors.reader.detector import (
    ANSWERS_FILE,
    FILES,
    GROUNDING_COLUMN,
    RELATIONS,
    RESPONSE_COLUMN,
    FusionWeights,
    Manifest,
    WordLogits,
    fusion_features,
    save_network,
)
from veriglot.encoders.e5 import quantise
from veriglot.signatures import file_sha256
from veriglot.storage.files import write_json

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TYPES", "features_of", "learned", "learned_of_answers", "write_encoder", "write_reader"]

TYPES = ("entity", "relation", "contradictory", "invented", "subjective", "unverifiable")
_FIRST, _HEAD = 6, 16  # layer that was learned, and all above it; width of the heads


def write_encoder(path: Path) -> Path:
    """The tiny encoder, with room for the reader's sequences."""
    write_e5(path, room=512)
    return path


def learned(seed: int = 0) -> dict[str, Any]:
    """Random layers and heads, in the form of the file."""
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> Any:
        return rng.normal(0, 0.2, shape).astype(np.float16)

    arrays: dict[str, Any] = {"part": normal(3, WIDTH), "outliers": np.zeros((LAYERS, 2, 1), np.uint16)}
    for layer in range(_FIRST, LAYERS):
        for name in ("q", "k", "v", "ao", "fi", "fo"):
            rows, columns = (INNER if name == "fi" else WIDTH), (INNER if name == "fo" else WIDTH)
            weights, scales = quantise(normal(rows, columns).astype(np.float32))
            arrays |= {f"l{layer}.{name}.w": weights, f"l{layer}.{name}.scales": scales}
            arrays[f"l{layer}.{name}.b"] = normal(rows)
        for name in ("aln", "oln"):
            arrays |= {f"l{layer}.{name}.w": 1 + normal(WIDTH), f"l{layer}.{name}.b": normal(WIDTH)}
    for head, width, outputs in (("tokens", WIDTH, 1 + len(TYPES)), ("response", 3 * WIDTH, 1)):
        arrays |= {f"{head}.0.w": normal(_HEAD, width), f"{head}.0.b": normal(_HEAD)}
        arrays |= {f"{head}.1.w": 5 * normal(outputs, _HEAD), f"{head}.1.b": normal(outputs)}
    return arrays


def learned_of_answers(seed: int = 0) -> dict[str, Any]:
    """Random additions of low rank, and heads, in the form of `answers.npz`."""
    rng = np.random.default_rng(seed)
    arrays: dict[str, Any] = {"part": rng.normal(0, 0.2, (3, WIDTH))}
    for name in ("q", "fo"):
        columns = INNER if name == "fo" else WIDTH
        arrays[f"l{_FIRST}.{name}.down"] = rng.normal(0, 0.2, (2, columns))
        arrays[f"l{_FIRST}.{name}.up"] = rng.normal(0, 0.2, (WIDTH, 2))
    for name, width in (("answer", WIDTH), ("unsupported", WIDTH + 5)):
        arrays |= {f"{name}.0.w": rng.normal(0, 0.2, (_HEAD, width)), f"{name}.0.b": rng.normal(0, 0.2, _HEAD)}
        arrays |= {f"{name}.1.w": rng.normal(0, 1.0, (1, _HEAD)), f"{name}.1.b": np.zeros(1)}
    return {name: values.astype(np.float16) for name, values in arrays.items()}


def features_of(ours: Any, by_words: Any, sentence: Any, *, numbers: Any = None, response: Any = None) -> Any:
    """`fusion_features` of given logits of the reader and of grounding, shape (n,); `numbers` as in `RawPrediction`."""
    count = len(ours)
    nothing = np.zeros(count, np.int64)
    types = np.full((count, len(TYPES)), 1 / len(TYPES), np.float32)
    words = WordLogits(ours, types, np.zeros(count, np.float32) if response is None else response)
    raw: Any = SimpleNamespace(
        logits=by_words[:, None], features=SimpleNamespace(sentence=sentence),
        numbers=nothing if numbers is None else numbers,
    )  # fmt: skip
    return fusion_features(words, raw)


def write_reader(
    folder: Path, encoder: Path, *, arrays: dict[str, Any] | None = None, answers: bool = False, **changed: Any
) -> Path:
    """Write the folder: words by the reader's and grounding's logits alike, responses by their highest word.

    Where the response translates the evidence, every word is far more suspect.

    Args:
        folder: is made.
        encoder: the file of the encoder.
        arrays: what was learned; None for random numbers.
        answers: whether the logit of `answers.npz` counts too.
        changed: fields of the manifest.
    """
    folder.mkdir(parents=True)
    save_network(folder / FILES[0], learned() if arrays is None else arrays)
    weights = np.zeros(features_of(np.zeros(1), np.zeros(1), np.zeros(1, int)).shape[1])
    weights[[0, GROUNDING_COLUMN]] = 0.5
    line = PlattScaling(1.0, 0.0)
    calibration = ScriptCalibration({"Latn": line}, ("de", "en"), line, (1.0, 0.0, 0.0, 0.0, 0.0, -5.0))
    fusion = {
        relation: FusionWeights((*weights[:-1].tolist(), 9.0 if relation == "translation" else 0.0), calibration)
        for relation in RELATIONS
    }
    save_network(folder / ANSWERS_FILE, learned_of_answers())
    if answers:
        weights[RESPONSE_COLUMN + 1] = 1.0
        fusion["across asked"] = FusionWeights(tuple(weights.tolist()), calibration)
    write_json(folder / FILES[1], fusion)
    fields: dict[str, Any] = {
        "revision": "tiny", "types": TYPES, "threshold": 0.5,
        "sha256": {name: file_sha256(folder / name) for name in FILES},
        "encoder_sha256": file_sha256(encoder)[:16], "grounding": file_sha256(Grounding().network)[:16],
    }  # fmt: skip
    write_json(folder / "weights.json", Manifest(**(fields | changed)))
    return folder
