"""What becomes of each line: a byte a line, and a name for a person."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Fate", "fate_counts"]


class Fate(IntEnum):
    """Why a line fell out, or that it stays. The numbers stand in files of the work folder."""

    KEPT = 0
    NO_SOURCE = 1
    NO_TARGET = 2
    REPEATED = 3
    TOO_SHORT = 4
    TOO_LONG = 5
    LANGUAGE_UNTOLD = 6
    LANGUAGE_UNSURE = 7
    OTHER_LANGUAGE = 8
    NEAR_DUPLICATE = 9


def fate_counts(fates: NDArray[np.uint8]) -> dict[str, int]:
    """How many lines have which fate, every fate named, in the order in which they are looked for."""
    counts = np.bincount(fates, minlength=len(Fate))
    return {fate.name.lower(): int(counts[fate]) for fate in Fate}
