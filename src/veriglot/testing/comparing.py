"""Whether two answers are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["difference", "differences"]


def differences(wanted: Sequence[Any], found: Sequence[Any], tolerance: float, when: str) -> Iterator[str]:
    """What differs between two lists of records that belong to the same samples.

    Args:
        wanted: predictions or scores.
        found: those to hold against them.
        tolerance: by how much numbers may differ.
        when: what was done to get `found`.
    """
    if len(wanted) != len(found):
        yield f"{when}, there are {len(found)} answers for {len(wanted)} samples"
        return
    for one, other in zip(wanted, found, strict=True):
        where = difference(msgspec.to_builtins(one), msgspec.to_builtins(other), tolerance)
        if where:
            yield f"{when}, sample {getattr(one, 'id', '?')!r} differs in {where}"


def difference(one: Any, other: Any, tolerance: float, path: str = "") -> str | None:
    """Where two plain values differ, and how; None where they do not."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted(one.keys() | other.keys())
        pairs = [(f"{path}.{key}" if path else key, one.get(key), other.get(key)) for key in keys]
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        if len(one) != len(other):
            return f"{path}: {len(one)} and {len(other)} entries"
        pairs = [
            (f"{path}[{place}]", mine, theirs) for place, (mine, theirs) in enumerate(zip(one, other, strict=True))
        ]
    elif isinstance(one, float) and isinstance(other, float) and abs(one - other) <= tolerance:
        return None
    else:
        return None if one == other else f"{path}: {one!r} and {other!r}"
    return next((found for name, mine, theirs in pairs if (found := difference(mine, theirs, tolerance, name))), None)
