"""The folder of weights of the semantic detector: what it holds, and whether that is whole."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from veriglot import weights
from veriglot.detectors.grounding.calibration import Calibration
from veriglot.detectors.grounding.inference import Model
from veriglot.detectors.semantic.reading import READING_VERSION
from veriglot.errors import WeightsError
from veriglot.provenance import digest, file_sha256

if TYPE_CHECKING:
    from veriglot.encoders import Encoder

__all__ = [
    "FILES",
    "READER",
    "READS_WITH",
    "SHARED",
    "Calibrations",
    "Manifest",
    "Together",
    "check_encoder",
    "check_weights",
    "packaged_folder",
    "reading_encoder",
    "shared_folder",
    "shared_hash",
    "vectors_of",
    "words_network",
]

FILES = ("head.onnx", "calibration.json")
READER = "reader.npz"  # only where `veriglot train reader` was run
READS_WITH = "e5-multilingual"
SHARED = ("network.onnx", "frequencies.npy", "vector_keys.npy", "vectors.npy")  # of the grounding detector


class Together(msgspec.Struct, frozen=True):
    """How head and reader are put together, where both have judged.

    Attributes:
        head, reader: what the logit of each is multiplied by before they are added.
        calibration: of the sum.
    """

    head: float
    reader: float
    calibration: Calibration


class Calibrations(msgspec.Struct, frozen=True):
    """A calibration for each relation of response and evidence: how sure the head is differs between them.

    `read_across` is for evidence in another language where the reader has judged too.
    """

    same: Calibration
    across: Calibration
    translation: Calibration
    read_across: Together | None = None


class Manifest(msgspec.Struct, frozen=True):
    """What a folder of weights says of itself (`weights.json`).

    Attributes:
        revision: version of the weights.
        reading_version: the features that they were trained on.
        encoder: name of the encoder whose vectors they take.
        vectors: hash of that encoder's signature; empty where any encoder of the name will do.
        shared: hash of what is the grounding detector's: the lexicon that the features were taken with, and the network
            that has a say where response and evidence are in one language.
        types: the span types, in the order of the head's outputs.
        threshold: confidence from which a word is marked by default.
        sha256: hash of each file.
        reads_with: hash of the encoder's file that the reader's additions are for; empty where there is no reader.
        reads: BCP 47 tags of the languages that the reader has learned to read across.
    """

    revision: str
    reading_version: int
    encoder: str
    shared: str
    types: tuple[str, ...]
    threshold: float
    sha256: dict[str, str]
    vectors: str = ""
    reads_with: str = ""
    reads: tuple[str, ...] = ()


def words_network() -> Model:
    """The grounding detector's network."""
    return Model(shared_folder() / "network.onnx")


def packaged_folder() -> Path:
    """Where the weights in the package lie."""
    return Path(str(files("veriglot.detectors.semantic") / "weights"))


def shared_folder() -> Path:
    """Where the grounding detector's weights lie."""
    return Path(str(files("veriglot.detectors.grounding") / "weights"))


def check_weights(folder: Path) -> Manifest:
    """Compare every file of a folder of weights, and the lexicon beside them, with its hash.

    Returns:
        What the folder says of itself.

    Raises:
        WeightsError: a file is missing or damaged, or the weights are for other features or another lexicon.
    """
    path = folder / "weights.json"
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError as error:
        raise WeightsError(
            f"There are no semantic weights in {folder}.",
            remedy="Give a folder that `veriglot train semantic` made, or install Veriglot again.",
        ) from error
    except msgspec.MsgspecError as error:
        raise WeightsError(f"{path} is not a manifest of semantic weights: {error}.") from error
    if manifest.reading_version != READING_VERSION or manifest.shared != shared_hash():
        raise WeightsError(
            f"The weights in {folder} are for other features than this version of Veriglot takes.",
            remedy="Train them anew with `veriglot train semantic`.",
        )
    for name in (*FILES, *([READER] if manifest.reads_with else [])):
        file = folder / name
        if not file.is_file() or file_sha256(file) != manifest.sha256.get(name):
            raise WeightsError(f"{file} is missing or damaged.", remedy="Install Veriglot again, or train anew.")
    return manifest


def reading_encoder(folder: Path, manifest: Manifest) -> Path | None:
    """The file of the encoder that the reader reads with; None where the weights have no reader, or it is not here.

    Raises:
        WeightsError: it is damaged, or another than the one that the reader was trained with.
    """
    if not manifest.reads_with:
        return None
    try:
        place = weights.find(READS_WITH)
    except weights.MissingWeightsError:
        return None
    if file_sha256(place)[:16] != manifest.reads_with:
        raise WeightsError(
            f"The reader in {folder} was trained with another file than {place}.",
            remedy="Train it anew with `veriglot train reader`, or load the detector with reader=False.",
        )
    return place


def vectors_of(encoder: Encoder) -> str:
    """A hash of what makes an encoder's vectors: another file of the same name has another."""
    return digest([encoder.signature])[:16]


def check_encoder(folder: Path, manifest: Manifest, encoder: Encoder) -> None:
    """Another encoder's vectors would be read without an error, and wrongly."""
    if manifest.vectors and manifest.vectors != vectors_of(encoder):
        raise WeightsError(
            f"The weights in {folder} were trained on another encoder than {encoder.signature}.",
            remedy=f"Give the {manifest.encoder} of their training, or train anew with `veriglot train semantic`.",
        )


def shared_hash() -> str:
    """One hash of what is the grounding detector's."""
    return digest([file_sha256(shared_folder() / name) for name in SHARED])[:16]
