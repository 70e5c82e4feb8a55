"""Writing a folder of weights: network, lexicon, calibration, manifest, model card; moved in when all are whole."""

from __future__ import annotations

from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from veriglot.detectors.grounding.detector import FILES, Manifest
from veriglot.detectors.grounding.features import FEATURES_VERSION, extract
from veriglot.errors import WeightsError
from veriglot.provenance import file_sha256
from veriglot.train.grounding.calibrating import calibrate
from veriglot.train.grounding.card import counts_table, figures_table, languages_line, left_out_list
from veriglot.train.grounding.exporting import export
from veriglot.train.grounding.table import TYPES
from veriglot.train.grounding.weights_folder import as_json, whole_folder

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from veriglot.detectors.grounding.calibration import Calibration
    from veriglot.detectors.grounding.lexicon import Lexicon
    from veriglot.train.grounding.network import Network
    from veriglot.train.grounding.table import Row

__all__ = ["REVISION", "ship"]

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
    held_out, logits = [row for row, _ in judged], [found for _, found in judged]
    calibration = calibrate(held_out, logits)
    card = _card(trained, held_out, logits, calibration, seed, left_out)
    with whole_folder(out) as part:
        export(network, part / "network.onnx")
        lexicon.save(part)
        (part / "calibration.json").write_bytes(as_json(calibration))
        manifest = Manifest(
            revision=REVISION,
            features_version=FEATURES_VERSION,
            features=_feature_names(held_out[0], lexicon),
            types=TYPES,
            threshold=THRESHOLD,
            sha256={name: file_sha256(part / name) for name in FILES},
        )
        (part / "weights.json").write_bytes(as_json(manifest))
        (part / "MODEL_CARD.md").write_text(card, "utf-8")


def _feature_names(row: Row, lexicon: Lexicon) -> tuple[str, ...]:
    example = row.example
    found = extract(example.response, example.passages, example.question, example.language, lexicon)
    return found.names if found is not None else ()


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
