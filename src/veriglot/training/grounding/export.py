"""Export of the grounding detector: PyTorch to ONNX, checked, and the folder of weights."""

from __future__ import annotations

import logging
import warnings
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from veriglot.detectors.grounding.detector import FILES, OUTPUTS, Manifest, Model
from veriglot.detectors.grounding.features import FEATURES_VERSION, extract
from veriglot.errors import WeightsError
from veriglot.signatures import file_sha256
from veriglot.storage.files import whole_folder, write_json
from veriglot.training.grounding.calibration import (
    calibrate,
    counts_table,
    figures_table,
    languages_line,
    left_out_list,
)
from veriglot.training.grounding.dataset import TYPES

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.detectors.grounding.detector import ScriptCalibration as Calibration
    from veriglot.detectors.grounding.document import Lexicon
    from veriglot.training.grounding.dataset import Row
    from veriglot.training.grounding.network import Network

__all__ = ["export", "onnx_bytes", "ship"]


_TOLERANCE = 2e-3  # of a logit
_LENGTHS = ((1, 1), (7, 2), (90, 5), (700, 40))  # words and sentences


class _ForOne(nn.Module):
    """The network for one response, without padding."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: Tensor, pool: Tensor) -> Tensor:
        out: Tensor = self.network(features, torch.ones_like(features[..., :1]), pool)
        return out


def export(network: Network, path: Path) -> None:
    """Write the network as one self-contained ONNX file.

    Raises:
        WeightsError: the file does not give what the network gives.
    """
    single = _ForOne(network).eval()
    width = len(network.means)
    words, sentences = torch.export.Dim("words", min=2), torch.export.Dim("sentences", min=2)
    path.write_bytes(
        onnx_bytes(
            single,
            (torch.randn(1, 30, width), torch.rand(1, 4, 30)),
            inputs=("features", "pool"),
            outputs=("logits",),
            axes=({1: words}, {1: sentences, 2: words}),
        )
    )
    _check(single, Model(path), width)


def onnx_bytes(
    module: nn.Module,
    given: tuple[Tensor, ...],
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    axes: tuple[dict[int, Any], ...],
) -> bytes:
    """A module as the bytes of an ONNX file, which name nothing of the machine it was made on.

    Args:
        module: ready to run.
        given: inputs to trace it with.
        inputs: their names.
        outputs: names of what comes out.
        axes: for each input, the axes of any length.

    Raises:
        WeightsError: PyTorch exported nothing.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own: of its internals, and of parts that this network does not use
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        program = torch.onnx.export(
            module,
            given,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_shapes=axes,
            dynamo=True,
            verbose=False,
        )
    if program is None:
        raise WeightsError("PyTorch did not export the network.")
    model = program.model_proto
    _strip(model)
    written: bytes = model.SerializeToString()
    return written


def _strip(model: Any) -> None:
    """Take out what the exporter notes beside every node: stack traces, with the paths of the machine it ran on."""
    model.doc_string = ""
    for holder in (model, model.graph, *model.graph.node, *model.graph.value_info, *model.graph.initializer):
        del holder.metadata_props[:]
        holder.doc_string = ""
    for value in (*model.graph.input, *model.graph.output):
        del value.metadata_props[:]
    for function in model.functions:
        del function.metadata_props[:]
        for node in function.node:
            del node.metadata_props[:]


def _check(single: nn.Module, model: Model, width: int) -> None:
    rng = np.random.default_rng(0)
    for words, sentences in _LENGTHS:
        features = rng.normal(size=(words, width)).astype(np.float32)
        sentence = np.sort(np.concatenate([np.arange(sentences), rng.integers(0, sentences, words - sentences)]))
        logits = model.logits(features, sentence)
        pool = np.zeros((1, sentences, words), np.float32)
        pool[0, sentence, np.arange(words)] = 1 / np.bincount(sentence)[sentence]
        with torch.no_grad():
            expected = single(torch.from_numpy(features[None]), torch.from_numpy(pool))[0].numpy()
        if logits.shape != (words, OUTPUTS) or np.abs(logits - expected).max() > _TOLERANCE:
            raise WeightsError(f"The exported network differs from the trained one at {words} words.")


# Writing a folder of weights: network, lexicon, calibration, manifest, model card; moved in when all are whole.


REVISION = "1.0"
THRESHOLD = 0.5


def ship(
    network: Network,
    lexicon: Lexicon,
    trained: Sequence[Row],
    judged: Sequence[tuple[Row, NDArray[np.float32]]],
    out: Path,
    *,
    seed: int,
    left_out: Counter[str],
) -> None:
    """Write the folder.

    Args:
        network: the trained network.
        lexicon: the lexicon that its features were taken with.
        trained: what it learned from, for the model card.
        judged: rows with logits of a network that did not see them; those labelled by people calibrate.
        out: the folder; made if absent.
        seed: of the training, for the card.
        left_out: samples that were not used, by reason, for the card.

    Raises:
        WeightsError: the exported network differs from the trained one, or nothing was held out.
    """
    if not judged:
        raise WeightsError("No text was held out, so nothing can be calibrated.", remedy="Give more data.")
    held_out, logits = [row for row, _ in judged], [values for _, values in judged]
    calibration = calibrate(held_out, logits)
    card = _card(trained, held_out, logits, calibration, seed, left_out)
    with whole_folder(out) as part:
        export(network, part / "network.onnx")
        lexicon.save(part)
        write_json(part / "calibration.json", calibration)
        manifest = Manifest(
            revision=REVISION,
            features_version=FEATURES_VERSION,
            features=_feature_names(held_out[0], lexicon),
            types=TYPES,
            threshold=THRESHOLD,
            sha256={name: file_sha256(part / name) for name in FILES},
        )
        write_json(part / "weights.json", manifest)
        (part / "MODEL_CARD.md").write_text(card, "utf-8")


def _feature_names(row: Row, lexicon: Lexicon) -> tuple[str, ...]:
    example = row.example
    features = extract(example.response, example.passages, example.question, example.language, lexicon)
    return features.names if features is not None else ()


def _card(
    trained: Sequence[Row],
    held_out: Sequence[Row],
    logits: Sequence[NDArray[np.float32]],
    calibration: Calibration,
    seed: int,
    left_out: Counter[str],
) -> str:
    template = Template(files(__package__).joinpath("model_card.md").read_text("utf-8"))
    return template.substitute(
        revision=REVISION,
        seed=seed,
        trained=counts_table(trained),
        held_out=counts_table(held_out),
        left_out=left_out_list(left_out),
        languages=languages_line(trained),
        calibrated=" ".join(calibration.languages),
        figures=figures_table(held_out, logits, calibration, THRESHOLD),
    )
