"""What a sample for translation is made by: how lines are cleaned, how they are chosen, how they are split (hat, 2)."""

from __future__ import annotations

from typing import Literal

import msgspec

from veriglot.errors import UsageError

__all__ = ["HAT_PARTS", "Cleaning", "Sampling"]

HAT_PARTS = {"train": 5_000, "dev": 2_000, "test": 3_000}
"""Name of a part to its size, as in hat (section 2.2)."""


class Cleaning(msgspec.Struct, frozen=True):
    """What a line has to be to stay. Hat (section 2.1) names the filters and no numbers; the numbers are ours.

    Attributes:
        language: BCP 47 tag of the sources. Targets are not held against a language: a translation into the wrong one
            is among what is looked for.
        unique: what may occur once: a source, as in hat, or a pair of source and target.
        min_length: shortest source, in letters and other visible characters; one of a Chinese, Japanese or Korean
            script counts as two.
        max_length: longest source, counted likewise.
        min_confidence: of the language, 0 to 1; less sure ones fall out.
        near: Jaccard similarity of character n-grams, above 0 to 1, from which a text is a near-duplicate of an earlier
            one; None keeps near-duplicates.
        skip: keep every line as it is, because the data were cleaned before.

    Raises:
        UsageError: a number out of its range.
    """

    language: str
    unique: Literal["source", "pair"] = "source"
    min_length: int = 15
    max_length: int = 1_000
    min_confidence: float = 0.5
    near: float | None = 0.8
    skip: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.min_length <= self.max_length:
            raise UsageError(f"Lengths from {self.min_length} to {self.max_length} are no range.")
        if not 0 <= self.min_confidence <= 1:
            raise UsageError(f"The least confidence is a probability between 0 and 1, not {self.min_confidence}.")
        if self.near is not None:
            _similarity(self.near)


class Sampling(msgspec.Struct, frozen=True):
    """How lines are chosen and split; the defaults are hat's (section 2.2).

    Attributes:
        worst: lines that each scorer gives for being its worst.
        drawn: lines drawn at random from each scorer's worst percentile, without those that are chosen already.
        percentile: how many per cent of the lines a scorer scored are its worst percentile, above 0 to 100.
        most: the greatest number of lines altogether; of more, so many are drawn.
        parts: name of a part to its size; where fewer lines are chosen than the parts hold, the sizes are shares.
        near: Jaccard similarity from which two sources, or two targets, come into the same part.
        seed: of every draw, and of the split.

    Raises:
        UsageError: a number out of its range.
    """

    worst: int = 1_000
    drawn: int = 1_000
    percentile: float = 1.0
    most: int = 10_000
    parts: dict[str, int] = msgspec.field(default_factory=lambda: dict(HAT_PARTS))
    near: float = 0.8
    seed: int = 0

    def __post_init__(self) -> None:
        for name, count in (("worst", self.worst), ("drawn", self.drawn)):
            if count < 0:
                raise UsageError(f"{name} counts lines and is at least 0, not {count}.")
        if self.worst + self.drawn == 0 or self.most < 1:
            raise UsageError("A sample has at least one line.", remedy="Raise worst, drawn or most.")
        if not 0 < self.percentile <= 100:
            raise UsageError(f"The worst percentile is above 0 and at most 100 per cent, not {self.percentile}.")
        if not self.parts or any(size < 1 for size in self.parts.values()):
            raise UsageError("A split has parts of at least one line each.", remedy="Such as train=5000,dev=2000.")
        _similarity(self.near)


def _similarity(value: float) -> None:
    if not 0 < value <= 1:
        raise UsageError(f"A similarity is above 0 and at most 1, not {value}.")
