"""Writing the reader beside the head: its numbers, how the two are put together, and what the model card says."""

from __future__ import annotations

import shutil
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from veriglot.detectors.grounding.lexicon import Lexicon
from veriglot.detectors.semantic.detector import read_too
from veriglot.detectors.semantic.folder import (
    FILES,
    READER,
    Calibrations,
    Together,
    check_weights,
    shared_folder,
)
from veriglot.detectors.semantic.inference import Head
from veriglot.detectors.semantic.reader import Reader, save_learned
from veriglot.detectors.semantic.reading import Held, read_sample
from veriglot.detectors.semantic.vectors import EncoderVectors
from veriglot.errors import WeightsError
from veriglot.provenance import file_sha256
from veriglot.train.grounding.calibrating import calibrate
from veriglot.train.grounding.card import counts_table, figures_table
from veriglot.train.grounding.table import labels_of
from veriglot.train.grounding.weights_folder import as_json, whole_folder
from veriglot.train.logistic import logistic_rising

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.encoders import Encoder
    from veriglot.train.grounding.example import Example
    from veriglot.train.grounding.table import Labels
    from veriglot.train.semantic.parallel import Paragraph

__all__ = ["REVISION", "card_of", "ship"]

REVISION = "1.2"
_CARD = "MODEL_CARD.md"
_SECTION = "\n## Reader\n"
_SAID = 200


def ship(
    learned: Mapping[str, NDArray[np.float32]],
    held_out: Sequence[Example],
    base: Path,
    out: Path,
    *,
    encoder: Encoder,
    reads_with: Path,
    seed: int,
    paragraphs: Sequence[Paragraph],
    tests: bool,
    say: Callable[[str], None],
) -> None:
    """Write the folder.

    Args:
        learned: the reader's numbers, as `ReaderNetwork.learned` gives them.
        held_out: responses that neither head nor reader has learned from, with evidence in another language.
        base: the folder of weights that the reader is put beside.
        out: the folder; made if absent; may be `base`.
        encoder: of `base`.
        reads_with: the file of the encoder that it reads with.
        seed: of the training, for the card.
        paragraphs: what it learned from, for the card.
        tests: whether those that benchmarks test on are among them.
        say: told of progress.
    """
    manifest = check_weights(base)
    calibrations = msgspec.json.decode((base / "calibration.json").read_bytes(), type=Calibrations)
    with whole_folder(out) as part:
        save_learned(part / READER, learned)
        judged = _judged(held_out, base / "head.onnx", Reader(part / READER, reads_with), encoder, say)
        together, figures = _together(judged)
        shutil.copy(base / "head.onnx", part)
        read = msgspec.structs.replace(calibrations, read_across=together)
        (part / "calibration.json").write_bytes(as_json(read))
        changed = msgspec.structs.replace(
            manifest,
            revision=REVISION,
            reads_with=file_sha256(reads_with)[:16],
            reads=_languages(paragraphs),
            sha256={name: file_sha256(part / name) for name in (*FILES, READER)},
        )
        (part / "weights.json").write_bytes(as_json(changed))
        card = card_of(base).partition(_SECTION)[0]
        card = card.replace(f"semantic {manifest.revision}", f"semantic {REVISION}", 1)
        (part / _CARD).write_text(card + _section(seed, paragraphs, tests=tests, figures=figures), "utf-8")


def card_of(base: Path) -> str:
    """The model card of a folder of weights.

    Raises:
        WeightsError: there is none.
    """
    try:
        return (base / _CARD).read_text("utf-8")
    except FileNotFoundError as error:
        raise WeightsError(
            f"{base} has no {_CARD}.", remedy="Give a folder as `veriglot train semantic` made it."
        ) from error


def _languages(paragraphs: Sequence[Paragraph]) -> tuple[str, ...]:
    return tuple(sorted({tag for paragraph in paragraphs for tag in paragraph.versions}))


class _Judged:
    """A response with what is known of its words, and what head and reader say of them."""

    def __init__(
        self, labels: Labels, head: NDArray[np.float32], reader: NDArray[np.float32], seen: NDArray[np.bool_]
    ) -> None:
        self.labels, self.head, self.reader, self.seen = labels, head, reader, seen


def _judged(
    examples: Sequence[Example], head: Path, reader: Reader, encoder: Encoder, say: Callable[[str], None]
) -> list[_Judged]:
    network, lexicon, vectors = Head(head), Lexicon.load(shared_folder()), EncoderVectors(encoder)
    found = []
    for nth, example in enumerate(examples, start=1):
        strong = [encoder.strength(tag) == "measured" for tag in (example.language, example.evidence_language)]
        held = Held(
            example.response, example.passages, example.question, example.language, example.evidence_language,
            strong=(strong[0], strong[1]),
        )  # fmt: skip
        reading = read_sample(held, lexicon, vectors)
        if reading is not None:
            labels = labels_of(example, reading.extract.response.bounds, reading.extract.markup)
            found.append(_Judged(labels, network.judged(reading)[0], *reader.logits(held, reading)))
        if not nth % _SAID:
            say(f"{nth} of {len(examples)} held-out responses judged")
    return found


def _together(judged: Sequence[_Judged]) -> tuple[Together, str]:
    """What each counts for, fitted on words; the calibration of the sum; and its figures as a table."""
    values = [
        np.stack([one.head[:, 0], np.where(one.seen, one.reader, 0.0), np.ones(len(one.head))], 1) for one in judged
    ]
    targets = np.concatenate([one.labels.target for one in judged]).astype(np.float64)
    weights = np.concatenate([(one.labels.weight > 0).astype(np.float64) for one in judged])
    head, reader, _ = logistic_rising(np.concatenate(values).astype(np.float64), targets, weights).tolist()
    rows = [one.labels for one in judged]
    logits = [read_too(head, reader, one.head, one.reader, one.seen) for one in judged]
    fitted = calibrate(rows, logits)
    figures = figures_table(rows, logits, fitted, 0.5)
    return Together(head, reader, fitted), f"{counts_table(rows)}\n\n{figures}"


def _section(seed: int, paragraphs: Sequence[Paragraph], *, tests: bool, figures: str) -> str:
    template = Template(files(__package__).joinpath("model_card.md").read_text("utf-8"))
    return _SECTION + template.substitute(
        seed=seed,
        paragraphs=len(paragraphs),
        articles=len({paragraph.group for paragraph in paragraphs}),
        languages=" ".join(_languages(paragraphs)),
        tests="among them" if tests else "not among them",
        figures=figures,
    )
