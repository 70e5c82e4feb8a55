"""Forms of letters and marks that writers of one language interchange; the table is `letter_forms.json`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

__all__ = ["letter_forms"]


class _Forms(msgspec.Struct):
    letters: dict[str, str]
    punctuation: dict[str, str]


@cache
def letter_forms(group: Literal["letters", "punctuation"]) -> dict[str, str]:
    """Each form with the form that is kept in its place; both are single code points."""
    table = msgspec.json.decode(files(__package__).joinpath("letter_forms.json").read_bytes(), type=_Forms)
    return {other: kept for kept, others in getattr(table, group).items() for other in others}
