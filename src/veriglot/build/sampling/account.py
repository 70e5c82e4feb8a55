"""Every count of a sample for translation: what was read, what fell out, what was chosen, where it went."""

from __future__ import annotations

import msgspec

from veriglot.build.sampling.choosing import ScorerAccount

__all__ = ["Account", "Cleaned", "Part", "SampleAccount"]


class Cleaned(msgspec.Struct, frozen=True):
    """What became of all lines.

    Attributes:
        lines: that could be read.
        unreadable: rows that could not; they stand in `failed.jsonl`.
        translated: lines that have a translation.
        fates: lines by what became of them, in the order in which it is looked for; they add up to `lines`.
        other_languages: lines in another language than the sources' by its tag.
        uncompared: lines that stood among so many near ones that they were not held against all of them.
    """

    lines: int
    unreadable: int
    translated: int
    fates: dict[str, int]
    other_languages: dict[str, int]
    uncompared: int

    @property
    def clean(self) -> int:
        """Lines that stayed."""
        return self.fates["kept"]


class Part(msgspec.Struct, frozen=True):
    """One part of the sample: lines wanted and lines in it, which differ only where groups are too large to fit."""

    wanted: int
    lines: int


class SampleAccount(msgspec.Struct, frozen=True):
    """What was chosen.

    Attributes:
        scorers: what each gave.
        worst: lines that were among the worst of a scorer, each counted once.
        drawn: lines that were drawn from worst percentiles besides.
        union: both together.
        sample: lines of the sample, at most the bound.
        groups: groups of near-duplicates, lines on their own included.
        largest_group: lines of the largest one.
        parts: by name.
    """

    scorers: list[ScorerAccount]
    worst: int
    drawn: int
    union: int
    sample: int
    groups: int
    largest_group: int
    parts: dict[str, Part]


class Account(msgspec.Struct, frozen=True, omit_defaults=True):
    """The whole account, which `report.json` holds.

    Attributes:
        signature: one line that says how the sample was made.
        source: BCP 47 tag of the sources.
        target: of the translations; None where there are none yet.
        cleaned: what became of all lines.
        sample: what was chosen; None where there was nothing to score.
    """

    signature: str
    source: str
    target: str | None
    cleaned: Cleaned
    sample: SampleAccount | None = None
