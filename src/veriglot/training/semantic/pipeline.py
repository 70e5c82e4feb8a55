"""Training the semantic detector: stages, export to ONNX, and the folder of weights; seeded.

The stages are those of the grounding detector's training: the first learns from everything but natural answers, the
second goes on with those few, mixed with some of the rest. Between them some of the first stage's rows are seen once
more with their forms taken away (`blinding`). What is held out calibrates, relation by relation.
"""

from __future__ import annotations

import copy
import shutil
from collections import Counter, defaultdict
from importlib.resources import files
from pathlib import Path
from random import Random
from string import Template
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
import torch
from torch import Tensor, nn

from veriglot.detectors.grounding.document import Lexicon
from veriglot.detectors.grounding.features import extract
from veriglot.detectors.semantic.detector import (
    FILES,
    Calibrations,
    Manifest,
    joined,
    shared_folder,
    shared_hash,
    vectors_of,
    words_network,
)
from veriglot.detectors.semantic.features import READING_VERSION, STRIDE
from veriglot.errors import InputError, WeightsError
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
from veriglot.training.grounding.examples import read_labelled
from veriglot.training.grounding.export import onnx_bytes
from veriglot.training.grounding.network import OUTPUTS, Plan
from veriglot.training.grounding.pipeline import by_folds, is_answer
from veriglot.training.semantic.dataset import Blinder, Shelves, principal_directions, rows_of
from veriglot.training.semantic.examples import examples_of, is_held_out, relation_of, without_tests
from veriglot.training.semantic.network import SemanticNetwork, fit, predict, statistics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.grounding.detector import ScriptCalibration as Calibration
    from veriglot.encoders.base import Encoder
    from veriglot.training.grounding.dataset import WordLabels
    from veriglot.training.semantic.dataset import Row

__all__ = ["export", "run"]


# From PyTorch to the ONNX file that the detector runs, checked against each other at several sizes.


if TYPE_CHECKING:
    Arrays = dict[str, NDArray[np.float32]]


COLUMNS = 24  # further features of a word, beside the grounding detector's (`reading.read_sample`)
_INPUTS = ("features", "columns", "words", "evidence", "matched", "filled", "pool", "question", "asked")
_TOLERANCE = 2e-3  # of a logit
_SIZES = ((1, 2, 1, 1), (7, 2, 2, 9), (90, 22, 5, 1), (620, 70, 40, 30))  # words, strides, sentences, asked words


class _ForOne(nn.Module):
    """The network for one response, without padding."""

    def __init__(self, network: SemanticNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(
        self,
        features: Tensor,
        columns: Tensor,
        words: Tensor,
        evidence: Tensor,
        matched: Tensor,
        filled: Tensor,
        pool: Tensor,
        question: Tensor,
        asked: Tensor,
    ) -> tuple[Tensor, Tensor]:
        present = torch.ones_like(features[..., :1])
        output: tuple[Tensor, Tensor] = self.network(
            features, columns, words, evidence, matched, filled, pool, question, asked, present
        )
        return output


def export(network: SemanticNetwork, projection: NDArray[np.float32], path: Path) -> None:
    """Write the head as one self-contained ONNX file that takes the encoder's own vectors.

    Args:
        network: the trained network, which takes projected vectors; it is not changed.
        projection: what the vectors were multiplied by, shape (d, p): d numbers of the encoder, p of the network.
        path: the file.

    Raises:
        WeightsError: the file does not give what the network gives.
    """
    single = _ForOne(_unprojected(network, projection)).eval()
    length = len(projection)
    path.write_bytes(
        onnx_bytes(
            single,
            tuple(torch.from_numpy(array) for array in _drawn(single.network, length, 30, 4, 6, 5).values()),
            inputs=_INPUTS,
            outputs=("logits", "place"),
            axes=_axes(),
        )
    )
    _check(single, network, projection, path)


def _unprojected(network: SemanticNetwork, projection: NDArray[np.float32]) -> SemanticNetwork:
    """The same network for vectors that are not projected: both of its layers that take vectors are linear."""
    whole = copy.deepcopy(network)
    directions = torch.from_numpy(projection)
    for name in ("look", "value"):
        weight = getattr(network, name).weight.detach()
        layer = nn.Linear(len(projection), len(weight), bias=False)
        layer.weight = nn.Parameter(weight @ directions.T)
        setattr(whole, name, layer)
    return whole


def _axes() -> tuple[dict[int, object], ...]:
    """Which axes of the inputs take any length; slots come in whole strides."""
    words, sentences, asked = (torch.export.Dim(name, min=2) for name in ("words", "sentences", "asked"))
    slots = STRIDE * torch.export.Dim("strides", min=2)
    return (
        {1: words}, {1: words}, {1: words}, {1: slots}, {1: words, 2: slots}, {1: slots},
        {1: sentences, 2: words}, {1: asked}, {1: asked},
    )  # fmt: skip


def _drawn(network: SemanticNetwork, length: int, words: int, strides: int, sentences: int, asked: int) -> Arrays:
    """Inputs as a detector might give them, for vectors of a length."""
    rng = np.random.default_rng(words)
    slots = strides * STRIDE
    filled = np.ones((1, slots), np.float32)
    filled[0, -STRIDE - 3 :] = 0
    sentence = np.sort(np.concatenate([np.arange(sentences), rng.integers(0, sentences, words - sentences)]))
    pool = np.zeros((1, sentences, words), np.float32)
    pool[0, sentence, np.arange(words)] = 1 / np.bincount(sentence)[sentence]
    shapes = {
        "features": (words, len(network._means) - COLUMNS), "columns": (words, COLUMNS), "words": (words, length),
        "evidence": (slots, length), "question": (asked, length),
    }  # fmt: skip
    arrays: Arrays = {name: rng.normal(size=(1, *shape)).astype(np.float32) for name, shape in shapes.items()}
    arrays["evidence"] *= filled[..., None]
    matched = rng.random((1, words, slots)) < 1 / 40
    arrays |= {"matched": matched * filled[:, None], "filled": filled, "pool": pool}
    arrays["asked"] = np.ones((1, asked), np.float32)
    return {name: arrays[name] for name in _INPUTS}


def _check(single: _ForOne, network: SemanticNetwork, projection: NDArray[np.float32], path: Path) -> None:
    """Raise unless file, unprojected network and trained network agree."""
    trained = _ForOne(network).eval()
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for sizes in _SIZES:
        given = _drawn(network, len(projection), *sizes)
        before = {n: a @ projection if n in ("words", "evidence", "question") else a for n, a in given.items()}
        exported, places = session.run(None, given)
        for module, inputs in ((single, given), (trained, before)):
            with torch.no_grad():
                logits, expected_places = module(*(torch.from_numpy(inputs[name]) for name in _INPUTS))
            same = (places == expected_places.numpy()).mean() if places.shape == expected_places.shape else 0.0
            if (
                exported.shape != (1, sizes[0], OUTPUTS)
                or np.abs(exported - logits.numpy()).max() > _TOLERANCE
                or same < 0.9
            ):
                raise WeightsError(f"The exported head differs from the trained one at {sizes[0]} words.")


# Writing a folder of weights for the semantic detector: head, calibrations, manifest, model card.


if TYPE_CHECKING:
    Judged = Sequence[tuple[WordLabels, NDArray[np.float32]]]


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
        calibrations = Calibrations(fitted["same"], fitted["across"], fitted["translation"])
        write_json(part / "calibration.json", calibrations)
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
        write_json(part / "weights.json", manifest)
        (part / "MODEL_CARD.md").write_text(card, "utf-8")


def _calibrated(judged: Mapping[str, Judged]) -> dict[str, Calibration]:
    calibrations: dict[str, Calibration] = {}
    for nth, relation in enumerate(RELATIONS):
        pairs = judged.get(relation)
        if pairs:
            calibrations[relation] = calibrate([row for row, _ in pairs], [logits for _, logits in pairs])
        else:
            calibrations[relation] = calibrations[RELATIONS[nth - 1]]
    return calibrations


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
    rows, logits = [row for row, _ in pairs], [values for _, values in pairs]
    figures = figures_table(rows, logits, calibration, THRESHOLD)
    return f"{title}\n\n{counts_table(rows)}\n\n{figures}\n\nCalibrated languages: {' '.join(calibration.languages)}."


_MIXED = 3000  # rows of the first stage that the second sees again
_REPEATS = 8  # of each natural answer in the second stage
_RATE = 2e-3
_WITH_TESTS = "The parallel articles and translations that the benchmarks test on are among the training data."
_WITHOUT_TESTS = "The parallel articles and translations that the benchmarks test on were left out."
_BLIND_RATE = 1.2e-3
_BLIND_EPOCHS = 2
_BLIND_SHARE = 0.5
_BLIND_MOST = {"same": 12500, "across": 10000, "translation": 8000}  # rows of each relation that the blind stage sees
_ANSWER_RATE = 1e-3
_TYPE_WEIGHT = 0.7


def run(
    paths: Sequence[Path],
    out: Path,
    *,
    seed: int,
    encoder: Encoder,
    epochs: int,
    jobs: int,
    tests: bool,
    say: Callable[[str], None],
) -> None:
    """Train and write a folder of weights; see `veriglot.training.semantic.train`."""
    torch.set_num_threads(1)  # so small a network is faster on one, and the sums keep their order
    labelled = read_labelled(str(path) for path in paths)
    say(
        f"read {len(labelled.examples)} labelled responses, {len(labelled.articles)} articles,"
        f" {len(labelled.answers)} answers, {len(labelled.translations)} translations"
    )
    if not tests:
        without_tests(labelled)
    examples = examples_of(labelled, seed)
    if not examples:
        raise _nothing()
    projection = principal_directions(examples, encoder, seed)
    folder = out.resolve().parent  # the vectors take gigabytes: where the weights go there is room, unlike in /tmp
    folder.mkdir(parents=True, exist_ok=True)
    scratch = Path(mkdtemp(prefix=f"{out.name}.scratch-", dir=folder))
    try:
        rows = rows_of(examples, encoder, projection, scratch, jobs=jobs, say=say)
        shelves = Shelves(scratch, projection.shape[1])
        network, trained, judged = _trained(rows, shelves, seed, epochs, say)
        ship(
            network, projection, trained, judged, out,
            seed=seed, encoder=encoder, left_out=labelled.left_out,
            remark=_WITH_TESTS if tests else _WITHOUT_TESTS,
        )  # fmt: skip
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    say(f"wrote {out}")


def _trained(
    rows: Sequence[Row], shelves: Shelves, seed: int, epochs: int, say: Callable[[str], None]
) -> tuple[SemanticNetwork, list[Row], dict[str, list[tuple[Row, NDArray[np.float32]]]]]:
    """The network of both stages, what it learned from, and what was held out with logits, by relation."""
    network = blind_stage(first_stage(rows, shelves, seed, say, epochs), rows, shelves, seed, say)
    answers = [row for row in rows if is_answer(row)]
    judged = by_folds(
        answers,
        lambda seen, unseen: predict(second_stage(network, rows, seen, shelves, seed, lambda _: None), unseen, shelves),
        say,
    )
    held_out = [row for row in rows if is_held_out(row) and not is_answer(row)]
    network = second_stage(network, rows, answers, shelves, seed, say)
    judged += zip(held_out, _joined(held_out, predict(network, held_out, shelves), shelves), strict=True)
    by_relation: dict[str, list[tuple[Row, NDArray[np.float32]]]] = defaultdict(list)
    for row, logits in judged:
        by_relation[relation_of(row)].append((row, logits))
    return network, [row for row in rows if is_answer(row) or not is_held_out(row)], by_relation


def _joined(rows: Sequence[Row], logits: Sequence[NDArray[np.float32]], shelves: Shelves) -> list[NDArray[np.float32]]:
    """Logits as the detector has them. Natural answers keep the head's: the network by words has seen them all."""
    by_words = words_network()
    result = []
    for row, own in zip(rows, logits, strict=True):
        arrays = shelves.record(row.address)
        values, sentence = arrays.features.astype(np.float32), arrays.sentence.astype(np.int64)
        result.append(joined(own, by_words.logits(values, sentence)) if relation_of(row) == "same" else own)
    return result


def first_stage(
    rows: Sequence[Row], shelves: Shelves, seed: int, say: Callable[[str], None], epochs: int
) -> SemanticNetwork:
    """Train on every row that is neither held out nor a natural answer.

    Raises:
        InputError: nothing is left to train on.
    """
    chosen = [row for row in rows if not is_answer(row) and not is_held_out(row)]
    if not chosen:
        raise _nothing()
    features, columns = statistics(chosen, shelves)
    torch.manual_seed(seed)  # the weights to start from are drawn here, before `fit` seeds itself
    network = SemanticNetwork(features, columns, _feature_names().index("rarity"), shelves.width)
    plan = Plan(epochs=epochs, rate=_RATE, seed=seed, type_weight=_TYPE_WEIGHT)
    say(f"fitting on {len(chosen)} responses")
    fit(network, chosen, shelves, plan, say=say)
    return network


def blind_stage(
    network: SemanticNetwork, rows: Sequence[Row], shelves: Shelves, seed: int, say: Callable[[str], None]
) -> SemanticNetwork:
    """Go on with some rows of the first stage, half of those in one language without their forms.

    Returns:
        Another network; the one given is not changed.
    """
    rng = Random(f"blind {seed}")  # noqa: S311  a seeded draw, not a secret
    chosen: list[Row] = []
    for relation, most in _BLIND_MOST.items():
        some = [row for row in rows if relation_of(row) == relation and not is_answer(row) and not is_held_out(row)]
        chosen += rng.sample(some, min(len(some), most))
    tuned = copy.deepcopy(network)
    blinder = Blinder(_feature_names(), _BLIND_SHARE, np.random.default_rng(seed))
    plan = Plan(epochs=_BLIND_EPOCHS, rate=_BLIND_RATE, seed=seed, type_weight=_TYPE_WEIGHT)
    say(f"fitting on {len(chosen)} responses, half of those in one language without their forms")
    fit(tuned, chosen, shelves, plan, shown=blinder, say=say)
    return tuned


def second_stage(
    network: SemanticNetwork,
    rows: Sequence[Row],
    answers: Sequence[Row],
    shelves: Shelves,
    seed: int,
    say: Callable[[str], None],
) -> SemanticNetwork:
    """Go on with natural answers, mixed with rows of the first stage; the network given is not changed.

    Args:
        network: from `blind_stage`.
        rows: all rows.
        answers: the natural answers to learn from; with none, the network is returned as it is.
        shelves: where the rest of the rows lies.
        seed: of the mix and the fit.
        say: told the loss.
    """
    if not answers:
        return network
    others = [row for row in rows if not is_answer(row) and not is_held_out(row)]
    mixed = Random(seed).sample(others, min(len(others), _MIXED)) + list(answers) * _REPEATS  # noqa: S311
    tuned = copy.deepcopy(network)
    fit(tuned, mixed, shelves, Plan(epochs=2, rate=_ANSWER_RATE, seed=seed, type_weight=_TYPE_WEIGHT), say=say)
    return tuned


def _feature_names() -> tuple[str, ...]:
    """The grounding detector's features, in order."""
    seen = extract("a", ["a"], None, "en", Lexicon.load(shared_folder()))
    assert seen is not None
    return seen.names


def _nothing() -> InputError:
    return InputError(
        "The data holds nothing to train on.",
        remedy="Give labelled samples with evidence, clean articles, or answered questions.",
    )
