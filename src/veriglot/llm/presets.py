"""Generation settings with names, as papers used them; the table is `presets.json`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

from veriglot.errors import UnknownNameError
from veriglot.llm.client import Settings

__all__ = ["Preset", "preset", "presets"]


class Preset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings with their source.

    Attributes:
        settings: what the source names; what it leaves to the model's own generation configuration is None.
        family: the models that it was used for.
        source: paper and place.
    """

    settings: Settings
    family: str
    source: str


@cache
def presets() -> dict[str, Preset]:
    """Every preset by its name."""
    data = files("veriglot.llm").joinpath("presets.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, Preset])


def preset(name: str) -> Settings:
    """The settings of a preset.

    Raises:
        UnknownNameError: no such preset; the error suggests the nearest.
    """
    try:
        return presets()[name].settings
    except KeyError:
        raise UnknownNameError("preset", name, presets()) from None
