"""Training the semantic detector: from labelled files to a folder of weights, in stages, seeded.

The stages are those of the grounding detector's training: the first learns from everything but natural answers, the
second goes on with those few, mixed with some of the rest. Between them some of the first stage's rows are seen once
more with their forms taken away (`blinding`). What is held out calibrates, relation by relation.
"""

from __future__ import annotations

import copy
import shutil
from collections import defaultdict
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import numpy as np
import torch

from veriglot.detectors.grounding.features import extract
from veriglot.detectors.grounding.lexicon import Lexicon
from veriglot.detectors.semantic.detector import joined
from veriglot.detectors.semantic.folder import shared_folder, words_network
from veriglot.errors import InputError
from veriglot.train.grounding.fitting import Plan
from veriglot.train.grounding.pipeline import by_folds, is_answer
from veriglot.train.grounding.reading import read_labelled
from veriglot.train.semantic.blinding import Blinder
from veriglot.train.semantic.fitting import fit, predict, statistics
from veriglot.train.semantic.making import examples_of, without_tests
from veriglot.train.semantic.network import SemanticNetwork
from veriglot.train.semantic.projecting import principal_directions
from veriglot.train.semantic.rowing import rows_of
from veriglot.train.semantic.shelf import Shelves
from veriglot.train.semantic.shipping import ship
from veriglot.train.semantic.splitting import is_held_out, relation_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from veriglot.encoders import Encoder
    from veriglot.train.semantic.table import Row

__all__ = ["blind_stage", "first_stage", "run", "second_stage"]

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
    """Train and write a folder of weights; see `veriglot.train.semantic.train`."""
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
    place = out.resolve().parent  # the vectors take gigabytes: where the weights go there is room, unlike in /tmp
    place.mkdir(parents=True, exist_ok=True)
    scratch = Path(mkdtemp(prefix=f"{out.name}.scratch-", dir=place))
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
    found = []
    for row, said in zip(rows, logits, strict=True):
        arrays = shelves.record(row.address)
        values, sentence = arrays.features.astype(np.float32), arrays.sentence.astype(np.int64)
        found.append(joined(said, by_words.logits(values, sentence)) if relation_of(row) == "same" else said)
    return found


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
