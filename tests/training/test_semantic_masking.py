"""Rows whose forms are taken away look like rows across languages: meaning, numbers and most names are left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hashed_encoder import HashedEncoder

from veriglot.detectors.grounding.document import Lexicon
from veriglot.detectors.grounding.features import extract
from veriglot.detectors.semantic.detector import shared_folder
from veriglot.detectors.semantic.features import ACROSS, NAME, Case, EncoderVectors, read_sample
from veriglot.training.grounding.examples import Example
from veriglot.training.semantic.dataset import Blinder, Shelves, principal_directions, rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.training.semantic.dataset import Arrays

EVIDENCE = "In 1897 Ada Holm and Peter Lund opened the first mill of the town beside the river."
RESPONSE = "In 1897 Ada Holm opened a mill in the town, said Lund."


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return Lexicon.load(shared_folder())


@pytest.fixture(scope="module")
def names(lexicon: Lexicon) -> tuple[str, ...]:
    seen = extract("a", ["a"], None, "en", lexicon)
    assert seen is not None
    return seen.names


@pytest.fixture(scope="module")
def arrays(tmp_path_factory: pytest.TempPathFactory) -> Arrays:
    folder: Path = tmp_path_factory.mktemp("shelf")
    examples = [Example("clean", "open", "g", "en", RESPONSE, (EVIDENCE,))]
    encoder = HashedEncoder()
    projection = principal_directions(examples, encoder, 1)
    (row,) = rows_of(examples, encoder, projection, folder, jobs=1)
    found: Arrays = Shelves(folder, projection.shape[1]).record(row.address)
    return found


def test_a_share_of_none_leaves_every_row_as_it_is(arrays: Arrays, names: tuple[str, ...]) -> None:
    assert Blinder(names, 0.0, np.random.default_rng(0))(arrays) is arrays


def test_what_stands_in_the_evidence_as_it_is_written_is_gone(arrays: Arrays, names: tuple[str, ...]) -> None:
    blind = Blinder(names, 1.0, np.random.default_rng(0))(arrays)
    for name in ("stretch_3", "in_evidence", "pair_before", "near_with", "sentence_in_evidence"):
        column = names.index(name)
        assert arrays.features[:, column].any()
        assert not blind.features[:, column].any()


def test_the_form_of_words_and_their_vectors_stay(arrays: Arrays, names: tuple[str, ...]) -> None:
    blind = Blinder(names, 1.0, np.random.default_rng(0))(arrays)
    for name in ("rarity", "is_number", "capital", "log_count_here", "number_in_evidence", "like_evidence"):
        column = names.index(name)
        assert (arrays.features[:, column] == blind.features[:, column]).all()
    assert (blind.words == arrays.words).all()
    assert (blind.slots == arrays.slots).all()


def test_numbers_match_in_full_and_other_words_only_as_names_do(arrays: Arrays, names: tuple[str, ...]) -> None:
    number, capital = (arrays.features[:, names.index(name)] > 0 for name in ("is_number", "capital"))
    matched: set[int] = set()
    for seed in range(20):
        blind = Blinder(names, 1.0, np.random.default_rng(seed))(arrays)
        assert (blind.columns[:, ACROSS] == 1).all()
        assert (blind.value[number[blind.ours]] == 1).all()
        others = ~number[blind.ours]
        assert capital[blind.ours[others]].all()
        assert (blind.value[others] < 0.95).all()
        assert np.flatnonzero(blind.columns[:, NAME]).tolist() == sorted(set(blind.ours[others].tolist()))
        matched |= set(blind.ours.tolist())
    assert set(np.flatnonzero(number).tolist()) <= matched
    assert len(matched) > number.sum()  # names come and go from draw to draw


def test_the_places_of_the_columns_are_those_that_reading_fills(lexicon: Lexicon) -> None:
    vectors = EncoderVectors(HashedEncoder())
    same = read_sample(Case(RESPONSE, [EVIDENCE], None, "en", "en"), lexicon, vectors)
    across = read_sample(Case(RESPONSE, [EVIDENCE], None, "en", "de"), lexicon, vectors)
    assert same is not None
    assert across is not None
    assert not same.columns[:, [NAME, ACROSS]].any()
    assert (across.columns[:, ACROSS] == 1).all()
    assert across.columns[:, NAME].max() > 0.5
