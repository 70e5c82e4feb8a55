"""Rows of all examples, made by several processes, each share of the examples with files of its own."""

from __future__ import annotations

import multiprocessing
import os
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TYPE_CHECKING

from veriglot.detectors.grounding.lexicon import Lexicon
from veriglot.detectors.semantic.folder import shared_folder
from veriglot.errors import VeriglotError
from veriglot.train.grounding.example import share_of
from veriglot.train.semantic.shelf import Shelf
from veriglot.train.semantic.table import Row, ShelvedVectors, row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from veriglot.encoders import Encoder
    from veriglot.train.grounding.example import Example

    _Read = tuple[int, NDArray[np.float32], NDArray[np.float32], int, tuple[int, int, int]]

__all__ = ["rows_of"]

_SHARES = 32  # as many whatever the processes, so that the files are the same


@dataclass(frozen=True)
class _Work:
    """One share: its number, and the examples with their places among all."""

    share: int
    examples: list[tuple[int, Example]]
    folder: Path
    encoder: Encoder
    projection: NDArray[np.float32]


def rows_of(
    examples: Sequence[Example],
    encoder: Encoder,
    projection: NDArray[np.float32],
    folder: Path,
    *,
    jobs: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> list[Row]:
    """The rows of the examples that hold words, in their order.

    Args:
        examples: what to read.
        encoder: gives the vectors; has to be picklable for `jobs` above 1.
        projection: what word vectors are multiplied by, shape (d, p).
        folder: an empty folder, for some 30 kB an example and 512 bytes a word of evidence at 256 directions.
        jobs: processes.
        say: told of progress.

    Raises:
        VeriglotError: a process died.
    """
    found: dict[int, Row] = {}
    work = [_Work(n, some, folder, encoder, projection) for n, some in sorted(_shared(examples).items())]
    for done, rows in enumerate(_made(work, jobs), start=1):
        found.update({read[0]: Row(examples[read[0]], *read[1:]) for read in rows})
        if 4 * done // len(work) > 4 * (done - 1) // len(work):
            say(f"read {len(found)} of {len(examples)} responses")
    return [found[place] for place in sorted(found)]


def _shared(examples: Sequence[Example]) -> dict[int, list[tuple[int, Example]]]:
    """The examples of each share: those with the same evidence together, one after the other."""
    shares: dict[int, list[tuple[int, Example]]] = defaultdict(list)
    for place, example in enumerate(examples):
        shares[int(share_of("\0".join(example.passages)) * _SHARES)].append((place, example))
    for some in shares.values():
        some.sort(key=lambda pair: (pair[1].passages, pair[0]))
    return shares


def _made(work: list[_Work], jobs: int) -> Iterator[list[_Read]]:
    if jobs == 1:
        yield from map(_rows, work)
        return
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by processes that start: each has one core
    context = multiprocessing.get_context("spawn")  # safe whatever threads the caller runs
    try:
        with ProcessPoolExecutor(jobs, mp_context=context) as pool:
            yield from pool.map(_rows, work)
    except BrokenProcessPool as error:
        raise VeriglotError(
            "A process that reads training texts died.", remedy="Give it more memory, or fewer jobs."
        ) from error


def _rows(work: _Work) -> list[_Read]:
    """What makes the rows of a share, without the texts, which need not travel back."""
    lexicon = Lexicon.load(shared_folder())
    rows = []
    with Shelf(work.folder, work.share) as shelf:
        vectors = ShelvedVectors(work.encoder, work.projection, shelf)
        for place, example in work.examples:
            row = row_of(example, lexicon, work.encoder, vectors, shelf)
            if row is not None:
                rows.append((place, row.target, row.weight, row.slots, row.address))
    return rows
