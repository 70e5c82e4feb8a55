"""The principal directions of an encoder's word vectors: what is kept of them while the head is trained."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.encoders import Encoder
    from veriglot.train.grounding.example import Example

__all__ = ["DIRECTIONS", "principal_directions"]

DIRECTIONS = 256
_PER_LANGUAGE = 50  # responses
_LONGEST = 600  # code points of each


def principal_directions(examples: Sequence[Example], encoder: Encoder, seed: int) -> NDArray[np.float32]:
    """What word vectors are multiplied by before they are stored, shape (d, p).

    The directions in which the tokens of some responses in every language differ most, `DIRECTIONS` of them or as many
    as the encoder has. All are scaled alike, so that numbers are of about the size of one.

    Args:
        examples: whose responses are sampled; one at least has to hold a token.
        encoder: gives the vectors of tokens, shape (t, d).
        seed: of the sample.
    """
    rng = Random(f"directions {seed}")  # noqa: S311  a seeded draw, not a secret
    by_language: dict[str | None, list[Example]] = defaultdict(list)
    for example in examples:
        by_language[example.language].append(example)
    vectors = np.concatenate(
        [
            encoder.tokens(example.response[:_LONGEST]).vectors
            for some in by_language.values()
            for example in rng.sample(some, min(len(some), _PER_LANGUAGE))
        ]
    ).astype(np.float64)
    centred = vectors - vectors.mean(axis=0)
    spread, directions = np.linalg.eigh(centred.T @ centred / max(1, len(centred)))
    kept = np.argsort(-spread)[:DIRECTIONS]
    size = np.sqrt(max(float(spread[kept].mean()), 1e-12))
    found: NDArray[np.float32] = (directions[:, kept] / size).astype(np.float32)
    return found
