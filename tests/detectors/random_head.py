"""A folder of weights for the semantic detector whose head was never trained: random numbers, exported all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import torch

from veriglot.detectors.grounding.detector import Line
from veriglot.detectors.grounding.detector import ScriptCalibration as Calibration
from veriglot.detectors.grounding.document import Lexicon
from veriglot.detectors.grounding.features import extract
from veriglot.detectors.semantic.detector import FILES, Calibrations, Manifest, shared_folder, shared_hash
from veriglot.detectors.semantic.features import READING_VERSION
from veriglot.signatures import file_sha256
from veriglot.training.semantic.pipeline import COLUMNS, SemanticNetwork, export

if TYPE_CHECKING:
    from pathlib import Path

_ENCODED, _DIRECTIONS = 512, 64
_TYPES = ("entity", "relation", "contradictory", "invented", "subjective", "unverifiable")


def write_random_head(folder: Path, *, seed: int = 0, encoded: int = _ENCODED, directions: int = _DIRECTIONS) -> Path:
    """Write head, calibration and manifest, for token vectors of `encoded` numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    seen = extract("A mill.", ["A mill."], None, "en", Lexicon.load(shared_folder()))
    assert seen is not None
    features, rarity = _scales(seen.values.shape[1]), seen.names.index("rarity")
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = SemanticNetwork(features, _scales(COLUMNS), rarity, directions).eval()
    projection = np.linalg.qr(np.random.default_rng(seed).normal(size=(encoded, directions)))[0].astype(np.float32)
    export(network, projection, folder / "head.onnx")
    line = Line(4.0, 0.0)
    one = Calibration({"Latn": line}, ("de", "en", "es"), line, (0.5, 0.5, 1.0, 0.1, 0.0))
    (folder / "calibration.json").write_bytes(msgspec.json.encode(Calibrations(one, one, one)))
    manifest = Manifest(
        revision="random", reading_version=READING_VERSION, encoder="use-multilingual", shared=shared_hash(),
        types=_TYPES, threshold=0.5, sha256={name: file_sha256(folder / name) for name in FILES},
    )  # fmt: skip
    (folder / "weights.json").write_bytes(msgspec.json.encode(manifest))
    return folder


def _scales(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.zeros(count), torch.ones(count)
