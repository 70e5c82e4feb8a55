"""The names of a classifier's outputs, read as its configuration gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["label_aliases", "label_names", "normalised_label"]


def label_names(names: Mapping[int, str] | Sequence[str] | str) -> list[str]:
    """Labels in the order of the outputs, from a mapping by output (`id2label`), a list, or a text with commas."""
    if isinstance(names, str):
        return [name.strip() for name in names.split(",") if name.strip()]
    if isinstance(names, Mapping):
        numbered = {int(output): str(name) for output, name in names.items()}
        return [numbered[output] for output in sorted(numbered)]
    return [str(name) for name in names]


def normalised_label(name: str) -> str:
    """A label without what makes no difference: case, hyphens, spaces."""
    return re.sub(r"[\s_-]+", "_", name.strip().casefold())


@cache
def label_aliases(package: str, file: str) -> dict[str, str]:
    """Normalised label to its meaning, from a JSON file of meanings with their labels in a package."""
    table = msgspec.json.decode(files(package).joinpath(file).read_bytes(), type=dict[str, list[str]])
    return {alias: meaning for meaning, aliases in table.items() for alias in aliases}
