"""Project files to begin with, one a paper: data files beside this one."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING

from veriglot.errors import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["preset", "presets"]


def presets() -> tuple[str, ...]:
    """The names of the presets, sorted."""
    return tuple(sorted(file.name[:-5] for file in files(__package__).iterdir() if file.name.endswith(".toml")))


def preset(name: str, *, title: str, slug: str, data: Sequence[str], languages: Sequence[str] = ()) -> str:
    """A project file as TOML.

    Args:
        name: of the preset.
        title: of the project.
        slug: of the project.
        data: paths of the data, relative to where the file will lie.
        languages: BCP 47 tags of the responses; empty for whatever the data holds.

    Raises:
        UnknownNameError: there is no such preset.
    """
    if name not in presets():
        raise UnknownNameError("preset", name, presets())
    text = files(__package__).joinpath(f"{name}.toml").read_text("utf-8")
    values = {"name": _quoted(title)[1:-1], "slug": _quoted(slug)[1:-1], "data": _listed(data)}
    values["languages"] = _listed(languages)
    return re.sub(r"\{(name|slug|data|languages)\}", lambda found: values[found[1]], text)


def _listed(values: Sequence[str]) -> str:
    return f"[{', '.join(_quoted(value) for value in values)}]"


def _quoted(value: str) -> str:
    """A basic string of TOML; JSON's escapes are among those of TOML, but for the delete character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
