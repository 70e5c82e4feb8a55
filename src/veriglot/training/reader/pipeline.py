"""Training the reader from parallel articles, and writing its weights beside the semantic detector's; seeded.

Each pass draws its own responses and the languages that they are held against, and its own questions about words left
out of the articles' sentences, which are asked across languages alone. The articles that `splitting` holds out
say how head and reader are put together, and calibrate the sum.
"""

from __future__ import annotations

import shutil
from importlib.resources import files
from random import Random
from string import Template
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import torch

from veriglot import hub as models
from veriglot.datasets.translation.alignment import VectorAligner
from veriglot.detectors.grounding.document import Lexicon
from veriglot.detectors.semantic.detector import (
    FILES,
    READER,
    READS_WITH,
    Calibrations,
    Head,
    Together,
    check_encoder,
    check_weights,
    packaged_folder,
    read_too,
    shared_folder,
)
from veriglot.detectors.semantic.features import EncoderVectors, Held, read_sample
from veriglot.detectors.semantic.reader import Reader, save_learned
from veriglot.encoders.base import load_encoder
from veriglot.encoders.e5 import E5, E5File, Tokeniser
from veriglot.errors import InputError, WeightsError
from veriglot.signatures import file_sha256
from veriglot.storage.files import whole_folder, write_json
from veriglot.training.grounding.calibration import calibrate, counts_table, figures_table
from veriglot.training.grounding.dataset import labels_of
from veriglot.training.grounding.examples import read_labelled
from veriglot.training.grounding.synthetic_data import count_words
from veriglot.training.reader.examples import Rows, clozes, drawn, gaps
from veriglot.training.reader.network import ReaderNetwork, fit
from veriglot.training.regression import logistic_rising
from veriglot.training.semantic.examples import answers_across, is_held_out_group, paragraphs, without_tests

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.encoders.base import Encoder
    from veriglot.training.grounding.dataset import Labels
    from veriglot.training.grounding.examples import Example
    from veriglot.training.reader.examples import Row
    from veriglot.training.semantic.examples import Paragraph

__all__ = ["run"]


# Writing the reader beside the head: its numbers, how the two are put together, and what the model card says.


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
        write_json(part / "calibration.json", read)
        changed = msgspec.structs.replace(
            manifest,
            revision=REVISION,
            reads_with=file_sha256(reads_with)[:16],
            reads=_languages(paragraphs),
            sha256={name: file_sha256(part / name) for name in (*FILES, READER)},
        )
        write_json(part / "weights.json", changed)
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
    judged = []
    for nth, example in enumerate(examples, start=1):
        strong = [encoder.strength(tag) == "measured" for tag in (example.language, example.evidence_language)]
        held = Held(
            example.response, example.passages, example.question, example.language, example.evidence_language,
            strong=(strong[0], strong[1]),
        )  # fmt: skip
        reading = read_sample(held, lexicon, vectors)
        if reading is not None:
            labels = labels_of(example, reading.extract.response.bounds, reading.extract.markup)
            judged.append(_Judged(labels, network.judged(reading)[0], *reader.logits(held, reading)))
        if not nth % _SAID:
            say(f"{nth} of {len(examples)} held-out responses judged")
    return judged


def _together(judged: Sequence[_Judged]) -> tuple[Together, str]:
    """What each counts for, fitted on words; the calibration of the sum; and its figures as a table."""
    values = [
        np.stack([response.head[:, 0], np.where(response.seen, response.reader, 0.0), np.ones(len(response.head))], 1)
        for response in judged
    ]
    targets = np.concatenate([response.labels.target for response in judged]).astype(np.float64)
    weights = np.concatenate([(response.labels.weight > 0).astype(np.float64) for response in judged])
    head, reader, _ = logistic_rising(np.concatenate(values).astype(np.float64), targets, weights).tolist()
    rows = [response.labels for response in judged]
    logits = [read_too(head, reader, response.head, response.reader, response.seen) for response in judged]
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


def run(
    paths: Sequence[Path],
    out: Path,
    *,
    weights: Path | None,
    seed: int,
    encoder: Encoder | None,
    reads_with: Path | None,
    passes: int,
    tests: bool,
    threads: int,
    say: Callable[[str], None],
) -> None:
    """Train and write a folder of weights; see `veriglot.training.reader.train`."""
    torch.set_num_threads(threads)
    base = packaged_folder() if weights is None else weights
    manifest = check_weights(base)
    encoder = load_encoder(manifest.encoder) if encoder is None else encoder
    check_encoder(base, manifest, encoder)
    card_of(base)  # the last thing that is needed: better missed now than after the fit
    out.resolve().parent.mkdir(parents=True, exist_ok=True)
    encoder_path = models.find(READS_WITH) if reads_with is None else reads_with
    labelled = read_labelled(str(path) for path in paths)
    if not tests:
        without_tests(labelled)
    parallel = paragraphs(labelled.answers)
    learned_from = [paragraph for paragraph in parallel if not is_held_out_group(paragraph.group)]
    commonness = count_words(labelled)
    rng = Random(f"reader {seed} held out")  # noqa: S311
    held_out = [
        example
        for example in drawn(parallel, commonness, rng)
        if is_held_out_group(example.group) and example.evidence_language is not None and example.response
    ]
    if not learned_from or not held_out:
        raise InputError(
            "The data holds too few parallel articles with questions to train a reader and to calibrate it.",
            remedy="Give questions whose ids stand in several languages, with their articles' titles, such as XQuAD's.",
        )
    say(f"read {len(learned_from)} paragraphs to learn from, {len(parallel) - len(learned_from)} to calibrate on")
    rows = Rows(encoder, Tokeniser(encoder_path))
    rows.knows(parallel)
    left_out = list(gaps(learned_from, VectorAligner(E5(encoder_path)), commonness, Random(f"reader {seed} gaps")))  # noqa: S311
    say(f"found {sum(len(spans) for gap in left_out for spans in gap.places.values())} gaps to ask for")

    def of_pass(nth: int) -> list[Row]:
        rng = Random(f"reader {seed} {nth}")  # noqa: S311  a seeded draw, not a secret
        made = rows.of(example for example in drawn(parallel, commonness, rng) if not is_held_out_group(example.group))
        asked = clozes(left_out, rng)
        rows.knows(asked)
        made += rows.of(example for example in answers_across(asked, rng) if example.evidence_language is not None)
        say(f"pass {nth + 1}: {len(made)} sequences, {sum(row.answer is not None for row in made)} with their answers")
        return made

    torch.manual_seed(seed)  # the additions to start from are drawn here, before `fit` seeds itself
    network = ReaderNetwork(E5File(encoder_path))
    fit(network, of_pass, passes=passes, seed=seed, say=say)
    ship(
        network.learned(), held_out, base, out,
        encoder=encoder, reads_with=encoder_path, seed=seed, paragraphs=learned_from, tests=tests, say=say,
    )  # fmt: skip
    say(f"wrote {out}")
