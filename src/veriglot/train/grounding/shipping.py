"""Writing a folder of weights: network, lexicon, calibration, manifest, model card; moved in when all are whole."""

from __future__ import annotations

import shutil
from collections import Counter
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from veriglot.detectors.grounding.detector import FILES, Manifest
from veriglot.detectors.grounding.features import FEATURES_VERSION, extract
from veriglot.errors import WeightsError
from veriglot.provenance import file_sha256
from veriglot.train.grounding.calibrating import calibrate, script_of_tag
from veriglot.train.grounding.exporting import export
from veriglot.train.grounding.table import TYPES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.detectors.grounding.calibration import Calibration
    from veriglot.detectors.grounding.lexicon import Lexicon
    from veriglot.train.grounding.network import Network
    from veriglot.train.grounding.table import Row

__all__ = ["REVISION", "ship"]

REVISION = "1.0"
THRESHOLD = 0.5
_GROUPS = 15


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
    part = out.with_name(out.name + ".partial")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    export(network, part / "network.onnx")
    lexicon.save(part)
    (part / "calibration.json").write_bytes(_json(calibration))
    manifest = Manifest(
        revision=REVISION,
        features_version=FEATURES_VERSION,
        features=_feature_names(held_out[0], lexicon),
        types=TYPES,
        threshold=THRESHOLD,
        sha256={name: file_sha256(part / name) for name in FILES},
    )
    (part / "weights.json").write_bytes(_json(manifest))
    (part / "MODEL_CARD.md").write_text(card, "utf-8")
    out.mkdir(exist_ok=True)
    for path in part.iterdir():
        path.replace(out / path.name)
    part.rmdir()


def _json(value: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


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
        trained=_counts(trained),
        held_out=_counts(held_out),
        left_out="\n".join(f"- {reason}: {count}" for reason, count in sorted(left_out.items())) or "- none",
        languages=" ".join(sorted({(row.example.language or "").split("-")[0] for row in trained})),
        calibrated=" ".join(calibration.languages),
        figures=_figures(held_out, logits, calibration),
    )


def _counts(rows: Sequence[Row]) -> str:
    counts: Counter[tuple[str, str]] = Counter()
    words: Counter[tuple[str, str]] = Counter()
    for row in rows:
        counts[row.example.kind, row.example.source] += 1
        words[row.example.kind, row.example.source] += len(row)
    lines = [f"| {kind} | {source} | {n} | {words[kind, source]} |" for (kind, source), n in sorted(counts.items())]
    return "\n".join(["| kind | source | responses | words |", "|---|---|---|---|", *lines])


def _figures(held_out: Sequence[Row], logits: Sequence[NDArray[np.float32]], calibration: Calibration) -> str:
    lines = [
        "| kind | source | words | unsupported | marked | F1 | calibration error |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind, source in sorted({(row.example.kind, row.example.source) for row in held_out}):
        chosen = [i for i, row in enumerate(held_out) if (row.example.kind, row.example.source) == (kind, source)]
        truth = np.concatenate([held_out[i].target >= 0.5 for i in chosen])
        chances = np.concatenate([_confidences(held_out[i], logits[i], calibration) for i in chosen])
        marked = chances >= THRESHOLD
        both = int((marked & truth).sum())
        f1 = f"{2 * both / (marked.sum() + truth.sum()):.3f}" if truth.any() else "-"
        lines.append(
            f"| {kind} | {source} | {len(truth)} | {truth.mean():.3f} | {marked.mean():.3f} | {f1} |"
            f" {_calibration_error(truth, chances):.3f} |"
        )
    return "\n".join(lines)


def _confidences(row: Row, logits: NDArray[np.float32], calibration: Calibration) -> NDArray[np.float64]:
    tag = row.example.language or ""
    return calibration.confidences(logits[:, 0], tag, script_of_tag(tag))


def _calibration_error(truth: NDArray[np.bool_], chances: NDArray[np.float64]) -> float:
    """Expected calibration error over groups of equal width."""
    group = np.minimum((chances * _GROUPS).astype(int), _GROUPS - 1)
    total = 0.0
    for g in np.unique(group):
        inside = group == g
        total += float(inside.mean() * abs(truth[inside].mean() - chances[inside].mean()))
    return total
