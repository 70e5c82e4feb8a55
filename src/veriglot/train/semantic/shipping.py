"""Writing a folder of weights for the semantic detector: head, calibrations, manifest, model card."""

from __future__ import annotations

from collections import Counter
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from veriglot.detectors.semantic.folder import FILES, Calibrations, Manifest, shared_hash, vectors_of
from veriglot.detectors.semantic.reading import READING_VERSION
from veriglot.errors import WeightsError
from veriglot.provenance import file_sha256
from veriglot.train.grounding.calibrating import calibrate
from veriglot.train.grounding.card import counts_table, figures_table, languages_line, left_out_list
from veriglot.train.grounding.table import TYPES
from veriglot.train.grounding.weights_folder import as_json, whole_folder
from veriglot.train.semantic.exporting import export

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from veriglot.detectors.grounding.calibration import Calibration
    from veriglot.encoders import Encoder
    from veriglot.train.grounding.table import WordLabels
    from veriglot.train.semantic.network import SemanticNetwork

    Judged = Sequence[tuple[WordLabels, NDArray[np.float32]]]

__all__ = ["RELATIONS", "REVISION", "THRESHOLD", "ship"]

REVISION = "1.0"
THRESHOLD = 0.5
RELATIONS = ("same", "across", "translation")
_TITLES = {
    "same": "Evidence in the response's language",
    "across": "Evidence in another language",
    "translation": "Translations held against their sources",
}


def ship(
    network: SemanticNetwork,
    projection: NDArray[np.float32],
    trained: Sequence[WordLabels],
    judged: Mapping[str, Judged],
    out: Path,
    *,
    seed: int,
    encoder: Encoder,
    left_out: Counter[str] | None = None,
    remark: str = "",
) -> None:
    """Write the folder.

    Args:
        network: the trained network.
        projection: what the encoder's word vectors were multiplied by, shape (d, p).
        trained: what it learned from, for the model card (`table.Labels` of each is enough).
        judged: for each of `RELATIONS`, responses with logits, each of shape (n, 7), of a network that did not see
            them; those labelled by people calibrate. A relation without any is calibrated as the one before it.
        out: the folder; made if absent.
        seed: of the training, for the card.
        encoder: what made the vectors; the weights will take no other.
        left_out: samples that were not used, by reason, for the card.
        remark: what else its reader must know of how the weights were made.

    Raises:
        WeightsError: the exported head differs from the trained network, or nothing in the response's own language was
            held out.
    """
    if not judged.get("same"):
        raise WeightsError("No text was held out, so nothing can be calibrated.", remedy="Give more data.")
    fitted = _calibrated(judged)
    card = _card(
        trained, judged, fitted, seed=seed, encoder=encoder.name, left_out=left_out or Counter(), remark=remark
    )
    with whole_folder(out) as part:
        export(network, projection, part / "head.onnx")
        (part / "calibration.json").write_bytes(
            as_json(Calibrations(fitted["same"], fitted["across"], fitted["translation"]))
        )
        manifest = Manifest(
            revision=REVISION,
            reading_version=READING_VERSION,
            encoder=encoder.name,
            vectors=vectors_of(encoder),
            shared=shared_hash(),
            types=TYPES,
            threshold=THRESHOLD,
            sha256={name: file_sha256(part / name) for name in FILES},
        )
        (part / "weights.json").write_bytes(as_json(manifest))
        (part / "MODEL_CARD.md").write_text(card, "utf-8")


def _calibrated(judged: Mapping[str, Judged]) -> dict[str, Calibration]:
    found: dict[str, Calibration] = {}
    for nth, relation in enumerate(RELATIONS):
        pairs = judged.get(relation)
        if pairs:
            found[relation] = calibrate([row for row, _ in pairs], [logits for _, logits in pairs])
        else:
            found[relation] = found[RELATIONS[nth - 1]]
    return found


def _card(
    trained: Sequence[WordLabels],
    judged: Mapping[str, Judged],
    fitted: Mapping[str, Calibration],
    *,
    seed: int,
    encoder: str,
    left_out: Counter[str],
    remark: str,
) -> str:
    template = Template(files(__package__).joinpath("model_card.md").read_text("utf-8"))
    return template.substitute(
        revision=REVISION,
        seed=seed,
        encoder=encoder,
        trained=counts_table(trained),
        left_out=left_out_list(left_out),
        remark=remark,
        languages=languages_line(trained),
        held_out="\n\n".join(_held_out(relation, judged.get(relation, ()), fitted[relation]) for relation in RELATIONS),
    )


def _held_out(relation: str, pairs: Judged, calibration: Calibration) -> str:
    title = f"### {_TITLES[relation]}"
    if not pairs:
        return f"{title}\n\nNothing was held out; calibrated as above."
    rows, logits = [row for row, _ in pairs], [found for _, found in pairs]
    figures = figures_table(rows, logits, calibration, THRESHOLD)
    return f"{title}\n\n{counts_table(rows)}\n\n{figures}\n\nCalibrated languages: {' '.join(calibration.languages)}."
