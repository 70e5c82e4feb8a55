"""Rows for the tests of `run` and `cli`, made up by rule."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from veriglot.records import Evidence, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORDS = [
    "the",
    "river",
    "flows",
    "north",
    "seven",
    "mills",
    "1998",
    "größer",
    "вода",
    "мост",
    "河",
    "橋",
    "نهر",
    "and",
]


def samples(count: int, seed: int = 0) -> Iterator[Sample]:
    """`count` samples of differing length; about one in ten has no evidence."""
    draw = random.Random(seed)
    for number in range(count):
        words = draw.choices(_WORDS, k=draw.randint(1, 30))
        evidence = tuple(
            Evidence(" ".join(draw.choices(_WORDS, k=12))) for _ in range(draw.choice([0, *[1, 2, 3] * 3]))
        )
        yield Sample(f"s{number}", " ".join(words), language="de", evidence=evidence)
