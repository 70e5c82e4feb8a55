"""Responses cut into what a scorer is asked about at level `sentence`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from veriglot.bench.items import ItemTable
    from veriglot.records import Sample

__all__ = ["sentence_samples"]


def sentence_samples(table: ItemTable) -> list[Sample]:
    """Each item of a table as a response of its own, held against the same evidence: how kang scores sentences.

    Labels are left out: a sentence has none of its own, and no scorer may look at them. The language is that of the
    whole response.
    """
    found = []
    for number, (owner, (start, end)) in enumerate(zip(table.owner.tolist(), table.places.tolist(), strict=True)):
        sample = table.samples[owner]
        found.append(
            msgspec.structs.replace(
                sample, id=f"{sample.id}#{number}", response=sample.response[start:end], annotations=()
            )
        )
    return found
