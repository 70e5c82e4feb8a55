"""Rows: what training reads is what the detector reads, and what it has stored is what it gets back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hashed_encoder import WIDTH, HashedEncoder
from training_data import WRITERS, english, german

from veriglot.detectors.grounding.document import Lexicon
from veriglot.detectors.semantic.detector import shared_folder
from veriglot.detectors.semantic.features import Case, EncoderVectors, read_sample
from veriglot.training.grounding.examples import Example, Mark
from veriglot.training.semantic.dataset import Arrays, Row, Shelf, Shelves, principal_directions, rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

LONG = " ".join(english(n) for n in range(12))  # more words than are compared


def example(response: str, *passages: str, question: str | None = None, marks: tuple[Mark, ...] = ()) -> Example:
    return Example("natural", "open", "g", "en", response, passages, question, marks)


EXAMPLES = [
    example("Mayor Holm opened the first mill.", english(0), german(3), question="Who opened the mill?"),
    example("?!", english(0)),
    example("The market sells honey. A dragon sleeps.", LONG, marks=(Mark(24, 40, "invented"),)),
    Example(
        "clean", "open", "g", "en", "The town sells wool.", (german(1),), evidence_language="de", translation=True
    ),
    Example("clean", "open", "g", "zh", WRITERS["zh"](2)[:40], (WRITERS["zh"](2),)),
]  # fmt: skip


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return Lexicon.load(shared_folder())


@pytest.fixture(scope="module")
def projection() -> NDArray[np.float32]:
    return principal_directions(EXAMPLES, HashedEncoder(), 1)


def stored(folder: Path, projection: NDArray[np.float32], jobs: int = 1) -> tuple[list[Row], Shelves]:
    folder.mkdir()
    rows = rows_of(EXAMPLES, HashedEncoder(), projection, folder, jobs=jobs)
    return rows, Shelves(folder, projection.shape[1])


def test_directions_are_orthogonal_and_of_one_size(projection: NDArray[np.float32]) -> None:
    assert projection.shape == (WIDTH, WIDTH)
    square = projection.T @ projection
    assert np.allclose(square, np.eye(WIDTH) * square[0, 0], atol=1e-4 * square[0, 0])
    vectors = HashedEncoder().tokens(LONG).vectors @ projection
    assert 0.3 < vectors.std() < 3


def test_training_reads_what_the_detector_reads(
    tmp_path: Path, projection: NDArray[np.float32], lexicon: Lexicon
) -> None:
    rows, shelves = stored(tmp_path / "shelf", projection)
    kept = [e for e in EXAMPLES if e.response != "?!"]
    assert [row.example for row in rows] == kept
    encoder = HashedEncoder()
    for row in rows:
        e = row.example
        others = e.evidence_language or e.language
        strong = (encoder.strength(e.language) == "measured", encoder.strength(others) == "measured")
        held = Case(e.response, e.passages, e.question, e.language, others, e.translation, strong)
        reading = read_sample(held, lexicon, EncoderVectors(encoder))
        arrays = shelves.record(row.address)
        assert reading is not None
        assert isinstance(arrays, Arrays)
        assert np.allclose(shelves.take(arrays.words), reading.words @ projection, atol=5e-3)
        assert np.allclose(shelves.take(arrays.slots), reading.evidence @ projection, atol=5e-3)
        assert np.allclose(shelves.take(arrays.question), reading.question @ projection, atol=5e-3)
        assert ((arrays.slots >= 0) == (reading.slots >= 0)).all()
        assert np.allclose(arrays.features, reading.extract.values, atol=1e-2, rtol=1e-2)
        assert np.allclose(arrays.columns, reading.columns, atol=1e-2)
        assert (arrays.ours == reading.ours).all()
        assert (arrays.slot == reading.others).all()
        assert row.slots == len(reading.slots)
    marked = rows[1]
    bounds = marked.target.nonzero()[0]
    assert len(bounds) == 3
    assert bounds[-1] == len(marked) - 1


def test_two_processes_write_what_one_writes(tmp_path: Path, projection: NDArray[np.float32]) -> None:
    one, _ = stored(tmp_path / "one", projection)
    two, _ = stored(tmp_path / "two", projection, jobs=2)
    assert [row.address for row in one] == [row.address for row in two]
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "two").iterdir())
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_shelf_gives_back_what_was_put_and_zeros_for_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    first, second = (rng.normal(size=(n, 5)).astype(np.float32) for n in (7, 3))
    with Shelf(tmp_path, 2) as shelf:
        places = shelf.put(first)
        address = shelf.record({"a": first})
    with Shelf(tmp_path, 11) as shelf:
        more = shelf.put(second)
    shelves = Shelves(tmp_path, 5)
    asked = np.array([more[2], -1, places[6], places[0]])
    expected = np.stack([second[2], np.zeros(5), first[6], first[0]])
    assert np.allclose(shelves.take(asked), expected, atol=2e-3)
    assert shelves.take(np.zeros(0, np.int64)).shape == (0, 5)
    assert (shelves.record(address)["a"] == first).all()
