"""What became of a seed: its silver rows, what was rejected on the way, and what it cost."""

from __future__ import annotations

import msgspec

from veriglot.records import Sample  # msgspec reads it at run time

__all__ = ["PASSAGE", "ROW", "Made", "SilverRejection"]

PASSAGE = "passage"
ROW = "row"


class SilverRejection(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that was made and not taken.

    Attributes:
        id: of the row that it would have been part of.
        seed: id of the seed.
        language: of the seed.
        type: of the error; `passage` for a seed passage.
        reason: one of `FaultReason` (the reply), `SeedReason` (a passage), `Reason` (the check) or `SupportReason`.
        detail: the same in words.
        attempt: which try it was, from 1.
        text: what was rejected: the model's reply, or the error.
    """

    id: str
    seed: str
    language: str
    type: str
    reason: str
    detail: str
    attempt: int = 1
    text: str = ""


class Made(msgspec.Struct, frozen=True):
    """What became of one seed. The row of the stage.

    Attributes:
        id: of the seed.
        language: of the seed.
        samples: the silver rows.
        rejections: what was not taken.
        asked: per type, how often a row was to have an error of it.
        taken: per type, how many of these have one.
        calls, tokens_in, tokens_out: what it cost; tokens are estimated where a server did not say.
    """

    id: str
    language: str
    samples: tuple[Sample, ...]
    rejections: tuple[SilverRejection, ...]
    asked: dict[str, int]
    taken: dict[str, int]
    calls: int
    tokens_in: int
    tokens_out: int
