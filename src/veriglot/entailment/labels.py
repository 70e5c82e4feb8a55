"""Which output of a model says what: read from the names that its configuration gives them, never guessed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec

from veriglot.errors import WeightsError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["COLUMNS", "THREE", "TWO", "labels_of"]

COLUMNS = ("entailment", "neutral", "contradiction")  # of what `Entailment.judge` gives
THREE = frozenset(COLUMNS)
TWO = frozenset({"entailment", "not_entailment"})


def labels_of(names: Mapping[int, str] | Sequence[str] | str, model: str) -> tuple[str, ...]:
    """The meaning of each output of a model, in order: `entailment`, `neutral`, `contradiction` or `not_entailment`.

    Args:
        names: the labels by output (`id2label` of a configuration), or in order, or in order with commas between them.
            Case, hyphens and usual variants make no difference (`labels.json`).
        model: its name, for the error.

    Returns:
        Three labels, or two: `entailment` and `not_entailment` in either order.

    Raises:
        WeightsError: the names are neither; a model whose labels are `LABEL_0`, `LABEL_1`, `LABEL_2` says nothing.
    """
    given = _in_order(names)
    found = tuple(_aliases().get(_plain(name), "") for name in given)
    if len(found) in (2, 3) and len(set(found)) == len(found) and set(found) in (THREE, TWO):
        return found
    raise WeightsError(
        f"Which outputs of {model!r} mean entailment, neutral and contradiction cannot be told from its labels:"
        f" {', '.join(map(repr, given)) or 'none'}.",
        remedy="Take a model trained on natural language inference; where you know the order, give it, such as"
        " labels='entailment,neutral,contradiction'.",
    )


def _in_order(names: Mapping[int, str] | Sequence[str] | str) -> list[str]:
    if isinstance(names, str):
        return [name.strip() for name in names.split(",") if name.strip()]
    if isinstance(names, Mapping):
        numbered = {int(place): str(name) for place, name in names.items()}
        return [numbered[place] for place in sorted(numbered)]
    return [str(name) for name in names]


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "_", name.strip().casefold())


@cache
def _aliases() -> dict[str, str]:
    data = files(__package__).joinpath("labels.json").read_bytes()
    table = msgspec.json.decode(data, type=dict[str, list[str]])
    return {alias: label for label, aliases in table.items() for alias in aliases}
