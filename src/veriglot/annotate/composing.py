"""Composing an exam: so many items of each share of hallucinated text (hat, section 3.2), drawn by chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from veriglot.annotate.drawing import draw
from veriglot.annotate.entries import StratumEntry

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from veriglot.annotate.entries import ExamEntry

__all__ = ["Candidate", "compose", "shortage"]


class Candidate(NamedTuple):
    """An item that could be in an exam.

    Attributes:
        id: of the item.
        key: of the item, which chance goes by.
        share: of its characters that are marked, from 0 to 1.
        spans: how many.
    """

    id: int
    key: str
    share: float
    spans: int


def compose(found: Sequence[Candidate], entry: ExamEntry, seen: Collection[int]) -> list[Candidate]:
    """Choose the items of an attempt, in an order of chance; everybody's first attempt has the same.

    Args:
        found: what there is to choose from, all of one language.
        entry: how many of which kind.
        seen: items that were asked before; they come only where nothing else is left.

    Returns:
        `entry.items` of them, or fewer where there are not so many of the kinds asked for; see `shortage`.
    """
    rows = draw(found, lambda one: one.key, entry.seed, "exam")
    rows.sort(key=lambda one: one.id in seen)  # those that were not seen come first, otherwise in their order
    chosen: list[Candidate] = []
    for stratum in _strata(entry):
        fitting = [one for one in rows if one not in chosen and stratum.low <= one.share <= stratum.high]
        several = [one for one in fitting if one.spans >= stratum.spans][: stratum.several]
        others = [one for one in fitting if one not in several]
        chosen += [*several, *_fill(others, stratum, len(several))]
    return draw(chosen, lambda one: one.key, entry.seed, "order")


def _fill(others: Sequence[Candidate], stratum: StratumEntry, had: int) -> list[Candidate]:
    """The rest of a stratum: those of one span first, so that `several` of them have more, and not all."""
    wanted = stratum.items - had
    if not stratum.several:
        return list(others[:wanted])
    return sorted(others, key=lambda one: one.spans >= stratum.spans)[:wanted]


def _strata(entry: ExamEntry) -> Sequence[StratumEntry]:
    """Those of the project file, narrow ones first, so that wide ones do not take their items; or one of all."""
    if not entry.strata:
        return (StratumEntry(entry.items),)
    return sorted(entry.strata, key=lambda one: one.high - one.low)


def shortage(found: Sequence[Candidate], entry: ExamEntry) -> list[str]:
    """What is missing of an exam of these items, in words; empty where nothing is."""
    said = []
    chosen = compose(found, entry, ())
    for stratum in _strata(entry):
        fitting = [one for one in chosen if stratum.low <= one.share <= stratum.high]
        several = sum(one.spans >= stratum.spans for one in fitting)
        what = f" with {stratum.low:.0%} to {stratum.high:.0%} of the text marked" if entry.strata else ""
        if len(fitting) < stratum.items:
            said.append(f"{len(fitting)} of {stratum.items} exam items{what}")
        if several < stratum.several:
            said.append(f"{several} of {stratum.several} exam items{what}, with {stratum.spans} spans or more")
    return said
